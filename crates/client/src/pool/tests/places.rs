//! The machine's rules for shared connections, one by one.

use super::mock::{Mock, Mocked};
use crate::pool::{
    Expects::{self, Either, Exclusive, Shared},
    Limits, Shareable,
    grant::{Acquire, Grant, Left, Permit, Verdict},
    machine::Pool,
    members::MemberId,
    waiters::WaiterId,
};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const A: u32 = 1000;
const B: u32 = 1001;

/// The machine with a clock and the effects of the last call.
pub(super) struct Rig {
    pub(super) pool: Pool<&'static str, u32, Mock>,
    pub(super) now: Instant,
    pub(super) fx: Mocked,
}

impl Rig {
    pub(super) fn new(total: usize, per_key: usize) -> Rig {
        Rig::limited(Limits {
            total: NonZeroUsize::new(total),
            per_key: NonZeroUsize::new(per_key),
            ..Limits::default()
        })
    }

    pub(super) fn limited(limits: Limits) -> Rig {
        Rig { pool: Pool::new(limits), now: Instant::now(), fx: Mocked::default() }
    }

    pub(super) fn sleep(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    pub(super) fn ask(&mut self, key: &'static str, expects: Expects) -> Acquire<u32, Mock> {
        self.fx = Mocked::default();
        self.pool.acquire(1, |known| *known == key, || key, expects, self.now, &mut self.fx)
    }

    #[track_caller]
    pub(super) fn dial(&mut self, key: &'static str, expects: Expects) -> Permit {
        match self.ask(key, expects) {
            Acquire::Granted(Grant::Dial(permit)) => permit,
            other => panic!("a dial was due, not {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn place(&mut self, key: &'static str, expects: Expects) -> u32 {
        match self.ask(key, expects) {
            Acquire::Granted(Grant::Shared(mock)) => mock.id,
            other => panic!("a place was due, not {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn wait(&mut self, key: &'static str, expects: Expects) -> WaiterId {
        match self.ask(key, expects) {
            Acquire::Wait { waiter, .. } => waiter,
            other => panic!("a wait was due, not {other:?}"),
        }
    }

    pub(super) fn opened(&mut self, mut permit: Permit) -> Permit {
        self.fx = Mocked::default();
        self.pool.opened(&mut permit, self.now, &mut self.fx);
        permit
    }

    pub(super) fn release(&mut self, permit: Permit, conn: u32) {
        self.fx = Mocked::default();
        self.pool.release(permit, conn, Verdict::Reuse, self.now, &mut self.fx);
    }

    pub(super) fn abandon(&mut self, permit: Permit) {
        self.fx = Mocked::default();
        self.pool.abandon(permit, &mut self.fx);
    }

    pub(super) fn cancel(&mut self, id: WaiterId) {
        self.fx = Mocked::default();
        self.pool.cancel(id, &mut self.fx);
    }

    /// The dial of `permit` brings a connection with `max` places, one of which is the dialler's.
    pub(super) fn share(&mut self, permit: Permit, id: u32, max: usize) -> (Mock, MemberId) {
        let mock = Mock::dialled(id, max, self.now);
        self.fx = Mocked::default();
        let member = self.pool.shared(permit, mock.clone(), None, self.now, &mut self.fx);
        (mock, member)
    }

    /// A connection for `key`, with `max` places of which one is taken.
    pub(super) fn shared(&mut self, key: &'static str, id: u32, max: usize) -> (Mock, MemberId) {
        let permit = self.dial(key, Either);
        self.share(permit, id, max)
    }

    pub(super) fn finish(&mut self, (mock, member): &(Mock, MemberId)) {
        mock.finish(self.now);
        self.fx = Mocked::default();
        self.pool.freed(*member, self.now, &mut self.fx);
    }

    pub(super) fn gone(&mut self, (_, member): &(Mock, MemberId)) {
        self.fx = Mocked::default();
        self.pool.gone(*member, self.now, &mut self.fx);
    }

    #[track_caller]
    pub(super) fn claim_place(&mut self, id: WaiterId) -> u32 {
        match self.pool.claim(id) {
            Some(Grant::Shared(mock)) => mock.id,
            other => panic!("a place was due, not {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn claim_dial(&mut self, id: WaiterId) -> Permit {
        match self.pool.claim(id) {
            Some(Grant::Dial(permit)) => permit,
            other => panic!("a dial was due, not {other:?}"),
        }
    }

    pub(super) fn woken(&self) -> &[WaiterId] {
        &self.fx.wake
    }
}

#[test]
fn many_exchanges_share_one_connection_and_one_unit() {
    let mut rig = Rig::new(1, 1);
    let (mock, _) = rig.shared("a", A, 100);
    for expects in [Either, Shared, Either] {
        assert_eq!(rig.place("a", expects), A);
    }
    assert_eq!(mock.taken(), 4);
    let stats = rig.pool.stats();
    assert_eq!((stats.open(), stats.in_use, stats.hits, stats.misses), (1, 1, 3, 1));
}

#[test]
fn a_call_that_expects_an_exclusive_connection_gets_no_place() {
    let mut rig = Rig::new(0, 0);
    rig.shared("a", A, 100);
    let _ = rig.dial("a", Exclusive);
}

#[test]
fn a_call_that_expects_a_shared_connection_gets_no_exclusive_one() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Exclusive);
    rig.release(permit, 1);
    let _ = rig.dial("a", Shared);
}

#[test]
fn a_shared_connection_is_preferred() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Exclusive);
    rig.release(permit, 1);
    let permit = rig.dial("a", Shared);
    rig.share(permit, A, 100);
    assert_eq!(rig.place("a", Either), A);
}

#[test]
fn concurrent_cold_calls_make_one_dial() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Either);
    let waiters = [Either, Shared, Either].map(|expects| rig.wait("a", expects));
    rig.share(permit, A, 100);
    assert_eq!(rig.woken(), &waiters);
    for waiter in waiters {
        assert_eq!(rig.claim_place(waiter), A);
    }
    assert_eq!(rig.pool.stats().misses, 1);
}

#[test]
fn nobody_waits_for_a_dial_that_cannot_be_shared_or_for_another_key() {
    let mut rig = Rig::new(0, 0);
    let _ = rig.dial("a", Exclusive);
    let _ = rig.dial("a", Either);
    let _ = rig.dial("a", Exclusive);
    let _ = rig.dial("b", Either);
}

#[test]
fn a_dial_that_turns_out_exclusive_lets_all_waiters_dial() {
    let mut rig = Rig::new(0, 3);
    let permit = rig.dial("a", Either);
    let waiters: Vec<_> = (0..3).map(|_| rig.wait("a", Either)).collect();
    let permit = rig.opened(permit);
    assert_eq!(rig.woken(), &waiters[..2], "the limit still binds");
    rig.release(permit, 1);
    assert_eq!(rig.woken(), &waiters[2..]);
}

#[test]
fn a_key_known_to_be_exclusive_dials_in_parallel_until_it_is_forgotten() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Either);
    let permit = rig.opened(permit);
    let others = [rig.dial("a", Either), rig.dial("a", Either)];
    rig.release(permit, 1);
    for other in others {
        rig.abandon(other);
    }
    let mut fx = Mocked::default();
    rig.pool.close_idle(rig.now, &mut fx);
    assert_eq!(rig.pool.key_stats().count(), 0);
    let _ = rig.dial("a", Either);
    let _ = rig.wait("a", Either);
}

#[test]
fn a_key_that_shares_again_is_no_longer_exclusive() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Either);
    let _lease = rig.opened(permit);
    rig.shared("a", A, 1);
    let _ = rig.dial("a", Either);
    let _ = rig.wait("a", Either);
}

#[test]
fn after_a_failed_dial_the_next_waiter_dials_and_the_others_wait_for_him() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Either);
    let (first, second) = (rig.wait("a", Either), rig.wait("a", Shared));
    rig.abandon(permit);
    assert_eq!(rig.woken(), &[first]);
    let permit = rig.claim_dial(first);
    assert!(rig.pool.claim(second).is_none());
    rig.share(permit, A, 2);
    assert_eq!(rig.claim_place(second), A);
}

#[test]
fn a_waiter_let_to_dial_and_dropped_lets_the_next_dial() {
    let mut rig = Rig::new(0, 0);
    let permit = rig.dial("a", Either);
    let (first, second) = (rig.wait("a", Either), rig.wait("a", Either));
    rig.abandon(permit);
    rig.cancel(first);
    assert_eq!(rig.woken(), &[second]);
    let _ = rig.claim_dial(second);
}

#[test]
fn when_all_are_full_one_further_connection_is_dialled_for_all() {
    let mut rig = Rig::new(0, 0);
    rig.shared("a", A, 1);
    let permit = rig.dial("a", Either);
    let waiters = [rig.wait("a", Either), rig.wait("a", Either)];
    rig.share(permit, B, 2);
    assert_eq!(rig.claim_place(waiters[0]), B);
    assert_eq!(rig.woken(), &waiters, "the second has no place there: it dials");
    let _ = rig.claim_dial(waiters[1]);
    let _ = rig.wait("a", Either);
}

#[test]
fn when_all_are_full_and_the_limit_binds_places_go_to_waiters_in_turn() {
    let mut rig = Rig::new(0, 1);
    let member = rig.shared("a", A, 1);
    let waiters = [rig.wait("a", Either), rig.wait("a", Shared)];
    rig.finish(&member);
    assert_eq!(rig.woken(), &waiters[..1]);
    assert_eq!(rig.claim_place(waiters[0]), A);
    rig.finish(&member);
    assert_eq!(rig.woken(), &waiters[1..]);
}

#[test]
fn a_newcomer_does_not_overtake_a_waiter_who_has_not_been_told() {
    let mut rig = Rig::new(0, 1);
    let (mock, _) = rig.shared("a", A, 1);
    let first = rig.wait("a", Either);
    mock.finish(rig.now);
    let _ = rig.wait("a", Either);
    assert_eq!(rig.woken(), &[first]);
    assert_eq!(rig.claim_place(first), A);
}

#[test]
fn a_place_freed_before_the_waiter_could_be_seen_is_found_by_a_second_look() {
    let mut rig = Rig::new(0, 1);
    let (mock, _) = rig.shared("a", A, 1);
    let waiter = rig.wait("a", Either);
    mock.finish(rig.now);
    let mut fx = Mocked::default();
    rig.pool.look_again(waiter, rig.now, &mut fx);
    assert_eq!(rig.claim_place(waiter), A);
}

#[test]
fn a_place_that_its_waiter_does_not_claim_passes_on_and_at_last_back() {
    let mut rig = Rig::new(0, 1);
    let member = rig.shared("a", A, 1);
    let (first, second) = (rig.wait("a", Either), rig.wait("a", Either));
    rig.finish(&member);
    rig.cancel(first);
    assert_eq!(rig.woken(), &[second]);
    rig.cancel(second);
    assert!(matches!(&rig.fx.left[..], [Left::Place(mock)] if mock.id == A));
}

#[test]
fn a_granted_place_outlives_the_key_it_came_from() {
    let mut rig = Rig::new(0, 1);
    let member = rig.shared("a", A, 1);
    let waiter = rig.wait("a", Either);
    rig.finish(&member);
    rig.gone(&member);
    assert_eq!((rig.pool.stats().open(), rig.pool.key_stats().count()), (0, 1));
    assert_eq!(rig.claim_place(waiter), A);
    assert_eq!(rig.pool.key_stats().count(), 0);
}

#[test]
fn a_connection_that_is_gone_frees_its_unit_for_a_dial() {
    let mut rig = Rig::new(1, 0);
    let member = rig.shared("a", A, 1);
    let (other, same) = (rig.wait("b", Either), rig.wait("a", Either));
    rig.gone(&member);
    assert_eq!(rig.woken(), &[other]);
    assert_eq!(rig.fx.left, [A]);
    rig.gone(&member);
    assert!(rig.fx.is_empty(), "it is forgotten once");
    let permit = rig.claim_dial(other);
    rig.abandon(permit);
    let _ = rig.claim_dial(same);
}

#[test]
fn a_connection_found_gone_is_passed_over() {
    let mut rig = Rig::new(1, 0);
    let (mock, _) = rig.shared("a", A, 100);
    mock.die();
    let _ = rig.dial("a", Either);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.pool.stats().open(), 1);
}

#[test]
fn the_unit_of_a_connection_found_gone_is_the_oldest_waiters() {
    let mut rig = Rig::new(1, 0);
    let (mock, _) = rig.shared("a", A, 100);
    let other = rig.wait("b", Exclusive);
    mock.die();
    let _ = rig.wait("a", Either);
    assert_eq!(rig.woken(), &[other]);
    let _ = rig.claim_dial(other);
}

#[test]
fn idle_shared_connections_expire() {
    let mut rig = Rig::new(0, 0);
    let member = rig.shared("a", A, 100);
    rig.sleep(100);
    assert_eq!(rig.place("a", Either), A, "it was in use all the time");
    rig.finish(&member);
    rig.finish(&member);
    rig.sleep(89);
    let mut fx = Mocked::default();
    rig.pool.expire(rig.now, &mut fx);
    assert!(fx.is_empty());
    rig.sleep(1);
    let _ = rig.dial("a", Either);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.pool.stats().expired, 1);
}

#[test]
fn shared_connections_of_keys_that_nobody_asks_for_are_swept() {
    let mut rig = Rig::new(0, 0);
    let member = rig.shared("a", A, 100);
    rig.finish(&member);
    let mut fx = Mocked::default();
    rig.pool.sweep(rig.now, &mut fx);
    rig.sleep(90);
    rig.pool.sweep(rig.now, &mut fx);
    assert_eq!(fx.left, [A]);
    assert_eq!(rig.pool.key_stats().count(), 0);
}

#[test]
fn a_shared_connection_takes_no_exchange_after_its_lifetime() {
    let hour = 3600;
    let max_lifetime = Some(Duration::from_secs(hour));
    let mut rig = Rig::limited(Limits { max_lifetime, ..Limits::default() });
    rig.shared("a", A, 100);
    rig.sleep(hour - 1);
    assert_eq!(rig.place("a", Either), A);
    rig.sleep(1);
    let _ = rig.dial("a", Either);
    assert_eq!(rig.fx.left, [A]);
    let stats = rig.pool.stats();
    assert_eq!((stats.expired, stats.in_use, stats.dialling), (1, 0, 1));
}

#[test]
fn idle_shared_connections_are_closed_with_the_idle_ones() {
    let mut rig = Rig::new(0, 0);
    let idle = rig.shared("a", A, 100);
    rig.finish(&idle);
    rig.shared("b", B, 100);
    let stats = rig.pool.stats();
    assert_eq!((stats.idle, stats.in_use), (1, 1));
    let mut fx = Mocked::default();
    rig.pool.close_idle(rig.now, &mut fx);
    assert_eq!(fx.left, [A]);
    assert_eq!((rig.pool.stats().idle, rig.pool.stats().in_use), (0, 1));
}

#[test]
fn idle_shared_connections_count_in_the_idle_limit() {
    let mut rig = Rig::limited(Limits { idle_per_key: 1, ..Limits::default() });
    let member = rig.shared("a", A, 100);
    rig.finish(&member);
    assert!(rig.fx.is_empty());
    let permit = rig.dial("a", Exclusive);
    rig.sleep(1);
    rig.release(permit, 1);
    assert_eq!(rig.fx.left, [A]);
    let mut rig = Rig::limited(Limits { idle_per_key: 0, ..Limits::default() });
    let member = rig.shared("a", A, 100);
    rig.finish(&member);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.pool.key_stats().count(), 0);
}

#[test]
fn the_longest_idle_makes_room_whether_shared_or_not() {
    for shared_first in [true, false] {
        let mut rig = Rig::new(2, 0);
        let member = rig.shared("a", A, 100);
        let permit = rig.dial("b", Exclusive);
        match shared_first {
            true => rig.finish(&member),
            false => rig.release(permit, 1),
        }
        rig.sleep(1);
        let expected = if shared_first { A } else { 1 };
        let _ = rig.dial("c", Either);
        assert_eq!(rig.fx.left, [expected]);
        assert_eq!(rig.pool.stats().evictions, 1);
    }
}

#[test]
fn a_connection_that_becomes_idle_makes_room_for_another_key() {
    let mut rig = Rig::new(1, 0);
    let member = rig.shared("a", A, 100);
    assert_eq!(rig.place("a", Either), A);
    let other = rig.wait("b", Either);
    rig.finish(&member);
    assert!(rig.fx.is_empty(), "somebody still uses it");
    rig.finish(&member);
    assert_eq!(rig.woken(), &[other]);
    assert_eq!(rig.fx.left, [A]);
}

#[test]
fn under_the_limit_of_a_key_an_idle_connection_of_the_wrong_kind_makes_room() {
    let mut rig = Rig::new(0, 1);
    let member = rig.shared("a", A, 100);
    let exclusive = rig.wait("a", Exclusive);
    rig.finish(&member);
    assert_eq!(rig.woken(), &[exclusive]);
    assert_eq!(rig.fx.left, [A]);
    let permit = rig.claim_dial(exclusive);
    let shared = rig.wait("a", Shared);
    rig.release(permit, 1);
    assert_eq!(rig.woken(), &[shared]);
    assert_eq!(rig.fx.left, [1]);
}

#[test]
fn a_released_connection_is_closed_for_an_older_waiter_who_cannot_use_it() {
    let mut rig = Rig::new(0, 1);
    let permit = rig.dial("a", Exclusive);
    let (shared, exclusive) = (rig.wait("a", Shared), rig.wait("a", Exclusive));
    rig.release(permit, 1);
    assert_eq!(rig.woken(), &[shared]);
    assert_eq!(rig.fx.left, [1]);
    let permit = rig.claim_dial(shared);
    let member = rig.share(permit, A, 1);
    rig.finish(&member);
    assert_eq!(rig.woken(), &[exclusive]);
}

#[test]
fn a_released_connection_passes_over_those_who_wait_for_a_dial_and_cannot_use_it() {
    let mut rig = Rig::new(0, 2);
    let permit = rig.dial("a", Exclusive);
    let _dialling = rig.dial("a", Either);
    let _shared = rig.wait("a", Shared);
    let either = rig.wait("a", Either);
    rig.release(permit, 1);
    assert_eq!(rig.woken(), &[either]);
    assert!(matches!(rig.pool.claim(either), Some(Grant::Lease(_, 1))));
}

#[test]
fn the_one_that_had_room_is_asked_first() {
    let mut rig = Rig::new(0, 0);
    let first = rig.shared("a", A, 1);
    rig.shared("a", B, 2);
    assert_eq!(rig.place("a", Either), B);
    rig.finish(&first);
    assert_eq!(rig.place("a", Either), A, "the other is full");
    assert_eq!(rig.pool.key_stats().next().unwrap().1.hits, 2);
    assert!(first.0.idle_since().is_none());
}
