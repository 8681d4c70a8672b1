//! A look at what a client sends, frame by frame, under whichever server reads it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frame::{HEAD, Head, PREFACE, kind};
use crate::conn::About;
use crate::io::Io;
use crate::record::SeenH2;

/// How much of a connection's begin is kept, in bytes.
const OPENING: usize = 16 * 1024;
/// How much of a payload the counters need: the error code of a GOAWAY ends at 8.
const ENOUGH: usize = 8;
/// The most resets that are told apart.
const MAX_RESETS: usize = 100_000;

/// A byte stream whose frames from the client are counted as they pass.
pub(crate) struct Tap {
    io: Box<dyn Io>,
    about: Arc<About>,
    scan: Scan,
}

impl Tap {
    pub(crate) fn new(io: Box<dyn Io>, about: Arc<About>) -> Self {
        Self { io, about, scan: Scan::default() }
    }

    fn count(&mut self, bytes: &[u8]) {
        let scan = &mut self.scan;
        self.about.shared.recorder.update(self.about.id, |conn| {
            scan.take(bytes, conn.h2.get_or_insert_default());
        });
    }
}

/// Where in the stream of frames the next byte stands.
struct Scan {
    /// How much of the client's preface is still to come.
    preface: usize,
    /// A frame's head and the begin of its payload, as far as they came.
    begin: Vec<u8>,
    /// How much of the payload is passed over.
    skip: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self { preface: PREFACE.len(), begin: Vec::with_capacity(HEAD + ENOUGH), skip: 0 }
    }
}

impl Scan {
    fn take(&mut self, bytes: &[u8], seen: &mut SeenH2) {
        let room = OPENING.saturating_sub(seen.opening.len()).min(bytes.len());
        seen.opening.extend_from_slice(&bytes[..room]);
        let mut rest = bytes;
        while !rest.is_empty() {
            let passed = (self.preface + self.skip).min(rest.len());
            if passed > 0 {
                // One of the two is 0: payloads come behind the preface.
                self.preface = self.preface.saturating_sub(passed);
                self.skip = self.skip.saturating_sub(passed);
                rest = &rest[passed..];
                continue;
            }
            self.begin.push(rest[0]);
            rest = &rest[1..];
            let Some(head) = self.begin.first_chunk::<HEAD>().map(Head::parse) else {
                continue;
            };
            let wanted = HEAD + head.len.min(ENOUGH);
            if self.begin.len() == wanted {
                self.skip = head.len + HEAD - wanted;
                note(head, &self.begin[HEAD..], seen);
                self.begin.clear();
            }
        }
    }
}

fn note(head: Head, payload: &[u8], seen: &mut SeenH2) {
    *seen.frames.entry(head.kind).or_default() += 1;
    let number = |at: usize| {
        payload.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
    };
    match head.kind {
        kind::HEADERS if head.stream > seen.last_stream => {
            seen.last_stream = head.stream;
            seen.streams += 1;
        }
        kind::RST_STREAM if seen.resets.len() < MAX_RESETS => {
            seen.resets.push((head.stream, number(0)));
        }
        kind::GOAWAY => seen.go_away = Some(number(4)),
        _ => {}
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut *self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.count(&buf.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl Io for Tap {
    fn reset_on_close(&self) {
        self.io.reset_on_close();
    }

    fn finish_below_tls(&self) -> io::Result<()> {
        self.io.finish_below_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::*;

    #[test]
    fn any_split_counts_the_same() {
        let mut bytes = PREFACE.to_vec();
        bytes.extend(frame::settings(&[(4, 1), (3, 2)]));
        bytes.extend(frame::headers(1, [0x82], true));
        bytes.extend(frame::headers(3, [0x82; 100], false));
        bytes.extend(frame::data(3, [7; 50], true));
        bytes.extend(frame::reset(1, 8));
        bytes.extend(frame::headers(3, [], true));
        bytes.extend(frame::go_away(0, 11, b"enough"));
        bytes.extend(frame::ping(1));
        for size in 1..bytes.len() {
            let (mut scan, mut seen) = (Scan::default(), SeenH2::default());
            bytes.chunks(size).for_each(|piece| scan.take(piece, &mut seen));
            assert_eq!((seen.streams, seen.last_stream, seen.go_away), (2, 3, Some(11)));
            assert_eq!(seen.resets, [(1, 8)]);
            assert_eq!(seen.count(kind::HEADERS), 3);
            assert_eq!(seen.count(kind::PING), 1);
            assert_eq!(seen.opening, bytes);
        }
    }
}
