//! WebSockets (RFC 6455), over HTTP/1.1 and over HTTP/2 (RFC 8441).
//!
//! ```
//! # let origin = mimus_testkit::Origin::start().unwrap();
//! # let url = origin.http_url("/ws/echo").replace("http://", "ws://");
//! # #[cfg(feature = "tokio")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use mimus::ws::{CloseCode, Message};
//!
//! let mut socket = mimus::Client::new().websocket(url).connect().await?;
//! socket.send_text("chirp").await?;
//! while let Some(message) = socket.recv().await? {
//!     if let Message::Text(text) = message {
//!         assert_eq!(text, "chirp");
//!         break;
//!     }
//! }
//! socket.close(CloseCode::NORMAL, "").await?;
//! # Ok::<(), mimus::Error>(())
//! # }).unwrap();
//! ```
//!
//! A WebSocket is begun by its client like any other request: its pool, proxies, cookies, credentials, TLS
//! and hooks hold, and a redirect is followed where the client follows redirects. What comes of it is a
//! [`WebSocket`], the same whatever lies beneath.
//!
//! - [`recv`](WebSocket::recv) gives messages to keep, [`recv_ref`](WebSocket::recv_ref) lends them where
//!   they were read to. [`send`](WebSocket::send) writes one message; [`feed`](WebSocket::feed) only queues
//!   it, so that many go out in one write.
//! - Pings and closes are answered while messages are received, and given out to be known. A peer can be
//!   asked whether it lives ([`ping_interval`](Builder::ping_interval)); silence can end the connection
//!   ([`idle_timeout`](Builder::idle_timeout)).
//! - Dropping a future loses nothing: no half message stays on the wire, and none that came is lost.
//! - [`split`](WebSocket::split) gives a half to receive and a half to send, for two tasks or threads.
//! - Messages over [`max_message`](Builder::max_message), 16 MiB by default, are refused when they are
//!   announced; compressed ones while they unfold.
//! - A [`Reconnecting`] makes the connection anew when it was lost.

mod connect;
mod halves;
mod link;
mod reconnect;
mod sending;
mod socket;

pub use connect::{Builder, ConnectError, Handshake};
pub use halves::{Receiver, Sender};
pub use reconnect::{Event, Reconnecting};
pub use socket::WebSocket;

#[cfg(feature = "ws-deflate")]
pub use mimus_proto::ws::deflate::{
    Agreed as DeflateAgreed, Direction as DeflateDirection, Offer as DeflateOffer,
    Tuning as DeflateTuning,
};
pub use mimus_proto::ws::{
    ByteString, Close as CloseRef, CloseCode, Message as MessageRef, NotUtf8, OwnedClose as Close,
    OwnedMessage as Message, Prepared, as_text, handshake::Refused, to_text,
};
