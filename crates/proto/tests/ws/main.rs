//! WebSocket: what is read, what is written, and both ends of a connection against each other.

mod connection;
mod deflate;
mod handshake;
mod properties;
mod reader;
mod rig;
mod writer;
