//! What the machines write, and what they refuse to write.

#![allow(clippy::unwrap_used)] // A refused call fails the test.

mod rig;

use bytes::Bytes;
use http::{Method, StatusCode};
use mimus_proto::h1::{Client, Limits, Server};
use mimus_proto::{ApiMisuse, BodyLength, Fields};
use rig::{drain, fields, written};

fn client() -> Client {
    Client::new(Limits::default())
}

/// The head of a POST with these fields and this body, as text.
fn head(fields: &Fields, body: BodyLength) -> Result<String, ApiMisuse> {
    let mut client = client();
    client.send_head(&Method::POST, "/p?q", fields, body)?;
    Ok(String::from_utf8(written(&mut client, 2)).unwrap())
}

#[test]
fn fields_go_out_in_the_order_and_case_given() {
    let odd = fields([("zeta", "1"), ("HOST", "h"), ("Zeta", "2"), ("a", "")]);
    let expected = "POST /p?q HTTP/1.1\r\nzeta: 1\r\nHOST: h\r\nZeta: 2\r\na: \r\n\r\n";
    assert_eq!(head(&odd, BodyLength::None).unwrap(), expected);
}

#[test]
fn the_framing_field_is_added_only_when_missing() {
    let line = "POST /p?q HTTP/1.1\r\n";
    for (given, body, expected) in [
        (fields([]), BodyLength::None, "\r\n"),
        (fields([]), BodyLength::Known(0), "Content-Length: 0\r\n\r\n"),
        (fields([]), BodyLength::Known(u64::MAX), "Content-Length: 18446744073709551615\r\n\r\n"),
        (fields([]), BodyLength::Chunked, "Transfer-Encoding: chunked\r\n\r\n"),
        (
            fields([("content-length", "12"), ("a", "b")]),
            BodyLength::Known(12),
            "content-length: 12\r\na: b\r\n\r\n",
        ),
        (fields([("content-length", "0")]), BodyLength::None, "content-length: 0\r\n\r\n"),
        (fields([("TE", "x")]), BodyLength::Chunked, "TE: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        assert_eq!(head(&given, body).unwrap(), format!("{line}{expected}"));
    }
}

#[test]
fn fields_that_contradict_the_body_are_refused() {
    let length = ApiMisuse::ContentLengthMismatch;
    let coding = ApiMisuse::TransferEncodingMismatch;
    for (given, body, misuse) in [
        (fields([("Content-Length", "3")]), BodyLength::None, length),
        (fields([("Content-Length", "3")]), BodyLength::Known(4), length),
        (fields([("Content-Length", "x")]), BodyLength::Known(4), length),
        (fields([("Content-Length", "4"), ("Content-Length", "4")]), BodyLength::Known(4), length),
        (fields([("Content-Length", "3")]), BodyLength::Chunked, length),
        (
            fields([("Content-Length", "3"), ("Transfer-Encoding", "chunked")]),
            BodyLength::Chunked,
            length,
        ),
        (fields([("Transfer-Encoding", "chunked")]), BodyLength::None, coding),
        (fields([("Transfer-Encoding", "chunked")]), BodyLength::Known(3), coding),
        (fields([("Transfer-Encoding", "gzip, chunked")]), BodyLength::Chunked, coding),
        (fields([("Expect", "100-continue")]), BodyLength::None, ApiMisuse::ExpectWithoutBody),
        (fields([("Expect", "100-continue")]), BodyLength::Known(0), ApiMisuse::ExpectWithoutBody),
    ] {
        assert_eq!(head(&given, body), Err(misuse), "{given:?} {body:?}");
    }
}

#[test]
fn a_target_cannot_split_the_request() {
    for target in ["", "/a b", "/a\r\nHost: x", "/a\n", "/\t", "/\0", "/\u{e9}", "/\x7f"] {
        let mut client = client();
        let refused = client.send_head(&Method::GET, target, &Fields::new(), BodyLength::None);
        assert_eq!(refused, Err(ApiMisuse::InvalidTarget), "{target:?}");
        assert!(!client.has_output());
    }
}

#[test]
fn a_body_keeps_to_its_announcement() {
    let mut client = client();
    let data = |text: &'static str| Bytes::from_static(text.as_bytes());
    assert_eq!(client.send_data(data("x")), Err(ApiMisuse::NoExchange));
    assert_eq!(client.send_end(None), Err(ApiMisuse::NoExchange));
    client.send_head(&Method::POST, "/", &Fields::new(), BodyLength::Known(3)).unwrap();
    written(&mut client, 2);
    assert_eq!(client.send_data(data("four")), Err(ApiMisuse::BodyTooLong));
    client.send_data(data("ab")).unwrap();
    assert_eq!(client.send_end(None), Err(ApiMisuse::BodyTooShort));
    client.send_data(data("c")).unwrap();
    assert_eq!(client.send_data(data("d")), Err(ApiMisuse::BodyOver));
    assert_eq!(client.send_end(Some(&fields([("A", "b")]))), Err(ApiMisuse::TrailersNeedChunked));
    client.send_end(None).unwrap();
    assert_eq!(written(&mut client, 2), b"abc");
    assert!(client.send_done());
}

#[test]
fn chunks_are_framed_and_never_empty() {
    let mut client = client();
    client.send_head(&Method::POST, "/", &Fields::new(), BodyLength::Chunked).unwrap();
    written(&mut client, 2);
    for size in [1, 0, 16, 255] {
        client.send_data(Bytes::from(vec![b'x'; size])).unwrap();
    }
    let forbidden = fields([("A", "b"), ("Content-Length", "1")]);
    assert_eq!(client.send_end(Some(&forbidden)), Err(ApiMisuse::ForbiddenTrailer));
    client.send_end(Some(&fields([("A", "b")]))).unwrap();
    let x = |count| "x".repeat(count);
    let expected = format!("1\r\nx\r\n10\r\n{}\r\nff\r\n{}\r\n0\r\nA: b\r\n\r\n", x(16), x(255));
    assert_eq!(String::from_utf8(written(&mut client, 2)).unwrap(), expected);
}

fn served(request: &str) -> Server {
    let mut server = Server::new(Limits::default());
    server.recv(request.as_bytes());
    drain(&mut server, &mut Vec::new());
    server
}

#[test]
fn a_response_announces_what_its_status_and_method_allow() {
    let known = BodyLength::Known(5);
    for (method, status, body, expected) in [
        ("GET", 200, BodyLength::None, "200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("GET", 200, known, "200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", 200, known, "200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", 200, BodyLength::None, "200 OK\r\n\r\n"),
        ("GET", 204, known, "204 No Content\r\n\r\n"),
        ("GET", 304, BodyLength::None, "304 Not Modified\r\n\r\n"),
        ("CONNECT", 200, known, "200 OK\r\n\r\n"),
        ("GET", 299, BodyLength::Chunked, "299 \r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        let mut server = served(&format!("{method} h:1 HTTP/1.1\r\nHost: h\r\n\r\n"));
        let status = StatusCode::from_u16(status).unwrap();
        server.send_head(status, &Fields::new(), body).unwrap();
        let text = String::from_utf8(written(&mut server, 2)).unwrap();
        assert_eq!(text, format!("HTTP/1.1 {expected}"), "{method} {body:?}");
    }
}

#[test]
fn a_server_answers_once_and_only_what_was_asked() {
    let none = Fields::new();
    let mut server = Server::new(Limits::default());
    let early = server.send_head(StatusCode::OK, &none, BodyLength::None);
    assert_eq!(early, Err(ApiMisuse::NoExchange));
    let mut server = served("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let switch = server.send_head(StatusCode::SWITCHING_PROTOCOLS, &none, BodyLength::None);
    assert_eq!(switch, Err(ApiMisuse::WrongStatusClass));
    assert_eq!(server.send_informational(StatusCode::OK, &none), Err(ApiMisuse::WrongStatusClass));
    server.send_head(StatusCode::OK, &none, BodyLength::None).unwrap();
    let again = server.send_head(StatusCode::OK, &none, BodyLength::None);
    assert_eq!(again, Err(ApiMisuse::HeadAlreadySent));
}
