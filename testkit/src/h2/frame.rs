//! Frames and header blocks as bytes, right or wrong: nothing here judges what it writes.

/// Frame types (RFC 9113 section 6).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Settings (RFC 9113 section 6.5.2, RFC 8441 section 3).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

/// Error codes (RFC 9113 section 7).
pub(crate) mod code {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const PROTOCOL_ERROR: u32 = 1;
    pub(crate) const INTERNAL_ERROR: u32 = 2;
    pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(crate) const STREAM_CLOSED: u32 = 5;
    pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const COMPRESSION_ERROR: u32 = 9;
    pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;
}

/// What a client says first (RFC 9113 section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's head.
pub(crate) const HEAD: usize = 9;

/// What stands before a frame's payload (RFC 9113 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) len: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Head {
    pub(crate) fn parse(bytes: &[u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        Head { len, kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A frame's head that announces `len` bytes, whatever follows it.
pub(crate) fn head(len: usize, kind: u8, flags: u8, stream: u32) -> Vec<u8> {
    let [_, a, b, c] = (len as u32).to_be_bytes();
    let mut bytes = vec![a, b, c, kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes
}

/// A whole frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = head(payload.len(), kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

/// DATA; `end` ends the stream.
pub(crate) fn data(stream: u32, bytes: impl AsRef<[u8]>, end: bool) -> Vec<u8> {
    frame(kind::DATA, if end { flag::END_STREAM } else { 0 }, stream, bytes)
}

/// HEADERS with a whole block.
pub(crate) fn headers(stream: u32, block: impl AsRef<[u8]>, end: bool) -> Vec<u8> {
    let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
    frame(kind::HEADERS, flags, stream, block)
}

/// HEADERS and as many CONTINUATIONs as pieces of `size` bytes need.
pub(crate) fn headers_in_pieces(stream: u32, block: &[u8], end: bool, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let last = block.len().div_ceil(size).max(1) - 1;
    for at in 0..=last {
        let piece = &block[at * size..block.len().min((at + 1) * size)];
        let mut flags = if at == last { flag::END_HEADERS } else { 0 };
        let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
        if at == 0 && end {
            flags |= flag::END_STREAM;
        }
        bytes.extend(frame(kind, flags, stream, piece));
    }
    bytes
}

/// SETTINGS with these values, in this order.
pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(values.len() * 6);
    for (id, value) in values {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(kind::SETTINGS, 0, 0, payload)
}

/// The acknowledgement of the peer's SETTINGS.
pub(crate) fn settings_ack() -> Vec<u8> {
    frame(kind::SETTINGS, flag::ACK, 0, [])
}

pub(crate) fn ping(opaque: u64) -> Vec<u8> {
    frame(kind::PING, 0, 0, opaque.to_be_bytes())
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, code.to_be_bytes())
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
}

pub(crate) fn go_away(last: u32, code: u32, debug: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(8 + debug.len());
    payload.extend_from_slice(&last.to_be_bytes());
    payload.extend_from_slice(&code.to_be_bytes());
    payload.extend_from_slice(debug);
    frame(kind::GOAWAY, 0, 0, payload)
}

/// An HPACK integer behind `first`, whose low `prefix` bits it fills (RFC 7541 section 5.1).
pub(crate) fn integer(first: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1usize << prefix) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 0x80);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// A literal that is not Huffman-coded (RFC 7541 section 5.2).
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    integer(0, 7, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// A header block of literals that are neither indexed nor taken into the table (RFC 7541
/// section 6.2.2): its bytes mean the same in every state of the peer's table.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        string(name.as_bytes(), &mut out);
        string(value.as_bytes(), &mut out);
    }
    out
}

/// A literal that is taken into the table (RFC 7541 section 6.2.1).
pub(crate) fn indexed_literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = vec![0x40];
    string(name, &mut out);
    string(value, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_rfc_7541_appendix_c_1() {
        let of = |prefix, value| {
            let mut out = Vec::new();
            integer(0, prefix, value, &mut out);
            out
        };
        assert_eq!(of(5, 10), [10]);
        assert_eq!(of(5, 1337), [31, 154, 10]);
        assert_eq!(of(8, 42), [42]);
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let bytes: [u8; HEAD] = head(0x01_02_03, 9, 4, 7).try_into().unwrap();
        assert_eq!(Head::parse(&bytes), Head { len: 0x01_02_03, kind: 9, flags: 4, stream: 7 });
    }

    #[test]
    fn pieces_of_a_block_are_the_block() {
        let block: Vec<u8> = (0..100).collect();
        for size in [1, 7, 100, 1000] {
            let bytes = headers_in_pieces(3, &block, true, size);
            let (mut at, mut seen) = (0, Vec::new());
            while at < bytes.len() {
                let head = Head::parse(bytes[at..at + HEAD].try_into().unwrap());
                let body = at + HEAD;
                at = body + head.len;
                assert_eq!(head.has(flag::END_HEADERS), at == bytes.len());
                assert_eq!(head.kind == kind::HEADERS, seen.is_empty());
                seen.extend_from_slice(&bytes[body..at]);
            }
            assert_eq!(seen, block);
        }
    }
}
