//! Shared connections that serve more keys than the one they were opened for.

use super::{mock::Mock, places::Rig};
use crate::pool::{
    Acquired, Asked, DialPermit,
    Expects::{self, Either, Exclusive, Shared},
    Limits, Place, Shareable, SharedPool,
    grant::{Left, Permit},
    members::MemberId,
};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const A: u32 = 1000;
const B: u32 = 1001;

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

impl Rig {
    /// A connection for `key`, found at port 1, with `max` places of which one is taken.
    fn stand(&mut self, key: &'static str, id: u32, max: usize) -> (Mock, MemberId) {
        let permit = self.dial(key, Either);
        let mock = Mock::dialled(id, max, self.now);
        self.fx = Default::default();
        let member = self.pool.shared(permit, mock.clone(), Some(at(1)), self.now, &mut self.fx);
        (mock, member)
    }

    /// The call of `permit` joins, with a place of its own.
    #[track_caller]
    fn join(&mut self, permit: Permit, (mock, member): &(Mock, MemberId)) {
        assert_eq!(mock.reserve(self.now), Place::Taken);
        self.fx = Default::default();
        self.pool.join(permit, *member, self.now, &mut self.fx).expect("it has not left");
    }

    /// `b` joins a connection of `a`'s with `max` places, of which two are taken.
    fn joined(&mut self, max: usize) -> (Mock, MemberId) {
        let kept = self.stand("a", A, max);
        let permit = self.dial("b", Either);
        self.join(permit, &kept);
        kept
    }

    fn keys(&self) -> Vec<&'static str> {
        self.pool.key_stats().map(|(key, _)| *key).collect()
    }

    fn found(&self, ports: &[u16], is_fit: impl Fn(&&'static str) -> bool) -> Vec<u32> {
        let addrs: Vec<_> = ports.iter().map(|&port| at(port)).collect();
        let all = self.pool.standing_at(&addrs, is_fit, self.now);
        all.into_iter().map(|(_, mock)| mock.id).collect()
    }
}

#[test]
fn a_connection_is_found_where_it_stands_and_while_it_does() {
    let mut rig = Rig::new(0, 0);
    let first = rig.stand("a", A, 1);
    rig.stand("a", B, 1);
    rig.shared("c", 1002, 9);
    assert_eq!(rig.found(&[7, 1], |_| true), [B, A], "the newest first");
    assert_eq!(rig.found(&[2, 3], |_| true), [0; 0]);
    assert_eq!(rig.found(&[1], |key| *key != "a"), [0; 0]);
    rig.gone(&first);
    assert_eq!(rig.found(&[1], |_| true), [B]);
}

#[test]
fn one_that_is_too_old_is_not_found() {
    let max_lifetime = Some(Duration::from_secs(10));
    let mut rig = Rig::limited(Limits { max_lifetime, ..Limits::default() });
    rig.stand("a", A, 1);
    rig.sleep(9);
    assert_eq!(rig.found(&[1], |_| true), [A]);
    rig.sleep(1);
    assert_eq!(rig.found(&[1], |_| true), [0; 0]);
}

#[test]
fn who_joins_gives_the_permit_back_and_is_served_without_a_dial_from_then_on() {
    let mut rig = Rig::new(2, 1);
    let kept = rig.joined(9);
    assert_eq!(rig.place("b", Either), A);
    assert_eq!(rig.place("b", Shared), A);
    assert_eq!(rig.place("a", Either), A);
    assert_eq!(kept.0.taken(), 5);
    let stats = rig.pool.stats();
    assert_eq!((stats.open(), stats.dialling, stats.coalesced), (1, 0, 1));
    let by_key: Vec<_> = rig.pool.key_stats().map(|(key, stats)| (*key, stats.open())).collect();
    assert_eq!(by_key, [("a", 1), ("b", 0)], "it counts where it was opened");
    // What it may not share is another connection.
    let _ = rig.dial("b", Exclusive);
}

#[test]
fn those_who_waited_for_the_dial_get_places() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.stand("a", A, 3);
    let permit = rig.dial("b", Either);
    let waiting = [rig.wait("b", Either), rig.wait("b", Shared), rig.wait("b", Either)];
    rig.join(permit, &kept);
    assert_eq!(rig.woken(), [waiting[0], waiting[1]], "a place, and leave to dial");
    assert_eq!(rig.claim_place(waiting[0]), A);
    let _ = rig.claim_dial(waiting[1]);
    assert!(rig.pool.claim(waiting[2]).is_none());
}

#[test]
fn a_connection_that_left_is_not_joined() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.stand("a", A, 9);
    let permit = rig.dial("b", Either);
    rig.gone(&kept);
    let back = rig.pool.join(permit, kept.1, rig.now, &mut rig.fx);
    let permit = back.expect_err("it has left");
    assert_eq!(rig.pool.stats().dialling, 1);
    rig.abandon(permit);
    assert_eq!(rig.keys(), [""; 0]);
}

#[test]
fn the_unit_of_the_dial_is_free_for_others() {
    let mut rig = Rig::new(2, 0);
    let kept = rig.stand("a", A, 9);
    let permit = rig.dial("b", Either);
    let other = rig.wait("c", Exclusive);
    rig.join(permit, &kept);
    let _ = rig.claim_dial(other);
}

#[test]
fn a_connection_that_leaves_leaves_all_its_keys() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.joined(9);
    rig.gone(&kept);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.keys(), [""; 0], "nobody is remembered");
    let _ = rig.dial("b", Either);
}

#[test]
fn it_may_be_found_gone_by_a_call_of_another_key() {
    let mut rig = Rig::new(2, 0);
    let kept = rig.joined(9);
    let _blocker = rig.shared("z", B, 1);
    let own = rig.wait("a", Exclusive);
    kept.0.die();
    let late = rig.wait("b", Either);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.woken(), [own], "its unit goes to who came first");
    let permit = rig.claim_dial(own);
    assert!(rig.pool.claim(late).is_none());
    rig.abandon(permit);
    let _ = rig.claim_dial(late);
}

#[test]
fn a_key_with_nothing_else_outlives_the_call_that_finds_it_gone() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.joined(9);
    kept.0.die();
    let permit = rig.dial("b", Either);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.keys(), ["b"]);
    rig.abandon(permit);
    assert_eq!(rig.keys(), [""; 0]);
}

#[test]
fn places_go_to_whoever_of_all_its_keys_came_first() {
    let mut rig = Rig::new(2, 0);
    let kept = rig.joined(2);
    let blocker = rig.shared("z", B, 1);
    let waiting = [rig.wait("b", Either), rig.wait("a", Either), rig.wait("b", Either)];
    for first in &waiting[..2] {
        rig.finish(&kept);
        assert_eq!(rig.woken(), [*first]);
        assert_eq!(rig.claim_place(*first), A);
    }
    // Who can be served by no place gets the next unit.
    rig.gone(&blocker);
    let _ = rig.claim_dial(waiting[2]);
}

#[test]
fn a_place_that_nobody_claims_passes_to_the_other_keys() {
    let mut rig = Rig::new(2, 0);
    let kept = rig.joined(2);
    let _blocker = rig.shared("z", B, 1);
    let (first, second) = (rig.wait("b", Either), rig.wait("a", Either));
    rig.finish(&kept);
    assert_eq!(rig.woken(), [first]);
    rig.cancel(first);
    // Given back by whoever unlocks: the connection says so, as behind any exchange.
    let left = rig.fx.left.pop().expect("the place");
    let Left::Place(mock) = left else { panic!("a place was due") };
    mock.finish(rig.now);
    rig.pool.freed(kept.1, rig.now, &mut rig.fx);
    assert_eq!(rig.claim_place(second), A);
}

#[test]
fn limits_count_it_once_where_it_was_opened() {
    let (per_key, idle_per_key) = (NonZeroUsize::new(1), 1);
    let mut rig = Rig::limited(Limits { per_key, idle_per_key, ..Limits::default() });
    let kept = rig.joined(2);
    // It is full, and the other key has a unit of its own.
    let own = rig.shared("b", B, 1);
    let waiting = rig.wait("b", Either);
    rig.finish(&own);
    assert_eq!(rig.claim_place(waiting), B);
    rig.finish(&kept);
    rig.finish(&kept);
    assert_eq!(rig.fx.left.len(), 0);
    let stats = rig.pool.stats();
    assert_eq!((stats.idle, stats.in_use), (1, 1));
    // Who has no room closes what is idle of his own key, and this is not.
    let waiting = rig.wait("b", Exclusive);
    assert_eq!(rig.fx.left.len(), 0);
    rig.gone(&own);
    let _ = rig.claim_dial(waiting);
    assert_eq!(rig.place("b", Either), A);
}

#[test]
fn a_key_that_parts_gets_what_is_its_own() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.joined(2);
    // It is full.
    let own = rig.shared("b", B, 2);
    rig.finish(&kept);
    assert_eq!([rig.place("b", Either), rig.place("b", Either)], [B, A]);
    rig.finish(&kept);
    rig.pool.part(1, |key| *key == "b");
    let _ = rig.dial("b", Either);
    rig.finish(&own);
    assert_eq!([rig.place("b", Either), rig.place("a", Either)], [B, A]);
    rig.pool.part(1, |key| *key == "nobody");
    rig.gone(&kept);
    assert_eq!(rig.fx.left, [A]);
}

#[test]
fn a_key_that_parts_with_all_it_had_is_forgotten() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.joined(9);
    rig.pool.part(1, |key| *key == "b");
    assert_eq!(rig.keys(), ["a"]);
    rig.pool.part(1, |key| *key == "a");
    assert_eq!(rig.place("a", Either), A, "its own stays");
    rig.gone(&kept);
    assert_eq!(rig.keys(), [""; 0]);
}

#[test]
fn it_is_joined_once_however_often_it_is_found() {
    let mut rig = Rig::new(0, 0);
    let kept = rig.joined(2);
    // It is full: the next call has leave to dial, and finds it with room again.
    let permit = rig.dial("b", Either);
    rig.finish(&kept);
    rig.join(permit, &kept);
    let own = rig.dial("a", Either);
    rig.finish(&kept);
    rig.join(own, &kept);
    rig.gone(&kept);
    assert_eq!(rig.fx.left, [A]);
    assert_eq!(rig.keys(), [""; 0]);
}

#[test]
fn idle_connections_take_their_keys_along() {
    let idle_timeout = Some(Duration::from_secs(10));
    for how in 0..3 {
        let mut rig =
            Rig::limited(Limits { idle_timeout, total: NonZeroUsize::new(2), ..Limits::default() });
        let kept = rig.joined(9);
        rig.finish(&kept);
        rig.finish(&kept);
        rig.fx = Default::default();
        match how {
            0 => {
                rig.sleep(10);
                rig.pool.expire(rig.now, &mut rig.fx);
            }
            1 => rig.pool.close_idle(rig.now, &mut rig.fx),
            _ => {
                // Evicted, for one who has no room.
                let _ = (rig.dial("x", Exclusive), rig.dial("y", Exclusive));
            }
        }
        assert_eq!(rig.fx.left, [A], "{how}");
        assert!(rig.pool.key_stats().all(|(key, _)| !["a", "b"].contains(key)), "{how}");
    }
}

type Pool = SharedPool<u32, u32, Mock>;

fn ask(pool: &Pool, key: u32, expects: Expects) -> Asked<u32, u32, Mock> {
    pool.acquire(pool.hash_of(&key), |known| *known == key, || key, expects, Instant::now())
}

fn dial(pool: &Pool, key: u32) -> DialPermit<u32, u32, Mock> {
    match ask(pool, key, Either) {
        Asked::Granted(Acquired::Dial(permit)) => permit,
        _ => panic!("a dial was due"),
    }
}

#[test]
fn a_permit_that_joins_nothing_can_still_dial() {
    let (pool, now) = (Pool::new(Limits::default()), Instant::now());
    let mock = Mock::dialled(A, 9, now);
    let member = dial(&pool, 1).shared(mock, Some(at(1)), now);
    let permit = dial(&pool, 2);
    let found = pool.standing_at(&[at(1)], |&key| key == 1, now);
    let [standing] = &found[..] else { panic!("one was due") };
    assert_eq!(standing.conn.id, A);
    let permit = permit.join(standing, || false, now).expect_err("it may not");
    assert_eq!(pool.stats(now).dialling, 1);
    member.gone(now);
    let permit = permit.join(standing, || true, now).expect_err("it has left");
    let lease = permit.connected(7, now);
    assert_eq!(pool.stats(now).in_use, 1);
    drop(lease);
}

#[test]
fn a_link_tells_the_news_to_all_who_use_the_connection() {
    let (pool, now) = (Pool::new(Limits::default()), Instant::now());
    let mock = Mock::dialled(A, 1, now);
    let member = dial(&pool, 1).shared(mock.clone(), Some(at(1)), now);
    mock.on_freed(move |now| member.freed(now));
    let permit = dial(&pool, 2);
    mock.finish(now);
    let standing = pool.standing_at(&[at(1)], |_| true, now).remove(0);
    assert_eq!(standing.conn.reserve(now), Place::Taken);
    assert!(permit.join(&standing, || true, now).is_ok());
    mock.finish(now);
    assert!(matches!(ask(&pool, 2, Shared), Asked::Granted(Acquired::Shared(_))));
    pool.part(pool.hash_of(&2), |&key| key == 2);
    assert!(matches!(ask(&pool, 2, Shared), Asked::Granted(Acquired::Dial(_))));
    mock.unlink();
    assert_eq!(pool.stats(now).open(), 0);
}
