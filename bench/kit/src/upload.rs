//! What streamed uploads are made of.

use std::{
    io::{self, Read},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use http_body::Frame;

use crate::{clock::now, timer::Timer};

/// The size of the pieces of an upload that is not paced.
const PIECE: usize = 64 * 1024;

/// What the pieces are cut from: static, so that they cost neither an allocation nor a count.
static DATA: [u8; PIECE] = [b'm'; PIECE];

/// A request body in pieces of unknown total: a `Stream`, an `http_body::Body` and a `Read`.
///
/// When its upload is paced, a piece comes when it is due, by a timer of nanosecond resolution. It
/// belongs to the tokio runtime of the kit and can be polled from any thread; in a client that blocks,
/// there is no runtime, and the thread sleeps. The first piece is due when it is first asked for.
#[derive(Debug)]
pub struct Pieces {
    source: Source,
    /// What [`Read`] has not handed out of the last piece.
    rest: Bytes,
}

#[derive(Debug)]
enum Source {
    Even { left: u64 },
    Paced(Paced),
}

#[derive(Debug)]
struct Paced {
    left: u32,
    size: usize,
    every: u64,
    next: Next,
    armed: bool,
    pace: Arc<Pace>,
}

/// When the next piece is due, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// When it is asked for: it is the first.
    AtOnce,
    At(u64),
}

/// What the paced uploads of one lane share, one after the other.
#[derive(Debug)]
pub(crate) struct Pace {
    timer: Timer,
    /// When the first piece of the last upload was handed over.
    first: AtomicU64,
}

impl Pace {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { timer: Timer::new()?, first: AtomicU64::new(0) })
    }

    pub(crate) fn first(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }
}

impl Pieces {
    /// `total` bytes in pieces of 64 KiB.
    pub(crate) fn even(total: u64) -> Self {
        Self::new(Source::Even { left: total })
    }

    /// `pieces` pieces of `size` bytes (no fewer than the stamp's 8), one every `every` nanoseconds.
    pub(crate) fn paced(pieces: u32, size: u32, every: u64, pace: Arc<Pace>) -> Self {
        let size = size as usize;
        Self::new(Source::Paced(Paced {
            left: pieces,
            size,
            every,
            next: Next::AtOnce,
            armed: false,
            pace,
        }))
    }

    fn new(source: Source) -> Self {
        Self { source, rest: Bytes::new() }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match &mut self.source {
            Source::Even { left } => Poll::Ready(even(left).map(Ok)),
            Source::Paced(paced) => paced.poll(cx),
        }
    }
}

fn even(left: &mut u64) -> Option<Bytes> {
    let n = usize::try_from(*left).unwrap_or(PIECE).min(PIECE);
    *left -= n as u64;
    (n > 0).then(|| Bytes::from_static(&DATA[..n]))
}

impl Paced {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if let Next::At(due) = self.next
            && let Err(e) = ready!(self.pace.timer.poll_until(cx, due, &mut self.armed))
        {
            return Poll::Ready(Some(Err(e)));
        }
        Poll::Ready(Some(Ok(self.hand_over())))
    }

    fn wait(&mut self) -> io::Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        if let Next::At(due) = self.next {
            self.pace.timer.block_until(due)?;
        }
        Ok(Some(self.hand_over()))
    }

    fn hand_over(&mut self) -> Bytes {
        let mut piece = vec![0; self.size];
        let stamp = now();
        // The job was refused if a piece has no room for its stamp.
        if let Some(room) = piece.first_chunk_mut() {
            *room = stamp.to_le_bytes();
        }
        let due = match self.next {
            Next::AtOnce => {
                self.pace.first.store(stamp, Ordering::Relaxed);
                stamp
            }
            Next::At(due) => due,
        };
        self.next = Next::At(due + self.every);
        self.left -= 1;
        piece.into()
    }
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_piece(cx)
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.poll_piece(cx).map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Even { left } => *left == 0,
            Source::Paced(paced) => paced.left == 0,
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let piece = match &mut self.source {
                Source::Even { left } => even(left),
                Source::Paced(paced) => paced.wait()?,
            };
            self.rest = piece.unwrap_or_default();
        }
        let n = self.rest.len().min(out.len());
        self.rest.split_to(n).copy_to_slice(&mut out[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(pieces: &mut Pieces) -> Option<Bytes> {
        poll_fn(|cx| Pin::new(&mut *pieces).poll_next(cx)).await.map(Result::unwrap)
    }

    fn stamp(piece: &[u8]) -> u64 {
        u64::from_le_bytes(*piece.first_chunk().unwrap())
    }

    #[test]
    fn an_even_upload_is_cut_into_pieces_of_64_kib_and_a_rest() {
        let mut pieces = Pieces::even(2 * 65_536 + 5);
        let lengths = pollster(async {
            let mut lengths = Vec::new();
            while let Some(piece) = next(&mut pieces).await {
                lengths.push(piece.len());
            }
            lengths
        });
        assert_eq!(lengths, [65_536, 65_536, 5]);
    }

    #[test]
    fn reading_gives_every_byte_whatever_the_buffer() {
        for size in [1_usize, 1000, 65_536, 100_000] {
            let (mut pieces, mut buffer, mut total) = (Pieces::even(70_001), vec![0; size], 0);
            loop {
                let n = pieces.read(&mut buffer).unwrap();
                if n == 0 {
                    break;
                }
                assert!(buffer[..n].iter().all(|&b| b == b'm'));
                total += n;
            }
            assert_eq!(total, 70_001);
        }
    }

    #[test]
    fn paced_pieces_come_when_due_and_carry_their_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pace = Arc::new(Pace::new().unwrap());
            let mut pieces = Pieces::paced(4, 100, 2_000_000, pace.clone());
            let began = now();
            let mut stamps = Vec::new();
            while let Some(piece) = next(&mut pieces).await {
                assert_eq!(piece.len(), 100);
                stamps.push(stamp(&piece));
            }
            assert_eq!(stamps.len(), 4);
            assert_eq!(pace.first(), stamps[0]);
            for (i, stamp) in stamps.iter().enumerate() {
                assert!(*stamp >= began + i as u64 * 2_000_000, "piece {i} came early");
            }
        });
    }

    #[test]
    fn without_a_runtime_a_paced_upload_blocks_the_thread() {
        let pace = Arc::new(Pace::new().unwrap());
        let mut pieces = Pieces::paced(3, 8, 1_000_000, pace);
        let mut all = Vec::new();
        pieces.read_to_end(&mut all).unwrap();
        let stamps: Vec<u64> = all.chunks(8).map(stamp).collect();
        assert_eq!(stamps.len(), 3);
        assert!(stamps[1] >= stamps[0] + 1_000_000 && stamps[2] >= stamps[0] + 2_000_000);
    }

    fn pollster<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }
}
