//! A compressor for messages (RFC 1951): fast first.
//!
//! A compressor for files spends most of a short message on things that do not depend on its length: clearing
//! tables, building codes. This one has a small table that is never cleared, and the code that RFC 1951 fixes.
//! It takes what it finds first: one candidate for each place, found by six bytes, checked by comparing.
//! Whatever the table holds, a match is one because the bytes are equal.

use std::mem;

/// The table has 2^this places. A larger one finds more matches that are hardly worth it, at the cost of more
/// guesses that go wrong.
const TABLE_BITS: u32 = 12;

/// The longest match (RFC 1951 section 3.2.5).
const LONGEST: usize = 258;

/// What is looked at together. So many bytes at the end are not looked for.
const WORD: usize = 8;

/// The most bytes of a stored block (RFC 1951 section 3.2.4).
const STORED_MAX: usize = 0xffff;

/// A final block is never written: the window goes on (RFC 7692 section 7.2.3.4).
const FIXED_BLOCK: (u64, u32) = (0b010, 3);
/// The end of a block, and the beginning of an empty one that is stored: what a flush is, but for its tail.
const END_AND_FLUSH: (u64, u32) = (0, 7 + 3);

/// A code or codes, the first bit lowest, and how many bits that are.
type Code = (u16, u8);

/// Compresses messages one after the other.
#[derive(Debug)]
pub(super) struct Packer {
    /// What the reader knows of what was sent, and behind it what is being compressed.
    window: Vec<u8>,
    /// How far back a match may be.
    reach: usize,
    /// Where the window begins in all that was seen, as far as 16 bits tell.
    base: u16,
    /// By the hash of some bytes, where they were seen last, counted like `base`. Empty before the first
    /// message.
    seen: Vec<u16>,
}

impl Packer {
    /// For a window of 2^`bits` bytes, 8 to 15. Does not allocate.
    pub(super) fn new(bits: u8) -> Self {
        Self { window: Vec::new(), reach: 1 << bits, base: 0, seen: Vec::new() }
    }

    /// Nothing that was sent is referred to any more.
    pub(super) fn forget(&mut self) {
        self.window.clear();
    }

    /// The same, and the memory is given back.
    pub(super) fn shrink(&mut self) {
        (self.window, self.seen) = (Vec::new(), Vec::new());
    }

    /// Appends all of a message to `out`, as far as it is sent (RFC 7692 section 7.2.1). If that is not
    /// shorter, `out` is left as it was, and it is as if the message had never been here: `false`.
    pub(super) fn whole(&mut self, message: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.pack(message, out);
        if out.len() - start < message.len() {
            return true;
        }
        out.truncate(start);
        match self.window.len().checked_sub(message.len()) {
            Some(before) if message.len() <= self.reach => self.window.truncate(before),
            // What is left of the time before is not what the reader has last.
            _ => self.forget(),
        }
        false
    }

    /// Appends a piece of a message to `out`, up to where a flush ends with its tail. It is at most five bytes
    /// in 65535 longer, and one.
    pub(super) fn piece(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        self.pack(piece, out);
        if out.len() - start > piece.len() {
            out.truncate(start);
            store(piece, out);
        }
    }

    fn pack(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.seen.resize(1 << TABLE_BITS, 0);
        let mut bits = Bits::new(out);
        bits.put(FIXED_BLOCK);
        for chunk in bytes.chunks(self.reach) {
            self.make_room(chunk.len());
            let start = self.window.len();
            self.window.extend_from_slice(chunk);
            // No code takes more than nine bits for a byte.
            bits.make_room(chunk.len() + chunk.len() / 8);
            self.chunk(start, &mut bits);
        }
        bits.put(END_AND_FLUSH);
        bits.finish();
    }

    /// Of the time before, as much stays as may be referred to.
    fn make_room(&mut self, len: usize) {
        if self.window.len() + len > 2 * self.reach {
            let drop = self.window.len().saturating_sub(self.reach);
            self.window.drain(..drop);
            self.base = self.base.wrapping_add(drop as u16);
        }
        // It grows by doubling, and not beyond what it can ever hold.
        let room = (self.window.len() + len).next_power_of_two();
        self.window.reserve_exact(room - self.window.len());
    }

    /// Compresses what stands in the window from `at` on.
    fn chunk(&mut self, mut at: usize, bits: &mut Bits<'_>) {
        let window = &self.window[..];
        while let Some(here) = word(window, at) {
            let place = self.base.wrapping_add(at as u16);
            let back = match self.seen.get_mut(hash(here)) {
                Some(seen) => place.wrapping_sub(mem::replace(seen, place)),
                None => 0,
            };
            match find(window, at, here, usize::from(back), self.reach) {
                Some(len) => {
                    bits.put_match(len, back);
                    at += len;
                    // Where the next match may begin, if it goes on like the last time.
                    if let Some(near) = word(window, at - 2)
                        && let Some(seen) = self.seen.get_mut(hash(near))
                    {
                        *seen = self.base.wrapping_add((at - 2) as u16);
                    }
                }
                None => {
                    bits.put_literal(here as u8);
                    at += 1;
                }
            }
        }
        window[at..].iter().for_each(|byte| bits.put_literal(*byte));
    }
}

/// Eight bytes from `at` on, the first lowest.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + WORD)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// Of the first six bytes.
#[inline(always)]
fn hash(word: u64) -> usize {
    // 2^64 divided by the golden ratio: Fibonacci hashing.
    ((word << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS)) as usize
}

/// How many bytes are the same `back` before, if that is worth telling: `here` is what stands at `at`.
#[inline(always)]
fn find(window: &[u8], at: usize, here: u64, back: usize, reach: usize) -> Option<usize> {
    if back == 0 || back > reach {
        return None;
    }
    let from = at.checked_sub(back)?;
    let differ = word(window, from)? ^ here;
    match differ.trailing_zeros() / 8 {
        0..4 => None,
        WORD_LEN => Some(common(window, from, at)),
        len => Some(len as usize),
    }
}

const WORD_LEN: u32 = WORD as u32;

/// How many bytes from `from` on are the same as from `at` on, which is behind it. The first eight are.
fn common(window: &[u8], from: usize, at: usize) -> usize {
    let limit = LONGEST.min(window.len() - at);
    let mut len = WORD;
    while len < limit {
        let (Some(there), Some(here)) = (word(window, from + len), word(window, at + len)) else {
            let pairs = window[from + len..].iter().zip(&window[at + len..]);
            len += pairs.take_while(|(there, here)| there == here).count();
            break;
        };
        let differ = there ^ here;
        if differ != 0 {
            len += (differ.trailing_zeros() / 8) as usize;
            break;
        }
        len += WORD;
    }
    len.min(limit)
}

/// Stored blocks, and the beginning of an empty one (RFC 1951 section 3.2.4).
fn store(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(STORED_MAX) {
        let len = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.push(0);
}

/// Bits, the first lowest, behind what `out` had (RFC 1951 section 3.1.1).
struct Bits<'a> {
    /// There is room made ahead, which is cut off at the end.
    out: &'a mut Vec<u8>,
    at: usize,
    waiting: u64,
    /// How many wait: less than 32 between two calls.
    count: u32,
}

impl<'a> Bits<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        Self { out, at, waiting: 0, count: 0 }
    }

    /// For so many bytes, and for what stands around them.
    fn make_room(&mut self, len: usize) {
        self.out.resize(self.at + len + 2 * WORD, 0);
    }

    /// At most 32 bits.
    #[inline(always)]
    fn put(&mut self, (bits, count): (u64, u32)) {
        self.waiting |= bits << self.count;
        self.count += count;
        if self.count >= 32 {
            if let Some(room) = self.out.get_mut(self.at..self.at + 4) {
                room.copy_from_slice(&(self.waiting as u32).to_le_bytes());
            }
            self.at += 4;
            self.waiting >>= 32;
            self.count -= 32;
        }
    }

    #[inline(always)]
    fn put_literal(&mut self, byte: u8) {
        let (code, count) = LITERALS[usize::from(byte)];
        self.put((u64::from(code), u32::from(count)));
    }

    /// `len` bytes as they stood `back` before: at most 31 bits.
    #[inline(always)]
    fn put_match(&mut self, len: usize, back: u16) {
        let (code, count) = LENGTHS[len.min(LONGEST)];
        let (count, back) = (u32::from(count), u32::from(back) - 1);
        // RFC 1951 section 3.2.5: two codes for each power of two, with what is left in extra bits.
        let extra = 30_u32.saturating_sub(back.leading_zeros());
        let symbol = 2 * extra + (back >> extra);
        let rest = back & ((1 << extra) - 1);
        let distance = reversed(symbol as u16, 5) | rest << 5;
        self.put((u64::from(code) | u64::from(distance) << count, count + 5 + extra));
    }

    /// Fills the last byte with zeros.
    fn finish(self) {
        self.out.truncate(self.at);
        let rest = self.waiting.to_le_bytes();
        self.out.extend_from_slice(&rest[..self.count.div_ceil(8) as usize]);
    }
}

/// Huffman codes are written from their highest bit on (RFC 1951 section 3.1.1).
#[inline(always)]
const fn reversed(code: u16, len: u32) -> u32 {
    (code.reverse_bits() >> (16 - len)) as u32
}

/// The code of each byte (RFC 1951 section 3.2.6).
static LITERALS: [Code; 256] = {
    let mut all = [(0, 0); 256];
    let mut byte = 0;
    while byte < 256 {
        let (code, len) = if byte < 144 { (0x30 + byte, 8) } else { (0x190 + byte - 144, 9) };
        all[byte] = (reversed(code as u16, len) as u16, len as u8);
        byte += 1;
    }
    all
};

/// The code of each length with its extra bits (RFC 1951 sections 3.2.5 and 3.2.6).
static LENGTHS: [Code; LONGEST + 1] = {
    let mut all = [(0, 0); LONGEST + 1];
    let mut len = 3;
    while len <= LONGEST {
        let over = len as u16 - 3;
        // Four symbols for each power of two; the last length has one of its own.
        let (symbol, extra) = match over {
            255 => (285, 0),
            0..8 => (257 + over, 0),
            _ => {
                let extra = 13 - over.leading_zeros();
                (257 + 4 * extra as u16 + (over >> extra), extra)
            }
        };
        let (code, bits) = if symbol < 280 { (symbol - 256, 7) } else { (0xc0 + symbol - 280, 8) };
        let rest = (over & ((1 << extra) - 1)) << bits;
        all[len] = (reversed(code, bits) as u16 | rest, (bits + extra) as u8);
        len += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use flate2::{Decompress, FlushDecompress};

    use super::*;

    const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

    fn inflate(inflate: &mut Decompress, packed: &[u8], len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 1);
        let packed = [packed, &TAIL].concat();
        inflate.decompress_vec(&packed, &mut out, FlushDecompress::Sync).unwrap();
        out
    }

    fn noise(len: usize, mut seed: u32) -> Vec<u8> {
        let next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    /// Every length at every distance's first and last: by text that repeats itself after so many bytes.
    #[test]
    fn every_length_and_every_power_of_a_distance() {
        for power in 3..=15 {
            for back in [(1 << power) - 1, 1 << power, (1_usize << power) + 1] {
                let few = [3, 4, 10, 257, 258, 259, 300];
                let all: Vec<usize> = if power < 7 { (3..=300).collect() } else { few.to_vec() };
                for len in all {
                    let mut bytes = noise(back, len as u32);
                    let again: Vec<u8> = bytes.iter().copied().cycle().take(len).collect();
                    bytes.extend_from_slice(&again);
                    bytes.extend_from_slice(&noise(9, 1));
                    let mut out = Vec::new();
                    Packer::new(15).piece(&bytes, &mut out);
                    let mut zlib = Decompress::new(false);
                    assert_eq!(inflate(&mut zlib, &out, bytes.len()), bytes, "{back} {len}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_shrink_was_never_here() {
        let (mut packer, mut zlib) = (Packer::new(15), Decompress::new(false));
        let text = b"the same words, and the same words, and again the same words".repeat(3);
        let mut sizes = Vec::new();
        // One is longer than what is kept of the time before.
        for incompressible in [noise(500, 1), noise(1, 2), noise(100_000, 3), noise(40_000, 4)] {
            let mut out = b"before".to_vec();
            assert!(packer.whole(&text, &mut out));
            assert_eq!(inflate(&mut zlib, &out[6..], text.len()), text);
            sizes.push(out.len());
            assert!(!packer.whole(&incompressible, &mut out));
            assert_eq!(out.len(), sizes[sizes.len() - 1]);
        }
        // It refers to what came before as long as it knows it.
        assert!(sizes[1] < 20 && sizes[2] < 20 && sizes[3] > 30, "{sizes:?}");
    }

    #[test]
    fn pieces_that_do_not_shrink_hardly_grow() {
        let (mut packer, mut zlib) = (Packer::new(15), Decompress::new(false));
        for len in [0, 1, 100, 65_535, 65_536, 200_000] {
            let bytes = noise(len, 7);
            let mut out = Vec::new();
            packer.piece(&bytes, &mut out);
            assert!(out.len() <= len + 5 * len.div_ceil(STORED_MAX) + 2, "{len}: {}", out.len());
            assert_eq!(inflate(&mut zlib, &out, len), bytes);
        }
    }

    #[test]
    fn it_keeps_to_its_window() {
        for bits in 8..=15_u8 {
            let (mut packer, mut zlib) =
                (Packer::new(bits), Decompress::new_with_window_bits(false, bits.max(9)));
            let reach = 1_usize << bits;
            for back in [reach - 1, reach, reach + 1, 2 * reach] {
                for repeat in [2, 5] {
                    let bytes = noise(back, back as u32).repeat(repeat);
                    let mut out = Vec::new();
                    packer.piece(&bytes, &mut out);
                    assert!(packer.window.capacity() <= 2 * reach);
                    assert_eq!(inflate(&mut zlib, &out, bytes.len()), bytes);
                    // What lies further back than the table remembers is not found.
                    if back <= 1 << (TABLE_BITS - 1) || back > reach {
                        assert_eq!(out.len() < bytes.len(), back <= reach, "{bits} {back}");
                    }
                }
            }
        }
    }
}
