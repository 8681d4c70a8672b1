//! The machine's part for connections that are opened before an exchange asks for them.

use super::grant::{Effects, Permit, Stage};
use super::machine::Pool;
use super::members::{Expects, MemberId, Shareable};
use std::net::SocketAddr;
use std::time::Instant;

impl<K, C, S: Shareable> Pool<K, C, S> {
    /// Leave to open connections for the key, until so many are `open` or being opened. Fewer where a limit
    /// binds: for what may never be used nobody waits, and no idle connection goes. None while somebody
    /// waits, or when a shared connection serves the key.
    pub fn ahead(
        &mut self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
        (expects, open): (Expects, usize),
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Vec<Permit> {
        let left = effects.left.len();
        self.expire_idle(now, effects);
        let key = self.entry(hash, is_key, make_key);
        let mut permits = Vec::new();
        while self.has_room_ahead(key, expects, open) {
            permits.push(self.permit_ahead(key, expects, now));
        }
        // What left may owe its unit to somebody who waits.
        match effects.left.len() > left {
            true => self.settle(key, now, effects),
            false => self.retire(key),
        }
        permits
    }

    fn has_room_ahead(&self, key: usize, expects: Expects, open: usize) -> bool {
        let (entry, stats) = (&self.keys[key], &self.keys[key].stats);
        let is_served = match expects {
            Expects::Exclusive => false,
            Expects::Either => !entry.members.is_empty(),
            Expects::Shared => !entry.members.is_empty() || entry.sharing > 0,
        };
        !is_served
            && stats.open() < open
            && stats.idle + stats.dialling < self.limits.idle_per_key
            && stats.waiting == 0
            && self.ready.is_empty()
            && !self.key_is_full(key)
            && !self.is_full()
    }

    /// Others wait for one dial that may bring a shared connection, not for several.
    fn permit_ahead(&mut self, key: usize, expects: Expects, now: Instant) -> Permit {
        let spare = self.keys[key].sharing > 0;
        let stage = Stage::Dialling;
        let permit = Permit { key, stage, expects, spare, open: 0, created: now };
        self.count(key, |stats| stats.dialling += 1);
        self.keys[key].sharing += usize::from(permit.is_awaited());
        permit
    }

    /// Records that the dial of `permit` brought an exclusive connection that no exchange asked for: the first
    /// who waits gets it, or it is idle from `now` on.
    pub fn stand(&mut self, permit: Permit, conn: C, now: Instant, effects: &mut Effects<C, S>) {
        let key = permit.key;
        self.end_dial(&permit);
        self.keys[key].exclusive |= permit.expects.may_share();
        self.hand_on(Permit { created: now, ..permit }, conn, now, effects);
        self.settle(key, now, effects);
    }

    /// Records that it brought a shared one: as [`shared`](Self::shared), if there is no other of the key, and
    /// none to be expected.
    ///
    /// # Errors
    /// The connection, which is not needed.
    pub fn stand_shared(
        &mut self,
        permit: Permit,
        conn: S,
        at: Option<SocketAddr>,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Result<MemberId, S> {
        let entry = &self.keys[permit.key];
        if permit.spare && (entry.sharing > 0 || !entry.members.is_empty()) {
            self.abandon(permit, effects);
            return Err(conn);
        }
        Ok(self.shared(permit, conn, at, now, effects))
    }
}
