//! Text that was checked once, and is given out as text from then on.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

/// The bytes are not UTF-8 (RFC 3629).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUtf8;

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are not UTF-8")
    }
}

impl std::error::Error for NotUtf8 {}

/// Shared text: [`Bytes`] that are UTF-8.
///
/// ```
/// use mimus_proto::ws::Utf8Bytes;
///
/// let text = Utf8Bytes::from("chirp");
/// assert_eq!(&text[1..], "hirp");
/// assert!(Utf8Bytes::try_from(bytes::Bytes::from_static(b"\xff")).is_err());
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Utf8Bytes(
    /// Always UTF-8.
    Bytes,
);

impl Utf8Bytes {
    /// Text that lives as long as the program.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// The text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        // SAFETY: every way to make one checks the bytes, or takes them from a `str`; none changes them.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }

    /// Its bytes, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl TryFrom<Bytes> for Utf8Bytes {
    type Error = NotUtf8;

    #[inline]
    fn try_from(bytes: Bytes) -> Result<Self, NotUtf8> {
        text(&bytes)?;
        Ok(Self(bytes))
    }
}

impl From<String> for Utf8Bytes {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Utf8Bytes {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<Utf8Bytes> for Bytes {
    fn from(text: Utf8Bytes) -> Self {
        text.0
    }
}

impl Deref for Utf8Bytes {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Utf8Bytes {
    fn as_ref(&self) -> &str {
        self
    }
}

impl AsRef<[u8]> for Utf8Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq<str> for Utf8Bytes {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Utf8Bytes {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// What is shorter than this is checked for ASCII by words first: the vectors of `simdutf8` begin here.
const SHORT: usize = 64;

/// The bytes as text.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Result<&str, NotUtf8> {
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
