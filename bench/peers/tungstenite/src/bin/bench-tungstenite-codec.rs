//! tungstenite 0.30's codec: its WebSocket over memory, which is the only way to call it.

use std::{
    hint::black_box,
    io::{self, Read, Write},
    process::ExitCode,
};

use mimus_bench_kit::{
    Config, PeerError,
    codec::{Bench, Codec, Kind, Row, run_codec},
    locked,
};
use tungstenite::{
    Bytes, Message, Utf8Bytes, WebSocket,
    protocol::{Role, WebSocketConfig},
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "its settings as they come: a read buffer of 128 KiB" },
    Config { name: "best", about: "a read buffer as large as what comes at a time" },
];

struct Tungstenite {
    best: bool,
}

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

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = (&self.comes[self.at..]).read(into)?;
        self.at += n;
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.goes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Socket = WebSocket<Wire>;

fn next(socket: &mut Socket) -> Message {
    match socket.read() {
        Ok(message @ (Message::Text(_) | Message::Binary(_))) => message,
        other => panic!("no message: {other:?}"),
    }
}

fn payload(message: &Message) -> &[u8] {
    match message {
        Message::Text(text) => text.as_bytes(),
        Message::Binary(bytes) => bytes,
        _ => &[],
    }
}

/// The message, of what its sender has: text, or bytes that are shared.
fn message(kind: Kind, text: &str, bytes: &Bytes) -> Message {
    match kind {
        Kind::Text => Message::text(text),
        Kind::Binary => Message::Binary(bytes.clone()),
    }
}

fn write(socket: &mut Socket, message: Message) {
    if let Err(error) = socket.write(message) {
        panic!("{error}");
    }
}

fn flush(socket: &mut Socket) {
    if let Err(error) = socket.flush() {
        panic!("{error}");
    }
}

impl Tungstenite {
    /// The reading end; `room` is what comes at a time.
    fn reader(&self, masked: bool, room: usize) -> Socket {
        let config = match self.best {
            true => WebSocketConfig::default().read_buffer_size(room),
            false => WebSocketConfig::default(),
        };
        let role = if masked { Role::Server } else { Role::Client };
        WebSocket::from_raw_socket(Wire::default(), role, Some(config))
    }

    fn writer(masked: bool) -> Socket {
        let role = if masked { Role::Client } else { Role::Server };
        WebSocket::from_raw_socket(Wire::default(), role, None)
    }

    fn receive(&self, masked: bool, bench: &mut Bench) -> Result<(), PeerError> {
        let mut socket = self.reader(masked, bench.input().frames.len());
        socket.get_mut().put(bench.input().frames(1));
        bench.came(payload(&next(&mut socket)));
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

    /// Its buffer cannot be filled: each batch is that of a new socket, made beforehand.
    fn parse(masked: bool, bench: &mut Bench) -> Result<(), PeerError> {
        let role = if masked { Role::Server } else { Role::Client };
        let holding = |frames: &[u8]| {
            WebSocket::from_partially_read(Wire::default(), frames.to_vec(), role, None)
        };
        let mut socket = holding(bench.input().frames(1));
        bench.came(payload(&next(&mut socket)));
        bench.measure(
            &mut socket,
            |socket, input, n| *socket = holding(input.frames(n)),
            |socket, _, n| {
                for _ in 0..n {
                    black_box(next(socket));
                }
            },
        )
    }

    fn encode(kind: Kind, masked: bool, bench: &mut Bench) -> Result<(), PeerError> {
        let (text, bytes) = (bench.input().text().to_owned(), bench.input().payload.clone());
        let bytes = Bytes::from(bytes);
        let mut socket = Self::writer(masked);
        write(&mut socket, message(kind, &text, &bytes));
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
                    write(socket, message(kind, black_box(&text), black_box(&bytes)));
                }
            },
        )
    }

    fn round_trip(&self, kind: Kind, masked: bool, bench: &mut Bench) -> Result<(), PeerError> {
        let (text, bytes) = (bench.input().text().to_owned(), bench.input().payload.clone());
        let bytes = Bytes::from(bytes);
        let mut ends = (Self::writer(masked), self.reader(masked, bench.input().frame));
        let once = |(writer, reader): &mut (Socket, Socket)| {
            write(writer, message(kind, black_box(&text), black_box(&bytes)));
            flush(writer);
            let (from, to) = (writer.get_mut(), reader.get_mut());
            to.comes.clear();
            to.at = 0;
            std::mem::swap(&mut from.goes, &mut to.comes);
            next(reader)
        };
        let came = once(&mut ends);
        bench.came(payload(&came));
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

    fn utf8(bench: &mut Bench) -> Result<(), PeerError> {
        let good = Bytes::from(bench.input().payload.clone());
        let mut bad = bench.input().payload.clone();
        if let Some(last) = bad.last_mut() {
            *last = 0xff;
        }
        bench.told_apart(
            Utf8Bytes::try_from(good.clone()).is_ok(),
            Utf8Bytes::try_from(Bytes::from(bad)).is_ok(),
        );
        let mut bytes = good;
        bench.measure(
            &mut bytes,
            |_, _, _| {},
            |bytes, _, n| {
                for _ in 0..n {
                    match Utf8Bytes::try_from(black_box(std::mem::take(bytes))) {
                        Ok(text) => *bytes = text.into(),
                        Err(_) => panic!("it is text"),
                    }
                }
            },
        )
    }
}

impl Codec for Tungstenite {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        match row {
            Row::Parse { masked, .. } => Self::parse(masked, bench),
            Row::Receive { masked, .. } => self.receive(masked, bench),
            Row::Encode { kind, masked, .. } => Self::encode(kind, masked, bench),
            Row::RoundTrip { kind, masked, .. } => self.round_trip(kind, masked, bench),
            Row::Utf8 { .. } => Self::utf8(bench),
            Row::Mask { .. } | Row::Sse { .. } => Err("it has none to call".into()),
        }
    }

    fn unsupported(&self, row: Row) -> Option<String> {
        match row {
            Row::Mask { .. } => Some("its masking cannot be called".to_owned()),
            Row::Sse { .. } => Some("it has no event streams".to_owned()),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../../Cargo.lock"), "tungstenite");
    run_codec("tungstenite", &version, CONFIGS, |setup| {
        Ok(Tungstenite { best: setup.config == "best" })
    })
}
