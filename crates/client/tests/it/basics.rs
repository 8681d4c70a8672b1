//! Requests out, responses in.

use mimus::{Kind, Method, Version};
use serde_json::Value;

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    a_get_over_http_and_https,
    every_method_goes_out_as_it_is,
    fields_keep_order_case_and_duplicates,
    the_response_tells_all_it_knows,
    query_json_and_form,
    a_head_has_no_body,
    interim_responses_are_seen_and_passed_over,
    trailers_arrive_after_the_body,
    http_types_in_and_out,
    a_bad_request_fails_before_anything_is_sent,
    an_upgrade_hands_over_the_connection,
    text_follows_the_charset,
);

async fn a_get_over_http_and_https(b: Bench) {
    let client = b.client();
    for url in [b.http("/get?a=1"), b.https("/get?a=1")] {
        let response = client.get(&url).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.version(), Version::HTTP_11);
        let echo: Value = response.json().await.unwrap();
        assert_eq!(echo["method"], "GET");
        assert_eq!(echo["args"]["a"], "1");
    }
}

async fn every_method_goes_out_as_it_is(b: Bench) {
    let client = b.client();
    for name in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "x-Own"] {
        let method = Method::from_bytes(name.as_bytes()).unwrap();
        let response = client.request(method, b.http("/anything")).send().await.unwrap();
        let echo: Value = response.json().await.unwrap();
        assert_eq!(echo["method"], name);
    }
}

async fn fields_keep_order_case_and_duplicates(b: Bench) {
    let request = b
        .client()
        .get(b.http("/get"))
        .header("X-Zeta", "1")
        .header("x-alpha", "2")
        .header("X-Zeta", "3")
        .header("user-agent", "own");
    request.send().await.unwrap().bytes().await.unwrap();
    let seen = b.origin.requests();
    let fields = seen[0].headers();
    let own: Vec<_> =
        fields.iter().filter(|(n, _)| n.to_ascii_lowercase().starts_with("x-")).collect();
    assert_eq!(own[0].0, "X-Zeta");
    assert_eq!(own[1].0, "x-alpha");
    assert_eq!(own[2].1, "3");
    assert_eq!(fields[0].0, "Host");
    let agents: Vec<_> =
        fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case("user-agent")).collect();
    assert_eq!(agents, [&("user-agent".to_owned(), "own".to_owned())]);
}

async fn the_response_tells_all_it_knows(b: Bench) {
    let client = b.client();
    let mut response = client.get(b.https("/get")).send().await.unwrap();
    let addr = b.origin.addr(mimus_testkit::Port::Https).unwrap();
    assert_eq!(response.remote_addr(), Some(addr));
    assert!(response.local_addr().is_some());
    assert!(!response.reused());
    assert_eq!(response.url().as_str(), b.https("/get"));
    assert!(response.header("CONTENT-TYPE").unwrap().starts_with("application/json"));
    assert_eq!(response.headers()["content-type"], response.header("content-type").unwrap());
    let tls = response.tls().unwrap();
    assert!(tls.version.starts_with("TLSv1."), "{}", tls.version);
    assert!(!tls.certificates.is_empty());
    while response.chunk().await.unwrap().is_some() {}
    let timings = response.timings();
    assert!(timings.connect.is_some() && timings.tls.is_some());
    assert!(timings.total.unwrap() >= timings.first_byte);
    drop(response);
    let again = client.get(b.https("/get")).send().await.unwrap();
    assert!(again.reused());
    assert_eq!(again.timings().connect, None);
}

async fn query_json_and_form(b: Bench) {
    let client = b.client();
    let request = client.post(b.http("/post?x=0")).query(&[("q", "ü &"), ("r", "")]);
    let echo: Value =
        request.json(&serde_json::json!({"k": [1, 2]})).send().await.unwrap().json().await.unwrap();
    assert_eq!(echo["args"]["q"], "ü &");
    assert_eq!(echo["json"]["k"][1], 2);
    let echo: Value = client
        .post(b.http("/post"))
        .form(&[("a", "1 2")])
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(echo["form"]["a"], "1 2");
}

async fn a_head_has_no_body(b: Bench) {
    let client = b.client();
    let response = client.head(b.http("/bytes/5000")).send().await.unwrap();
    assert_eq!(response.header("content-length"), Some("5000"));
    assert!(response.bytes().await.unwrap().is_empty());
    assert!(client.get(b.http("/get")).send().await.unwrap().reused());
}

async fn interim_responses_are_seen_and_passed_over(b: Bench) {
    use std::sync::{Arc, Mutex};
    #[derive(Debug, Default)]
    struct Interim(Arc<Mutex<Vec<u16>>>);
    impl mimus::Hook for Interim {
        fn observe(&self, happened: &mimus::Observation<'_>) {
            if let mimus::Observation::Informational { head } = happened {
                self.0.lock().unwrap().push(head.status.as_u16());
            }
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let client = b.builder().hook(Interim(seen.clone())).build().unwrap();
    let response = client.get(b.http("/early-hints")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(*seen.lock().unwrap(), [103]);
}

async fn trailers_arrive_after_the_body(b: Bench) {
    let mut response = b.client().get(b.http("/trailers")).send().await.unwrap();
    while response.chunk().await.unwrap().is_some() {}
    assert!(!response.trailers().unwrap().is_empty());
}

async fn http_types_in_and_out(b: Bench) {
    let request = http::Request::post(b.http("/post")).header("x-own", "1").body("text").unwrap();
    let response = b.client().call(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.extensions().get::<mimus::ConnectionInfo>().is_some());
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Some(piece) = body.data().await.unwrap() {
        text.extend_from_slice(&piece);
    }
    let echo: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(echo["data"], "text");
}

async fn a_bad_request_fails_before_anything_is_sent(b: Bench) {
    let client = b.client();
    let url = b.http("/get");
    for request in [
        client.get("ftp://127.0.0.1/"),
        client.get("http://"),
        client.get(&url).header("bad name", "x"),
        client.get(&url).header("x", "a\r\nInjected: 1"),
        client.get(&url).header("Content-Length", "5"),
        client.post(&url).header("Transfer-Encoding", "gzip").body("x"),
    ] {
        let error = failure(request.send().await);
        assert_eq!(error.kind(), Kind::Request, "{error:#}");
        assert!(!error.was_sent());
    }
    assert!(b.origin.requests().is_empty());
}

async fn an_upgrade_hands_over_the_connection(b: Bench) {
    use futures_util::io::{AsyncReadExt, AsyncWriteExt};
    // Agrees, greets in the same segment, then says back what it hears.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        use std::io::{BufRead, BufReader, Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        stream.write_all(format!("{head}hello ").as_bytes()).unwrap();
        let mut heard = Vec::new();
        reader.by_ref().take(11).read_to_end(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
        reader.read_to_end(&mut heard).unwrap();
    });
    let request = b
        .client()
        .get(format!("http://{addr}/"))
        .header("Connection", "Upgrade")
        .header("Upgrade", "echo");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 101);
    let mut stream = response.upgrade().unwrap();
    stream.write_all(b"over to you").await.unwrap();
    stream.flush().await.unwrap();
    let mut back = [0; 17];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"hello over to you");
    // Dropping it closes the connection, which ends the server.
    drop(stream);
    server.join().unwrap();
    let refused = b.client().get(b.http("/get")).send().await.unwrap();
    assert_eq!(failure(refused.upgrade()).kind(), Kind::Protocol);
}

async fn text_follows_the_charset(b: Bench) {
    let client = b.client();
    let utf8 = client.get(b.http("/encoding/utf8")).send().await.unwrap().text().await.unwrap();
    assert!(!utf8.contains('\u{fffd}'));
    let latin1 = client.get(b.http("/encoding/latin1")).send().await.unwrap().text().await.unwrap();
    assert!(latin1.contains('é') && !latin1.contains('\u{fffd}'), "{latin1}");
}
