//! The well-behaved routes, read byte by byte.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use common::*;
use mimus_testkit::{Port, routes};

#[test]
fn get_says_back_the_request_with_order_case_and_duplicates() {
    let origin = origin();
    let raw = "GET /get?a=1&b=%20x&a=2 HTTP/1.1\r\nhOsT: h\r\nX-b: 2\r\nx-A:1\r\nX-b: 3\r\n\r\n";
    let answer = send(&origin, raw);
    let json = answer.json();
    assert_eq!(answer.status, 200);
    assert_eq!(json["args"], serde_json::json!({"a": ["1", "2"], "b": " x"}));
    let headers = serde_json::json!([["hOsT", "h"], ["X-b", "2"], ["x-A", "1"], ["X-b", "3"]]);
    assert_eq!(json["headers"], headers);
    let seen = &origin.requests()[0];
    assert_eq!(seen.head, raw.as_bytes());
    assert_eq!((seen.method.as_str(), seen.seq, seen.body_complete), ("GET", 1, true));
}

#[test]
fn a_connection_is_reused_and_says_so() {
    let origin = origin();
    let mut stream = connect(&origin, Port::Http);
    for number in 1..=3 {
        stream.write_all(get("/anything/x").as_bytes()).unwrap();
        let json = read_answer(&mut stream).json();
        assert_eq!(json["request_number"], number);
        assert_eq!(json["connection"], 1);
    }
    assert_eq!(origin.open_connections(), 1);
    drop(stream);
    eventually("the connection is closed", || origin.open_connections() == 0);
    assert!(origin.connections()[0].closed);
    assert_eq!(origin.accepted(Port::Http), 1);
    origin.reset();
    assert!(origin.connections().is_empty() && origin.requests().is_empty());
    assert_eq!(origin.accepted(Port::Http), 0);
}

#[test]
fn every_parameterless_get_route_answers() {
    let origin = origin();
    let plain = routes().filter(|r| !r.pattern.contains(['{', '*']) && r.methods == ["GET"]);
    let mut count = 0;
    for route in plain {
        let answer = fetch(&origin, route.pattern);
        assert!(matches!(answer.status, 103 | 200 | 302), "{}: {}", route.pattern, answer.head);
        count += 1;
    }
    assert!(count > 20, "{count}");
}

#[test]
fn form_multipart_and_json_bodies_are_taken_apart() {
    let origin = origin();
    let post = |kind: &str, body: &str| {
        let len = body.len();
        send(&origin, format!(
            "POST /post HTTP/1.1\r\nHost: h\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n{body}"
        )).json()
    };
    assert_eq!(post("application/json", "{\"a\":[1]}")["json"]["a"][0], 1);
    let form = post("application/x-www-form-urlencoded", "k=v+w&k=%C3%A9");
    assert_eq!(form["form"]["k"], serde_json::json!(["v w", "é"]));
    let parts = "--B\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\ntext\r\n--B\r\n\
        Content-Disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\n\
        Content-Type: application/x-thing\r\n\r\ndata\r\n--B--\r\n";
    let multi = post("multipart/form-data; boundary=B", parts);
    assert_eq!(multi["form"]["t"], "text");
    assert_eq!(multi["files"][0]["filename"], "a.bin");
    assert_eq!(multi["files"][0]["content_type"], "application/x-thing");
    assert_eq!(multi["files"][0]["data"], "data");
}

#[test]
fn a_chunked_upload_with_trailers_is_hashed() {
    let origin = origin();
    let answer = send(
        &origin,
        "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
         2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX-T: 1\r\n\r\n",
    );
    let json = answer.json();
    assert_eq!(json["length"], 3);
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(json["sha256"], abc);
    assert_eq!(json["trailers"][0], "X-T: 1");
    assert_eq!(origin.requests()[0].body_len, 3);
    assert!(origin.requests()[0].body_complete);
}

#[test]
fn expect_continue_is_answered_before_the_body_and_can_be_refused() {
    let origin = origin();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
    };
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(head("/continue").as_bytes()).unwrap();
    assert_eq!(read_head(&mut stream), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hi").unwrap();
    assert_eq!(read_answer(&mut stream).text(), "2 bytes\n");
    stream.write_all(head("/expect-refused").as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!((answer.status, answer.header("connection")), (417, Some("close")));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn redirects_count_down_and_point_where_told() {
    let origin = origin();
    assert_eq!(fetch(&origin, "/redirect/2").header("location"), Some("/redirect/1"));
    assert_eq!(fetch(&origin, "/redirect/1").header("location"), Some("/get"));
    let absolute = fetch(&origin, "/absolute-redirect/3");
    assert_eq!(absolute.header("location"), Some("http://origin.test/absolute-redirect/2"));
    let to = fetch(&origin, "/redirect-to?url=http%3A%2F%2Fx%2F&status_code=307");
    assert_eq!((to.status, to.header("location")), (307, Some("http://x/")));
    assert_eq!(fetch(&origin, "/redirect-loop").header("location"), Some("/redirect-loop"));
}

#[test]
fn cookies_are_set_said_back_and_deleted() {
    let origin = origin();
    let set = fetch(&origin, "/cookies/set?a=1&b=2");
    assert_eq!(set.headers("set-cookie"), ["a=1; Path=/", "b=2; Path=/"]);
    let raw = "GET /cookies HTTP/1.1\r\nHost: h\r\nCookie: a=1; b=2\r\n\r\n";
    assert_eq!(send(&origin, raw).json()["cookies"], serde_json::json!({"a": "1", "b": "2"}));
    let gone = fetch(&origin, "/cookies/delete?a");
    assert_eq!(gone.headers("set-cookie"), ["a=; Path=/; Max-Age=0"]);
}

#[test]
fn basic_and_bearer_want_credentials() {
    let origin = origin();
    let with = |path: &str, value: &str| {
        send(&origin, format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: {value}\r\n\r\n"))
    };
    assert_eq!(fetch(&origin, "/basic-auth/u/p").status, 401);
    assert_eq!(with("/basic-auth/u/p", "Basic dTpw").status, 200);
    assert_eq!(with("/basic-auth/u/p", "Basic dTpx").status, 401);
    assert_eq!(fetch(&origin, "/bearer").status, 401);
    assert_eq!(with("/bearer", "Bearer t").json()["token"], "t");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn md5(text: &str) -> String {
    use md5::Digest as _;
    hex(&md5::Md5::digest(text))
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(text))
}

/// The nonce and the whole of a Digest challenge.
fn challenge(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 401);
    let field = answer.header("www-authenticate").unwrap().to_owned();
    let nonce = field.split("nonce=\"").nth(1).unwrap().split('"').next().unwrap();
    (nonce.to_owned(), field)
}

#[test]
fn digest_without_qop_verifies_once_and_then_is_stale() {
    let origin = origin();
    let path = "/digest-auth/none/u/p";
    let (nonce, _) = challenge(&fetch(&origin, path));
    let answer = md5(&format!("{}:{nonce}:{}", md5("u:origin:p"), md5(&format!("GET:{path}"))));
    let raw = format!(
        "GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Digest username=\"u\", realm=\"origin\", \
         nonce=\"{nonce}\", uri=\"{path}\", response=\"{answer}\", opaque=\"mimus\"\r\n\r\n"
    );
    assert_eq!(send(&origin, &raw).status, 200);
    assert!(challenge(&send(&origin, &raw)).1.ends_with("stale=true"));
    let forged = raw.replace(&nonce, "00000000000000ff");
    assert!(!challenge(&send(&origin, forged)).1.contains("stale"));
}

#[test]
fn digest_counts_its_nonce_and_knows_algorithms_sessions_and_bodies() {
    let origin = origin();
    for (qop, algorithm) in [
        ("auth", "MD5"),
        ("auth", "SHA-256"),
        ("auth-int", "MD5"),
        ("auth-int", "SHA-256-sess"),
        ("auth", "MD5-sess"),
    ] {
        let hash = |text: &str| {
            if algorithm.starts_with("SHA") { sha256(text) } else { md5(text) }
        };
        let path = format!("/digest-auth/{qop}/u/p/{algorithm}");
        let (nonce, field) = challenge(&fetch(&origin, &path));
        assert!(field.contains(&format!("algorithm={algorithm}, qop=\"{qop}\"")), "{field}");
        let request = |count: &str, password: &str| {
            let mut a1 = hash(&format!("u:origin:{password}"));
            if algorithm.ends_with("-sess") {
                a1 = hash(&format!("{a1}:{nonce}:c"));
            }
            let body = if qop == "auth-int" { format!(":{}", hash("hi")) } else { String::new() };
            let a2 = hash(&format!("POST:{path}{body}"));
            let answer = hash(&format!("{a1}:{nonce}:{count}:c:{qop}:{a2}"));
            let raw = format!(
                "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nAuthorization: Digest \
                 username=\"u\", realm=\"origin\", nonce=\"{nonce}\", uri=\"{path}\", qop={qop}, \
                 nc={count}, cnonce=\"c\", algorithm={algorithm}, response=\"{answer}\", \
                 opaque=\"mimus\"\r\n\r\nhi"
            );
            send(&origin, raw)
        };
        assert_eq!(request("00000001", "wrong").status, 401);
        assert_eq!(request("00000001", "p").status, 200, "{path}");
        assert_eq!(request("00000002", "p").status, 200, "{path}");
        assert!(challenge(&request("00000002", "p")).1.ends_with("stale=true"));
    }
}

#[test]
fn content_codings_undo_to_the_text() {
    let origin = origin();
    let inflate = |body: &[u8], what: &str| {
        let mut out = Vec::new();
        match what {
            "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut out),
            "zlib" => flate2::read::ZlibDecoder::new(body).read_to_end(&mut out),
            "raw" => flate2::read::DeflateDecoder::new(body).read_to_end(&mut out),
            "br" => brotli::Decompressor::new(body, 4096).read_to_end(&mut out),
            _ => zstd::stream::read::Decoder::new(body).unwrap().read_to_end(&mut out),
        }
        .unwrap();
        out
    };
    for (path, name, what) in [
        ("/gzip", "gzip", "gzip"),
        ("/deflate", "deflate", "zlib"),
        ("/deflate-raw", "deflate", "raw"),
        ("/brotli", "br", "br"),
        ("/zstd", "zstd", "zstd"),
    ] {
        let answer = fetch(&origin, path);
        assert_eq!(answer.header("content-encoding"), Some(name));
        let text = String::from_utf8(inflate(&answer.body, what)).unwrap();
        assert!(text.contains("mockingbird"), "{path}");
    }
    let stacked = fetch(&origin, "/gzip?stacked=1");
    assert_eq!(stacked.header("content-encoding"), Some("gzip, br"));
    let text = inflate(&inflate(&stacked.body, "br"), "gzip");
    assert!(String::from_utf8(text).unwrap().contains("mockingbird"));
}

#[test]
fn ranges_are_cut_from_the_same_bytes() {
    let origin = origin();
    let whole = fetch(&origin, "/range/1000");
    let tag = whole.header("etag").unwrap().to_owned();
    let part = |fields: &str| {
        send(&origin, format!("GET /range/1000 HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n"))
    };
    let tail = part(&format!("Range: bytes=900-\r\nIf-Range: {tag}"));
    assert_eq!((tail.status, tail.header("content-range")), (206, Some("bytes 900-999/1000")));
    assert_eq!(tail.body, whole.body[900..]);
    assert_eq!(part("Range: bytes=1000-").header("content-range"), Some("bytes */1000"));
    assert_eq!(part("Range: bytes=1-2\r\nIf-Range: \"other\"").status, 200);
}

#[test]
fn the_wire_routes_do_what_http_1_can() {
    let origin = origin();
    let (bytes, _) = talk(&origin, get_close("/trailers"));
    assert!(bytes.ends_with(b"0\r\nx-count: 2\r\nx-checksum: 9\r\n\r\n"));
    let (bytes, _) = talk(&origin, get_close("/early-hints"));
    assert!(bytes.starts_with(b"HTTP/1.1 103 Early Hints\r\n"));
    let (bytes, end) = talk(&origin, get("/http10"));
    assert!(bytes.starts_with(b"HTTP/1.0 200 OK\r\n") && bytes.ends_with(b"1996\n"));
    assert!(end.is_ok());
    assert!(talk(&origin, get("/close")).1.is_ok());
    let (bytes, _) = talk(&origin, "HEAD /get HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(bytes.ends_with(b"\r\n\r\n") && !bytes.contains(&b'{'));
}

#[test]
fn time_passes_where_it_should_and_a_client_that_leaves_is_noticed() {
    let origin = origin();
    let begin = Instant::now();
    assert_eq!(fetch(&origin, "/delay/0.15").status, 200);
    assert!(begin.elapsed().as_millis() >= 150);
    let begin = Instant::now();
    assert_eq!(fetch(&origin, "/drip?numbytes=5&duration=0.1").body, b"*****");
    assert!(begin.elapsed().as_millis() >= 100);
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(get("/delay/60").as_bytes()).unwrap();
    eventually("the request is seen", || origin.requests().len() == 3);
    drop(stream);
    eventually("the client's leaving is noticed", || origin.open_connections() == 0);
}

#[test]
fn events_resume_after_the_last_one_seen() {
    let origin = origin();
    let raw = "GET /sse?count=2&ms=0 HTTP/1.1\r\nHost: h\r\nLast-Event-ID: 6\r\n\r\n";
    let answer = send(&origin, raw);
    assert!(answer.text().contains("id: 7\n") && answer.text().contains("id: 8\n"));
    assert!(!answer.text().contains("id: 6\n") && !answer.text().contains("id: 9\n"));
}

#[test]
fn a_stream_of_events_breaks_ends_and_is_refused_as_asked() {
    let origin = origin();
    let behind = |path: &str, id: &str| {
        talk(&origin, format!("GET {path} HTTP/1.1\r\nHost: h\r\n{id}\r\n")).0
    };
    let contains =
        |bytes: &[u8], part: &str| bytes.windows(part.len()).any(|w| w == part.as_bytes());
    let cut = behind("/sse?total=4&cut=3&ms=0", "");
    assert!(contains(&cut, "id: 2\ndata: {\"n\": 2}\n") && contains(&cut, "id: 3\n"));
    assert!(
        !contains(&cut, "{\"n\": 3}") && !contains(&cut, "0\r\n\r\n"),
        "it breaks inside an event"
    );
    let raw = "GET /sse?total=4&cut=3&ms=0 HTTP/1.1\r\nHost: h\r\nLast-Event-ID: 2\r\n\r\n";
    assert!(send(&origin, raw).text().contains("{\"n\": 3}\ndata: second line\n\n"));
    let raw = raw.replace("ID: 2", "ID: 3");
    assert_eq!(send(&origin, raw).status, 204);
    let whole = fetch(&origin, "/sse?count=1&ms=0&split=1&ends=crlf&done=1&retry=7");
    assert!(
        whole.text().starts_with("retry: 7\r\n") && whole.text().ends_with("\ndata: [DONE]\n\n")
    );
    let refused = fetch(&origin, "/sse?status=503");
    assert_eq!((refused.status, refused.header("content-type")), (503, Some("application/json")));
    assert_eq!(fetch(&origin, "/sse?type=text/html").header("content-type"), Some("text/html"));
    let comments = fetch(&origin, "/sse/comments?count=3&ms=0");
    assert_eq!(comments.text(), ":\n:\n:\ndata: \"after the comments\"\n\n");
}

#[test]
fn models_say_the_prompt_back() {
    let origin = origin();
    let post = |path: &str, body: &str| {
        let len = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n");
        send(&origin, head + body)
    };
    let prompt = "{\"stream\": true, \"messages\": [{\"content\": \"one two\"}]}";
    let openai = post("/v1/chat/completions", prompt);
    let text = openai.text();
    assert!(
        text.contains("\"one \"") && text.contains("\"two\"") && text.ends_with("data: [DONE]\n\n")
    );
    let anthropic = post("/v1/messages", prompt);
    assert!(anthropic.text().contains("event: content_block_delta\n"));
    assert!(anthropic.text().contains("\"one \"") && anthropic.text().contains("message_stop"));
    assert_eq!(post("/v1/messages", "{}").status, 400);
}

#[test]
fn requests_that_break_the_rules_are_refused() {
    let origin = origin();
    for raw in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
        "GET / HTTP/1.1\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        "POST /post HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n",
    ] {
        let (bytes, end) = talk(&origin, raw);
        assert!(bytes.starts_with(b"HTTP/1.1 400 "), "{raw:?}: {}", bytes.escape_ascii());
        assert!(end.is_ok());
    }
    assert_eq!(fetch(&origin, "/nowhere").status, 404);
    let answer = fetch(&origin, "/post");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[test]
fn the_unix_socket_serves_and_goes_with_the_origin() {
    let origin = origin();
    let path = origin.unix_path().to_owned();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
    assert_eq!(origin.requests()[0].port, Port::Unix);
    drop(origin);
    assert!(!path.exists());
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn http_1_0_ends_with_its_answer_unless_asked_to_go_on() {
    let origin = origin();
    let (bytes, end) = talk(&origin, "GET /json HTTP/1.0\r\n\r\n");
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n") && end.is_ok());
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(b"GET /json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut stream).header("connection"), Some("keep-alive"));
    stream.write_all(get("/json").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
}
