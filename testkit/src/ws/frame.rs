//! Frames of WebSocket as bytes, right or wrong: nothing here judges what it writes.

/// Opcodes (RFC 6455 section 5.2).
pub(crate) mod op {
    pub(crate) const MORE: u8 = 0;
    pub(crate) const TEXT: u8 = 1;
    pub(crate) const BINARY: u8 = 2;
    pub(crate) const CLOSE: u8 = 8;
    pub(crate) const PING: u8 = 9;
    pub(crate) const PONG: u8 = 10;
}

/// The bits of a frame's first byte above its opcode.
pub(crate) const FIN: u8 = 0x80;
pub(crate) const RSV1: u8 = 0x40;
pub(crate) const RSV2: u8 = 0x20;
pub(crate) const RSV3: u8 = 0x10;

/// The largest payload of a control frame (RFC 6455 section 5.5).
pub(crate) const MAX_CONTROL: usize = 125;

/// What stands before the payload of a frame that is not masked, with the length in as few bytes as it
/// needs.
pub(crate) fn head(first: u8, len: usize) -> Vec<u8> {
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len @ ..=125), _) => vec![first, len],
        (_, Ok(len)) => head_16(first, len),
        _ => head_64(first, len as u64),
    }
}

/// The same with the length in 16 bits, whether it needs them or not.
pub(crate) fn head_16(first: u8, len: u16) -> Vec<u8> {
    let [a, b] = len.to_be_bytes();
    vec![first, 126, a, b]
}

/// The same with the length in 64 bits, whether it needs them or not.
pub(crate) fn head_64(first: u8, len: u64) -> Vec<u8> {
    let mut bytes = vec![first, 127];
    bytes.extend_from_slice(&len.to_be_bytes());
    bytes
}

/// A frame that is not masked, as a server's is.
pub(crate) fn frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = head(first, payload.len());
    bytes.extend_from_slice(payload);
    bytes
}

/// A frame that is masked, as only a client's may be (RFC 6455 section 5.1).
pub(crate) fn masked(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let key = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = head(first, payload.as_ref().len());
    bytes[1] |= 0x80;
    bytes.extend_from_slice(&key);
    bytes.extend(payload.as_ref().iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    bytes
}

pub(crate) fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    frame(FIN | op::TEXT, text)
}

pub(crate) fn binary(payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(FIN | op::BINARY, payload)
}

pub(crate) fn ping(payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(FIN | op::PING, payload)
}

pub(crate) fn pong(payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame(FIN | op::PONG, payload)
}

/// Close with a code and a reason (RFC 6455 section 5.5.1).
pub(crate) fn close(code: u16, reason: impl AsRef<[u8]>) -> Vec<u8> {
    frame(FIN | op::CLOSE, [&code.to_be_bytes()[..], reason.as_ref()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_6455_section_5_7() {
        assert_eq!(text("Hello"), *b"\x81\x05Hello");
        assert_eq!(
            masked(FIN | op::TEXT, "Hello"),
            *b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
        );
        assert_eq!(
            [frame(op::TEXT, "Hel"), frame(FIN | op::MORE, "lo")].concat(),
            *b"\x01\x03Hel\x80\x02lo"
        );
        assert_eq!(ping("Hello"), *b"\x89\x05Hello");
        assert_eq!(head(FIN | op::BINARY, 256), *b"\x82\x7e\x01\x00");
        assert_eq!(head(FIN | op::BINARY, 65_536), *b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00");
    }

    #[test]
    fn lengths_take_as_few_bytes_as_they_need() {
        let lens = [(125, 2), (126, 4), (65_535, 4), (65_536, 10)];
        assert!(lens.iter().all(|&(len, bytes)| head(FIN, len).len() == bytes));
    }
}
