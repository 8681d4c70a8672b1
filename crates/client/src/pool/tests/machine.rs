use super::mock::{Mock, Mocked};
use crate::pool::{
    Expects, Limits,
    grant::{Acquire, Effects, Grant, Permit, Verdict},
    machine::Pool,
    waiters::WaiterId,
};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

type Rig = Pool<&'static str, u32, Mock>;

fn limits(total: usize, per_key: usize) -> Limits {
    Limits {
        total: NonZeroUsize::new(total),
        per_key: NonZeroUsize::new(per_key),
        ..Limits::default()
    }
}

/// A poor hash, so that keys collide.
fn hash(key: &str) -> u64 {
    key.len() as u64
}

fn ask(pool: &mut Rig, key: &'static str, now: Instant, fx: &mut Mocked) -> Acquire<u32, Mock> {
    pool.acquire(hash(key), |known| *known == key, || key, Expects::Exclusive, now, fx)
}

fn dial(pool: &mut Rig, key: &'static str, now: Instant) -> Permit {
    let mut fx = Effects::default();
    match ask(pool, key, now, &mut fx) {
        Acquire::Granted(Grant::Dial(mut permit)) => {
            pool.opened(&mut permit, now, &mut fx);
            permit
        }
        other => panic!("a dial was due, not {other:?}"),
    }
}

fn lease(pool: &mut Rig, key: &'static str, now: Instant) -> (Permit, u32, usize) {
    let mut fx = Effects::default();
    match ask(pool, key, now, &mut fx) {
        Acquire::Granted(Grant::Lease(permit, conn)) => (permit, conn, fx.left.len()),
        other => panic!("a lease was due, not {other:?}"),
    }
}

fn wait(pool: &mut Rig, key: &'static str, now: Instant) -> WaiterId {
    match ask(pool, key, now, &mut Effects::default()) {
        Acquire::Wait { waiter, .. } => waiter,
        other => panic!("a wait was due, not {other:?}"),
    }
}

fn release(pool: &mut Rig, permit: Permit, conn: u32, now: Instant) -> Mocked {
    let mut fx = Effects::default();
    pool.release(permit, conn, Verdict::Reuse, now, &mut fx);
    fx
}

#[test]
fn the_newest_idle_connection_is_reused_first() {
    let (mut pool, now) = (Rig::new(Limits::default()), Instant::now());
    let permits: Vec<_> = (0..3).map(|_| dial(&mut pool, "a", now)).collect();
    for (conn, permit) in (0..).zip(permits) {
        let _ = release(&mut pool, permit, conn, now);
    }
    for expected in [2, 1, 0] {
        let (permit, conn, _) = lease(&mut pool, "a", now);
        assert!(permit.is_reused());
        assert_eq!(permit.open(), 3);
        assert_eq!(conn, expected);
    }
}

#[test]
fn keys_that_hash_alike_do_not_share() {
    let (mut pool, now) = (Rig::new(Limits::default()), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let _ = release(&mut pool, permit, 1, now);
    let _ = dial(&mut pool, "b", now);
    assert_eq!(lease(&mut pool, "a", now).1, 1);
}

#[test]
fn a_released_connection_goes_to_the_first_waiter() {
    let (mut pool, now) = (Rig::new(limits(0, 1)), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let (first, second) = (wait(&mut pool, "a", now), wait(&mut pool, "a", now));
    assert!(pool.claim(first).is_none(), "nothing was granted yet");
    let fx = release(&mut pool, permit, 7, now);
    assert_eq!(fx.wake.as_slice(), &[first]);
    assert!(fx.left.is_empty());
    assert!(matches!(pool.claim(first), Some(Grant::Lease(_, 7))));
    assert!(pool.claim(first).is_none(), "a claim is spent");
    assert!(pool.claim(second).is_none());
    assert_eq!(pool.stats().waiting, 1);
}

#[test]
fn a_failed_dial_passes_its_unit_on() {
    let (mut pool, now) = (Rig::new(limits(1, 0)), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let waiter = wait(&mut pool, "b", now);
    let mut fx = Effects::default();
    pool.abandon(permit, &mut fx);
    assert_eq!(fx.wake.as_slice(), &[waiter]);
    assert!(matches!(pool.claim(waiter), Some(Grant::Dial(_))));
}

#[test]
fn an_older_waiter_of_another_key_gets_the_unit_when_the_total_binds() {
    let (mut pool, now) = (Rig::new(limits(1, 0)), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let other = wait(&mut pool, "b", now);
    let same = wait(&mut pool, "a", now);
    let fx = release(&mut pool, permit, 1, now);
    assert_eq!(fx.wake.as_slice(), &[other][..]);
    assert_eq!(fx.left, vec![1]);
    let Some(Grant::Dial(permit)) = pool.claim(other) else { panic!("b dials") };
    let fx = release(&mut pool, permit, 2, now);
    assert_eq!(fx.wake.as_slice(), &[same][..]);
    assert_eq!(fx.left, vec![2]);
}

#[test]
fn a_waiter_held_by_its_own_limit_holds_up_nobody_else() {
    let (mut pool, now) = (Rig::new(limits(2, 1)), Instant::now());
    let a = dial(&mut pool, "a", now);
    let blocked = wait(&mut pool, "a", now);
    let b = dial(&mut pool, "b", now);
    let c = wait(&mut pool, "c", now);
    let fx = release(&mut pool, b, 2, now);
    assert_eq!(fx.wake.as_slice(), &[c][..]);
    assert_eq!(fx.left, vec![2]);
    let fx = release(&mut pool, a, 1, now);
    assert_eq!(fx.wake.as_slice(), &[blocked]);
}

#[test]
fn the_longest_idle_connection_of_another_key_makes_room() {
    let (mut pool, now) = (Rig::new(limits(2, 0)), Instant::now());
    let (a, b) = (dial(&mut pool, "a", now), dial(&mut pool, "b", now));
    let _ = release(&mut pool, b, 2, now);
    let _ = release(&mut pool, a, 1, now + Duration::from_secs(1));
    let mut fx = Effects::default();
    assert!(matches!(ask(&mut pool, "c", now, &mut fx), Acquire::Granted(Grant::Dial(_))));
    assert_eq!(fx.left, vec![2]);
    assert_eq!(pool.stats().evictions, 1);
    assert_eq!(pool.key_stats().count(), 2, "a key with nothing left is forgotten");
}

#[test]
fn the_idle_limit_closes_the_longest_idle() {
    let now = Instant::now();
    let mut pool = Rig::new(Limits { idle_per_key: 1, ..Limits::default() });
    let (first, second) = (dial(&mut pool, "a", now), dial(&mut pool, "a", now));
    assert!(release(&mut pool, first, 1, now).left.is_empty());
    assert_eq!(release(&mut pool, second, 2, now).left, vec![1]);
}

#[test]
fn no_idle_connection_is_kept_with_a_limit_of_zero() {
    let now = Instant::now();
    let mut pool = Rig::new(Limits { idle_per_key: 0, ..Limits::default() });
    let permit = dial(&mut pool, "a", now);
    assert_eq!(release(&mut pool, permit, 1, now).left, vec![1]);
    assert_eq!(pool.key_stats().count(), 0);
}

#[test]
fn idle_connections_expire() {
    let (mut pool, now) = (Rig::new(Limits::default()), Instant::now());
    let (first, second) = (dial(&mut pool, "a", now), dial(&mut pool, "b", now));
    let later = now + Duration::from_secs(10);
    let _ = release(&mut pool, first, 1, now);
    let _ = release(&mut pool, second, 2, later);
    let mut fx = Effects::default();
    pool.expire(now + Duration::from_secs(89), &mut fx);
    assert!(fx.left.is_empty());
    pool.expire(now + Duration::from_secs(90), &mut fx);
    assert_eq!(fx.left, vec![1]);
    assert_eq!(pool.stats().expired, 1);
}

#[test]
fn an_expired_connection_is_not_leased() {
    let (mut pool, now) = (Rig::new(Limits::default()), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let _ = release(&mut pool, permit, 1, now);
    let mut fx = Effects::default();
    let later = now + Duration::from_secs(90);
    assert!(matches!(ask(&mut pool, "a", later, &mut fx), Acquire::Granted(Grant::Dial(_))));
    assert_eq!(fx.left, vec![1]);
}

#[test]
fn a_lifetime_ends_reuse_however_busy() {
    let (now, hour) = (Instant::now(), Duration::from_secs(3600));
    let mut pool = Rig::new(Limits { max_lifetime: Some(hour), ..Limits::default() });
    let young = dial(&mut pool, "a", now);
    let _ = release(&mut pool, young, 1, now + hour - Duration::from_secs(1));
    let (again, conn, _) = lease(&mut pool, "a", now + hour - Duration::from_secs(1));
    assert_eq!(release(&mut pool, again, conn, now + hour).left, vec![1]);
    assert_eq!(pool.stats().expired, 1);
}

#[test]
fn a_stale_connection_leads_to_the_next_and_then_to_a_dial() {
    let (mut pool, now) = (Rig::new(limits(2, 2)), Instant::now());
    let (first, second) = (dial(&mut pool, "a", now), dial(&mut pool, "a", now));
    let _ = release(&mut pool, first, 1, now);
    let _ = release(&mut pool, second, 2, now);
    let (permit, conn, _) = lease(&mut pool, "a", now);
    assert_eq!(conn, 2);
    let mut fx = Effects::default();
    let Grant::Lease(permit, 1) = pool.stale(permit, now, &mut fx) else { panic!("1 is idle") };
    let Grant::Dial(permit) = pool.stale(permit, now, &mut fx) else { panic!("none is idle") };
    assert!(!permit.is_reused());
    let stats = pool.stats();
    assert_eq!((stats.stale, stats.dialling, stats.in_use, stats.idle), (2, 1, 0, 0));
    pool.abandon(permit, &mut fx);
    assert_eq!(pool.stats().open(), 0);
}

#[test]
fn a_cancelled_grant_passes_to_the_next_waiter() {
    let (mut pool, now) = (Rig::new(limits(1, 0)), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let (first, second) = (wait(&mut pool, "a", now), wait(&mut pool, "a", now));
    let _ = release(&mut pool, permit, 9, now);
    let mut fx = Effects::default();
    pool.cancel(first, &mut fx);
    assert_eq!(fx.wake.as_slice(), &[second]);
    assert!(matches!(pool.claim(second), Some(Grant::Lease(_, 9))));
    pool.cancel(first, &mut fx);
    assert_eq!(fx.wake.len(), 1, "a spent waiter is ignored");
}

#[test]
fn a_cancelled_waiter_is_passed_over() {
    let (mut pool, now) = (Rig::new(limits(1, 0)), Instant::now());
    let permit = dial(&mut pool, "a", now);
    let (first, second) = (wait(&mut pool, "b", now), wait(&mut pool, "a", now));
    let mut fx = Effects::default();
    pool.cancel(first, &mut fx);
    assert_eq!(release(&mut pool, permit, 9, now).wake.as_slice(), &[second]);
    assert_eq!(pool.key_stats().count(), 1);
}

#[test]
fn closing_idle_connections_leaves_those_in_use() {
    let (mut pool, now) = (Rig::new(Limits::default()), Instant::now());
    let (kept, idle) = (dial(&mut pool, "a", now), dial(&mut pool, "b", now));
    let _ = release(&mut pool, idle, 2, now);
    let mut fx = Effects::default();
    pool.close_idle(now, &mut fx);
    assert_eq!(fx.left, vec![2]);
    assert_eq!(pool.stats().open(), 1);
    assert!(release(&mut pool, kept, 1, now).left.is_empty());
}
