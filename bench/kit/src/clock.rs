//! Clocks and counters of this process.

use std::{fs, io, sync::OnceLock};

use nix::time::{ClockId, clock_gettime};

use crate::job::Allocations;

/// CLOCK_MONOTONIC in nanoseconds: the same for every process of the machine, so that a stamp made by
/// one can be read by another.
pub(crate) fn now() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// CPU time of all threads of this process, in nanoseconds.
pub(crate) fn cpu() -> u64 {
    nanoseconds(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// By the C library: other ways to the kernel's own clock code do not work under valgrind.
fn nanoseconds(clock: ClockId) -> u64 {
    // Linux has both clocks, and neither is ever before its zero.
    clock_gettime(clock)
        .map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Begins the peak of the resident set anew, where the kernel permits it; where it does not, the peak
/// is that of the process's whole life.
pub(crate) fn forget_peak_rss() {
    // proc(5): 5 resets the peak to the present size.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The largest resident set since [`forget_peak_rss`], in bytes.
pub(crate) fn peak_rss() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no VmHWM in /proc/self/status"))
}

/// What the preloaded counter exports: writes calls and bytes so far.
type Count = unsafe extern "C" fn(calls: *mut u64, bytes: *mut u64);

/// Heap allocations of this process so far, if the counter is preloaded.
pub(crate) fn allocations() -> Option<Allocations> {
    static COUNT: OnceLock<Option<Count>> = OnceLock::new();
    let count = (*COUNT.get_or_init(find_counter))?;
    let mut so_far = Allocations::default();
    // SAFETY: the counter writes one u64 through each pointer, and both are valid for that.
    unsafe { count(&mut so_far.calls, &mut so_far.bytes) };
    Some(so_far)
}

fn find_counter() -> Option<Count> {
    let process = libloading::os::unix::Library::this();
    // SAFETY: only the preloaded counter exports this name, with this signature. It is loaded with the
    // process and stays until its end.
    unsafe { process.get::<Count>(b"mimus_bench_count\0") }.ok().map(|symbol| *symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance() {
        let (wall, used) = (now(), cpu());
        while cpu() == used {
            std::hint::spin_loop();
        }
        assert!(now() > wall);
    }

    #[test]
    fn peak_rss_is_at_least_what_was_just_touched() {
        forget_peak_rss();
        let touched = vec![1_u8; 32 << 20];
        std::hint::black_box(&touched);
        assert!(peak_rss().unwrap() >= 32 << 20);
    }

    #[test]
    fn no_counter_is_found_where_none_is_preloaded() {
        assert_eq!(allocations(), None);
    }
}
