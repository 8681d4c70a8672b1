//! What comes out of every protocol.

use bytes::Bytes;

use crate::{Fields, ResponseHead};

/// One thing the peer said on an exchange, in the order in which it said it.
///
/// `H` is the head that the role receives: a client hears a [`ResponseHead`], a server a
/// [`RequestHead`](crate::RequestHead).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<H = ResponseHead> {
    /// An interim response (1xx other than 101): any number may precede [`Event::Head`]
    /// (RFC 9110 section 15.2).
    Informational(ResponseHead),
    /// The final head.
    Head(H),
    /// A piece of the body, without its framing. Never empty.
    Data(Bytes),
    /// The trailer section, after the last [`Event::Data`] (RFC 9110 section 6.5).
    Trailers(Fields),
    /// The message is whole: nothing of it follows.
    End,
    /// The connection stopped being HTTP (101, or 2xx to CONNECT). Carries what the peer had already
    /// sent beyond the head; from here on the bytes belong to the next protocol.
    Upgraded(Bytes),
}
