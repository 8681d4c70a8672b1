//! What the measured clients of gRPC send and get back: one message, in protobuf or JSON, and the five
//! bytes before it for clients that have no gRPC of their own.

use std::{error::Error, str::Utf8Error};

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};

/// Bytes before a message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// The message: what the server echoes.
#[derive(Clone, PartialEq, Eq, Message, Serialize, Deserialize)]
pub struct Echo {
    /// A number, so that there is more than one field.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The text that the job asks to be sent.
    #[prost(string, tag = "2")]
    pub text: String,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Protobuf, by prost.
    Prost,
    /// JSON, by serde.
    Json,
}

impl Echo {
    /// A message with `text`.
    ///
    /// # Errors
    /// If that is not UTF-8.
    pub fn of(text: &[u8]) -> Result<Self, Utf8Error> {
        Ok(Self { number: 4_242, text: str::from_utf8(text)?.to_owned() })
    }
}

impl Codec {
    /// The `content-type` of calls.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prost => "application/grpc",
            Self::Json => "application/grpc+json",
        }
    }

    /// The message, written.
    ///
    /// # Errors
    /// As serde_json has them: none with this message.
    pub fn write(self, message: &Echo) -> Result<Vec<u8>, serde_json::Error> {
        match self {
            Self::Prost => Ok(message.encode_to_vec()),
            Self::Json => serde_json::to_vec(message),
        }
    }

    /// The message behind its prefix, in one piece of memory.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn frame(self, message: &Echo) -> Result<Bytes, serde_json::Error> {
        let mut frame = match self {
            Self::Prost => Vec::with_capacity(PREFIX + message.encoded_len()),
            Self::Json => Vec::with_capacity(PREFIX + message.text.len() + 64),
        };
        frame.extend_from_slice(&[0; PREFIX]);
        match self {
            // A `Vec` has room for any message.
            Self::Prost => message.encode_raw(&mut frame),
            Self::Json => serde_json::to_writer(&mut frame, message)?,
        }
        // The jobs' messages are far from 4 GiB.
        let length = (frame.len() - PREFIX) as u32;
        frame[1..PREFIX].copy_from_slice(&length.to_be_bytes());
        Ok(frame.into())
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(self, message: &[u8]) -> Result<Echo, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Prost => Ok(Echo::decode(message)?),
            Self::Json => Ok(serde_json::from_slice(message)?),
        }
    }

    /// Reads the one message that `frame` is, behind its prefix.
    ///
    /// # Errors
    /// If it is none, more than one, or compressed.
    pub fn unframe(self, frame: &[u8]) -> Result<Echo, Box<dyn Error + Send + Sync>> {
        match frame.split_first_chunk::<PREFIX>() {
            Some((&[0, a, b, c, d], message))
                if u32::from_be_bytes([a, b, c, d]) as usize == message.len() =>
            {
                self.read(message)
            }
            _ => Err("not one message without compression".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framed_message_is_read_as_it_was_written() {
        let message = Echo::of(b"hello").expect("UTF-8");
        for codec in [Codec::Prost, Codec::Json] {
            let frame = codec.frame(&message).expect("it is written");
            assert_eq!(&frame[PREFIX..], codec.write(&message).expect("it is written"));
            assert_eq!(codec.unframe(&frame).expect("it is read"), message);
            assert!(codec.unframe(&frame[..frame.len() - 1]).is_err());
            assert!(codec.unframe(&frame[..3]).is_err());
        }
    }

    #[test]
    fn protobuf_is_as_its_definition_says() {
        let written = Codec::Prost.write(&Echo { number: 5, text: "a".into() });
        assert_eq!(written.expect("it is written"), b"\x08\x05\x12\x01a");
    }
}
