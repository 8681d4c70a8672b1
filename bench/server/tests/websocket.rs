//! The echo, over plain sockets and TLS, by a client that shares no code with the server.

#![expect(clippy::unwrap_used, reason = "a test")]

mod raw;

use raw::{Client, Server};

const MASK: [u8; 4] = [1, 0x80, 0xff, 7];

/// A frame, masked or as a server sends it.
fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let mut frame = match payload.len() {
        length @ ..126 => vec![first, bit | length as u8],
        length @ ..65_536 => [&[first, bit | 126][..], &(length as u16).to_be_bytes()].concat(),
        length => [&[first, bit | 127][..], &(length as u64).to_be_bytes()].concat(),
    };
    let key = mask.unwrap_or_default();
    frame.extend(mask.into_iter().flatten());
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

fn open(client: &mut Client, path: &str, more: &str) -> (u16, String) {
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    ));
    client.head()
}

fn payload(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 7 + at / 256) as u8).collect()
}

#[test]
fn messages_of_every_size_come_back() {
    let server = Server::start();
    for mut client in server.both() {
        let (status, fields) = open(&mut client, "/ws", "");
        assert_eq!(status, 101);
        assert!(
            fields.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\n"),
            "{fields}"
        );
        for size in [0, 1, 7, 125, 126, 128, 1000, 65_535, 65_536, 1 << 20, 5_000_001] {
            for first in [0x81, 0x82, 0x01, 0xc1] {
                client.send(frame(first, &payload(size), Some(MASK)));
                let due = frame(first, &payload(size), None);
                assert!(client.read(due.len()) == due, "{size} {first:x}");
            }
        }
    }
}

#[test]
fn frames_may_be_cut_and_joined_anywhere() {
    let server = Server::start();
    for mut client in server.both() {
        assert_eq!(open(&mut client, "/ws", "").0, 101);
        let sizes = [3, 0, 130, 40];
        let wire: Vec<u8> =
            sizes.iter().flat_map(|size| frame(0x82, &payload(*size), Some(MASK))).collect();
        let due: Vec<u8> =
            sizes.iter().flat_map(|size| frame(0x82, &payload(*size), None)).collect();
        for cut in 1..wire.len() {
            client.send(&wire[..cut]);
            client.send(&wire[cut..]);
            assert_eq!(client.read(due.len()), due, "{cut}");
        }
        client.send(wire.repeat(1000));
        assert!(client.read(due.len() * 1000) == due.repeat(1000));
    }
}

#[test]
fn frames_may_come_with_the_handshake() {
    let server = Server::start();
    for mut client in server.both() {
        let mut all = b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: x\r\n\r\n"
            .to_vec();
        all.extend(frame(0x81, b"early", Some(MASK)));
        client.send(all);
        assert_eq!(client.head().0, 101);
        assert_eq!(client.read(7), frame(0x81, b"early", None));
    }
}

#[test]
fn control_frames_are_answered() {
    let server = Server::start();
    for mut client in server.both() {
        assert_eq!(open(&mut client, "/ws", "").0, 101);
        client.send(frame(0x8a, b"nobody asked", Some(MASK)));
        client.send(frame(0x89, b"there?", Some(MASK)));
        assert_eq!(client.read(8), frame(0x8a, b"there?", None));
        client
            .send([frame(0x88, &[3, 232], Some(MASK)), frame(0x81, b"late", Some(MASK))].concat());
        assert_eq!(client.read(4), frame(0x88, &[3, 232], None));
        assert!(client.is_closed());
    }
}

#[test]
fn what_is_not_masked_or_too_large_ends_it() {
    let server = Server::start();
    for wrong in [frame(0x81, b"naked", None), [&[0x82, 0xff][..], &[0xff; 12]].concat()] {
        let mut client = server.plain();
        assert_eq!(open(&mut client, "/ws", "").0, 101);
        client.send(wrong);
        assert!(client.is_closed());
    }
}

#[test]
fn the_path_says_whether_there_is_deflate() {
    let server = Server::start();
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    for (path, more, status, agreed) in [
        ("/ws", offer, 101, false),
        ("/ws-deflate", offer, 101, true),
        ("/ws-deflate", "", 400, false),
    ] {
        let mut client = server.plain();
        let (found, fields) = open(&mut client, path, more);
        assert_eq!((found, fields.contains("permessage-deflate")), (status, agreed), "{path}");
    }
    let mut client = server.plain();
    assert_eq!(client.get("/ws").status, 400);
}
