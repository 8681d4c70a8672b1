//! Bodies: what a request carries, and how a response's bytes become what the caller asked for.

mod coding;
mod decode;

pub use coding::{Coding, accept_encoding};
pub use decode::{DecodeError, DecodeErrorKind, DecodeLimits, Decoder};
