//! Connections that carry many exchanges: the seam to them, and the handles that the pool keeps.

use super::limits::Limits;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;
use std::net::SocketAddr;
use std::time::Instant;

/// A connection that many exchanges share, as the pool knows it: a cheap handle.
///
/// [`reserve`](Self::reserve), [`idle_since`](Self::idle_since) and `clone` are called under the
/// pool's lock: they must not call the pool, and nobody may call the pool while he holds a lock that
/// they take. Places must be counted under such a lock: a place is then either seen by `reserve` or
/// told of by [`Member::freed`](super::Member::freed), however the two race.
pub trait Shareable: Clone {
    /// Takes a place for one exchange if there is one at `now`.
    fn reserve(&self, now: Instant) -> Place;

    /// Gives back a place that was taken for an exchange which then never came. Called without the
    /// pool's lock. [`Member::freed`](super::Member::freed) is due, as behind any exchange.
    fn unreserve(&self);

    /// Since when nothing uses it: no place is taken. `None` while something does.
    fn idle_since(&self) -> Option<Instant>;
}

/// The answer to [`Shareable::reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is the caller's.
    Taken,
    /// Every place is taken.
    Full,
    /// The connection takes no exchange any more.
    Gone,
}

/// What a connection for a call may be, or become once it is dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// One exchange at a time.
    Exclusive,
    /// Either; a shared one is preferred.
    Either,
    /// Many exchanges at once.
    Shared,
}

impl Expects {
    /// Whether a dial for such a call may bring a shared connection.
    pub(crate) fn may_share(self) -> bool {
        self != Expects::Exclusive
    }
}

/// Names one shared connection of one pool. The name of one that left is recognised and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberId {
    index: usize,
    seq: u64,
}

impl MemberId {
    /// Where it is, while it is kept.
    pub(super) fn index(self) -> usize {
        self.index
    }
}

/// A shared connection with what is known of it.
pub(super) struct Kept<S> {
    pub(super) conn: S,
    /// The key it was opened for: its unit counts there.
    pub(super) key: usize,
    /// The other keys that it serves.
    pub(super) aliases: Vec<usize>,
    /// Where calls of other keys find it.
    at: Option<SocketAddr>,
    pub(super) created: Instant,
    /// When a place was last given: it has not been idle since before.
    pub(super) used: Instant,
    /// Tells a slot's present connection from an earlier one.
    seq: u64,
}

impl<S: Shareable> Kept<S> {
    /// Whether it may not serve another exchange at `now`. Asks the connection only when it may have
    /// been idle for long enough.
    pub(super) fn expired(&self, limits: &Limits, now: Instant) -> bool {
        limits.outlived(self.created, now)
            || limits.idled_out(self.used, now)
                && self.conn.idle_since().is_some_and(|since| limits.idled_out(since, now))
    }
}

pub(super) struct Members<S> {
    slots: Slab<Kept<S>>,
    next_seq: u64,
    /// Those that may serve other keys than their own, the newest last.
    standing: HashMap<SocketAddr, Vec<usize>, RandomState>,
    /// When one of them may have expired, at the earliest that is worth a look.
    sweep_at: Option<Instant>,
}

impl<S: Shareable> Members<S> {
    pub(super) fn new() -> Self {
        let standing = HashMap::default();
        Members { slots: Slab::new(), next_seq: 0, standing, sweep_at: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds `conn`, of which its opener has taken a place.
    pub(super) fn insert(
        &mut self,
        conn: S,
        key: usize,
        at: Option<SocketAddr>,
        now: Instant,
    ) -> MemberId {
        let seq = self.next_seq;
        self.next_seq += 1;
        let kept = Kept { conn, key, aliases: Vec::new(), at, created: now, used: now, seq };
        let index = self.slots.insert(kept);
        if let Some(at) = at {
            self.standing.entry(at).or_default().push(index);
        }
        MemberId { index, seq }
    }

    pub(super) fn remove(&mut self, index: usize) -> Kept<S> {
        let kept = self.slots.remove(index);
        if let Some(at) = kept.at
            && let Some(there) = self.standing.get_mut(&at)
        {
            there.retain(|&other| other != index);
            if there.is_empty() {
                self.standing.remove(&at);
            }
        }
        kept
    }

    /// Those that calls of other keys may find at `at`, the newest first.
    pub(super) fn standing_at(&self, at: SocketAddr) -> impl Iterator<Item = (MemberId, &Kept<S>)> {
        let there = self.standing.get(&at).into_iter().flatten().rev();
        there.filter_map(|&index| {
            let kept = self.slots.get(index)?;
            Some((MemberId { index, seq: kept.seq }, kept))
        })
    }

    pub(super) fn get(&self, index: usize) -> Option<&Kept<S>> {
        self.slots.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Kept<S>> {
        self.slots.get_mut(index)
    }

    /// Where `id` is, and of which key. `None`: it has left.
    pub(super) fn find(&self, id: MemberId) -> Option<(usize, usize)> {
        let kept = self.slots.get(id.index).filter(|kept| kept.seq == id.seq)?;
        Some((id.index, kept.key))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Kept<S>)> {
        self.slots.iter()
    }

    /// The one idle for the longest time among those at `indices`: since when, where it is, and of
    /// which key.
    pub(super) fn oldest_idle(
        &self,
        indices: impl Iterator<Item = usize>,
    ) -> Option<(Instant, usize, usize)> {
        let kept = indices.filter_map(|index| Some((index, self.slots.get(index)?)));
        let idle = kept
            .filter_map(|(index, kept)| Some((kept.conn.idle_since()?, kept.seq, index, kept.key)));
        idle.min().map(|(since, _, index, key)| (since, index, key))
    }

    /// The one idle for the longest time of all.
    pub(super) fn oldest_idle_of_all(&self) -> Option<(Instant, usize, usize)> {
        self.oldest_idle(self.slots.iter().map(|(index, _)| index))
    }

    /// Whether it is time to look for expired ones. They are looked through at most eight times in
    /// an `idle_timeout`, so that many of them cost each exchange nearly nothing.
    pub(super) fn sweep_is_due(&mut self, limits: &Limits, now: Instant) -> bool {
        let Some(timeout) = limits.idle_timeout else {
            return false;
        };
        let due = self.sweep_at.is_some_and(|at| at <= now);
        if due || self.sweep_at.is_none() {
            self.sweep_at = now.checked_add(timeout / 8);
        }
        due
    }
}
