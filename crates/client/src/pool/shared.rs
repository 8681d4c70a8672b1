use super::grant::{Acquire, Effects, Grant, Left, Permit, Verdict};
use super::limits::Limits;
use super::machine::Pool;
use super::members::{Expects, MemberId, Shareable};
use super::stats::Stats;
use super::waiters::WaiterId;
use foldhash::fast::RandomState;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A [`Pool`] that threads and tasks share. Cheap to clone; clones are the same pool.
///
/// Under its lock nothing is woken, dropped or awaited.
pub struct SharedPool<K, C, S: Shareable> {
    inner: Arc<Inner<K, C, S>>,
}

struct Inner<K, C, S: Shareable> {
    state: Mutex<State<K, C, S>>,
    hasher: RandomState,
    /// What [`Pool::wants_news`] said last: written under the lock, read without.
    wants_news: Arc<AtomicBool>,
}

struct State<K, C, S: Shareable> {
    pool: Pool<K, C, S>,
    /// By [`WaiterId::index`].
    wakers: Vec<Option<Waker>>,
}

impl<K, C, S: Shareable> State<K, C, S> {
    /// Stores `waker` for `waiter`, and returns the one it replaces.
    fn set_waker(&mut self, waiter: WaiterId, waker: Option<Waker>) -> Option<Waker> {
        let index = waiter.index();
        if self.wakers.len() <= index {
            self.wakers.resize_with(index + 1, || None);
        }
        std::mem::replace(&mut self.wakers[index], waker)
    }
}

impl<K, C, S: Shareable> Inner<K, C, S> {
    fn lock(&self) -> MutexGuard<'_, State<K, C, S>> {
        // A panic under the lock can only come from the caller's own key comparison, which runs
        // before anything has changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the pool under the lock, then closes and wakes what the change asks for: in that
    /// order, so that who is woken to dial does not meet the connection it replaces. Another
    /// thread may: a connection being closed no longer counts.
    fn update<R>(&self, change: impl FnOnce(&mut Pool<K, C, S>, &mut Effects<C, S>) -> R) -> R {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let answer = change(&mut state.pool, &mut effects);
        if effects.is_empty() {
            return answer;
        }
        if effects.waits {
            self.wants_news.store(state.pool.wants_news(), Ordering::Release);
        }
        let wake: smallvec::SmallVec<[Waker; 2]> =
            (effects.wake.iter()).filter_map(|&waiter| state.set_waker(waiter, None)).collect();
        drop(state);
        for left in effects.left {
            if let Left::Place(conn) = left {
                conn.unreserve();
            }
        }
        for waker in wake {
            waker.wake();
        }
        answer
    }
}

impl<K, C, S: Shareable> SharedPool<K, C, S> {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        let pool = Pool::new(limits);
        let wants_news = Arc::new(AtomicBool::new(pool.wants_news()));
        let state = State { pool, wakers: Vec::new() };
        let inner = Inner { state: Mutex::new(state), hasher: RandomState::default(), wants_news };
        SharedPool { inner: Arc::new(inner) }
    }

    /// Hashes a key, or a borrowed form of it that hashes alike, for [`acquire`](Self::acquire).
    /// Seeded at random in each process.
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.inner.hasher.hash_one(key)
    }

    /// Asks for a connection: see [`Pool::acquire`]. The answer is there at once unless a limit
    /// binds, or a dial is under way that may serve this call too.
    pub fn acquire(
        &self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
        expects: Expects,
        now: Instant,
    ) -> Asked<K, C, S> {
        let answer = self.inner.update(|pool, effects| {
            pool.sweep(now, effects);
            pool.acquire(hash, is_key, make_key, expects, now, effects)
        });
        match answer {
            Acquire::Granted(grant) => Asked::Granted(Acquired::new(&self.inner, grant)),
            Acquire::Wait { waiter: id, look_again } => {
                let inner = Arc::clone(&self.inner);
                if look_again {
                    inner.update(|pool, effects| pool.look_again(id, now, effects));
                }
                Asked::Wait(Waiting { inner, id, claimed: false })
            }
        }
    }

    /// Whether a shared connection of this key is open that satisfies `suits`, which is asked under
    /// the pool's lock.
    #[cfg(feature = "ws")]
    pub fn has_shared(
        &self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        suits: impl Fn(&S) -> bool,
    ) -> bool {
        self.inner.lock().pool.shared_of(hash, is_key).any(suits)
    }

    /// The connections that calls of other keys may share, if they stand at one of `addrs`: see
    /// [`Pool::standing_at`].
    pub fn standing_at(
        &self,
        addrs: &[SocketAddr],
        is_fit: impl Fn(&K) -> bool,
        now: Instant,
    ) -> Vec<Standing<S>> {
        let all = self.inner.lock().pool.standing_at(addrs, is_fit, now);
        all.into_iter().map(|(id, conn)| Standing { conn, id }).collect()
    }

    /// Leave to open connections for this key before they are asked for: see [`Pool::ahead`].
    pub fn ahead(
        &self,
        hash: u64,
        is_key: impl Fn(&K) -> bool,
        make_key: impl FnOnce() -> K,
        wanted: (Expects, usize),
        now: Instant,
    ) -> Vec<DialPermit<K, C, S>> {
        let permits = self.inner.update(|pool, effects| {
            pool.sweep(now, effects);
            pool.ahead(hash, is_key, make_key, wanted, now, effects)
        });
        let permit = |permit| DialPermit {
            unit: Unit { inner: Arc::clone(&self.inner), permit: Some(permit) },
        };
        permits.into_iter().map(permit).collect()
    }

    /// The shared connections of this key.
    pub fn shared_of(&self, hash: u64, is_key: impl Fn(&K) -> bool) -> Vec<S> {
        self.inner.lock().pool.shared_of(hash, is_key).cloned().collect()
    }

    /// Has a key served by none but connections of its own: see [`Pool::part`].
    pub fn part(&self, hash: u64, is_key: impl Fn(&K) -> bool) {
        self.inner.update(|pool, _| pool.part(hash, is_key));
    }

    /// Closes every idle connection.
    pub fn close_idle(&self, now: Instant) {
        self.inner.update(|pool, effects| pool.close_idle(now, effects));
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

impl<K, C, S: Shareable> Clone for SharedPool<K, C, S> {
    fn clone(&self) -> Self {
        SharedPool { inner: Arc::clone(&self.inner) }
    }
}

impl<K, C, S: Shareable> fmt::Debug for SharedPool<K, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedPool").field(&self.inner.lock().pool.stats()).finish()
    }
}

/// The answer to [`SharedPool::acquire`].
#[must_use]
pub enum Asked<K, C, S: Shareable> {
    /// Go ahead.
    Granted(Acquired<K, C, S>),
    /// A limit binds: this future is a place in the queue.
    Wait(Waiting<K, C, S>),
}

/// A place in the queue, taken when it was made. Safe to drop at any time: what it may have been
/// granted passes on to the next.
#[must_use = "futures do nothing unless polled"]
pub struct Waiting<K, C, S: Shareable> {
    inner: Arc<Inner<K, C, S>>,
    id: WaiterId,
    claimed: bool,
}

impl<K, C, S: Shareable> Drop for Waiting<K, C, S> {
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

impl<K, C, S: Shareable> Unpin for Waiting<K, C, S> {}

impl<K, C, S: Shareable> Future for Waiting<K, C, S> {
    type Output = Acquired<K, C, S>;

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
pub enum Acquired<K, C, S: Shareable> {
    /// An open connection.
    Lease(Lease<K, C, S>),
    /// A place on a shared connection, which is the caller's to use or to give back.
    Shared(S),
    /// Leave to open one.
    Dial(DialPermit<K, C, S>),
}

impl<K, C, S: Shareable> Acquired<K, C, S> {
    fn new(inner: &Arc<Inner<K, C, S>>, grant: Grant<C, S>) -> Self {
        let unit = |permit| Unit { inner: Arc::clone(inner), permit: Some(permit) };
        match grant {
            Grant::Lease(permit, conn) => Acquired::Lease(Lease { conn, unit: unit(permit) }),
            Grant::Shared(conn) => Acquired::Shared(conn),
            Grant::Dial(permit) => Acquired::Dial(DialPermit { unit: unit(permit) }),
        }
    }
}

/// A permit that goes back to its pool when dropped.
struct Unit<K, C, S: Shareable> {
    inner: Arc<Inner<K, C, S>>,
    permit: Option<Permit>,
}

impl<K, C, S: Shareable> Drop for Unit<K, C, S> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.inner.update(|pool, effects| pool.abandon(permit, effects));
        }
    }
}

/// Leave to open one connection. Dropping it says that none was opened.
#[must_use]
pub struct DialPermit<K, C, S: Shareable> {
    unit: Unit<K, C, S>,
}

impl<K, C, S: Shareable> DialPermit<K, C, S> {
    /// An exclusive connection is open: `conn` counts as in use from `now` on.
    pub fn connected(mut self, conn: C, now: Instant) -> Lease<K, C, S> {
        if let Some(permit) = &mut self.unit.permit {
            self.unit.inner.update(|pool, effects| pool.opened(permit, now, effects));
        }
        Lease { conn, unit: self.unit }
    }

    /// A connection that many exchanges share is open. The pool keeps `conn`, and hands its places
    /// to all that wait for one. The dialling exchange takes its own place before. Calls of other keys
    /// may find it `at` that address.
    pub fn shared(mut self, conn: S, at: Option<SocketAddr>, now: Instant) -> Member<K, C, S> {
        let inner = &self.unit.inner;
        let id = self.unit.permit.take().map(|permit| {
            inner.update(|pool, effects| pool.shared(permit, conn, at, now, effects))
        });
        let wants_news = Arc::clone(&inner.wants_news);
        Member { inner: Arc::downgrade(inner), wants_news, id }
    }

    /// An exclusive connection is open that no exchange asked for: the first who waits gets it, or it is idle
    /// from `now` on.
    pub fn stand(mut self, conn: C, now: Instant) {
        if let Some(permit) = self.unit.permit.take() {
            self.unit.inner.update(|pool, effects| pool.stand(permit, conn, now, effects));
        }
    }

    /// As [`shared`](Self::shared), of a connection that no exchange asked for. `None`: another serves the key or
    /// is to be expected, and this one is not needed.
    pub fn stand_shared(
        mut self,
        conn: S,
        at: Option<SocketAddr>,
        now: Instant,
    ) -> Option<Member<K, C, S>> {
        let inner = &self.unit.inner;
        let permit = self.unit.permit.take()?;
        let kept =
            inner.update(|pool, effects| pool.stand_shared(permit, conn, at, now, effects)).ok();
        let wants_news = Arc::clone(&inner.wants_news);
        kept.map(|id| Member { inner: Arc::downgrade(inner), wants_news, id: Some(id) })
    }

    /// The connection serves this key too, so that there is no need to open one, if it has not left and
    /// `may` still says so, which is asked under the pool's lock. The exchange takes its own place before.
    ///
    /// # Errors
    /// The permit.
    pub fn join(
        mut self,
        standing: &Standing<S>,
        may: impl FnOnce() -> bool,
        now: Instant,
    ) -> Result<(), Self> {
        let Some(permit) = self.unit.permit.take() else {
            return Err(self);
        };
        let joined = self.unit.inner.update(|pool, effects| match may() {
            true => pool.join(permit, standing.id, now, effects),
            false => Err(permit),
        });
        joined.map_err(|permit| {
            self.unit.permit = Some(permit);
            self
        })
    }
}

/// A shared connection that calls of another key may join.
pub struct Standing<S> {
    pub conn: S,
    id: MemberId,
}

/// A shared connection's own link to the pool that keeps a handle of it. It does not keep the pool
/// alive. Dropping it says that the connection is [gone](Self::gone).
#[must_use = "the pool forgets a connection whose link is dropped"]
pub struct Member<K, C, S: Shareable> {
    inner: Weak<Inner<K, C, S>>,
    wants_news: Arc<AtomicBool>,
    id: Option<MemberId>,
}

impl<K, C, S: Shareable> Member<K, C, S> {
    /// An exchange ended, or the peer allows more of them: a waiter may have the place. Call it
    /// after the place can be had by [`Shareable::reserve`], and with no lock held. It costs a load
    /// when nobody waits in the pool and [`Limits::idle_per_key`] is at its default.
    pub fn freed(&self, now: Instant) {
        // A waiter reserves in vain, has this set, and reserves once more. Both sides pass the lock
        // under which places are counted: either he sees the place, or this sees that he waits.
        if self.wants_news.load(Ordering::Acquire) {
            self.tell(|pool, id, effects| pool.freed(id, now, effects));
        }
    }

    /// The connection takes no more exchanges: the pool forgets it, and its unit is free. Those
    /// under way go on. Again: nothing. Call it with no lock held.
    pub fn gone(&self, now: Instant) {
        self.tell(|pool, id, effects| pool.gone(id, now, effects));
    }

    fn tell(&self, news: impl FnOnce(&mut Pool<K, C, S>, MemberId, &mut Effects<C, S>)) {
        if let (Some(inner), Some(id)) = (self.inner.upgrade(), self.id) {
            inner.update(|pool, effects| news(pool, id, effects));
        }
    }
}

impl<K, C, S: Shareable> Drop for Member<K, C, S> {
    fn drop(&mut self) {
        self.gone(Instant::now());
    }
}

impl<K, C, S: Shareable> fmt::Debug for Member<K, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.id).finish()
    }
}

/// A connection lent to one exchange. Dropping it closes the connection, and then lets the pool
/// open another in its place.
#[must_use]
pub struct Lease<K, C, S: Shareable> {
    // Fields drop in order: the connection is closed before its unit is free.
    conn: C,
    unit: Unit<K, C, S>,
}

impl<K, C, S: Shareable> Lease<K, C, S> {
    /// Whether the connection has served an exchange before.
    pub fn is_reused(&self) -> bool {
        self.unit.permit.as_ref().is_some_and(Permit::is_reused)
    }

    /// How many connections of its key were open when it was lent: see [`Permit::open`].
    pub fn open(&self) -> usize {
        self.unit.permit.as_ref().map_or(0, Permit::open)
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
    pub fn stale(self, now: Instant) -> Acquired<K, C, S> {
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

impl<K, C, S: Shareable> Deref for Lease<K, C, S> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.conn
    }
}

impl<K, C, S: Shareable> DerefMut for Lease<K, C, S> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.conn
    }
}
