//! The machine against a naive model of the same rules: plain lists, scanned.

use super::mock::{FIRST, Mock, Mocked};
use crate::pool::{
    Expects, Limits, Place, Shareable,
    grant::{Acquire, Grant, Left, Permit, Verdict},
    machine::Pool,
    members::MemberId,
    waiters::WaiterId,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
enum Op {
    Acquire(u8, Expects),
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

/// A unit out of the pool, on the test's side.
struct Held {
    key: u8,
    permit: Permit,
    given: Given,
}

struct Rig {
    pool: Pool<u8, u32, Mock>,
    model: Model,
    now: Instant,
    held: Vec<Held>,
    /// Every shared connection there was.
    mocks: BTreeMap<u32, (Mock, MemberId)>,
    /// The exchanges on shared connections.
    places: Vec<u32>,
    waiters: Vec<(u64, u8, WaiterId)>,
    next_conn: u32,
    next_waiter: u64,
    alive: BTreeSet<u32>,
}

fn pick(from: usize, len: usize) -> Option<usize> {
    (len > 0).then(|| from % len)
}

impl Rig {
    fn new(limits: Limits) -> Self {
        Rig {
            pool: Pool::new(limits.clone()),
            model: Model::new(limits),
            now: Instant::now(),
            held: Vec::new(),
            mocks: BTreeMap::new(),
            places: Vec::new(),
            waiters: Vec::new(),
            next_conn: 0,
            next_waiter: 0,
            alive: BTreeSet::new(),
        }
    }

    fn hold(&mut self, key: u8, grant: Grant<u32, Mock>, expected: Given) {
        let (permit, given) = match grant {
            Grant::Lease(permit, conn) => (permit, Given::Lease(conn)),
            Grant::Dial(permit) => {
                let expects = permit.expects;
                (permit, Given::Dial(expects))
            }
            Grant::Shared(mock) => {
                assert_eq!(Given::Place(mock.id), expected);
                self.places.push(mock.id);
                let taken = self.places.iter().filter(|&&id| id == mock.id).count();
                assert!(taken <= mock.taken(), "a place was given twice");
                return;
            }
        };
        assert_eq!(given, expected);
        if let Given::Lease(conn) = given {
            assert!(self.alive.contains(&conn), "a closed connection was lent");
            assert!(self.held.iter().all(|held| held.given != given), "lent twice");
        }
        self.held.push(Held { key, permit, given });
    }

    fn acquire(&mut self, key: u8, expects: Expects, fx: &mut Mocked) {
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        let hash = u64::from(key) / 2;
        let answer = self.pool.acquire(hash, |k| *k == key, || key, expects, self.now, fx);
        match (answer, self.model.acquire(waiter, key, expects, self.now)) {
            (Acquire::Granted(grant), Some(expected)) => self.hold(key, grant, expected),
            (Acquire::Wait { waiter: id, .. }, None) => self.waiters.push((waiter, key, id)),
            (answer, expected) => panic!("{answer:?}, not {expected:?}"),
        }
    }

    fn a_dial(&self, from: usize) -> Option<(usize, Expects)> {
        let dials: Vec<_> = (self.held.iter().enumerate())
            .filter_map(|(at, held)| match held.given {
                Given::Dial(expects) => Some((at, expects)),
                _ => None,
            })
            .collect();
        pick(from, dials.len()).map(|at| dials[at])
    }

    fn open(&mut self, from: usize, fx: &mut Mocked) {
        if let Some((at, expects)) = self.a_dial(from) {
            let held = &mut self.held[at];
            self.pool.opened(&mut held.permit, self.now, fx);
            held.given = Given::Lease(self.next_conn);
            self.alive.insert(self.next_conn);
            self.next_conn += 1;
            self.model.opened(held.key, expects);
        }
    }

    fn share(&mut self, from: usize, max: usize, fx: &mut Mocked) {
        let Some((at, expects)) = self.a_dial(from) else {
            return;
        };
        let Held { key, permit, .. } = self.held.swap_remove(at);
        let conn = FIRST + self.mocks.len() as u32;
        let mock = Mock::new(conn, max, self.now);
        if mock.reserve(self.now) == Place::Taken {
            self.places.push(conn);
        }
        let (now, taken) = (self.now, mock.taken());
        let kept = Kept { key, conn, created: now, since: now, taken, max, gone: false };
        self.alive.insert(conn);
        let member = self.pool.shared(permit, mock.clone(), None, now, fx);
        self.mocks.insert(conn, (mock, member));
        self.model.share(expects, kept);
    }

    fn join(&mut self, from: usize, to: usize, fx: &mut Mocked) {
        let (Some((at, expects)), Some(conn)) = (self.a_dial(from), self.a_mock(to)) else {
            return;
        };
        let (mock, member) = self.mocks[&conn].clone();
        if mock.reserve(self.now) != Place::Taken {
            return;
        }
        self.places.push(conn);
        let Held { key, permit, given } = self.held.swap_remove(at);
        let kept = self.model.shared.iter_mut().find(|kept| kept.conn == conn);
        if let Some(kept) = kept {
            kept.taken += 1;
            self.pool.join(permit, member, self.now, fx).expect("it has not left");
            self.model.join(key, expects, conn, self.now);
        } else {
            let permit = self.pool.join(permit, member, self.now, fx).expect_err("it has left");
            self.held.push(Held { key, permit, given });
        }
    }

    fn part(&mut self, key: u8) {
        self.pool.part(u64::from(key) / 2, |k| *k == key);
        self.model.part(key);
    }

    fn finish_exchange(&mut self, from: usize, fx: &mut Mocked) {
        if let Some(at) = pick(from, self.places.len()) {
            let conn = self.places.swap_remove(at);
            self.end_place(conn, fx);
        }
    }

    fn end_place(&mut self, conn: u32, fx: &mut Mocked) {
        let (mock, member) = &self.mocks[&conn];
        mock.finish(self.now);
        self.pool.freed(*member, self.now, fx);
        self.model.finish(conn, self.now);
    }

    fn a_mock(&self, from: usize) -> Option<u32> {
        pick(from, self.mocks.len()).map(|at| FIRST + at as u32)
    }

    fn die(&mut self, from: usize) {
        if let Some(conn) = self.a_mock(from) {
            self.mocks[&conn].0.die();
            for kept in self.model.shared.iter_mut().filter(|kept| kept.conn == conn) {
                kept.gone = true;
            }
        }
    }

    fn gone(&mut self, from: usize, fx: &mut Mocked) {
        if let Some(conn) = self.a_mock(from) {
            self.pool.gone(self.mocks[&conn].1, self.now, fx);
            if let Some(at) = self.model.shared.iter().position(|kept| kept.conn == conn) {
                self.model.close_shared(at);
                self.model.serve();
            }
        }
    }

    fn give_back(&mut self, from: usize, reuse: bool, fx: &mut Mocked) {
        let Some(at) = pick(from, self.held.len()) else {
            return;
        };
        let Held { key, permit, given } = self.held.swap_remove(at);
        let created = permit.created();
        match given {
            Given::Lease(conn) if reuse => {
                self.model.release(key, conn, created, self.now);
                self.pool.release(permit, conn, Verdict::Reuse, self.now, fx);
            }
            Given::Lease(conn) => {
                self.model.closed.push(conn);
                self.model.give_back(key);
                self.model.serve();
                self.pool.release(permit, conn, Verdict::Close, self.now, fx);
            }
            Given::Dial(expects) => {
                self.model.give_back(key);
                self.model.end_dial(key, expects);
                self.model.serve();
                self.pool.abandon(permit, fx);
            }
            Given::Place(_) => unreachable!("a place is no unit"),
        }
    }

    fn stale(&mut self, from: usize, fx: &mut Mocked) {
        let leases: Vec<_> = (self.held.iter().enumerate())
            .filter_map(|(at, held)| match held.given {
                Given::Lease(conn) if held.permit.is_reused() => Some((at, conn)),
                _ => None,
            })
            .collect();
        let Some(at) = pick(from, leases.len()) else {
            return;
        };
        let (at, conn) = leases[at];
        let Held { key, permit, .. } = self.held.swap_remove(at);
        self.alive.remove(&conn);
        let expects = permit.expects;
        let grant = self.pool.stale(permit, self.now, fx);
        self.model.expire_idle(self.now);
        self.model.give_back(key);
        let expected = match self.model.take_idle(key, self.now) {
            Some(idle) => Given::Lease(idle.conn),
            None => self.model.lend_dial(key, expects),
        };
        self.hold(key, grant, expected);
    }

    fn cancel(&mut self, from: usize, fx: &mut Mocked) {
        let Some(at) = pick(from, self.waiters.len()) else {
            return;
        };
        let (waiter, key, id) = self.waiters.swap_remove(at);
        self.model.queue.retain(|&(queued, ..)| queued != waiter);
        match self.model.granted.remove(&waiter) {
            Some((_, Given::Place(conn))) => {
                self.pool.cancel(id, fx);
                match self.model.first_for_place(key) {
                    Some(at) => self.model.grant(at, Given::Place(conn)),
                    None => {
                        let place = fx.left.pop();
                        assert!(matches!(place, Some(Left::Place(mock)) if mock.id == conn));
                        self.end_place(conn, fx);
                    }
                }
            }
            // The rig cannot see the times inside an unclaimed grant: take it, then give it back.
            Some((_, expected)) => {
                let grant = self.pool.claim(id).expect("it was granted");
                self.hold(key, grant, expected);
                self.give_back(self.held.len() - 1, true, fx);
            }
            None => {
                self.pool.cancel(id, fx);
                self.model.serve();
            }
        }
        assert!(self.pool.claim(id).is_none());
    }

    fn claim(&mut self, from: usize) {
        let Some(at) = pick(from, self.waiters.len()) else {
            return;
        };
        let (waiter, key, id) = self.waiters[at];
        match (self.pool.claim(id), self.model.granted.remove(&waiter)) {
            (Some(grant), Some((_, expected))) => {
                self.waiters.swap_remove(at);
                self.hold(key, grant, expected);
            }
            (None, None) => {}
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        }
    }

    fn expire(&mut self, fx: &mut Mocked) {
        self.pool.expire(self.now, fx);
        let (now, model) = (self.now, &mut self.model);
        let (dead, live): (Vec<_>, _) =
            std::mem::take(&mut model.idle).into_iter().partition(|idle| model.dead(idle, now));
        model.idle = live;
        let (over, kept): (Vec<_>, _) = std::mem::take(&mut model.shared)
            .into_iter()
            .partition(|kept| model.expired(kept, now));
        model.shared = kept;
        model.forget_closed();
        let left = dead.iter().map(|idle| idle.conn).chain(over.iter().map(|kept| kept.conn));
        model.closed.extend(left);
        model.serve();
    }

    fn close_idle(&mut self, fx: &mut Mocked) {
        self.pool.close_idle(self.now, fx);
        let model = &mut self.model;
        model.closed.extend(model.idle.drain(..).map(|idle| idle.conn));
        let idle = model.shared.extract_if(.., |kept| kept.taken == 0);
        model.closed.extend(idle.map(|kept| kept.conn));
        model.forget_closed();
        model.serve();
    }

    fn step(&mut self, op: &Op) {
        let mut fx = Mocked::default();
        match *op {
            Op::Acquire(key, expects) => self.acquire(key, expects, &mut fx),
            Op::Open(from) => self.open(from, &mut fx),
            Op::Share(from, max) => self.share(from, max, &mut fx),
            Op::Finish(from) => self.finish_exchange(from, &mut fx),
            Op::Die(from) => self.die(from),
            Op::Gone(from) => self.gone(from, &mut fx),
            Op::Join(from, to) => self.join(from, to, &mut fx),
            Op::Part(key) => self.part(key),
            Op::Release(from) => self.give_back(from, true, &mut fx),
            Op::Close(from) => self.give_back(from, false, &mut fx),
            Op::Stale(from) => self.stale(from, &mut fx),
            Op::Cancel(from) => self.cancel(from, &mut fx),
            Op::Claim(from) => self.claim(from),
            Op::Expire => self.expire(&mut fx),
            Op::CloseIdle => self.close_idle(&mut fx),
            Op::Sleep(seconds) => self.now += Duration::from_secs(seconds),
        }
        self.model.forget();
        self.check(fx);
    }

    fn check(&mut self, fx: Mocked) {
        let left = fx.left.iter().map(|left| match left {
            Left::Exclusive(conn) => *conn,
            Left::Shared(mock) => mock.id,
            Left::Place(mock) => panic!("a place on {mock:?} is left"),
        });
        let mut left: Vec<_> = left.collect();
        left.sort_unstable();
        self.model.closed.sort_unstable();
        assert_eq!(left, self.model.closed);
        for conn in self.model.closed.drain(..) {
            assert!(self.alive.remove(&conn), "connection {conn} was closed twice");
        }
        let woken: Vec<_> = (fx.wake.iter())
            .map(|id| self.waiters.iter().find(|(.., known)| known == id).unwrap().0)
            .collect();
        assert_eq!(woken, self.model.woken);
        self.model.woken.clear();

        let stats = self.pool.stats();
        let idle: usize = (0..4).map(|key| self.model.idle_in(key)).sum();
        assert_eq!(stats.idle, idle);
        assert_eq!(stats.open(), self.model.open_total());
        assert_eq!(stats.waiting, self.model.queue.len());
        let limits = self.pool.limits().clone();
        assert!(limits.total.is_none_or(|max| stats.open() <= max.get()));
        let mut sum = 0;
        for (key, stats) in self.pool.key_stats() {
            assert!(limits.per_key.is_none_or(|max| stats.open() <= max.get()));
            assert!(stats.idle <= limits.idle_per_key);
            assert_eq!(stats.open(), self.model.open(*key));
            let promised = self.model.promised(*key);
            let has = stats.open() + stats.waiting + promised > 0 || self.model.serves(*key);
            assert!(has, "an empty key was kept");
            sum += stats.open();
        }
        assert_eq!(sum, stats.open());
    }

    /// Ends all that is under way: then nobody waits, and every connection was closed once.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            if self.held.is_empty() && self.waiters.is_empty() && self.places.is_empty() {
                break;
            }
            let dead = self.model.shared.iter().find(|kept| kept.gone).map(|kept| kept.conn);
            if let Some(conn) = dead {
                self.step(&Op::Gone((conn - FIRST) as usize));
            }
            for at in 0..self.waiters.len() {
                self.step(&Op::Claim(at));
            }
            self.step(&Op::Open(0));
            self.step(&Op::Release(0));
            self.step(&Op::Finish(0));
        }
        assert!(self.waiters.is_empty(), "a waiter starved");
        self.step(&Op::CloseIdle);
        assert!(self.alive.is_empty(), "connections {:?} were lost", self.alive);
        assert_eq!(self.pool.stats().open(), 0);
        assert_eq!(self.pool.key_stats().count(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_machine_agrees_with_the_model(
        total in 0..6usize,
        per_key in 0..4usize,
        idle_per_key in 0..4usize,
        idle_timeout in prop::option::of(1..90u64),
        max_lifetime in prop::option::of(1..200u64),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let mut rig = Rig::new(Limits {
            total: NonZeroUsize::new(total),
            per_key: NonZeroUsize::new(per_key),
            idle_per_key,
            idle_timeout: idle_timeout.map(Duration::from_secs),
            max_lifetime: max_lifetime.map(Duration::from_secs),
        });
        for op in &ops {
            rig.step(op);
        }
        rig.finish();
    }
}
