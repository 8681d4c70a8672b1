//! The machine against a naive model of the same rules: plain lists, scanned.

use crate::pool::{
    Limits,
    machine::{Acquire, Effects, Grant, Permit, Pool, Verdict},
    waiters::WaiterId,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
enum Op {
    Acquire(u8),
    /// The dial or exchange at this place, counted modulo those there are.
    Open(usize),
    Release(usize),
    Close(usize),
    Stale(usize),
    Cancel(usize),
    Claim(usize),
    Expire,
    CloseIdle,
    Sleep(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..4u8).prop_map(Op::Acquire),
        3 => any::<usize>().prop_map(Op::Open),
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

/// What a model or the machine may give: the connection, or leave to dial.
type Given = Option<u32>;

struct Model {
    limits: Limits,
    idle: Vec<Idle>,
    /// Units out of the pool, by key: dialling, in use, or granted and not yet claimed.
    lent: BTreeMap<u8, usize>,
    queue: Vec<(u64, u8)>,
    granted: BTreeMap<u64, (u8, Given)>,
    closed: Vec<u32>,
    woken: Vec<u64>,
}

impl Model {
    fn open(&self, key: u8) -> usize {
        let idle = self.idle.iter().filter(|idle| idle.key == key).count();
        self.lent.get(&key).copied().unwrap_or(0) + idle
    }

    fn open_total(&self) -> usize {
        self.lent.values().sum::<usize>() + self.idle.len()
    }

    fn dead(&self, idle: &Idle, now: Instant) -> bool {
        self.limits.idle_timeout.is_some_and(|max| now - idle.since >= max)
            || self.limits.max_lifetime.is_some_and(|max| now - idle.created >= max)
    }

    fn room_for(&self, key: u8) -> bool {
        self.limits.per_key.is_none_or(|max| self.open(key) < max.get())
    }

    fn make_room(&mut self) -> bool {
        if self.limits.total.is_none_or(|max| self.open_total() < max.get()) {
            return true;
        }
        if self.idle.is_empty() {
            return false;
        }
        let oldest = self.idle.remove(0);
        self.closed.push(oldest.conn);
        true
    }

    fn lend(&mut self, key: u8) {
        *self.lent.entry(key).or_default() += 1;
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

    fn acquire(&mut self, waiter: u64, key: u8, now: Instant) -> Option<Given> {
        if let Some(idle) = self.take_idle(key, now) {
            return Some(Some(idle.conn));
        }
        if self.room_for(key) && self.make_room() {
            self.lend(key);
            return Some(None);
        }
        self.queue.push((waiter, key));
        None
    }

    fn give_back(&mut self, key: u8) {
        *self.lent.entry(key).or_default() -= 1;
    }

    fn release(&mut self, key: u8, conn: u32, created: Instant, now: Instant) {
        self.give_back(key);
        if self.limits.max_lifetime.is_some_and(|max| now - created >= max) {
            self.closed.push(conn);
            return self.serve();
        }
        match self.queue.iter().position(|&(_, of)| of == key) {
            None => {
                let since = self.idle.iter().map(|idle| idle.since).fold(now, Instant::max);
                self.idle.push(Idle { key, conn, created, since });
                let mine: Vec<_> =
                    (0..self.idle.len()).filter(|&at| self.idle[at].key == key).collect();
                if mine.len() > self.limits.idle_per_key {
                    let idle = self.idle.remove(mine[0]);
                    self.closed.push(idle.conn);
                }
            }
            // Every waiter ahead that could be served waits for the total limit.
            Some(at)
                if self.queue[..at]
                    .iter()
                    .any(|&(_, other)| other != key && self.room_for(other)) =>
            {
                self.closed.push(conn);
            }
            Some(at) => {
                let (waiter, _) = self.queue.remove(at);
                self.lend(key);
                self.granted.insert(waiter, (key, Some(conn)));
                self.woken.push(waiter);
            }
        }
        self.serve();
    }

    fn serve(&mut self) {
        while let Some(at) = self.queue.iter().position(|&(_, key)| self.room_for(key)) {
            if !self.make_room() {
                return;
            }
            let (waiter, key) = self.queue.remove(at);
            self.lend(key);
            self.granted.insert(waiter, (key, None));
            self.woken.push(waiter);
        }
    }
}

/// A unit out of the pool, on the test's side.
struct Held {
    key: u8,
    permit: Permit,
    conn: Given,
}

struct Rig {
    pool: Pool<u8, u32>,
    model: Model,
    now: Instant,
    held: Vec<Held>,
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
            model: Model {
                limits,
                idle: Vec::new(),
                lent: BTreeMap::new(),
                queue: Vec::new(),
                granted: BTreeMap::new(),
                closed: Vec::new(),
                woken: Vec::new(),
            },
            now: Instant::now(),
            held: Vec::new(),
            waiters: Vec::new(),
            next_conn: 0,
            next_waiter: 0,
            alive: BTreeSet::new(),
        }
    }

    fn hold(&mut self, key: u8, grant: Grant<u32>, expected: Given) {
        let (permit, conn) = match grant {
            Grant::Lease(permit, conn) => (permit, Some(conn)),
            Grant::Dial(permit) => (permit, None),
        };
        assert_eq!(conn, expected);
        if let Some(conn) = conn {
            assert!(self.alive.contains(&conn), "a closed connection was lent");
            assert!(self.held.iter().all(|held| held.conn != Some(conn)), "lent twice");
        }
        self.held.push(Held { key, permit, conn });
    }

    fn acquire(&mut self, key: u8, fx: &mut Effects<u32>) {
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        let answer = self.pool.acquire(u64::from(key) / 2, |k| *k == key, || key, self.now, fx);
        match (answer, self.model.acquire(waiter, key, self.now)) {
            (Acquire::Granted(grant), Some(expected)) => self.hold(key, grant, expected),
            (Acquire::Wait(id), None) => self.waiters.push((waiter, key, id)),
            (answer, expected) => panic!("{answer:?}, not {expected:?}"),
        }
    }

    fn open(&mut self, from: usize) {
        let dials: Vec<_> = (0..self.held.len()).filter(|&i| self.held[i].conn.is_none()).collect();
        if let Some(at) = pick(from, dials.len()) {
            let held = &mut self.held[dials[at]];
            self.pool.opened(&mut held.permit, self.now);
            held.conn = Some(self.next_conn);
            self.alive.insert(self.next_conn);
            self.next_conn += 1;
        }
    }

    fn give_back(&mut self, from: usize, reuse: bool, fx: &mut Effects<u32>) {
        let Some(at) = pick(from, self.held.len()) else {
            return;
        };
        let Held { key, permit, conn } = self.held.swap_remove(at);
        let created = permit.created();
        match conn {
            Some(conn) if reuse => {
                self.model.release(key, conn, created, self.now);
                self.pool.release(permit, conn, Verdict::Reuse, self.now, fx);
            }
            Some(conn) => {
                self.model.closed.push(conn);
                self.model.give_back(key);
                self.model.serve();
                self.pool.release(permit, conn, Verdict::Close, self.now, fx);
            }
            None => {
                self.model.give_back(key);
                self.model.serve();
                self.pool.abandon(permit, fx);
            }
        }
    }

    fn stale(&mut self, from: usize, fx: &mut Effects<u32>) {
        let leases: Vec<_> = (0..self.held.len())
            .filter(|&i| self.held[i].conn.is_some() && self.held[i].permit.is_reused())
            .collect();
        let Some(at) = pick(from, leases.len()) else {
            return;
        };
        let Held { key, permit, conn } = self.held.swap_remove(leases[at]);
        self.alive.remove(&conn.unwrap());
        let grant = self.pool.stale(permit, self.now, fx);
        self.model.give_back(key);
        let expected = self.model.take_idle(key, self.now).map(|idle| idle.conn);
        if expected.is_none() {
            self.model.lend(key);
        }
        self.hold(key, grant, expected);
    }

    fn cancel(&mut self, from: usize, fx: &mut Effects<u32>) {
        let Some(at) = pick(from, self.waiters.len()) else {
            return;
        };
        let (waiter, _, id) = self.waiters.swap_remove(at);
        self.model.queue.retain(|&(queued, _)| queued != waiter);
        match self.model.granted.remove(&waiter) {
            // The rig cannot see the times inside an unclaimed grant: take it, then give it back.
            Some((key, expected)) => {
                let grant = self.pool.claim(id).expect("it was granted");
                self.hold(key, grant, expected);
                self.give_back(self.held.len() - 1, true, fx);
            }
            None => self.pool.cancel(id, fx),
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

    fn expire(&mut self, fx: &mut Effects<u32>) {
        self.pool.expire(self.now, fx);
        let (now, idle) = (self.now, std::mem::take(&mut self.model.idle));
        let (dead, live): (Vec<_>, _) = idle.into_iter().partition(|i| self.model.dead(i, now));
        self.model.idle = live;
        self.model.closed.extend(dead.iter().map(|idle| idle.conn));
    }

    fn step(&mut self, op: &Op) {
        let mut fx = Effects::default();
        match *op {
            Op::Acquire(key) => self.acquire(key, &mut fx),
            Op::Open(from) => self.open(from),
            Op::Release(from) => self.give_back(from, true, &mut fx),
            Op::Close(from) => self.give_back(from, false, &mut fx),
            Op::Stale(from) => self.stale(from, &mut fx),
            Op::Cancel(from) => self.cancel(from, &mut fx),
            Op::Claim(from) => self.claim(from),
            Op::Expire => self.expire(&mut fx),
            Op::CloseIdle => {
                self.pool.close_idle(&mut fx);
                let idle = std::mem::take(&mut self.model.idle);
                self.model.closed.extend(idle.iter().map(|idle| idle.conn));
            }
            Op::Sleep(seconds) => self.now += Duration::from_secs(seconds),
        }
        self.check(fx);
    }

    fn check(&mut self, mut fx: Effects<u32>) {
        fx.closed.sort_unstable();
        self.model.closed.sort_unstable();
        assert_eq!(fx.closed, self.model.closed);
        for conn in self.model.closed.drain(..) {
            assert!(self.alive.remove(&conn), "connection {conn} was closed twice");
        }
        let woken: Vec<_> = (fx.wake.iter())
            .map(|id| self.waiters.iter().find(|(.., known)| known == id).unwrap().0)
            .collect();
        assert_eq!(woken, self.model.woken);
        self.model.woken.clear();

        let stats = self.pool.stats();
        assert_eq!(stats.idle, self.model.idle.len());
        assert_eq!(stats.open(), self.model.open_total());
        assert_eq!(stats.waiting, self.model.queue.len());
        let limits = self.pool.limits().clone();
        assert!(limits.total.is_none_or(|max| stats.open() <= max.get()));
        let mut sum = 0;
        for (key, stats) in self.pool.key_stats() {
            assert!(limits.per_key.is_none_or(|max| stats.open() <= max.get()));
            assert!(stats.idle <= limits.idle_per_key);
            assert_eq!(stats.open(), self.model.open(*key));
            assert!(stats.open() + stats.waiting > 0, "an empty key was kept");
            sum += stats.open();
        }
        assert_eq!(sum, stats.open());
    }

    /// Ends all that is under way: then nobody waits, and every connection was closed once.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            if self.held.is_empty() && self.waiters.is_empty() {
                break;
            }
            for at in 0..self.waiters.len() {
                self.step(&Op::Claim(at));
            }
            self.step(&Op::Open(0));
            self.step(&Op::Release(0));
        }
        assert!(self.waiters.is_empty(), "a waiter starved");
        self.step(&Op::CloseIdle);
        assert!(self.alive.is_empty(), "connections {:?} were lost", self.alive);
        assert_eq!(self.pool.stats().open(), 0);
        assert_eq!(self.pool.key_stats().count(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

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
