//! How far a transfer has come.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;

/// How far one body's transfer has come, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes transferred so far.
    pub transferred: u64,
    /// Bytes there are in all, where that is known.
    pub total: Option<u64>,
}

/// What is told about progress: called on the thread that drives the transfer, once a piece, so it
/// should be quick.
pub type Observer = Arc<dyn Fn(Progress) + Send + Sync>;

/// Counts bytes and tells an [`Observer`].
#[derive(Clone)]
pub struct Meter {
    observer: Observer,
    progress: Progress,
}

impl Meter {
    /// A meter at zero of `total` bytes.
    #[must_use]
    pub fn new(observer: Observer, total: Option<u64>) -> Self {
        let progress = Progress { transferred: 0, total };
        Self { observer, progress }
    }

    /// Counts `bytes` more and tells the observer.
    pub fn add(&mut self, bytes: usize) {
        self.progress.transferred += bytes as u64;
        (self.observer)(self.progress);
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The same meter at zero.
    pub(super) fn restarted(&self) -> Self {
        Self::new(Arc::clone(&self.observer), self.progress.total)
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.progress.fmt(f)
    }
}

/// A stream of pieces that tells an observer about each piece that passes.
#[derive(Debug)]
pub struct Observed<S> {
    stream: S,
    meter: Meter,
}

impl<S> Observed<S> {
    /// Observes `stream`, of `total` bytes where that is known.
    pub fn new(stream: S, observer: Observer, total: Option<u64>) -> Self {
        Self { stream, meter: Meter::new(observer, total) }
    }
}

impl<S, E> Stream for Observed<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Bytes, E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(Pin::new(&mut self.stream).poll_next(cx));
        if let Some(Ok(piece)) = &item {
            self.meter.add(piece.len());
        }
        Poll::Ready(item)
    }
}
