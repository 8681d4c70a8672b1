//! The streams of a connection: their places, their identifiers, whom to wake.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::flow::{RecvWindow, SendWindow};
use super::settings::MAX_WINDOW;
use super::stream::{Asked, Slot, Stream};

/// Places that an idle connection keeps.
const KEPT: usize = 2;

/// What an identifier stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The stream in this place.
    Live(u32),
    /// We reset it, and frames that crossed that may still come (RFC 9113 section 5.1).
    Reset,
    /// We reset it so long ago, and so many since, that nothing is known of it.
    Forgotten,
    /// It was closed by both sides.
    Closed,
    /// It was never opened.
    Idle,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Live(u32),
    /// What the server may still send there, as nothing is granted any more; and how many heads came.
    Reset {
        left: u32,
        heads: u32,
    },
}

/// All streams, live and remembered.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Slot>,
    free: Vec<u32>,
    ids: HashMap<u32, Entry, BuildHasherDefault<IdHasher>>,
    stirred: VecDeque<u32>,
    /// Streams that count for SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 section 5.1.2).
    pub(super) active: u32,
    next_id: u32,
    /// Those we reset, oldest first.
    reset: VecDeque<u32>,
    memory: usize,
    /// The highest identifier that fell out of the memory.
    forgotten: u32,
    /// The highest stream that the server promised to push.
    pub(super) promised: u32,
}

impl Streams {
    pub(super) fn new(first: u32, memory: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: HashMap::default(),
            stirred: VecDeque::new(),
            active: 0,
            // RFC 9113 section 5.1.1: a client's are odd.
            next_id: first.min(MAX_WINDOW) | 1,
            reset: VecDeque::new(),
            memory,
            forgotten: 0,
            promised: 0,
        }
    }

    /// Whether there is an identifier left (RFC 9113 section 5.1.1).
    pub(super) fn has_ids(&self) -> bool {
        self.next_id <= MAX_WINDOW
    }

    /// Begins a stream.
    pub(super) fn open(&mut self, asked: Asked, send: SendWindow, recv: RecvWindow) -> Stream {
        let id = self.next_id;
        self.next_id += 2;
        self.active += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize].begin(id, asked, send, recv);
        self.ids.insert(id, Entry::Live(index));
        Stream { slot: index, id }
    }

    /// Of the open streams of at least this weight the newest of those that weigh least, or zero.
    pub(super) fn last_open(&self, weight: u8) -> u32 {
        let open = self.slots.iter().filter(|slot| slot.id != 0 && !slot.closed);
        let heavy = open.filter(|slot| slot.weight >= weight);
        heavy.min_by_key(|slot| (slot.weight, std::cmp::Reverse(slot.id))).map_or(0, |slot| slot.id)
    }

    /// The stream of a handle, unless it was given up.
    pub(super) fn get(&self, stream: Stream) -> Option<&Slot> {
        self.slots.get(stream.slot as usize).filter(|slot| slot.id == stream.id)
    }

    /// The stream of a handle, unless it was given up.
    pub(super) fn get_mut(&mut self, stream: Stream) -> Option<&mut Slot> {
        self.slots.get_mut(stream.slot as usize).filter(|slot| slot.id == stream.id)
    }

    /// What is in a place that [`find`](Self::find) or a list of ours named.
    pub(super) fn at(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The places of all streams that were not given up.
    pub(super) fn live(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|&index| self.slots[index as usize].id != 0).collect()
    }

    /// What an identifier stands for.
    pub(super) fn find(&self, id: u32) -> Found {
        match self.ids.get(&id) {
            Some(Entry::Live(index)) => Found::Live(*index),
            Some(Entry::Reset { .. }) => Found::Reset,
            // We refused it, or were to (RFC 9113 section 8.4).
            None if id.is_multiple_of(2) && id <= self.promised => Found::Forgotten,
            None if id.is_multiple_of(2) || id >= self.next_id => Found::Idle,
            None if id <= self.forgotten => Found::Forgotten,
            None => Found::Closed,
        }
    }

    /// Takes late data off what a stream that we reset was granted; `false` when it is too much.
    pub(super) fn spend_late(&mut self, id: u32, len: u32) -> bool {
        match self.ids.get_mut(&id) {
            Some(Entry::Reset { left, .. }) => match left.checked_sub(len) {
                Some(rest) => {
                    *left = rest;
                    true
                }
                None => false,
            },
            _ => true,
        }
    }

    /// Counts a late header block of a stream that we reset.
    pub(super) fn late_head(&mut self, id: u32) -> u32 {
        match self.ids.get_mut(&id) {
            Some(Entry::Reset { heads, .. }) => {
                *heads = heads.saturating_add(1);
                *heads
            }
            _ => 0,
        }
    }

    /// The server ended a stream that we reset: no late frame can follow.
    pub(super) fn end_late(&mut self, id: u32) {
        if matches!(self.ids.get(&id), Some(Entry::Reset { .. })) {
            self.ids.remove(&id);
        }
    }

    /// Frees a place; gives the weight of what was never read.
    pub(super) fn vacate(&mut self, index: u32) -> usize {
        let slot = &mut self.slots[index as usize];
        let (id, peer_closed) = (slot.id, slot.peer_closed);
        let left = slot.recv_window.available();
        let unread = slot.vacate();
        self.free.push(index);
        if peer_closed {
            self.ids.remove(&id);
        } else {
            self.remember(id, left);
        }
        unread
    }

    fn remember(&mut self, id: u32, left: u32) {
        self.ids.insert(id, Entry::Reset { left, heads: 0 });
        self.reset.push_back(id);
        while self.reset.len() > self.memory {
            let Some(oldest) = self.reset.pop_front() else { return };
            if matches!(self.ids.get(&oldest), Some(Entry::Reset { .. })) {
                self.ids.remove(&oldest);
                self.forgotten = self.forgotten.max(oldest);
            }
        }
    }

    /// Counts a stream out once both its halves are done.
    pub(super) fn settle(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !slot.closed && slot.is_over() {
            slot.closed = true;
            self.active -= 1;
        }
    }

    /// There is news for a stream's owner.
    pub(super) fn stir(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !slot.stirred {
            slot.stirred = true;
            self.stirred.push_back(index);
        }
    }

    /// The next stream with news.
    pub(super) fn next_stirred(&mut self) -> Option<Stream> {
        while let Some(index) = self.stirred.pop_front() {
            let slot = &mut self.slots[index as usize];
            slot.stirred = false;
            if slot.id != 0 {
                return Some(Stream { slot: index, id: slot.id });
            }
        }
        None
    }

    /// Gives up room that a burst of streams left behind.
    pub(super) fn shrink(&mut self) {
        if self.free.len() == self.slots.len() && self.slots.len() > KEPT {
            self.slots.truncate(KEPT);
            self.slots.shrink_to_fit();
            self.free = (0..KEPT as u32).collect();
            self.stirred.retain(|&index| (index as usize) < KEPT);
            self.stirred.shrink_to(KEPT);
            self.ids.shrink_to(KEPT);
        }
    }
}

/// Identifiers come from ourselves, in sequence: one multiplication spreads them well enough.
#[derive(Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
