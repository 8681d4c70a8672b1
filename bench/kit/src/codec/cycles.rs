//! The finest clock there is.

/// The time before what is measured. Nothing before it is still under way, and nothing after it has begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn before() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: a fence of SSE2, which every x86-64 has.
    unsafe { _mm_lfence() };
    // SAFETY: the counter may be read wherever Linux runs programs.
    let time = unsafe { _rdtsc() };
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    time
}

/// The time after what is measured: `rdtscp` waits until all of it is done.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn after() -> u64 {
    use std::arch::x86_64::{__rdtscp, _mm_lfence};
    let mut core = 0;
    // SAFETY: every x86-64 of the last fifteen years has it, and it writes to `core` only.
    let time = unsafe { __rdtscp(&mut core) };
    // SAFETY: a fence of SSE2, which every x86-64 has.
    unsafe { _mm_lfence() };
    time
}

/// Nanoseconds, where there is no counter that is the same everywhere.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn before() -> u64 {
    crate::clock::now()
}

/// As [`before`].
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn after() -> u64 {
    crate::clock::now()
}
