//! The chunked transfer coding (RFC 9112 section 7.1).

use memchr::memchr;

use super::Limits;
use crate::fields::has_control;
use crate::{Error, LimitExceeded, PeerMisbehaved};

/// Bytes that a size line adds at most when sending: 16 digits and CR LF.
const SIZE_LINE: usize = 18;

/// Finds the data in a chunked body. It reads the front of a buffer and says what stands there;
/// whoever owns the buffer consumes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder {
    state: State,
    /// Bytes of extensions in this body so far.
    extensions: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// In a size line, of which so many bytes hold no LF.
    Size { scanned: usize },
    /// In the data of a chunk, so many bytes before its end.
    Data(u64),
    /// In the CR LF after the data.
    DataEnd,
    /// After the last chunk.
    Last,
}

/// What stands at the front of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Not enough to tell.
    More,
    /// So many bytes of framing.
    Skip(usize),
    /// So many bytes of data, at least one.
    Data(usize),
    /// The trailer section.
    Trailers,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { state: State::Size { scanned: 0 }, extensions: 0 }
    }

    /// Judges the front of `buf`. Anything but [`Step::More`] counts as consumed.
    pub(super) fn step(&mut self, buf: &[u8], limits: &Limits) -> Result<Step, Error> {
        match self.state {
            State::Size { scanned } => self.size(buf, scanned, limits),
            State::Data(left) => Ok(self.data(buf.len(), left)),
            State::DataEnd => self.data_end(buf),
            State::Last => Ok(Step::Trailers),
        }
    }

    fn size(&mut self, buf: &[u8], scanned: usize, limits: &Limits) -> Result<Step, Error> {
        let found = memchr(b'\n', buf.get(scanned..).unwrap_or_default());
        let end = found.map_or(buf.len(), |at| scanned + at + 1);
        if end > limits.chunk_line {
            return Err(LimitExceeded::ChunkLine.into());
        }
        if found.is_none() {
            self.state = State::Size { scanned: end };
            return Ok(Step::More);
        }
        let [line @ .., b'\r', b'\n'] = &buf[..end] else {
            return Err(PeerMisbehaved::BareLf.into());
        };
        let (size, extension) = chunk_size(line)?;
        if !extension.is_empty() {
            check_extension(extension)?;
            self.extensions += extension.len();
            if self.extensions > limits.chunk_extensions {
                return Err(LimitExceeded::ChunkExtensions.into());
            }
        }
        self.state = if size == 0 { State::Last } else { State::Data(size) };
        Ok(Step::Skip(end))
    }

    fn data(&mut self, available: usize, left: u64) -> Step {
        let take = usize::try_from(left).map_or(available, |left| left.min(available));
        if take == 0 {
            return Step::More;
        }
        let left = left - take as u64;
        self.state = if left == 0 { State::DataEnd } else { State::Data(left) };
        Step::Data(take)
    }

    fn data_end(&mut self, buf: &[u8]) -> Result<Step, Error> {
        match buf {
            [] | [b'\r'] => Ok(Step::More),
            [b'\r', b'\n', ..] => {
                self.state = State::Size { scanned: 0 };
                Ok(Step::Skip(2))
            }
            _ => Err(PeerMisbehaved::BadChunkTerminator.into()),
        }
    }
}

/// `chunk-size = 1*HEXDIG`, and what follows it on the line. Leading zeros are digits like others.
fn chunk_size(line: &[u8]) -> Result<(u64, &[u8]), PeerMisbehaved> {
    let (mut size, mut digits) = (0_u64, 0);
    for &byte in line {
        let Some(digit) = char::from(byte).to_digit(16) else { break };
        if size >> (u64::BITS - 4) != 0 {
            return Err(PeerMisbehaved::BadChunkSize);
        }
        size = size << 4 | u64::from(digit);
        digits += 1;
    }
    match digits {
        0 => Err(PeerMisbehaved::BadChunkSize),
        _ => Ok((size, &line[digits..])),
    }
}

/// `chunk-ext = *( BWS ";" ... )` (section 7.1.1). Its meaning is nobody's; its bytes must be text.
/// Blanks alone are let through: old servers pad the size with them.
fn check_extension(extension: &[u8]) -> Result<(), PeerMisbehaved> {
    match crate::fields::trim_ows(extension) {
        [] => Ok(()),
        [b';', rest @ ..] if !has_control(rest) => Ok(()),
        [b';', ..] => Err(PeerMisbehaved::BadChunkExtension),
        _ => Err(PeerMisbehaved::BadChunkSize),
    }
}

/// Writes the size line of a chunk.
pub(super) fn write_size(out: &mut Vec<u8>, size: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(SIZE_LINE);
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(DIGITS[(size >> (digit * 4)) & 0xf]);
    }
    out.extend_from_slice(b"\r\n");
}
