//! A connection after it stopped being HTTP.

use std::{
    fmt, io,
    io::IoSlice,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use mimus_net::{Socket, Wait};

use crate::ConnectionInfo;

/// A byte stream in both directions, by which the next protocol goes: what `101 Switching Protocols`
/// or a CONNECT gives. Over HTTP/2 it is one stream of a connection (RFC 8441): closing it is
/// END_STREAM, which ends what is written and not what is read, a reset by the server is
/// [`io::ErrorKind::ConnectionReset`], and writing waits while the server's windows are closed.
///
/// Dropping it closes the connection, or resets the stream with CANCEL.
///
/// It is a `futures_io::AsyncRead` and `AsyncWrite`, and tokio's with the feature `tokio`. It has no
/// deadline of its own until [`set_deadline`](Self::set_deadline).
pub struct Upgraded {
    socket: Box<dyn Socket>,
    /// What the server sent right behind its head.
    ahead: BytesMut,
    info: Arc<ConnectionInfo>,
}

/// Room offered to each read of the socket.
const READ: usize = 16 * 1024;

impl Upgraded {
    pub(crate) fn new(
        mut socket: Box<dyn Socket>,
        info: Arc<ConnectionInfo>,
        ahead: Bytes,
    ) -> Self {
        socket.set_deadline(None);
        Upgraded { socket, ahead: BytesMut::from(ahead), info }
    }

    /// The connection's particulars.
    pub fn connection(&self) -> &ConnectionInfo {
        &self.info
    }

    /// From now on, pending operations fail at `at` with [`io::ErrorKind::TimedOut`].
    pub fn set_deadline(&mut self, at: Option<std::time::Instant>) {
        self.socket.set_deadline(at);
    }

    /// Reads what has come into `out`; 0 is the end.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut [u8],
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        if self.ahead.is_empty() {
            self.ahead.reserve(READ);
            ready!(self.socket.poll_read(cx, &mut self.ahead, wait))?;
        }
        let n = self.ahead.len().min(out.len());
        self.ahead.copy_to_slice(&mut out[..n]);
        Poll::Ready(Ok(n))
    }

    /// The stream and what was read ahead of it.
    pub fn into_parts(self) -> (Box<dyn Socket>, BytesMut) {
        (self.socket, self.ahead)
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl futures_io::AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Upgraded::poll_read(&mut self, cx, out, Wait::Beside)
    }
}

impl futures_io::AsyncWrite for Upgraded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_close(cx)
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n =
            ready!(Upgraded::poll_read(&mut self, cx, out.initialize_unfilled(), Wait::Beside))?;
        out.advance(n);
        Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncWrite for Upgraded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        futures_io::AsyncWrite::poll_write(self, cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        futures_io::AsyncWrite::poll_write_vectored(self, cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        futures_io::AsyncWrite::poll_flush(self, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        futures_io::AsyncWrite::poll_close(self, cx)
    }
}
