//! One stream: two half-machines and what waits in each direction.

use std::collections::VecDeque;
use std::fmt;

use bytes::{Bytes, BytesMut};

use super::Code;
use super::flow::{RecvWindow, SendWindow};
use crate::{ApiMisuse, Error, Event, Fields, PeerMisbehaved, UnexpectedEof};

/// A stream of one connection. A copy that outlives its stream names no other: what is asked with it
/// is answered by [`StreamError::Misuse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream {
    pub(super) slot: u32,
    pub(super) id: u32,
}

impl Stream {
    /// Its place among the streams of the connection: a small number, which no other stream has that
    /// was not given up.
    #[must_use]
    pub fn index(self) -> usize {
        self.slot as usize
    }

    /// The identifier on the wire (RFC 9113 section 5.1.1).
    #[must_use]
    pub fn id(self) -> u32 {
        self.id
    }
}

/// Why a response will not come, or not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamError {
    /// The server did not process the request: it refused the stream (RFC 9113 section 8.7), or left
    /// it beyond the last stream of its GOAWAY (section 6.8). It can be repeated whatever it is.
    NotProcessed(Code),
    /// The server reset the stream.
    Reset(Code),
    /// The server's message was malformed or too large, and this side reset the stream. The
    /// connection goes on.
    Failed(Error),
    /// The connection failed.
    Connection(Error),
    /// The connection ended after the server's GOAWAY with this code, although the stream was among
    /// those it promised to serve.
    GoneAway(Code),
    /// The stream is not one of this connection's, or was given up.
    Misuse(ApiMisuse),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotProcessed(code) => write!(f, "the server did not process the request: {code}"),
            Self::Reset(code) => write!(f, "the server reset the stream {code}"),
            Self::Failed(_) => f.write_str("the stream was reset"),
            Self::Connection(_) => f.write_str("the connection failed"),
            Self::GoneAway(code) => write!(f, "the server ended the connection {code}"),
            Self::Misuse(_) => f.write_str("the stream is not open here"),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) | Self::Connection(error) => Some(error),
            Self::Misuse(misuse) => Some(misuse),
            Self::NotProcessed(_) | Self::Reset(_) | Self::GoneAway(_) => None,
        }
    }
}

/// How much of a request has left (see [`Client::sent`](super::Client::sent)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sent {
    /// Not one byte.
    Nothing,
    /// Some of it.
    Part,
    /// All of it, its end included.
    Whole,
}

/// What the request was, as far as the response depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Head,
    Connect,
    Other,
}

/// The sending half.
#[derive(Debug)]
pub(super) enum Send {
    /// More body may come from the caller.
    Open,
    /// The caller ended the body; some of it waits, and these trailers behind it.
    Finishing(Option<Box<Fields>>),
    /// END_STREAM is in the outbox, or on its way.
    Ended,
    /// Nothing more will be sent.
    Stopped,
}

/// The receiving half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recv {
    /// The final head has not come.
    Head { informational: u32 },
    /// So many bytes of body are owed, where the head told.
    Body { left: Option<u64> },
    /// END_STREAM came. `told`: [`Event::End`] was given out.
    Ended { told: bool },
    /// No more will come.
    Failed(StreamError),
}

impl Recv {
    /// Where a connection that ends now cuts the message off (RFC 9112 section 8 has the same terms).
    pub(super) fn cut_off(self) -> UnexpectedEof {
        match self {
            Self::Head { .. } => UnexpectedEof::BeforeHead,
            _ => UnexpectedEof::InBody,
        }
    }
}

/// Pieces below this are gathered into one when nobody reads: what a slice keeps alive would be
/// larger than itself.
const SMALL: usize = 4096;
/// How far pieces are gathered.
const GATHERED: usize = 32 * 1024;

/// The most room that is made on the word of a server alone.
const WHOLE_MAX: usize = 16 * 1024 * 1024;

/// What waits for the consumer.
#[derive(Debug)]
enum Queued {
    Event(Event),
    /// Small pieces of data, put together.
    Gathered(BytesMut),
}

impl Queued {
    fn weight(&self) -> usize {
        match self {
            Self::Gathered(data) => data.len(),
            Self::Event(event) => weight(event),
        }
    }

    fn data(&self) -> Option<&[u8]> {
        match self {
            Self::Gathered(data) => Some(data),
            Self::Event(Event::Data(data)) => Some(data),
            Self::Event(_) => None,
        }
    }
}

/// What an event holds in memory, about: for the limit on what is unread.
pub(super) fn weight(event: &Event) -> usize {
    let fields = |fields: &Fields| fields.text_len() + 32 * fields.len();
    match event {
        Event::Data(data) => data.len(),
        Event::Informational(head) | Event::Head(head) => fields(&head.fields),
        Event::Trailers(trailers) => fields(trailers),
        Event::End | Event::Upgraded(_) => 0,
    }
}

/// The place of a stream. It is used again, with its queues, when the stream is given up.
#[derive(Debug)]
pub(super) struct Slot {
    /// Zero while there is no stream.
    pub(super) id: u32,
    pub(super) asked: Asked,
    pub(super) send: Send,
    pub(super) recv: Recv,
    pub(super) send_window: SendWindow,
    pub(super) recv_window: RecvWindow,
    events: VecDeque<Queued>,
    /// What has come of a body that is wanted in one piece. Its consumer has taken it: it is not
    /// unread.
    whole: Option<BytesMut>,
    pub(super) outgoing: VecDeque<Bytes>,
    pub(super) outgoing_len: usize,
    /// What Content-Length of the request promised and is not queued yet.
    pub(super) owed: Option<u64>,
    /// Bytes of data among the events.
    pub(super) unread: usize,
    /// The head says how long the body is.
    pub(super) length_known: bool,
    /// Bytes of informational heads so far.
    pub(super) interim_bytes: u32,
    /// Where the request begins and ends, as places of the outbox.
    pub(super) begins_at: u64,
    pub(super) ends_at: u64,
    /// Where the last frame of its body ends.
    pub(super) framed_to: u64,
    /// Neither side will send more (RFC 9113 section 5.1: closed).
    pub(super) closed: bool,
    /// END_STREAM or RST_STREAM came.
    pub(super) peer_closed: bool,
    /// As its HEADERS frame said, if it did.
    pub(super) weight: u8,
    /// Stands in the list of whom to wake. Survives the stream, as does `ringed`: who takes the place
    /// is asked or woken once for nothing.
    pub(super) stirred: bool,
    /// Stands in the ring of those with data to send.
    pub(super) ringed: bool,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            id: 0,
            asked: Asked::Other,
            send: Send::Stopped,
            recv: Recv::Ended { told: true },
            send_window: SendWindow::new(0),
            recv_window: RecvWindow::new(0),
            events: VecDeque::new(),
            whole: None,
            outgoing: VecDeque::new(),
            outgoing_len: 0,
            owed: None,
            unread: 0,
            length_known: false,
            interim_bytes: 0,
            begins_at: 0,
            ends_at: u64::MAX,
            framed_to: 0,
            closed: true,
            peer_closed: true,
            weight: 0,
            stirred: false,
            ringed: false,
        }
    }

    /// Begins a stream on this place.
    pub(super) fn begin(&mut self, id: u32, asked: Asked, send: SendWindow, recv: RecvWindow) {
        self.id = id;
        self.asked = asked;
        self.send = Send::Open;
        self.recv = Recv::Head { informational: 0 };
        self.send_window = send;
        self.recv_window = recv;
        self.owed = None;
        self.unread = 0;
        self.length_known = false;
        self.interim_bytes = 0;
        self.ends_at = u64::MAX;
        self.framed_to = 0;
        self.closed = false;
        self.peer_closed = false;
    }

    /// Ends it; gives the weight of what was never read.
    pub(super) fn vacate(&mut self) -> usize {
        self.id = 0;
        self.closed = true;
        self.drop_outgoing();
        let unread = self.events.iter().map(Queued::weight).sum();
        self.events.clear();
        self.whole = None;
        // What a burst made of the queues need not stay for ever.
        self.events.shrink_to(16);
        unread
    }

    /// Queues an event other than data; gives its weight.
    pub(super) fn push(&mut self, event: Event) -> usize {
        let weight = weight(&event);
        self.events.push_back(Queued::Event(event));
        weight
    }

    /// Whether `len` more bytes would be copied to the last piece of data that waits.
    pub(super) fn gathers(&self, len: usize) -> bool {
        len < SMALL
            && match self.events.back() {
                Some(Queued::Gathered(data)) => data.len() + len <= GATHERED,
                Some(Queued::Event(Event::Data(data))) => data.len() + len <= GATHERED,
                _ => false,
            }
    }

    /// Adds to the last piece of data that waits.
    pub(super) fn gather(&mut self, piece: &[u8]) {
        self.unread += piece.len();
        match self.events.back_mut() {
            Some(Queued::Gathered(data)) => data.extend_from_slice(piece),
            Some(last @ Queued::Event(Event::Data(_))) => {
                let Queued::Event(Event::Data(first)) = &*last else { return };
                let mut data = BytesMut::with_capacity(2 * (first.len() + piece.len()));
                data.extend_from_slice(first);
                data.extend_from_slice(piece);
                *last = Queued::Gathered(data);
            }
            _ => self.push_data(Bytes::copy_from_slice(piece)),
        }
    }

    /// Queues a piece of data, which is not empty.
    pub(super) fn push_data(&mut self, data: Bytes) {
        self.unread += data.len();
        self.events.push_back(Queued::Event(Event::Data(data)));
    }

    /// Has what follows of a body of known length put into one piece, with what waits of it already.
    /// Gives the weight of that, which is not unread any more. `coming`: what is left of a DATA frame
    /// that has begun.
    pub(super) fn gather_whole(&mut self, coming: u32) -> usize {
        let (Recv::Body { left: Some(left) }, None) = (self.recv, &self.whole) else {
            return 0;
        };
        if !self.events.iter().all(|queued| queued.data().is_some()) {
            return 0;
        }
        let here = std::mem::take(&mut self.unread);
        let missing = usize::try_from(left + u64::from(coming)).unwrap_or(usize::MAX);
        let mut whole = BytesMut::with_capacity(here + missing.min(WHOLE_MAX));
        for queued in self.events.drain(..) {
            whole.extend_from_slice(queued.data().unwrap_or_default());
        }
        self.whole = Some(whole);
        here
    }

    /// Where data goes that is wanted in one piece.
    pub(super) fn whole(&mut self) -> Option<&mut BytesMut> {
        self.whole.as_mut()
    }

    /// What has come of a body that was wanted in one piece.
    pub(super) fn take_whole(&mut self) -> Option<Bytes> {
        let whole = self.whole.take()?;
        (!whole.is_empty()).then(|| whole.freeze())
    }

    /// Bytes of the body that were not given out, if the head told. `coming` as for
    /// [`gather_whole`](Self::gather_whole).
    pub(super) fn remaining(&self, coming: u32) -> Option<u64> {
        let here = self.unread + self.whole.as_ref().map_or(0, BytesMut::len);
        match self.recv {
            Recv::Body { left: Some(left) } => Some(left + u64::from(coming) + here as u64),
            Recv::Ended { .. } if self.length_known => Some(here as u64),
            _ => None,
        }
    }

    /// All that waits of a response that is whole, if that is data in one piece or nothing.
    pub(super) fn take_rest(&mut self) -> Option<Bytes> {
        let Recv::Ended { told: told @ false } = &mut self.recv else {
            return None;
        };
        let alone = self.events.len() < 2;
        if !alone || self.events.front().is_some_and(|queued| queued.data().is_none()) {
            return None;
        }
        *told = true;
        match self.pop() {
            Some(Event::Data(data)) => Some(data),
            _ => Some(Bytes::new()),
        }
    }

    /// The next event that waits, data taken off `unread`.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = match self.events.pop_front()? {
            Queued::Event(event) => event,
            Queued::Gathered(data) => Event::Data(data.freeze()),
        };
        if let Event::Data(data) = &event {
            self.unread -= data.len();
        }
        Some(event)
    }

    pub(super) fn drop_outgoing(&mut self) {
        self.outgoing.clear();
        self.outgoing.shrink_to(16);
        self.outgoing_len = 0;
    }

    /// Whether both halves are done (RFC 9113 section 5.1).
    pub(super) fn is_over(&self) -> bool {
        matches!(self.send, Send::Ended | Send::Stopped)
            && matches!(self.recv, Recv::Ended { .. } | Recv::Failed(_))
    }

    /// Takes a frame of the body off what is owed (RFC 9113 section 8.1.1).
    pub(super) fn count_body(&mut self, len: u32) -> Result<(), PeerMisbehaved> {
        match &mut self.recv {
            // Section 8.1: a message begins with its head.
            Recv::Head { .. } => Err(PeerMisbehaved::DataBeforeHead),
            Recv::Body { left: Some(left) } => {
                *left = left.checked_sub(len.into()).ok_or(PeerMisbehaved::BodyLengthMismatch)?;
                Ok(())
            }
            Recv::Body { left: None } | Recv::Ended { .. } | Recv::Failed(_) => Ok(()),
        }
    }

    /// Ends the receiving half at END_STREAM.
    pub(super) fn end_body(&mut self) -> Result<(), PeerMisbehaved> {
        match self.recv {
            Recv::Head { .. } => Err(PeerMisbehaved::DataBeforeHead),
            Recv::Body { left: Some(1..) } => Err(PeerMisbehaved::BodyLengthMismatch),
            _ => {
                self.recv = Recv::Ended { told: false };
                Ok(())
            }
        }
    }
}
