//! Mimus.

mod body;

pub use body::{Coding, DecodeError, DecodeErrorKind, DecodeLimits, Decoder, accept_encoding};
