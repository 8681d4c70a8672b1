//! What one header block costs: ours against `loona-hpack` and `httlib-hpack`.
//!
//! ```text
//! cargo run --release -p mimus-proto --example hpack
//! valgrind --tool=callgrind --toggle-collect='*measured*' .../examples/hpack encode-again ours 1000
//! ```

#![allow(clippy::print_stdout)] // Its output is its purpose.

use std::hint::black_box;
use std::time::Instant;

use mimus_proto::h2::hpack::{Decoder, Encoder, Error, Huffman, Indexing};

type List = &'static [(&'static str, &'static str)];

/// What a browser sends.
const BROWSER: List = &[
    (":method", "GET"),
    (":authority", "www.example.com"),
    (":scheme", "https"),
    (":path", "/articles/2026/11/mockingbirds?page=2"),
    ("sec-ch-ua", "\"Chromium\";v=\"146\", \"Not-A.Brand\";v=\"24\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("upgrade-insecure-requests", "1"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/146.0.0.0 Safari/537.36",
    ),
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    ),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9"),
];

/// What a plain client sends.
const PLAIN: List = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.com"),
    (":path", "/"),
    ("user-agent", "mimus/0.1.0"),
    ("accept", "*/*"),
];

const RESPONSE: List = &[
    (":status", "200"),
    ("date", "Fri, 20 Nov 2026 18:00:00 GMT"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", "48213"),
    ("etag", "W/\"5f2b8c1d9e3a4f60718293a4b5c6d7e8\""),
    ("cache-control", "max-age=0, private, must-revalidate"),
    ("vary", "Accept-Encoding"),
    ("server", "origin/1.0"),
];

const JOBS: [&str; 6] = [
    "plain-again",
    "encode-first",
    "encode-again",
    "encode-literal",
    "decode-first",
    "decode-again",
];
const CODERS: [&str; 3] = ["ours", "loona", "httlib"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(job) = arguments.next() else {
        return report();
    };
    let coder = arguments.next().unwrap_or_default();
    let rounds = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1000);
    black_box(run(&job, &coder, rounds));
}

fn report() {
    for job in JOBS {
        for coder in CODERS {
            // Filling a new table each time is left out of the time as far as possible: few rounds.
            let rounds = 2000;
            run(job, coder, rounds);
            let times = (0..25).map(|_| {
                let start = Instant::now();
                run(job, coder, rounds);
                start.elapsed().as_nanos() / rounds as u128
            });
            println!("{job}, {coder}: {} ns", times.min().unwrap_or_default());
        }
    }
}

fn run(job: &str, coder: &str, rounds: usize) -> usize {
    let (list, how) = match job {
        "plain-again" => (PLAIN, Indexing::Incremental),
        "encode-literal" => (BROWSER, Indexing::Without),
        "decode-first" | "decode-again" => (RESPONSE, Indexing::Incremental),
        _ => (BROWSER, Indexing::Incremental),
    };
    let first = job.ends_with("first");
    match (job.starts_with("decode"), coder) {
        (false, "loona") => encode_loona(list, first, rounds),
        (false, "httlib") => encode_httlib(list, how, first, rounds),
        (false, _) => encode_ours(list, how, first, rounds),
        (true, "loona") => decode_loona(list, first, rounds),
        (true, "httlib") => decode_httlib(list, first, rounds),
        (true, _) => decode_ours(list, first, rounds),
    }
}

fn encode_ours(list: List, how: Indexing, first: bool, rounds: usize) -> usize {
    let (mut encoder, mut out) = (Encoder::new(4096), Vec::with_capacity(4096));
    measured_encode(&mut encoder, list, how, &mut out);
    (0..rounds)
        .map(|_| {
            if first {
                encoder = Encoder::new(4096);
            }
            out.clear();
            measured_encode(&mut encoder, black_box(list), how, &mut out);
            out.len()
        })
        .sum()
}

#[inline(never)]
fn measured_encode(encoder: &mut Encoder, list: List, how: Indexing, out: &mut Vec<u8>) {
    encoder.begin(out);
    for (name, value) in list {
        encoder.field(name.as_bytes(), value.as_bytes(), how, Huffman::Shorter, out);
    }
}

fn encode_loona(list: List, first: bool, rounds: usize) -> usize {
    let (mut encoder, mut out) = (loona_hpack::Encoder::new(), Vec::with_capacity(4096));
    (0..=rounds)
        .map(|_| {
            if first {
                encoder = loona_hpack::Encoder::new();
            }
            out.clear();
            measured_encode_loona(&mut encoder, black_box(list), &mut out);
            out.len()
        })
        .sum()
}

#[inline(never)]
fn measured_encode_loona(encoder: &mut loona_hpack::Encoder<'_>, list: List, out: &mut Vec<u8>) {
    let pairs = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    assert!(encoder.encode_into(pairs, out).is_ok());
}

fn encode_httlib(list: List, how: Indexing, first: bool, rounds: usize) -> usize {
    let (mut encoder, mut out) = (httlib_hpack::Encoder::default(), Vec::with_capacity(4096));
    let flags = if how == Indexing::Incremental { 0x17 } else { 0x13 };
    (0..=rounds)
        .map(|_| {
            if first {
                encoder = httlib_hpack::Encoder::default();
            }
            out.clear();
            measured_encode_httlib(&mut encoder, black_box(list), flags, &mut out);
            out.len()
        })
        .sum()
}

#[inline(never)]
fn measured_encode_httlib(
    encoder: &mut httlib_hpack::Encoder<'_>,
    list: List,
    flags: u8,
    out: &mut Vec<u8>,
) {
    for (name, value) in list {
        let field = (name.as_bytes().to_vec(), value.as_bytes().to_vec(), flags);
        assert!(encoder.encode(field, out).is_ok());
    }
}

/// The first block of a connection, and the one for the same list behind it.
fn blocks(list: List) -> [Vec<u8>; 2] {
    let mut encoder = Encoder::new(4096);
    [(); 2].map(|()| {
        let mut out = Vec::new();
        measured_encode(&mut encoder, list, Indexing::Incremental, &mut out);
        out
    })
}

fn decode_ours(list: List, first: bool, rounds: usize) -> usize {
    let [one, again] = blocks(list);
    let mut decoder = Decoder::new(4096);
    let mut sum = decode_one(&mut decoder, &one);
    for _ in 0..rounds {
        if first {
            decoder = Decoder::new(4096);
        }
        sum += measured_decode(&mut decoder, black_box(if first { &one } else { &again }));
    }
    sum
}

/// Outside of what is counted.
fn decode_one(decoder: &mut Decoder, block: &[u8]) -> usize {
    let mut sum = 0;
    let decoded = decoder.decode(block, |name, value| {
        sum += name.len() + value.len();
        Ok::<(), Error>(())
    });
    assert!(decoded.is_ok());
    sum
}

#[inline(never)]
fn measured_decode(decoder: &mut Decoder, block: &[u8]) -> usize {
    decode_one(decoder, block)
}

fn decode_loona(list: List, first: bool, rounds: usize) -> usize {
    let [one, again] = blocks(list);
    let mut decoder = loona_hpack::Decoder::new();
    assert!(decoder.decode(&one).is_ok());
    let mut sum = 0;
    for _ in 0..rounds {
        if first {
            decoder = loona_hpack::Decoder::new();
        }
        sum += measured_decode_loona(&mut decoder, black_box(if first { &one } else { &again }));
    }
    sum
}

#[inline(never)]
fn measured_decode_loona(decoder: &mut loona_hpack::Decoder<'_>, block: &[u8]) -> usize {
    let mut sum = 0;
    let decoded = decoder.decode_with_cb(block, |name, value| sum += name.len() + value.len());
    assert!(decoded.is_ok());
    sum
}

fn decode_httlib(list: List, first: bool, rounds: usize) -> usize {
    let [one, again] = blocks(list);
    let mut decoder = httlib_hpack::Decoder::default();
    assert!(decoder.decode(&mut one.clone(), &mut Vec::new()).is_ok());
    let mut sum = 0;
    for _ in 0..rounds {
        if first {
            decoder = httlib_hpack::Decoder::default();
        }
        let mut block = if first { one.clone() } else { again.clone() };
        sum += measured_decode_httlib(&mut decoder, &mut block);
    }
    sum
}

#[inline(never)]
fn measured_decode_httlib(decoder: &mut httlib_hpack::Decoder<'_>, block: &mut Vec<u8>) -> usize {
    let mut fields = Vec::new();
    assert!(decoder.decode(block, &mut fields).is_ok());
    fields.iter().map(|(name, value, _)| name.len() + value.len()).sum()
}
