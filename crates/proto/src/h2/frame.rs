//! Frames (RFC 9113 sections 4 and 6): the nine octets in front, and writing each kind in place.

use super::Code;
use super::opening::{Priority, SettingId};

/// RFC 9113 section 3.4.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// RFC 9113 section 4.1.
pub(crate) const HEADER_LEN: usize = 9;

/// Frame types (RFC 9113 section 6, RFC 9218 section 7.1).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GOAWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags (RFC 9113 section 6).
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The nine octets in front of every frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) len: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *bytes;
        Some(Self {
            len: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // Section 4.1: the reserved bit is ignored.
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff,
        })
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn bytes(self) -> [u8; HEADER_LEN] {
        let [_, a, b, c] = self.len.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }
}

/// A big-endian 32-bit number at `at`.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four))
}

/// SETTINGS (RFC 9113 section 6.5).
pub(crate) fn write_settings(out: &mut Vec<u8>, settings: &[(SettingId, u32)]) {
    let len = settings.len() as u32 * 6;
    Header { len, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (id, value) in settings {
        out.extend_from_slice(&id.0.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn write_settings_ack(out: &mut Vec<u8>) {
    Header { len: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
}

/// WINDOW_UPDATE (RFC 9113 section 6.9).
pub(crate) fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    write_number(out, kind::WINDOW_UPDATE, stream, increment);
}

/// RST_STREAM (RFC 9113 section 6.4).
pub(super) fn write_reset(out: &mut Vec<u8>, stream: u32, code: Code) {
    write_number(out, kind::RST_STREAM, stream, code.0);
}

fn write_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    let mut frame = [0; HEADER_LEN + 4];
    let (header, payload) = frame.split_at_mut(HEADER_LEN);
    header.copy_from_slice(&Header { len: 4, kind, flags: 0, stream }.bytes());
    payload.copy_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&frame);
}

/// PING (RFC 9113 section 6.7).
pub(crate) fn write_ping(out: &mut Vec<u8>, ack: bool, payload: [u8; 8]) {
    let flags = if ack { flag::ACK } else { 0 };
    Header { len: 8, kind: kind::PING, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// GOAWAY (RFC 9113 section 6.8).
pub(super) fn write_go_away(out: &mut Vec<u8>, last: u32, code: Code) {
    Header { len: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// PRIORITY (RFC 9113 section 6.3).
pub(super) fn write_priority(out: &mut Vec<u8>, stream: u32, priority: Priority) {
    Header { len: 5, kind: kind::PRIORITY, flags: 0, stream }.write(out);
    out.extend_from_slice(&priority_bytes(priority));
}

/// The priority fields of PRIORITY and HEADERS.
pub(super) fn priority_bytes(priority: Priority) -> [u8; 5] {
    let exclusive = u32::from(priority.exclusive) << 31;
    let [a, b, c, d] = (priority.depends_on & 0x7fff_ffff | exclusive).to_be_bytes();
    [a, b, c, d, priority.weight]
}

/// PRIORITY_UPDATE (RFC 9218 section 7.1).
pub(super) fn write_priority_update(out: &mut Vec<u8>, stream: u32, value: &[u8]) {
    let len = 4 + value.len() as u32;
    Header { len, kind: kind::PRIORITY_UPDATE, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(value);
}

/// Makes frames of a header block that stands at the end of `out`, from `start` on, behind the room
/// that [`begin_block`] left: one HEADERS frame, and CONTINUATION for what passes `max` octets
/// (RFC 9113 sections 6.2 and 6.10).
pub(crate) fn finish_block(out: &mut Vec<u8>, start: usize, stream: u32, flags: u8, max: usize) {
    let len = out.len() - start - HEADER_LEN;
    let first = len.min(max);
    let whole = if first == len { flag::END_HEADERS } else { 0 };
    let header = Header { len: first as u32, kind: kind::HEADERS, flags: flags | whole, stream };
    out[start..start + HEADER_LEN].copy_from_slice(&header.bytes());
    if first < len {
        split_block(out, start + HEADER_LEN + first, stream, max);
    }
}

/// Leaves room for the HEADERS frame's header, and says where.
pub(crate) fn begin_block(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    start
}

/// Rare: the rest of a block beyond `max` is taken off and written again as CONTINUATION frames.
fn split_block(out: &mut Vec<u8>, at: usize, stream: u32, max: usize) {
    let rest = out.split_off(at);
    let mut pieces = rest.chunks(max).peekable();
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        Header { len: piece.len() as u32, kind: kind::CONTINUATION, flags, stream }.write(out);
        out.extend_from_slice(piece);
    }
}
