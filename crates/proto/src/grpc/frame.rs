//! Length-prefixed messages: a flag byte, four bytes of length, the message.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

/// The length of what stands before each message, in bytes.
pub const PREFIX: usize = 5;

/// The most that is allocated on the word of a prefix alone; beyond it a message grows as it comes.
const TRUSTED: usize = 64 * 1024;

/// One message as it stands in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Whether it is compressed, with the coding that `grpc-encoding` names.
    pub compressed: bool,
    /// Its bytes.
    pub message: Bytes,
}

/// Why a row of messages cannot be read or written on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The flag byte is neither 0 nor 1.
    BadFlag(u8),
    /// The message is longer than allowed.
    TooLong {
        /// Its length in bytes.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The body ended inside a message.
    Truncated,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFlag(flag) => write!(f, "the message has the flag byte {flag}, not 0 or 1"),
            Self::TooLong { length, limit } => {
                write!(f, "the message has {length} bytes, more than the {limit} allowed")
            }
            Self::Truncated => f.write_str("the body ended inside a message"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Takes a body apart into its messages, however its bytes are split into pieces.
///
/// The caller [`push`](Self::push)es a piece and [`poll`](Self::poll)s until `None`. A message that lies
/// in one piece is cut off it without a copy; another is put together in memory that grows with what
/// came, not with what was announced. A message over the limit is refused when its prefix is read.
///
/// After an error it gives the same error again.
#[derive(Debug)]
pub struct Deframer {
    limit: usize,
    /// What was pushed and is not used up.
    piece: Bytes,
    state: State,
}

#[derive(Debug)]
enum State {
    /// So many bytes of a prefix are here.
    Prefix {
        bytes: [u8; PREFIX],
        here: usize,
    },
    /// So much of a message is here; `length` bytes are all of it.
    Message {
        compressed: bool,
        length: usize,
        here: BytesMut,
    },
    Failed(FrameError),
}

impl State {
    const START: Self = Self::Prefix { bytes: [0; PREFIX], here: 0 };
}

impl Deframer {
    /// A reader of messages of at most `limit` bytes each, as they stand in the body.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, piece: Bytes::new(), state: State::START }
    }

    /// Gives it the next piece of the body. One that comes before `poll` answered `None` is joined to
    /// what is left, by a copy.
    pub fn push(&mut self, piece: Bytes) {
        if self.piece.is_empty() {
            self.piece = piece;
        } else {
            self.piece = [&self.piece[..], &piece[..]].concat().into();
        }
    }

    /// The next message, or `None` when more of the body is needed.
    ///
    /// # Errors
    /// A flag that is not defined, or a message over the limit.
    pub fn poll(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match &mut self.state {
                State::Failed(error) => return Err(*error),
                State::Prefix { bytes, here } => {
                    let taken = self.piece.len().min(PREFIX - *here);
                    self.piece.copy_to_slice(&mut bytes[*here..*here + taken]);
                    *here += taken;
                    if *here < PREFIX {
                        return Ok(None);
                    }
                    self.state = match read_prefix(*bytes, self.limit) {
                        Ok((compressed, length)) => {
                            State::Message { compressed, length, here: BytesMut::new() }
                        }
                        Err(error) => State::Failed(error),
                    };
                }
                State::Message { compressed, length, here } => {
                    let missing = *length - here.len();
                    let whole = self.piece.len() >= missing;
                    if !whole && self.piece.is_empty() {
                        return Ok(None);
                    }
                    let compressed = *compressed;
                    if whole && here.is_empty() {
                        let message = self.piece.split_to(missing);
                        self.state = State::START;
                        return Ok(Some(Frame { compressed, message }));
                    }
                    if here.is_empty() {
                        here.reserve((*length).min(TRUSTED.max(self.piece.len())));
                    }
                    let part = self.piece.split_to(missing.min(self.piece.len()));
                    here.extend_from_slice(&part);
                    if whole {
                        let message = std::mem::take(here).freeze();
                        self.state = State::START;
                        return Ok(Some(Frame { compressed, message }));
                    }
                }
            }
        }
    }

    /// Whether nothing at all, or nothing but whole messages, came so far.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.piece.is_empty() && matches!(self.state, State::Prefix { here: 0, .. })
    }

    /// The room that is held for a message that has not come whole.
    #[cfg(test)]
    pub(super) fn reserved(&self) -> usize {
        match &self.state {
            State::Message { here, .. } => here.capacity(),
            _ => 0,
        }
    }

    /// Says that the body is over. Call it when [`poll`](Self::poll) has answered `None`.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] inside a message; what `poll` failed with.
    pub fn finish(&self) -> Result<(), FrameError> {
        match &self.state {
            State::Failed(error) => Err(*error),
            _ if self.is_between() => Ok(()),
            _ => Err(FrameError::Truncated),
        }
    }
}

fn read_prefix(bytes: [u8; PREFIX], limit: usize) -> Result<(bool, usize), FrameError> {
    let [flag, length @ ..] = bytes;
    if flag > 1 {
        return Err(FrameError::BadFlag(flag));
    }
    let length = u32::from_be_bytes(length);
    match usize::try_from(length) {
        Ok(length) if length <= limit => Ok((flag == 1, length)),
        _ => Err(FrameError::TooLong { length: length.into(), limit: limit as u64 }),
    }
}

/// Appends one uncompressed message that `write` appends to the buffer it is given. The message is
/// written where it stays: its length is filled in afterwards.
///
/// # Errors
/// [`FrameError::TooLong`] for 4 GiB or more. `to` then ends with what was written of it.
pub fn frame(to: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) -> Result<(), FrameError> {
    let start = to.len();
    to.extend_from_slice(&[0; PREFIX]);
    write(to);
    set_prefix(&mut to[start..], false)
}

/// Fills in the prefix of one message: `framed` is room for it and the message behind.
///
/// # Errors
/// [`FrameError::TooLong`] for a message of 4 GiB or more, [`FrameError::Truncated`] when there is not
/// even room for a prefix.
pub fn set_prefix(framed: &mut [u8], compressed: bool) -> Result<(), FrameError> {
    let length = framed.len().checked_sub(PREFIX).ok_or(FrameError::Truncated)?;
    let too_long = FrameError::TooLong { length: length as u64, limit: u32::MAX.into() };
    let length = u32::try_from(length).map_err(|_| too_long)?;
    framed[0] = compressed.into();
    framed[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
