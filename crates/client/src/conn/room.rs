//! Where reads go: blocks that belong to the thread, lent to whoever reads.
//!
//! A connection that waits, for an answer or in the pool, has nothing to keep in a buffer, and a thread
//! reads from one connection at a time. So one block of each size is enough for all connections that a
//! thread polls; what is cut off a block keeps it alive, and it is used again once that was dropped.

use std::cell::Cell;

use bytes::BytesMut;

/// The most room that is made on the word of a peer alone, for what is to be one piece.
const GATHER_MAX: usize = 16 * 1024 * 1024;

/// A read that brings less than this has brought little.
const LITTLE: usize = 4 * 1024;

/// What a connection knows of the room that it reads to.
#[derive(Debug)]
pub(crate) struct Intake {
    /// What the next read is offered.
    pub(super) room: Room,
    /// Which of the thread's blocks is being read into, if one of them.
    lent: Option<Room>,
}

impl Intake {
    pub(crate) fn new() -> Self {
        Intake { room: Room::Small, lent: None }
    }

    /// Makes room for a read, at best where the last one's bytes were.
    pub(crate) fn make_room(&mut self, buf: &mut BytesMut) {
        let room = self.room;
        let has_block = self.lent.is_some() || !buf.is_empty();
        if room.is_in(buf) || (has_block && buf.try_reclaim(room.bytes())) {
            return;
        }
        if buf.is_empty() {
            *buf = room.lend(room.bytes() / 2);
            self.lent = Some(room);
        } else {
            buf.reserve(room.bytes());
            self.lent = None;
        }
    }

    /// Makes room for so many bytes behind those that are here, so that they lie in one piece, and
    /// for one more: a read that fills its room leaves open whether there is more to read. At first
    /// for no more than the peer's word is good for, then for as many again as have come.
    pub(crate) fn make_room_for(&mut self, missing: u64, buf: &mut BytesMut) {
        let most = buf.len().max(GATHER_MAX);
        let room = usize::try_from(missing).map_or(most, |missing| missing.min(most)) + 1;
        let free = buf.capacity() - buf.len();
        if free >= room || (self.lent.is_none() && free > 0) {
            return;
        }
        let size = buf.len() + room;
        let (mut larger, lent) = match size <= Room::MOST {
            true => (Room::Large.lend(size), Some(Room::Large)),
            false if self.lent.is_none() && !buf.is_empty() => return buf.reserve(room),
            false => (BytesMut::with_capacity(size), None),
        };
        larger.extend_from_slice(buf);
        buf.clear();
        self.give_back(buf);
        *buf = larger;
        self.lent = lent;
    }

    /// Takes note that a read brought `n` of the bytes that it was `offered`: the next is offered much
    /// once there is much, and no more than a head's room once there is little.
    pub(crate) fn brought(&mut self, n: usize, offered: usize) {
        if n == offered {
            self.room = Room::Large;
        } else if n < LITTLE {
            self.room = Room::Small;
        }
    }

    /// Between reads an empty block is the thread's again.
    pub(crate) fn give_back(&mut self, buf: &mut BytesMut) {
        if buf.is_empty()
            && let Some(room) = self.lent.take()
        {
            room.give_back(std::mem::take(buf));
        }
    }
}

/// How much a read is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// A head with a small body behind it. Little, because a head that is kept keeps its block.
    Small,
    /// Much of a large body.
    Large,
}

impl Room {
    /// Offered when there may be more than 8 KiB: 64 KiB of body with a head or chunk lines around it.
    pub(super) const MOST: usize = 68 * 1024;
    const LEAST: usize = 8 * 1024;

    /// What suits `expected` bytes.
    pub(super) fn suiting(expected: u64) -> Self {
        if expected < Self::LEAST as u64 { Room::Small } else { Room::Large }
    }

    /// The size of a block.
    pub(super) fn bytes(self) -> usize {
        match self {
            Room::Small => Self::LEAST,
            Room::Large => Self::MOST,
        }
    }

    /// Room that is worth a read. A block is used up to its half at least before another is made.
    pub(super) fn is_in(self, buf: &BytesMut) -> bool {
        buf.capacity() - buf.len() >= self.bytes() / 2
    }

    /// The thread's block of this size, with room for `least` bytes, or a new one.
    pub(super) fn lend(self, least: usize) -> BytesMut {
        let mut block = self.spare(Cell::take).unwrap_or_default();
        if block.capacity() < least && !block.try_reclaim(self.bytes()) {
            block = BytesMut::with_capacity(self.bytes());
        }
        block
    }

    /// Takes an empty block of this size back.
    pub(super) fn give_back(self, block: BytesMut) {
        self.spare(|spare| spare.set(block));
    }

    /// `None` while the thread ends.
    fn spare<R>(self, with: impl FnOnce(&Cell<BytesMut>) -> R) -> Option<R> {
        thread_local! {
            static SMALL: Cell<BytesMut> = Cell::default();
            static LARGE: Cell<BytesMut> = Cell::default();
        }
        let spare = match self {
            Room::Small => &SMALL,
            Room::Large => &LARGE,
        };
        spare.try_with(with).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_once_what_was_cut_off_is_dropped() {
        let mut block = Room::Small.lend(4000);
        let place = block.as_ptr();
        block.extend_from_slice(&[1; 6000]);
        let cut = block.split().freeze();
        Room::Small.give_back(block);

        let block = Room::Small.lend(4000);
        assert_ne!(block.as_ptr(), place, "what was cut off is still there");
        assert_eq!(cut.len(), 6000);
        Room::Small.give_back(block);

        let mut block = Room::Small.lend(4000);
        let place = block.as_ptr();
        block.extend_from_slice(&[2; 6000]);
        drop(block.split());
        Room::Small.give_back(block);
        assert_eq!(Room::Small.lend(4000).as_ptr(), place);
    }

    #[test]
    fn the_rest_of_a_block_serves_until_half_of_it_is_gone() {
        let mut block = Room::Large.lend(34_000);
        block.extend_from_slice(&[0; 1000]);
        let cut = block.split();
        Room::Large.give_back(block);
        let block = Room::Large.lend(34_000);
        assert_eq!(block.as_ptr(), cut.as_ptr().wrapping_add(1000));
    }
}
