//! A cheap hash for what the user of this crate sends. It needs no secret: what collides costs a
//! comparison more, among the few entries that a table holds.

const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// The hash of `text`, continuing from `seed`.
#[inline]
pub(super) const fn hash(seed: u64, text: &[u8]) -> u64 {
    let mut state = seed ^ (text.len() as u64).wrapping_mul(FACTORS[0]);
    let mut rest = text;
    while let Some((low, after)) = rest.split_first_chunk()
        && let Some((high, after)) = after.split_first_chunk()
    {
        state = fold(state ^ u64::from_le_bytes(*low), u64::from_le_bytes(*high));
        rest = after;
    }
    // The words at both ends of the last 15 bytes or fewer overlap, but leave none out.
    let (low, high) = if let (Some(low), Some(high)) = (rest.first_chunk(), rest.last_chunk()) {
        (u64::from_le_bytes(*low), u64::from_le_bytes(*high))
    } else if let (Some(low), Some(high)) = (rest.first_chunk(), rest.last_chunk()) {
        (u32::from_le_bytes(*low) as u64, u32::from_le_bytes(*high) as u64)
    } else if let (Some(first), Some(last)) = (rest.first(), rest.last()) {
        (*first as u64, (rest[rest.len() / 2] as u64) << 8 | *last as u64)
    } else {
        (0, 0)
    };
    fold(state ^ low, high)
}

const fn fold(a: u64, b: u64) -> u64 {
    let product = (a ^ FACTORS[0]) as u128 * (b ^ FACTORS[1]) as u128;
    product as u64 ^ (product >> 64) as u64
}
