//! Counts what one small GET costs on the heap once everything is warm.
//!
//! `cargo run --release --example allocations`

#![expect(clippy::print_stdout, reason = "it is what an example is for")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The origin lives in this process too; only the client's thread counts.
    static COUNTED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn count(size: usize) {
    if COUNTED.try_with(std::cell::Cell::get).unwrap_or(false) {
        CALLS.fetch_add(1, Relaxed);
        BYTES.fetch_add(size as u64, Relaxed);
    }
}

// SAFETY: every method hands its arguments to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is `System`'s.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's contract is `System`'s.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WARM_UP: u64 = 100;
const ROUNDS: u64 = 1_000;

fn report(what: &str, one: &mut dyn FnMut()) {
    for _ in 0..WARM_UP {
        one();
    }
    let before = (CALLS.load(Relaxed), BYTES.load(Relaxed));
    COUNTED.set(true);
    for _ in 0..ROUNDS {
        one();
    }
    COUNTED.set(false);
    let calls = (CALLS.load(Relaxed) - before.0) as f64 / ROUNDS as f64;
    let bytes = (BYTES.load(Relaxed) - before.1) as f64 / ROUNDS as f64;
    println!("{what:<36} {calls:>6.2} allocations {bytes:>8.0} bytes");
}

fn main() {
    let origin = mimus_testkit::Origin::start().expect("the origin starts");
    let url = origin.http_url("/bytes/16");

    let client = mimus::blocking::Client::new();
    report("small GET, blocking", &mut || {
        let response = client.get(&url).send().expect("the origin answers");
        assert_eq!(response.bytes().expect("the body comes").len(), 16);
    });

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let client = mimus::Client::new();
    report("small GET, tokio current_thread", &mut || {
        runtime.block_on(async {
            let response = client.get(&url).send().await.expect("the origin answers");
            assert_eq!(response.bytes().await.expect("the body comes").len(), 16);
        });
    });
}
