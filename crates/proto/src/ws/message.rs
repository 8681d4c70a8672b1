//! What an endpoint hears: whole messages and control frames.

use bytes::Bytes;
use bytestring::ByteString;

use super::{Close, CloseCode};

/// Which end of the connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Masks what it sends, and hears frames without a mask (RFC 6455 section 5.1).
    Client,
    /// The other way round.
    Server,
}

/// The two kinds of messages (RFC 6455 section 5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// What the peer may ask for. More is an error, which the header tells: nothing of it is buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a message, over all its fragments, inflated. 16 MiB unless set.
    pub message: usize,
    /// The most bytes of a frame's payload as it stands on the wire. 16 MiB unless set.
    pub frame: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 16 * 1024 * 1024, frame: 16 * 1024 * 1024 }
    }
}

/// What came, lent from where it was read to or put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A message of text.
    Text(&'a str),
    /// A message of bytes.
    Binary(&'a [u8]),
    /// To be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// An answer, or a sign of life.
    Pong(&'a [u8]),
    /// The peer closes, and says nothing more; why, if it says so.
    Close(Option<Close<'a>>),
}

impl Message<'_> {
    /// A copy.
    #[must_use]
    pub fn to_owned(&self) -> OwnedMessage {
        match *self {
            Self::Text(text) => OwnedMessage::Text(text.into()),
            Self::Binary(bytes) => OwnedMessage::Binary(Bytes::copy_from_slice(bytes)),
            Self::Ping(bytes) => OwnedMessage::Ping(Bytes::copy_from_slice(bytes)),
            Self::Pong(bytes) => OwnedMessage::Pong(Bytes::copy_from_slice(bytes)),
            Self::Close(close) => OwnedMessage::Close(close.map(OwnedClose::from)),
        }
    }
}

/// The same as [`Message`], owned. A large message shares its memory with nothing but what was read
/// together with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedMessage {
    /// A message of text.
    Text(ByteString),
    /// A message of bytes.
    Binary(Bytes),
    /// To be answered by a pong with the same payload.
    Ping(Bytes),
    /// An answer, or a sign of life.
    Pong(Bytes),
    /// The peer closes, and says nothing more; why, if it says so.
    Close(Option<OwnedClose>),
}

impl OwnedMessage {
    /// The same, lent.
    #[must_use]
    pub fn as_message(&self) -> Message<'_> {
        match self {
            Self::Text(text) => Message::Text(text),
            Self::Binary(bytes) => Message::Binary(bytes),
            Self::Ping(bytes) => Message::Ping(bytes),
            Self::Pong(bytes) => Message::Pong(bytes),
            Self::Close(close) => Message::Close(close.as_ref().map(OwnedClose::as_close)),
        }
    }
}

/// The same as [`Close`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedClose {
    /// Why.
    pub code: CloseCode,
    /// Why, in words; may be empty.
    pub reason: ByteString,
}

impl OwnedClose {
    /// The same, lent.
    #[must_use]
    pub fn as_close(&self) -> Close<'_> {
        Close { code: self.code, reason: &self.reason }
    }
}

impl From<Close<'_>> for OwnedClose {
    fn from(close: Close<'_>) -> Self {
        Self { code: close.code, reason: close.reason.into() }
    }
}
