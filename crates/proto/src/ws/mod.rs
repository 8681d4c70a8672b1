//! WebSocket (RFC 6455), both ends, usable on its own.
//!
//! A [`Connection`] is what most want: it answers pings and closes, and knows when a peer is gone. It is a
//! [`Reader`] and a [`Writer`], which can be had alone. [`handshake`] says what precedes it over HTTP/1.1
//! and over HTTP/2 (RFC 8441); with the feature `ws-deflate` messages are compressed (RFC 7692).
//!
//! What comes is lent from where it was read to, or cut off it. What is sent is written once, header, mask
//! and payload, behind what waits already. Randomness is handed in ([`Keys`]), as is time.
//!
//! | what grows | by |
//! |---|---|
//! | bytes read and not understood | one frame: [`Limits::frame`], and with what came, not with what was announced |
//! | a message in fragments, or inflated | [`Limits::message`], at the header, or while it is inflated |
//! | answers that the peer does not read | 64 pongs, then the latest only |
//! | what is sent | the caller, who looks at [`Connection::pending`] |

mod close;
mod connection;
#[cfg(feature = "ws-deflate")]
pub mod deflate;
mod extension;
mod frame;
pub mod handshake;
mod masking;
mod message;
#[cfg(not(feature = "ws-deflate"))]
mod no_deflate;
mod prepared;
mod reader;
mod timers;
mod writer;

#[cfg(feature = "ws-deflate")]
use deflate as codec;
#[cfg(not(feature = "ws-deflate"))]
use no_deflate as codec;

pub use crate::simd::utf8::{NotUtf8, as_text, to_text};
pub use bytestring::ByteString;
pub use close::{Close, CloseCode};
pub use connection::{Config, Connection, Phase};
pub use frame::{CONTROL_MAX, HEADER_MAX, Header, Opcode, RSV1, apply_mask};
pub use masking::{Keys, Masking, Unmasked};
pub use message::{Kind, Limits, Message, OwnedClose, OwnedMessage, Role};
pub use prepared::Prepared;
pub use reader::Reader;
pub use writer::Writer;
