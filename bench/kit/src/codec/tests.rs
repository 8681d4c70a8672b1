use std::hint::black_box;

use super::*;
use crate::{Deliver, Upload};

fn job(url: &str, ops: u64) -> Job {
    Job {
        url: url.to_owned(),
        ops,
        in_flight: 1,
        upload: Upload::None,
        deliver: Deliver::Bytes,
        body: 0,
        cold: false,
        rate: None,
        warm_up: 1,
    }
}

/// Unmasks, byte by byte; says what it is told to of what came of it.
struct Plain(fn(&mut Bench));

impl Codec for Plain {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        (self.0)(bench);
        let mut buffer = Vec::new();
        bench.measure(
            &mut buffer,
            |buffer, input, _| buffer.clone_from(&input.payload),
            |buffer, _, n| {
                for _ in 0..n {
                    let masked: Vec<u8> = rows::masked_by(buffer, KEY).collect();
                    buffer.copy_from_slice(&masked);
                    black_box(&buffer);
                }
            },
        )?;
        assert_eq!(row, Row::Mask { size: 100 });
        Ok(())
    }

    fn unsupported(&self, row: Row) -> Option<String> {
        (!matches!(row, Row::Mask { .. })).then(|| "it masks".to_owned())
    }
}

fn right(bench: &mut Bench) {
    let masked: Vec<u8> = rows::masked_by(&bench.input().payload, KEY).collect();
    bench.masked(&masked);
}

#[test]
fn batches_add_up_to_the_operations_asked_for() {
    let Answer::Sample(sample) = Measured(Plain(right)).answer(&job("mask/100", 150)) else {
        panic!("it is supported");
    };
    assert_eq!(sample.failures, []);
    assert_eq!((sample.ops, sample.bytes, sample.latency.len()), (150, 15_000, 3));
    assert!(sample.wall > 0);
}

#[test]
fn what_is_wrong_or_unchecked_fails() {
    let says = |check: fn(&mut Bench)| {
        let Answer::Sample(sample) = Measured(Plain(check)).answer(&job("mask/100", 10)) else {
            panic!("it is supported");
        };
        sample.failures[0].0.clone()
    };
    assert!(says(|_| {}).contains("nothing was checked"));
    assert!(says(|bench| bench.masked(b"abc")).contains("not masked"));
    let once_wrong = says(|bench| {
        bench.masked(b"abc");
        right(bench);
    });
    assert!(once_wrong.contains("not masked"));
}

#[test]
fn rows_are_read_and_others_refused() {
    let text = Row::Parse { kind: Kind::Text, size: 128, masked: true };
    assert_eq!("parse/text/128/masked".parse(), Ok(text));
    assert_eq!("sse/64".parse(), Ok(Row::Sse { together: 64 }));
    for wrong in ["", "parse", "parse/text", "parse/x/1", "mask/x", "parse/text/1/naked", "sing/1"]
    {
        assert!(wrong.parse::<Row>().is_err(), "{wrong}");
    }
    let answer = Measured(Plain(right)).answer(&job("utf8/100", 1));
    assert_eq!(answer, Answer::Unsupported("it masks".into()));
}

#[test]
fn a_frame_that_was_encoded_is_read_back() {
    for (size, masked) in [(0, false), (125, true), (126, false), (128, true), (70_000, true)] {
        let row = Row::Encode { kind: Kind::Text, size, masked };
        let mut bench = Bench::new(row, 1).expect("it fits");
        let frame = bench.input().frames(1).to_vec();
        bench.wrote(&frame);
        assert!(bench.measure(&mut (), |_, _, _| {}, |_, _, _| {}).is_ok(), "{size}");
        for place in [0, 1, frame.len() - 1] {
            let mut wrong = frame.clone();
            wrong[place] ^= 1;
            let mut bench = Bench::new(row, 1).expect("it fits");
            bench.wrote(&wrong);
            assert!(bench.measure(&mut (), |_, _, _| {}, |_, _, _| {}).is_err(), "{size} {place}");
        }
    }
}

#[test]
fn pieces_of_events_are_whole_events() {
    let input = Input::of(Row::Sse { together: 3 });
    let pieces = input.pieces(7, 3);
    assert_eq!(pieces.len(), 3);
    assert!(pieces.iter().all(|piece| piece.ends_with(b"\n\n")));
    assert_eq!(input.pieces(BATCH, 1).concat(), input.payload);
}
