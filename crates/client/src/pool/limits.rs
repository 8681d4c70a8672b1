use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// What a pool may hold, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections open or being opened, over all keys. Default: no limit.
    pub total: Option<NonZeroUsize>,
    /// The most connections open or being opened for one key. Default: no limit. A browser's profile says 6.
    pub per_key: Option<NonZeroUsize>,
    /// The most idle connections kept for one key; the longest idle goes first. 0 keeps none.
    /// Default: no limit.
    pub idle_per_key: usize,
    /// How long a connection may stay idle. Default: 90 s. `None`: until the peer closes it.
    pub idle_timeout: Option<Duration>,
    /// How long a connection may be reused after it was opened. An exchange under way is never
    /// cut short. Default: no limit.
    pub max_lifetime: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            total: None,
            per_key: None,
            idle_per_key: usize::MAX,
            idle_timeout: Some(Duration::from_secs(90)),
            max_lifetime: None,
        }
    }
}

impl Limits {
    /// Whether a connection opened at `created` may not serve another exchange at `now`.
    pub(super) fn outlived(&self, created: Instant, now: Instant) -> bool {
        passed(created, self.max_lifetime, now)
    }

    /// Whether a connection idle since `since` has been so for too long at `now`.
    pub(super) fn idled_out(&self, since: Instant, now: Instant) -> bool {
        passed(since, self.idle_timeout, now)
    }
}

/// Whether `limit`, if there is one, was over at `now` when it began at `from`. What ends beyond the
/// clock never does.
fn passed(from: Instant, limit: Option<Duration>, now: Instant) -> bool {
    limit.and_then(|limit| from.checked_add(limit)).is_some_and(|end| end <= now)
}
