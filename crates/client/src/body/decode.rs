//! Content decoding as a pull machine: encoded pieces in, decoded pieces of bounded size out.

use std::{fmt, io, mem};

use bytes::{Buf, Bytes};

use super::coding::Coding;

mod codec;
mod error;

#[cfg(test)]
mod tests;

use codec::{Codec, Ran};
pub use error::{DecodeError, DecodeErrorKind};

/// The largest piece [`Decoder::poll`] hands out, and the most one coding decodes ahead of the next.
const PIECE: usize = 64 * 1024;
/// What an inner layer may have over the size limit, whatever that is.
const FRAMING: u64 = 1024 * 1024;
/// The smallest output buffer.
const SMALL_PIECE: usize = 2 * 1024;

/// What a decoded body may cost.
///
/// A limit is held against the output of *every* coding of the body, not of the last alone, so that
/// a bomb whose outer layer unfolds into nothing is found too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Most bytes after decoding; an inner layer of several may have a little more, for its own
    /// framing. `None` by default: a long-lived compressed stream is legitimate
    /// and has no end, and what a peer can make us decode is bounded by `max_ratio` already.
    pub max_size: Option<u64>,
    /// Most decoded bytes for each encoded one, held once `ratio_floor` bytes came out. By default
    /// 200: markup and logs stay under 50, while a run of zeros is 1 030 as gzip (the most deflate
    /// can do) and over 10 000 as Brotli or Zstandard. `None` switches the check off.
    pub max_ratio: Option<u32>,
    /// Decoded bytes to which the ratio does not apply, 16 MiB by default: small bodies of one
    /// repeated byte are common and harmless.
    pub ratio_floor: u64,
    /// Most codings one body may be wrapped in, 3 by default; more than one is rare, and each layer
    /// multiplies what one byte can cost.
    pub max_codings: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { max_size: None, max_ratio: Some(200), ratio_floor: 16 * 1024 * 1024, max_codings: 3 }
    }
}

/// Undoes the content codings of one body.
///
/// The caller drives it: [`push`](Self::push) one encoded piece, [`poll`](Self::poll) until `None`,
/// and again; after the last piece, [`finish`](Self::finish). It does no I/O, holds one pushed piece,
/// and decodes at most 64 KiB ahead, so memory is bounded by the codings' own windows (32 KiB for
/// gzip and deflate, 16 MiB for Brotli, 8 MiB for Zstandard), whatever the body unfolds into.
///
/// A body of zero bytes is complete in every coding: answers to HEAD and 304 name the coding of a
/// body they do not carry (RFC 9110 section 8.4).
///
/// After the end of a coding's stream:
/// - a further gzip member (RFC 1952 section 2.2) or Zstandard frame (RFC 8878 section 3.1) is
///   decoded in turn;
/// - any other bytes are discarded, as browsers do: servers pad with zeros, and the stream's own
///   checksum has vouched for what came before.
///
/// After an error, `poll` and `finish` fail with that error's kind again.
pub struct Decoder {
    /// In decoding order: the first one reads the wire.
    stages: Vec<Stage>,
    limits: DecodeLimits,
    /// Encoded bytes the first stage took.
    consumed: u64,
    failed: Option<(DecodeErrorKind, Option<Coding>)>,
}

/// One coding and the bytes on their way into it.
struct Stage {
    coding: Coding,
    codec: Box<dyn Codec>,
    input: Bytes,
    /// Whether the codec may hold decoded bytes back for want of room.
    holds_more: bool,
    /// An output buffer that the last run left empty.
    spare: Vec<u8>,
    produced: u64,
}

/// What asking a stage for output came to.
enum Pulled {
    Piece(Bytes),
    /// Nothing more comes out until the wire gives more.
    Starved,
}

impl Decoder {
    /// A decoder for a body whose `Content-Encoding` fields have these values, each of which may be
    /// a comma-separated list; `None` when the body is to be handed on as it is.
    ///
    /// That is so for `identity`, for no coding at all, and (as browsers do) when *any* of the
    /// codings is unknown or not compiled in: a body undone halfway would match no header, so it
    /// stays whole and its `Content-Encoding` stays true.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooManyCodings`] when there are more than `limits.max_codings`;
    /// [`DecodeErrorKind::Unavailable`] when a codec cannot be set up.
    pub fn for_codings<'a>(
        values: impl IntoIterator<Item = &'a str>,
        limits: &DecodeLimits,
    ) -> Result<Option<Self>, DecodeError> {
        let tokens: Vec<&str> = values
            .into_iter()
            .flat_map(|value| value.split(','))
            .map(|token| token.trim_matches([' ', '\t']))
            // "identity" and Apache's "none" say that there is nothing to undo; RFC 9110 section
            // 5.6.1.2 has recipients skip empty list elements.
            .filter(|token| {
                !token.is_empty()
                    && !token.eq_ignore_ascii_case("identity")
                    && !token.eq_ignore_ascii_case("none")
            })
            .take(limits.max_codings.saturating_add(1))
            .collect();
        if tokens.len() > limits.max_codings {
            return Err(DecodeError::new(DecodeErrorKind::TooManyCodings, None));
        }
        let mut stages = Vec::with_capacity(tokens.len());
        // RFC 9110 section 8.4: codings are listed in the order in which they were applied.
        for token in tokens.into_iter().rev() {
            let Some(coding) = Coding::from_token(token).filter(|c| c.is_supported()) else {
                tracing::debug!(coding = token, "unknown content coding: body is left encoded");
                return Ok(None);
            };
            stages.push(Stage::new(coding)?);
        }
        Ok((!stages.is_empty()).then(|| Self {
            stages,
            limits: limits.clone(),
            consumed: 0,
            failed: None,
        }))
    }

    /// Gives the decoder its next piece of the encoded body.
    ///
    /// # Errors
    /// Hands the piece back while an earlier one is not used up: [`poll`](Self::poll) until `None`.
    pub fn push(&mut self, piece: Bytes) -> Result<(), Bytes> {
        match self.stages.first_mut() {
            Some(stage) if stage.input.is_empty() => {
                stage.input = piece;
                Ok(())
            }
            _ => Err(piece),
        }
    }

    /// The next piece of the decoded body, of 1 byte to 64 KiB, or `None` when more input is needed.
    ///
    /// # Errors
    /// The body is corrupt or exceeds a limit.
    pub fn poll(&mut self) -> Result<Option<Bytes>, DecodeError> {
        self.check_failed()?;
        let last = self.stages.len() - 1; // for_codings makes at least one
        match self.pull(last) {
            Ok(Pulled::Piece(piece)) => Ok(Some(piece)),
            Ok(Pulled::Starved) => Ok(None),
            Err(error) => {
                self.failed = Some((error.kind(), error.coding()));
                Err(error)
            }
        }
    }

    /// Says that no more input comes. Call it when [`poll`](Self::poll) has answered `None` after
    /// the last piece.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`] when a coding's stream has not come to its end, or when pushed
    /// bytes are still undecoded.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        self.check_failed()?;
        for stage in &self.stages {
            if !stage.input.is_empty() || !stage.codec.is_complete() {
                let (kind, coding) = (DecodeErrorKind::Truncated, Some(stage.coding));
                self.failed = Some((kind, coding));
                return Err(DecodeError::new(kind, coding));
            }
        }
        Ok(())
    }

    fn check_failed(&self) -> Result<(), DecodeError> {
        match self.failed {
            Some((kind, coding)) => Err(DecodeError::new(kind, coding)),
            None => Ok(()),
        }
    }

    /// Output of stage `index`, which asks the stage before it when its own input runs out. Recursion
    /// is as deep as there are codings.
    fn pull(&mut self, index: usize) -> Result<Pulled, DecodeError> {
        loop {
            while self.stages[index].can_run() {
                let piece = self.run(index)?;
                if !piece.is_empty() {
                    return Ok(Pulled::Piece(piece));
                }
            }
            let Some(before) = index.checked_sub(1) else {
                return Ok(Pulled::Starved);
            };
            match self.pull(before)? {
                Pulled::Piece(input) => self.stages[index].input = input,
                Pulled::Starved => return Ok(Pulled::Starved),
            }
        }
    }

    /// One step of one stage, accounted for and held against the limits.
    fn run(&mut self, index: usize) -> Result<Bytes, DecodeError> {
        let stage = &mut self.stages[index];
        let before = stage.input.len();
        let piece = stage.run().map_err(|cause| {
            DecodeError::new(DecodeErrorKind::Corrupt, Some(stage.coding)).because(cause)
        })?;
        if index == 0 {
            self.consumed += (before - stage.input.len()) as u64;
        }
        self.check_limits(index)?;
        Ok(piece)
    }

    fn check_limits(&self, index: usize) -> Result<(), DecodeError> {
        let stage = &self.stages[index];
        let exceeded = |kind| Err(DecodeError::new(kind, Some(stage.coding)));
        // Framing costs an encoded layer some bytes over what it holds, 1 in 256 for Zstandard.
        let is_last = index + 1 == self.stages.len();
        let framing = |max: u64| if is_last { 0 } else { max / 64 + FRAMING };
        let too_large = |max: u64| stage.produced > max.saturating_add(framing(max));
        if self.limits.max_size.is_some_and(too_large) {
            return exceeded(DecodeErrorKind::TooLarge);
        }
        if let Some(ratio) = self.limits.max_ratio
            && stage.produced > self.limits.ratio_floor
            && stage.produced > self.consumed.saturating_mul(u64::from(ratio))
        {
            return exceeded(DecodeErrorKind::RatioExceeded);
        }
        Ok(())
    }
}

impl Stage {
    fn new(coding: Coding) -> Result<Self, DecodeError> {
        let codec = codec::open(coding).map_err(|cause| {
            DecodeError::new(DecodeErrorKind::Unavailable, Some(coding)).because(cause)
        })?;
        Ok(Self {
            coding,
            codec,
            input: Bytes::new(),
            holds_more: false,
            spare: Vec::new(),
            produced: 0,
        })
    }

    fn can_run(&self) -> bool {
        self.holds_more || !self.input.is_empty()
    }

    /// Decodes at most one piece.
    fn run(&mut self) -> io::Result<Bytes> {
        let mut output = mem::take(&mut self.spare);
        let room = if self.holds_more {
            PIECE
        } else {
            // Text shrinks to a quarter or so: a small body gets a small buffer.
            (self.input.len() * 4).clamp(SMALL_PIECE, PIECE)
        };
        output.resize(room, 0);
        let Ran { consumed, produced } = self.codec.run(&self.input, &mut output)?;
        if consumed == 0 && produced == 0 && !self.input.is_empty() {
            return Err(io::Error::other("the codec made no progress"));
        }
        self.input.advance(consumed);
        self.produced += produced as u64;
        self.holds_more = produced == output.len();
        output.truncate(produced);
        if output.is_empty() {
            self.spare = output;
            return Ok(Bytes::new());
        }
        Ok(output.into())
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codings: Vec<_> = self.stages.iter().map(|stage| stage.coding).collect();
        f.debug_struct("Decoder")
            .field("codings", &codings)
            .field("consumed", &self.consumed)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
