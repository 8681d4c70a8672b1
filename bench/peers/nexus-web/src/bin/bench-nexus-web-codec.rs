//! nexus-web 0.8's codec, by itself.

use std::{hint::black_box, process::ExitCode};

use mimus_bench_kit::{
    Config, PeerError,
    codec::{BATCH, Bench, Codec, KEY, Kind, Row, run_codec},
    locked,
};
use nexus_web::ws::{FrameReader, FrameWriter, Message, Role, apply_mask};

const CONFIGS: &[Config] =
    &[Config { name: "default", about: "FrameReader and FrameWriter as they come" }];

struct Nexus;

fn reader(masked: bool) -> FrameReader {
    let role = if masked { Role::Server } else { Role::Client };
    FrameReader::builder().role(role).build()
}

/// A writer, and room for a frame.
fn writer(masked: bool, size: usize) -> (FrameWriter, Vec<u8>) {
    let writer = FrameWriter::new(if masked { Role::Client } else { Role::Server });
    let room = vec![0; writer.max_encoded_len(size)];
    (writer, room)
}

fn encode(writer: &mut FrameWriter, kind: Kind, payload: &[u8], room: &mut [u8]) -> usize {
    match kind {
        Kind::Text => writer.encode_text(payload, room),
        Kind::Binary => writer.encode_binary(payload, room),
    }
}

fn fill(reader: &mut FrameReader, frames: &[u8]) {
    if let Err(error) = reader.read(frames) {
        panic!("{error}");
    }
}

fn next(reader: &mut FrameReader) -> Message<'_> {
    match reader.next() {
        Ok(Some(message)) => message,
        other => panic!("no message: {other:?}"),
    }
}

impl Codec for Nexus {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        match row {
            Row::Parse { masked, .. } => {
                let mut reader = reader(masked);
                fill(&mut reader, bench.input().frames(1));
                bench.came(next(&mut reader).as_bytes());
                bench.measure(
                    &mut reader,
                    |reader, input, n| fill(reader, input.frames(n)),
                    |reader, _, n| {
                        for _ in 0..n {
                            black_box(next(reader));
                        }
                    },
                )
            }
            Row::Receive { masked, .. } => {
                let mut reader = reader(masked);
                fill(&mut reader, bench.input().frames(1));
                bench.came(next(&mut reader).as_bytes());
                bench.measure(
                    &mut reader,
                    |_, _, _| {},
                    |reader, input, n| {
                        fill(reader, black_box(input.frames(n)));
                        for _ in 0..n {
                            black_box(next(reader));
                        }
                    },
                )
            }
            // One behind the other, as what is sent together has to lie, and as the others do it.
            Row::Encode { kind, size, masked } => {
                let (mut writer, room) = writer(masked, size);
                let mut room = vec![0; BATCH * room.len()];
                let n = encode(&mut writer, kind, &bench.input().payload, &mut room);
                bench.wrote(&room[..n]);
                bench.measure(
                    &mut (writer, room),
                    |_, _, _| {},
                    |(writer, room), input, n| {
                        let mut used = 0;
                        for _ in 0..n {
                            let payload = black_box(&input.payload);
                            used += encode(writer, kind, payload, &mut room[used..]);
                        }
                        black_box(&room[..used]);
                    },
                )
            }
            Row::RoundTrip { kind, size, masked } => {
                let mut state = (writer(masked, size), reader(masked));
                let n = encode(&mut state.0.0, kind, &bench.input().payload, &mut state.0.1);
                fill(&mut state.1, &state.0.1[..n]);
                bench.came(next(&mut state.1).as_bytes());
                bench.measure(
                    &mut state,
                    |_, _, _| {},
                    |((writer, room), reader), input, n| {
                        for _ in 0..n {
                            let used = encode(writer, kind, black_box(&input.payload), room);
                            fill(reader, black_box(&room[..used]));
                            black_box(next(reader));
                        }
                    },
                )
            }
            Row::Mask { .. } => {
                let mut buffer = bench.input().payload.clone();
                apply_mask(&mut buffer, KEY);
                bench.masked(&buffer);
                bench.measure(
                    &mut buffer,
                    |_, _, _| {},
                    |buffer, _, n| {
                        for _ in 0..n {
                            apply_mask(black_box(buffer), black_box(KEY));
                        }
                    },
                )
            }
            // What its reader calls.
            Row::Utf8 { .. } => {
                let good = bench.input().payload.clone();
                let mut bad = good.clone();
                if let Some(last) = bad.last_mut() {
                    *last = 0xff;
                }
                let is_text = |text: &[u8]| simdutf8::basic::from_utf8(text).is_ok();
                bench.told_apart(is_text(&good), is_text(&bad));
                bench.measure(
                    &mut (),
                    |_, _, _| {},
                    |_, input, n| {
                        for _ in 0..n {
                            black_box(is_text(black_box(&input.payload)));
                        }
                    },
                )
            }
            Row::Sse { .. } => Err("it has no event streams".into()),
        }
    }

    fn unsupported(&self, row: Row) -> Option<String> {
        matches!(row, Row::Sse { .. }).then(|| "it has no event streams".to_owned())
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../../Cargo.lock"), "nexus-web");
    run_codec("nexus-web", &version, CONFIGS, |_| Ok(Nexus))
}
