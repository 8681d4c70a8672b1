//! Bodies: what a request carries, and how a response's bytes become what the caller asked for.

mod coding;
mod decode;
mod encode;
mod form;
mod last_word;
pub mod multipart;
mod progress;
mod send;
mod text;

pub use coding::{Coding, accept_encoding};
pub use decode::{DecodeError, DecodeErrorKind, DecodeLimits, Decoder};
pub use encode::encode;
pub use form::{FormError, append_query, append_query_text, to_form};
#[cfg(feature = "json")]
pub use form::{from_json, to_json};
pub(crate) use last_word::LastWord;
pub use progress::{Meter, Observed, Observer, Progress};
pub use send::{Body, BodyFrames, LengthMismatch};
pub use text::{LineSplitter, LineTooLong, TextDecoder, charset_of, decode_text};
