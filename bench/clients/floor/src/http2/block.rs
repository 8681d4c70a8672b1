//! Header blocks of literals that are neither indexed nor Huffman-coded (RFC 7541 section 6.2.2): what
//! the floor writes, and what the bench's server answers with.

/// `:status: 200`, all of the field.
pub const STATUS_200: u8 = 0x88;
/// Names in the static table (RFC 7541 appendix A).
pub const AUTHORITY: u8 = 1;
pub const PATH: u8 = 4;
pub const CONTENT_LENGTH: u8 = 28;
pub const CONTENT_TYPE: u8 = 31;
/// `:method` and `:scheme`, all of the field.
pub const GET: u8 = 0x82;
pub const POST: u8 = 0x83;
pub const HTTP: u8 = 0x86;
pub const HTTPS: u8 = 0x87;

/// The largest index, and the largest length, that fit into a first byte.
const INDEX_MAX: u8 = 15;
const LENGTH_MAX: usize = 127;

/// A field that was read.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Of its name; 0 if that is a literal, too.
    pub index: u8,
    pub name: &'a [u8],
    pub value: &'a [u8],
}

impl Field<'_> {
    pub fn is(self, name: &[u8], value: &[u8]) -> bool {
        self.name == name && self.value == value
    }
}

/// Adds a field whose name is in the static table.
pub fn put(index: u8, value: &[u8], block: &mut Vec<u8>) {
    match index.checked_sub(INDEX_MAX) {
        Some(over) => block.extend_from_slice(&[INDEX_MAX, over]),
        None => block.push(index),
    }
    put_string(value, block);
}

/// Adds a field with its name.
pub fn put_named(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(0);
    put_string(name, block);
    put_string(value, block);
}

fn put_string(text: &[u8], block: &mut Vec<u8>) {
    match text.len().checked_sub(LENGTH_MAX) {
        None => block.push(text.len() as u8),
        Some(mut over) => {
            block.push(LENGTH_MAX as u8);
            while over > 0x7f {
                block.push(over as u8 | 0x80);
                over >>= 7;
            }
            block.push(over as u8);
        }
    }
    block.extend_from_slice(text);
}

/// Whether `wanted` is true for any of the fields, all of which it sees; `None` if one is not such a
/// literal, or longer than its first byte tells.
pub fn literals(mut block: &[u8], mut wanted: impl FnMut(Field<'_>) -> bool) -> Option<bool> {
    let mut found = false;
    while let Some((&first, rest)) = block.split_first() {
        block = rest;
        let index = match first {
            INDEX_MAX => INDEX_MAX + take(&mut block, 1)?[0],
            ..INDEX_MAX => first,
            _ => return None,
        };
        let name = if index == 0 { string(&mut block)? } else { &[] };
        let value = string(&mut block)?;
        found |= wanted(Field { index, name, value });
    }
    Some(found)
}

fn string<'a>(block: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(take(block, 1)?[0]);
    // From 127 on the length has more bytes, from 128 on the string is Huffman-coded.
    if length < LENGTH_MAX { take(block, length) } else { None }
}

fn take<'a>(block: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, rest) = block.split_at_checked(n)?;
    *block = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read() {
        let mut block = Vec::new();
        put(PATH, b"/b/64", &mut block);
        put(CONTENT_LENGTH, b"64", &mut block);
        put_named(b"te", b"trailers", &mut block);
        let mut seen = Vec::new();
        let found = literals(&block, |field| {
            seen.push((field.index, field.value.to_vec()));
            field.is(b"te", b"trailers")
        });
        assert_eq!(found, Some(true));
        let due = [(PATH, &b"/b/64"[..]), (CONTENT_LENGTH, b"64"), (0, b"trailers")];
        assert!(seen.iter().map(|(index, value)| (*index, &value[..])).eq(due));
        assert_eq!(literals(b"\x04\x85abcde", |_| false), None);
        assert_eq!(literals(&block[..block.len() - 1], |_| false), None);
    }

    #[test]
    fn a_long_string_has_a_long_length() {
        for (length, prefix) in [(126, &b"\x7e"[..]), (127, b"\x7f\0"), (300, b"\x7f\xad\x01")] {
            let mut block = Vec::new();
            put_string(&vec![b'x'; length], &mut block);
            assert!(block.starts_with(prefix) && block.len() == prefix.len() + length);
        }
    }
}
