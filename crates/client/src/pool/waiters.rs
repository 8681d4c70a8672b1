//! Exchanges waiting for a limit to give, or for a dial: for each key a queue for each kind of
//! connection they expect, all threaded through one slab.

use super::grant::Grant;
use super::members::Expects;
use slab::Slab;
use std::time::Instant;

const NIL: usize = usize::MAX;

/// Names one waiter of one pool. It is spent by [`claim`](super::machine::Pool::claim) and
/// [`cancel`](super::machine::Pool::cancel); a spent name is recognised and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaiterId {
    index: usize,
    seq: u64,
}

impl WaiterId {
    /// A small number no other living waiter of the pool has: fit to index a table of wakers.
    pub fn index(&self) -> usize {
        self.index
    }
}

enum State<C, S> {
    Queued {
        before: usize,
        behind: usize,
    },
    /// What, and when.
    Granted(Grant<C, S>, Instant),
}

struct Waiter<C, S> {
    key: usize,
    expects: Expects,
    /// Arrival number; also tells a slot's present waiter from an earlier one.
    seq: u64,
    state: State<C, S>,
}

/// First come, first in it.
#[derive(Clone, Copy)]
struct Queue {
    head: usize,
    tail: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { head: NIL, tail: NIL }
    }
}

/// The waiters of one key, in a queue for each thing they may [expect](Expects).
#[derive(Clone, Copy, Default)]
pub(super) struct Queues {
    exclusive: Queue,
    either: Queue,
    shared: Queue,
}

impl Queues {
    pub(super) fn is_empty(&self) -> bool {
        [self.exclusive, self.either, self.shared].iter().all(|queue| queue.head == NIL)
    }

    fn of(&mut self, expects: Expects) -> &mut Queue {
        match expects {
            Expects::Exclusive => &mut self.exclusive,
            Expects::Either => &mut self.either,
            Expects::Shared => &mut self.shared,
        }
    }
}

/// The first waiter of some queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    /// Its arrival number.
    pub(super) seq: u64,
    index: usize,
}

/// What a cancelled waiter leaves behind.
pub(super) enum Cancelled<C, S> {
    /// It had been granted nothing.
    Queued,
    /// It had been granted this at that time, and never took it.
    Granted(Grant<C, S>, Instant),
}

pub(super) struct Waiters<C, S> {
    slots: Slab<Waiter<C, S>>,
    next_seq: u64,
}

impl<C, S> Waiters<C, S> {
    pub(super) fn new() -> Self {
        Waiters { slots: Slab::new(), next_seq: 0 }
    }

    pub(super) fn push(&mut self, queues: &mut Queues, key: usize, expects: Expects) -> WaiterId {
        let seq = self.next_seq;
        self.next_seq += 1;
        let queue = queues.of(expects);
        let before = queue.tail;
        let state = State::Queued { before, behind: NIL };
        let index = self.slots.insert(Waiter { key, expects, seq, state });
        match self.slots.get_mut(before) {
            Some(Waiter { state: State::Queued { behind, .. }, .. }) => *behind = index,
            _ => queue.head = index,
        }
        queue.tail = index;
        WaiterId { index, seq }
    }

    /// The first that expects no shared connection.
    pub(super) fn first_exclusive(&self, queues: &Queues) -> Option<First> {
        self.head(queues.exclusive)
    }

    /// The first that expects a shared connection and no other.
    pub(super) fn first_shared(&self, queues: &Queues) -> Option<First> {
        self.head(queues.shared)
    }

    /// The first that can use an exclusive connection.
    pub(super) fn first_for_lease(&self, queues: &Queues) -> Option<First> {
        earlier(self.head(queues.exclusive), self.head(queues.either))
    }

    /// The first that can use a place on a shared connection.
    pub(super) fn first_for_place(&self, queues: &Queues) -> Option<First> {
        earlier(self.head(queues.shared), self.head(queues.either))
    }

    /// The first of all.
    pub(super) fn first(&self, queues: &Queues) -> Option<First> {
        earlier(self.first_for_lease(queues), self.head(queues.shared))
    }

    fn head(&self, queue: Queue) -> Option<First> {
        let index = queue.head;
        self.slots.get(index).map(|waiter| First { seq: waiter.seq, index })
    }

    /// What `first` expects.
    pub(super) fn expects(&self, first: First) -> Option<Expects> {
        self.slots.get(first.index).map(|waiter| waiter.expects)
    }

    /// Gives `grant` to `first`, whose key has `queues`; gives it back if there is no such waiter.
    pub(super) fn grant(
        &mut self,
        queues: &mut Queues,
        first: First,
        grant: Grant<C, S>,
        now: Instant,
    ) -> Result<WaiterId, Grant<C, S>> {
        self.unlink(queues, first.index);
        let Some(waiter) = self.slots.get_mut(first.index) else {
            return Err(grant);
        };
        waiter.state = State::Granted(grant, now);
        Ok(WaiterId { index: first.index, seq: waiter.seq })
    }

    /// Takes what `id` was granted. `None`: it still waits, or is spent.
    pub(super) fn claim(&mut self, id: WaiterId) -> Option<Grant<C, S>> {
        let waiter = self.slots.get(id.index).filter(|waiter| waiter.seq == id.seq)?;
        if matches!(waiter.state, State::Queued { .. }) {
            return None;
        }
        match self.slots.remove(id.index).state {
            State::Granted(grant, _) => Some(grant),
            State::Queued { .. } => None,
        }
    }

    /// The key `id` waits for. `None`: it is spent.
    pub(super) fn key_of(&self, id: WaiterId) -> Option<usize> {
        self.slots.get(id.index).filter(|waiter| waiter.seq == id.seq).map(|waiter| waiter.key)
    }

    /// Forgets `id`, whose key has `queues`. `None`: it is spent.
    pub(super) fn cancel(&mut self, queues: &mut Queues, id: WaiterId) -> Option<Cancelled<C, S>> {
        self.key_of(id)?;
        self.unlink(queues, id.index);
        Some(match self.slots.remove(id.index).state {
            State::Queued { .. } => Cancelled::Queued,
            State::Granted(grant, at) => Cancelled::Granted(grant, at),
        })
    }

    /// Closes the gap that `index` leaves in its queue; nothing if it is in none.
    fn unlink(&mut self, queues: &mut Queues, index: usize) {
        let Some(Waiter { state: State::Queued { before, behind }, expects, .. }) =
            self.slots.get(index)
        else {
            return;
        };
        let queue = queues.of(*expects);
        let (ahead, follower) = (*before, *behind);
        match self.slots.get_mut(ahead) {
            Some(Waiter { state: State::Queued { behind, .. }, .. }) => *behind = follower,
            _ => queue.head = follower,
        }
        match self.slots.get_mut(follower) {
            Some(Waiter { state: State::Queued { before, .. }, .. }) => *before = ahead,
            _ => queue.tail = ahead,
        }
    }
}

fn earlier(a: Option<First>, b: Option<First>) -> Option<First> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
