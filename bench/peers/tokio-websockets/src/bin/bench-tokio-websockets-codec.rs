//! tokio-websockets 0.13's codec: its stream over memory, which is the only way to call it.

use std::{
    hint::black_box,
    io,
    pin::Pin,
    process::ExitCode,
    task::{Context, Poll, Waker},
};

use futures_util::{SinkExt, StreamExt};
use mimus_bench_kit::{
    Config, PeerError,
    codec::{Bench, Codec, Kind, Row, run_codec},
    locked,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_websockets::{ClientBuilder, Message, ServerBuilder, WebSocketStream};

const CONFIGS: &[Config] = &[Config { name: "default", about: "WebSocketStream as it comes" }];

struct TokioWebsockets;

/// A wire in memory: what was put there is read, and what is written is put aside.
#[derive(Default)]
struct Wire {
    comes: Vec<u8>,
    at: usize,
    goes: Vec<u8>,
}

impl Wire {
    fn put(&mut self, bytes: &[u8]) {
        self.comes.clear();
        self.comes.extend_from_slice(bytes);
        self.at = 0;
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = into.remaining().min(self.comes.len() - self.at);
        into.put_slice(&self.comes[self.at..self.at + n]);
        self.at += n;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.goes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

type Socket = WebSocketStream<Wire>;

fn reader(masked: bool) -> Socket {
    if masked { server() } else { client() }
}

fn writer(masked: bool) -> Socket {
    if masked { client() } else { server() }
}

fn client() -> Socket {
    ClientBuilder::new().take_over(Wire::default())
}

fn server() -> Socket {
    ServerBuilder::new().serve(Wire::default())
}

fn next(socket: &mut Socket) -> Message {
    match socket.poll_next_unpin(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Ok(message))) if message.is_text() || message.is_binary() => message,
        other => panic!("no message: {other:?}"),
    }
}

/// What its sender has: text, or bytes that are shared.
fn send(socket: &mut Socket, message: Message) {
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(())) = socket.poll_ready_unpin(&mut cx) else { panic!("it is not ready") };
    if let Err(error) = socket.start_send_unpin(message) {
        panic!("{error}");
    }
}

fn flush(socket: &mut Socket) {
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(())) = socket.poll_flush_unpin(&mut cx) else { panic!("it is not sent") };
}

fn message(kind: Kind, payload: &bytes::Bytes, text: &str) -> Message {
    match kind {
        Kind::Text => Message::text(text.to_owned()),
        Kind::Binary => Message::binary(payload.clone()),
    }
}

impl Codec for TokioWebsockets {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        let text = bench.input().text().to_owned();
        let bytes = bytes::Bytes::from(bench.input().payload.clone());
        match row {
            Row::Receive { masked, .. } => {
                let mut socket = reader(masked);
                socket.get_mut().put(bench.input().frames(1));
                bench.came(next(&mut socket).as_payload());
                bench.measure(
                    &mut socket,
                    |socket, input, n| socket.get_mut().put(input.frames(n)),
                    |socket, _, n| {
                        for _ in 0..n {
                            black_box(next(socket));
                        }
                    },
                )
            }
            Row::Encode { kind, masked, .. } => {
                let mut socket = writer(masked);
                send(&mut socket, message(kind, &bytes, &text));
                flush(&mut socket);
                bench.wrote(&socket.get_ref().goes);
                bench.measure(
                    &mut socket,
                    |socket, _, _| {
                        flush(socket);
                        socket.get_mut().goes.clear();
                    },
                    |socket, _, n| {
                        for _ in 0..n {
                            send(socket, message(kind, black_box(&bytes), black_box(&text)));
                        }
                    },
                )
            }
            Row::RoundTrip { kind, masked, .. } => {
                let mut ends = (writer(masked), reader(masked));
                let once = |(writer, reader): &mut (Socket, Socket)| {
                    send(writer, message(kind, black_box(&bytes), black_box(&text)));
                    flush(writer);
                    let (from, to) = (writer.get_mut(), reader.get_mut());
                    to.comes.clear();
                    to.at = 0;
                    std::mem::swap(&mut from.goes, &mut to.comes);
                    next(reader)
                };
                let came = once(&mut ends);
                bench.came(came.as_payload());
                bench.measure(
                    &mut ends,
                    |_, _, _| {},
                    |ends, _, n| {
                        for _ in 0..n {
                            black_box(once(ends));
                        }
                    },
                )
            }
            _ => Err("it has none to call".into()),
        }
    }

    fn unsupported(&self, row: Row) -> Option<String> {
        match row {
            Row::Receive { .. } | Row::Encode { .. } | Row::RoundTrip { .. } => None,
            Row::Parse { .. } => Some("it reads as much as it likes by itself".to_owned()),
            Row::Mask { .. } => Some("its masking cannot be called".to_owned()),
            Row::Utf8 { .. } => Some("its check cannot be called".to_owned()),
            Row::Sse { .. } => Some("it has no event streams".to_owned()),
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../../Cargo.lock"), "tokio-websockets");
    run_codec("tokio-websockets", &version, CONFIGS, |_| Ok(TokioWebsockets))
}
