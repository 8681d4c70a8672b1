//! Compression of single messages.

use bytes::{Bytes, BytesMut};

use super::{Code, Status};
use crate::body::{Coding, DecodeErrorKind, DecodeLimits, Decoder};

/// What a peer's `grpc-encoding` says about the messages that are flagged as compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Compression {
    /// None: a message that is flagged all the same breaks the protocol.
    Identity,
    Known(Coding),
    /// Of no use to this build. Messages that are not flagged still are.
    Unknown(String),
}

impl Compression {
    /// Reads a `grpc-encoding`.
    pub(super) fn named(value: Option<&[u8]>) -> Self {
        let name = String::from_utf8_lossy(value.unwrap_or(b"identity"));
        let name = name.trim();
        if name.is_empty() || name.eq_ignore_ascii_case("identity") {
            return Self::Identity;
        }
        match Coding::from_token(name).filter(|coding| coding.is_supported()) {
            Some(coding) => Self::Known(coding),
            None => Self::Unknown(name.to_owned()),
        }
    }

    /// The message that `compressed` unfolds into, of at most `limit` bytes.
    pub(super) fn inflate(&self, compressed: Bytes, limit: usize) -> Result<Bytes, Status> {
        match self {
            Self::Known(coding) => inflate(*coding, compressed, limit),
            Self::Identity => Err(Status::new(
                Code::Internal,
                "a message is compressed, but no grpc-encoding says how",
            )),
            Self::Unknown(name) => {
                let message =
                    format!("a message is compressed by {name:?}, which is not supported");
                Err(Status::new(Code::Internal, message))
            }
        }
    }
}

fn inflate(coding: Coding, compressed: Bytes, limit: usize) -> Result<Bytes, Status> {
    // The size alone bounds what a message can unfold into.
    let limits =
        DecodeLimits { max_size: Some(limit as u64), max_ratio: None, ..DecodeLimits::default() };
    let broken = |error: crate::DecodeError| {
        let code = match error.kind() {
            DecodeErrorKind::TooLarge => Code::ResourceExhausted,
            _ => Code::Internal,
        };
        Status::new(code, "a compressed message cannot be unfolded").caused_by(error)
    };
    let decoder = Decoder::for_codings([coding.token()], &limits).map_err(broken)?;
    let Some(mut decoder) = decoder else {
        return Err(Status::new(Code::Internal, "the coding was not compiled in"));
    };
    // A new decoder has room for a piece.
    let _ = decoder.push(compressed);
    let Some(first) = decoder.poll().map_err(broken)? else {
        decoder.finish().map_err(broken)?;
        return Ok(Bytes::new());
    };
    let Some(second) = decoder.poll().map_err(broken)? else {
        decoder.finish().map_err(broken)?;
        return Ok(first);
    };
    let mut all = BytesMut::from(&first[..]);
    all.extend_from_slice(&second);
    while let Some(more) = decoder.poll().map_err(broken)? {
        all.extend_from_slice(&more);
    }
    decoder.finish().map_err(broken)?;
    Ok(all.freeze())
}

/// What `grpc-accept-encoding` says: what this build can unfold and other implementations speak.
pub(super) fn accepted() -> &'static str {
    match Coding::Gzip.is_supported() {
        true => "gzip,identity",
        false => "identity",
    }
}
