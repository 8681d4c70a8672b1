//! Bytes that wait to be written.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Data up to this size is copied behind what waits already: the copy costs less than a slice of
/// its own in the `writev`, and far less than a second write.
const COALESCE: usize = 4096;

/// Written text beyond this is dropped even while more waits behind it, and an empty queue keeps no
/// more room than this.
const COMPACT_FROM: usize = 64 * 1024;

/// Segments that an empty queue keeps room for.
const FEW_SEGMENTS: usize = 4;

/// A queue of framing text, kept in one buffer, and of data, kept as it was given.
///
/// ```text
/// segments:  Text(120) | Data(64 KiB) | Text(9) | ...
/// text:      [written][   120   ][ 9 ]
/// ```
#[derive(Debug, Default)]
pub(super) struct Outbox {
    text: Vec<u8>,
    /// How much of `text` was written.
    written: usize,
    segments: VecDeque<Segment>,
    /// The sum of all segments.
    pending: usize,
    /// How long the last head is, and how much of it is not yet written.
    head_len: usize,
    head_left: usize,
    /// Whether only the head may be written.
    held: bool,
}

#[derive(Debug)]
enum Segment {
    Text(usize),
    Data(Bytes),
}

impl Segment {
    fn len(&self) -> usize {
        match self {
            Self::Text(len) => *len,
            Self::Data(data) => data.len(),
        }
    }
}

impl Outbox {
    /// Appends what `write` writes.
    pub(super) fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.text.len();
        write(&mut self.text);
        let added = self.text.len() - before;
        self.pending += added;
        match self.segments.back_mut() {
            Some(Segment::Text(len)) => *len += added,
            _ if added > 0 => self.segments.push_back(Segment::Text(added)),
            _ => {}
        }
    }

    /// Appends the head of an exchange. `hold` keeps back everything after it.
    pub(super) fn head(&mut self, hold: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.pending;
        self.text(write);
        self.head_len = self.pending - before;
        self.head_left = self.head_len;
        self.held = hold;
    }

    /// Appends data: copied when small, kept as it is when large.
    pub(super) fn data(&mut self, data: Bytes) {
        if data.len() <= COALESCE {
            self.text(|text| text.extend_from_slice(&data));
        } else {
            self.pending += data.len();
            self.segments.push_back(Segment::Data(data));
        }
    }

    /// Lets go what was held.
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    /// Whether only the head may be written.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Drops everything behind the head.
    pub(super) fn keep_head(&mut self) {
        self.held = false;
        self.text.truncate(self.written + self.head_left);
        self.segments.clear();
        self.pending = self.head_left;
        if self.head_left > 0 {
            self.segments.push_back(Segment::Text(self.head_left));
        }
    }

    /// Whether the last head was written at least in part.
    pub(super) fn head_begun(&self) -> bool {
        self.head_left < self.head_len
    }

    /// Whether the last head was written whole.
    pub(super) fn head_written(&self) -> bool {
        self.head_left == 0
    }

    /// All bytes queued, held ones counted.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Whether bytes wait behind the head.
    pub(super) fn body_pending(&self) -> bool {
        self.pending > self.head_left
    }

    /// Bytes that may be written now.
    pub(super) fn writable(&self) -> usize {
        if self.held { self.head_left } else { self.pending }
    }

    /// Fills `slices` with what may be written now; says how many it filled.
    pub(super) fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut allowed = self.writable();
        let mut text = &self.text[self.written..];
        let mut filled = 0;
        for (slice, segment) in slices.iter_mut().zip(&self.segments) {
            if allowed == 0 {
                break;
            }
            let bytes = match segment {
                Segment::Data(data) => &data[..],
                Segment::Text(len) => {
                    let (front, rest) = text.split_at(*len);
                    text = rest;
                    front
                }
            };
            let bytes = &bytes[..bytes.len().min(allowed)];
            allowed -= bytes.len();
            *slice = IoSlice::new(bytes);
            filled += 1;
        }
        filled
    }

    /// Takes note that the first `count` bytes were written. More than there were count as all.
    pub(super) fn transmitted(&mut self, count: usize) {
        let mut count = count.min(self.writable());
        self.pending -= count;
        self.head_left = self.head_left.saturating_sub(count);
        while let Some(front) = self.segments.front_mut() {
            let len = front.len();
            let done = count.min(len);
            match front {
                Segment::Text(left) => {
                    *left -= done;
                    self.written += done;
                }
                Segment::Data(data) => data.advance(done),
            }
            if done < len {
                break;
            }
            count -= done;
            self.segments.pop_front();
        }
        self.reclaim();
    }

    /// Gives up the room of an empty queue beyond `keep` bytes of text.
    pub(super) fn shrink(&mut self, keep: usize) {
        if self.pending == 0 {
            if self.text.capacity() > keep {
                self.text = Vec::new();
            }
            if self.segments.capacity() > FEW_SEGMENTS {
                self.segments = VecDeque::new();
            }
            self.written = 0;
        }
    }

    fn reclaim(&mut self) {
        if self.written == self.text.len() {
            self.text.clear();
            self.text.shrink_to(COMPACT_FROM);
            self.written = 0;
        } else if self.written > COMPACT_FROM {
            self.text.drain(..self.written);
            self.written = 0;
        }
    }
}
