//! Sockets and timers on async-io's reactor, which smol and its relatives share.

use std::{
    any::Any,
    future::Future,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use async_executor::Executor;
use async_io::Async;
use bytes::BytesMut;
use rustix::net::RecvFlags;

use super::{
    BoxFuture, Endpoint, Probe, Runtime, Socket, Wait,
    deadline::{Deadline, Timer},
    sys::{self, Ends, Fd, Progress},
    uninit,
};
use crate::dial::SocketOptions;

/// The smol family of executors. Its reactor runs on a thread of its own, so these sockets work
/// under any executor at all.
///
/// It starts no tasks: who waits drives. Where many exchanges share a connection, [`on`](Self::on) an
/// executor is faster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Smol;

/// [`Smol`] with an executor that drives connections which many exchanges share.
#[derive(Debug, Clone)]
pub struct SmolOn(Arc<Executor<'static>>);

impl Smol {
    /// The same with an executor of the caller's for tasks of connections. It must be run for as long as
    /// calls are made: what is waited for is read there.
    pub fn on(executor: Arc<Executor<'static>>) -> SmolOn {
        SmolOn(executor)
    }

    async fn open(&self, to: &Endpoint, options: &SocketOptions) -> io::Result<Box<dyn Socket>> {
        let (fd, addr) = sys::open(to, options)?;
        let progress = sys::connect(self, &fd, &addr).await?;
        let fd = Async::new_nonblocking(fd)?;
        if progress == Progress::InProgress {
            fd.writable().await?;
        }
        let ends = sys::connected(fd.get_ref(), to)?;
        Ok(Box::new(Stream { fd, ends, deadline: Deadline::none(), ended: false }))
    }
}

impl Runtime for Smol {
    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(self.open(to, options))
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let timer = async_io::Timer::at(at);
        Box::pin(async {
            timer.await;
        })
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        ::blocking::unblock(work).detach();
    }
}

impl Runtime for SmolOn {
    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Smol.connect(to, options)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Smol.sleep_until(at)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        Smol.spawn_blocking(work);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        self.0.spawn(task).detach();
        Ok(())
    }
}

impl Timer for async_io::Timer {
    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(self).poll(cx).map(drop)
    }

    fn reset(&mut self, at: Instant) {
        self.set_at(at);
    }
}

/// A connection on async-io's reactor, whose readiness is one-shot: the system call comes first, and
/// interest is registered only when it would block.
#[derive(Debug)]
struct Stream {
    fd: Async<Fd>,
    ends: Ends,
    deadline: Deadline<async_io::Timer>,
    ended: bool,
}

impl Stream {
    fn expire<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.deadline.poll(cx, async_io::Timer::at).map(Err)
    }
}

/// Tries `operation` until it is done or `ready` has to be waited for.
fn attempt<T>(
    mut operation: impl FnMut() -> io::Result<T>,
    mut ready: impl FnMut() -> Poll<io::Result<()>>,
) -> Poll<io::Result<T>> {
    loop {
        match operation() {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready!(ready())?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return Poll::Ready(done),
        }
    }
}

impl Socket for Stream {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        let fd = &self.fd;
        let read = match wait {
            Wait::Never => sys::take(fd.get_ref(), buf),
            Wait::Alone | Wait::Beside => attempt(
                || uninit::append(buf, |spare| sys::recv(fd.get_ref(), spare, RecvFlags::empty())),
                || fd.poll_readable(cx),
            ),
        };
        match read {
            Poll::Ready(done) => {
                self.ended |= sys::ends_stream(&done);
                Poll::Ready(done)
            }
            Poll::Pending if wait == Wait::Never => Poll::Pending,
            Poll::Pending => self.expire(cx),
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let fd = &self.fd;
        match attempt(|| sys::send(fd.get_ref(), bufs), || fd.poll_writable(cx)) {
            Poll::Ready(done) => {
                self.ended |= done.is_err();
                Poll::Ready(done)
            }
            Poll::Pending => self.expire(cx),
        }
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(sys::shutdown_write(self.fd.get_ref()))
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.deadline.set(at);
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        // Asking this reactor for readiness is a system call itself.
        self.ended || (probe == Probe::Thorough && sys::is_spent(self.fd.get_ref()))
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.ends.peer
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.ends.local
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
