use super::limits::Limits;
use super::machine::{Acquire, Effects, Grant, Permit, Pool, Verdict};
use super::stats::Stats;
use super::waiters::WaiterId;
use foldhash::fast::RandomState;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A [`Pool`] that threads and tasks share. Cheap to clone; clones are the same pool.
///
/// Under its lock nothing is woken, dropped or awaited.
pub struct SharedPool<K, C> {
    inner: Arc<Inner<K, C>>,
}

struct Inner<K, C> {
    state: Mutex<State<K, C>>,
    hasher: RandomState,
}

struct State<K, C> {
    pool: Pool<K, C>,
    /// By [`WaiterId::index`].
    wakers: Vec<Option<Waker>>,
}

impl<K, C> State<K, C> {
    /// Stores `waker` for `waiter`, and returns the one it replaces.
    fn set_waker(&mut self, waiter: WaiterId, waker: Option<Waker>) -> Option<Waker> {
        let index = waiter.index();
        if self.wakers.len() <= index {
            self.wakers.resize_with(index + 1, || None);
        }
        std::mem::replace(&mut self.wakers[index], waker)
    }
}

impl<K, C> Inner<K, C> {
    fn lock(&self) -> MutexGuard<'_, State<K, C>> {
        // A panic under the lock can only come from the caller's own key comparison, which runs
        // before anything has changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pool under the lock, then closes and wakes what the change asks for: in that
    /// order, so that who is woken to dial does not meet the connection it replaces. Another
    /// thread may: a connection being closed no longer counts.
    fn update<R>(&self, change: impl FnOnce(&mut Pool<K, C>, &mut Effects<C>) -> R) -> R {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let answer = change(&mut state.pool, &mut effects);
        if effects.is_empty() {
            return answer;
        }
        let wake: smallvec::SmallVec<[Waker; 2]> =
            (effects.wake.iter()).filter_map(|&waiter| state.set_waker(waiter, None)).collect();
        drop(state);
        drop(effects);
        for waker in wake {
            waker.wake();
        }
        answer
    }
}

impl<K, C> SharedPool<K, C> {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        let state = State { pool: Pool::new(limits), wakers: Vec::new() };
        let inner = Inner { state: Mutex::new(state), hasher: RandomState::default() };
        SharedPool { inner: Arc::new(inner) }
    }

    /// Hashes a key, or a borrowed form of it that hashes alike, for [`acquire`](Self::acquire).
    /// Seeded at random in each process.
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.inner.hasher.hash_one(key)
    }

    /// Asks for a connection: see [`Pool::acquire`]. The answer is there at once unless a limit
    /// binds.
    pub fn acquire(
        &self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
        now: Instant,
    ) -> Asked<K, C> {
        let answer = self.inner.update(|pool, effects| {
            pool.expire_idle(now, effects);
            pool.acquire(hash, is_key, make_key, now, effects)
        });
        match answer {
            Acquire::Granted(grant) => Asked::Granted(Acquired::new(&self.inner, grant)),
            Acquire::Wait(id) => {
                let inner = Arc::clone(&self.inner);
                Asked::Wait(Waiting { inner, id, claimed: false })
            }
        }
    }

    /// Closes every idle connection.
    pub fn close_idle(&self) {
        self.inner.update(|pool, effects| pool.close_idle(effects));
    }

    /// Counts over all keys, as they stand at `now`.
    pub fn stats(&self, now: Instant) -> Stats {
        self.inner.update(|pool, effects| {
            pool.expire(now, effects);
            pool.stats()
        })
    }

    /// Counts for each key that has a connection or a waiter at `now`.
    pub fn key_stats(&self, now: Instant) -> Vec<(K, Stats)>
    where
        K: Clone,
    {
        self.inner.update(|pool, effects| {
            pool.expire(now, effects);
            pool.key_stats().map(|(key, stats)| (key.clone(), stats)).collect()
        })
    }
}

impl<K, C> Clone for SharedPool<K, C> {
    fn clone(&self) -> Self {
        SharedPool { inner: Arc::clone(&self.inner) }
    }
}

impl<K, C> fmt::Debug for SharedPool<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedPool").field(&self.inner.lock().pool.stats()).finish()
    }
}

/// The answer to [`SharedPool::acquire`].
#[must_use]
pub enum Asked<K, C> {
    /// Go ahead.
    Granted(Acquired<K, C>),
    /// A limit binds: this future is a place in the queue.
    Wait(Waiting<K, C>),
}

/// A place in the queue, taken when it was made. Safe to drop at any time: what it may have been
/// granted passes on to the next.
#[must_use = "futures do nothing unless polled"]
pub struct Waiting<K, C> {
    inner: Arc<Inner<K, C>>,
    id: WaiterId,
    claimed: bool,
}

impl<K, C> Drop for Waiting<K, C> {
    fn drop(&mut self) {
        // Spent by its claim, or else still the owner of its index and the waker there.
        let waker = match self.claimed {
            true => return,
            false => self.inner.lock().set_waker(self.id, None),
        };
        self.inner.update(|pool, effects| pool.cancel(self.id, effects));
        drop(waker);
    }
}

impl<K, C> Unpin for Waiting<K, C> {}

impl<K, C> Future for Waiting<K, C> {
    type Output = Acquired<K, C>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Polled after it was ready, which the contract of `Future` forbids.
        if self.claimed {
            return Poll::Pending;
        }
        let mut state = self.inner.lock();
        let grant = state.pool.claim(self.id);
        let next = grant.is_none().then(|| cx.waker().clone());
        let previous = state.set_waker(self.id, next);
        drop(state);
        drop(previous);
        self.claimed = grant.is_some();
        match grant {
            Some(grant) => Poll::Ready(Acquired::new(&self.inner, grant)),
            None => Poll::Pending,
        }
    }
}

/// What asking for a connection came to.
#[must_use]
pub enum Acquired<K, C> {
    /// An open connection.
    Lease(Lease<K, C>),
    /// Leave to open one.
    Dial(DialPermit<K, C>),
}

impl<K, C> Acquired<K, C> {
    fn new(inner: &Arc<Inner<K, C>>, grant: Grant<C>) -> Self {
        let (permit, conn) = match grant {
            Grant::Lease(permit, conn) => (permit, Some(conn)),
            Grant::Dial(permit) => (permit, None),
        };
        let unit = Unit { inner: Arc::clone(inner), permit: Some(permit) };
        match conn {
            Some(conn) => Acquired::Lease(Lease { conn, unit }),
            None => Acquired::Dial(DialPermit { unit }),
        }
    }
}

/// A permit that goes back to its pool when dropped.
struct Unit<K, C> {
    inner: Arc<Inner<K, C>>,
    permit: Option<Permit>,
}

impl<K, C> Drop for Unit<K, C> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.inner.update(|pool, effects| pool.abandon(permit, effects));
        }
    }
}

/// Leave to open one connection. Dropping it says that none was opened.
#[must_use]
pub struct DialPermit<K, C> {
    unit: Unit<K, C>,
}

impl<K, C> DialPermit<K, C> {
    /// The connection is open: `conn` counts as in use from `now` on.
    pub fn connected(mut self, conn: C, now: Instant) -> Lease<K, C> {
        if let Some(permit) = &mut self.unit.permit {
            self.unit.inner.update(|pool, _| pool.opened(permit, now));
        }
        Lease { conn, unit: self.unit }
    }
}

/// A connection lent to one exchange. Dropping it closes the connection, and then lets the pool
/// open another in its place.
#[must_use]
pub struct Lease<K, C> {
    // Fields drop in order: the connection is closed before its unit is free.
    conn: C,
    unit: Unit<K, C>,
}

impl<K, C> Lease<K, C> {
    /// Whether the connection has served an exchange before.
    pub fn is_reused(&self) -> bool {
        self.unit.permit.as_ref().is_some_and(Permit::is_reused)
    }

    /// The exchange is over and the connection can serve another.
    pub fn release(self, now: Instant) {
        let Lease { conn, mut unit } = self;
        if let Some(permit) = unit.permit.take() {
            unit.inner.update(|pool, effects| {
                pool.release(permit, conn, Verdict::Reuse, now, effects);
            });
        }
    }

    /// Takes the connection out of the pool's care: it no longer counts towards the limits.
    pub fn detach(self) -> C {
        self.conn
    }

    /// The connection was dead before anything was sent on it: closes it, and gives the next idle
    /// one or leave to dial.
    pub fn stale(self, now: Instant) -> Acquired<K, C> {
        let Lease { conn, mut unit } = self;
        drop(conn);
        match unit.permit.take() {
            Some(permit) => {
                let grant = unit.inner.update(|pool, effects| pool.stale(permit, now, effects));
                Acquired::new(&unit.inner, grant)
            }
            None => Acquired::Dial(DialPermit { unit }),
        }
    }
}

impl<K, C> Deref for Lease<K, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.conn
    }
}

impl<K, C> DerefMut for Lease<K, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.conn
    }
}
