//! Lines of bytes that come in pieces.

use std::ops::{Deref, Range};

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2};

use super::TooLong;

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// CR LF, LF or CR, as in an event stream.
    Any,
    /// LF or CR LF, as in lines of JSON.
    Lf,
}

/// Takes bytes apart into lines, however they are split into pieces.
///
/// The caller [`push`](Self::push)es a piece and takes lines until there is none. A line that lies in one
/// piece is not copied.
#[derive(Debug)]
pub struct Lines {
    ends: Ends,
    limit: usize,
    piece: Bytes,
    /// How much of `piece` was taken.
    at: usize,
    /// The beginning of a line whose end has not come.
    held: BytesMut,
    /// The last line that was put together of several pieces.
    joined: Bytes,
    /// The last line ended with a CR that was the last byte here: an LF belongs to it.
    after_cr: bool,
    failed: Option<TooLong>,
}

/// Where a line lies.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// In the piece.
    Here(Range<usize>),
    /// It was put together.
    Joined,
}

/// A line without its end: bytes, that can be kept without a copy.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    bytes: &'a [u8],
    of: &'a Bytes,
}

impl Line<'_> {
    /// The line to keep. It shares the memory of the piece that it came in.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.of.slice_ref(self.bytes)
    }
}

impl Deref for Line<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Lines {
    /// Lines that end so, of at most `limit` bytes each.
    #[must_use]
    pub fn new(ends: Ends, limit: usize) -> Self {
        Lines {
            ends,
            limit,
            piece: Bytes::new(),
            at: 0,
            held: BytesMut::new(),
            joined: Bytes::new(),
            after_cr: false,
            failed: None,
        }
    }

    /// Gives it the next piece. One that comes before all lines of the last were taken is joined to what
    /// is left, by a copy.
    pub fn push(&mut self, piece: Bytes) {
        let left = &self.piece[self.at..];
        self.piece = match left.is_empty() {
            true => piece,
            false => [left, &piece].concat().into(),
        };
        self.at = 0;
    }

    /// The next line, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The line is longer than allowed, whether its end has come or not. Every further call fails alike.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, TooLong> {
        match self.next_place() {
            Ok(Some(place)) => Ok(Some(Line { bytes: self.bytes(&place), of: self.of(&place) })),
            nothing => {
                self.let_go();
                nothing.map(|_| None)
            }
        }
    }

    /// What stood behind the last line's end, which is a line where a last line needs none.
    #[must_use]
    pub fn finish(self) -> Option<Bytes> {
        let cr = self.ends_with_cr(&self.held);
        let rest = self.held.freeze();
        let line = rest.slice(..rest.len() - usize::from(cr));
        (!line.is_empty()).then_some(line)
    }

    /// The piece, in which places lie until [`let_go`](Self::let_go).
    pub(super) fn piece(&self) -> &Bytes {
        &self.piece
    }

    pub(super) fn of(&self, place: &Place) -> &Bytes {
        match place {
            Place::Here(_) => &self.piece,
            Place::Joined => &self.joined,
        }
    }

    pub(super) fn bytes(&self, place: &Place) -> &[u8] {
        match place {
            Place::Here(range) => &self.piece[range.clone()],
            Place::Joined => &self.joined,
        }
    }

    /// The same line without its first `n` bytes.
    pub(super) fn without_start(&mut self, place: Place, n: usize) -> Place {
        match place {
            Place::Here(range) => Place::Here(range.start + n..range.end),
            Place::Joined => {
                self.joined = self.joined.slice(n..);
                Place::Joined
            }
        }
    }

    /// Lets go of a piece of which nothing is left: whoever waits for the next holds no memory of it.
    pub(super) fn let_go(&mut self) {
        self.piece = Bytes::new();
        self.at = 0;
    }

    /// Where the next line is. What is left when there is none was taken off the piece.
    #[inline]
    pub(super) fn next_place(&mut self) -> Result<Option<Place>, TooLong> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        if self.after_cr {
            let Some(first) = self.piece.get(self.at) else { return Ok(None) };
            self.at += usize::from(*first == b'\n');
            self.after_cr = false;
        }
        let rest = &self.piece[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let found = match self.ends {
            Ends::Any => memchr2(b'\n', b'\r', rest),
            Ends::Lf => memchr(b'\n', rest),
        };
        let Some(len) = found else {
            self.hold()?;
            return Ok(None);
        };
        let mut line = self.at..self.at + len;
        self.at = line.end + 1;
        if self.ends == Ends::Any && self.piece[line.end] == b'\r' {
            match self.piece.get(self.at) {
                Some(next) => self.at += usize::from(*next == b'\n'),
                None => self.after_cr = true,
            }
        }
        if !self.held.is_empty() {
            self.join(line)?;
            return Ok(Some(Place::Joined));
        }
        line.end -= usize::from(self.ends_with_cr(&self.piece[line.clone()]));
        self.check(line.len())?;
        Ok(Some(Place::Here(line)))
    }

    /// Whether a line that ends with LF ends with CR LF.
    fn ends_with_cr(&self, line: &[u8]) -> bool {
        self.ends == Ends::Lf && line.last() == Some(&b'\r')
    }

    /// Puts the end of a line behind its beginning.
    fn join(&mut self, line: Range<usize>) -> Result<(), TooLong> {
        self.held.extend_from_slice(&self.piece[line]);
        let cr = self.ends_with_cr(&self.held);
        self.held.truncate(self.held.len() - usize::from(cr));
        self.check(self.held.len())?;
        self.joined = self.held.split().freeze();
        Ok(())
    }

    /// Keeps the beginning of a line until its end comes.
    fn hold(&mut self) -> Result<(), TooLong> {
        let rest = &self.piece[self.at..];
        // The last byte may be the CR of a CR LF.
        let cr = self.ends_with_cr(rest);
        self.check((self.held.len() + rest.len()).saturating_sub(usize::from(cr)))?;
        self.held.extend_from_slice(&self.piece[self.at..]);
        self.at = self.piece.len();
        Ok(())
    }

    fn check(&mut self, len: usize) -> Result<(), TooLong> {
        if len <= self.limit {
            return Ok(());
        }
        let failed = TooLong::Line { limit: self.limit };
        self.failed = Some(failed);
        self.held = BytesMut::new();
        Err(failed)
    }
}
