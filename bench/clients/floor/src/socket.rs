//! Sockets that block and sockets that wait, in one form: what blocks is ready whenever it is polled.

use std::{
    future::Future,
    io::{self, IoSlice, Read, Write},
    pin::pin,
    task::{Context, Poll, Waker},
};

use boring::ssl::SslStream;
use bytes::BufMut;
use mimus_bench_kit::PeerError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::request::joined;

/// Frames in one write: what stays in a cache, and over TLS no more than are joined.
pub const FRAMES_MAX: usize = 8;
const FRAMES_JOINED: usize = 7;

/// A socket, whatever is below.
pub trait Socket: Send {
    /// DATA frames of HTTP/2 that one write is made of, at most.
    const FRAMES: usize;

    fn read(&mut self, into: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;

    /// Reads once, up to `most` bytes, to behind what `all` holds.
    fn read_to(
        &mut self,
        all: &mut Vec<u8>,
        most: usize,
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Writes all of the parts.
    fn write(&mut self, parts: &mut [IoSlice<'_>]) -> impl Future<Output = io::Result<()>> + Send;
}

/// TLS, and where parts are joined that go out as one.
pub struct Tls<S> {
    stream: S,
    joined: Vec<u8>,
}

impl<S> Tls<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, joined: Vec::new() }
    }
}

impl Socket for std::net::TcpStream {
    const FRAMES: usize = FRAMES_MAX;

    async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Read::read(self, into)
    }

    async fn read_to(&mut self, all: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        all.reserve(most);
        let room = &mut all.spare_capacity_mut()[..most];
        let n = rustix::io::read(&*self, room)?.0.len();
        // SAFETY: the read initialized `n` bytes from the present length on, within the capacity.
        unsafe { all.set_len(all.len() + n) };
        Ok(n)
    }

    async fn write(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !parts.is_empty() {
            let n = nonzero(self.write_vectored(parts)?)?;
            IoSlice::advance_slices(&mut parts, n);
        }
        Ok(())
    }
}

impl Socket for tokio::net::TcpStream {
    const FRAMES: usize = FRAMES_MAX;

    async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        AsyncReadExt::read(self, into).await
    }

    async fn read_to(&mut self, all: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        self.read_buf(&mut all.limit(most)).await
    }

    async fn write(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !parts.is_empty() {
            let n = nonzero(self.write_vectored(parts).await?)?;
            IoSlice::advance_slices(&mut parts, n);
        }
        Ok(())
    }
}

impl Socket for Tls<SslStream<std::net::TcpStream>> {
    const FRAMES: usize = FRAMES_JOINED;

    async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Read::read(&mut self.stream, into)
    }

    async fn read_to(&mut self, all: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let before = all.len();
        all.resize(before + most, 0);
        let read = Read::read(&mut self.stream, &mut all[before..]);
        all.truncate(before + *read.as_ref().unwrap_or(&0));
        read
    }

    async fn write(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        match joined(parts, &mut self.joined) {
            Some(all) => self.stream.write_all(all),
            None => parts.iter().try_for_each(|part| self.stream.write_all(part)),
        }
    }
}

impl Socket for Tls<tokio_boring::SslStream<tokio::net::TcpStream>> {
    const FRAMES: usize = FRAMES_JOINED;

    async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into).await
    }

    async fn read_to(&mut self, all: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        self.stream.read_buf(&mut all.limit(most)).await
    }

    async fn write(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        if let Some(all) = joined(parts, &mut self.joined) {
            return self.stream.write_all(all).await;
        }
        for part in parts {
            self.stream.write_all(part).await?;
        }
        Ok(())
    }
}

fn nonzero(written: usize) -> io::Result<usize> {
    if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
}

/// What comes of a future over a socket that blocks, which never waits.
pub fn at_once<T>(future: impl Future<Output = Result<T, PeerError>>) -> Result<T, PeerError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err("it would have to wait".into()),
    }
}
