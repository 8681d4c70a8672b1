use crate::pool::{Acquire, Acquired, Effects, Grant, Limits, Pool, SharedPool, Verdict};
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const HOSTS: u64 = 64;

/// `acquire` + `release` of an idle connection, for a profiler to count; the clock is not read.
/// Run with `--release -- --ignored --nocapture`, alone, at two values of `POOL_ROUNDS`.
#[test]
#[ignore = "a measurement"]
fn machine() {
    let mut pool: Pool<(String, u16), usize> = Pool::new(Limits::default());
    let (now, mut fx) = (Instant::now(), Effects::default());
    let hosts: Vec<String> = (0..HOSTS).map(|n| format!("host-{n}.example")).collect();
    let begin = Instant::now();
    for n in 0..rounds() {
        let at = (n % HOSTS) as usize;
        let host = hosts[at].as_str();
        let hash = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let is_key = |key: &(String, u16)| key.1 == 443 && key.0 == host;
        match pool.acquire(hash, is_key, || (host.to_owned(), 443), now, &mut fx) {
            Acquire::Granted(Grant::Lease(permit, conn)) => {
                pool.release(permit, black_box(conn), Verdict::Reuse, now, &mut fx);
            }
            Acquire::Granted(Grant::Dial(permit)) => {
                pool.release(permit, at, Verdict::Reuse, now, &mut fx);
            }
            Acquire::Wait(_) => unreachable!("there is no limit"),
        }
    }
    report("machine", begin);
}

/// The same through the lock, the future and the guards, with the hash of the key.
#[test]
#[ignore = "a measurement"]
fn shared() {
    let pool: SharedPool<(String, u16), usize> = SharedPool::new(Limits::default());
    let now = Instant::now();
    let hosts: Vec<String> = (0..HOSTS).map(|n| format!("host-{n}.example")).collect();
    let mut cx = Context::from_waker(Waker::noop());
    let begin = Instant::now();
    for n in 0..rounds() {
        let host = hosts[(n % HOSTS) as usize].as_str();
        let is_key = |key: &(String, u16)| key.1 == 443 && key.0 == host;
        let hash = pool.hash_of(&(host, 443u16));
        let mut future = pool.acquire(hash, is_key, || (host.to_owned(), 443), now);
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(Acquired::Lease(lease)) => black_box(lease).release(now),
            Poll::Ready(Acquired::Dial(permit)) => permit.connected(n as usize, now).release(now),
            Poll::Pending => unreachable!("there is no limit"),
        }
    }
    report("shared", begin);
}

fn rounds() -> u64 {
    std::env::var("POOL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000)
}

fn report(what: &str, begin: Instant) {
    let rounds = rounds();
    let each = begin.elapsed().as_nanos() as f64 / rounds as f64;
    println!("{what}: {each:.1} ns a round, {rounds} rounds");
}
