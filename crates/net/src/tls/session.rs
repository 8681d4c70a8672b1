//! Sessions to resume: a small, bounded cache, keyed by server.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use boring::ssl::{SslSession, SslVersion};

/// Servers remembered by one configuration.
const MAX_SERVERS: usize = 256;
/// Tickets kept for one server; servers commonly send two a handshake.
const MAX_TICKETS: usize = 2;

/// Which server a session is good for. The configuration (trust, identity) is the cache's owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    /// The name or address as verified.
    pub(super) host: String,
    /// The port: another one is often another server.
    pub(super) port: u16,
}

/// The sessions of one configuration, least recently used server out first.
pub(super) struct SessionCache<S = SslSession> {
    inner: Mutex<Inner<S>>,
}

struct Inner<S> {
    servers: HashMap<SessionKey, Tickets<S>>,
    clock: u64,
}

struct Tickets<S> {
    newest_last: VecDeque<S>,
    used: u64,
}

/// What the cache asks of a session.
pub(super) trait Ticket: Clone {
    /// Whether it may still be offered. BoringSSL would leave it out without a word, and the rest of the
    /// hello would be that of one with a session.
    fn is_fresh(&self) -> bool;

    /// Whether it may be offered only once.
    fn single_use(&self) -> bool;
}

impl Ticket for SslSession {
    fn is_fresh(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let age = now.checked_sub(self.time());
        age.is_some_and(|age| age < self.timeout().into())
    }

    /// A TLS 1.3 ticket offered twice lets an observer link the connections (RFC 8446 C.4).
    fn single_use(&self) -> bool {
        self.protocol_version() == SslVersion::TLS1_3
    }
}

impl<S> Default for SessionCache<S> {
    fn default() -> Self {
        SessionCache { inner: Mutex::new(Inner { servers: HashMap::new(), clock: 0 }) }
    }
}

impl<S: Ticket> SessionCache<S> {
    /// Remembers `session`.
    pub(super) fn insert(&self, key: &SessionKey, session: S) {
        let mut inner = self.lock();
        let now = inner.tick();
        if let Some(tickets) = inner.servers.get_mut(key) {
            // A reusable session replaces; tickets queue up.
            if !session.single_use() {
                tickets.newest_last.clear();
            } else if tickets.newest_last.len() == MAX_TICKETS {
                tickets.newest_last.pop_front();
            }
            tickets.newest_last.push_back(session);
            tickets.used = now;
            return;
        }
        if inner.servers.len() == MAX_SERVERS {
            inner.evict();
        }
        let newest_last = VecDeque::from([session]);
        inner.servers.insert(key.clone(), Tickets { newest_last, used: now });
    }

    /// The newest session for `key`, used up if it may be offered only once.
    pub(super) fn take(&self, key: &SessionKey) -> Option<S> {
        let mut inner = self.lock();
        let now = inner.tick();
        let tickets = inner.servers.get_mut(key)?;
        tickets.used = now;
        let session = tickets.newest_last.back()?.clone();
        if session.single_use() {
            tickets.newest_last.pop_back();
        }
        let session = Some(session).filter(S::is_fresh);
        // The others are older.
        if tickets.newest_last.is_empty() || session.is_none() {
            inner.servers.remove(key);
        }
        session
    }

    /// Forgets `key`: a handshake with its session failed.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.lock().servers.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Inner<S> {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn evict(&mut self) {
        let oldest = self.servers.iter().min_by_key(|(_, t)| t.used).map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.servers.remove(&key);
        }
    }
}

impl<S> fmt::Debug for SessionCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.inner.lock().map(|inner| inner.servers.len());
        f.debug_struct("SessionCache").field("servers", &servers.ok()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: u32 = 99;

    #[derive(Debug, Clone, PartialEq)]
    struct Fake(u32, bool);

    impl Ticket for Fake {
        fn is_fresh(&self) -> bool {
            self.0 != STALE
        }

        fn single_use(&self) -> bool {
            self.1
        }
    }

    fn key(host: &str) -> SessionKey {
        SessionKey { host: host.into(), port: 443 }
    }

    #[test]
    fn tickets_are_used_once_newest_first_and_bounded() {
        let cache = SessionCache::<Fake>::default();
        for n in 0..4 {
            cache.insert(&key("a"), Fake(n, true));
        }
        assert_eq!(cache.take(&key("a")), Some(Fake(3, true)));
        assert_eq!(cache.take(&key("a")), Some(Fake(2, true)));
        assert_eq!(cache.take(&key("a")), None);
        assert_eq!(cache.lock().servers.len(), 0);
    }

    #[test]
    fn a_reusable_session_is_offered_until_replaced_or_forgotten() {
        let cache = SessionCache::<Fake>::default();
        cache.insert(&key("a"), Fake(1, false));
        assert_eq!(cache.take(&key("a")), Some(Fake(1, false)));
        cache.insert(&key("a"), Fake(2, false));
        assert_eq!(cache.take(&key("a")), Some(Fake(2, false)));
        cache.forget(&key("a"));
        assert_eq!(cache.take(&key("a")), None);
    }

    #[test]
    fn a_session_whose_time_is_over_goes_with_those_before_it() {
        let cache = SessionCache::<Fake>::default();
        for (n, single_use) in [(1, true), (STALE, true), (STALE, false)] {
            cache.insert(&key("a"), Fake(n, single_use));
            if n == STALE {
                assert_eq!(cache.take(&key("a")), None);
                assert_eq!(cache.lock().servers.len(), 0);
            }
        }
    }

    #[test]
    fn ports_are_different_servers() {
        let cache = SessionCache::<Fake>::default();
        cache.insert(&key("a"), Fake(1, true));
        assert_eq!(cache.take(&SessionKey { host: "a".into(), port: 8443 }), None);
    }

    #[test]
    fn the_least_recently_used_server_goes_first() {
        let cache = SessionCache::<Fake>::default();
        for n in 0..MAX_SERVERS {
            cache.insert(&key(&n.to_string()), Fake(0, false));
        }
        assert!(cache.take(&key("0")).is_some());
        cache.insert(&key("new"), Fake(0, false));
        assert_eq!(cache.lock().servers.len(), MAX_SERVERS);
        assert!(cache.take(&key("0")).is_some());
        assert!(cache.take(&key("1")).is_none());
    }
}
