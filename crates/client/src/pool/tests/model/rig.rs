//! The machine and the model, taken through the same steps.

use super::super::mock::{FIRST, Mock, Mocked};
use super::{Given, Kept, Model, Op, op};
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

    /// Dials under way, claimed or not.
    fn dialling(&self, key: u8) -> usize {
        let held = self.held.iter().map(|held| (held.key, held.given));
        let all = held.chain(self.model.granted.values().copied());
        all.filter(|(of, given)| *of == key && given.is_dial()).count()
    }

    fn ahead(&mut self, key: u8, expects: Expects, open: usize, fx: &mut Mocked) {
        let hash = u64::from(key) / 2;
        let permits = self.pool.ahead(hash, |k| *k == key, || key, (expects, open), self.now, fx);
        self.model.expire_idle(self.now);
        self.model.forget();
        for permit in permits {
            let dialling = self.dialling(key);
            let given = self.model.ahead(key, expects, open, dialling).expect("there is no room");
            self.held.push(Held { key, permit, given });
        }
        let more = self.model.ahead(key, expects, open, self.dialling(key));
        assert_eq!(more, None, "there is room for more");
        self.model.serve();
    }

    /// The dial ahead at this place, taken out: its key, its permit, and what it is.
    fn take_ahead(&mut self, from: usize) -> Option<(u8, Permit, Expects, bool)> {
        let all: Vec<_> = (self.held.iter().enumerate())
            .filter_map(|(at, held)| match held.given {
                Given::Ahead { expects, spare } => Some((at, expects, spare)),
                _ => None,
            })
            .collect();
        let (at, expects, spare) = all[pick(from, all.len())?];
        let Held { key, permit, .. } = self.held.swap_remove(at);
        self.model.end_dial(key, Given::hope(expects, spare));
        Some((key, permit, expects, spare))
    }

    fn stand(&mut self, from: usize, fx: &mut Mocked) {
        let Some((key, permit, expects, _)) = self.take_ahead(from) else {
            return;
        };
        let conn = self.next_conn;
        self.next_conn += 1;
        self.alive.insert(conn);
        self.pool.stand(permit, conn, self.now, fx);
        if expects != Expects::Exclusive {
            self.model.exclusive.insert(key);
        }
        self.model.release(key, conn, self.now, self.now);
    }

    fn stand_shared(&mut self, from: usize, max: usize, fx: &mut Mocked) {
        let Some((key, permit, _, spare)) = self.take_ahead(from) else {
            return;
        };
        let conn = FIRST + self.mocks.len() as u32;
        let (now, mock) = (self.now, Mock::new(conn, max, self.now));
        let awaited = self.model.sharing.get(&key).is_some_and(|&dials| dials > 0);
        let gives_way = spare && (awaited || self.model.serves(key));
        match self.pool.stand_shared(permit, mock.clone(), None, now, fx) {
            Err(back) => {
                assert!(gives_way && back.id == conn);
                self.model.give_back(key);
                self.model.serve();
            }
            Ok(member) => {
                assert!(!gives_way, "there is another");
                self.alive.insert(conn);
                self.mocks.insert(conn, (mock, member));
                let kept = Kept { key, conn, created: now, since: now, taken: 0, max, gone: false };
                self.model.share(Expects::Exclusive, kept);
            }
        }
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
            Given::Ahead { expects, spare } => {
                self.model.give_back(key);
                self.model.end_dial(key, Given::hope(expects, spare));
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
            Op::Ahead(key, expects, open) => self.ahead(key, expects, open, &mut fx),
            Op::Stand(from) => self.stand(from, &mut fx),
            Op::StandShared(from, max) => self.stand_shared(from, max, &mut fx),
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
