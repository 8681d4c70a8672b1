//! Text that was checked once, and is given out as text from then on.

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;

/// The bytes are not UTF-8 (RFC 3629).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUtf8;

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are not UTF-8")
    }
}

impl std::error::Error for NotUtf8 {}

/// The bytes as text that shares their memory: checked once, by vectors.
///
/// ```
/// use bytes::Bytes;
/// use mimus_proto::ws::to_text;
///
/// assert_eq!(to_text(Bytes::from_static(b"chirp")).unwrap(), "chirp");
/// assert!(to_text(Bytes::from_static(b"\xff")).is_err());
/// ```
///
/// # Errors
/// [`NotUtf8`].
#[inline]
pub fn to_text(bytes: Bytes) -> Result<ByteString, NotUtf8> {
    as_text(&bytes)?;
    // SAFETY: they were just found to be UTF-8, and nobody can change what `Bytes` holds.
    Ok(unsafe { ByteString::from_bytes_unchecked(bytes) })
}

/// What is shorter than this is checked for ASCII by words first: the vectors of `simdutf8` begin here.
const SHORT: usize = 64;

/// The bytes as text: checked by vectors.
///
/// # Errors
/// [`NotUtf8`].
#[inline]
pub fn as_text(bytes: &[u8]) -> Result<&str, NotUtf8> {
    if bytes.len() < SHORT && is_ascii(bytes) {
        // SAFETY: ASCII is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    simdutf8::basic::from_utf8(bytes).map_err(|_| NotUtf8)
}

/// Whether no byte has its highest bit set. The last word overlaps the one before it.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes.iter().fold(0, |all, byte| all | byte) < 0x80;
    };
    let (words, _) = bytes.as_chunks::<8>();
    let all =
        words.iter().fold(u64::from_ne_bytes(*last), |all, word| all | u64::from_ne_bytes(*word));
    all & HIGH == 0
}

/// Goes on with checking `bytes`, of which the first `checked` are whole characters: says how many are
/// so now. What follows these is the beginning of a character that can still become one.
pub(crate) fn check_more(bytes: &[u8], checked: usize) -> Result<usize, NotUtf8> {
    match simdutf8::compat::from_utf8(&bytes[checked..]) {
        Ok(text) => Ok(checked + text.len()),
        Err(error) if error.error_len().is_none() => Ok(checked + error.valid_up_to()),
        Err(_) => Err(NotUtf8),
    }
}
