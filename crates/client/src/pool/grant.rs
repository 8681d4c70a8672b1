//! What the machine gives, takes back, and asks of its caller.

use super::members::Expects;
use super::waiters::WaiterId;
use smallvec::SmallVec;
use std::time::Instant;

/// One unit of a pool's limits. It must go back to the pool that gave it.
#[derive(Debug)]
#[must_use = "a permit that is not given back is lost to the limits"]
pub struct Permit {
    pub(super) key: usize,
    pub(super) stage: Stage,
    /// What its call can use.
    pub(super) expects: Expects,
    /// Opens a connection [ahead](super::ahead) beside a dial that others wait for.
    pub(super) spare: bool,
    /// How many connections of `key` were open when one of them was lent with it.
    pub(super) open: usize,
    pub(super) created: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Dialling,
    /// For the exchange that opened its connection.
    Opened,
    /// For another one.
    Reused,
}

impl Permit {
    /// For a connection of `key`, one of so many that are `open`, made at `created`, that has served before.
    pub(super) fn again(key: usize, expects: Expects, open: usize, created: Instant) -> Permit {
        Permit { key, stage: Stage::Reused, expects, spare: false, open, created }
    }

    /// Whether others wait for its dial, because it may bring a shared connection.
    pub(super) fn is_awaited(&self) -> bool {
        self.expects.may_share() && !self.spare
    }

    /// Whether its connection was in the pool before.
    pub fn is_reused(&self) -> bool {
        self.stage == Stage::Reused
    }

    /// How many connections of its key were open when this one was lent, itself included; 0 if it was opened for it.
    pub fn open(&self) -> usize {
        self.open
    }

    /// When its connection was opened; for a dial, when it was permitted.
    #[cfg(test)]
    pub fn created(&self) -> Instant {
        self.created
    }
}

/// What an exchange may do.
#[derive(Debug)]
#[must_use]
pub enum Grant<C, S> {
    /// Use this open connection.
    Lease(Permit, C),
    /// Use the place that was taken on this one.
    Shared(S),
    /// Open a connection.
    Dial(Permit),
}

/// The answer to [`Pool::acquire`](super::machine::Pool::acquire).
#[derive(Debug)]
#[must_use]
pub enum Acquire<C, S> {
    /// Go ahead.
    Granted(Grant<C, S>),
    /// A limit binds, or a dial is under way that may serve this exchange too.
    Wait {
        /// It will appear in [`Effects::wake`] when it can be
        /// [claimed](super::machine::Pool::claim).
        waiter: WaiterId,
        /// Whether a [second look](super::machine::Pool::look_again) is due.
        look_again: bool,
    },
}

/// Whether a released connection can serve another exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It stands between two exchanges.
    Reuse,
    /// It cannot, or must not, be used again.
    Close,
}

/// Something that left the pool.
#[derive(Debug)]
pub enum Left<C, S> {
    /// A connection to close.
    Exclusive(C),
    /// The handle of a shared connection. Exchanges may still be under way on it.
    Shared(S),
    /// A place to [give back](super::Shareable::unreserve).
    Place(S),
}

/// What the caller has to do once the pool is unlocked.
#[derive(Debug)]
pub struct Effects<C, S> {
    /// Waiters whose grant can be [claimed](super::machine::Pool::claim) now.
    pub wake: SmallVec<[WaiterId; 2]>,
    /// What left the pool: drop it, or give it back.
    pub left: Vec<Left<C, S>>,
    /// Somebody began to wait, or ceased to: [`Pool::wants_news`](super::machine::Pool::wants_news)
    /// may have changed.
    pub waits: bool,
}

impl<C, S> Default for Effects<C, S> {
    fn default() -> Self {
        Effects { wake: SmallVec::new(), left: Vec::new(), waits: false }
    }
}

impl<C, S> Effects<C, S> {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.wake.is_empty() && self.left.is_empty() && !self.waits
    }
}
