//! An idle connection looked after: a PING is answered, a GOAWAY or the end is seen, while nobody calls.
//! Where the runtime drives no tasks, the next call looks.

use std::{
    future::Future,
    pin::Pin,
    sync::Weak,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use mimus_net::BoxFuture;

use super::{
    Link,
    state::{Leader, State},
};

/// For how long nobody calls before the connection is watched: between calls that follow one another it
/// costs nothing.
const QUIET: Duration = Duration::from_secs(1);

/// What the watch waits for.
enum Until {
    /// Something that comes, or the next idle time.
    Woken,
    Time(Instant),
    /// The connection is over.
    Never,
}

/// The task of a connection that looks after it.
pub(super) struct Watch {
    link: Weak<Link>,
    sleep: Option<BoxFuture<'static, ()>>,
}

impl Watch {
    pub(super) fn new(link: Weak<Link>) -> Self {
        Watch { link, sleep: None }
    }
}

impl Future for Watch {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(link) = self.link.upgrade() else { return Poll::Ready(()) };
            if let Some(sleep) = &mut self.sleep {
                if sleep.as_mut().poll(cx).is_pending() {
                    link.with(|state| state.set_watcher(cx.waker()));
                    return Poll::Pending;
                }
                self.sleep = None;
            }
            match link.with(|state| state.watch(cx, Instant::now())) {
                Until::Never => return Poll::Ready(()),
                Until::Woken => return Poll::Pending,
                Until::Time(at) => self.sleep = Some(link.runtime.sleep_until(at)),
            }
        }
    }
}

/// Who watches, if anybody does.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) waker: Option<Waker>,
    /// The socket has its waker.
    armed: bool,
}

impl Watcher {
    /// The waker that a look at the socket must leave there.
    pub(super) fn armed(&self) -> Option<Waker> {
        self.waker.clone().filter(|_| self.armed)
    }

    /// Whom to wake because the connection is idle anew: an exchange took the socket's waker.
    pub(super) fn rearm(&mut self) -> Option<Waker> {
        if std::mem::take(&mut self.armed) { self.waker.take() } else { None }
    }
}

impl State {
    /// One turn of the watch.
    fn watch(&mut self, cx: &mut Context<'_>, now: Instant) -> Until {
        self.set_watcher(cx.waker());
        if self.is_over() {
            return Until::Never;
        }
        let busy = self.owned > 0 || self.reserved > 0;
        let since = if busy { now } else { self.idle_since };
        if let Some(at) = since.checked_add(QUIET).filter(|&at| at > now) {
            return Until::Time(at);
        }
        self.leader = Leader::Nobody;
        self.watcher.armed = self.drain(cx);
        match self.watcher.armed {
            _ if self.is_over() => Until::Never,
            true => Until::Woken,
            // A server that always has something to say must not keep others from the thread.
            false => Until::Time(now + QUIET),
        }
    }

    fn set_watcher(&mut self, waker: &Waker) {
        let known = self.watcher.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        if !known {
            let before = self.watcher.waker.replace(waker.clone());
            self.spend(before);
        }
    }
}
