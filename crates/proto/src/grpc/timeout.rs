//! `grpc-timeout`: at most eight digits and a unit.

use std::time::Duration;

/// The greatest number that eight digits can say.
const MOST: u128 = 99_999_999;

/// Units, finest first, with their nanoseconds.
const UNITS: [(u8, u128); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// A duration as the value of `grpc-timeout`: in the finest unit that can say it, rounded up, so that
/// the server never gives up first. Beyond 11 000 years it is that.
#[must_use]
pub fn encode_timeout(timeout: Duration) -> String {
    let nanos = timeout.as_nanos();
    let fitting = UNITS.iter().find(|(_, unit)| nanos.div_ceil(*unit) <= MOST);
    match fitting {
        Some((unit, size)) => format!("{}{}", nanos.div_ceil(*size), char::from(*unit)),
        None => format!("{MOST}H"),
    }
}

/// The duration that a `grpc-timeout` says; `None` when it is not a valid one.
#[must_use]
pub fn parse_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (_, size) = UNITS.iter().find(|(letter, _)| letter == unit)?;
    let number: u128 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let nanos = number * size;
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}
