//! Event streams, piece by piece.

use std::{collections::VecDeque, hint::black_box};

use bytes::Bytes;
use mimus_bench_kit::{
    PeerError,
    codec::{BATCH, Bench, Input},
};
use mimus_proto::sse::{EventRef, Limits, Parser};

/// A parser, and what came and is not read yet.
struct Stream {
    parser: Parser,
    pieces: VecDeque<Bytes>,
}

impl Stream {
    fn put(&mut self, input: &Input, n: usize, together: usize) {
        self.pieces.extend(input.pieces(n, together).into_iter().map(Bytes::copy_from_slice));
    }

    /// Hands the next event to `take`; false when there is none, or it breaks a limit.
    fn next(&mut self, take: impl FnOnce(EventRef<'_>)) -> bool {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => {
                    take(event);
                    return true;
                }
                Ok(None) => match self.pieces.pop_front() {
                    Some(piece) => self.parser.push(piece),
                    None => return false,
                },
                Err(_) => return false,
            }
        }
    }
}

/// Events whose type and data are looked at.
pub(crate) fn parse(together: usize, bench: &mut Bench) -> Result<(), PeerError> {
    let mut stream = Stream { parser: Parser::new(Limits::default()), pieces: VecDeque::new() };
    stream.put(bench.input(), BATCH, together);
    let mut all = Vec::new();
    while stream.next(|event| all.push((event.event().into_owned(), event.data().into_owned()))) {}
    bench.events(all.iter().map(|(name, data)| (name.as_str(), data.as_str())));
    bench.measure(
        &mut stream,
        |stream, input, n| stream.put(input, n, together),
        |stream, _, n| {
            for _ in 0..n {
                let came = stream.next(|event| {
                    black_box((event.event(), event.data()));
                });
                assert!(came, "no event");
            }
        },
    )
}
