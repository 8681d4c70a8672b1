//! The responder against another's client, and against one that asks for too much.

use bytes::Bytes;
use http::StatusCode;
use mimus_proto::Fields;
use mimus_proto::fingerprint::{Frame, Http2Error, Http2Responder, MAX_OPEN};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

fn drain(responder: &mut Http2Responder) -> Result<Vec<Frame>, Http2Error> {
    let mut frames = Vec::new();
    while let Some(frame) = responder.poll_frame()? {
        frames.push(frame);
    }
    Ok(frames)
}

/// A connection whose SETTINGS are these, past its opening.
fn opened(settings: &[u8]) -> Http2Responder {
    let mut responder = Http2Responder::new();
    responder.recv(PREFACE);
    responder.recv(&frame(4, 0, 0, settings));
    assert_eq!(drain(&mut responder).map(|frames| frames.len()), Ok(1));
    let out = responder.take_output();
    assert_eq!(out[out.len() - 9..], frame(4, 1, 0, &[]));
    responder
}

/// The kind, the flags and the length of each frame.
fn kinds(mut out: &[u8]) -> Vec<(u8, u8, usize)> {
    let mut kinds = Vec::new();
    while let [_, a, b, kind, flags, ..] = *out {
        let len = usize::from(u16::from_be_bytes([a, b]));
        kinds.push((kind, flags, len));
        out = &out[9 + len..];
    }
    kinds
}

#[test]
fn a_body_goes_out_as_the_windows_open() {
    // SETTINGS_INITIAL_WINDOW_SIZE of 10.
    let mut responder = opened(&[0, 4, 0, 0, 0, 10]);
    responder.recv(&frame(1, 5, 1, &[0x82]));
    drain(&mut responder).expect("a request");
    responder.respond(1, StatusCode::OK, &Fields::new(), Bytes::from(vec![7; 25]));
    assert_eq!(kinds(&responder.take_output())[1..], [(0, 0, 10)]);
    responder.recv(&frame(8, 0, 1, &[0, 0, 0, 5]));
    drain(&mut responder).expect("a window");
    assert_eq!(kinds(&responder.take_output()), [(0, 0, 5)]);
    // The window of streams that are open grows with the setting.
    responder.recv(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 20]));
    drain(&mut responder).expect("settings");
    assert_eq!(kinds(&responder.take_output()), [(4, 1, 0), (0, 1, 10)]);
    // An answered stream is not answered again.
    responder.respond(1, StatusCode::OK, &Fields::new(), Bytes::new());
    assert!(responder.take_output().is_empty());
}

#[test]
fn pings_and_data_are_answered() {
    let mut responder = opened(&[]);
    responder.recv(&frame(6, 0, 0, b"birdbird"));
    responder.recv(&frame(1, 4, 1, &[0x83]));
    responder.recv(&frame(0, 0, 1, b"chirp"));
    responder.recv(&frame(0, 1, 1, b"chirp"));
    drain(&mut responder).expect("frames");
    let out = responder.take_output();
    assert_eq!(kinds(&out), [(6, 1, 8), (8, 0, 4), (8, 0, 4), (8, 0, 4)]);
    assert_eq!(out[9..17], *b"birdbird");
}

#[test]
fn a_request_is_given_once_when_it_is_whole() {
    let mut responder = opened(&[]);
    responder.recv(&frame(1, 4, 1, &[0x83, 0x84]));
    responder.recv(&frame(1, 5, 3, &[0x82, 0x84]));
    drain(&mut responder).expect("two requests");
    assert_eq!(responder.poll_request().map(|request| request.stream), Some(3));
    assert_eq!(responder.poll_request(), None);
    responder.recv(&frame(0, 1, 1, b""));
    responder.recv(&frame(0, 1, 1, b""));
    drain(&mut responder).expect("an end, twice");
    let request = responder.poll_request().expect("a request");
    assert_eq!(
        (request.stream, &request.method[..], &request.path[..]),
        (1, &b"POST"[..], &b"/"[..])
    );
    assert_eq!(responder.poll_request(), None);
    // One that is reset before it is taken is none.
    responder.recv(&frame(1, 5, 5, &[0x82]));
    responder.recv(&frame(3, 0, 5, &[0; 4]));
    drain(&mut responder).expect("a reset");
    assert_eq!(responder.poll_request(), None);
}

#[test]
fn streams_without_end_are_refused() {
    let mut responder = opened(&[]);
    for stream in 0..MAX_OPEN as u32 {
        responder.recv(&frame(1, 5, 2 * stream + 1, &[0x82]));
    }
    assert!(drain(&mut responder).is_ok());
    responder.recv(&frame(3, 0, 1, &[0; 4]));
    responder.recv(&frame(1, 5, 1001, &[0x82]));
    assert!(drain(&mut responder).is_ok(), "one was reset");
    responder.recv(&frame(1, 5, 1003, &[0x82]));
    assert_eq!(drain(&mut responder), Err(Http2Error::TooManyStreams));
    assert_eq!(drain(&mut responder), Err(Http2Error::TooManyStreams));
}

/// Serves one connection until it closes.
async fn serve(mut socket: tokio::io::DuplexStream, body: Bytes) {
    let mut responder = Http2Responder::new();
    let fields = Fields::try_from([("X-Bird", "wren")]).expect("fields");
    let mut buf = [0; 1024];
    loop {
        socket.write_all(&responder.take_output()).await.expect("a peer that reads");
        let n = socket.read(&mut buf).await.expect("a peer");
        if n == 0 {
            return;
        }
        responder.recv(&buf[..n]);
        drain(&mut responder).expect("frames of h2");
        while let Some(request) = responder.poll_request() {
            assert_eq!((&request.method[..], &request.path[..]), (&b"POST"[..], &b"/bird"[..]));
            responder.respond(request.stream, StatusCode::OK, &fields, body.clone());
        }
    }
}

#[test]
fn the_client_of_h2_is_served() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let body = Bytes::from(vec![b'x'; 300_000]);
        let (ours, theirs) = tokio::io::duplex(4096);
        let served = tokio::spawn(serve(theirs, body.clone()));
        let (mut client, connection) = h2::client::handshake(ours).await.expect("h2");
        let connection = tokio::spawn(connection);
        for _ in 0..3 {
            let request = http::Request::post("https://a.test/bird").body(()).expect("a request");
            let (answer, mut sending) = client.send_request(request, false).expect("sent");
            sending.send_data(Bytes::from(vec![7; 1000]), false).expect("data");
            sending.send_data(Bytes::new(), true).expect("the end");
            let answer = answer.await.expect("an answer");
            assert_eq!(answer.headers()["x-bird"], "wren");
            let mut incoming = answer.into_body();
            let mut read = 0;
            while let Some(piece) = incoming.data().await {
                let piece = piece.expect("data");
                read += piece.len();
                incoming.flow_control().release_capacity(piece.len()).expect("credit");
            }
            assert_eq!(read, body.len());
        }
        drop(client);
        connection.await.expect("no panic").expect("a clean end");
        served.await.expect("no panic");
    });
}
