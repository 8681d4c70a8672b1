//! One connection: its bytes in, its bytes out, and the ways it can end.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead as _, AsyncReadExt, AsyncWrite as _, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use crate::io::Io;
use crate::origin::Shared;
use crate::port::Port;
use crate::record::SeenTls;

/// How much the first read asks for: thousands of idle connections must stay cheap.
pub(crate) const FIRST_READ: usize = 4 * 1024;
/// How much a read asks for at most, once reads come back full.
const LARGEST_READ: usize = 64 * 1024;
/// How much is kept of what comes in while an answer waits.
const MAX_WAITING: usize = 1 << 20;
/// How long a polite close waits for the client's own FIN.
const LINGER: Duration = Duration::from_secs(2);

/// How a connection goes on after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may come; what is left of this one's body is read first.
    Keep,
    /// FIN, then wait a little for the client to finish too (RFC 9112 section 9.6).
    Close,
    /// `close(2)` at once: an RST follows by itself when unread bytes are waiting.
    Drop,
    /// RST, whatever was read.
    Reset,
}

/// What does not change while a connection lasts.
pub(crate) struct About {
    pub(crate) id: u64,
    pub(crate) port: Port,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) tls: Option<SeenTls>,
    pub(crate) shared: Arc<Shared>,
}

impl About {
    /// The scheme of a request that came on it.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// A connection that was accepted, and is being served.
pub(crate) struct Conn {
    pub(crate) io: Box<dyn Io>,
    /// Bytes that were read and belong to nobody yet.
    pub(crate) inbox: BytesMut,
    /// How much the next read asks for.
    pub(crate) room: usize,
    pub(crate) about: Arc<About>,
    /// What an earlier request on this connection asked to happen to it.
    pub(crate) fate: Fate,
}

/// How a connection is to end without announcing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// As HTTP has it.
    Ordinary,
    /// FIN once this many further requests were answered and `idle` has passed.
    CloseAfter { requests: u32, idle: Duration },
    /// The next request is read and not answered.
    CloseOnNext { reset: bool, read_body: bool },
}

impl Conn {
    /// Reads more into the inbox; 0 is the client's FIN.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.inbox.reserve(self.room);
        let len = self.io.read_buf(&mut self.inbox).await?;
        if len >= self.room {
            self.room = (self.room * 4).min(LARGEST_READ);
        }
        Ok(len)
    }

    /// Gives memory back before a wait that can be long.
    pub(crate) fn settle(&mut self) {
        self.room = FIRST_READ;
        if self.inbox.is_empty() {
            self.inbox = BytesMut::new();
        }
    }

    /// Returns when the client has gone. What it sends meanwhile is kept for later.
    pub(crate) async fn until_gone(&mut self) {
        while self.inbox.len() < MAX_WAITING {
            if !matches!(self.fill().await, Ok(1..)) {
                return;
            }
        }
        // It sends more than can be kept: nothing is read, so its leaving stays unseen.
        std::future::pending::<()>().await;
    }

    /// Reads until the inbox holds `len` bytes, and takes them.
    pub(crate) async fn take(&mut self, len: usize) -> io::Result<Bytes> {
        while self.inbox.len() < len {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.inbox.split_to(len).freeze())
    }

    /// Takes what the inbox holds, at most `max` bytes, reading when it is empty.
    pub(crate) async fn take_some(&mut self, max: u64) -> io::Result<Bytes> {
        if self.inbox.is_empty() && self.fill().await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(max).unwrap_or(usize::MAX).min(self.inbox.len());
        Ok(self.inbox.split_to(len).freeze())
    }

    /// Takes the bytes up to `end`, which is dropped; at most `max` of them.
    pub(crate) async fn take_until(&mut self, end: &[u8], max: usize) -> io::Result<Bytes> {
        let mut from = 0;
        loop {
            let found = self.inbox[from..].windows(end.len()).position(|bytes| bytes == end);
            if let Some(at) = found {
                let taken = self.inbox.split_to(from + at).freeze();
                self.inbox.advance(end.len());
                return Ok(taken);
            }
            from = (self.inbox.len() + 1).saturating_sub(end.len());
            if from > max {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Writes all of it and flushes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.io.write_all(bytes).await?;
        self.io.flush().await
    }

    /// Writes `piece` again and again, from `at` on, until something comes, which is returned; `None`
    /// is the client's FIN.
    pub(crate) async fn flood(
        &mut self,
        piece: &[u8],
        at: &mut usize,
    ) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| {
            let mut few = [0; FIRST_READ];
            let mut read = ReadBuf::new(&mut few);
            if let Poll::Ready(done) = Pin::new(&mut self.io).poll_read(cx, &mut read) {
                let came =
                    (!read.filled().is_empty()).then(|| Bytes::copy_from_slice(read.filled()));
                return Poll::Ready(done.map(|()| came));
            }
            // The runtime's budget ends this where the client reads as fast.
            loop {
                let wrote = ready!(Pin::new(&mut self.io).poll_write(cx, &piece[*at..]))?;
                *at = (*at + wrote) % piece.len();
            }
        })
        .await
    }

    /// Ends the connection in the way asked for.
    pub(crate) async fn end(mut self, how: After) {
        match how {
            After::Keep | After::Close => self.linger().await,
            After::Drop => {}
            After::Reset => self.io.reset_on_close(),
        }
    }

    /// RFC 9112 section 9.6: half-close, then read, so that no RST overtakes the answer.
    async fn linger(&mut self) {
        if self.io.shutdown().await.is_err() {
            return;
        }
        let drain = async {
            loop {
                self.inbox.clear();
                if !matches!(self.fill().await, Ok(1..)) {
                    return;
                }
            }
        };
        // A client that goes on sending is cut off.
        let _ = timeout(LINGER, drain).await;
    }
}
