//! What one head costs: our machine against `httparse` alone.
//!
//! ```text
//! cargo run --release -p mimus-proto --example head_parse
//! valgrind --tool=callgrind --toggle-collect='*measured*' .../examples/head_parse 4 machine 1000
//! ```

#![allow(clippy::print_stdout)] // Its output is its purpose.

use std::hint::black_box;
use std::io::IoSlice;
use std::time::Instant;

use http::Method;
use mimus_proto::h1::{Client, Limits};
use mimus_proto::{BodyLength, Event, Fields};

const SMALL: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 18:00:00 GMT\r\n\
    Content-Type: text/plain; charset=utf-8\r\nServer: origin/1.0\r\nContent-Length: 0\r\n\r\n";

const LARGE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 18:00:00 GMT\r\n\
    Content-Type: text/html; charset=utf-8\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\
    Cache-Control: max-age=0, private, must-revalidate\r\nETag: W/\"5f2b8c1d9e3a4f60718293a4b5c6d7e8\"\r\n\
    Last-Modified: Thu, 19 Nov 2026 08:15:30 GMT\r\nVary: Accept-Encoding, Accept, X-Requested-With\r\n\
    Strict-Transport-Security: max-age=31536000; includeSubDomains; preload\r\n\
    X-Frame-Options: deny\r\nX-Content-Type-Options: nosniff\r\nX-XSS-Protection: 0\r\n\
    Referrer-Policy: origin-when-cross-origin, strict-origin-when-cross-origin\r\n\
    Content-Security-Policy: default-src 'none'; base-uri 'self'; connect-src 'self' https://api.example.com\r\n\
    Set-Cookie: session=0123456789abcdef0123456789abcdef; path=/; secure; HttpOnly; SameSite=Lax\r\n\
    Accept-Ranges: bytes\r\nServer: origin/1.0\r\nX-Request-Id: 3f2a:1b4c:5d6e:7f80:91a2\r\nAge: 12\r\n\r\n";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(size) = arguments.next() else {
        return report();
    };
    let head = if size == "4" { SMALL } else { LARGE };
    let machine = arguments.next().as_deref() == Some("machine");
    let rounds = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1000);
    black_box(run(head, machine, rounds));
}

fn report() {
    for (name, head) in [("4 fields", SMALL), ("19 fields", LARGE)] {
        for (what, machine) in [("httparse alone", false), ("machine, whole exchange", true)] {
            run(head, machine, 20_000);
            let times = (0..15).map(|_| {
                let start = Instant::now();
                run(head, machine, 100_000);
                start.elapsed().as_nanos() / 100_000
            });
            println!("{name}, {what}: {} ns", times.min().unwrap_or_default());
        }
    }
}

fn run(head: &[u8], machine: bool, rounds: usize) -> usize {
    if machine {
        let mut client = Client::new(Limits::default());
        let fields =
            Fields::try_from([("Host", "example.com"), ("Accept", "*/*")]).unwrap_or_default();
        client.recv_buf().reserve(64 * 1024);
        (0..rounds)
            .map(|_| {
                ask(&mut client, &fields);
                client.recv(head);
                measured_machine(&mut client)
            })
            .sum()
    } else {
        (0..rounds).map(|_| measured_httparse(black_box(head))).sum()
    }
}

/// The sending side: a request, encoded and written.
#[inline(never)]
fn ask(client: &mut Client, fields: &Fields) {
    let sent = client.send_head(&Method::GET, black_box("/path"), fields, BodyLength::None);
    let mut slices = [IoSlice::new(&[]); 4];
    let filled = client.poll_transmit(&mut slices);
    let count = slices[..filled].iter().map(|slice| slice.len()).sum();
    client.transmitted(count);
    assert!(sent.is_ok() && count > 0);
}

/// The receiving side: head, framing verdict, reuse verdict, end.
#[inline(never)]
fn measured_machine(client: &mut Client) -> usize {
    let mut fields = 0;
    while let Ok(Some(event)) = client.poll_event() {
        match event {
            Event::Head(head) => fields = black_box(head).fields.len(),
            _ => return fields,
        }
    }
    fields
}

/// The parse alone: no spans kept, nothing split off, no framing.
#[inline(never)]
fn measured_httparse(head: &[u8]) -> usize {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(head);
    assert!(parsed.is_ok_and(|status| status.is_complete()));
    black_box(response.headers.len())
}
