//! Sans-IO wire protocols: bytes in, [`Event`]s out.
//!
//! Nothing here opens a socket, reads a clock, draws randomness or awaits. A connection is a plain
//! value; whoever owns it moves the bytes. Every machine answers to the same verbs:
//!
//! | verb | meaning |
//! |---|---|
//! | `recv_buf()` / `recv(bytes)` / `recv_eof()` | bytes (or the end) that came from the peer |
//! | `send_*` | what the caller wants to say; queued, never blocking |
//! | `poll_event()` | the next thing the peer said, or `None` until more bytes come |
//! | `poll_transmit(&mut slices)` / `transmitted(n)` | bytes that wait to be written, and how many were |
//! | `poll_timeout(now)` / `handle_timeout(now)` | the next instant the machine wants to hear of |
//!
//! **The drain invariant**: after any mutation, call `poll_event` until it gives `None` and
//! `poll_transmit` until it fills no slice; only then wait for the socket or for `poll_timeout`.
//!
//! One whole exchange:
//!
//! ```
//! use http::Method;
//! use mimus_proto::{BodyLength, Event, Fields, h1};
//!
//! let mut client = h1::Client::new(h1::Limits::default());
//! let fields = Fields::try_from([("Host", "example.com"), ("Accept", "*/*")])?;
//! client.send_head(&Method::GET, "/bird", &fields, BodyLength::None)?;
//!
//! // What would be written to the socket.
//! let mut wire = Vec::new();
//! while client.has_output() {
//!     let mut slices = [std::io::IoSlice::new(&[]); 8];
//!     let filled = client.poll_transmit(&mut slices);
//!     for slice in &slices[..filled] {
//!         wire.extend_from_slice(slice);
//!     }
//!     let written = slices[..filled].iter().map(|slice| slice.len()).sum();
//!     client.transmitted(written);
//! }
//! assert_eq!(wire, b"GET /bird HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n");
//!
//! // What came back, as if in one read.
//! client.recv(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nchirp");
//! let mut body = Vec::new();
//! while let Some(event) = client.poll_event()? {
//!     match event {
//!         Event::Head(head) => assert_eq!(head.fields.get_str("content-length"), Some("5")),
//!         Event::Data(data) => body.extend_from_slice(&data),
//!         Event::End => break,
//!         other => panic!("not expected here: {other:?}"),
//!     }
//! }
//! assert_eq!(body, b"chirp");
//! assert_eq!(client.reuse(), h1::Reuse::Yes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

#[macro_use]
mod error;
mod event;
mod fields;
#[cfg(feature = "fingerprint")]
pub mod fingerprint;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod h1;
pub mod h2;
mod head;
mod outbox;
#[cfg(feature = "ws")]
#[allow(unsafe_code)]
mod simd;
#[cfg(feature = "sse")]
pub mod sse;
pub mod tls;
#[cfg(feature = "ws")]
pub mod ws;

pub use error::{ApiMisuse, Error, LimitExceeded, PeerMisbehaved, UnexpectedEof};
pub use event::Event;
pub use fields::{Fields, InvalidField};
pub use head::{BodyLength, Framing, RequestHead, ResponseHead};
