//! The machine's part for a shared connection that serves more keys than the one it was opened for.

use super::grant::{Effects, Permit};
use super::machine::Pool;
use super::members::{MemberId, Shareable};
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::time::Instant;

impl<K, C, S: Shareable> Pool<K, C, S> {
    /// The shared connections that stand at one of `addrs` and were opened for a key that `is_fit`: those
    /// at the first address first, and the newest of them. They may serve another key too, which
    /// [`join`](Self::join) says.
    pub fn standing_at(
        &self,
        addrs: &[SocketAddr],
        is_fit: impl Fn(&K) -> bool,
        now: Instant,
    ) -> Vec<(MemberId, S)> {
        let all = addrs.iter().flat_map(|&at| self.members.standing_at(at));
        all.filter(|(_, kept)| is_fit(&self.keys[kept.key].key))
            .filter(|(_, kept)| !kept.expired(&self.limits, now))
            .map(|(id, kept)| (id, kept.conn.clone()))
            .collect()
    }

    /// Records that `id` serves the key of `permit` from now on: no dial is needed, and those who wait for
    /// one get places. The exchange that was to dial has taken its own.
    ///
    /// # Errors
    /// The permit, when `id` has left.
    pub fn join(
        &mut self,
        permit: Permit,
        id: MemberId,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Result<(), Permit> {
        let key = permit.key;
        let index = self.members.find(id).map(|(index, _)| index);
        let Some((index, kept)) = index.and_then(|at| Some((at, self.members.get_mut(at)?))) else {
            return Err(permit);
        };
        kept.used = now;
        // It may be its own, or have been found twice, with no place to give until now.
        if !self.keys[key].members.contains(&index) {
            kept.aliases.push(key);
            self.keys[key].members.insert(0, index);
        }
        self.end_dial(&permit);
        self.not_exclusive(key);
        self.count(key, |stats| stats.coalesced += 1);
        self.serve_places(key, now, effects);
        // The unit of the dial is free.
        self.settle(key, now, effects);
        Ok(())
    }

    /// Has the key that has `hash` and satisfies `is_key` served by none but the connections that are
    /// opened for it, until it joins another.
    pub fn part(&mut self, hash: u64, is_key: impl Fn(&K) -> bool) {
        let Some(key) = self.find(hash, is_key) else {
            return;
        };
        let Pool { keys, members, .. } = self;
        keys[key].members.retain(|&index| match members.get_mut(index) {
            Some(kept) if kept.key != key => {
                kept.aliases.retain(|&alias| alias != key);
                false
            }
            _ => true,
        });
        self.retire(key);
    }

    /// Hands the free places of all the keys of the shared connection at `index` to those who wait, in the
    /// order in which they came.
    #[cold]
    pub(super) fn serve_all_keys(
        &mut self,
        index: usize,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        let Some(kept) = self.members.get(index) else {
            return;
        };
        let mut keys: SmallVec<[usize; 8]> = kept.aliases.iter().copied().collect();
        keys.push(kept.key);
        loop {
            // A connection that is found to be gone may take a key along.
            keys.retain(|key| self.keys.contains(*key));
            let waiting = keys.iter().filter_map(|&key| Some((self.first_for_place(key)?, key)));
            let Some((_, key)) = waiting.min() else {
                return;
            };
            match self.serve_place(key, now, effects) {
                true => self.refresh_ready(key),
                false => keys.retain(|other| *other != key),
            }
        }
    }
}
