//! The clock that stamps are made with.

use rustix::time::{ClockId, clock_gettime};

/// Bytes of a stamp: nanoseconds of CLOCK_MONOTONIC, little endian.
pub(crate) const STAMP: usize = size_of::<u64>();

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Neither part of this clock is ever negative.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
