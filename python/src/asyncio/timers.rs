//! The timers of one loop: a queue of ours, and one callback of the loop's for the earliest of them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use mimus_net::rt::evented::Timer;

use super::hub::{Hub, lock};

/// When, and which of those then.
type Key = (Instant, u64);

#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeMap<Key, Option<Waker>>,
    made: u64,
    /// When the loop calls back.
    armed: Option<Instant>,
}

impl Timers {
    /// When the loop is to call back, unless it will have done so by then.
    pub(super) fn next_to_arm(&mut self) -> Option<Instant> {
        let (&(first, _), _) = self.queue.first_key_value()?;
        if self.armed.is_some_and(|armed| armed <= first) {
            return None;
        }
        self.armed = Some(first);
        Some(first)
    }

    /// The loop called back, perhaps too early: some count from when they began their round. Those whose
    /// time has come.
    pub(super) fn fire(&mut self, now: Instant) -> Vec<Waker> {
        self.armed = None;
        let mut fired = Vec::new();
        while let Some(first) = self.queue.first_entry()
            && first.key().0 <= now
        {
            fired.extend(first.remove());
        }
        fired
    }
}

/// A place in the queue of a loop's timers.
#[derive(Debug)]
pub(super) struct Alarm {
    hub: Arc<Hub>,
    key: Key,
}

impl Alarm {
    pub(super) fn new(hub: Arc<Hub>, at: Instant) -> Self {
        let key = {
            let timers = &mut *lock(&hub.timers);
            timers.made += 1;
            let key = (at, timers.made);
            timers.queue.insert(key, None);
            key
        };
        Alarm { hub, key }
    }
}

impl Timer for Alarm {
    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut timers = lock(&self.hub.timers);
        let Some(waker) = timers.queue.get_mut(&self.key) else { return Poll::Ready(()) };
        if waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        let left = waker.replace(cx.waker().clone());
        drop(timers);
        drop(left);
        Poll::Pending
    }

    fn reset(&mut self, at: Instant) {
        let mut timers = lock(&self.hub.timers);
        let waker = timers.queue.remove(&self.key).flatten();
        self.key.0 = at;
        timers.queue.insert(self.key, waker);
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let left = lock(&self.hub.timers).queue.remove(&self.key);
        drop(left);
    }
}
