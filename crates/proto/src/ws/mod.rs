//! WebSocket (RFC 6455).

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

pub use crate::simd::utf8::{NotUtf8, Utf8Bytes};
pub use close::{Close, CloseCode};
pub use connection::{Config, Connection, Phase};
pub use frame::{CONTROL_MAX, HEADER_MAX, Header, Opcode, RSV1, apply_mask};
pub use masking::{Keys, Masking, Unmasked};
pub use message::{Kind, Limits, Message, OwnedClose, OwnedMessage, Role};
pub use prepared::Prepared;
pub use reader::Reader;
pub use writer::Writer;
