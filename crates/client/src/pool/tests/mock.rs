//! A shared connection that only counts.

use crate::pool::{
    Place, Shareable,
    grant::{Effects, Left},
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Where mocks are numbered from, to tell them from exclusive connections.
pub const FIRST: u32 = 1_000_000;

pub type Mocked = Effects<u32, Mock>;

/// Clones are the same connection.
#[derive(Clone)]
pub struct Mock {
    pub id: u32,
    inner: Arc<Inner>,
}

type News = Box<dyn Fn(Instant) + Send + Sync>;

struct Inner {
    state: Mutex<State>,
    /// Told, with no lock held, that a place is free.
    freed: Mutex<Option<News>>,
}

struct State {
    taken: usize,
    max: usize,
    gone: bool,
    now: Instant,
    since: Instant,
}

impl Mock {
    pub fn new(id: u32, max: usize, now: Instant) -> Mock {
        let state = State { taken: 0, max, gone: false, now, since: now };
        Mock { id, inner: Arc::new(Inner { state: Mutex::new(state), freed: Mutex::new(None) }) }
    }

    /// With one place taken by whoever dialled it.
    pub fn dialled(id: u32, max: usize, now: Instant) -> Mock {
        let mock = Mock::new(id, max, now);
        assert_eq!(mock.reserve(now), Place::Taken);
        mock
    }

    /// What clones share.
    pub fn inner(&self) -> &Arc<impl Sized + use<>> {
        &self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap()
    }

    pub fn on_freed(&self, news: impl Fn(Instant) + Send + Sync + 'static) {
        *self.inner.freed.lock().unwrap() = Some(Box::new(news));
    }

    pub fn die(&self) {
        self.state().gone = true;
    }

    pub fn taken(&self) -> usize {
        self.state().taken
    }

    /// An exchange ends.
    pub fn finish(&self, now: Instant) {
        let mut state = self.state();
        state.taken -= 1;
        state.now = now;
        state.since = now;
        drop(state);
        if let Some(news) = &*self.inner.freed.lock().unwrap() {
            news(now);
        }
    }

    /// Drops its link to the pool.
    pub fn unlink(&self) {
        let news = self.inner.freed.lock().unwrap().take();
        drop(news);
    }
}

impl Shareable for Mock {
    fn reserve(&self, now: Instant) -> Place {
        let mut state = self.state();
        state.now = now;
        match (state.gone, state.taken < state.max) {
            (true, _) => Place::Gone,
            (false, false) => Place::Full,
            (false, true) => {
                state.taken += 1;
                Place::Taken
            }
        }
    }

    fn unreserve(&self) {
        let now = self.state().now;
        self.finish(now);
    }

    fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.taken == 0).then_some(state.since)
    }
}

impl fmt::Debug for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mock({})", self.id)
    }
}

impl PartialEq<u32> for Left<u32, Mock> {
    fn eq(&self, other: &u32) -> bool {
        match self {
            Left::Exclusive(conn) => conn == other,
            Left::Shared(mock) => mock.id == *other,
            Left::Place(_) => false,
        }
    }
}
