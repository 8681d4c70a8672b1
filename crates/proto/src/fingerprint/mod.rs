//! What a client looks like to the server that it connects to: its ClientHello, the start of its
//! HTTP/2 connection, and the short texts by which both are known.
//!
//! [`HelloReader`] takes a [`ClientHello`] off the bytes of a TCP connection, [`Http2Reader`] the
//! [`Frame`]s off what came through TLS, with how HPACK wrote each field. Neither decides anything
//! about a connection: what is odd but can be read is kept, because it is what tells clients apart.
//! For HTTP/1.1, [`h1::Server`](crate::h1::Server) gives a head whose fields keep order and case.
//!
//! | text | of | known from |
//! |---|---|---|
//! | [JA3](ClientHello::ja3) | ciphers, extensions, groups, point formats, in the order sent | salesforce/ja3 |
//! | [JA3N](ClientHello::ja3n) | the same, extensions sorted | |
//! | [JA4](ClientHello::ja4) | counts, ALPN; ciphers and extensions sorted; signature algorithms | FoxIO, BSD-3-Clause |
//! | [peetprint](ClientHello::peetprint) | versions, ALPN, groups, algorithms, ciphers; extensions sorted | tls.peet.ws |
//! | [Akamai](akamai) | SETTINGS, window, PRIORITY frames, pseudo-fields | Akamai, Black Hat EU 2017 |
//!
//! Of JA4+ there is JA4 alone: the others are under a licence of their own.
//!
//! Bounds: a ClientHello has at most [`MAX_HELLO`] bytes, a header block [`MAX_BLOCK`], which decodes
//! to at most [`MAX_BLOCK_FIELDS`] fields of [`MAX_BLOCK_TEXT`] bytes. Nothing is kept once it was
//! given out.
//!
//! ```
//! use mimus_proto::fingerprint::{HelloReader, Transport};
//!
//! # let bytes = include_bytes!("../../tests/data/hellos/firefox-153.bin");
//! let mut reader = HelloReader::new();
//! // `bytes` came from a socket, in pieces or at once.
//! let hello = reader.recv(bytes)?.expect("a whole ClientHello");
//! assert_eq!(hello.server_name(), Some("a.test"));
//! assert_eq!(hello.ja4(Transport::Tcp).hash, "t13d1617h2_86a278354501_3cbfd9057e0d");
//! # Ok::<(), mimus_proto::fingerprint::HelloError>(())
//! ```

mod cursor;
mod describe;
mod extension;
mod hello;
mod http2;
mod reader;
mod responder;
mod texts;

pub use describe::{describe_frames, describe_hello};
pub use extension::{Content, Ech, Extension, ExtensionId, KeyShare, PskOffer, StatusRequest};
pub use hello::{ClientHello, HelloError};
pub use http2::{
    FieldLine, Frame, HeaderBlock, Http2Error, Http2Reader, MAX_BLOCK, MAX_BLOCK_FIELDS,
    MAX_BLOCK_TEXT,
};
pub use reader::{HelloReader, MAX_HELLO, Record};
pub use responder::{Http2Responder, MAX_OPEN, WholeRequest};
pub use texts::{Fingerprint, Ja4, Transport, akamai};

/// Whether a cipher, group, version, signature algorithm or extension is one of those that mean
/// nothing and are sent so that servers keep ignoring what they do not know (RFC 8701 section 2).
#[must_use]
pub fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}
