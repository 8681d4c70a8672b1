//! Frame headers (RFC 6455 section 5.2), read and written.
//!
//! ```text
//!  byte 0            byte 1          0, 2 or 8 bytes    0 or 4 bytes
//! [F|R R R|opcode ] [M|length      ] [longer length   ] [masking key ]  payload ...
//! ```

use std::ops::Range;

use super::Role;
use crate::PeerMisbehaved;
use crate::simd::mask::{HEAD, append};

/// The longest payload of a control frame (RFC 6455 section 5.5).
pub const CONTROL_MAX: usize = 125;

/// The longest header.
pub const HEADER_MAX: usize = 14;

const FIN: u8 = 0x80;
const RSV: u8 = 0x70;
const MASK: u8 = 0x80;
/// What of byte 1 says that the length stands behind it, in two or in eight bytes.
const LEN_16: u8 = 126;
const LEN_64: u8 = 127;

/// The bit of byte 0 that permessage-deflate uses (RFC 7692 section 6), where [`Header::rsv`] has it.
pub const RSV1: u8 = 0x40;

/// Masks `payload`, or unmasks it, which is the same (RFC 6455 section 5.3). `key` begins with what
/// the first byte is masked with.
#[inline]
pub fn apply_mask(payload: &mut [u8], key: [u8; 4]) {
    crate::simd::mask::in_place(payload, key);
}

/// What a frame is (RFC 6455 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Goes on with a message.
    Continuation = 0,
    /// Begins a message of text.
    Text = 1,
    /// Begins a message of bytes.
    Binary = 2,
    /// Section 5.5.1.
    Close = 8,
    /// Section 5.5.2.
    Ping = 9,
    /// Section 5.5.3.
    Pong = 10,
}

impl Opcode {
    /// The opcode of byte 0, if it is defined.
    #[inline]
    const fn of(byte: u8) -> Option<Self> {
        Some(match byte & 0x0f {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    /// Whether it may stand between the fragments of a message.
    #[must_use]
    #[inline]
    pub const fn is_control(self) -> bool {
        self as u8 & 0x08 != 0
    }
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whether it is the last frame of its message.
    pub fin: bool,
    /// The reserved bits, where they stand in byte 0: see [`RSV1`].
    pub rsv: u8,
    /// What the frame is.
    pub opcode: Opcode,
    /// The masking key, if there is one.
    pub mask: Option<[u8; 4]>,
    /// The length of the payload in bytes, at most 2^63-1.
    pub len: u64,
}

impl Header {
    /// Reads the header at the beginning of `bytes`: it, and how many bytes it takes. `None` when more
    /// bytes are needed to tell.
    ///
    /// # Errors
    /// What is forbidden whoever sends it: an opcode that is not defined, a length not in its shortest
    /// form or beyond 2^63-1, a control frame that is longer than 125 bytes or not final.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, PeerMisbehaved> {
        let [first, second, ..] = *bytes else { return Ok(None) };
        let (fin, rsv) = (first & FIN != 0, first & RSV);
        let opcode = Opcode::of(first).ok_or(PeerMisbehaved::ReservedOpcode)?;
        let short = second & !MASK;
        if opcode.is_control() {
            // RFC 6455 section 5.5.
            if short > CONTROL_MAX as u8 {
                return Err(PeerMisbehaved::ControlTooLong);
            }
            if !fin {
                return Err(PeerMisbehaved::ControlFragmented);
            }
        }
        // RFC 6455 section 5.2: in the shortest form, and the highest bit of 64 is 0.
        let (len, mut at, shortest) = match short {
            LEN_16 => {
                let Some(&[high, low]) = bytes.get(2..4) else { return Ok(None) };
                let len = u64::from(u16::from_be_bytes([high, low]));
                (len, 4, len >= u64::from(LEN_16))
            }
            LEN_64 => {
                let Some(len) = bytes.get(2..10).and_then(<[u8]>::first_chunk) else {
                    return Ok(None);
                };
                let len = u64::from_be_bytes(*len);
                (len, 10, len > u64::from(u16::MAX) && len >> 63 == 0)
            }
            short => (u64::from(short), 2, true),
        };
        if !shortest {
            return Err(PeerMisbehaved::FrameLength);
        }
        let mut mask = None;
        if second & MASK != 0 {
            let Some(&[a, b, c, d]) = bytes.get(at..at + 4) else { return Ok(None) };
            mask = Some([a, b, c, d]);
            at += 4;
        }
        Ok(Some((Self { fin, rsv, opcode, mask, len }, at)))
    }

    /// Appends the header to `out`, its length in the shortest form.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(&[], out);
    }

    /// Appends the header, and `payload` masked as it says: all in one pass.
    #[inline]
    pub(super) fn write_with(&self, payload: &[u8], out: &mut Vec<u8>) {
        let (head, len) = self.head();
        append(out, &head, len, payload, self.mask);
    }

    /// The header at the beginning of what it gives, and how many bytes it takes.
    #[inline]
    fn head(&self) -> ([u8; HEAD], usize) {
        let first = if self.fin { FIN } else { 0 } | self.rsv & RSV | self.opcode as u8;
        let (masked, key, key_len) = match self.mask {
            Some(key) => (MASK, u64::from(u32::from_le_bytes(key)), 4),
            None => (0, 0, 0),
        };
        // Put together as one number, the first byte lowest.
        let (head, len) = if self.len < u64::from(LEN_16) {
            (u128::from(self.len << 8 | key << 16), 2)
        } else if let Ok(len) = u16::try_from(self.len) {
            let len = u64::from(len.swap_bytes());
            (u128::from(u64::from(LEN_16) << 8 | len << 16 | key << 32), 4)
        } else {
            let len = u128::from(self.len.swap_bytes());
            (u128::from(LEN_64) << 8 | len << 16 | u128::from(key) << 80, 10)
        };
        let head = head | u128::from(u16::from_le_bytes([first, masked]));
        (head.to_le_bytes(), len + key_len)
    }
}

/// The header of a message that is one frame and not of the longest: what it is, how many bytes its header
/// takes, how many its payload. `None` for anything else, whatever it is, and for what `role` must not hear.
#[inline(always)]
pub(super) fn plain_head(bytes: &[u8], role: Role) -> Option<(Opcode, usize, usize)> {
    const TEXT: u8 = FIN | Opcode::Text as u8;
    const BINARY: u8 = FIN | Opcode::Binary as u8;
    let opcode = match *bytes.first()? {
        TEXT => Opcode::Text,
        BINARY => Opcode::Binary,
        _ => return None,
    };
    let (mask, key_len) = if role == Role::Server { (MASK, 4) } else { (0, 0) };
    let (size, len) = match *bytes.get(1)? ^ mask {
        short @ ..LEN_16 => (2 + key_len, usize::from(short)),
        LEN_16 => {
            let &[high, low] = bytes.get(2..4)? else { return None };
            (4 + key_len, usize::from(u16::from_be_bytes([high, low])))
        }
        _ => return None,
    };
    let shortest = len >= usize::from(LEN_16) || size < 4 + key_len;
    (shortest && size <= bytes.len()).then_some((opcode, size, len))
}

/// Where the payload lies behind a header of `at` bytes that begins at `start`, as far as `here` bytes
/// of buffer go.
#[inline]
pub(super) fn payload(start: usize, at: usize, len: u64, here: usize) -> Option<Range<usize>> {
    let from = start + at;
    let room = here.checked_sub(from)?;
    (len <= room as u64).then(|| from..from + len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 4] = [1, 2, 3, 4];

    #[test]
    fn what_is_written_is_read_and_no_beginning_of_it_is_taken_for_it() {
        let lens = [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 32, (1 << 63) - 1];
        for (len, mask) in lens.into_iter().flat_map(|len| [(len, None), (len, Some(KEY))]) {
            for (fin, rsv) in [(true, 0), (false, RSV1), (true, RSV)] {
                let header = Header { fin, rsv, opcode: Opcode::Text, mask, len };
                let mut bytes = Vec::new();
                header.write(&mut bytes);
                assert!(bytes.len() <= HEADER_MAX);
                for cut in 0..bytes.len() {
                    assert_eq!(Header::read(&bytes[..cut]), Ok(None), "{header:?} {cut}");
                }
                let size = bytes.len();
                bytes.push(9);
                assert_eq!(Header::read(&bytes), Ok(Some((header, size))));
            }
        }
    }

    #[test]
    fn a_length_is_in_its_shortest_form() {
        for bytes in [
            &[0x82, 126, 0, 125][..],
            &[0x82, 126, 0, 0],
            &[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
            &[0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1],
        ] {
            assert_eq!(Header::read(bytes), Err(PeerMisbehaved::FrameLength), "{bytes:?}");
        }
    }

    #[test]
    fn the_highest_bit_of_a_64_bit_length_is_zero() {
        let bytes = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Header::read(&bytes), Err(PeerMisbehaved::FrameLength));
    }

    #[test]
    fn opcodes_that_are_not_defined_are_refused() {
        for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            let read = Header::read(&[0x80 | opcode, 0]);
            assert_eq!(read, Err(PeerMisbehaved::ReservedOpcode), "{opcode}");
        }
    }

    #[test]
    fn control_frames_are_short_and_whole() {
        for opcode in [8, 9, 10] {
            for short in [126, 127, 0x80 | 126] {
                let read = Header::read(&[0x80 | opcode, short]);
                assert_eq!(read, Err(PeerMisbehaved::ControlTooLong));
            }
            assert_eq!(Header::read(&[opcode, 0]), Err(PeerMisbehaved::ControlFragmented));
            assert!(matches!(Header::read(&[0x80 | opcode, 125]), Ok(Some(_))));
        }
    }
}
