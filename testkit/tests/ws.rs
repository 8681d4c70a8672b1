//! The WebSockets that behave, met by the crate `tungstenite` and, where that knows too little, by bytes.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{Read, Write};

use common::socket::*;
use common::two::block_on;
use common::{connect, eventually, fetch, origin, read_all, read_head};
use futures_util::{SinkExt, StreamExt};
use mimus_testkit::{Origin, Port};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

#[test]
fn it_says_back_what_it_is_told_over_both_versions() {
    let origin = origin();
    block_on(async {
        let fields = [("sec-websocket-protocol", "mqtt, chat")];
        let (mut one, response) = open(&origin, "/ws/echo", &fields).await.unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        let mut two = open_h2(&origin, "/ws/echo", &[]).await.unwrap();
        for size in [0, 1, 125, 126, 65_535, 65_536, 1_000_000] {
            let (text, binary) = ("ü".repeat(size / 2), vec![7_u8; size]);
            for message in [Message::text(text), Message::binary(binary)] {
                assert_eq!(exchange(&mut one, message.clone()).await, message);
                assert_eq!(exchange(&mut two, message.clone()).await, message);
            }
        }
        two.close(None).await.unwrap();
        while two.next().await.is_some() {}
    });
    let seen = seen(&origin);
    assert_eq!((seen.messages, seen.broken, seen.close), (14, vec![], Some((None, String::new()))));
    assert_eq!(origin.accepted(Port::H2c), 1);
}

#[test]
fn what_is_no_handshake_is_told_so() {
    let origin = origin();
    assert_eq!(fetch(&origin, "/ws/echo").status, 426);
    let head = |fields: &str| format!("GET /ws/echo HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    let right = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (from, to) in [
        ("Version: 13", "Version: 8"),
        ("websocket\r\n", "h2c\r\n"),
        ("Connection: Upgrade", "Connection: close"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "dG9vIHNob3J0"),
    ] {
        let answer = common::send(&origin, head(&right.replace(from, to)));
        assert_eq!(answer.status, 400, "{to}");
        assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    }
    let mut stream = connect(&origin, Port::Http);
    stream.write_all(head(right).as_bytes()).unwrap();
    let answer = read_head(&mut stream);
    // RFC 6455 section 1.3 has this key, and what is made of it.
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{answer}");
    block_on(async {
        let refused = open_h2(&origin, "/ws/refuse?status=503", &[]).await.unwrap_err();
        assert_eq!(refused, 503);
    });
}

async fn ended(origin: &Origin, path: &str) -> (Vec<Message>, Result<(), Error>) {
    let (mut socket, _) = open(origin, path, &[]).await.unwrap();
    let mut messages = Vec::new();
    loop {
        match socket.next().await {
            None => return (messages, Ok(())),
            Some(Ok(message)) => messages.push(message),
            Some(Err(error)) => return (messages, Err(error)),
        }
    }
}

#[test]
fn each_ends_in_its_way() {
    let origin = origin();
    block_on(async {
        let (came, end) = ended(&origin, "/ws/close?code=3001&reason=enough").await;
        let Some(Message::Close(Some(close))) = came.first() else {
            panic!("{came:?}");
        };
        assert_eq!((close.code, close.reason.as_str()), (CloseCode::Iana(3001), "enough"));
        assert!(end.is_ok());
        assert_eq!(seen(&origin).close, Some((Some(3001), "enough".to_owned())));
        let (came, _) = ended(&origin, "/ws/close").await;
        assert_eq!(came, [Message::Close(None)]);

        assert!(ended(&origin, "/ws/drop").await.1.is_err());
        let reset = ended(&origin, "/ws/drop?reset=1").await.1;
        assert!(reset.is_err());

        let (came, end) = ended(&origin, "/ws/count?n=3000&size=4").await;
        assert_eq!((came.len(), &came[2999]), (3001, &Message::text("2999")));
        assert!(end.is_ok());

        let (came, _) = ended(&origin, "/ws/fragments?ping=1").await;
        let texts: Vec<_> = came.iter().filter(|message| message.is_text()).collect();
        assert_eq!(texts, [&Message::text("aaaaabbbbbccccc")]);
        assert_eq!(came.iter().filter(|message| message.is_ping()).count(), 3);

        let (came, _) = ended(&origin, "/ws/ping?n=4").await;
        assert!(came.contains(&Message::text("4 pongs")), "{came:?}");
        assert_eq!(seen(&origin).pongs, [b"0", b"1", b"2", b"3"]);
    });
}

#[test]
fn one_says_nothing_and_one_reads_nothing_for_a_time() {
    let origin = origin();
    block_on(async {
        let (mut socket, _) = open(&origin, "/ws/silent", &[]).await.unwrap();
        socket.send(Message::Ping(b"?"[..].into())).await.unwrap();
        socket.close(None).await.unwrap();
        let got = tokio::time::timeout(std::time::Duration::from_millis(200), socket.next()).await;
        assert!(got.is_err(), "{got:?}");
        drop(socket);

        let (mut socket, _) = open(&origin, "/ws/stuck?n=1&ms=1&hold=50", &[]).await.unwrap();
        assert!(socket.next().await.unwrap().unwrap().is_ping());
        socket.send(Message::text("x".repeat(100))).await.unwrap();
        socket.close(None).await.unwrap();
        while socket.next().await.is_some() {}
    });
    let seen = seen(&origin);
    assert_eq!((seen.messages, seen.pongs.len(), seen.cut), (1, 1, false));
}

#[test]
fn refusals_and_redirects_are_ordinary_answers() {
    let origin = origin();
    block_on(async {
        let refused =
            async |path: &str, fields: &[(&'static str, &str)]| match open(&origin, path, fields)
                .await
            {
                Err(Error::Http(response)) => response,
                other => panic!("{path}: {other:?}"),
            };
        assert_eq!(refused("/ws/refuse", &[]).await.status(), 403);
        let to = refused("/ws/redirect?status=302", &[]).await;
        assert_eq!(
            (to.status().as_u16(), &to.headers()["location"]),
            (302, &"/ws/echo".parse().unwrap())
        );
        let to = refused("/ws/basic/joe/secret", &[]).await;
        assert_eq!(to.status(), 401);
        let joe = [("authorization", "Basic am9lOnNlY3JldA==")];
        let (mut socket, _) = open(&origin, "/ws/basic/joe/secret?headers=1", &joe).await.unwrap();
        let said = socket.next().await.unwrap().unwrap().into_text().unwrap();
        assert!(said.contains("am9lOnNlY3JldA=="), "{said}");
    });
}

/// An open socket in bytes, whose handshake has these fields more.
fn raw(origin: &Origin, path: &str, fields: &str) -> (std::net::TcpStream, String) {
    let mut stream = connect(origin, Port::Http);
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{fields}\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read_head(&mut stream);
    (stream, answer)
}

/// A frame masked with zeros, which leave it as it is.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
}

#[test]
fn what_a_client_must_not_send_is_noted_and_told() {
    let origin = origin();
    for (bytes, what, code) in [
        (b"\x81\x01x".to_vec(), "a frame that is not masked", 1002_u16),
        (masked(0xc1, b"x"), "a reserved bit", 1002),
        (masked(0x83, b"x"), "an unknown opcode", 1002),
        (masked(0x80, b"x"), "a continuation of nothing", 1002),
        (
            [masked(0x01, b"x"), masked(0x81, b"y")].concat(),
            "a new message inside of another",
            1002,
        ),
        (masked(0x09, b"x"), "a control frame in fragments", 1002),
        (
            b"\x89\xfe\x00\x7e\0\0\0\0".iter().copied().chain([7; 126]).collect(),
            "a control frame over 125 bytes",
            1002,
        ),
        (b"\x82\xfe\x00\x01\0\0\0\0x".to_vec(), "a length in more bytes than it needs", 1002),
        (masked(0x81, b"\xff"), "text that is not UTF-8", 1007),
        (masked(0x88, b"\x03"), "a Close of one byte", 1002),
        (masked(0x88, b"\x03\xee"), "a Close with a code that may not be sent", 1002),
    ] {
        let (mut stream, _) = raw(&origin, "/ws/echo", "");
        stream.write_all(&bytes).unwrap();
        let (all, _) = read_all(&mut stream);
        assert_eq!(all, [&[0x88, 2][..], &code.to_be_bytes()].concat(), "{what}");
        assert_eq!(seen(&origin).broken, [what]);
    }
    let (mut stream, _) = raw(&origin, "/ws/echo", "");
    stream.write_all(b"\x81\x85\0\0\0\0hal").unwrap();
    drop(stream);
    eventually("a frame is cut", || seen(&origin).cut);
}

#[test]
fn compression_is_agreed_to_and_kept() {
    let origin = origin();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    let (_, answer) = raw(&origin, "/ws/echo", offer);
    assert!(!answer.contains("extensions"), "{answer}");
    let (mut stream, answer) = raw(&origin, "/ws/echo?deflate=yes", offer);
    assert!(answer.contains("sec-websocket-extensions: permessage-deflate\r\n"), "{answer}");
    // RFC 7692 section 7.2.3.2: the second is made with the context of the first.
    let hello = [
        (&b"\xf2\x48\xcd\xc9\xc9\x07\x00"[..], &b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00"[..]),
        (b"\xf2\x00\x11\x00\x00", b"\xc1\x05\xf2\x00\x11\x00\x00"),
    ];
    for (sent, wanted) in hello {
        stream.write_all(&masked(0xc1, sent)).unwrap();
        let mut got = vec![0; wanted.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, wanted);
    }
    let (mut stream, answer) = raw(&origin, "/ws/echo?deflate=reset", offer);
    assert!(answer.contains("server_no_context_takeover; client_no_context_takeover"), "{answer}");
    for _ in 0..2 {
        stream.write_all(&masked(0xc1, hello[0].0)).unwrap();
        let mut got = [0; 9];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, hello[0].1);
    }
    assert_eq!((seen(&origin).messages, seen(&origin).compressed), (2, 2));
}
