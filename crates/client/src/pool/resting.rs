//! The machine's part for connections that nobody uses: kept, lent again, expired, evicted.

use super::grant::{Effects, Grant, Left, Permit};
use super::idle::Idle;
use super::machine::Pool;
use super::members::{Expects, Shareable};
use std::time::Instant;

impl<K, C, S: Shareable> Pool<K, C, S> {
    /// Closes the exclusive connections that have been idle for too long. Costs next to nothing when
    /// there are none.
    pub(super) fn expire_idle(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        while let Some((index, idle)) = self.idle.oldest() {
            if !self.limits.idled_out(idle.since, now) {
                break;
            }
            self.expire_one(index, idle.key, effects);
        }
    }

    /// Closes the shared connections that have been idle, or alive, for too long; now and then, so
    /// that it can be called often. One of those that is asked for a place is always looked at.
    pub fn sweep(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        if !self.members.is_empty() && self.members.sweep_is_due(&self.limits, now) {
            self.expire_shared(now, effects);
        }
    }

    /// Closes the connections that have been idle, or alive, for too long. Linear in the number of
    /// idle ones when there is a `max_lifetime`, and in the number of shared ones.
    pub fn expire(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        self.expire_idle(now, effects);
        self.expire_shared(now, effects);
        if self.limits.max_lifetime.is_some() {
            let outlived = |idle: &Idle<C>| self.limits.outlived(idle.created, now);
            let expired: Vec<_> = (self.idle.iter())
                .filter(|(_, idle)| outlived(idle))
                .map(|(index, idle)| (index, idle.key))
                .collect();
            for (index, key) in expired {
                self.expire_one(index, key, effects);
            }
        }
    }

    /// Closes every idle connection.
    pub fn close_idle(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        while let Some((index, idle)) = self.idle.oldest() {
            let key = idle.key;
            effects.left.push(Left::Exclusive(self.remove_idle(index, key).conn));
            self.retire(key);
        }
        self.close_idle_shared(now, effects);
    }

    /// The newest idle connection of `key` that has not outlived its time; those that have are
    /// closed. Those idle for too long were closed [before](Self::expire_idle).
    pub(super) fn lease_idle(
        &mut self,
        key: usize,
        expects: Expects,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Option<Grant<C, S>> {
        while let Some(index) = self.keys[key].idle.top() {
            let Idle { conn, created, .. } = self.idle.remove(&mut self.keys[key].idle, index);
            if !self.limits.outlived(created, now) {
                self.count(key, |stats| {
                    stats.idle -= 1;
                    stats.in_use += 1;
                    stats.hits += 1;
                });
                let open = self.keys[key].stats.open();
                return Some(Grant::Lease(Permit::again(key, expects, open, created), conn));
            }
            self.count(key, |stats| {
                stats.idle -= 1;
                stats.expired += 1;
            });
            effects.left.push(Left::Exclusive(conn));
        }
        None
    }

    pub(super) fn park(
        &mut self,
        key: usize,
        conn: C,
        created: Instant,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        self.idle.push(&mut self.keys[key].idle, Idle { conn, key, created, since: now });
        self.count(key, |stats| stats.idle += 1);
        self.trim_idle(key, effects);
    }

    fn remove_idle(&mut self, index: usize, key: usize) -> Idle<C> {
        self.count(key, |stats| stats.idle -= 1);
        self.idle.remove(&mut self.keys[key].idle, index)
    }

    /// Closes the longest idle connections of `key` that are too many.
    pub(super) fn trim_idle(&mut self, key: usize, effects: &mut Effects<C, S>) {
        let max = self.limits.idle_per_key;
        if max == usize::MAX {
            return;
        }
        while self.keys[key].stats.idle + self.idle_members(key) > max
            && let Some(oldest) = self.oldest_idle_of(key)
        {
            self.evict(oldest, effects);
        }
    }

    /// The connection of `key` that has been idle for the longest time.
    pub(super) fn oldest_idle_of(&self, key: usize) -> Option<Resting> {
        let entry = &self.keys[key];
        let exclusive = entry.idle.bottom().and_then(|index| self.idle.since(index));
        let exclusive = entry.idle.bottom().zip(exclusive);
        let shared = match entry.members.is_empty() {
            true => None,
            false => self.members.oldest_idle(self.own_members(key)),
        };
        Resting::older(exclusive.map(|(index, since)| (since, index, key)), shared)
    }

    /// The connection that has been idle for the longest time.
    pub(super) fn oldest_idle(&self) -> Option<Resting> {
        let exclusive = self.idle.oldest().map(|(index, idle)| (idle.since, index, idle.key));
        let shared = match self.members.is_empty() {
            true => None,
            false => self.members.oldest_idle_of_all(),
        };
        Resting::older(exclusive, shared)
    }

    /// Closes an idle connection that could still have been used. Returns its key.
    pub(super) fn evict(&mut self, resting: Resting, effects: &mut Effects<C, S>) -> usize {
        let key = match resting {
            Resting::Exclusive { index, key } => {
                let idle = self.remove_idle(index, key);
                effects.left.push(Left::Exclusive(idle.conn));
                key
            }
            Resting::Shared { index, key } => {
                self.remove_member(index, key, effects);
                key
            }
        };
        self.count(key, |stats| stats.evictions += 1);
        key
    }

    #[cold]
    fn expire_one(&mut self, index: usize, key: usize, effects: &mut Effects<C, S>) {
        let idle = self.remove_idle(index, key);
        self.count(key, |stats| stats.expired += 1);
        effects.left.push(Left::Exclusive(idle.conn));
        self.retire(key);
    }
}

/// Where an idle connection is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Resting {
    Exclusive { index: usize, key: usize },
    Shared { index: usize, key: usize },
}

impl Resting {
    /// Which of two has been idle for longer.
    fn older(
        exclusive: Option<(Instant, usize, usize)>,
        shared: Option<(Instant, usize, usize)>,
    ) -> Option<Resting> {
        match (exclusive, shared) {
            (Some((since, ..)), Some((before, index, key))) if before < since => {
                Some(Resting::Shared { index, key })
            }
            (Some((_, index, key)), _) => Some(Resting::Exclusive { index, key }),
            (None, shared) => shared.map(|(_, index, key)| Resting::Shared { index, key }),
        }
    }
}
