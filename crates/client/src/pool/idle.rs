//! Idle connections: a stack for each key, and one list through all of them, oldest first.
//!
//! Reuse takes from the top of a stack (the connection most likely to be alive), eviction from the
//! old end of the list; both, and removal from the middle, are constant in time and allocate only
//! when the number of idle connections reaches a new maximum.

use slab::Slab;
use std::time::Instant;

const NIL: usize = usize::MAX;

/// An idle connection with what is known of it.
pub(super) struct Idle<C> {
    pub(super) conn: C,
    pub(super) key: usize,
    pub(super) created: Instant,
    pub(super) since: Instant,
}

struct Node<C> {
    idle: Idle<C>,
    older: usize,
    newer: usize,
    below: usize,
    above: usize,
}

/// The idle connections of one key.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    top: usize,
    bottom: usize,
}

impl Default for Stack {
    fn default() -> Self {
        Stack { top: NIL, bottom: NIL }
    }
}

impl Stack {
    /// Where the connection idle for the shortest time is.
    pub(super) fn top(&self) -> Option<usize> {
        (self.top != NIL).then_some(self.top)
    }

    /// Where the connection idle for the longest time is.
    pub(super) fn bottom(&self) -> Option<usize> {
        (self.bottom != NIL).then_some(self.bottom)
    }
}

pub(super) struct IdleList<C> {
    nodes: Slab<Node<C>>,
    oldest: usize,
    newest: usize,
}

impl<C> IdleList<C> {
    pub(super) fn new() -> Self {
        IdleList { nodes: Slab::new(), oldest: NIL, newest: NIL }
    }

    /// Adds `idle` on top of its key's stack. Its `since` is moved forward, if need be, to keep
    /// the list in order of age.
    pub(super) fn push(&mut self, stack: &mut Stack, mut idle: Idle<C>) {
        if let Some(newest) = self.nodes.get(self.newest) {
            idle.since = idle.since.max(newest.idle.since);
        }
        let (older, below) = (self.newest, stack.top);
        let index = self.nodes.insert(Node { idle, older, newer: NIL, below, above: NIL });
        match self.nodes.get_mut(older) {
            Some(node) => node.newer = index,
            None => self.oldest = index,
        }
        match self.nodes.get_mut(below) {
            Some(node) => node.above = index,
            None => stack.bottom = index,
        }
        self.newest = index;
        stack.top = index;
    }

    /// Takes the connection at `index`, which is on `stack`.
    pub(super) fn remove(&mut self, stack: &mut Stack, index: usize) -> Idle<C> {
        let Node { idle, older, newer, below, above } = self.nodes.remove(index);
        match self.nodes.get_mut(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        match self.nodes.get_mut(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(below) {
            Some(node) => node.above = above,
            None => stack.bottom = above,
        }
        match self.nodes.get_mut(above) {
            Some(node) => node.below = below,
            None => stack.top = below,
        }
        idle
    }

    /// Since when the connection at `index` is idle.
    pub(super) fn since(&self, index: usize) -> Option<Instant> {
        self.nodes.get(index).map(|node| node.idle.since)
    }

    /// The connection idle for the longest time: where it is, and what.
    pub(super) fn oldest(&self) -> Option<(usize, &Idle<C>)> {
        self.nodes.get(self.oldest).map(|node| (self.oldest, &node.idle))
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Idle<C>)> {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let (index, node) = (at, self.nodes.get(at)?);
            at = node.newer;
            Some((index, &node.idle))
        })
    }
}
