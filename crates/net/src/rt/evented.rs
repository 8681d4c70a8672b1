//! Sockets on a reactor of somebody else's: an event loop that can say when a descriptor is ready.
//!
//! Whoever brings such a loop implements [`Source`] for one descriptor, and has [`connect`] for its
//! [`Runtime`]. The system calls are made here.

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::BytesMut;
use rustix::net::RecvFlags;

pub use super::deadline::Timer;
use super::{
    Endpoint, Probe, Runtime, Socket, Wait,
    deadline::Deadline,
    sys::{self, Ends, Progress},
    uninit,
};
use crate::dial::SocketOptions;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Bytes, or the end of the stream.
    Read,
    /// Room for bytes, or the end of a connection attempt.
    Write,
}

/// A descriptor on a reactor. Dropping it takes it from there and closes it.
pub trait Source: AsFd + fmt::Debug + Send + Sync + 'static {
    /// The reactor's timer.
    type Timer: Timer + fmt::Debug + Send + Sync;

    /// Ready once the reactor has said that the descriptor is, and until
    /// [`clear_ready`](Self::clear_ready).
    fn poll_ready(&mut self, cx: &mut Context<'_>, direction: Direction) -> Poll<io::Result<()>>;

    /// The descriptor is not ready any more, unless the reactor says so from now on.
    fn clear_ready(&mut self, direction: Direction);

    /// Whether the reactor has said that there is something to read.
    fn is_readable(&self) -> bool;

    /// A timer that fires at `at`.
    fn timer(&self, at: Instant) -> Self::Timer;
}

/// Opens a transport connection, as [`Runtime::connect`], on the reactor that `register` hands a
/// descriptor to.
///
/// # Errors
/// Of the system's, and of `register`.
pub async fn connect<S: Source>(
    runtime: &dyn Runtime,
    to: &Endpoint,
    options: &SocketOptions,
    register: impl FnOnce(OwnedFd) -> io::Result<S>,
) -> io::Result<Box<dyn Socket>> {
    let (fd, addr) = sys::open(to, options)?;
    let progress = sys::connect(runtime, &fd, &addr).await?;
    let mut source = register(fd.into())?;
    if progress == Progress::InProgress {
        poll_fn(|cx| source.poll_ready(cx, Direction::Write)).await?;
    }
    let ends = sys::connected(&source, to)?;
    Ok(Box::new(Stream { source, ends, deadline: Deadline::none(), ended: false }))
}

/// A connection. What it reads is waited for first: an answer is never there yet, and the reactor says
/// when it is. What it writes is written first: there is room, mostly.
#[derive(Debug)]
struct Stream<S: Source> {
    source: S,
    ends: Ends,
    deadline: Deadline<S::Timer>,
    ended: bool,
}

impl<S: Source> Stream<S> {
    fn expire<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let source = &self.source;
        self.deadline.poll(cx, |at| source.timer(at)).map(Err)
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let room = uninit::room(buf)?;
        loop {
            ready!(self.source.poll_ready(cx, Direction::Read))?;
            let source = &self.source;
            match uninit::append(buf, |spare| sys::recv(source, spare, RecvFlags::empty())) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.source.clear_ready(Direction::Read);
                }
                Ok(n) if 0 < n && n < room => {
                    // Drained; the reactor says when there is more. The end stays ready for ever.
                    self.source.clear_ready(Direction::Read);
                    return Poll::Ready(Ok(n));
                }
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            match sys::send(&self.source, bufs) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.source.clear_ready(Direction::Write);
                    ready!(self.source.poll_ready(cx, Direction::Write))?;
                }
                done => return Poll::Ready(done),
            }
        }
    }
}

impl<S: Source> Socket for Stream<S> {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        let read = match wait {
            Wait::Never => sys::take(&self.source, buf),
            Wait::Alone | Wait::Beside => self.poll_recv(cx, buf),
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
        match self.poll_send(cx, bufs) {
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
        Poll::Ready(sys::shutdown_write(&self.source))
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.deadline.set(at);
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        let asks = probe == Probe::Thorough || self.source.is_readable();
        self.ended || (asks && sys::is_spent(&self.source))
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

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        io::{Read, Write},
        net::TcpListener,
        os::fd::BorrowedFd,
        pin::Pin,
        time::Duration,
    };

    use rustix::event::PollFlags;

    use super::*;
    use crate::{BoxFuture, rt::Blocking, rt::io as verbs};

    /// Asks the system itself, again and again.
    #[derive(Debug)]
    struct Asking {
        fd: sys::Fd,
        readable: bool,
    }

    impl AsFd for Asking {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.fd.as_fd()
        }
    }

    struct Sleep(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

    impl fmt::Debug for Sleep {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Sleep")
        }
    }

    fn until(at: Instant) -> Sleep {
        Sleep(Box::pin(poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            if Instant::now() < at { Poll::Pending } else { Poll::Ready(()) }
        })))
    }

    impl Timer for Sleep {
        fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.as_mut().poll(cx)
        }

        fn reset(&mut self, at: Instant) {
            *self = until(at);
        }
    }

    impl Source for Asking {
        type Timer = Sleep;

        fn poll_ready(
            &mut self,
            cx: &mut Context<'_>,
            direction: Direction,
        ) -> Poll<io::Result<()>> {
            let flags = match direction {
                Direction::Read => PollFlags::IN,
                Direction::Write => PollFlags::OUT,
            };
            if sys::wait(&self.fd, flags, Duration::ZERO)? {
                self.readable |= direction == Direction::Read;
                return Poll::Ready(Ok(()));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }

        fn clear_ready(&mut self, direction: Direction) {
            self.readable &= direction != Direction::Read;
        }

        fn is_readable(&self) -> bool {
            self.readable
        }

        fn timer(&self, at: Instant) -> Sleep {
            until(at)
        }
    }

    fn dial(listener: &TcpListener) -> BoxFuture<'static, io::Result<Box<dyn Socket>>> {
        let to = Endpoint::Tcp(listener.local_addr().unwrap());
        Box::pin(async move {
            let register = |fd: OwnedFd| Ok(Asking { fd: fd.into(), readable: false });
            connect(&Blocking, &to, &SocketOptions::default(), register).await
        })
    }

    #[test]
    fn reads_writes_and_sees_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Blocking::block_on(async {
            let mut socket = dial(&listener).await.unwrap();
            let (mut peer, from) = listener.accept().unwrap();
            assert_eq!(socket.local_addr(), Some(from));
            verbs::write_all(&mut *socket, b"ping").await.unwrap();
            let mut ping = [0; 4];
            peer.read_exact(&mut ping).unwrap();
            peer.write_all(b"pong").unwrap();
            let mut buf = BytesMut::with_capacity(64);
            assert_eq!(verbs::read(&mut *socket, &mut buf, Wait::Alone).await.unwrap(), 4);
            assert_eq!((&ping, &buf[..]), (b"ping", &b"pong"[..]));
            assert!(!socket.is_stale(Probe::Thorough));
            drop(peer);
            assert_eq!(verbs::read(&mut *socket, &mut buf, Wait::Alone).await.unwrap(), 0);
            assert!(socket.is_stale(Probe::Free));
        });
    }

    #[test]
    fn a_silent_peer_meets_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Blocking::block_on(async {
            let mut socket = dial(&listener).await.unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            socket.set_deadline(Some(Instant::now() + Duration::from_millis(5)));
            let mut buf = BytesMut::with_capacity(64);
            let late = verbs::read(&mut *socket, &mut buf, Wait::Alone).await;
            assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
            socket.set_deadline(None);
            peer.write_all(b"late").unwrap();
            assert_eq!(verbs::read(&mut *socket, &mut buf, Wait::Alone).await.unwrap(), 4);
        });
    }
}
