//! fastwebsockets 0.10's codec: its WebSocket over memory, its frames, its masking.

use std::{
    hint::black_box,
    io,
    pin::{Pin, pin},
    process::ExitCode,
    task::{Context, Poll, Waker},
};

use fastwebsockets::{Frame, OpCode, Payload, Role, WebSocket, unmask};
use mimus_bench_kit::{
    Config, PeerError,
    codec::{Bench, Codec, KEY, Kind, Row, run_codec},
    locked,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CONFIGS: &[Config] =
    &[Config { name: "default", about: "WebSocket::read_frame and Frame::write as they come" }];

struct Fast;

/// A wire in memory, to read from.
#[derive(Default)]
struct Wire {
    comes: Vec<u8>,
    at: usize,
}

impl Wire {
    fn put(&mut self, bytes: &[u8]) {
        self.comes.clear();
        self.comes.extend_from_slice(bytes);
        self.at = 0;
    }
}

/// The wire is reached through the socket's stream, which cannot be: it is shared.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Wire>>);

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Wire) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl AsyncRead for Shared {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|wire| {
            let n = into.remaining().min(wire.comes.len() - wire.at);
            into.put_slice(&wire.comes[wire.at..wire.at + n]);
            wire.at += n;
        });
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Shared {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn next(socket: &mut WebSocket<Shared>) -> Frame<'static> {
    let frame = pin!(socket.read_frame()).poll(&mut Context::from_waker(Waker::noop()));
    match frame {
        Poll::Ready(Ok(frame)) if matches!(frame.opcode, OpCode::Text | OpCode::Binary) => frame,
        _ => panic!("no message"),
    }
}

/// A frame in `buffer`, which it makes as large as it has to be.
fn encode<'a>(kind: Kind, masked: bool, payload: &[u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    let payload = Payload::Borrowed(payload);
    let mut frame = match kind {
        Kind::Text => Frame::text(payload),
        Kind::Binary => Frame::binary(payload),
    };
    if masked {
        frame.mask();
    }
    frame.write(buffer)
}

impl Codec for Fast {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        match row {
            Row::Receive { masked, .. } => {
                let wire = Shared::default();
                let role = if masked { Role::Server } else { Role::Client };
                let mut socket = WebSocket::after_handshake(wire.clone(), role);
                wire.with(|wire| wire.put(bench.input().frames(1)));
                bench.came(&next(&mut socket).payload);
                bench.measure(
                    &mut socket,
                    |_, input, n| wire.with(|wire| wire.put(input.frames(n))),
                    |socket, _, n| {
                        for _ in 0..n {
                            black_box(next(socket));
                        }
                    },
                )
            }
            Row::Encode { kind, masked, .. } => {
                let mut buffer = Vec::new();
                let payload = bench.input().payload.clone();
                bench.wrote(encode(kind, masked, &payload, &mut buffer));
                bench.measure(
                    &mut buffer,
                    |_, _, _| {},
                    |buffer, input, n| {
                        for _ in 0..n {
                            black_box(encode(kind, masked, black_box(&input.payload), buffer));
                        }
                    },
                )
            }
            Row::Mask { .. } => {
                let mut buffer = bench.input().payload.clone();
                unmask(&mut buffer, KEY);
                bench.masked(&buffer);
                bench.measure(
                    &mut buffer,
                    |_, _, _| {},
                    |buffer, _, n| {
                        for _ in 0..n {
                            unmask(black_box(buffer), black_box(KEY));
                        }
                    },
                )
            }
            _ => Err("it has none to call".into()),
        }
    }

    fn unsupported(&self, row: Row) -> Option<String> {
        match row {
            Row::Receive { .. } | Row::Encode { .. } | Row::Mask { .. } => None,
            Row::Parse { .. } => Some("it reads as much as it likes by itself".to_owned()),
            Row::RoundTrip { .. } => Some("its ends meet in a socket only".to_owned()),
            Row::Utf8 { .. } => Some("its check cannot be called".to_owned()),
            Row::Sse { .. } => Some("it has no event streams".to_owned()),
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../../Cargo.lock"), "fastwebsockets");
    run_codec("fastwebsockets", &version, CONFIGS, |_| Ok(Fast))
}
