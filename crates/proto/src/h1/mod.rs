//! HTTP/1.1 (RFC 9112): a [`Client`] and a [`Server`] machine, each of a sender and a receiver.
//!
//! ```text
//!            send_head          last byte of the body
//!   Idle ------------> Body ----------------------------> Done     the sender
//!
//!            head        framing         last byte
//!   Head ----------> Body ----> Trailers ---------> Done           the receiver
//!     \ 1xx: again     \ 101, 2xx to CONNECT: Upgraded
//! ```
//!
//! When both halves are done and [`Client::reuse`] says yes, the next `send_head` starts over on the
//! same buffers.

mod chunked;
mod client;
mod encode;
mod outbox;
mod parse;
mod receiver;
mod sender;
mod server;

pub use client::Client;
pub use sender::Upload;
pub use server::Server;

use std::fmt;
use std::time::Duration;

/// How much a peer may ask for. Every limit is on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one head, first line and final CR LF included, and of one trailer section.
    /// Default 64 KiB. At most 4 GiB.
    pub head_bytes: u32,
    /// Fields in one head or trailer section. Default 256.
    pub fields: usize,
    /// Bytes of one chunk size line, extensions and CR LF included. Default 4 KiB.
    pub chunk_line: usize,
    /// Bytes of chunk extensions in one body: without this, a body of one-byte chunks could carry
    /// four thousand times its size in extensions that nobody sees. Default 64 KiB.
    pub chunk_extensions: usize,
    /// Informational responses before the final one. Default 16.
    pub informational: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            fields: 256,
            chunk_line: 4 * 1024,
            chunk_extensions: 64 * 1024,
            informational: 16,
        }
    }
}

/// How long a body waits for `100 Continue` unless told otherwise (RFC 9110 section 10.1.1 asks for
/// an end to the wait, and leaves the length open).
pub const DEFAULT_EXPECT_WAIT: Duration = Duration::from_secs(1);

/// Whether the connection can carry another exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reuse {
    /// It can, now.
    Yes,
    /// It cannot, or not yet.
    No(NoReuse),
}

/// Why a connection cannot carry another exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoReuse {
    /// The exchange goes on: ask again after [`Event::End`](crate::Event::End).
    Unfinished,
    /// The response is over, the upload is not, or never will be.
    UploadUnfinished,
    /// This side sent `Connection: close`.
    CloseSent,
    /// The peer sent `Connection: close`.
    CloseReceived,
    /// The peer speaks HTTP/1.0 without `Connection: keep-alive`.
    Http10,
    /// The body ended with the connection.
    CloseDelimited,
    /// The peer closed its side.
    PeerClosed,
    /// The peer sent bytes beyond the end of the message.
    ExtraBytes,
    /// The connection carries another protocol.
    Upgraded,
    /// A protocol error came before.
    Failed,
}

impl fmt::Display for NoReuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfinished => "the exchange is not over",
            Self::UploadUnfinished => "the upload did not end",
            Self::CloseSent => "this side asked to close",
            Self::CloseReceived => "the peer asked to close",
            Self::Http10 => "the peer speaks HTTP/1.0 without keep-alive",
            Self::CloseDelimited => "the body ended with the connection",
            Self::PeerClosed => "the peer closed the connection",
            Self::ExtraBytes => "the peer sent bytes beyond the message",
            Self::Upgraded => "the connection was upgraded",
            Self::Failed => "an error came before",
        })
    }
}
