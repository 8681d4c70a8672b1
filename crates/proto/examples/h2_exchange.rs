//! What an HTTP/2 exchange costs the machine: a small GET, alone and a hundred at a time.
//!
//! ```text
//! cargo run --release -p mimus-proto --example h2_exchange
//! valgrind --tool=callgrind --toggle-collect='*measured*' .../examples/h2_exchange alone 1000
//! valgrind --tool=callgrind --toggle-collect='*measured*' .../examples/h2_exchange hundred 1000
//! ```
//!
//! The connection is warm: fields that can be are in both tables. A request has six fields beside
//! the pseudo-fields, a response four and a body of 13 bytes. Writing is a copy of nothing: the slices
//! are looked at and counted as written.

#![allow(clippy::print_stdout)] // Its output is its purpose.

use std::hint::black_box;
use std::io::IoSlice;
use std::time::Instant;

use http::Method;
use mimus_proto::h2::hpack::{Encoder, Huffman, Indexing};
use mimus_proto::h2::{Client, Code, Limits, Opening, RequestLine, Stream};
use mimus_proto::{Event, Fields};

const BODY: &[u8] = b"Hello, world!";

/// The server's side, just enough of it.
struct Server {
    encoder: Encoder,
    wire: Vec<u8>,
}

impl Server {
    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.wire.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        self.wire.extend_from_slice(&[kind, flags]);
        self.wire.extend_from_slice(&stream.to_be_bytes());
        self.wire.extend_from_slice(payload);
    }

    fn respond(&mut self, stream: u32) {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in [
            (":status", "200"),
            ("date", "Fri, 20 Nov 2026 18:00:00 GMT"),
            ("content-type", "text/plain; charset=utf-8"),
            ("server", "origin/1.0"),
            ("content-length", "13"),
        ] {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder.field(name, value, Indexing::Incremental, Huffman::Shorter, &mut block);
        }
        self.frame(1, 4, stream, &block);
        self.frame(0, 1, stream, BODY);
    }
}

struct Bench {
    client: Client,
    server: Server,
    fields: Fields,
    now: Instant,
    next: u32,
    streams: Vec<Stream>,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let mut client = Client::new(&Opening::default(), Limits::default(), now);
        let mut server = Server { encoder: Encoder::new(4096), wire: Vec::new() };
        server.frame(4, 0, 0, &[]);
        server.frame(4, 1, 0, &[]);
        client.recv(&server.wire);
        assert!(client.process(now).is_ok());
        client.recv_buf().reserve(64 * 1024);
        let fields = Fields::try_from([
            ("User-Agent", "mimus/0.1"),
            ("Accept", "*/*"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
            ("Accept-Language", "en-GB,en;q=0.9"),
            ("Cache-Control", "no-cache"),
            ("X-Request-Kind", "benchmark"),
        ]);
        let fields = fields.unwrap_or_default();
        Self { client, server, fields, now, next: 1, streams: Vec::new() }
    }

    /// So many requests at a time, answered in one read.
    fn round(&mut self, width: u32) -> usize {
        measured_requests(self, width);
        self.server.wire.clear();
        for _ in 0..width {
            self.server.respond(self.next);
            self.next += 2;
        }
        // The socket writes into the buffer itself.
        self.client.recv(&self.server.wire);
        measured_responses(self)
    }
}

/// Opens the streams, and writes.
#[inline(never)]
fn measured_requests(bench: &mut Bench, width: u32) {
    for _ in 0..width {
        let stream = bench.client.open(&RequestLine {
            method: &Method::GET,
            scheme: "http",
            authority: "127.0.0.1:8080",
            path: black_box("/small"),
            protocol: None,
            fields: &bench.fields,
            end: true,
            weight: None,
        });
        bench.streams.extend(stream);
    }
    while bench.client.has_output() {
        let mut slices = [IoSlice::new(&[]); 16];
        let filled = bench.client.poll_transmit(&mut slices);
        let count = slices[..filled].iter().map(|slice| slice.len()).sum();
        bench.client.transmitted(black_box(count));
    }
}

/// Reads, wakes, takes each response to its end, and gives the streams up.
#[inline(never)]
fn measured_responses(bench: &mut Bench) -> usize {
    assert!(bench.client.process(bench.now).is_ok());
    black_box(bench.client.poll_timeout(bench.now));
    let mut bytes = 0;
    while let Some(stream) = bench.client.next_stirred() {
        while let Ok(Some(event)) = bench.client.poll_event(stream) {
            match event {
                Event::Head(head) => bytes += black_box(head).fields.len(),
                Event::Data(data) => bytes += black_box(data).len(),
                _ => break,
            }
        }
        bench.client.reset(stream, Code::NO_ERROR);
    }
    bench.streams.clear();
    bytes
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut bench = Bench::new();
    let Some(what) = arguments.next() else {
        return report(&mut bench);
    };
    let width = if what == "alone" { 1 } else { 100 };
    let rounds: u32 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1000);
    let bytes: usize = (0..rounds).map(|_| bench.round(width)).sum();
    assert_eq!(bytes, (rounds * width) as usize * (BODY.len() + 4));
}

fn report(bench: &mut Bench) {
    for (what, width, rounds) in [("alone", 1, 100_000), ("a hundred", 100, 1000)] {
        let times = (0..15).map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                black_box(bench.round(width));
            }
            start.elapsed().as_nanos() / u128::from(rounds * width)
        });
        println!("{what}: {} ns a request, the server's part included", times.min().unwrap_or(0));
    }
}
