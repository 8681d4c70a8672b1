//! A socket that first gives back what was read too early.

use std::{
    any::Any,
    io::{self, IoSlice},
    net::SocketAddr,
    task::{Context, Poll},
    time::Instant,
};

use bytes::{Buf as _, Bytes, BytesMut};

use crate::{Socket, Wait, rt::Probe, tls::TlsInfo};

/// A socket with bytes in front of it: what the target said together with the proxy's answer.
#[derive(Debug)]
pub struct Prefixed {
    prefix: Bytes,
    inner: Box<dyn Socket>,
}

impl Prefixed {
    /// `inner` with `prefix` to be read first; `inner` itself when there is none.
    #[expect(clippy::new_ret_no_self, reason = "without a prefix there is nothing to wrap")]
    pub fn new(prefix: Bytes, inner: Box<dyn Socket>) -> Box<dyn Socket> {
        if prefix.is_empty() { inner } else { Box::new(Prefixed { prefix, inner }) }
    }
}

impl Socket for Prefixed {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        if self.prefix.is_empty() {
            return self.inner.poll_read(cx, buf, wait);
        }
        let n = self.prefix.len().min(buf.capacity() - buf.len());
        if n == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        buf.extend_from_slice(&self.prefix[..n]);
        self.prefix.advance(n);
        Poll::Ready(Ok(n))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_write(cx, bufs)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_close(cx)
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.inner.set_deadline(at);
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        !self.prefix.is_empty() || self.inner.is_stale(probe)
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.inner.peer_addr()
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.inner.local_addr()
    }

    fn tls(&self) -> Option<&TlsInfo> {
        self.inner.tls()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
