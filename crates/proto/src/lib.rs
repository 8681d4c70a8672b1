//! Sans-IO wire protocols: bytes in, events out.
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
//! | `poll_timeout()` / `handle_timeout(now)` | the next instant the machine wants to hear of |
//!
//! **The drain invariant**: after any mutation, call `poll_event` until it gives `None` and
//! `poll_transmit` until it fills no slice; only then wait for the socket or for `poll_timeout`.

#![forbid(unsafe_code)]


