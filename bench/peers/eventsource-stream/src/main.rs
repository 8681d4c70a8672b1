//! eventsource-stream 0.2: event streams as reqwest's users read them.

use std::{
    cell::RefCell,
    collections::VecDeque,
    convert::Infallible,
    hint::black_box,
    pin::Pin,
    process::ExitCode,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use eventsource_stream::{Event, EventStream, Eventsource};
use futures_util::{Stream, StreamExt};
use mimus_bench_kit::{
    Config, PeerError,
    codec::{BATCH, Bench, Codec, Input, Row, run_codec},
    locked,
};

const CONFIGS: &[Config] =
    &[Config { name: "default", about: "a stream of Bytes, through eventsource()" }];

struct Events;

/// What came and is not read yet.
#[derive(Clone, Default)]
struct Pieces(Rc<RefCell<VecDeque<Bytes>>>);

impl Pieces {
    fn put(&self, input: &Input, n: usize, together: usize) {
        let pieces = input.pieces(n, together);
        self.0.borrow_mut().extend(pieces.into_iter().map(Bytes::copy_from_slice));
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.borrow_mut().pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None => Poll::Pending,
        }
    }
}

fn next(stream: &mut EventStream<Pieces>) -> Event {
    match stream.poll_next_unpin(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Ok(event))) => event,
        _ => panic!("no event"),
    }
}

impl Codec for Events {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        let Row::Sse { together } = row else { return Err("it reads event streams".into()) };
        let pieces = Pieces::default();
        let mut stream = pieces.clone().eventsource();
        pieces.put(bench.input(), BATCH, together);
        let all: Vec<Event> = (0..BATCH).map(|_| next(&mut stream)).collect();
        bench.events(all.iter().map(|event| (event.event.as_str(), event.data.as_str())));
        bench.measure(
            &mut stream,
            |_, input, n| pieces.put(input, n, together),
            |stream, _, n| {
                for _ in 0..n {
                    black_box(next(stream));
                }
            },
        )
    }

    fn unsupported(&self, row: Row) -> Option<String> {
        (!matches!(row, Row::Sse { .. })).then(|| "it reads event streams only".to_owned())
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "eventsource-stream");
    run_codec("eventsource-stream", &version, CONFIGS, |_| Ok(Events))
}
