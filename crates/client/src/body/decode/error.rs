use std::{error::Error, fmt, io};

use crate::body::coding::Coding;

/// Why a body could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes are not what the coding prescribes, or a checksum does not match.
    Corrupt,
    /// The body ended inside a coding's stream.
    Truncated,
    /// More came out than [`DecodeLimits::max_size`](super::DecodeLimits::max_size) allows.
    TooLarge,
    /// More came out for what went in than
    /// [`DecodeLimits::max_ratio`](super::DecodeLimits::max_ratio) allows: a decompression bomb.
    RatioExceeded,
    /// More codings than [`DecodeLimits::max_codings`](super::DecodeLimits::max_codings) allows.
    TooManyCodings,
    /// The codec could not be set up (out of memory).
    Unavailable,
}

/// A content coding that could not be undone.
#[derive(Debug)]
pub struct DecodeError {
    kind: DecodeErrorKind,
    coding: Option<Coding>,
    cause: Option<io::Error>,
}

impl DecodeError {
    pub(super) fn new(kind: DecodeErrorKind, coding: Option<Coding>) -> Self {
        Self { kind, coding, cause: None }
    }

    pub(super) fn because(mut self, cause: io::Error) -> Self {
        self.cause = Some(cause);
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// The coding it went wrong in, where one is to blame.
    #[must_use]
    pub fn coding(&self) -> Option<Coding> {
        self.coding
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DecodeErrorKind::Corrupt => "the encoded body is corrupt",
            DecodeErrorKind::Truncated => "the encoded body ended too early",
            DecodeErrorKind::TooLarge => "the decoded body exceeds its size limit",
            DecodeErrorKind::RatioExceeded => "the decoded body exceeds its expansion limit",
            DecodeErrorKind::TooManyCodings => "the body has more content codings than allowed",
            DecodeErrorKind::Unavailable => "the decoder could not be set up",
        })?;
        match self.coding {
            Some(coding) => write!(f, " ({coding})"),
            None => Ok(()),
        }
    }
}

impl Error for DecodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
