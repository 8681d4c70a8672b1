//! The system calls of a stream socket, the same for every runtime.

use std::{
    fmt,
    io::{self, IoSlice},
    mem::MaybeUninit,
    net::SocketAddr,
    os::fd::AsFd,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    net::{RecvFlags, SendFlags},
};
use socket2::{Domain, SockAddr, SockRef, TcpKeepalive, Type};

use super::{Endpoint, Runtime, uninit};
use crate::dial::SocketOptions;

pub(super) use socket2::Socket as Fd;

/// `UIO_MAXIOV`: more slices than this in one call are an error of the kernel's.
const MAX_SLICES: usize = 1024;

/// `EPIPE` is enough. Apple's systems know no flag for it; there the socket itself was told so.
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// How long to leave a Unix listener whose backlog is full alone: its `connect` fails with `EAGAIN`
/// and, unlike TCP's, reports no readiness later.
const BUSY_LISTENER: Duration = Duration::from_millis(5);

/// An option of [`SocketOptions`] that the system refused.
#[derive(Debug)]
pub(crate) struct OptionError {
    option: String,
    source: io::Error,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the socket option {} was refused", self.option)
    }
}

impl std::error::Error for OptionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn refused(option: impl Into<String>) -> impl FnOnce(io::Error) -> io::Error {
    move |source| io::Error::new(source.kind(), OptionError { option: option.into(), source })
}

/// Whether a connection is there, or has to be waited for (writable, then [`connected`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Connected,
    InProgress,
}

/// A non-blocking socket for `to` with every option set, and the address to connect it to.
pub(super) fn open(to: &Endpoint, options: &SocketOptions) -> io::Result<(Fd, SockAddr)> {
    let (domain, addr) = match to {
        Endpoint::Tcp(addr) => (Domain::for_address(*addr), SockAddr::from(*addr)),
        Endpoint::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let fd = Fd::new(domain, Type::STREAM, None)?;
    fd.set_nonblocking(true)?;
    buffers(&fd, options)?;
    if let Endpoint::Tcp(_) = to {
        tcp_options(&fd, options)?;
        bind(&fd, options)?;
    }
    Ok((fd, addr))
}

fn buffers(fd: &Fd, options: &SocketOptions) -> io::Result<()> {
    if let Some(bytes) = options.send_buffer {
        fd.set_send_buffer_size(bytes).map_err(refused("SO_SNDBUF"))?;
    }
    if let Some(bytes) = options.recv_buffer {
        fd.set_recv_buffer_size(bytes).map_err(refused("SO_RCVBUF"))?;
    }
    Ok(())
}

fn tcp_options(fd: &Fd, options: &SocketOptions) -> io::Result<()> {
    if options.nodelay {
        fd.set_tcp_nodelay(true).map_err(refused("TCP_NODELAY"))?;
    }
    if let Some(idle) = options.keepalive {
        let keepalive = TcpKeepalive::new().with_time(idle);
        fd.set_tcp_keepalive(&keepalive).map_err(refused("SO_KEEPALIVE"))?;
    }
    if let Some(timeout) = options.user_timeout {
        user_timeout(fd, timeout).map_err(refused("TCP_USER_TIMEOUT"))?;
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn user_timeout(fd: &Fd, timeout: Duration) -> io::Result<()> {
    fd.set_tcp_user_timeout(Some(timeout))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn user_timeout(_: &Fd, _: Duration) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn bind(fd: &Fd, options: &SocketOptions) -> io::Result<()> {
    if let Some(interface) = &options.interface {
        bind_interface(fd, interface).map_err(refused(format!("SO_BINDTODEVICE ({interface})")))?;
    }
    if let Some(ip) = options.bind {
        fd.bind(&SocketAddr::new(ip, 0).into()).map_err(refused(format!("bind ({ip})")))?;
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_interface(fd: &Fd, interface: &str) -> io::Result<()> {
    fd.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_interface(_: &Fd, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Begins to connect.
pub(super) async fn connect(
    runtime: &dyn Runtime,
    fd: &Fd,
    addr: &SockAddr,
) -> io::Result<Progress> {
    loop {
        let error = match fd.connect(addr) {
            Ok(()) => return Ok(Progress::Connected),
            Err(e) => e,
        };
        match rustix::io::Errno::from_io_error(&error) {
            // An interrupted connect goes on in the background (POSIX, connect).
            Some(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {
                return Ok(Progress::InProgress);
            }
            Some(rustix::io::Errno::AGAIN) if addr.is_unix() => {
                runtime.sleep_until(Instant::now() + BUSY_LISTENER).await;
            }
            _ => return Err(error),
        }
    }
}

/// What the socket knows of its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) peer: Option<SocketAddr>,
    pub(super) local: Option<SocketAddr>,
}

/// The outcome of a connection attempt, once the socket is writable.
pub(super) fn connected(fd: &impl AsFd, to: &Endpoint) -> io::Result<Ends> {
    let fd = SockRef::from(fd);
    if let Some(error) = fd.take_error()? {
        return Err(error);
    }
    let Endpoint::Tcp(peer) = to else {
        return Ok(Ends { peer: None, local: None });
    };
    let local = fd.local_addr()?.as_socket();
    if local == Some(*peer) {
        // A simultaneous open with itself: nobody listened on a port of the ephemeral range, and
        // the system happened to choose that very port for our end.
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(Ends { peer: Some(*peer), local })
}

/// `recv` into memory not yet written.
pub(super) fn recv<'a>(
    fd: &impl AsFd,
    spare: &'a mut [MaybeUninit<u8>],
    flags: RecvFlags,
) -> io::Result<&'a mut [u8]> {
    let ((filled, _), _) = rustix::net::recv(fd, spare, flags)?;
    Ok(filled)
}

/// Reads what is here, on a descriptor of whatever mode. Pending says that nothing is.
pub(super) fn take(fd: &impl AsFd, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
    loop {
        match uninit::append(buf, |spare| recv(fd, spare, RecvFlags::DONTWAIT)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            done => return Poll::Ready(done),
        }
    }
}

/// One gathered `send` that neither blocks nor raises `SIGPIPE`.
pub(super) fn send(fd: &impl AsFd, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    let mut full = bufs.iter().filter(|b| !b.is_empty());
    match (full.next(), full.next()) {
        (None, _) => Ok(0),
        (Some(only), None) => Ok(rustix::net::send(fd, only, SEND)?),
        _ => {
            let bufs = &bufs[..bufs.len().min(MAX_SLICES)];
            Ok(rustix::net::sendmsg(fd, bufs, &mut Default::default(), SEND)?)
        }
    }
}

/// Looks at the next byte without taking it; `WouldBlock` when there is none yet.
pub(super) fn peek(fd: &impl AsFd) -> io::Result<usize> {
    let mut byte = [MaybeUninit::uninit()];
    loop {
        match recv(fd, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done.map(|bytes| bytes.len()),
        }
    }
}

/// Whether an idle connection has ended, failed, or holds bytes that nobody asked for.
pub(super) fn is_spent(fd: &impl AsFd) -> bool {
    !matches!(peek(fd), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
}

/// Whether a read came to the end of the stream, whole or broken. A time-out does not, nor does a
/// caller's mistake.
pub(super) fn ends_stream(read: &io::Result<usize>) -> bool {
    match read {
        Ok(n) => *n == 0,
        Err(e) => !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::TimedOut),
    }
}

/// Ends our direction. A peer that is gone already has nothing left to be told.
pub(super) fn shutdown_write(fd: &impl AsFd) -> io::Result<()> {
    match SockRef::from(fd).shutdown(std::net::Shutdown::Write) {
        Err(e) if e.kind() != io::ErrorKind::NotConnected => Err(e),
        _ => Ok(()),
    }
}

/// `poll(2)` on one socket, for at most `timeout`; whether anything (an error too) is there.
pub(super) fn wait(fd: &Fd, events: PollFlags, timeout: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, events)];
    Ok(rustix::event::poll(&mut fds, Some(&timespec(timeout)))? > 0)
}

/// As `poll(2)` takes it; anything beyond a day is a day, which the callers' loops make up for.
pub(super) fn timespec(duration: Duration) -> Timespec {
    let duration = duration.min(Duration::from_secs(86_400));
    Timespec { tv_sec: duration.as_secs() as _, tv_nsec: duration.subsec_nanos().into() }
}

/// The failure of an operation that was still pending at its deadline.
pub(super) fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the deadline passed")
}
