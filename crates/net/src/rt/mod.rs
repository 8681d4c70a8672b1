//! The seam between Mimus and whatever schedules it.
//!
//! A [`Runtime`] is chosen by value, and several can live in one program. It gives sockets, timers
//! and a place for work that blocks; nothing else of Mimus knows which runtime it runs on.

#[cfg(not(unix))]
compile_error!("mimus-net works on Unix systems only");

mod blocking;
mod deadline;
pub mod evented;
pub mod io;
#[cfg(feature = "smol")]
mod smol;
mod sys;
#[cfg(feature = "tokio")]
mod tokio;
mod uninit;

use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn},
    net::SocketAddr,
    path::PathBuf,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Instant,
};

use bytes::BytesMut;

pub use self::blocking::Blocking;
#[cfg(feature = "smol")]
pub use self::smol::{Smol, SmolOn};
pub(crate) use self::sys::OptionError;
#[cfg(feature = "tokio")]
pub use self::tokio::Tokio;

use crate::dial::SocketOptions;

/// A boxed future that any thread may drive.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a transport connection goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP to an address (an IPv6 zone travels in the address's scope id).
    Tcp(SocketAddr),
    /// A Unix domain stream socket.
    Unix(PathBuf),
}

/// What schedules futures and owns the reactor: tokio, smol, or the calling thread itself.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Opens a transport connection. One attempt: racing, resolving and deadlines are
    /// [`dial`](crate::dial)'s. Dropping the future abandons the attempt and closes its socket.
    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, std::io::Result<Box<dyn Socket>>>;

    /// Completes at `at`, or at once when that has passed.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;

    /// Runs `work` where blocking the thread delays nobody (a name lookup, a file).
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// Drives `task` in the background, if there is such a place; gives it back otherwise.
    ///
    /// # Errors
    /// The task, where nothing could drive it.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        Err(task)
    }

    /// Whether the thread that polls may sleep in a read of a body that is sent. Only where it waits for
    /// that one call and nothing else, which then needs no [`spawn_blocking`](Self::spawn_blocking).
    fn may_block(&self) -> bool {
        false
    }

    /// Which reactor would own a socket made now. A connection is used only where its own one runs:
    /// elsewhere nobody would wake whoever waits for it.
    fn realm(&self) -> u64 {
        0
    }

    /// Whether calls can be made from here. Asked once before each dial.
    ///
    /// # Errors
    /// The caller is outside of the runtime that it needs to be in.
    fn check(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `future`'s output, or `None` when `at` comes first. The timer is made when it has to wait.
pub async fn within<T>(
    runtime: &dyn Runtime,
    at: Option<Instant>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let mut timer = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let Some(at) = at else { return Poll::Pending };
        let timer = timer.get_or_insert_with(|| runtime.sleep_until(at));
        timer.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// Whether a read may put the calling thread to sleep.
///
/// The blocking runtime's sockets block in `recv` itself when nothing else could wake the caller, which makes a
/// small exchange one `send` and one `recv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The caller waits for these bytes and for nothing else.
    Alone,
    /// The caller waits for other things too (it is uploading, or racing): never block the thread.
    Beside,
    /// The caller takes what is here and waits for nothing: pending says that nothing is, and wakes nobody.
    Never,
}

/// How hard to look for signs that a pooled connection has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Only what is known without a system call.
    Free,
    /// A system call is worth it (the connection idled for long, or the request must not be sent
    /// in vain).
    Thorough,
}

/// A byte stream with a deadline.
///
/// Methods take `&mut self` and are polled like `AsyncRead`/`AsyncWrite`. An operation that is still
/// pending at the deadline fails with [`TimedOut`](std::io::ErrorKind::TimedOut); the socket stays usable.
pub trait Socket: fmt::Debug + Send + Sync + 'static {
    /// Appends what has come to the spare capacity of `buf` (the caller reserves it; without any,
    /// this is an `InvalidInput` error). `Ok(0)` is the end of the stream.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<std::io::Result<usize>>;

    /// Writes some of `bufs`, gathered into one system call (or TLS record) where possible. Never
    /// blocks the thread. `Ok(n)` counts bytes of `bufs` taken.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>>;

    /// Moves whatever a layer (TLS) took but has not yet handed to the layer below.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>>;

    /// Says goodbye in this direction (`close_notify`, `shutdown(SHUT_WR)`).
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>>;

    /// From now on, pending operations fail at `at`. Cheap: no timer is made until an operation has
    /// to wait, and moving the deadline later re-arms nothing.
    fn set_deadline(&mut self, at: Option<Instant>);

    /// Whether an idle connection can no longer be used: the peer closed it, reset it, or spoke
    /// without being asked.
    fn is_stale(&mut self, probe: Probe) -> bool;

    /// The peer's address; `None` for a Unix socket. Through a proxy, the proxy's.
    fn peer_addr(&self) -> Option<SocketAddr>;

    /// Our address; `None` for a Unix socket.
    fn local_addr(&self) -> Option<SocketAddr>;

    /// What the outermost TLS layer negotiated, if there is one.
    fn tls(&self) -> Option<&crate::tls::TlsInfo> {
        None
    }

    /// For callers that know the concrete type.
    fn as_any(&self) -> &dyn Any;
}
