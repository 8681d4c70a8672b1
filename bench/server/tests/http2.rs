//! Every route over HTTP/2, by the `h2` crate, and what breaks the rules, by raw frames.

#![expect(clippy::unwrap_used, reason = "a test")]

mod raw;

use std::io::{Read, Write};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::{HeaderMap, Method, Request};
use raw::{Server, now};
use tokio::net::TcpStream;

const MS: u64 = 1_000_000;

/// What came back.
struct Answer {
    status: u16,
    fields: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

async fn connect(server: &Server, builder: &Builder) -> SendRequest<Bytes> {
    let socket = TcpStream::connect(server.h2c).await.unwrap();
    let (sender, connection) = builder.handshake(socket).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap() });
    sender.ready().await.unwrap()
}

/// Makes a request whose body comes in `parts`, each a DATA frame or more.
async fn exchange(
    sender: &mut SendRequest<Bytes>,
    method: Method,
    path: &str,
    parts: &[Bytes],
) -> Answer {
    let request =
        Request::builder().method(method).uri(format!("http://localhost{path}")).body(()).unwrap();
    *sender = sender.clone().ready().await.unwrap();
    let (response, mut body) = sender.send_request(request, parts.is_empty()).unwrap();
    for (number, part) in parts.iter().enumerate() {
        body.send_data(part.clone(), number + 1 == parts.len()).unwrap();
    }
    let (head, mut stream) = response.await.unwrap().into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len()).unwrap();
    }
    let trailers = stream.trailers().await.unwrap();
    Answer { status: head.status.as_u16(), fields: head.headers, body, trailers }
}

async fn get(sender: &mut SendRequest<Bytes>, path: &str) -> Answer {
    exchange(sender, Method::GET, path, &[]).await
}

#[tokio::test]
async fn bodies_of_every_size_through_windows_of_every_size() {
    let server = Server::start();
    for (window, frame) in [(1, 16_384), (1000, 16_384), (65_535, 20_000), (1 << 30, 1 << 20)] {
        let mut builder = Builder::new();
        builder.initial_window_size(window).max_frame_size(frame);
        let mut sender = connect(&server, &builder).await;
        let most = if window == 1 { 100 } else { usize::MAX };
        for size in [0, 1, 64, 4096, 4097, 16_384, 65_536, 1_000_003] {
            let size = size.min(most);
            let known = get(&mut sender, &format!("/b/{size}")).await;
            assert_eq!((known.status, known.body.len()), (200, size));
            assert_eq!(known.fields["content-length"], size.to_string());
            let streamed = get(&mut sender, &format!("/c/{size}")).await;
            assert_eq!((streamed.status, streamed.body.len()), (200, size));
            assert!(!streamed.fields.contains_key("content-length"));
        }
    }
}

#[tokio::test]
async fn a_client_that_makes_room_at_any_time_gets_the_rest() {
    let server = Server::start();
    let mut builder = Builder::new();
    builder.initial_window_size(16 << 20).initial_connection_window_size(16 << 20);
    let mut sender = connect(&server, &builder).await;
    for _ in 0..50 {
        let body = get(&mut sender, "/b/4000000");
        let body = tokio::time::timeout(std::time::Duration::from_secs(20), body).await.unwrap();
        assert_eq!(body.body.len(), 4_000_000);
    }
}

#[tokio::test]
async fn many_streams_share_the_connection() {
    let server = Server::start();
    let sender = connect(&server, &Builder::new()).await;
    let tasks: Vec<_> = (0..300)
        .map(|number| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                let size = [64, 5000, 100_000][number % 3];
                get(&mut sender, &format!("/b/{size}")).await.body.len() == size
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap());
    }
}

#[tokio::test]
async fn uploads_are_taken_and_credit_is_given_back() {
    let server = Server::start();
    let mut sender = connect(&server, &Builder::new()).await;
    for size in [1, 65_536, 40 << 20] {
        let body = [Bytes::from(vec![b'x'; size])];
        let answer = exchange(&mut sender, Method::POST, "/up", &body).await;
        assert_eq!((answer.status, answer.body), (200, b"ok".to_vec()));
    }
}

#[tokio::test]
async fn a_message_comes_back_with_its_status() {
    let server = Server::start();
    let mut sender = connect(&server, &Builder::new()).await;
    for size in [0, 5, 3000, 100_000] {
        let mut message = vec![0];
        message.extend_from_slice(&u32::to_be_bytes(size));
        message.resize(5 + size as usize, b'y');
        let parts = [Bytes::copy_from_slice(&message[..3]), Bytes::copy_from_slice(&message[3..])];
        let answer = exchange(&mut sender, Method::POST, "/bench.Echo/Unary", &parts).await;
        assert_eq!((answer.status, answer.body), (200, message));
        assert_eq!(answer.fields["content-type"], "application/grpc");
        assert_eq!(answer.trailers.unwrap()["grpc-status"], "0");
    }
    let cut = [Bytes::from_static(b"\0\0\0\0\x02a")];
    let answer = exchange(&mut sender, Method::POST, "/bench.Echo/Unary", &cut).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn paced_answers_are_stamped_and_spaced_while_others_go_on() {
    let server = Server::start();
    let sender = connect(&server, &Builder::new()).await;
    let paced = |sender: SendRequest<Bytes>| async move {
        let mut sender = sender;
        let asked = now();
        let answer = get(&mut sender, "/paced/8/16384/2000000").await;
        let stamps: Vec<u64> = answer
            .body
            .chunks(16_384)
            .map(|piece| u64::from_le_bytes(*piece.first_chunk().unwrap()))
            .collect();
        assert_eq!((stamps.len(), answer.body.len()), (8, 8 * 16_384));
        assert!(stamps[0] >= asked && stamps.is_sorted());
        for (number, stamp) in stamps.iter().enumerate() {
            assert!(stamp + MS / 100 >= asked + number as u64 * 2 * MS, "{number}");
        }
    };
    let tasks = [0, 1, 2].map(|_| tokio::spawn(paced(sender.clone())));
    let mut other = sender.clone();
    for _ in 0..100 {
        assert_eq!(get(&mut other, "/b/64").await.body.len(), 64);
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_paced_upload_is_told_its_delays() {
    let server = Server::start();
    let mut sender = connect(&server, &Builder::new()).await;
    let mut piece = now().to_le_bytes().to_vec();
    piece.resize(20_000, 0);
    let parts = [Bytes::copy_from_slice(&piece[..7]), Bytes::copy_from_slice(&piece[7..])];
    let answer = exchange(&mut sender, Method::POST, "/paced?size=20000", &parts).await;
    let delays: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let delays = delays["delay"].as_array().unwrap();
    assert_eq!(delays.len(), 1);
    assert!(delays[0].as_u64().unwrap() < 1000 * MS);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let server = Server::start();
    let mut sender = connect(&server, &Builder::new()).await;
    assert_eq!(get(&mut sender, "/nowhere").await.status, 404);
    assert_eq!(get(&mut sender, "/b/x").await.status, 400);
    assert_eq!(get(&mut sender, "/b/3").await.body.len(), 3);
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Frames until the connection's end, or until one of that kind.
fn read_until(socket: &mut impl Read, kind: u8) -> Option<Vec<u8>> {
    loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head).ok()?;
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        socket.read_exact(&mut payload).ok()?;
        if head[3] == kind {
            return Some(payload);
        }
    }
}

#[test]
fn over_tls_only_h2_is_agreed_on_and_a_head_may_come_in_pieces() {
    let server = Server::start();
    let mut tls = server.h2();
    assert_eq!(tls.ssl().selected_alpn_protocol(), Some(&b"h2"[..]));
    tls.write_all(PREFACE).unwrap();
    // GET, http, a path of five bytes: in HEADERS with padding and priority, and two CONTINUATION.
    let padded = [&[2, 0, 0, 0, 0, 9, 0x82, 0x86, 0x04][..], b"\0\0"].concat();
    let wire = [
        frame(1, 0x20 | 0x8 | 0x1, 1, &padded),
        frame(9, 0, 1, b"\x05/b/"),
        frame(9, 0x4, 1, b"10"),
        frame(6, 0, 0, b"pingpong"),
    ];
    for byte in wire.concat() {
        tls.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_until(&mut tls, 0).unwrap().len(), 10);
    assert_eq!(read_until(&mut tls, 6).unwrap(), b"pingpong");
}

#[test]
fn who_breaks_the_rules_is_told_to_go() {
    let server = Server::start();
    let data = frame(0, 0, 1, b"x");
    for (wire, code) in [
        (b"GET /b/1 HTTP/1.1\r\n\r\n".to_vec(), 1),
        ([PREFACE, &data].concat(), 1),
        ([PREFACE, &frame(8, 0, 0, &[0; 4])].concat(), 1),
        ([PREFACE, &frame(8, 0, 0, &[0x7f, 255, 255, 255])].concat(), 3),
        ([PREFACE, &frame(6, 0, 0, b"short")].concat(), 6),
        ([PREFACE, &frame(1, 0x5, 1, &[0xff, 255, 255, 255, 127])].concat(), 9),
        ([PREFACE, &frame(1, 0x1, 1, &[0x82]), &data].concat(), 1),
    ] {
        let mut socket = server.connect(server.h2c);
        socket.write_all(&wire).unwrap();
        let told = read_until(&mut socket, 7).unwrap();
        assert_eq!(told[4..], u32::to_be_bytes(code), "{wire:?}");
        assert!(matches!(socket.read(&mut [0]), Ok(0) | Err(_)));
    }
}
