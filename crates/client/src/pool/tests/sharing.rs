//! Shared connections through [`SharedPool`], with their own links to it.

use super::mock::{FIRST, Mock};
use crate::pool::{Acquired, Asked, DialPermit, Expects, Limits, Shareable, SharedPool};
use std::collections::HashSet;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

type Rig = SharedPool<u32, u32, Mock>;
type Asking = Pin<Box<dyn Future<Output = Acquired<u32, u32, Mock>> + Send>>;

fn rig(total: usize) -> Rig {
    SharedPool::new(Limits { total: NonZeroUsize::new(total), ..Limits::default() })
}

fn ask(pool: &Rig, key: u32) -> Asking {
    let hash = pool.hash_of(&key);
    let now = Instant::now();
    let asked = pool.acquire(hash, |known| *known == key, || key, Expects::Either, now);
    Box::pin(async move {
        match asked {
            Asked::Granted(acquired) => acquired,
            Asked::Wait(waiting) => waiting.await,
        }
    })
}

fn poll(asking: &mut Asking) -> Poll<Acquired<u32, u32, Mock>> {
    asking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn dial(asking: &mut Asking) -> DialPermit<u32, u32, Mock> {
    match poll(asking) {
        Poll::Ready(Acquired::Dial(permit)) => permit,
        _ => panic!("a dial was due"),
    }
}

fn place(asking: &mut Asking) -> Mock {
    match poll(asking) {
        Poll::Ready(Acquired::Shared(mock)) => mock,
        _ => panic!("a place was due"),
    }
}

/// Opens a connection with `max` places, one of which is taken, that tells the pool its news.
fn open(permit: DialPermit<u32, u32, Mock>, id: u32, max: usize) -> Mock {
    let now = Instant::now();
    let mock = Mock::dialled(id, max, now);
    let member = permit.shared(mock.clone(), None, now);
    mock.on_freed(move |now| member.freed(now));
    mock
}

#[test]
fn a_call_dropped_while_it_dials_leaves_nobody_hanging() {
    let pool = rig(0);
    let (mut first, mut second) = (ask(&pool, 1), ask(&pool, 1));
    let permit = dial(&mut first);
    assert!(poll(&mut second).is_pending());
    drop(permit);
    let _ = dial(&mut second);
}

#[test]
fn a_place_dropped_unclaimed_is_given_back() {
    let pool = rig(1);
    let mock = open(dial(&mut ask(&pool, 1)), FIRST, 1);
    let waiting = ask(&pool, 1);
    mock.finish(Instant::now());
    assert_eq!(mock.taken(), 1, "the waiter's");
    drop(waiting);
    assert_eq!(mock.taken(), 0);
    assert_eq!(pool.stats(Instant::now()).idle, 1);
}

#[test]
fn a_place_given_back_goes_to_who_came_meanwhile() {
    let pool = rig(1);
    let mock = open(dial(&mut ask(&pool, 1)), FIRST, 1);
    let first = ask(&pool, 1);
    mock.finish(Instant::now());
    let mut second = ask(&pool, 1);
    drop(first);
    assert_eq!(place(&mut second).id, FIRST);
}

#[test]
fn a_link_dropped_says_that_the_connection_is_gone() {
    let pool = rig(1);
    let mock = open(dial(&mut ask(&pool, 1)), FIRST, 1);
    let mut waiting = ask(&pool, 2);
    assert!(poll(&mut waiting).is_pending());
    mock.unlink();
    let _ = dial(&mut waiting);
}

#[test]
fn a_link_does_not_keep_the_pool_alive() {
    let pool = rig(1);
    let now = Instant::now();
    let mock = Mock::dialled(FIRST, 2, now);
    let member = dial(&mut ask(&pool, 1)).shared(mock.clone(), None, now);
    drop(pool);
    assert_eq!(std::sync::Arc::strong_count(mock.inner()), 1, "the pool's handle is dropped");
    member.freed(now);
    member.gone(now);
}

#[test]
fn a_shared_connection_may_use_the_pool_as_it_is_dropped() {
    #[derive(Clone)]
    struct Nosy(SharedPool<u32, u32, Nosy>);
    impl Drop for Nosy {
        fn drop(&mut self) {
            let _ = self.0.stats(Instant::now());
        }
    }
    impl Shareable for Nosy {
        fn reserve(&self, _: Instant) -> crate::pool::Place {
            crate::pool::Place::Full
        }
        fn unreserve(&self) {}
        fn idle_since(&self) -> Option<Instant> {
            None
        }
    }
    let (pool, now) = (SharedPool::<u32, u32, Nosy>::new(Limits::default()), Instant::now());
    let asked = pool.acquire(1, |_| true, || 1, Expects::Either, now);
    let Asked::Granted(Acquired::Dial(permit)) = asked else { panic!() };
    permit.shared(Nosy(pool.clone()), None, now).gone(now);
    assert_eq!(pool.stats(now).open(), 0);
}

/// A place that comes free between the refusal and the wait: its news found nobody waiting.
#[test]
fn a_place_freed_as_the_waiter_comes_is_not_missed() {
    #[derive(Clone)]
    struct Racing(std::sync::Arc<AtomicUsize>);
    impl Shareable for Racing {
        fn reserve(&self, _: Instant) -> crate::pool::Place {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => crate::pool::Place::Full,
                _ => crate::pool::Place::Taken,
            }
        }
        fn unreserve(&self) {}
        fn idle_since(&self) -> Option<Instant> {
            None
        }
    }
    let limits = Limits { total: NonZeroUsize::new(1), ..Limits::default() };
    let (pool, now) = (SharedPool::<u32, u32, Racing>::new(limits), Instant::now());
    let ask = || pool.acquire(1, |_| true, || 1, Expects::Either, now);
    let Asked::Granted(Acquired::Dial(permit)) = ask() else { panic!() };
    let _member = permit.shared(Racing(Default::default()), None, now);
    let Asked::Wait(waiting) = ask() else { panic!("the first answer is that it is full") };
    let polled = std::pin::pin!(waiting).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Acquired::Shared(_))));
}

/// Exchanges from many threads over connections of three places, under a limit that always binds:
/// each is served, and none loses the news of a free place.
#[test]
fn ten_thousand_exchanges_share_two_connections() {
    let pool = rig(2);
    let (threads, each) = (8, 1250);
    let (start, next, most) = (Barrier::new(threads), AtomicU32::new(FIRST), AtomicUsize::new(0));
    let seen = std::sync::Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for thread in 0..threads {
            let (pool, start, next, most, seen) = (&pool, &start, &next, &most, &seen);
            scope.spawn(move || {
                start.wait();
                for n in 0..each {
                    let n = (thread * 7 + n) as u32;
                    let mut asking = ask(pool, n % 3);
                    if n.is_multiple_of(5) {
                        // What is had at once is used; a place in the queue is given up.
                        if let Poll::Ready(acquired) = poll(&mut asking) {
                            exchange(acquired, next, seen, n);
                        }
                        continue;
                    }
                    exchange(super::futures::block_on(asking), next, seen, n);
                    most.fetch_max(pool.stats(Instant::now()).open(), Ordering::SeqCst);
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 2);
    let stats = pool.stats(Instant::now());
    assert_eq!((stats.in_use, stats.dialling, stats.waiting), (0, 0, 0));
    assert!(stats.hits > 0 && !seen.lock().unwrap().is_empty());
}

fn exchange(
    acquired: Acquired<u32, u32, Mock>,
    next: &AtomicU32,
    seen: &std::sync::Mutex<HashSet<u32>>,
    n: u32,
) {
    let mock = match acquired {
        Acquired::Dial(_) if n.is_multiple_of(11) => return,
        Acquired::Dial(permit) => open(permit, next.fetch_add(1, Ordering::SeqCst), 3),
        Acquired::Shared(mock) => mock,
        Acquired::Lease(_) => panic!("every connection is shared"),
    };
    assert!(mock.taken() <= 3);
    seen.lock().unwrap().insert(mock.id);
    thread::yield_now();
    mock.finish(Instant::now());
    if n.is_multiple_of(97) {
        mock.die();
        mock.unlink();
    }
}
