//! What connections and bodies take on the heap.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    io::{Read, Write},
    net::TcpListener,
    time::Duration,
};

use mimus::{Client, TlsConfig, Version};
use mimus_testkit::{Origin, Port};

/// Counts what the thread under test asks for and holds, in bytes; the origin has threads of its own.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static ASKED: Cell<usize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends frees what it held after its counter is gone.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
    if bytes > 0 {
        let _ = ASKED.try_with(|asked| asked.set(asked.get() + bytes.unsigned_abs()));
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    }
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

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// The bytes that each of `count` idle connections holds on the heap, as asked for.
fn held_by_each(client: Client, url: &str, count: usize) -> isize {
    block_on(async {
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
    let origin = Origin::start().unwrap();
    let client = Client::builder().no_proxy().max_idle_per_host(COUNT + 1).build().unwrap();
    let held = held_by_each(client, &origin.http_url(&format!("/bytes/{BODY}")), COUNT);
    println!("an idle connection holds {held} bytes");
    assert!(held < 4 * 1024, "{held} bytes");
}

#[test]
fn an_idle_tls_connection_keeps_no_buffers() {
    const COUNT: usize = 100;
    let origin = Origin::start().unwrap();
    let tls = TlsConfig::builder().add_ca(origin.ca_pem().as_bytes()).build().unwrap();
    let client =
        Client::builder().no_proxy().tls(tls).max_idle_per_host(COUNT + 1).build().unwrap();
    let held = held_by_each(client, &origin.https_url(&format!("/bytes/{BODY}")), COUNT);
    println!("an idle TLS connection holds {held} bytes in Rust");
    assert!(held < 12 * 1024, "{held} bytes");
}

/// With the task that looks after it, and the pool's key.
#[test]
fn an_idle_http2_connection_keeps_no_buffers() {
    const COUNT: usize = 100;
    let origin = Origin::start().unwrap();
    let addr = origin.addr(Port::H2c).unwrap();
    let hosts: Vec<_> = (0..=COUNT).map(|number| format!("h{number}.example")).collect();
    let client = hosts
        .iter()
        .fold(Client::builder().no_proxy(), |builder, host| builder.resolve(host, None, [addr]));
    let client = client.version(Version::HTTP_2).build().unwrap();
    let held = block_on(async {
        let mut before = 0;
        for (number, host) in hosts.iter().enumerate() {
            let url = format!("http://{host}:{}/bytes/{BODY}", addr.port());
            let body = client.get(url).send().await.unwrap().bytes().await.unwrap();
            assert_eq!(body.len(), BODY);
            if number == 0 {
                before = HELD.get();
            }
        }
        assert_eq!(client.pool_stats().idle, COUNT + 1);
        // Both before and after it has begun to be looked after, it is little.
        let early = HELD.get() - before;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        [early, HELD.get() - before].map(|held| held / COUNT as isize)
    });
    println!("an idle HTTP/2 connection holds {held:?} bytes");
    assert!(held.iter().all(|&held| held < 6 * 1024), "{held:?} bytes");
}

#[test]
fn a_body_read_piece_by_piece_is_read_into_the_same_memory() {
    const SIZE: usize = 32 << 20;
    let origin = Origin::start().unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    block_on(async {
        for _ in 0..2 {
            let (calls, asked) = (CALLS.get(), ASKED.get());
            let url = origin.http_url(&format!("/bytes/{SIZE}"));
            let mut response = client.get(url).send().await.unwrap();
            let mut got = 0;
            while let Some(piece) = response.chunk().await.unwrap() {
                got += piece.len();
            }
            assert_eq!(got, SIZE);
            let (calls, asked) = (CALLS.get() - calls, ASKED.get() - asked);
            println!("{SIZE} bytes to a sink: {calls} allocations, {asked} bytes");
            assert!(calls < 100, "{calls} allocations");
            assert!(asked < 512 * 1024, "{asked} bytes");
        }
    });
}

#[test]
fn a_whole_body_takes_the_memory_that_it_needs_and_no_more() {
    const SIZE: usize = 8 << 20;
    let origin = Origin::start().unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    block_on(async {
        // The first call makes what the client and the thread keep.
        client.get(origin.http_url("/bytes/16")).send().await.unwrap().bytes().await.unwrap();
        let asked = ASKED.get();
        let url = origin.http_url(&format!("/bytes/{SIZE}"));
        let body = client.get(url).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(body.len(), SIZE);
        let over = ASKED.get() - asked - SIZE;
        println!("{SIZE} bytes in one piece: {over} bytes more");
        assert!(over < 256 * 1024, "{over} bytes");
    });
}

#[test]
fn a_length_that_is_a_lie_takes_no_memory_for_what_never_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 200000000000000\r\n\r\n";
        stream.write_all(head).unwrap();
        stream.write_all(&[7; 100_000]).unwrap();
    });
    let client = Client::builder().no_proxy().build().unwrap();
    let asked = ASKED.get();
    let body = block_on(async { client.get(url).send().await.unwrap().bytes().await });
    assert_eq!(body.unwrap_err().kind(), mimus::Kind::Closed);
    let asked = ASKED.get() - asked;
    assert!(asked < 18 << 20, "{asked} bytes");
    server.join().unwrap();
}
