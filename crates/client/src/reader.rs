//! The body of a response as a byte stream of the standard kinds.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};

use crate::{Error, Incoming, Kind};

/// The body of a response as a `futures_io::AsyncRead` and `AsyncBufRead`, and as tokio's with the
/// feature `tokio`. Made by [`Incoming::into_async_read`].
///
/// A failure is an [`io::Error`] around the [`Error`].
#[derive(Debug)]
pub struct BodyReader {
    body: Incoming,
    piece: Bytes,
}

impl BodyReader {
    pub(crate) fn new(body: Incoming) -> Self {
        BodyReader { body, piece: Bytes::new() }
    }

    /// The body behind it.
    pub fn get_ref(&self) -> &Incoming {
        &self.body
    }

    /// What is here of the last piece.
    pub(crate) fn here(&self) -> &[u8] {
        &self.piece
    }

    /// Makes sure that something is here, but for the end.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.piece.is_empty()
            && let Some(piece) = ready!(self.body.poll_data(cx)).transpose().map_err(into_io)?
        {
            self.piece = piece;
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.piece.advance(n);
    }

    fn poll_copy(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_fill(cx))?;
        let n = self.piece.len().min(out.len());
        out[..n].copy_from_slice(&self.piece[..n]);
        self.advance(n);
        Poll::Ready(Ok(n))
    }
}

impl futures_io::AsyncRead for BodyReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_copy(cx, out)
    }
}

impl futures_io::AsyncBufRead for BodyReader {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let reader = self.get_mut();
        ready!(reader.poll_fill(cx))?;
        Poll::Ready(Ok(reader.here()))
    }

    fn consume(mut self: Pin<&mut Self>, n: usize) {
        self.advance(n);
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncRead for BodyReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_fill(cx))?;
        let n = self.piece.len().min(out.remaining());
        out.put_slice(&self.piece[..n]);
        self.advance(n);
        Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncBufRead for BodyReader {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let reader = self.get_mut();
        ready!(reader.poll_fill(cx))?;
        Poll::Ready(Ok(reader.here()))
    }

    fn consume(mut self: Pin<&mut Self>, n: usize) {
        self.advance(n);
    }
}

/// Keeps the error reachable as the source of the [`io::Error`].
fn into_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        Kind::Timeout => io::ErrorKind::TimedOut,
        Kind::Closed => io::ErrorKind::UnexpectedEof,
        Kind::Decode | Kind::Protocol => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
