//! Streams that are neither asked nor answered in one go.

use super::frame::Code;
use super::head::Asked;
use crate::body::Sink;

/// What a client may send unasked, on a stream and on the connection: more than fits between two ends
/// of one machine.
pub(crate) const WINDOW: u32 = 16 << 20;

/// A request under way.
pub(crate) struct Stream {
    pub(crate) id: u32,
    /// Bytes that it may be sent; below zero after the client has changed its mind (RFC 9113
    /// section 6.9.2).
    pub(crate) window: i64,
    pub(crate) phase: Phase,
}

pub(crate) enum Phase {
    /// The body is to come.
    Receiving { asked: Asked, received: Received, credit: Credit },
    /// A body is sent as windows permit.
    Sending { body: Body, trailers: bool },
    /// Pieces are sent by the clock.
    Pacing(Pacing),
}

/// What came of a request body.
pub(crate) enum Received {
    Body(Sink),
    /// All of it: it is short, and sent back.
    Message(Vec<u8>),
}

/// What is left of an answer's body.
pub(crate) enum Body {
    Page(u64),
    Own { bytes: Vec<u8>, sent: usize },
}

pub(crate) struct Pacing {
    /// Pieces to come.
    pub(crate) left: u64,
    pub(crate) size: u64,
    pub(crate) every_ns: u64,
    /// When the next is due.
    pub(crate) due: u64,
    /// What of the present one is unsent.
    pub(crate) rest: u64,
}

/// Bytes that came and were not given back to a window of the client's.
#[derive(Debug, Default)]
pub(crate) struct Credit(u32);

impl Credit {
    /// So many came: what to give back now, if it is worth a frame.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Option<u32>, Code> {
        let bytes = u32::try_from(bytes).map_err(|_| Code::FlowControl)?;
        self.0 = self.0.saturating_add(bytes);
        if self.0 > WINDOW {
            return Err(Code::FlowControl);
        }
        Ok((self.0 >= WINDOW / 2).then(|| std::mem::take(&mut self.0)))
    }
}

impl Body {
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Page(left) => *left,
            Self::Own { bytes, sent } => (bytes.len() - sent) as u64,
        }
    }
}

impl Pacing {
    /// When the next piece is due, if none is under way.
    pub(crate) fn waits(&self) -> Option<u64> {
        (self.rest == 0 && self.left > 0).then_some(self.due)
    }

    /// Begins the next piece if it is time.
    pub(crate) fn begin(&mut self, now: u64) {
        if self.waits().is_some_and(|due| due <= now) {
            self.left -= 1;
            self.rest = self.size;
            self.due = self.due.saturating_add(self.every_ns);
        }
    }
}

/// The streams under way, by ascending id: as they are opened.
#[derive(Default)]
pub(crate) struct Streams(Vec<Stream>);

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.0.iter_mut()
    }

    pub(crate) fn at(&mut self, place: usize) -> Option<&mut Stream> {
        self.0.get_mut(place)
    }

    fn place(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |stream| stream.id)
    }

    pub(crate) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id).ok()?;
        self.0.get_mut(place)
    }

    pub(crate) fn add(&mut self, stream: Stream) {
        let (Ok(place) | Err(place)) = self.place(stream.id);
        self.0.insert(place, stream);
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        Some(self.0.remove(self.place(id).ok()?))
    }

    /// The earliest time that a paced answer waits for.
    pub(crate) fn due(&self) -> Option<u64> {
        let waits = |stream: &Stream| match &stream.phase {
            Phase::Pacing(pacing) => pacing.waits(),
            _ => None,
        };
        self.0.iter().filter_map(waits).min()
    }
}
