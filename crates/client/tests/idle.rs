//! What an idle connection keeps on the heap.

#![expect(clippy::print_stdout, reason = "the figures are worth seeing")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use mimus::{Client, TlsConfig};
use mimus_testkit::Origin;

/// Counts the bytes that the thread under test holds; the origin has threads of its own.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends frees what it held after its counter is gone.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every method hands its arguments to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's contract is `System`'s.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's contract is `System`'s.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Large enough for its exchange to last until it is read.
const BODY: usize = 256 * 1024;

/// Uses `count` connections at once, for a body each, and leaves them idle.
async fn use_at_once(client: &Client, url: &str, count: usize) {
    let mut responses = Vec::with_capacity(count);
    for _ in 0..count {
        responses.push(client.get(url).send().await.unwrap());
    }
    for response in responses {
        assert_eq!(response.bytes().await.unwrap().len(), BODY);
    }
    assert_eq!(client.pool_stats().idle, count);
}

/// The bytes that each of `count` idle connections holds on the heap, as asked for.
fn held_by_each(client: Client, url: &str, count: usize) -> isize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // What the first connection makes once, for the client and the thread, is not the others'.
        use_at_once(&client, url, 1).await;
        let before = HELD.get();
        use_at_once(&client, url, count + 1).await;
        (HELD.get() - before) / count as isize
    })
}

#[test]
fn an_idle_connection_keeps_less_than_4_kib() {
    const COUNT: usize = 400;
    let origin = Origin::builder().max_connections(COUNT + 1).start().unwrap();
    let client = Client::builder().no_proxy().max_idle_per_host(COUNT + 1).build().unwrap();
    let held = held_by_each(client, &origin.http_url(&format!("/bytes/{BODY}")), COUNT);
    println!("an idle connection holds {held} bytes");
    assert!(held < 4 * 1024, "{held} bytes");
}

#[test]
fn an_idle_tls_connection_keeps_no_buffers() {
    const COUNT: usize = 100;
    let origin = Origin::builder().max_connections(COUNT + 1).start().unwrap();
    let tls = TlsConfig::builder().add_ca(origin.ca_pem().as_bytes()).build().unwrap();
    let client = Client::builder().no_proxy().tls(tls).max_idle_per_host(COUNT + 1).build().unwrap();
    let held = held_by_each(client, &origin.https_url(&format!("/bytes/{BODY}")), COUNT);
    println!("an idle TLS connection holds {held} bytes in Rust");
    assert!(held < 12 * 1024, "{held} bytes");
}
