//! gRPC over HTTP, without I/O: what its messages, metadata, deadlines and statuses look like on the
//! wire.
//!
//! A gRPC call is one HTTP exchange: a POST whose body is a row of length-prefixed messages, answered
//! by a body of the same kind and a trailer section that tells how it went. What is defined here is the
//! part between that body and a caller; compressing and serializing are the caller's. The sources are
//! `PROTOCOL-HTTP2.md`, `compression.md`, `statuscodes.md` and `http-grpc-status-mapping.md` of the
//! gRPC project, called "the protocol" below.
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use mimus_proto::grpc::{Deframer, Frame, frame};
//!
//! let mut wire = BytesMut::new();
//! frame(&mut wire, |to| to.extend_from_slice(b"chirp"))?;
//!
//! let mut deframer = Deframer::new(1024);
//! deframer.push(wire.freeze());
//! let got = deframer.poll()?;
//! assert_eq!(got, Some(Frame { compressed: false, message: Bytes::from_static(b"chirp") }));
//! assert_eq!(deframer.poll()?, None);
//! deframer.finish()?;
//! # Ok::<(), mimus_proto::grpc::FrameError>(())
//! ```

mod code;
mod frame;
mod metadata;
mod percent;
mod status;
mod timeout;

#[cfg(test)]
mod tests;

pub use code::{Code, UnknownCode};
pub use frame::{Deframer, Frame, FrameError, PREFIX, frame, set_prefix};
pub use metadata::{InvalidMetadata, Metadata};
pub use percent::{decode_message, encode_message};
pub use status::{Ending, Status, is_grpc, subtype};
pub use timeout::{encode_timeout, parse_timeout};

/// The media type; a `+` and the name of the serialization may follow.
pub const CONTENT_TYPE: &str = "application/grpc";

/// The most bytes of a received message unless the caller says otherwise, as in other implementations:
/// 4 MiB.
pub const DEFAULT_MAX_MESSAGE: usize = 4 * 1024 * 1024;
