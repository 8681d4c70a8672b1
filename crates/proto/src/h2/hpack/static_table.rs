//! The static table (RFC 7541 appendix A), and where to find a field in it.

use super::hash::hash;

/// Fields by index, which counts from one.
pub(super) const FIELDS: [(&[u8], &[u8]); LEN] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// How many there are.
pub(super) const LEN: usize = 61;

/// Four times as many as there are names: one look nearly always.
const SLOTS: usize = 256;

/// By hash of the name, the place in [`FIELDS`] behind the first field of that name; 0 where there is
/// none. A slot that is taken moves a name on to the next.
static BY_NAME: [u8; SLOTS] = by_name();

const fn by_name() -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    let mut at = 0;
    while at < LEN {
        // Fields of one name stand together.
        if at == 0 || !same(FIELDS[at].0, FIELDS[at - 1].0) {
            let mut slot = hash(0, FIELDS[at].0) as usize % SLOTS;
            while slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = at as u8 + 1;
        }
        at += 1;
    }
    slots
}

/// For the first field of a name, how many have it; 0 for the others.
static OF_NAME: [u8; LEN] = of_name();

const fn of_name() -> [u8; LEN] {
    let mut counts = [0; LEN];
    let (mut first, mut at) = (0, 0);
    while at < LEN {
        if !same(FIELDS[at].0, FIELDS[first].0) {
            first = at;
        }
        counts[first] += 1;
        at += 1;
    }
    counts
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The field at an index that counts from one.
pub(super) fn get(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    FIELDS.get(index.wrapping_sub(1)).copied()
}

/// The first index of a name whose [`hash`], without a seed, is given.
pub(super) fn find_name(name_hash: u64, name: &[u8]) -> Option<usize> {
    let mut slot = name_hash as usize % SLOTS;
    // Most slots are empty: this ends.
    while let Some((known, _)) = get(usize::from(BY_NAME[slot])) {
        if known == name {
            return Some(usize::from(BY_NAME[slot]));
        }
        slot = (slot + 1) % SLOTS;
    }
    None
}

/// The index of the field with this value among those that have the name of the field at `first`,
/// which is the first of them.
pub(super) fn find_value(first: usize, value: &[u8]) -> Option<usize> {
    let count = usize::from(*OF_NAME.get(first - 1)?);
    let of_name = &FIELDS[first - 1..][..count];
    of_name.iter().position(|(_, known)| *known == value).map(|place| first + place)
}

/// The last index of the name of the field at `first`, which is the first of them.
pub(super) fn last_of_name(first: usize) -> usize {
    let count = OF_NAME.get(first - 1).copied().unwrap_or(1);
    first + usize::from(count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found() {
        for (index, (name, value)) in (1..).zip(FIELDS) {
            let first = find_name(hash(0, name), name).expect("it is there");
            assert!(first <= index && FIELDS[first - 1].0 == name);
            assert_eq!(find_value(first, value), Some(index));
            assert_eq!(find_value(first, b"other"), None);
            assert_eq!(get(index), Some((name, value)));
        }
        assert_eq!((get(0), get(LEN + 1)), (None, None));
    }

    #[test]
    fn no_other_is_found() {
        for number in 0..10_000 {
            let name = format!("x-{number}");
            assert_eq!(find_name(hash(0, name.as_bytes()), name.as_bytes()), None);
        }
    }
}
