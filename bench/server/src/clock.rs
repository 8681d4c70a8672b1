//! The clock that stamps are made with.

// Not rustix's, which finds the vDSO by itself and crashes below valgrind while it looks.
use nix::time::{ClockId, clock_gettime};

/// Bytes of a stamp: nanoseconds of CLOCK_MONOTONIC, little endian.
pub(crate) const STAMP: usize = size_of::<u64>();

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> u64 {
    // The clock is always there, and never negative.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs()
    })
}
