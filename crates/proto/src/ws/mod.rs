//! WebSocket (RFC 6455).

mod close;
mod connection;
mod frame;
mod masking;
mod message;
#[cfg(not(feature = "ws-deflate"))]
mod no_deflate;
mod prepared;
mod reader;
mod timers;
mod writer;

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
