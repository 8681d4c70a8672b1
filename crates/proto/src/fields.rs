//! The wire's own view of a header section.

use std::fmt;

use bytes::BytesMut;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// An ordered, case-preserving list of fields, duplicates kept.
///
/// All text lives in one arena; an entry is four offsets into it. A parsed head *is* a `Fields` whose
/// arena is the head as it was split off the read buffer; one that was put together holds field lines
/// as HTTP/1.1 writes them, so that writing it is one copy. Lookup is linear: heads are small, and
/// comparing a length is cheaper than hashing a name.
///
/// Every entry is valid: its name is a token, its value has no control byte but HTAB and no
/// whitespace around it (RFC 9110 sections 5.1 and 5.5). So writing one out cannot split a message.
///
/// Equality is exact: the same names in the same case, with the same values, in the same order.
///
/// ```
/// use mimus_proto::Fields;
///
/// let mut fields = Fields::new();
/// fields.append("Accept", "text/html")?;
/// fields.append("accept", "*/*")?;
/// assert_eq!(fields.get_str("ACCEPT"), Some("text/html"));
/// assert_eq!(fields.get_all("accept").count(), 2);
/// assert!(fields.append("X", "a\r\nHost: b").is_err());
/// # Ok::<(), mimus_proto::InvalidField>(())
/// ```
pub struct Fields {
    text: BytesMut,
    spans: Vec<Span>,
    /// The arena is exactly the entries' field lines (RFC 9112 section 5), in their order.
    lines: bool,
}

impl Default for Fields {
    fn default() -> Self {
        Self { text: BytesMut::new(), spans: Vec::new(), lines: true }
    }
}

/// Where one field lies in the arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) name: u32,
    pub(crate) name_len: u32,
    pub(crate) value: u32,
    pub(crate) value_len: u32,
}

/// Why a field was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidField {
    /// The name is empty or not a token (RFC 9110 section 5.1).
    Name,
    /// The value has a control byte other than HTAB (RFC 9110 section 5.5).
    Value,
    /// The list would pass 4 GiB, or more entries than the target can hold.
    TooLarge,
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "the field name is not a token",
            Self::Value => "the field value has a control byte",
            Self::TooLarge => "the field list is too large",
        })
    }
}

impl std::error::Error for InvalidField {}

/// What a field line has besides its name and value: `": "` and CR LF.
const LINE_EXTRA: usize = 4;

/// Arenas below this size are never compacted: the copy costs more than the room.
const COMPACT_FROM: usize = 4096;

impl Fields {
    /// An empty list. Does not allocate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list with room for `fields` entries and `bytes` bytes of names and values.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self {
            text: BytesMut::with_capacity(bytes + fields * LINE_EXTRA),
            spans: Vec::with_capacity(fields),
            lines: true,
        }
    }

    /// A list over text that a parser has checked.
    pub(crate) fn from_parts(text: BytesMut, spans: Vec<Span>) -> Self {
        Self { text, spans, lines: false }
    }

    /// The number of entries, duplicates counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds an entry at the end. Whitespace around the value is dropped.
    ///
    /// # Errors
    /// See [`InvalidField`]; the list is unchanged then.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), InvalidField> {
        let span = self.store(name, value.as_ref())?;
        self.spans.push(span);
        Ok(())
    }

    /// Adds an entry so that it stands at `index`, or at the end when `index` is beyond it.
    ///
    /// # Errors
    /// See [`InvalidField`]; the list is unchanged then.
    pub fn insert(
        &mut self,
        index: usize,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), InvalidField> {
        let span = self.store(name, value.as_ref())?;
        self.lines &= index >= self.spans.len();
        self.spans.insert(index.min(self.spans.len()), span);
        Ok(())
    }

    /// Adds an entry before the first one named `before`, or at the end when there is none.
    ///
    /// # Errors
    /// See [`InvalidField`]; the list is unchanged then.
    pub fn insert_before(
        &mut self,
        before: &str,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), InvalidField> {
        let index = self.position(before).unwrap_or(self.spans.len());
        self.insert(index, name, value)
    }

    /// Makes this the only entry of its name: in the place of the first, or at the end.
    ///
    /// # Errors
    /// See [`InvalidField`]; the list is unchanged then.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), InvalidField> {
        let span = self.store(name, value.as_ref())?;
        match self.position(name) {
            None => self.spans.push(span),
            Some(first) => {
                self.spans[first] = span;
                self.lines = false;
                self.drop_named(name, first + 1);
                self.compact();
            }
        }
        Ok(())
    }

    /// Removes every entry of this name; says how many there were.
    pub fn remove(&mut self, name: &str) -> usize {
        let removed = self.drop_named(name, 0);
        self.compact();
        removed
    }

    /// Keeps only the entries for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &[u8]) -> bool) {
        let (text, before) = (&self.text, self.spans.len());
        self.spans.retain(|span| keep(span.name_in(text), span.value_in(text)));
        self.lines &= self.spans.len() == before;
        self.compact();
    }

    /// The value of the first entry of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let span = self.spans.iter().find(|span| span.is(&self.text, name.as_bytes()))?;
        Some(span.value_in(&self.text))
    }

    /// The value of the first entry of this name, if it is UTF-8.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The values of all entries of this name, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let text = &self.text;
        self.spans
            .iter()
            .filter(|span| span.is(text, name.as_bytes()))
            .map(|span| span.value_in(text))
    }

    /// Whether there is an entry of this name.
    #[must_use]
    pub fn contains(&self, name: impl AsRef<[u8]>) -> bool {
        self.position(name).is_some()
    }

    /// The index of the first entry of this name.
    #[must_use]
    pub fn position(&self, name: impl AsRef<[u8]>) -> Option<usize> {
        let name = name.as_ref();
        self.spans.iter().position(|span| span.is(&self.text, name))
    }

    /// The entry at `index`.
    #[must_use]
    pub fn get_index(&self, index: usize) -> Option<(&str, &[u8])> {
        self.spans.get(index).map(|span| (span.name_in(&self.text), span.value_in(&self.text)))
    }

    /// All entries as (name, value), in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> + DoubleEndedIterator {
        self.spans.iter().map(|span| (span.name_in(&self.text), span.value_in(&self.text)))
    }

    /// All entries with the name as bytes: spares the UTF-8 check on the hot paths.
    pub(crate) fn raw(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|span| (span.raw_name(&self.text), span.value_in(&self.text)))
    }

    /// The entries whose name has one of these lengths, given as a set of bits.
    pub(crate) fn raw_of_lengths(&self, lengths: u32) -> impl Iterator<Item = (&[u8], &[u8])> {
        let spans = (self.spans.iter())
            .filter(move |span| span.name_len < u32::BITS && lengths >> span.name_len & 1 == 1);
        spans.map(|span| (span.raw_name(&self.text), span.value_in(&self.text)))
    }

    /// The entries as the field lines of HTTP/1.1, if that is how the arena holds them.
    pub(crate) fn lines(&self) -> Option<&[u8]> {
        self.lines.then_some(&self.text)
    }

    /// The elements of a comma-separated list field, across its duplicates; empty elements are
    /// skipped, and a comma in a quoted string does not separate (RFC 9110 section 5.6.1).
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.get_all(name).flat_map(elements)
    }

    /// Adds all entries of `other` at the end.
    ///
    /// # Errors
    /// [`InvalidField::TooLarge`]; the list is unchanged then.
    pub fn extend(&mut self, other: &Self) -> Result<(), InvalidField> {
        self.extend_where(other, |_, _| true)
    }

    /// Adds at the end the entries of `other` for which `keep` holds, given name and value.
    ///
    /// # Errors
    /// [`InvalidField::TooLarge`]; the list is unchanged then.
    pub fn extend_where(
        &mut self,
        other: &Self,
        keep: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<(), InvalidField> {
        match other.lines() {
            Some([]) => Ok(()),
            Some(lines) if other.raw().all(|(name, value)| keep(name, value)) => {
                self.extend_lines(lines, &other.spans)
            }
            _ => self.extend_singly(other.raw().filter(|(name, value)| keep(name, value))),
        }
    }

    /// Adds all of another arena that is field lines.
    fn extend_lines(&mut self, lines: &[u8], spans: &[Span]) -> Result<(), InvalidField> {
        let shift = offset(self.text.len() + lines.len())? - lines.len() as u32;
        self.text.extend_from_slice(lines);
        self.spans.extend(spans.iter().map(|span| span.moved(shift)));
        Ok(())
    }

    /// Adds entries that are valid.
    fn extend_singly<'a>(
        &mut self,
        entries: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), InvalidField> {
        let before = (self.spans.len(), self.text.len());
        for (name, value) in entries {
            match self.push_text(name, value) {
                Ok(span) => self.spans.push(span),
                Err(error) => {
                    self.spans.truncate(before.0);
                    self.text.truncate(before.1);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Makes room for so many more entries, with so many bytes of names and values.
    pub fn reserve(&mut self, fields: usize, bytes: usize) {
        self.text.reserve(bytes + fields * LINE_EXTRA);
        self.spans.reserve(fields);
    }

    /// Removes all entries; keeps the room.
    pub fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.lines = true;
    }

    /// The length of the text arena in bytes.
    #[must_use]
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The size of the text arena in bytes: what the list keeps in memory besides its offsets. For a
    /// parsed head this is the part of the read buffer that it holds.
    #[must_use]
    pub fn text_capacity(&self) -> usize {
        self.text.capacity()
    }

    /// The same entries as the ecosystem's map: names lowercased, order across names lost.
    ///
    /// # Errors
    /// [`InvalidField::TooLarge`] beyond the 32 768 entries that a map can hold, or for a name
    /// longer than 64 KiB.
    pub fn to_header_map(&self) -> Result<HeaderMap, InvalidField> {
        let mut map =
            HeaderMap::try_with_capacity(self.len()).map_err(|_| InvalidField::TooLarge)?;
        for (name, value) in self.raw() {
            let name = HeaderName::from_bytes(name).map_err(|_| InvalidField::TooLarge)?;
            let value = HeaderValue::from_bytes(value).map_err(|_| InvalidField::Value)?;
            map.try_append(name, value).map_err(|_| InvalidField::TooLarge)?;
        }
        Ok(map)
    }

    fn drop_named(&mut self, name: &str, from: usize) -> usize {
        let before = self.spans.len();
        let text = &self.text;
        let mut index = 0;
        self.spans.retain(|span| {
            index += 1;
            index <= from || !span.is(text, name.as_bytes())
        });
        self.lines &= self.spans.len() == before;
        before - self.spans.len()
    }

    fn store(&mut self, name: &str, value: &[u8]) -> Result<Span, InvalidField> {
        if !is_token(name.as_bytes()) {
            return Err(InvalidField::Name);
        }
        let value = trim_ows(value);
        if has_control(value) {
            return Err(InvalidField::Value);
        }
        self.push_text(name.as_bytes(), value)
    }

    /// Adds an entry whose name and value a parser has checked.
    pub(crate) fn push_checked(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
        let span = self.push_text(name, value)?;
        self.spans.push(span);
        Ok(())
    }

    fn push_text(&mut self, name: &[u8], value: &[u8]) -> Result<Span, InvalidField> {
        let at = self.text.len();
        offset(at.saturating_add(name.len()).saturating_add(value.len() + LINE_EXTRA))?;
        self.text.reserve(name.len() + value.len() + LINE_EXTRA);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        Ok(Span::new(at, name.len(), at + name.len() + 2, value.len()))
    }

    /// Drops dead text once it is the greater part, so that a list changed for ever stays small.
    fn compact(&mut self) {
        if self.text.len() < COMPACT_FROM || self.live() > self.text.len() / 2 {
            return;
        }
        *self = self.clone();
    }

    fn live(&self) -> usize {
        let line = |span: &Span| span.name_len as usize + span.value_len as usize + LINE_EXTRA;
        self.spans.iter().map(line).sum()
    }
}

impl Span {
    /// Offsets that fit in 32 bits: the callers bound the text they index.
    pub(crate) fn new(name: usize, name_len: usize, value: usize, value_len: usize) -> Self {
        Self {
            name: name as u32,
            name_len: name_len as u32,
            value: value as u32,
            value_len: value_len as u32,
        }
    }

    /// The same entry in an arena that holds `by` bytes in front.
    fn moved(self, by: u32) -> Self {
        Self { name: self.name + by, value: self.value + by, ..self }
    }

    pub(crate) fn raw_name<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.name as usize..][..self.name_len as usize]
    }

    fn name_in<'a>(&self, text: &'a [u8]) -> &'a str {
        // A token is ASCII, so the check cannot fail.
        std::str::from_utf8(self.raw_name(text)).unwrap_or_default()
    }

    pub(crate) fn value_in<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.value as usize..][..self.value_len as usize]
    }

    fn is(&self, text: &[u8], name: &[u8]) -> bool {
        self.name_len as usize == name.len() && self.raw_name(text).eq_ignore_ascii_case(name)
    }
}

impl Clone for Fields {
    /// Copies the live text only.
    fn clone(&self) -> Self {
        if self.is_empty() {
            return Self::new();
        }
        let mut copy = Self::with_capacity(self.len(), self.live() - self.len() * LINE_EXTRA);
        let copied = copy.extend(self);
        debug_assert_eq!(copied, Ok(()), "what fitted once fits again");
        copy
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.raw().eq(other.raw())
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    /// Credentials are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, value)| Shown { name, value })).finish()
    }
}

/// One entry as Debug shows it.
struct Shown<'a> {
    name: &'a str,
    value: &'a [u8],
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_secret(self.name) {
            return write!(f, "{}: <redacted>", self.name);
        }
        write!(f, "{}: {}", self.name, self.value.escape_ascii())
    }
}

fn is_secret(name: &str) -> bool {
    ["authorization", "proxy-authorization", "cookie", "set-cookie"]
        .iter()
        .any(|secret| secret.eq_ignore_ascii_case(name))
}

impl From<&HeaderMap> for Fields {
    /// Entries in the map's order. What would pass 4 GiB in all is left out.
    fn from(map: &HeaderMap) -> Self {
        let mut fields = Self::with_capacity(map.len(), map.len() * 32);
        fields.add_all(map.iter().map(|(name, value)| (name, value.as_bytes())));
        fields
    }
}

impl FromIterator<(HeaderName, HeaderValue)> for Fields {
    /// Entries in the iterator's order. What would pass 4 GiB in all is left out.
    fn from_iter<I: IntoIterator<Item = (HeaderName, HeaderValue)>>(pairs: I) -> Self {
        let mut fields = Self::new();
        for (name, value) in pairs {
            fields.add_all(std::iter::once((&name, value.as_bytes())));
        }
        fields
    }
}

impl Fields {
    fn add_all<'a>(&mut self, pairs: impl Iterator<Item = (&'a HeaderName, &'a [u8])>) {
        for (name, value) in pairs {
            // Name and value are valid by their types: only the 4 GiB can refuse.
            let _ = self.append(name.as_str(), value);
        }
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const LEN: usize> TryFrom<[(N, V); LEN]> for Fields {
    type Error = InvalidField;

    fn try_from(pairs: [(N, V); LEN]) -> Result<Self, InvalidField> {
        let mut fields = Self::new();
        for (name, value) in pairs {
            fields.append(name.as_ref(), value)?;
        }
        Ok(fields)
    }
}

/// An offset that entries can hold.
fn offset(at: usize) -> Result<u32, InvalidField> {
    u32::try_from(at).map_err(|_| InvalidField::TooLarge)
}

/// Splits one list value into its elements.
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        loop {
            let text = rest?;
            let end = element_end(text);
            rest = text.get(end + 1..);
            let element = trim_ows(&text[..end]);
            if !element.is_empty() {
                return Some(element);
            }
        }
    })
}

/// The index of the first comma outside quotes, or the length.
fn element_end(text: &[u8]) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (index, &byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return index,
            _ => {}
        }
    }
    text.len()
}

/// `tchar` of RFC 9110 section 5.6.2.
pub(crate) static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

/// How many bytes at the front are `tchar`.
pub(crate) fn token_len(text: &[u8]) -> usize {
    text.iter().position(|&byte| !TOKEN[usize::from(byte)]).unwrap_or(text.len())
}

/// Whether this is a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && token_len(text) == text.len()
}

/// Drops SP and HTAB on both sides.
pub(crate) fn trim_ows(text: &[u8]) -> &[u8] {
    let mut text = text;
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Whether there is a control byte other than HTAB (RFC 9110 section 5.5).
pub(crate) fn has_control(text: &[u8]) -> bool {
    text_len(text) < text.len()
}

/// How many bytes at the front are no control byte other than HTAB.
pub(crate) fn text_len(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((word, after)) = rest.split_first_chunk() {
        rest = match first_control(u64::from_le_bytes(*word)) {
            None => after,
            Some(at) if rest[at] == b'\t' => &rest[at + 1..],
            Some(at) => return text.len() - rest.len() + at,
        };
    }
    let tail = rest.iter().position(|&b| is_control(b));
    tail.map_or(text.len(), |at| text.len() - rest.len() + at)
}

/// Whether this is a control byte other than HTAB.
pub(crate) fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// The place of the first byte of eight that is below 0x20 or equal to 0x7f.
///
/// A subtraction over all eight sets the high bit of each byte that is too small. It may borrow from
/// the bytes above a hit, never from those below: so the lowest hit is exact.
pub(crate) fn first_control(word: u64) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let high = ONES * 0x80;
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    let del = word ^ (ONES * 0x7f);
    let is_del = del.wrapping_sub(ONES) & !del;
    let hits = (below | is_del) & high;
    (hits != 0).then(|| hits.trailing_zeros() as usize / 8)
}

/// Whether a token is this name, given in lower case and made of letters and `-` only.
///
/// Among the bytes of a token, only the two cases of a letter differ in nothing but bit 0x20 from
/// such a byte. With the length known to the compiler this is one comparison of vectors.
pub(crate) fn is_named<const LEN: usize>(token: &[u8], lower: &[u8; LEN]) -> bool {
    let Ok(token) = <&[u8; LEN]>::try_from(token) else {
        return false;
    };
    // Most names of a length differ at once.
    (token[0] | 0x20) == lower[0]
        && token.iter().zip(lower).fold(0, |different, (a, b)| different | ((a | 0x20) ^ b)) == 0
}

#[cfg(test)]
mod tests;
