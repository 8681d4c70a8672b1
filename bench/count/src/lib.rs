//! Counts what a process asks of the heap: calls that allocate, and the bytes they ask for.
//!
//! Preloaded (`LD_PRELOAD=libmimus_bench_count.so`), it stands before glibc's allocator in the whole
//! process, C libraries included, and passes every call on. `free` is not touched, so what is counted
//! is the asking, not what is held. Two atomic additions a call is what it costs: times are measured
//! without it.
//!
//! glibc only: calls are passed on to the names by which it exports its own allocator.

#![allow(clippy::missing_safety_doc, reason = "the contracts are those of the C library")]

use std::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

fn count(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as u64, Relaxed);
}

/// Writes how many calls allocated so far, and how many bytes they asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mimus_bench_count(calls: *mut u64, bytes: *mut u64) {
    // SAFETY: the caller gives a pointer to a u64 of its own.
    unsafe { calls.write(CALLS.load(Relaxed)) };
    // SAFETY: as above.
    unsafe { bytes.write(BYTES.load(Relaxed)) };
}

/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    count(size);
    // SAFETY: passed on as it came.
    unsafe { __libc_malloc(size) }
}

/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
    count(number.saturating_mul(size));
    // SAFETY: passed on as it came.
    unsafe { __libc_calloc(number, size) }
}

/// As C's. Counts the new size, also where the block stays in its place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    count(size);
    // SAFETY: passed on as it came.
    unsafe { __libc_realloc(old, size) }
}

/// As C11's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    count(size);
    // SAFETY: passed on as it came.
    unsafe { __libc_memalign(align, size) }
}

/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    count(size);
    // SAFETY: passed on as it came.
    unsafe { __libc_memalign(align, size) }
}

/// As POSIX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    count(size);
    // SAFETY: the alignment was checked; any size is allowed.
    let block = unsafe { __libc_memalign(align, size) };
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller gives a pointer to a pointer of its own.
    unsafe { out.write(block) };
    0
}
