//! `grpc-message`: text in the bytes that a field value may have.

use std::borrow::Cow;

/// A message for `grpc-message`: everything outside of SP to `~`, and `%` itself, percent-encoded.
#[must_use]
pub fn encode_message(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'%';
    if text.bytes().all(plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out.into()
}

const HEX: [u8; 16] = *b"0123456789ABCDEF";

/// The text of a `grpc-message`. It never fails: what is not an escape stands for itself, and what is
/// not UTF-8 becomes U+FFFD, because a broken message must not hide the status beside it.
#[must_use]
pub fn decode_message(value: &[u8]) -> String {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let escaped = (byte == b'%').then(|| escape(after)).flatten();
        if escaped.is_some() {
            rest = &after[2..];
        }
        out.push(escaped.unwrap_or(byte));
    }
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

fn escape(after: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
    // Two digits of four bits each are at most 255.
    Some((digit(0)? * 16 + digit(1)?) as u8)
}
