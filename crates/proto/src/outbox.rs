//! Bytes that wait to be written.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Data up to this size is copied behind what waits already: the copy costs less than a slice of its
/// own in the `writev`.
const COALESCE: usize = 4096;

/// An empty queue keeps no more room than this, and written text beyond it is dropped even while more
/// waits behind, once it is the half of all.
const COMPACT_FROM: usize = 64 * 1024;

/// A queue of frames, kept in one buffer, and of large data, kept as it was given.
///
/// ```text
/// text:  [written][ HEADERS, DATA header ][ DATA header ][ small DATA, PING ... ]
/// data:                                  ^ 16 KiB       ^ 16 KiB
/// ```
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    text: Vec<u8>,
    /// How much of `text` was written.
    written: usize,
    /// Data that goes out before the text at this place.
    data: VecDeque<(usize, Bytes)>,
    data_len: usize,
    /// Bytes written since the connection began.
    total: u64,
}

impl Outbox {
    /// Where frames are appended.
    #[inline]
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Appends data: copied when small, kept as it is when large.
    pub(crate) fn data(&mut self, data: Bytes) {
        if data.len() <= COALESCE {
            self.text.extend_from_slice(&data);
        } else {
            self.data_len += data.len();
            self.data.push_back((self.text.len(), data));
        }
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn pending(&self) -> usize {
        self.text.len() - self.written + self.data_len
    }

    /// The place, counted from the connection's first byte, behind all that is queued.
    pub(crate) fn end(&self) -> u64 {
        self.total + self.pending() as u64
    }

    /// How many bytes were written since the connection began.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Fills `slices` with what to write next; says how many it filled.
    #[inline]
    pub(crate) fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut place = self.written;
        let mut slices = slices.iter_mut();
        let mut filled = 0;
        let mut fill = |bytes: &'a [u8]| {
            let slice = if bytes.is_empty() { None } else { slices.next() };
            if let Some(slice) = slice {
                *slice = IoSlice::new(bytes);
                filled += 1;
            }
        };
        for (at, data) in &self.data {
            fill(&self.text[place..*at]);
            fill(data);
            place = *at;
        }
        fill(&self.text[place..]);
        filled
    }

    /// Takes note that the first `count` bytes were written. More than there were count as all.
    #[inline]
    pub(crate) fn transmitted(&mut self, count: usize) {
        let mut count = count.min(self.pending());
        self.total += count as u64;
        while let Some((at, data)) = self.data.front_mut() {
            let text = count.min(*at - self.written);
            self.written += text;
            count -= text;
            let taken = count.min(data.len());
            data.advance(taken);
            self.data_len -= taken;
            count -= taken;
            if !data.is_empty() {
                break;
            }
            self.data.pop_front();
        }
        self.written += count;
        self.reclaim();
    }

    #[inline]
    fn reclaim(&mut self) {
        if self.written == self.text.len() && self.data.is_empty() {
            self.text.clear();
            if self.text.capacity() > COMPACT_FROM {
                // Not shrunk in place: a block that is free as a whole the allocator has for the next.
                self.text = Vec::new();
            }
            self.written = 0;
        } else if self.written > COMPACT_FROM && self.written >= self.text.len() / 2 {
            // What stays is moved at most once for each byte that went.
            self.text.drain(..self.written);
            self.data.iter_mut().for_each(|(at, _)| *at -= self.written);
            self.written = 0;
        }
    }

    /// Gives up the room of an empty queue beyond `keep` bytes of text.
    pub(crate) fn shrink(&mut self, keep: usize) {
        if self.pending() == 0 {
            if self.text.capacity() > keep {
                self.text = Vec::new();
            }
            self.data = VecDeque::new();
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(out: &Outbox, slices: usize) -> Vec<u8> {
        let mut room = vec![IoSlice::new(&[]); slices];
        let filled = out.poll_transmit(&mut room);
        room[..filled].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn bytes_leave_in_order_however_they_are_written() {
        for step in [1, 3, 100, 4999, 5000, 9000, 40_000] {
            let mut out = Outbox::default();
            let mut expected = Vec::new();
            for round in 0..4_u8 {
                for (len, byte) in [(9, b'a'), (5000, b'b'), (6000, b'c'), (100, b'd')] {
                    let data = vec![byte + round; len];
                    expected.extend_from_slice(&data);
                    out.data(Bytes::from(data));
                }
                out.text().extend_from_slice(b"frame");
                expected.extend_from_slice(b"frame");
            }
            assert_eq!(out.end(), expected.len() as u64);
            let mut wire = Vec::new();
            while out.pending() > 0 {
                let next = read(&out, 3);
                let count = next.len().min(step);
                wire.extend_from_slice(&next[..count]);
                out.transmitted(count);
            }
            assert_eq!((wire == expected, out.total()), (true, expected.len() as u64));
        }
    }

    #[test]
    fn an_empty_queue_gives_its_room_back() {
        let mut out = Outbox::default();
        out.text().resize(300_000, 0);
        out.transmitted(299_999);
        assert!(out.text.len() == 1);
        out.transmitted(5);
        assert!(out.text.capacity() <= COMPACT_FROM);
        out.shrink(0);
        assert_eq!(out.text.capacity(), 0);
    }
}
