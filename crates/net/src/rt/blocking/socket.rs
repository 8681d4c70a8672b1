//! Connections of the blocking runtime.

use std::{
    any::Any,
    future::poll_fn,
    io::{self, IoSlice},
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use rustix::{event::PollFlags, net::RecvFlags};

use super::reactor::{self, Key, Wanted};
use crate::{
    Runtime,
    dial::SocketOptions,
    rt::{
        Endpoint, Probe, Socket, Wait,
        sys::{self, Ends, Fd, Progress},
        uninit,
    },
};

/// Below this, `SO_RCVTIMEO` (counted in ticks of up to 10 ms, rounded up) is too coarse, and the
/// wait is left to `poll(2)`.
const COARSE: Duration = Duration::from_millis(100);

pub(super) async fn connect(
    runtime: &dyn Runtime,
    to: &Endpoint,
    options: &SocketOptions,
) -> io::Result<Box<dyn Socket>> {
    if !reactor::is_here() {
        return Err(reactor::not_here());
    }
    let (fd, addr) = sys::open(to, options)?;
    let progress = sys::connect(runtime, &fd, &addr).await?;
    let waiter = Waiter { fd: Arc::new(fd), key: Key::unique() };
    if progress == Progress::InProgress {
        poll_fn(|cx| waiter.poll_writable(cx)).await?;
    }
    let ends = sys::connected(&waiter.fd, to)?;
    waiter.fd.set_nonblocking(false)?;
    Ok(Box::new(Stream {
        fd: waiter.fd.clone(),
        ends,
        deadline: None,
        recv_timeout: None,
        reading: Key::unique(),
        writing: Key::unique(),
        ended: false,
    }))
}

/// A connection attempt; dropped, it leaves the reactor.
struct Waiter {
    fd: Arc<Fd>,
    key: Key,
}

impl Waiter {
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match sys::wait(&self.fd, PollFlags::OUT, Duration::ZERO) {
            Ok(true) => return Poll::Ready(Ok(())),
            Ok(false) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Poll::Ready(Err(e)),
        }
        let ready = Some((Arc::downgrade(&self.fd), PollFlags::OUT));
        match reactor::want(self.key, Wanted { ready, until: None }, cx.waker()) {
            Ok(()) => Poll::Pending,
            Err(e) => Poll::Ready(Err(e)),
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        reactor::forget(self.key);
    }
}

/// A connection whose descriptor is in blocking mode; what must not block says so call by call.
#[derive(Debug)]
struct Stream {
    fd: Arc<Fd>,
    ends: Ends,
    deadline: Option<Instant>,
    /// The `SO_RCVTIMEO` in force.
    recv_timeout: Option<Duration>,
    reading: Key,
    writing: Key,
    ended: bool,
}

impl Stream {
    fn recv(&self, buf: &mut BytesMut, flags: RecvFlags) -> io::Result<usize> {
        uninit::append(buf, |spare| sys::recv(&self.fd, spare, flags))
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|at| Instant::now() >= at)
    }

    /// Sleeps in `recv`, which in a run of exchanges with like timeouts is the only system call.
    ///
    /// `SO_RCVTIMEO` never fires after the deadline. It may fire up to half too early, and then
    /// `poll(2)` waits for the exact rest, so that it seldom needs to be set again.
    fn recv_alone(&mut self, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut exactly = false;
        loop {
            let rest = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let flags = match rest {
                None => {
                    self.unlimit_recv()?;
                    RecvFlags::empty()
                }
                Some(rest) if rest >= COARSE && !exactly => {
                    self.limit_recv(rest)?;
                    RecvFlags::empty()
                }
                Some(rest) => match sys::wait(&self.fd, PollFlags::IN, rest) {
                    Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                        return Poll::Ready(Err(e));
                    }
                    Err(_) if reactor::heeds_signal() => return Poll::Pending,
                    _ => RecvFlags::DONTWAIT,
                },
            };
            match self.recv(buf, flags) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                    if reactor::heeds_signal() {
                        return Poll::Pending;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.is_late() {
                        return Poll::Ready(Err(sys::timed_out()));
                    }
                    exactly = true;
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Makes `recv` give up within `rest`, with a margin so that the next, a little shorter rest
    /// finds the option as it should be.
    fn limit_recv(&mut self, rest: Duration) -> io::Result<()> {
        if self.recv_timeout.is_none_or(|t| t > rest || t < rest / 2) {
            let limit = rest - rest / 8;
            self.fd.set_read_timeout(Some(limit))?;
            self.recv_timeout = Some(limit);
        }
        Ok(())
    }

    /// Has `recv` sleep without end, when a deadline was taken back: the system arms a timer for each that
    /// may not.
    fn unlimit_recv(&mut self) -> io::Result<()> {
        if self.recv_timeout.take().is_some() {
            self.fd.set_read_timeout(None)?;
        }
        Ok(())
    }

    /// What an operation that would block comes to.
    fn wait(&self, cx: &Context<'_>, key: Key, events: PollFlags) -> Poll<io::Error> {
        if self.is_late() {
            return Poll::Ready(sys::timed_out());
        }
        let ready = Some((Arc::downgrade(&self.fd), events));
        match reactor::want(key, Wanted { ready, until: self.deadline }, cx.waker()) {
            Ok(()) => Poll::Pending,
            Err(e) => Poll::Ready(e),
        }
    }

    fn recv_beside(&self, cx: &Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        match sys::take(&self.fd, buf) {
            Poll::Pending => self.wait(cx, self.reading, PollFlags::IN).map(Err),
            done => done,
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
        let done = match wait {
            Wait::Alone if reactor::may_sleep() => self.recv_alone(buf),
            Wait::Never => sys::take(&self.fd, buf),
            // Who drops a response outside of `block_on` still takes and gives what needs no wait.
            _ => self.recv_beside(cx, buf),
        };
        if let Poll::Ready(done) = &done {
            self.ended |= sys::ends_stream(done);
        }
        done
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            match sys::send(&self.fd, bufs) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return self.wait(cx, self.writing, PollFlags::OUT).map(Err);
                }
                done => {
                    self.ended |= done.is_err();
                    return Poll::Ready(done);
                }
            }
        }
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(sys::shutdown_write(&self.fd))
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.deadline = at;
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        self.ended || (probe == Probe::Thorough && sys::is_spent(&self.fd))
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

impl Drop for Stream {
    fn drop(&mut self) {
        reactor::forget(self.reading);
        reactor::forget(self.writing);
    }
}
