//! The machine's part for connections that many exchanges share.

use super::grant::{Effects, Grant, Left, Permit};
use super::machine::Pool;
use super::members::{MemberId, Place, Shareable};
use std::net::SocketAddr;
use std::time::Instant;

impl<K, C, S: Shareable> Pool<K, C, S> {
    /// Records that the dial of `permit` succeeded, with a connection that many exchanges share, and
    /// hands its places to those who wait. The dialling exchange has taken its own. Calls of other keys
    /// find it `at` that address, if they may use it.
    pub fn shared(
        &mut self,
        permit: Permit,
        conn: S,
        at: Option<SocketAddr>,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> MemberId {
        let key = permit.key;
        self.end_dial(&permit);
        self.not_exclusive(key);
        self.count(key, |stats| stats.in_use += 1);
        let id = self.members.insert(conn, key, at, now);
        // Where the others are full, this one has room.
        self.keys[key].members.insert(0, id.index());
        self.serve_places(key, now, effects);
        self.trim_if_idle(id, effects);
        self.settle(key, now, effects);
        id
    }

    /// An exchange of `id` ended, or it has more room otherwise.
    pub fn freed(&mut self, id: MemberId, now: Instant, effects: &mut Effects<C, S>) {
        let Some((index, key)) = self.members.find(id) else {
            return;
        };
        let left = effects.left.len();
        match self.members.get(index) {
            Some(kept) if !kept.aliases.is_empty() => self.serve_all_keys(index, now, effects),
            _ => self.serve_places(key, now, effects),
        }
        let idle = self.trim_if_idle(id, effects);
        // Otherwise no unit came free: nobody looks through all connections for an idle one.
        if idle || effects.left.len() > left {
            self.settle(key, now, effects);
        }
    }

    /// `id` takes no exchange any more.
    pub fn gone(&mut self, id: MemberId, now: Instant, effects: &mut Effects<C, S>) {
        if let Some((index, key)) = self.members.find(id) {
            self.remove_member(index, key, effects);
            self.settle(key, now, effects);
        }
    }

    /// Whether nothing uses `id`. If so, it is one of the idle ones of its key, whose number is
    /// limited.
    fn trim_if_idle(&mut self, id: MemberId, effects: &mut Effects<C, S>) -> bool {
        let Some((index, key)) = self.members.find(id) else {
            return false;
        };
        let kept = self.members.get(index);
        let idle = kept.is_some_and(|kept| kept.conn.idle_since().is_some());
        if idle {
            self.trim_idle(key, effects);
        }
        idle
    }

    /// A place for an exchange that just came: after those who wait for one.
    #[inline(never)] // Exclusive connections, which do not need it, are leased faster without.
    pub(super) fn place_for_newcomer(
        &mut self,
        key: usize,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Option<S> {
        if self.first_for_place(key).is_some() {
            self.serve_places(key, now, effects);
            if self.first_for_place(key).is_some() {
                return None;
            }
        }
        self.take_place(key, now, effects)
    }

    /// Hands the free places of `key` to its waiters.
    pub(super) fn serve_places(&mut self, key: usize, now: Instant, effects: &mut Effects<C, S>) {
        let mut served = false;
        while self.serve_place(key, now, effects) {
            served = true;
        }
        if served {
            self.refresh_ready(key);
        }
    }

    /// Hands a free place of `key` to its first waiter. Whether there were both.
    pub(super) fn serve_place(
        &mut self,
        key: usize,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> bool {
        if let Some(first) = self.first_for_place(key)
            && let Some(conn) = self.take_place(key, now, effects)
        {
            self.grant(key, first, Grant::Shared(conn), now, effects);
            return true;
        }
        false
    }

    /// Hands a place that its waiter does not want to the next, or back.
    pub(super) fn pass_on(
        &mut self,
        key: usize,
        conn: S,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        match self.first_for_place(key) {
            Some(first) => {
                self.count(key, |stats| stats.hits += 1);
                self.grant(key, first, Grant::Shared(conn), now, effects);
                self.refresh_ready(key);
            }
            None => effects.left.push(Left::Place(conn)),
        }
    }

    /// Takes a place on a shared connection of `key`. The one that had room is asked first the next
    /// time; those that take no exchange any more leave.
    fn take_place(&mut self, key: usize, now: Instant, effects: &mut Effects<C, S>) -> Option<S> {
        let mut at = 0;
        while let Some(&index) = self.keys[key].members.get(at) {
            let kept = self.members.get_mut(index)?;
            let expired = kept.expired(&self.limits, now);
            match if expired { Place::Gone } else { kept.conn.reserve(now) } {
                Place::Taken => {
                    kept.used = now;
                    let conn = kept.conn.clone();
                    self.keys[key].members.swap(0, at);
                    self.count(key, |stats| stats.hits += 1);
                    return Some(conn);
                }
                Place::Full => at += 1,
                Place::Gone => {
                    self.count(key, |stats| stats.expired += u64::from(expired));
                    self.remove_member(index, key, effects);
                }
            }
        }
        None
    }

    /// Forgets the shared connection at `index`; its unit is free. [`settle`](Self::settle) is due for
    /// `held`, a key that the caller goes on with.
    pub(super) fn remove_member(&mut self, index: usize, held: usize, effects: &mut Effects<C, S>) {
        let kept = self.members.remove(index);
        self.count(kept.key, |stats| stats.in_use -= 1);
        for key in kept.aliases.into_iter().chain([kept.key]) {
            self.keys[key].members.retain(|&other| other != index);
            if key != held {
                self.refresh_ready(key);
                self.retire(key);
            }
        }
        effects.left.push(Left::Shared(kept.conn));
    }

    /// Closes the shared connections that have been idle, or alive, for too long.
    pub(super) fn expire_shared(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        let expired: Vec<_> = (self.members.iter())
            .filter(|(_, kept)| kept.expired(&self.limits, now))
            .map(|(index, kept)| (index, kept.key))
            .collect();
        for &(index, key) in &expired {
            self.count(key, |stats| stats.expired += 1);
            self.remove_member(index, key, effects);
        }
        self.settle_all(expired, now, effects);
    }

    /// Closes the shared connections that nothing uses.
    pub(super) fn close_idle_shared(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        let idle: Vec<_> = (self.members.iter())
            .filter(|(_, kept)| kept.conn.idle_since().is_some())
            .map(|(index, kept)| (index, kept.key))
            .collect();
        for &(index, key) in &idle {
            self.remove_member(index, key, effects);
        }
        self.settle_all(idle, now, effects);
    }

    /// Settles the keys of members that left.
    fn settle_all(
        &mut self,
        members: Vec<(usize, usize)>,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        for &(_, key) in &members {
            self.refresh_ready(key);
        }
        for (_, key) in members {
            self.settle(key, now, effects);
        }
    }

    /// The shared connections that were opened for `key`: whose units count there.
    pub(super) fn own_members(&self, key: usize) -> impl Iterator<Item = usize> {
        let members = self.keys[key].members.iter().copied();
        members.filter(move |&index| self.members.get(index).is_some_and(|kept| kept.key == key))
    }

    /// How many of the shared connections that were opened for `key` are idle.
    pub(super) fn idle_members(&self, key: usize) -> usize {
        self.own_members(key)
            .filter_map(|index| self.members.get(index))
            .filter(|kept| kept.conn.idle_since().is_some())
            .count()
    }
}
