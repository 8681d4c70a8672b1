//! WebSocket (RFC 6455, and RFC 8441 over HTTP/2) on the side of a server, in frames written and read
//! by hand: what is wrong on purpose, in [`crate::bad_ws`], no library would send.

pub(crate) mod deflate;
pub(crate) mod frame;
pub(crate) mod handshake;
mod routes;
mod socket;

pub(crate) use routes::ROUTES;
pub(crate) use socket::{Got, Socket};
