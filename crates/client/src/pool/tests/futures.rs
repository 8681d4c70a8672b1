use super::mock::Mock;
use crate::pool::{Acquired, Asked, DialPermit, Expects, Lease, Limits, SharedPool};
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A connection that counts itself.
struct Conn(Arc<AtomicUsize>);

impl Conn {
    fn open(alive: &Arc<AtomicUsize>) -> Conn {
        alive.fetch_add(1, Ordering::SeqCst);
        Conn(Arc::clone(alive))
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return out;
        }
        thread::park_timeout(Duration::from_secs(20));
        assert!(Instant::now() < give_up, "a waiter was never woken");
    }
}

struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Rig = SharedPool<u32, Conn, Mock>;

fn rig(total: usize) -> (Rig, Arc<AtomicUsize>) {
    let limits = Limits { total: NonZeroUsize::new(total), ..Limits::default() };
    (SharedPool::new(limits), Arc::default())
}

type Asking = std::pin::Pin<Box<dyn Future<Output = Acquired<u32, Conn, Mock>> + Send>>;

fn ask(pool: &Rig, key: u32) -> Asking {
    let hash = pool.hash_of(&key);
    let asked =
        pool.acquire(hash, |known| *known == key, || key, Expects::Exclusive, Instant::now());
    Box::pin(async move {
        match asked {
            Asked::Granted(acquired) => acquired,
            Asked::Wait(waiting) => waiting.await,
        }
    })
}

fn dial(acquired: Acquired<u32, Conn, Mock>) -> DialPermit<u32, Conn, Mock> {
    match acquired {
        Acquired::Dial(permit) => permit,
        _ => panic!("nothing was idle"),
    }
}

fn lease(acquired: Acquired<u32, Conn, Mock>) -> Lease<u32, Conn, Mock> {
    match acquired {
        Acquired::Lease(lease) => lease,
        _ => panic!("a connection was idle"),
    }
}

fn poll(future: &mut Asking, waker: &Waker) -> Poll<Acquired<u32, Conn, Mock>> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

#[test]
fn a_released_lease_is_reused_and_a_dropped_one_is_closed() {
    let (pool, alive) = rig(0);
    let now = Instant::now();
    let first = dial(block_on(ask(&pool, 1))).connected(Conn::open(&alive), now);
    assert!(!first.is_reused());
    first.release(now);
    let second = lease(block_on(ask(&pool, 1)));
    assert!(second.is_reused());
    drop(second);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert_eq!(pool.stats(Instant::now()).open(), 0);
}

#[test]
fn a_dropped_dial_frees_its_unit() {
    let (pool, _) = rig(1);
    let permit = dial(block_on(ask(&pool, 1)));
    let wakes = Arc::new(CountWakes(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut waiting = ask(&pool, 2);
    assert!(poll(&mut waiting, &waker).is_pending());
    drop(permit);
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(&mut waiting, &waker), Poll::Ready(Acquired::Dial(_))));
    assert_eq!(pool.stats(Instant::now()).open(), 0, "dropped at once, it went back");
}

#[test]
fn a_future_dropped_after_its_grant_passes_it_on() {
    let (pool, alive) = rig(1);
    let held = dial(block_on(ask(&pool, 1))).connected(Conn::open(&alive), Instant::now());
    let wakes = Arc::new(CountWakes(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let (mut first, mut second, mut third) = (ask(&pool, 1), ask(&pool, 1), ask(&pool, 1));
    for future in [&mut first, &mut second, &mut third] {
        assert!(poll(future, &waker).is_pending());
    }
    drop(second);
    held.release(Instant::now());
    drop(first);
    assert_eq!(wakes.0.load(Ordering::SeqCst), 2, "the first, and then the third");
    match poll(&mut third, &waker) {
        Poll::Ready(Acquired::Lease(lease)) => assert!(lease.is_reused()),
        _ => panic!("the connection was lost"),
    }
}

#[test]
fn a_ready_future_dropped_unpolled_gives_back() {
    let (pool, alive) = rig(1);
    let held = dial(block_on(ask(&pool, 1))).connected(Conn::open(&alive), Instant::now());
    held.release(Instant::now());
    drop(ask(&pool, 1));
    assert_eq!((pool.stats(Instant::now()).in_use, pool.stats(Instant::now()).dialling), (0, 0));
}

#[test]
fn a_stale_lease_is_closed_before_the_next_is_given() {
    let (pool, alive) = rig(0);
    let now = Instant::now();
    let first = dial(block_on(ask(&pool, 1))).connected(Conn::open(&alive), now);
    first.release(now);
    let permit = dial(lease(block_on(ask(&pool, 1))).stale(now));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    drop(permit.connected(Conn::open(&alive), now));
    assert_eq!(pool.stats(Instant::now()).stale, 1);
}

#[test]
fn a_connection_may_use_the_pool_as_it_is_dropped() {
    struct Nosy(SharedPool<u32, Nosy, Mock>);
    impl Drop for Nosy {
        fn drop(&mut self) {
            let _ = self.0.stats(Instant::now());
        }
    }
    let pool = SharedPool::<u32, Nosy, Mock>::new(Limits { idle_per_key: 0, ..Limits::default() });
    let now = Instant::now();
    let asked = pool.acquire(1, |_| true, || 1, Expects::Exclusive, now);
    let Asked::Granted(Acquired::Dial(permit)) = asked else { panic!() };
    permit.connected(Nosy(pool.clone()), now).release(now);
    assert_eq!(pool.stats(Instant::now()).evictions, 1);
}

#[test]
fn ten_thousand_exchanges_share_six_connections() {
    let (pool, alive) = rig(6);
    let (threads, each) = (8, 1250);
    let start = Barrier::new(threads);
    let most = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (pool, alive, start, most) = (&pool, &alive, &start, &most);
            scope.spawn(move || {
                start.wait();
                for n in 0..each {
                    exchange(pool, alive, most, (thread * 7 + n) as u32);
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 6);
    let stats = pool.stats(Instant::now());
    assert_eq!((stats.in_use, stats.dialling, stats.waiting), (0, 0, 0));
    assert_eq!(alive.load(Ordering::SeqCst), stats.idle);
    pool.close_idle(Instant::now());
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

/// One exchange, with a character of its own.
fn exchange(pool: &Rig, alive: &Arc<AtomicUsize>, most: &AtomicUsize, n: u32) {
    let mut future = ask(pool, n % 3);
    if n.is_multiple_of(5) {
        // Polled once, and given up.
        let _ = poll(&mut future, Waker::noop());
        return;
    }
    let lease = match block_on(future) {
        Acquired::Dial(_) if n.is_multiple_of(11) => return,
        Acquired::Dial(permit) => permit.connected(Conn::open(alive), Instant::now()),
        Acquired::Lease(lease) => lease,
        Acquired::Shared(_) => panic!("no connection is shared"),
    };
    most.fetch_max(pool.stats(Instant::now()).open(), Ordering::SeqCst);
    if !n.is_multiple_of(13) {
        lease.release(Instant::now());
    }
}
