//! Connections that are opened before they are asked for.

use super::mock::{Mock, Mocked};
use super::places::Rig;
use crate::pool::{
    Expects::{self, Either, Exclusive, Shared},
    Limits,
    grant::{Acquire, Grant, Left, Permit},
};

impl Rig {
    fn ahead(&mut self, key: &'static str, expects: Expects, open: usize) -> Vec<Permit> {
        self.fx = Mocked::default();
        let is_key = |known: &&'static str| *known == key;
        self.pool.ahead(1, is_key, || key, (expects, open), self.now, &mut self.fx)
    }

    fn stands(&mut self, permit: Permit, conn: u32) {
        self.fx = Mocked::default();
        self.pool.stand(permit, conn, self.now, &mut self.fx);
    }

    fn stands_shared(&mut self, permit: Permit, id: u32) -> bool {
        self.fx = Mocked::default();
        let mock = Mock::new(id, 10, self.now);
        self.pool.stand_shared(permit, mock, None, self.now, &mut self.fx).is_ok()
    }

    #[track_caller]
    fn leases(&mut self, key: &'static str, expects: Expects, conn: u32) {
        match self.ask(key, expects) {
            Acquire::Granted(Grant::Lease(permit, leased)) => {
                assert_eq!(leased, conn);
                self.abandon(permit);
            }
            other => panic!("a lease was due, not {other:?}"),
        }
    }
}

#[test]
fn what_stands_is_leased_as_if_it_had_served() {
    let mut rig = Rig::new(0, 0);
    let [first, second] = rig.ahead("a", Either, 2).try_into().unwrap();
    rig.stands(first, 1);
    rig.stands(second, 2);
    assert_eq!(rig.pool.stats().idle, 2);
    assert_eq!(rig.pool.stats().misses, 0);
    assert!(rig.ahead("a", Either, 2).is_empty(), "there are two already");
    rig.leases("a", Either, 2);
    rig.leases("a", Either, 1);
    assert_eq!(rig.pool.key_stats().count(), 0);
}

#[test]
fn limits_bind_and_no_idle_connection_makes_room() {
    let mut rig = Rig::new(3, 2);
    let permit = rig.dial("a", Exclusive);
    let permit = rig.opened(permit);
    rig.release(permit, 1);
    assert_eq!(rig.ahead("b", Exclusive, 9).len(), 2, "the key's limit");
    let kept = rig.ahead("c", Exclusive, 9);
    assert_eq!(kept.len(), 0, "the total limit, though a connection of another key is idle");
    assert!(rig.fx.left.is_empty());

    let mut rig = Rig::limited(Limits { idle_per_key: 2, ..Limits::default() });
    assert_eq!(rig.ahead("a", Exclusive, 9).len(), 2, "no more than may be idle");
}

#[test]
fn who_waits_comes_first() {
    let mut rig = Rig::new(1, 0);
    let permit = rig.dial("a", Exclusive);
    let waiter = rig.wait("b", Exclusive);
    assert!(rig.ahead("a", Exclusive, 9).is_empty());
    rig.abandon(permit);
    assert_eq!(rig.woken(), [waiter]);
    let permit = rig.claim_dial(waiter);
    rig.abandon(permit);
    assert_eq!(rig.pool.key_stats().count(), 0);
}

#[test]
fn calls_wait_for_the_first_of_several_dials_ahead() {
    let mut rig = Rig::new(0, 0);
    let [first, second] = rig.ahead("a", Either, 2).try_into().unwrap();
    let waiter = rig.wait("a", Either);
    // A spare one is nobody's hope, but it helps who waits.
    rig.abandon(second);
    assert!(rig.woken().is_empty());
    rig.stands(first, 1);
    assert_eq!(rig.woken(), [waiter]);
    assert!(matches!(rig.pool.claim(waiter), Some(Grant::Lease(_, 1))));
}

#[test]
fn a_failed_dial_ahead_lets_who_waited_for_it_dial() {
    let mut rig = Rig::new(0, 0);
    let [first, second] = rig.ahead("a", Either, 2).try_into().unwrap();
    let waiter = rig.wait("a", Either);
    rig.abandon(first);
    assert_eq!(rig.woken(), [waiter]);
    let permit = rig.claim_dial(waiter);
    rig.abandon(second);
    rig.abandon(permit);
    assert_eq!(rig.pool.key_stats().count(), 0);
}

#[test]
fn a_second_shared_connection_gives_way() {
    let mut rig = Rig::new(0, 0);
    let [first, second] = rig.ahead("a", Either, 2).try_into().unwrap();
    assert!(!rig.stands_shared(second, 1_000_001), "the first is to be expected");
    assert!(rig.stands_shared(first, 1_000_002));
    assert!(rig.ahead("a", Either, 9).is_empty(), "one serves");
    assert_eq!(rig.place("a", Either), 1_000_002);
    assert_eq!(rig.pool.stats().open(), 1);
}

#[test]
fn a_spare_one_beside_a_call_gives_way_to_it() {
    let mut rig = Rig::new(0, 0);
    let call = rig.dial("a", Either);
    let [spare] = rig.ahead("a", Either, 2).try_into().unwrap();
    let (mock, _) = rig.share(call, 1_000_001, 10);
    assert!(!rig.stands_shared(spare, 1_000_002));
    assert_eq!((mock.id, rig.pool.stats().open()), (1_000_001, 1));

    let mut rig = Rig::new(0, 0);
    let call = rig.dial("b", Either);
    let [spare] = rig.ahead("b", Either, 2).try_into().unwrap();
    rig.abandon(call);
    assert!(rig.stands_shared(spare, 1_000_003), "the call's own failed");
    assert_eq!(rig.place("b", Either), 1_000_003);
}

#[test]
fn one_is_enough_where_only_shared_ones_are_expected() {
    let mut rig = Rig::new(0, 0);
    let [only] = rig.ahead("a", Shared, 5).try_into().unwrap();
    assert!(rig.ahead("a", Shared, 5).is_empty(), "one is on its way");
    assert!(rig.stands_shared(only, 1_000_001));
}

#[test]
fn what_stands_goes_to_an_older_waiter_of_another_key_as_a_unit() {
    let mut rig = Rig::new(1, 0);
    let [only] = rig.ahead("a", Exclusive, 1).try_into().unwrap();
    let other = rig.wait("b", Exclusive);
    rig.stands(only, 1);
    assert_eq!(rig.woken(), [other]);
    assert!(matches!(rig.fx.left[..], [Left::Exclusive(1)]));
}

#[test]
fn an_unused_connection_expires() {
    let mut rig = Rig::new(0, 0);
    for permit in rig.ahead("a", Exclusive, 2) {
        rig.stands(permit, 1);
    }
    rig.sleep(90);
    assert_eq!(rig.ahead("a", Exclusive, 1).len(), 1, "those there were are gone");
    assert_eq!(rig.fx.left.len(), 2);
    assert_eq!(rig.pool.stats().expired, 2);
}
