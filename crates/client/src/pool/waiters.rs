//! Exchanges waiting for a limit to give: one queue for each key, threaded through one slab.

use super::machine::Grant;
use slab::Slab;

const NIL: usize = usize::MAX;

/// Names one waiter of one pool. It is spent by [`claim`](super::Pool::claim) and
/// [`cancel`](super::Pool::cancel); a spent name is recognised and ignored.
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

enum State<C> {
    Queued { before: usize, behind: usize },
    Granted(Grant<C>),
}

struct Waiter<C> {
    key: usize,
    /// Arrival number; also tells a slot's present waiter from an earlier one.
    seq: u64,
    state: State<C>,
}

/// The waiters of one key, first come first.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    head: usize,
    tail: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { head: NIL, tail: NIL }
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

/// What a cancelled waiter leaves behind.
pub(super) enum Cancelled<C> {
    /// It had been granted nothing.
    Queued,
    /// It had been granted this, and never took it.
    Granted(Grant<C>),
}

pub(super) struct Waiters<C> {
    slots: Slab<Waiter<C>>,
    next_seq: u64,
}

impl<C> Waiters<C> {
    pub(super) fn new() -> Self {
        Waiters { slots: Slab::new(), next_seq: 0 }
    }

    pub(super) fn push(&mut self, queue: &mut Queue, key: usize) -> WaiterId {
        let seq = self.next_seq;
        self.next_seq += 1;
        let before = queue.tail;
        let index =
            self.slots.insert(Waiter { key, seq, state: State::Queued { before, behind: NIL } });
        match self.slots.get_mut(before) {
            Some(Waiter { state: State::Queued { behind, .. }, .. }) => *behind = index,
            _ => queue.head = index,
        }
        queue.tail = index;
        WaiterId { index, seq }
    }

    /// The arrival number of the first in `queue`.
    pub(super) fn head_seq(&self, queue: &Queue) -> Option<u64> {
        self.slots.get(queue.head).map(|waiter| waiter.seq)
    }

    /// Gives `grant` to the first in `queue`; gives it back if there is none.
    pub(super) fn grant_head(
        &mut self,
        queue: &mut Queue,
        grant: Grant<C>,
    ) -> Result<WaiterId, Grant<C>> {
        let index = queue.head;
        self.unlink(queue, index);
        let Some(waiter) = self.slots.get_mut(index) else {
            return Err(grant);
        };
        waiter.state = State::Granted(grant);
        Ok(WaiterId { index, seq: waiter.seq })
    }

    /// Takes what `id` was granted. `None`: it still waits, or is spent.
    pub(super) fn claim(&mut self, id: WaiterId) -> Option<Grant<C>> {
        let waiter = self.slots.get(id.index).filter(|waiter| waiter.seq == id.seq)?;
        if matches!(waiter.state, State::Queued { .. }) {
            return None;
        }
        match self.slots.remove(id.index).state {
            State::Granted(grant) => Some(grant),
            State::Queued { .. } => None,
        }
    }

    /// The key `id` waits for. `None`: it is spent.
    pub(super) fn key_of(&self, id: WaiterId) -> Option<usize> {
        self.slots.get(id.index).filter(|waiter| waiter.seq == id.seq).map(|waiter| waiter.key)
    }

    /// Forgets `id`, whose key has `queue`. `None`: it is spent.
    pub(super) fn cancel(&mut self, queue: &mut Queue, id: WaiterId) -> Option<Cancelled<C>> {
        self.key_of(id)?;
        self.unlink(queue, id.index);
        Some(match self.slots.remove(id.index).state {
            State::Queued { .. } => Cancelled::Queued,
            State::Granted(grant) => Cancelled::Granted(grant),
        })
    }

    /// Closes the gap that `index` leaves in `queue`; nothing if it is not in it.
    fn unlink(&mut self, queue: &mut Queue, index: usize) {
        let Some(Waiter { state: State::Queued { before, behind }, .. }) = self.slots.get(index)
        else {
            return;
        };
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
