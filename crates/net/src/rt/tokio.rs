//! Sockets and timers on tokio's reactor.

use std::{
    any::Any,
    future::{Future, poll_fn},
    hash::{Hash, Hasher},
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

use ::tokio::{
    io::Interest,
    net::{TcpStream, UnixStream},
    runtime::Handle,
    time::{Sleep, sleep_until},
};
use bytes::BytesMut;
use rustix::net::RecvFlags;

use super::{
    BoxFuture, Endpoint, Probe, Runtime, Socket, Wait,
    deadline::{Deadline, Timer},
    sys::{self, Ends, Fd, Progress},
    uninit,
};
use crate::dial::SocketOptions;

/// The tokio runtime.
///
/// It must have been built with its I/O and time drivers (`enable_all`), without which tokio itself
/// panics when a socket or a timer is made.
#[derive(Debug, Clone)]
pub struct Tokio {
    /// `None`: the runtime that the caller is in, whichever that is.
    handle: Option<Handle>,
}

impl Tokio {
    /// The runtime that the caller runs in.
    ///
    /// # Errors
    /// Outside of a tokio runtime.
    pub fn current() -> io::Result<Self> {
        Handle::try_current().map(Tokio::on).map_err(io::Error::other)
    }

    /// The runtime in which each call happens to be made. Dialling elsewhere is an error.
    pub fn ambient() -> Self {
        Tokio { handle: None }
    }

    /// The runtime behind `handle`, wherever the caller runs.
    pub fn on(handle: Handle) -> Self {
        Tokio { handle: Some(handle) }
    }

    fn handle(&self) -> io::Result<Handle> {
        match &self.handle {
            Some(handle) => Ok(handle.clone()),
            None => Handle::try_current().map_err(io::Error::other),
        }
    }

    fn register(&self, fd: Fd, to: &Endpoint) -> io::Result<Link> {
        let handle = self.handle()?;
        let _entered = handle.enter();
        match to {
            Endpoint::Tcp(_) => TcpStream::from_std(fd.into()).map(Link::Tcp),
            Endpoint::Unix(_) => UnixStream::from_std(fd.into()).map(Link::Unix),
        }
    }

    async fn open(&self, to: &Endpoint, options: &SocketOptions) -> io::Result<Box<dyn Socket>> {
        let (fd, addr) = sys::open(to, options)?;
        let progress = sys::connect(self, &fd, &addr).await?;
        let link = self.register(fd, to)?;
        if progress == Progress::InProgress {
            poll_fn(|cx| link.poll_ready(cx, Interest::WRITABLE)).await?;
        }
        let ends = sys::connected(&link, to)?;
        let handle = self.handle()?;
        Ok(Box::new(Stream { link, ends, deadline: Deadline::none(), handle, ended: false }))
    }
}

impl Runtime for Tokio {
    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(self.open(to, options))
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        match self.handle() {
            Ok(handle) => timer(&handle, at),
            // Without a runtime there is nothing to wait for: `check` has said so before.
            Err(_) => Box::pin(std::future::ready(())),
        }
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        if let Ok(handle) = self.handle() {
            handle.spawn_blocking(work);
        }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        match self.handle() {
            Ok(handle) => {
                handle.spawn(task);
                Ok(())
            }
            Err(_) => Err(task),
        }
    }

    fn realm(&self) -> u64 {
        let mut number = IdNumber(0);
        match &self.handle {
            // All its sockets are made on the one runtime.
            Some(_) => {}
            None => {
                if let Ok(handle) = Handle::try_current() {
                    handle.id().hash(&mut number);
                }
            }
        }
        number.0
    }

    fn check(&self) -> io::Result<()> {
        self.handle().map(drop)
    }
}

/// Takes the number out of a runtime's id, which shows it to a hasher alone.
struct IdNumber(u64);

impl Hasher for IdNumber {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn timer(handle: &Handle, at: Instant) -> Pin<Box<Sleep>> {
    let _entered = handle.enter();
    Box::pin(sleep_until(at.into()))
}

/// The timer of a deadline. Polling it again for the task that it will wake anyway does nothing.
#[derive(Debug)]
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    wakes: Option<Waker>,
}

impl Timer for Alarm {
    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let known = self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if known && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        self.wakes = Some(cx.waker().clone());
        self.sleep.as_mut().poll(cx)
    }

    fn reset(&mut self, at: Instant) {
        // Firing may have cost it the waker.
        self.wakes = None;
        self.sleep.as_mut().reset(at.into());
    }
}

/// A descriptor on tokio's reactor. The system calls are our own: tokio only tells when.
#[derive(Debug)]
enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Tcp(stream) => stream.as_fd(),
            Link::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Link {
    fn poll_ready(&self, cx: &mut Context<'_>, interest: Interest) -> Poll<io::Result<()>> {
        match (self, interest.is_readable()) {
            (Link::Tcp(stream), true) => stream.poll_read_ready(cx),
            (Link::Tcp(stream), false) => stream.poll_write_ready(cx),
            (Link::Unix(stream), true) => stream.poll_read_ready(cx),
            (Link::Unix(stream), false) => stream.poll_write_ready(cx),
        }
    }

    /// Runs `operation` if the descriptor is ready; its `WouldBlock` ends the readiness.
    fn try_io(
        &self,
        interest: Interest,
        operation: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        match self {
            Link::Tcp(stream) => stream.try_io(interest, operation),
            Link::Unix(stream) => stream.try_io(interest, operation),
        }
    }

    /// Waits for readiness and transfers up to `asked` bytes.
    ///
    /// A stream that moved fewer bytes than asked for is drained (or full), and under edge-triggered
    /// epoll the next event is certain (epoll(7), question 9): readiness ends there and then, which
    /// spares the call that would only learn `EAGAIN`. The end of the stream stays ready for ever.
    fn poll_transfer(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        asked: usize,
        mut operation: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_ready(cx, interest))?;
            let mut moved = None;
            let done = self.try_io(interest, || match operation() {
                Ok(n) if 0 < n && n < asked => {
                    moved = Some(n);
                    Err(io::ErrorKind::WouldBlock.into())
                }
                done => done,
            });
            match (moved, done) {
                (Some(n), _) | (None, Ok(n)) => return Poll::Ready(Ok(n)),
                (None, Err(e)) => match e.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                    _ => return Poll::Ready(Err(e)),
                },
            }
        }
    }
}

/// A connection on tokio's reactor.
#[derive(Debug)]
struct Stream {
    link: Link,
    ends: Ends,
    deadline: Deadline<Alarm>,
    handle: Handle,
    ended: bool,
}

impl Stream {
    fn expire<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let alarm = |at| Alarm { sleep: timer(&self.handle, at), wakes: None };
        self.deadline.poll(cx, alarm).map(Err)
    }

    /// What the reactor already knows: `None` when it has heard nothing.
    fn has_ended(&self) -> Option<bool> {
        let mut asked = false;
        let peek = self.link.try_io(Interest::READABLE, || {
            asked = true;
            sys::peek(&self.link)
        });
        let waits = matches!(peek, Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        (asked || !waits).then_some(!waits)
    }
}

impl Socket for Stream {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        let (link, room) = (&self.link, uninit::room(buf)?);
        let read = match wait {
            // What is here may be more than tokio has been told of.
            Wait::Never => sys::take(link, buf),
            Wait::Alone | Wait::Beside => {
                let recv =
                    || uninit::append(buf, |spare| sys::recv(link, spare, RecvFlags::empty()));
                link.poll_transfer(cx, Interest::READABLE, room, recv)
            }
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
        let (link, asked) = (&self.link, bufs.iter().map(|b| b.len()).sum());
        match link.poll_transfer(cx, Interest::WRITABLE, asked, || sys::send(link, bufs)) {
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
        Poll::Ready(sys::shutdown_write(&self.link))
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.deadline.set(at);
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        if self.ended {
            return true;
        }
        self.has_ended().unwrap_or_else(|| probe == Probe::Thorough && sys::is_spent(&self.link))
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
