//! A naive model of the pool's rules: plain lists, scanned. [`rig`] holds the machine against it.

mod rig;

use crate::pool::{Expects, Limits};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

#[derive(Debug, Clone)]
enum Op {
    Acquire(u8, Expects),
    /// Dials ahead, until so many are open.
    Ahead(u8, Expects, usize),
    /// The one at this place brings an exclusive connection, or one with so many places.
    Stand(usize),
    StandShared(usize, usize),
    /// The dial or exchange at this place, counted modulo those there are.
    Open(usize),
    /// A dial brings a connection with so many places.
    Share(usize, usize),
    /// An exchange on a shared connection ends.
    Finish(usize),
    /// A shared connection takes no more exchanges, and the pool has not heard of it.
    Die(usize),
    /// The pool hears of it.
    Gone(usize),
    /// The dial at this place finds that the shared connection at that one serves its key as well.
    Join(usize, usize),
    Part(u8),
    Release(usize),
    Close(usize),
    Stale(usize),
    Cancel(usize),
    Claim(usize),
    Expire,
    CloseIdle,
    Sleep(u64),
}

fn expects() -> impl Strategy<Value = Expects> {
    prop_oneof![1 => Just(Expects::Exclusive), 2 => Just(Expects::Either), 1 => Just(Expects::Shared)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..4u8, expects()).prop_map(|(key, expects)| Op::Acquire(key, expects)),
        2 => (0..4u8, expects(), 0..5usize).prop_map(|(key, e, open)| Op::Ahead(key, e, open)),
        2 => any::<usize>().prop_map(Op::Stand),
        2 => (any::<usize>(), 0..4usize).prop_map(|(from, max)| Op::StandShared(from, max)),
        3 => any::<usize>().prop_map(Op::Open),
        3 => (any::<usize>(), 0..4usize).prop_map(|(from, max)| Op::Share(from, max)),
        4 => any::<usize>().prop_map(Op::Finish),
        1 => any::<usize>().prop_map(Op::Die),
        1 => any::<usize>().prop_map(Op::Gone),
        3 => any::<(usize, usize)>().prop_map(|(from, to)| Op::Join(from, to)),
        1 => (0..4u8).prop_map(Op::Part),
        4 => any::<usize>().prop_map(Op::Release),
        2 => any::<usize>().prop_map(Op::Close),
        1 => any::<usize>().prop_map(Op::Stale),
        2 => any::<usize>().prop_map(Op::Cancel),
        4 => any::<usize>().prop_map(Op::Claim),
        1 => Just(Op::Expire),
        1 => Just(Op::CloseIdle),
        3 => (0..40u64).prop_map(Op::Sleep),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle {
    key: u8,
    conn: u32,
    created: Instant,
    since: Instant,
}

/// A shared connection that the pool keeps.
#[derive(Debug, Clone, Copy)]
struct Kept {
    key: u8,
    conn: u32,
    created: Instant,
    since: Instant,
    taken: usize,
    max: usize,
    gone: bool,
}

/// What a model or the machine may give: a connection, a place on one, or leave to dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Lease(u32),
    Place(u32),
    Dial(Expects),
    /// Leave to dial ahead, beside a dial that others wait for if it is spare.
    Ahead {
        expects: Expects,
        spare: bool,
    },
}

impl Given {
    fn is_dial(&self) -> bool {
        matches!(self, Given::Dial(_) | Given::Ahead { .. })
    }

    /// A dial ahead, as one that nobody waits for if it is spare.
    fn hope(expects: Expects, spare: bool) -> Expects {
        if spare { Expects::Exclusive } else { expects }
    }
}

struct Model {
    limits: Limits,
    idle: Vec<Idle>,
    shared: Vec<Kept>,
    /// The shared connections that serve a key, in the order in which they are asked.
    serving: BTreeMap<u8, Vec<u32>>,
    /// Units out of the pool, by key: dialling, in use, or granted and not yet claimed.
    lent: BTreeMap<u8, usize>,
    /// Dials under way that may bring a shared connection, by key.
    sharing: BTreeMap<u8, usize>,
    exclusive: BTreeSet<u8>,
    queue: Vec<(u64, u8, Expects)>,
    granted: BTreeMap<u64, (u8, Given)>,
    closed: Vec<u32>,
    woken: Vec<u64>,
}

impl Model {
    fn new(limits: Limits) -> Self {
        Model {
            limits,
            idle: Vec::new(),
            shared: Vec::new(),
            serving: BTreeMap::new(),
            lent: BTreeMap::new(),
            sharing: BTreeMap::new(),
            exclusive: BTreeSet::new(),
            queue: Vec::new(),
            granted: BTreeMap::new(),
            closed: Vec::new(),
            woken: Vec::new(),
        }
    }

    fn idle_in(&self, key: u8) -> usize {
        let shared = self.shared.iter().filter(|kept| kept.key == key && kept.taken == 0);
        self.idle.iter().filter(|idle| idle.key == key).count() + shared.count()
    }

    fn open(&self, key: u8) -> usize {
        let idle = self.idle.iter().filter(|idle| idle.key == key).count();
        let shared = self.shared.iter().filter(|kept| kept.key == key).count();
        self.lent.get(&key).copied().unwrap_or(0) + idle + shared
    }

    fn open_total(&self) -> usize {
        self.lent.values().sum::<usize>() + self.idle.len() + self.shared.len()
    }

    fn promised(&self, key: u8) -> usize {
        let places = self.granted.values();
        places.filter(|(of, given)| *of == key && matches!(given, Given::Place(_))).count()
    }

    fn over(&self, created: Instant, since: Option<Instant>, now: Instant) -> bool {
        since.is_some_and(|since| self.limits.idle_timeout.is_some_and(|max| now - since >= max))
            || self.limits.max_lifetime.is_some_and(|max| now - created >= max)
    }

    fn dead(&self, idle: &Idle, now: Instant) -> bool {
        self.over(idle.created, Some(idle.since), now)
    }

    fn expired(&self, kept: &Kept, now: Instant) -> bool {
        self.over(kept.created, (kept.taken == 0).then_some(kept.since), now)
    }

    fn key_is_full(&self, key: u8) -> bool {
        self.limits.per_key.is_some_and(|max| self.open(key) >= max.get())
    }

    fn room_for(&self, key: u8) -> bool {
        !self.key_is_full(key) || self.idle_in(key) > 0
    }

    fn may_dial(&self, key: u8, expects: Expects) -> bool {
        expects == Expects::Exclusive
            || self.sharing.get(&key).is_none_or(|&dials| dials == 0)
            || self.exclusive.contains(&key)
    }

    /// Closes the longest idle connection, of `key` if given.
    fn evict(&mut self, key: Option<u8>) -> bool {
        let of = |other: u8| key.is_none_or(|key| key == other);
        let exclusive = (self.idle.iter().enumerate())
            .find(|(_, idle)| of(idle.key))
            .map(|(at, idle)| (idle.since, 0, at));
        let shared = (self.shared.iter().enumerate())
            .filter(|(_, kept)| of(kept.key) && kept.taken == 0)
            .map(|(at, kept)| (kept.since, kept.conn, at))
            .min();
        match exclusive.into_iter().chain(shared).min() {
            None => return false,
            Some((_, 0, at)) => self.closed.push(self.idle.remove(at).conn),
            Some((.., at)) => self.close_shared(at),
        }
        true
    }

    fn close_shared(&mut self, at: usize) {
        self.closed.push(self.shared.remove(at).conn);
        self.forget_closed();
    }

    /// What left serves no key.
    fn forget_closed(&mut self) {
        let Model { shared, serving, .. } = self;
        for conns in serving.values_mut() {
            conns.retain(|conn| shared.iter().any(|kept| kept.conn == *conn));
        }
    }

    fn serves(&self, key: u8) -> bool {
        self.serving.get(&key).is_some_and(|conns| !conns.is_empty())
    }

    fn make_room(&mut self, key: u8) -> bool {
        if self.key_is_full(key) {
            return self.evict(Some(key));
        }
        self.limits.total.is_none_or(|max| self.open_total() < max.get()) || self.evict(None)
    }

    fn trim(&mut self, key: u8) {
        while self.idle_in(key) > self.limits.idle_per_key {
            self.evict(Some(key));
        }
    }

    fn lend(&mut self, key: u8) {
        *self.lent.entry(key).or_default() += 1;
    }

    fn lend_dial(&mut self, key: u8, expects: Expects) -> Given {
        self.lend(key);
        *self.sharing.entry(key).or_default() += usize::from(expects != Expects::Exclusive);
        Given::Dial(expects)
    }

    fn expire_idle(&mut self, now: Instant) {
        let idle = std::mem::take(&mut self.idle);
        let over =
            |idle: &Idle| self.limits.idle_timeout.is_some_and(|max| now - idle.since >= max);
        let (dead, live): (Vec<_>, _) = idle.into_iter().partition(over);
        self.idle = live;
        self.closed.extend(dead.iter().map(|idle| idle.conn));
    }

    fn take_idle(&mut self, key: u8, now: Instant) -> Option<Idle> {
        while let Some(at) = self.idle.iter().rposition(|idle| idle.key == key) {
            let idle = self.idle.remove(at);
            if !self.dead(&idle, now) {
                self.lend(key);
                return Some(idle);
            }
            self.closed.push(idle.conn);
        }
        None
    }

    fn take_place(&mut self, key: u8, now: Instant) -> Option<u32> {
        for conn in self.serving.get(&key).cloned().unwrap_or_default() {
            let at = self.shared.iter().position(|kept| kept.conn == conn).unwrap();
            let kept = self.shared[at];
            if kept.gone || self.expired(&kept, now) {
                self.close_shared(at);
            } else if kept.taken < kept.max {
                self.shared[at].taken += 1;
                let conns = self.serving.get_mut(&key).unwrap();
                let at = conns.iter().position(|&other| other == conn).unwrap();
                conns.swap(0, at);
                return Some(conn);
            }
        }
        None
    }

    fn first_for_place(&self, key: u8) -> Option<usize> {
        (self.queue.iter()).position(|&(_, of, e)| of == key && e != Expects::Exclusive)
    }

    fn grant(&mut self, at: usize, given: Given) {
        let (waiter, key, _) = self.queue.remove(at);
        self.granted.insert(waiter, (key, given));
        self.woken.push(waiter);
    }

    fn serve_places(&mut self, key: u8, now: Instant) {
        while let Some(at) = self.first_for_place(key) {
            let Some(conn) = self.take_place(key, now) else { return };
            self.grant(at, Given::Place(conn));
        }
    }

    fn acquire(&mut self, waiter: u64, key: u8, expects: Expects, now: Instant) -> Option<Given> {
        self.expire_idle(now);
        self.forget();
        if expects != Expects::Exclusive {
            if self.first_for_place(key).is_some() {
                self.serve_places(key, now);
            }
            if self.first_for_place(key).is_none()
                && let Some(conn) = self.take_place(key, now)
            {
                self.serve();
                return Some(Given::Place(conn));
            }
        }
        if expects != Expects::Shared
            && let Some(idle) = self.take_idle(key, now)
        {
            self.serve();
            return Some(Given::Lease(idle.conn));
        }
        self.queue.push((waiter, key, expects));
        self.serve();
        self.woken.retain(|&woken| woken != waiter);
        self.granted.remove(&waiter).map(|(_, given)| given)
    }

    /// Leave for one more connection ahead, with so many `dialling`.
    fn ahead(&mut self, key: u8, expects: Expects, open: usize, dialling: usize) -> Option<Given> {
        let awaited = self.sharing.get(&key).is_some_and(|&dials| dials > 0);
        let is_served = match expects {
            Expects::Exclusive => false,
            Expects::Either => self.serves(key),
            Expects::Shared => self.serves(key) || awaited,
        };
        let idle = self.idle.iter().filter(|idle| idle.key == key).count();
        let comes_first = |&(_, of, e): &(u64, u8, Expects)| {
            of == key || self.may_dial(of, e) && self.room_for(of)
        };
        let room = !is_served
            && self.open(key) < open
            && idle + dialling < self.limits.idle_per_key
            && !self.queue.iter().any(comes_first)
            && !self.key_is_full(key)
            && self.limits.total.is_none_or(|max| self.open_total() < max.get());
        room.then(|| {
            self.lend_dial(key, Given::hope(expects, awaited));
            Given::Ahead { expects, spare: awaited }
        })
    }

    fn give_back(&mut self, key: u8) {
        *self.lent.entry(key).or_default() -= 1;
    }

    fn end_dial(&mut self, key: u8, expects: Expects) {
        *self.sharing.entry(key).or_default() -= usize::from(expects != Expects::Exclusive);
    }

    fn opened(&mut self, key: u8, expects: Expects) {
        self.end_dial(key, expects);
        if expects != Expects::Exclusive {
            self.exclusive.insert(key);
        }
        self.serve();
    }

    fn share(&mut self, expects: Expects, kept: Kept) {
        self.give_back(kept.key);
        self.end_dial(kept.key, expects);
        self.exclusive.remove(&kept.key);
        self.shared.push(kept);
        self.serving.entry(kept.key).or_default().insert(0, kept.conn);
        self.freed(kept.conn, kept.created);
    }

    fn join(&mut self, key: u8, expects: Expects, conn: u32, now: Instant) {
        self.give_back(key);
        self.end_dial(key, expects);
        self.exclusive.remove(&key);
        let conns = self.serving.entry(key).or_default();
        if !conns.contains(&conn) {
            conns.insert(0, conn);
        }
        self.serve_places(key, now);
        self.serve();
    }

    fn part(&mut self, key: u8) {
        let Model { shared, serving, .. } = self;
        let own = |conn: u32| shared.iter().any(|kept| kept.conn == conn && kept.key == key);
        serving.entry(key).or_default().retain(|&conn| own(conn));
    }

    fn freed(&mut self, conn: u32, now: Instant) {
        if let Some(&Kept { key, .. }) = self.shared.iter().find(|kept| kept.conn == conn) {
            let mut keys: BTreeSet<u8> = (self.serving.iter())
                .filter(|(_, conns)| conns.contains(&conn))
                .map(|(&key, _)| key)
                .collect();
            while let Some(at) = (self.queue.iter())
                .position(|(_, key, e)| keys.contains(key) && *e != Expects::Exclusive)
            {
                let key = self.queue[at].1;
                match self.take_place(key, now) {
                    Some(conn) => self.grant(at, Given::Place(conn)),
                    None => drop(keys.remove(&key)),
                }
            }
            if self.shared.iter().any(|kept| kept.conn == conn && kept.taken == 0) {
                self.trim(key);
            }
            self.serve();
        }
    }

    fn finish(&mut self, conn: u32, now: Instant) {
        if let Some(kept) = self.shared.iter_mut().find(|kept| kept.conn == conn) {
            kept.taken -= 1;
            kept.since = now;
        }
        self.freed(conn, now);
    }

    fn release(&mut self, key: u8, conn: u32, created: Instant, now: Instant) {
        self.give_back(key);
        if self.limits.max_lifetime.is_some_and(|max| now - created >= max) {
            self.closed.push(conn);
            return self.serve();
        }
        let can_use = |&(_, of, e): &(u64, u8, Expects)| of == key && e != Expects::Shared;
        match self.queue.iter().position(can_use) {
            None => {
                let since = self.idle.iter().map(|idle| idle.since).fold(now, Instant::max);
                self.idle.push(Idle { key, conn, created, since });
                self.trim(key);
            }
            // Every waiter ahead that could be served waits for the unit.
            Some(at)
                if self.queue[..at].iter().any(|&(_, other, expects)| {
                    self.room_for(other) && self.may_dial(other, expects)
                }) =>
            {
                self.closed.push(conn);
            }
            Some(at) => {
                self.lend(key);
                self.grant(at, Given::Lease(conn));
            }
        }
        self.serve();
    }

    fn serve(&mut self) {
        let can = |model: &Model, &(_, key, expects): &(u64, u8, Expects)| {
            model.may_dial(key, expects) && model.room_for(key)
        };
        while let Some(at) = self.queue.iter().position(|waiter| can(self, waiter)) {
            let (_, key, expects) = self.queue[at];
            if !self.make_room(key) {
                return;
            }
            let dial = self.lend_dial(key, expects);
            self.grant(at, dial);
        }
    }

    /// Keys that have nothing left are forgotten.
    fn forget(&mut self) {
        for key in 0..4 {
            let waiting = self.queue.iter().any(|&(_, of, _)| of == key);
            if self.open(key) + self.promised(key) == 0 && !waiting && !self.serves(key) {
                self.exclusive.remove(&key);
            }
        }
    }
}
