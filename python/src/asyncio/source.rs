//! Sockets that an event loop watches.
//!
//! A reader stays registered between exchanges. The loop's selector is level-triggered: a socket that
//! is ready while nobody reads it would be reported again and again, so it is forgotten the second time.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Instant,
};

use mimus_net::rt::evented::{Direction, Source};
use pyo3::prelude::*;

use super::{
    hub::{Hub, Order, called_back, lock},
    timers::Alarm,
};

/// How often one callback may read before others have their turn: 1 MiB at least.
const READS: u32 = 16;

/// What is known of one direction of a descriptor, and who waits for it.
#[derive(Debug, Default)]
struct Side {
    ready: bool,
    /// The loop calls back, or has been ordered to.
    watched: bool,
    waker: Option<Waker>,
    /// How often it was found ready since the loop said so.
    used: u32,
    /// Why it cannot be watched.
    failed: Option<String>,
}

/// A descriptor, which its owner and its callbacks share.
#[derive(Debug)]
pub(super) struct Entry {
    fd: OwnedFd,
    hub: Arc<Hub>,
    reading: Mutex<Side>,
    writing: Mutex<Side>,
}

impl Entry {
    fn side(&self, direction: Direction) -> &Mutex<Side> {
        match direction {
            Direction::Read => &self.reading,
            Direction::Write => &self.writing,
        }
    }

    pub(super) fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The loop refused to watch it.
    pub(super) fn fail(&self, direction: Direction, why: &str) {
        let waker = {
            let side = &mut *lock(self.side(direction));
            side.failed = Some(why.to_owned());
            side.watched = false;
            side.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether it was watched. It is not any more.
    pub(super) fn unwatch(&self, direction: Direction) -> bool {
        std::mem::take(&mut lock(self.side(direction)).watched)
    }

    /// The loop says that it is ready. Whom to wake, and whether to watch on.
    fn is_ready(&self, direction: Direction) -> (Option<Waker>, bool) {
        let side = &mut *lock(self.side(direction));
        let known = std::mem::replace(&mut side.ready, true);
        side.used = 0;
        let waker = side.waker.take();
        // What waits to write waits seldom.
        let watch = direction == Direction::Read && (waker.is_some() || !known);
        side.watched &= watch;
        (waker, watch)
    }
}

impl AsFd for Entry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The owner of a descriptor that a loop watches.
#[derive(Debug)]
pub(super) struct Watched(Arc<Entry>);

impl Watched {
    pub(super) fn new(hub: Arc<Hub>, fd: OwnedFd) -> Self {
        let (reading, writing) = (Mutex::default(), Mutex::default());
        Watched(Arc::new(Entry { fd, hub, reading, writing }))
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Watched {
    type Timer = Alarm;

    fn poll_ready(&mut self, cx: &mut Context<'_>, direction: Direction) -> Poll<io::Result<()>> {
        let entry = &self.0;
        let mut side = lock(entry.side(direction));
        if let Some(why) = &side.failed {
            return Poll::Ready(Err(io::Error::other(format!(
                "the event loop cannot watch the socket: {why}"
            ))));
        }
        if side.ready && side.used < READS {
            side.used += 1;
            return Poll::Ready(Ok(()));
        }
        let known = side.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        let left = if known { None } else { side.waker.replace(cx.waker().clone()) };
        let watched = std::mem::replace(&mut side.watched, true);
        drop(side);
        drop(left);
        if !watched {
            entry.hub.order(Order::Watch(entry.clone(), direction));
        }
        Poll::Pending
    }

    fn clear_ready(&mut self, direction: Direction) {
        lock(self.0.side(direction)).ready = false;
    }

    fn is_readable(&self) -> bool {
        lock(&self.0.reading).ready
    }

    fn timer(&self, at: Instant) -> Alarm {
        Alarm::new(self.0.hub.clone(), at)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let entry = &self.0;
        // The selector belongs to the process that made it, of which this may be a fork.
        if !entry.hub.is_ours() {
            return;
        }
        let wakers = [&entry.reading, &entry.writing].map(|side| lock(side).waker.take());
        drop(wakers);
        let is_watched = lock(&entry.reading).watched || lock(&entry.writing).watched;
        if is_watched {
            // The loop forgets it before it is closed: the next may have its number.
            entry.hub.order(Order::Leave(entry.clone()));
        }
    }
}

/// What the loop calls when the descriptor is ready.
#[pyclass(frozen, module = "mimus._mimus")]
pub(super) struct Watcher {
    entry: Arc<Entry>,
    direction: Direction,
}

impl Watcher {
    pub(super) fn new(entry: Arc<Entry>, direction: Direction) -> Self {
        Watcher { entry, direction }
    }
}

#[pymethods]
impl Watcher {
    fn __call__(&self, py: Python<'_>) {
        let (entry, direction) = (&self.entry, self.direction);
        called_back(py, &entry.hub, |event_loop| {
            let (waker, watch) = entry.is_ready(direction);
            if !watch {
                entry.hub.remove_watcher(event_loop, direction, entry.fd());
            }
            waker.into_iter().for_each(Waker::wake);
        });
    }
}
