//! Integers with a prefix (RFC 7541 section 5.1).

use super::Error;

/// How many bytes may follow the prefix: 2^32 takes five. More would be zeros, or a number too large
/// for any length or index.
const MAX_CONTINUATION: u32 = 5;

/// Appends `value` behind the high bits `pattern` of a byte that leaves `prefix` bits to it.
#[inline]
pub(super) fn encode(value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let full = (1 << prefix) - 1;
    if value < full {
        out.push(pattern | value as u8);
    } else {
        out.push(pattern | full as u8);
        encode_rest(value - full, out);
    }
}

fn encode_rest(mut rest: usize, out: &mut Vec<u8>) {
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes an integer whose first byte leaves `prefix` bits to it off the front of `input`.
#[inline]
pub(super) fn decode(input: &mut &[u8], prefix: u32) -> Result<usize, Error> {
    let [first, rest @ ..] = *input else {
        return Err(Error::Truncated);
    };
    *input = rest;
    let full = (1 << prefix) - 1;
    match usize::from(*first) & full {
        value if value < full => Ok(value),
        _ => decode_rest(input, full as u64),
    }
}

fn decode_rest(input: &mut &[u8], full: u64) -> Result<usize, Error> {
    let mut value = full;
    for place in 0..MAX_CONTINUATION {
        let [byte, rest @ ..] = *input else {
            return Err(Error::Truncated);
        };
        *input = rest;
        value += u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            // Above this no length and no index is meant, and a 32-bit target holds what is below.
            let small = u32::try_from(value).map_err(|_| Error::IntegerOverflow)?;
            return usize::try_from(small).map_err(|_| Error::IntegerOverflow);
        }
    }
    Err(Error::IntegerOverflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: usize, prefix: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, prefix, 0, &mut out);
        out
    }

    /// RFC 7541 appendix C.1.
    #[test]
    fn examples_of_the_rfc() {
        for (value, prefix, bytes) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])]
        {
            assert_eq!(encoded(value, prefix), bytes);
            assert_eq!(decode(&mut &bytes[..], prefix), Ok(value));
        }
    }

    #[test]
    fn every_prefix_holds_its_edges() {
        for prefix in 4..=8 {
            let full = (1 << prefix) - 1;
            let edges = [0, 1, full - 1, full, full + 1, full + 127, full + 128, full + (1 << 14)];
            for value in edges.into_iter().chain([u32::MAX as usize]) {
                let bytes = encoded(value, prefix);
                let mut input = &bytes[..];
                assert_eq!(decode(&mut input, prefix), Ok(value));
                assert!(input.is_empty());
                for cut in 0..bytes.len() {
                    assert_eq!(decode(&mut &bytes[..cut], prefix), Err(Error::Truncated));
                }
            }
        }
    }

    #[test]
    fn too_large_and_too_long_are_refused() {
        let overflow = Err(Error::IntegerOverflow);
        // One more than 32 bits hold.
        let beyond = (u32::MAX as usize) + 1;
        assert_eq!(decode(&mut &encoded(beyond, 5)[..], 5), overflow);
        assert_eq!(decode(&mut &[0xff; 100][..], 7), overflow);
        // Zeros without end are no number either.
        let zeros = [&[0x7f][..], &[0x80; 5], &[0]].concat();
        assert_eq!(decode(&mut &zeros[..], 7), overflow);
        let padded = [&[0x7f][..], &[0x80; 4], &[0]].concat();
        assert_eq!(decode(&mut &padded[..], 7), Ok(127));
    }
}
