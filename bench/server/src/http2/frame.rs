//! Frames on the wire (RFC 9113 section 4.1) and what is known of them by number (section 11.2).

/// Bytes of a frame's head.
pub(crate) const HEAD: usize = 9;
/// The largest payload that is taken: the least that a client may assume (RFC 9113 section 6.5.2).
pub(crate) const PAYLOAD_MAX: usize = 16 * 1024;

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PUSH_PROMISE: u8 = 0x5;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITY: u8 = 0x20;

pub(crate) const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(crate) const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(crate) const SETTINGS_MAX_FRAME_SIZE: u16 = 0x5;

/// Why a connection ends, by the numbers of RFC 9113 section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Protocol = 0x1,
    FlowControl = 0x3,
    FrameSize = 0x6,
    Compression = 0x9,
    EnhanceYourCalm = 0xb,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Head {
    /// The head that `bytes` begin with, once it is all there.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *bytes.first_chunk::<HEAD>()?;
        Some(Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        })
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        // No payload of ours is as long as 24 bits can tell.
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, d, e, f, g]);
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A frame of four bytes of payload: RST_STREAM, WINDOW_UPDATE.
pub(crate) fn write_number(kind: u8, stream: u32, number: u32, out: &mut Vec<u8>) {
    Head { length: 4, kind, flags: 0, stream }.write(out);
    out.extend_from_slice(&number.to_be_bytes());
}

/// The payload without its padding (RFC 9113 section 6.1).
pub(crate) fn unpadded(head: Head, payload: &[u8]) -> Result<&[u8], Code> {
    if !head.has(PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(Code::FrameSize)?;
    let length = rest.len().checked_sub(usize::from(*padding)).ok_or(Code::Protocol)?;
    Ok(&rest[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = Head { length: 0x01_02_03, kind: 9, flags: 4, stream: 0x7fff_fffe };
        let mut wire = Vec::new();
        head.write(&mut wire);
        assert_eq!(Head::read(&wire), Some(head));
        assert_eq!(Head::read(&wire[..8]), None);
    }

    #[test]
    fn padding_is_taken_off_and_not_more_than_there_is() {
        let head = Head { length: 4, kind: DATA, flags: PADDED, stream: 1 };
        assert_eq!(unpadded(head, &[2, b'a', 0, 0]), Ok(&b"a"[..]));
        assert_eq!(unpadded(head, &[4, b'a', 0, 0]), Err(Code::Protocol));
        assert_eq!(unpadded(head, &[]), Err(Code::FrameSize));
    }
}
