use super::idle::{Idle, IdleList, Stack};
use super::limits::Limits;
use super::stats::Stats;
use super::waiters::{Cancelled, Queue, WaiterId, Waiters};
use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::time::Instant;

/// One unit of a pool's limits. It must go back to the pool that gave it.
#[derive(Debug)]
#[must_use = "a permit that is not given back is lost to the limits"]
pub struct Permit {
    key: usize,
    stage: Stage,
    created: Instant,
    granted: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Dialling,
    /// For the first exchange of its connection.
    Opened,
    /// For a later one.
    Reused,
}

impl Permit {
    /// Whether its connection has served an exchange before.
    pub fn is_reused(&self) -> bool {
        self.stage == Stage::Reused
    }

    /// When its connection was opened; for a dial, when it was permitted.
    #[cfg(test)]
    pub fn created(&self) -> Instant {
        self.created
    }
}

/// What an exchange may do.
#[derive(Debug)]
#[must_use]
pub enum Grant<C> {
    /// Use this open connection.
    Lease(Permit, C),
    /// Open a connection.
    Dial(Permit),
}

/// The answer to [`Pool::acquire`].
#[derive(Debug)]
#[must_use]
pub enum Acquire<C> {
    /// Go ahead.
    Granted(Grant<C>),
    /// A limit binds. The waiter will appear in [`Effects::wake`] when it can be
    /// [claimed](Pool::claim).
    Wait(WaiterId),
}

/// Whether a released connection can serve another exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It stands between two exchanges.
    Reuse,
    /// It cannot, or must not, be used again.
    Close,
}

/// What the caller has to do once the pool is unlocked.
#[derive(Debug)]
pub struct Effects<C> {
    /// Waiters whose grant can be [claimed](Pool::claim) now.
    pub wake: SmallVec<[WaiterId; 2]>,
    /// Connections that left the pool: drop them.
    pub closed: Vec<C>,
}

impl<C> Default for Effects<C> {
    fn default() -> Self {
        Effects { wake: SmallVec::new(), closed: Vec::new() }
    }
}

impl<C> Effects<C> {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.wake.is_empty() && self.closed.is_empty()
    }
}

struct Entry<K> {
    key: K,
    hash: u64,
    idle: Stack,
    queue: Queue,
    /// The arrival number under which this key stands in [`Pool::ready`].
    ready: Option<u64>,
    stats: Stats,
}

/// Connections `C` by key `K`, as a pure machine: see the [module](super).
///
/// Looking up an idle connection takes a hash and an equality test from the caller, so that a hit
/// builds no key.
pub struct Pool<K, C> {
    limits: Limits,
    table: HashTable<usize>,
    keys: Slab<Entry<K>>,
    idle: IdleList<C>,
    waiters: Waiters<C>,
    /// Keys with a waiter and room under their own limit, by their first waiter's arrival. After
    /// each mutation it is empty unless the total limit binds and nothing is idle.
    ready: BTreeSet<(u64, usize)>,
    totals: Stats,
}

impl<K, C> Pool<K, C> {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        Pool {
            limits,
            table: HashTable::new(),
            keys: Slab::new(),
            idle: IdleList::new(),
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
        now: Instant,
        effects: &mut Effects<C>,
    ) -> Acquire<C> {
        let key = self.entry(hash, is_key, make_key);
        if let Some(lease) = self.lease_idle(key, now, effects) {
            return Acquire::Granted(lease);
        }
        if self.has_room_for(key) && self.make_room(effects) {
            return Acquire::Granted(self.permit_dial(key, now));
        }
        let waiter = self.waiters.push(&mut self.keys[key].queue, key);
        self.count(key, |stats| stats.waiting += 1);
        self.refresh_ready(key);
        Acquire::Wait(waiter)
    }

    /// Records that the dial of `permit` succeeded: its connection is in use from `now` on.
    pub fn opened(&mut self, permit: &mut Permit, now: Instant) {
        if permit.stage == Stage::Dialling {
            permit.stage = Stage::Opened;
            permit.created = now;
            self.count(permit.key, |stats| {
                stats.dialling -= 1;
                stats.in_use += 1;
            });
        }
    }

    /// Takes a connection back after its exchange.
    pub fn release(
        &mut self,
        mut permit: Permit,
        conn: C,
        verdict: Verdict,
        now: Instant,
        effects: &mut Effects<C>,
    ) {
        self.opened(&mut permit, now);
        let key = permit.key;
        self.count(key, |stats| stats.in_use -= 1);
        if verdict == Verdict::Close {
            effects.closed.push(conn);
        } else if self.limits.outlived(permit.created, now) {
            self.count(key, |stats| stats.expired += 1);
            effects.closed.push(conn);
        } else {
            self.hand_on(permit, conn, now, effects);
        }
        self.settle(key, now, effects);
    }

    /// Takes back a permit that has no connection: the dial failed, or the connection is gone.
    pub fn abandon(&mut self, permit: Permit, effects: &mut Effects<C>) {
        self.give_back(&permit);
        self.settle(permit.key, permit.granted, effects);
    }

    /// The leased connection of `permit` turned out dead before anything was sent on it: gives the
    /// next idle one, or leave to dial. The dead connection itself is the caller's to drop.
    pub fn stale(&mut self, permit: Permit, now: Instant, effects: &mut Effects<C>) -> Grant<C> {
        let key = permit.key;
        self.give_back(&permit);
        self.count(key, |stats| stats.stale += 1);
        match self.lease_idle(key, now, effects) {
            Some(lease) => lease,
            // The unit just given back is taken again: no waiter comes between.
            None => self.permit_dial(key, now),
        }
    }

    /// Takes what a woken waiter was granted. `None`: it has to wait on, or `waiter` is spent.
    pub fn claim(&mut self, waiter: WaiterId) -> Option<Grant<C>> {
        self.waiters.claim(waiter)
    }

    /// Forgets a waiter. If it had been granted something, that passes on to the next, as of the
    /// time of the grant.
    pub fn cancel(&mut self, waiter: WaiterId, effects: &mut Effects<C>) {
        let Some(key) = self.waiters.key_of(waiter) else {
            return;
        };
        match self.waiters.cancel(&mut self.keys[key].queue, waiter) {
            Some(Cancelled::Queued) => {
                self.count(key, |stats| stats.waiting -= 1);
                self.refresh_ready(key);
                self.retire(key);
            }
            Some(Cancelled::Granted(Grant::Lease(permit, conn))) => {
                let granted = permit.granted;
                self.release(permit, conn, Verdict::Reuse, granted, effects);
            }
            Some(Cancelled::Granted(Grant::Dial(permit))) => self.abandon(permit, effects),
            None => {}
        }
    }

    /// Closes the connections that have been idle for too long. Costs next to nothing when there are
    /// none.
    pub fn expire_idle(&mut self, now: Instant, effects: &mut Effects<C>) {
        while let Some((index, idle)) = self.idle.oldest() {
            if !self.limits.idled_out(idle.since, now) {
                break;
            }
            self.expire_one(index, idle.key, effects);
        }
    }

    /// Closes the connections that have been idle, or alive, for too long. Linear in the number of
    /// idle ones when there is a `max_lifetime`.
    pub fn expire(&mut self, now: Instant, effects: &mut Effects<C>) {
        self.expire_idle(now, effects);
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
    pub fn close_idle(&mut self, effects: &mut Effects<C>) {
        while let Some((index, idle)) = self.idle.oldest() {
            let key = idle.key;
            effects.closed.push(self.remove_idle(index, key).conn);
            self.retire(key);
        }
    }

    /// Counts over all keys, since the pool was made.
    pub fn stats(&self) -> Stats {
        self.totals
    }

    /// Counts for each key the pool knows. A key is known, and its counts run, while it has a
    /// connection or a waiter.
    pub fn key_stats(&self) -> impl Iterator<Item = (&K, Stats)> {
        self.keys.iter().map(|(_, entry)| (&entry.key, entry.stats))
    }

    fn entry(
        &mut self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
    ) -> usize {
        let Pool { table, keys, .. } = self;
        let same = |&index: &usize| keys[index].hash == hash && is_key(&keys[index].key);
        if let Some(&index) = table.find(hash, same) {
            return index;
        }
        let index = keys.insert(Entry {
            key: make_key(),
            hash,
            idle: Stack::default(),
            queue: Queue::default(),
            ready: None,
            stats: Stats::default(),
        });
        table.insert_unique(hash, index, |&index| keys[index].hash);
        index
    }

    /// Forgets a key that has nothing left: the table is bounded by what is alive.
    fn retire(&mut self, key: usize) {
        let entry = &self.keys[key];
        if entry.stats.open() > 0 || !entry.queue.is_empty() {
            return;
        }
        if let Ok(slot) = self.table.find_entry(entry.hash, |&index| index == key) {
            slot.remove();
        }
        self.keys.remove(key);
    }

    fn count(&mut self, key: usize, change: impl Fn(&mut Stats)) {
        change(&mut self.totals);
        change(&mut self.keys[key].stats);
    }

    fn give_back(&mut self, permit: &Permit) {
        self.count(permit.key, |stats| match permit.stage {
            Stage::Dialling => stats.dialling -= 1,
            Stage::Opened | Stage::Reused => stats.in_use -= 1,
        });
    }

    fn has_room_for(&self, key: usize) -> bool {
        self.limits.per_key.is_none_or(|max| self.keys[key].stats.open() < max.get())
    }

    /// Whether one more connection fits under the total limit, closing the oldest idle one if
    /// that is what it takes.
    fn make_room(&mut self, effects: &mut Effects<C>) -> bool {
        if self.limits.total.is_none_or(|max| self.totals.open() < max.get()) {
            return true;
        }
        let Some((index, idle)) = self.idle.oldest() else {
            return false;
        };
        let key = idle.key;
        self.evict(index, key, effects);
        self.refresh_ready(key);
        self.retire(key);
        true
    }

    fn permit_dial(&mut self, key: usize, now: Instant) -> Grant<C> {
        self.count(key, |stats| {
            stats.dialling += 1;
            stats.misses += 1;
        });
        let stage = Stage::Dialling;
        Grant::Dial(Permit { key, stage, created: now, granted: now })
    }

    fn permit_lease(&mut self, key: usize, conn: C, created: Instant, now: Instant) -> Grant<C> {
        self.count(key, |stats| {
            stats.in_use += 1;
            stats.hits += 1;
        });
        Grant::Lease(Permit { key, stage: Stage::Reused, created, granted: now }, conn)
    }

    /// The newest idle connection of `key` that has not expired; those that have are closed.
    fn lease_idle(
        &mut self,
        key: usize,
        now: Instant,
        effects: &mut Effects<C>,
    ) -> Option<Grant<C>> {
        while let Some(index) = self.keys[key].idle.top() {
            let idle = self.remove_idle(index, key);
            if !self.limits.idled_out(idle.since, now) && !self.limits.outlived(idle.created, now) {
                return Some(self.permit_lease(key, idle.conn, idle.created, now));
            }
            self.count(key, |stats| stats.expired += 1);
            effects.closed.push(idle.conn);
        }
        None
    }

    /// Gives a released connection to the first waiter of its key, or keeps it.
    fn hand_on(&mut self, permit: Permit, conn: C, now: Instant, effects: &mut Effects<C>) {
        let Permit { key, created, .. } = permit;
        let Some(head) = self.waiters.head_seq(&self.keys[key].queue) else {
            return self.park(key, conn, created, now, effects);
        };
        if self.ready.first().is_some_and(|&(older, _)| older < head) {
            // The total limit binds, and the oldest waiter is of another key: the unit is its.
            self.count(key, |stats| stats.evictions += 1);
            effects.closed.push(conn);
            return;
        }
        let lease = self.permit_lease(key, conn, created, now);
        self.grant_head(key, lease, effects);
    }

    fn park(
        &mut self,
        key: usize,
        conn: C,
        created: Instant,
        now: Instant,
        effects: &mut Effects<C>,
    ) {
        self.idle.push(&mut self.keys[key].idle, Idle { conn, key, created, since: now });
        self.count(key, |stats| stats.idle += 1);
        let entry = &self.keys[key];
        if entry.stats.idle > self.limits.idle_per_key
            && let Some(oldest) = entry.idle.bottom()
        {
            self.evict(oldest, key, effects);
        }
    }

    fn remove_idle(&mut self, index: usize, key: usize) -> Idle<C> {
        self.count(key, |stats| stats.idle -= 1);
        self.idle.remove(&mut self.keys[key].idle, index)
    }

    fn evict(&mut self, index: usize, key: usize, effects: &mut Effects<C>) {
        let idle = self.remove_idle(index, key);
        self.count(key, |stats| stats.evictions += 1);
        effects.closed.push(idle.conn);
    }

    fn expire_one(&mut self, index: usize, key: usize, effects: &mut Effects<C>) {
        let idle = self.remove_idle(index, key);
        self.count(key, |stats| stats.expired += 1);
        effects.closed.push(idle.conn);
        self.retire(key);
    }

    fn grant_head(&mut self, key: usize, grant: Grant<C>, effects: &mut Effects<C>) {
        match self.waiters.grant_head(&mut self.keys[key].queue, grant) {
            Ok(waiter) => {
                self.count(key, |stats| stats.waiting -= 1);
                effects.wake.push(waiter);
            }
            Err(Grant::Lease(permit, conn)) => {
                self.give_back(&permit);
                effects.closed.push(conn);
            }
            Err(Grant::Dial(permit)) => self.give_back(&permit),
        }
    }

    /// Restores the invariant of `ready` after `key` gained room, or lost its first waiter.
    fn settle(&mut self, key: usize, now: Instant, effects: &mut Effects<C>) {
        self.refresh_ready(key);
        while let Some(&(_, next)) = self.ready.first() {
            if !self.make_room(effects) {
                break;
            }
            let dial = self.permit_dial(next, now);
            self.grant_head(next, dial, effects);
            self.refresh_ready(next);
        }
        if self.keys.contains(key) {
            self.retire(key);
        }
    }

    fn refresh_ready(&mut self, key: usize) {
        let entry = &self.keys[key];
        let head = self.waiters.head_seq(&entry.queue).filter(|_| self.has_room_for(key));
        if head == entry.ready {
            return;
        }
        if let Some(seq) = entry.ready {
            self.ready.remove(&(seq, key));
        }
        if let Some(seq) = head {
            self.ready.insert((seq, key));
        }
        self.keys[key].ready = head;
    }
}
