//! WebSocket: what is read, what is written, and both ends of a connection against each other.

#![allow(clippy::unwrap_used)] // A refused call fails the test.

mod connection;
mod deflate;
mod handshake;
mod properties;
mod reader;
mod rig;
mod writer;
