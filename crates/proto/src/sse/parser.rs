//! From the bytes of an event stream to its events.

use std::{fmt, ops::Range, time::Duration};

use bytes::{Bytes, BytesMut};
use memchr::memchr;

use super::{Ends, EventRef, Limits, Lines, TooLong, event::Text, lines::Place};

/// U+FEFF in UTF-8, which the standard's UTF-8 decode takes off the beginning of a stream.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Takes an event stream apart into its events, however its bytes are split into pieces (HTML standard
/// sections 9.2.5 and 9.2.6).
///
/// The caller [`push`](Self::push)es a piece and takes events until there is none. Data of one line that
/// lies in one piece is not copied. What stands behind the last blank line when the stream ends is no event.
pub struct Parser {
    lines: Lines,
    limits: Limits,
    /// The first line has been seen.
    begun: bool,
    data: Slot,
    event: Slot,
    /// The standard's last event ID buffer, where it differs from `id`.
    next_id: Option<Slot>,
    /// The standard's last event ID string.
    id: Slot,
    /// The lines of data that has more than one.
    joined: BytesMut,
    retry: Option<Duration>,
    /// The event in the slots was handed out.
    given: bool,
    failed: Option<TooLong>,
}

/// A text that is being put together.
#[derive(Debug, Default)]
enum Slot {
    /// There is none, which differs from an empty one.
    #[default]
    None,
    /// It lies here in the piece.
    Here(Range<usize>),
    /// It lies elsewhere.
    Kept(Bytes),
    /// It lies in `joined`, and may not be over.
    Joined,
}

impl Slot {
    fn text<'a>(&'a self, piece: &'a Bytes) -> Text<'a> {
        match self {
            Slot::Here(range) => Text { bytes: &piece[range.clone()], of: Some(piece) },
            Slot::Kept(bytes) => Text { bytes, of: Some(bytes) },
            Slot::None | Slot::Joined => Text { bytes: &[], of: None },
        }
    }
}

impl Parser {
    /// A parser at the beginning of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Parser {
            lines: Lines::new(Ends::Any, limits.line),
            limits,
            begun: false,
            data: Slot::None,
            event: Slot::None,
            next_id: None,
            id: Slot::None,
            joined: BytesMut::new(),
            retry: None,
            given: false,
            failed: None,
        }
    }

    /// Begins another stream of the same source: the last event ID and the reconnection time stay. What
    /// was not over is forgotten. (By the letter of the standard each stream begins without an ID, and the
    /// first event that has none would unset it; browsers keep it, and so do we.)
    pub fn restart(&mut self) {
        self.settle();
        let id = std::mem::take(&mut self.id);
        *self = Parser { id, retry: self.retry, ..Parser::new(self.limits) };
    }

    /// Gives it the next piece. One that comes before all events of the last were taken is joined to
    /// what is left, by a copy.
    pub fn push(&mut self, piece: Bytes) {
        self.clear();
        if !self.lines.piece().is_empty() {
            self.settle();
        }
        self.lines.push(piece);
    }

    /// The next event, or `None` when more of the stream is needed.
    ///
    /// # Errors
    /// A line or an event is longer than allowed. Every further call fails alike.
    pub fn next_event(&mut self) -> Result<Option<EventRef<'_>>, TooLong> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        self.clear();
        loop {
            match self.next_line() {
                Ok(Some(line)) if !self.lines.bytes(&line).is_empty() => {
                    if let Err(failed) = self.field(&line) {
                        return self.fail(failed);
                    }
                }
                Ok(Some(_)) if self.dispatch() => return Ok(Some(self.view())),
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.settle();
                    self.lines.let_go();
                    return Ok(None);
                }
                Err(failed) => return self.fail(failed),
            }
        }
    }

    /// The last event ID: what a request to go on says in `Last-Event-ID`. Empty when there is none.
    #[must_use]
    pub fn last_event_id(&self) -> std::borrow::Cow<'_, str> {
        self.view().id()
    }

    /// Sets the last event ID, as if an event had carried it.
    pub fn set_last_event_id(&mut self, id: &str) {
        self.id = Slot::Kept(Bytes::copy_from_slice(id.as_bytes()));
        self.next_id = None;
    }

    /// The reconnection time, if the stream named one.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn view(&self) -> EventRef<'_> {
        let piece = self.lines.piece();
        EventRef {
            event: self.event.text(piece),
            data: self.data.text(piece),
            id: self.id.text(piece),
        }
    }

    /// Makes room for the next event, if one was handed out.
    fn clear(&mut self) {
        if std::mem::take(&mut self.given) {
            self.data = Slot::None;
            self.event = Slot::None;
        }
    }

    /// What lies in the piece outlives it. An ID, which may stay for long, does not keep all of it.
    fn settle(&mut self) {
        let piece = self.lines.piece();
        for slot in [&mut self.data, &mut self.event] {
            if let Slot::Here(range) = slot {
                *slot = Slot::Kept(piece.slice(range.clone()));
            }
        }
        for slot in self.next_id.iter_mut().chain([&mut self.id]) {
            if let Slot::Here(range) = slot {
                *slot = Slot::Kept(Bytes::copy_from_slice(&piece[range.clone()]));
            }
        }
    }

    /// The next line, without the mark that may stand before the very first.
    #[inline]
    fn next_line(&mut self) -> Result<Option<Place>, TooLong> {
        let Some(place) = self.lines.next_place()? else { return Ok(None) };
        let first = !std::mem::replace(&mut self.begun, true);
        if first && self.lines.bytes(&place).starts_with(BYTE_ORDER_MARK) {
            return Ok(Some(self.lines.without_start(place, BYTE_ORDER_MARK.len())));
        }
        Ok(Some(place))
    }

    /// Nothing more is read. What it knows to go on with stays.
    fn fail<T>(&mut self, failed: TooLong) -> Result<T, TooLong> {
        self.restart();
        self.failed = Some(failed);
        Err(failed)
    }

    /// A blank line: whether it makes an event of what came before it.
    fn dispatch(&mut self) -> bool {
        if let Some(id) = self.next_id.take() {
            self.id = id;
        }
        match self.data {
            Slot::None => {
                self.event = Slot::None;
                return false;
            }
            Slot::Joined => self.data = Slot::Kept(self.joined.split().freeze()),
            Slot::Here(_) | Slot::Kept(_) => {}
        }
        self.given = true;
        true
    }

    /// A line that is not blank: a comment, a field, or a field without a value.
    fn field(&mut self, place: &Place) -> Result<(), TooLong> {
        let line = self.lines.bytes(place);
        // What nearly every line is.
        let colon = match line.starts_with(b"data:") {
            true => Some(4),
            false => memchr(b':', line),
        };
        let (name, start) = match colon {
            Some(colon) => {
                // One space belongs to the colon.
                let space = line.get(colon + 1) == Some(&b' ');
                (&line[..colon], colon + 1 + usize::from(space))
            }
            None => (line, line.len()),
        };
        match name {
            b"data" => return self.add_data(place, start),
            b"event" => self.event = self.slot(place, start),
            // One with a NUL is ignored.
            b"id" if memchr(0, &line[start..]).is_none() => {
                self.next_id = Some(self.slot(place, start));
            }
            b"retry" => {
                if let Some(time) = reconnection_time(&line[start..]) {
                    self.retry = Some(time);
                }
            }
            // A comment has an empty name; others are not known.
            _ => {}
        }
        Ok(())
    }

    /// What stands in a line from `start` on.
    fn slot(&self, place: &Place, start: usize) -> Slot {
        match place {
            Place::Here(range) => Slot::Here(range.start + start..range.end),
            Place::Joined => Slot::Kept(self.lines.of(place).slice(start..)),
        }
    }

    fn add_data(&mut self, place: &Place, start: usize) -> Result<(), TooLong> {
        let more = self.lines.bytes(place).len() - start;
        let here = match &self.data {
            Slot::None => {
                self.data = self.slot(place, start);
                return self.check(more);
            }
            Slot::Joined => self.joined.len(),
            slot => slot.text(self.lines.piece()).bytes.len(),
        };
        self.check(here + 1 + more)?;
        if !matches!(self.data, Slot::Joined) {
            let first = std::mem::replace(&mut self.data, Slot::Joined);
            self.joined.extend_from_slice(first.text(self.lines.piece()).bytes);
        }
        self.joined.extend_from_slice(b"\n");
        self.joined.extend_from_slice(&self.lines.bytes(place)[start..]);
        Ok(())
    }

    fn check(&self, len: usize) -> Result<(), TooLong> {
        match len <= self.limits.event {
            true => Ok(()),
            false => Err(TooLong::Event { limit: self.limits.event }),
        }
    }
}

impl fmt::Debug for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser")
            .field("last_event_id", &self.last_event_id())
            .field("retry", &self.retry)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Milliseconds, when there is nothing but digits. More than can be counted are as many as can.
fn reconnection_time(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(Duration::from_millis(value.iter().fold(0, add)))
}
