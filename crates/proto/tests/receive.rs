//! What each machine makes of bytes: RFC 9112, case by case.

mod rig;

use http::{Method, Version};
use mimus_proto::h1::{Client, Limits, NoReuse, Reuse, Server};
use mimus_proto::{BodyLength, Error, Fields, LimitExceeded, PeerMisbehaved, UnexpectedEof};
use rig::{Seen, asked, asked_with, body, error, feed, fields, request, response, written};

/// A response with these field lines (each with its CR LF) and this body.
fn with(lines: &str, body: &str) -> Vec<Seen> {
    response(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}"))
}

fn refused(log: &[Seen]) -> Option<PeerMisbehaved> {
    match error(log)? {
        Error::PeerMisbehaved(reason) => Some(reason),
        other => panic!("another kind of error: {other:?}"),
    }
}

fn chunked(body: &str) -> Vec<Seen> {
    with("Transfer-Encoding: chunked\r\n", body)
}

#[test]
fn bodies_end_where_the_framing_says() {
    for (lines, input, expected) in [
        ("Content-Length: 4\r\n", "body", "body"),
        ("content-length:0\r\n", "", ""),
        ("Content-Length: \t 00004 \t\r\n", "body", "body"),
        ("", "until the close", "until the close"),
        ("Transfer-Encoding: Chunked\r\n", "4\r\nbody\r\n0\r\n\r\n", "body"),
        ("Transfer-Encoding: chunked\r\n", "0\r\n\r\n", ""),
        (
            "Transfer-Encoding: chunked\r\n",
            "1\r\na\r\n0a\r\n0123456789\r\n000\r\n\r\n",
            "a0123456789",
        ),
        ("Transfer-Encoding: chunked\r\n", "1;a=b;c=\"d\\\";\"\r\nx\r\n0;e\r\n\r\n", "x"),
        ("Transfer-Encoding: chunked\r\n", "1  \r\nx\r\n0\r\n\r\n", "x"),
    ] {
        let log = with(lines, input);
        assert_eq!(log.last(), Some(&Seen::End), "{lines:?} {input:?}: {log:?}");
        assert_eq!(body(&log), expected.as_bytes(), "{lines:?} {input:?}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    use PeerMisbehaved as P;
    for (lines, reason) in [
        ("Content-Length: 4\r\nContent-Length: 5\r\n", P::ConflictingContentLength),
        ("Content-Length: 4\r\nContent-Length: 4\r\n", P::ConflictingContentLength),
        ("Content-Length: 4, 4\r\n", P::ConflictingContentLength),
        ("Content-Length: 4,\r\n", P::ConflictingContentLength),
        ("Content-Length: +4\r\n", P::BadContentLength),
        ("Content-Length: -4\r\n", P::BadContentLength),
        ("Content-Length: 4 4\r\n", P::BadContentLength),
        ("Content-Length: 0x4\r\n", P::BadContentLength),
        ("Content-Length: four\r\n", P::BadContentLength),
        ("Content-Length:\r\n", P::BadContentLength),
        ("Content-Length: 18446744073709551616\r\n", P::BadContentLength),
        (
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            P::TransferEncodingWithContentLength,
        ),
        ("Transfer-Encoding: gzip\r\nContent-Length: 4\r\n", P::TransferEncodingWithContentLength),
        ("Transfer-Encoding: gzip\r\n", P::TransferEncodingNotFinalChunked),
        ("Transfer-Encoding: gzip, chunked\r\n", P::TransferEncodingNotFinalChunked),
        ("Transfer-Encoding: chunked, gzip\r\n", P::TransferEncodingNotFinalChunked),
        ("Transfer-Encoding: chunked, chunked\r\n", P::TransferEncodingNotFinalChunked),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            P::TransferEncodingNotFinalChunked,
        ),
        ("Transfer-Encoding: xchunked\r\n", P::TransferEncodingNotFinalChunked),
        ("Transfer-Encoding: \"chunked\"\r\n", P::TransferEncodingNotFinalChunked),
        ("Transfer-Encoding: identity\r\n", P::TransferEncodingNotFinalChunked),
        ("Transfer-Encoding:\r\n", P::TransferEncodingNotFinalChunked),
        ("A: b\nC: d\r\n", P::BareLf),
        ("A: b\rC: d\r\n", P::BareCr),
        ("A: b\r\r\n", P::BareCr),
        ("A\r: b\r\n", P::BareCr),
        ("A: b\r\n folded\r\n", P::ObsFold),
        ("\tA: b\r\n", P::ObsFold),
        ("Content-Length : 4\r\n", P::SpaceBeforeColon),
        ("Transfer-Encoding\t: chunked\r\n", P::SpaceBeforeColon),
        ("A: b\0c\r\n", P::NulByte),
        ("A\0: b\r\n", P::NulByte),
        ("A: b\x01c\r\n", P::ControlByte),
        ("A: b\x7f\r\n", P::ControlByte),
        (": b\r\n", P::BadFieldName),
        ("A b: c\r\n", P::BadFieldName),
        ("no colon\r\n", P::BadFieldName),
        ("A(b): c\r\n", P::BadFieldName),
        ("\u{e9}: c\r\n", P::BadFieldName),
    ] {
        let log = with(lines, "body");
        assert_eq!(refused(&log), Some(reason), "response {lines:?}: {log:?}");
        assert_eq!(log.len(), 1, "nothing of it was reported: {log:?}");
        let log = request(&format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}\r\nbody"));
        assert_eq!(refused(&log), Some(reason), "request {lines:?}: {log:?}");
        assert_eq!(log.len(), 1, "nothing of it was reported: {log:?}");
    }
}

#[test]
fn a_transfer_encoding_in_http_1_0_is_refused() {
    let faulty = Some(PeerMisbehaved::TransferEncodingInHttp10);
    let coded = "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(refused(&response(&format!("HTTP/1.0 200 OK\r\n{coded}"))), faulty);
    assert_eq!(refused(&request(&format!("POST / HTTP/1.0\r\n{coded}"))), faulty);
}

#[test]
fn status_lines_are_read_strictly() {
    for (line, status, reason) in [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.0 404 Not Found", 404, "Not Found"),
        ("HTTP/1.1 200 Fine \t\u{e9}", 200, "Fine \t\u{e9}"),
        ("HTTP/1.1 299 ", 299, ""),
        ("HTTP/1.1 200", 200, ""),
        ("HTTP/1.7 200 OK", 200, "OK"),
        ("HTTP/1.1 999 OK", 999, "OK"),
    ] {
        match &response(&format!("{line}\r\n\r\n"))[0] {
            Seen::Response(seen, phrase, ..) => {
                assert_eq!((*seen, &phrase[..]), (status, reason.as_bytes()), "{line}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    for line in [
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 099 Low",
        "HTTP/1.1 -20 OK",
        "HTTP/1.1 2x0 OK",
        "HTTP/11 200 OK",
        "HTTP/1.10 200 OK",
        "http/1.1 200 OK",
        "ICY 200 OK",
        "SSH-2.0-x",
        " HTTP/1.1 200 OK",
        "HTTP/1.1 200OK",
        "HTTP/x.1 200 OK",
    ] {
        let log = response(&format!("{line}\r\n\r\n"));
        assert_eq!(refused(&log), Some(PeerMisbehaved::BadStatusLine), "{line}");
    }
    let log = response("HTTP/2.0 200 OK\r\n\r\n");
    assert_eq!(refused(&log), Some(PeerMisbehaved::UnsupportedVersion));
    assert_eq!(refused(&response("HTTP/1.1 200 a\0b\r\n\r\n")), Some(PeerMisbehaved::NulByte));
    assert_eq!(refused(&response("HTTP/1.1 200 OK\n\r\n")), Some(PeerMisbehaved::BareLf));
    for empty in ["\r\nHTTP/1.1 200 OK\r\n\r\n", "\nHTTP/1.1 200 OK\r\n\r\n"] {
        assert_eq!(refused(&response(empty)), Some(PeerMisbehaved::EmptyLineBeforeHead));
    }
}

#[test]
fn a_peer_of_another_protocol_is_refused_before_its_line_ends() {
    let mut client = asked(&Method::GET);
    client.recv(b"SSH");
    assert_eq!(client.poll_event().unwrap_err(), PeerMisbehaved::BadStatusLine.into());
}

#[test]
fn request_lines_are_read_strictly() {
    for line in
        ["GET / HTTP/1.1", "OPTIONS * HTTP/1.1", "CONNECT h:1 HTTP/1.1", "b-X http://h/ HTTP/1.1"]
    {
        let log = request(&format!("{line}\r\nHost: h\r\n\r\n"));
        assert!(matches!(log[..], [Seen::Request(..), Seen::End]), "{line}: {log:?}");
    }
    for line in [
        "GET /",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET /\t HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET / http/1.1",
        "GET / a HTTP/1.1",
        "",
    ] {
        let log = request(&format!("{line}\r\nHost: h\r\n\r\n"));
        assert_eq!(refused(&log), Some(PeerMisbehaved::BadRequestLine), "{line}");
    }
    let log = request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(refused(&log), Some(PeerMisbehaved::UnsupportedVersion));
}

#[test]
fn a_request_names_exactly_one_host() {
    for (lines, fine) in [
        ("HTTP/1.1\r\nHost: h\r\n", true),
        ("HTTP/1.1\r\n", false),
        ("HTTP/1.1\r\nHost: a\r\nHost: b\r\n", false),
        ("HTTP/1.0\r\n", true),
    ] {
        let log = request(&format!("GET / {lines}\r\n"));
        assert_eq!(refused(&log), (!fine).then_some(PeerMisbehaved::BadHost), "{lines:?}");
    }
}

#[test]
fn chunked_framing_is_read_strictly() {
    use PeerMisbehaved as P;
    for (body, reason) in [
        ("\r\n", P::BadChunkSize),
        ("x\r\n", P::BadChunkSize),
        ("+1\r\na\r\n", P::BadChunkSize),
        ("0x1\r\na\r\n", P::BadChunkSize),
        (" 1\r\na\r\n", P::BadChunkSize),
        ("1 a\r\na\r\n", P::BadChunkSize),
        ("10000000000000000\r\n", P::BadChunkSize),
        ("1;a\0\r\na\r\n", P::BadChunkExtension),
        ("1;a\rb\r\na\r\n", P::BadChunkExtension),
        ("1\na\r\n", P::BareLf),
        ("1;a\na\r\n", P::BareLf),
        ("1\r\nab\r\n", P::BadChunkTerminator),
        ("1\r\na\n", P::BadChunkTerminator),
        ("1\r\na\r\r\n", P::BadChunkTerminator),
        ("0\r\nA: b\n\r\n", P::BareLf),
        ("0\r\nA: b\r\n c\r\n\r\n", P::ObsFold),
        ("0\r\nContent-Length: 3\r\n\r\n", P::TrailerInvalid),
        ("0\r\nTransfer-Encoding: chunked\r\n\r\n", P::TrailerInvalid),
    ] {
        assert_eq!(refused(&chunked(body)), Some(reason), "{body:?}");
    }
}

#[test]
fn trailers_are_told_apart_from_the_head() {
    let log = chunked("1\r\na\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n");
    let pair = |value: &[u8]| ("X-Sum".to_owned(), value.to_vec());
    assert_eq!(log[2..], [Seen::Trailers(vec![pair(b"1"), pair(b"2")]), Seen::End]);
}

#[test]
fn a_message_cut_short_is_an_error_and_not_an_end() {
    use UnexpectedEof as E;
    for (input, place) in [
        ("", E::BeforeHead),
        ("H", E::InHead),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", E::InHead),
        ("HTTP/1.1 100 Continue\r\n\r\n", E::BeforeHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody", E::InBody),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nbody", E::InBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", E::InBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbo", E::InBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n", E::InBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nbo", E::InBody),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", E::InTrailers),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r", E::InTrailers),
    ] {
        let log = response(input);
        assert_eq!(error(&log), Some(place.into()), "{input:?}: {log:?}");
    }
    assert_eq!(request(""), [], "a close between requests is in order");
    assert_eq!(error(&request("GET / HT")), Some(E::InHead.into()));
}

#[test]
fn some_responses_never_have_a_body() {
    let length = "Content-Length: 9\r\n";
    for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
        let mut client = asked(&method);
        let input = format!("HTTP/1.1 {status} X\r\n{length}Transfer-Encoding: chunked\r\n\r\n");
        let log = feed(&mut client, input.as_bytes(), &[]);
        assert_eq!(log.last(), Some(&Seen::End), "{method} {status}");
        assert_eq!(log.len(), 2, "{method} {status}");
    }
}

#[test]
fn interim_responses_precede_the_final_one() {
    let input = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 102 X\r\nContent-Length: 7\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let log = response(input);
    assert_eq!(log[..2], [Seen::Informational(103), Seen::Informational(102)]);
    assert_eq!(body(&log), b"ok");
}

#[test]
fn a_switch_that_was_not_offered_is_refused() {
    let input = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes";
    let log = feed(&mut asked(&Method::GET), input, &[]);
    assert_eq!(refused(&log), Some(PeerMisbehaved::UnofferedUpgrade));
    let mut client = asked_with(&Method::GET, &fields([("Host", "h"), ("Upgrade", "x")]));
    let log = feed(&mut client, input, &[]);
    assert_eq!(log[1..], [Seen::Upgraded, Seen::Rest(b"bytes".to_vec())]);
}

#[test]
fn a_tunnel_ignores_the_framing_fields() {
    let mut client = asked(&Method::CONNECT);
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nraw";
    let log = feed(&mut client, input, &[]);
    assert_eq!(log[1..], [Seen::Upgraded, Seen::Rest(b"raw".to_vec())]);
}

#[test]
fn a_server_that_speaks_first_is_refused() {
    let unsolicited = Some(PeerMisbehaved::UnsolicitedBytes);
    let early = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut client = Client::new(Limits::default());
    assert_eq!(refused(&feed(&mut client, early, &[])), unsolicited);
    assert_eq!(client.reuse(), Reuse::No(NoReuse::Failed));

    let mut client = Client::new(Limits::default());
    let host = fields([("Host", "h")]);
    client.send_head(&Method::GET, "/", &host, BodyLength::None).expect("the connection is free");
    assert_eq!(refused(&feed(&mut client, early, &[])), unsolicited, "nothing was written yet");
}

#[test]
fn the_reuse_verdict_follows_connection_version_and_framing() {
    let empty = "Content-Length: 0\r\n\r\n";
    for (head, verdict) in [
        ("HTTP/1.1 200 OK\r\n", Reuse::Yes),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n", Reuse::Yes),
        ("HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\n", Reuse::No(NoReuse::CloseReceived)),
        (
            "HTTP/1.1 200 OK\r\nConnection: x\r\nconnection: close\r\n",
            Reuse::No(NoReuse::CloseReceived),
        ),
        ("HTTP/1.1 200 OK\r\nConnection: closed\r\n", Reuse::Yes),
        ("HTTP/1.0 200 OK\r\n", Reuse::No(NoReuse::Http10)),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", Reuse::Yes),
    ] {
        let mut client = asked(&Method::GET);
        client.recv(head.as_bytes());
        client.recv(empty.as_bytes());
        rig::drain(&mut client, &mut Vec::new());
        assert_eq!(client.reuse(), verdict, "{head:?}");
    }
}

#[test]
fn the_reuse_verdict_follows_what_happened() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let after = |client: &mut Client, input: &str| {
        client.recv(input.as_bytes());
        rig::drain(client, &mut Vec::new());
        client.reuse()
    };
    let mut client = asked(&Method::GET);
    assert_eq!(after(&mut client, &format!("{whole}y")), Reuse::No(NoReuse::ExtraBytes));
    let mut client = asked(&Method::GET);
    assert_eq!(after(&mut client, whole), Reuse::Yes);
    client.recv_eof();
    assert_eq!(client.reuse(), Reuse::No(NoReuse::PeerClosed));
    let mut client = asked_with(&Method::GET, &fields([("Host", "h"), ("Connection", "close")]));
    assert_eq!(after(&mut client, whole), Reuse::No(NoReuse::CloseSent));
    let mut client = asked(&Method::GET);
    client.recv_eof();
    assert_eq!(after(&mut client, "HTTP/1.1 200 OK\r\n\r\n"), Reuse::No(NoReuse::CloseDelimited));
    let mut client = asked(&Method::GET);
    assert_eq!(after(&mut client, "nonsense"), Reuse::No(NoReuse::Failed));
}

fn limited(change: impl FnOnce(&mut Limits), input: &str) -> Option<Error> {
    let mut limits = Limits::default();
    change(&mut limits);
    let mut client = Client::new(limits);
    let head = client.send_head(&Method::GET, "/", &Fields::new(), BodyLength::None);
    head.expect("the connection is free");
    written(&mut client, 4);
    error(&feed(&mut client, input.as_bytes(), &[]))
}

#[test]
fn every_limit_is_exact() {
    use LimitExceeded as L;
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b\r\n\r\n";
    let size = u32::try_from(head.len()).expect("short");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;abc\r\nx\r\n1;abc\r\nx\r\n0\r\nT: u\r\n\r\n";
    let interim = format!("{}{head}", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3));
    let exceeded = |limit: L| Some(Error::from(limit));

    assert_eq!(limited(|l| l.head_bytes = size, head), None);
    assert_eq!(limited(|l| l.head_bytes = size - 1, head), exceeded(L::HeadBytes));
    assert_eq!(limited(|l| l.fields = 2, head), None);
    assert_eq!(limited(|l| l.fields = 1, head), exceeded(L::Fields));
    assert_eq!(limited(|l| l.chunk_line = 7, chunked), None);
    assert_eq!(limited(|l| l.chunk_line = 6, chunked), exceeded(L::ChunkLine));
    assert_eq!(limited(|l| l.chunk_extensions = 8, chunked), None);
    assert_eq!(limited(|l| l.chunk_extensions = 7, chunked), exceeded(L::ChunkExtensions));
    assert_eq!(limited(|l| l.informational = 3, &interim), None);
    assert_eq!(limited(|l| l.informational = 2, &interim), exceeded(L::Informational));
    let trailers =
        format!("{}T: {}\r\n\r\n", chunked.trim_end_matches("T: u\r\n\r\n"), "u".repeat(90));
    assert_eq!(limited(|l| l.head_bytes = 80, &trailers), exceeded(L::TrailerBytes));
}

#[test]
fn a_head_that_never_ends_stops_at_the_limit() {
    let mut client = asked(&Method::GET);
    client.recv(b"HTTP/1.1 200 OK\r\nX: ");
    let mut fed = 0_usize;
    let error = loop {
        client.recv(&[b'a'; 1000]);
        fed += 1000;
        match client.poll_event() {
            Ok(event) => assert!(event.is_none() && fed < 70_000, "still waiting at {fed}"),
            Err(error) => break error,
        }
    };
    assert_eq!(error, LimitExceeded::HeadBytes.into());
}

#[test]
fn versions_are_reported_as_sent() {
    let log = feed(&mut Server::new(Limits::default()), b"GET / HTTP/1.0\r\n\r\n", &[]);
    assert!(matches!(log[0], Seen::Request(_, _, Version::HTTP_10, _)));
}
