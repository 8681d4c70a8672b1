use super::grant::{Acquire, Effects, Grant, Left, Permit, Stage, Verdict};
use super::idle::{IdleList, Stack};
use super::limits::Limits;
use super::members::{Expects, Members, Shareable};
use super::stats::Stats;
use super::waiters::{Cancelled, First, Queues, WaiterId, Waiters};
use hashbrown::HashTable;
use slab::Slab;
use std::collections::BTreeSet;
use std::time::Instant;

pub(super) struct Entry<K> {
    pub(super) key: K,
    hash: u64,
    pub(super) idle: Stack,
    /// The shared connections that serve it, in the order in which they are asked for a place: its own, and
    /// [others'](super::aliases).
    pub(super) members: Vec<usize>,
    queues: Queues,
    /// The arrival number under which this key stands in [`Pool::ready`].
    ready: Option<u64>,
    /// Dials under way that may bring a shared connection.
    pub(super) sharing: usize,
    /// Places granted to waiters who have not claimed them.
    promised: usize,
    /// A dial that might have brought a shared connection brought an exclusive one.
    pub(super) exclusive: bool,
    /// A shared connection counts as in use: whether one is idle is asked when it matters.
    pub(super) stats: Stats,
}

impl<K> Entry<K> {
    fn is_spent(&self) -> bool {
        self.stats.open() == 0
            && self.promised == 0
            && self.queues.is_empty()
            && self.members.is_empty()
    }
}

/// Connections by key `K`, as a pure machine: see the [module](super). `C` carry one exchange at a
/// time, `S` many.
///
/// Looking up an open connection takes a hash and an equality test from the caller, so that a hit
/// builds no key.
pub struct Pool<K, C, S> {
    pub(super) limits: Limits,
    table: HashTable<usize>,
    pub(super) keys: Slab<Entry<K>>,
    pub(super) idle: IdleList<C>,
    pub(super) members: Members<S>,
    waiters: Waiters<C, S>,
    /// Keys with a waiter that may dial and room under their own limit, by that waiter's arrival.
    /// After each mutation it is empty unless the total limit binds and nothing is idle.
    pub(super) ready: BTreeSet<(u64, usize)>,
    totals: Stats,
}

impl<K, C, S: Shareable> Pool<K, C, S> {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        Pool {
            limits,
            table: HashTable::new(),
            keys: Slab::new(),
            idle: IdleList::new(),
            members: Members::new(),
            waiters: Waiters::new(),
            ready: BTreeSet::new(),
            totals: Stats::default(),
        }
    }

    /// The limits it was made with.
    #[cfg(test)]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Asks for a connection for the key that has `hash` and satisfies `is_key`; `make_key` is
    /// called if the pool does not know it. `hash` must be the same for equal keys.
    ///
    /// A leased connection may have died while idle; only its owner can look. If it has, say
    /// [`stale`](Self::stale).
    pub fn acquire(
        &mut self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
        expects: Expects,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Acquire<C, S> {
        self.expire_idle(now, effects);
        let key = self.entry(hash, is_key, make_key);
        let left = effects.left.len();
        if expects.may_share()
            && !self.members.is_empty()
            && let Some(conn) = self.place_for_newcomer(key, now, effects)
        {
            if effects.left.len() > left {
                self.settle(key, now, effects);
            }
            return Acquire::Granted(Grant::Shared(conn));
        }
        if expects != Expects::Shared
            && let Some(lease) = self.lease_idle(key, expects, now, effects)
        {
            if effects.left.len() > left {
                self.settle(key, now, effects);
            }
            return Acquire::Granted(lease);
        }
        // What left may owe its unit to somebody who waits.
        if effects.left.len() == left && self.may_dial_at_once(key, expects) {
            return Acquire::Granted(self.permit_dial(key, expects, now));
        }
        self.queue(key, expects, now, effects)
    }

    /// The shared connections of a key.
    pub fn shared_of(&self, hash: u64, is_key: impl Fn(&K) -> bool) -> impl Iterator<Item = &S> {
        let entry = self.find(hash, is_key).map(|key| &self.keys[key]);
        let members = entry.into_iter().flat_map(|entry| &entry.members);
        members.filter_map(|&index| self.members.get(index)).map(|kept| &kept.conn)
    }

    /// A place in the queue; unless, in its turn, the newcomer can be served from what is idle.
    #[cold]
    fn queue(
        &mut self,
        key: usize,
        expects: Expects,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Acquire<C, S> {
        let waiter = self.waiters.push(&mut self.keys[key].queues, key, expects);
        self.count(key, |stats| stats.waiting += 1);
        effects.waits = true;
        self.settle(key, now, effects);
        match self.claim(waiter) {
            Some(grant) => {
                effects.wake.retain(|woken| *woken != waiter);
                Acquire::Granted(grant)
            }
            None => Acquire::Wait { waiter, look_again: !self.members.is_empty() },
        }
    }

    /// Records that the dial of `permit` succeeded, with an exclusive connection: it is in use from
    /// `now` on.
    pub fn opened(&mut self, permit: &mut Permit, now: Instant, effects: &mut Effects<C, S>) {
        if permit.stage != Stage::Dialling {
            return;
        }
        self.end_dial(permit);
        permit.stage = Stage::Opened;
        permit.created = now;
        self.count(permit.key, |stats| stats.in_use += 1);
        if permit.expects.may_share() {
            self.keys[permit.key].exclusive = true;
            self.settle(permit.key, now, effects);
        }
    }

    /// Takes a connection back after its exchange.
    pub fn release(
        &mut self,
        mut permit: Permit,
        conn: C,
        verdict: Verdict,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        self.opened(&mut permit, now, effects);
        let key = permit.key;
        self.count(key, |stats| stats.in_use -= 1);
        if verdict == Verdict::Close {
            effects.left.push(Left::Exclusive(conn));
        } else if self.limits.outlived(permit.created, now) {
            self.count(key, |stats| stats.expired += 1);
            effects.left.push(Left::Exclusive(conn));
        } else {
            self.hand_on(permit, conn, now, effects);
        }
        self.settle(key, now, effects);
    }

    /// Takes back a permit that has no connection: the dial failed, or the connection is gone. Who
    /// dials instead does so as of when the permit's connection was opened, or its dial permitted.
    pub fn abandon(&mut self, permit: Permit, effects: &mut Effects<C, S>) {
        self.give_back(&permit);
        self.settle(permit.key, permit.created, effects);
    }

    /// The leased connection of `permit` turned out dead before anything was sent on it: gives the
    /// next idle one, or leave to dial. The dead connection itself is the caller's to drop.
    pub fn stale(
        &mut self,
        permit: Permit,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) -> Grant<C, S> {
        let key = permit.key;
        let expects = permit.expects;
        self.expire_idle(now, effects);
        self.give_back(&permit);
        self.count(key, |stats| stats.stale += 1);
        match self.lease_idle(key, expects, now, effects) {
            Some(lease) => lease,
            // The unit just given back is taken again: no waiter comes between.
            None => self.permit_dial(key, expects, now),
        }
    }

    /// Takes what a woken waiter was granted. `None`: it has to wait on, or `waiter` is spent.
    pub fn claim(&mut self, waiter: WaiterId) -> Option<Grant<C, S>> {
        let key = self.waiters.key_of(waiter)?;
        let grant = self.waiters.claim(waiter)?;
        if let Grant::Shared(_) = grant {
            self.keys[key].promised -= 1;
            self.retire(key);
        }
        Some(grant)
    }

    /// Looks again whether `waiter`, which was just told to wait, can be served. Due once
    /// whoever uses a shared connection can see that [somebody waits](Self::wants_news): what he
    /// freed before, he told nobody.
    pub fn look_again(&mut self, waiter: WaiterId, now: Instant, effects: &mut Effects<C, S>) {
        if let Some(key) = self.waiters.key_of(waiter) {
            self.serve_places(key, now, effects);
            self.settle(key, now, effects);
        }
    }

    /// Forgets a waiter. If it had been granted something, that passes on to the next, as of the
    /// time of the grant.
    pub fn cancel(&mut self, waiter: WaiterId, effects: &mut Effects<C, S>) {
        let Some(key) = self.waiters.key_of(waiter) else {
            return;
        };
        match self.waiters.cancel(&mut self.keys[key].queues, waiter) {
            Some(Cancelled::Queued) => {
                self.count(key, |stats| stats.waiting -= 1);
                effects.waits = true;
                self.refresh_ready(key);
                self.retire(key);
            }
            Some(Cancelled::Granted(Grant::Lease(permit, conn), at)) => {
                self.release(permit, conn, Verdict::Reuse, at, effects);
            }
            Some(Cancelled::Granted(Grant::Shared(conn), at)) => {
                self.keys[key].promised -= 1;
                self.pass_on(key, conn, at, effects);
                self.retire(key);
            }
            Some(Cancelled::Granted(Grant::Dial(permit), _)) => self.abandon(permit, effects),
            None => {}
        }
    }

    /// Whether whoever uses a shared connection must say that a place is free, or the connection
    /// idle: somebody waits, or the idle ones are counted.
    pub fn wants_news(&self) -> bool {
        self.totals.waiting > 0 || self.limits.idle_per_key != usize::MAX
    }

    /// Counts over all keys, since the pool was made. Asks each shared connection whether it is
    /// idle.
    pub fn stats(&self) -> Stats {
        let idle = self.members.iter().filter(|(_, kept)| kept.conn.idle_since().is_some());
        self.totals.with_idle(idle.count())
    }

    /// Counts for each key the pool knows. A key is known, and its counts run, while it has a
    /// connection or a waiter, or is served by another's connection, which counts there.
    pub fn key_stats(&self) -> impl Iterator<Item = (&K, Stats)> {
        self.keys
            .iter()
            .map(|(key, entry)| (&entry.key, entry.stats.with_idle(self.idle_members(key))))
    }

    pub(super) fn entry(
        &mut self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
    ) -> usize {
        if let Some(index) = self.find(hash, is_key) {
            return index;
        }
        let Pool { table, keys, .. } = self;
        let index = keys.insert(Entry {
            key: make_key(),
            hash,
            idle: Stack::default(),
            members: Vec::new(),
            queues: Queues::default(),
            ready: None,
            sharing: 0,
            promised: 0,
            exclusive: false,
            stats: Stats::default(),
        });
        table.insert_unique(hash, index, |&index| keys[index].hash);
        index
    }

    pub(super) fn find(&self, hash: u64, is_key: impl Fn(&K) -> bool) -> Option<usize> {
        let Pool { table, keys, .. } = self;
        let same = |&index: &usize| keys[index].hash == hash && is_key(&keys[index].key);
        table.find(hash, same).copied()
    }

    /// Forgets a key that has nothing left: the table is bounded by what is alive. Nothing, if it
    /// is forgotten.
    #[inline]
    pub(super) fn retire(&mut self, key: usize) {
        let spent = self.keys.get(key).is_some_and(Entry::is_spent);
        if spent {
            self.forget(key);
        }
    }

    #[cold]
    fn forget(&mut self, key: usize) {
        let hash = self.keys[key].hash;
        if let Ok(slot) = self.table.find_entry(hash, |&index| index == key) {
            slot.remove();
        }
        self.keys.remove(key);
    }

    pub(super) fn count(&mut self, key: usize, change: impl Fn(&mut Stats)) {
        change(&mut self.totals);
        change(&mut self.keys[key].stats);
    }

    fn give_back(&mut self, permit: &Permit) {
        match permit.stage {
            Stage::Dialling => self.end_dial(permit),
            Stage::Opened | Stage::Reused => self.count(permit.key, |stats| stats.in_use -= 1),
        }
    }

    /// Counts the dial of `permit` as over.
    pub(super) fn end_dial(&mut self, permit: &Permit) {
        self.count(permit.key, |stats| stats.dialling -= 1);
        self.keys[permit.key].sharing -= usize::from(permit.is_awaited());
    }

    /// A shared connection opened: the key no longer counts as exclusive.
    pub(super) fn not_exclusive(&mut self, key: usize) {
        self.keys[key].exclusive = false;
    }

    /// Whether calls that can use a shared connection leave dialling to the dial that is under way.
    fn awaits_dial(&self, key: usize) -> bool {
        let entry = &self.keys[key];
        entry.sharing > 0 && !entry.exclusive
    }

    /// Whether a newcomer may dial, without a look at anybody else: no limit binds.
    fn may_dial_at_once(&self, key: usize, expects: Expects) -> bool {
        let awaits = expects.may_share() && self.awaits_dial(key);
        !awaits && self.ready.is_empty() && !self.key_is_full(key) && !self.is_full()
    }

    pub(super) fn key_is_full(&self, key: usize) -> bool {
        self.limits.per_key.is_some_and(|max| self.keys[key].stats.open() >= max.get())
    }

    pub(super) fn is_full(&self) -> bool {
        self.limits.total.is_some_and(|max| self.totals.open() >= max.get())
    }

    /// Whether one more connection of `key`, which has a waiter that may dial, fits under its own
    /// limit, in place of an idle one of the other kind if need be.
    fn has_room_for(&self, key: usize) -> bool {
        !self.key_is_full(key) || self.oldest_idle_of(key).is_some()
    }

    /// Whether one more connection of `key` fits under the limits, closing the oldest idle one if
    /// that is what it takes.
    fn make_room(&mut self, key: usize, effects: &mut Effects<C, S>) -> bool {
        let oldest = match (self.key_is_full(key), self.is_full()) {
            (false, false) => return true,
            (true, _) => self.oldest_idle_of(key),
            (false, true) => self.oldest_idle(),
        };
        let Some(oldest) = oldest else {
            return false;
        };
        let of = self.evict(oldest, effects);
        if of != key {
            self.refresh_ready(of);
            self.retire(of);
        }
        true
    }

    fn permit_dial(&mut self, key: usize, expects: Expects, now: Instant) -> Grant<C, S> {
        self.count(key, |stats| {
            stats.dialling += 1;
            stats.misses += 1;
        });
        self.keys[key].sharing += usize::from(expects.may_share());
        let stage = Stage::Dialling;
        Grant::Dial(Permit { key, stage, expects, spare: false, open: 0, created: now })
    }

    /// Gives a released connection to the first waiter of its key that can use it, or keeps it.
    pub(super) fn hand_on(
        &mut self,
        permit: Permit,
        conn: C,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        let Permit { key, created, .. } = permit;
        let Some(first) = self.first_for_lease(key) else {
            return self.park(key, conn, created, now, effects);
        };
        if self.unit_is_owed_before(key, first) {
            self.count(key, |stats| stats.evictions += 1);
            effects.left.push(Left::Exclusive(conn));
            return;
        }
        let expects = self.waiters.expects(first).unwrap_or(permit.expects);
        self.count(key, |stats| {
            stats.in_use += 1;
            stats.hits += 1;
        });
        let open = self.keys[key].stats.open();
        let lease = Grant::Lease(Permit::again(key, expects, open, created), conn);
        self.grant(key, first, lease, now, effects);
    }

    /// Whether the unit of a connection of `key` goes to somebody who came before `first` and cannot
    /// use the connection: of another key, when the total limit binds, or of this one, when he needs
    /// a shared one.
    fn unit_is_owed_before(&self, key: usize, first: First) -> bool {
        self.ready.first().is_some_and(|&(older, _)| older < first.seq)
            || !self.awaits_dial(key)
                && (self.waiters.first_shared(&self.keys[key].queues))
                    .is_some_and(|older| older.seq < first.seq)
    }

    /// Gives `grant` to `first`, a waiter of `key`.
    pub(super) fn grant(
        &mut self,
        key: usize,
        first: First,
        grant: Grant<C, S>,
        now: Instant,
        effects: &mut Effects<C, S>,
    ) {
        let place = matches!(grant, Grant::Shared(_));
        match self.waiters.grant(&mut self.keys[key].queues, first, grant, now) {
            Ok(waiter) => {
                self.count(key, |stats| stats.waiting -= 1);
                effects.waits = true;
                self.keys[key].promised += usize::from(place);
                effects.wake.push(waiter);
            }
            Err(Grant::Lease(permit, conn)) => {
                self.give_back(&permit);
                effects.left.push(Left::Exclusive(conn));
            }
            Err(Grant::Shared(conn)) => effects.left.push(Left::Place(conn)),
            Err(Grant::Dial(permit)) => self.give_back(&permit),
        }
    }

    /// The first waiter of `key` that can use an exclusive connection.
    fn first_for_lease(&self, key: usize) -> Option<First> {
        let entry = &self.keys[key];
        match entry.stats.waiting {
            0 => None,
            _ => self.waiters.first_for_lease(&entry.queues),
        }
    }

    /// The first waiter of `key` that can use a place on a shared connection.
    pub(super) fn first_for_place(&self, key: usize) -> Option<First> {
        let entry = &self.keys[key];
        match entry.stats.waiting {
            0 => None,
            _ => self.waiters.first_for_place(&entry.queues),
        }
    }

    /// The first waiter of `key` that may dial if the limits allow.
    fn first_for_dial(&self, key: usize) -> Option<First> {
        let entry = &self.keys[key];
        match entry.stats.waiting {
            0 => None,
            _ if self.awaits_dial(key) => self.waiters.first_exclusive(&entry.queues),
            _ => self.waiters.first(&entry.queues),
        }
    }

    /// Restores the invariant of `ready` after `key` gained room, or lost its first waiter.
    pub(super) fn settle(&mut self, key: usize, now: Instant, effects: &mut Effects<C, S>) {
        if self.totals.waiting > 0 || !self.ready.is_empty() {
            self.refresh_ready(key);
            self.let_ready_dial(now, effects);
        }
        self.retire(key);
    }

    /// Lets those dial for whom there is room, in the order of their arrival.
    fn let_ready_dial(&mut self, now: Instant, effects: &mut Effects<C, S>) {
        while let Some(&(_, key)) = self.ready.first() {
            if !self.make_room(key, effects) {
                break;
            }
            self.let_dial(key, now, effects);
            self.refresh_ready(key);
        }
    }

    /// Lets the first waiter of `key` that may dial do so.
    fn let_dial(&mut self, key: usize, now: Instant, effects: &mut Effects<C, S>) {
        if let Some(first) = self.first_for_dial(key)
            && let Some(expects) = self.waiters.expects(first)
        {
            let dial = self.permit_dial(key, expects, now);
            self.grant(key, first, dial, now, effects);
        }
    }

    /// Restores what `ready` has of `key`. Nothing, if it is forgotten.
    pub(super) fn refresh_ready(&mut self, key: usize) {
        if !self.keys.contains(key) {
            return;
        }
        let first = self.first_for_dial(key).filter(|_| self.has_room_for(key));
        let (seq, entry) = (first.map(|first| first.seq), &self.keys[key]);
        if seq == entry.ready {
            return;
        }
        if let Some(seq) = entry.ready {
            self.ready.remove(&(seq, key));
        }
        if let Some(seq) = seq {
            self.ready.insert((seq, key));
        }
        self.keys[key].ready = seq;
    }
}
