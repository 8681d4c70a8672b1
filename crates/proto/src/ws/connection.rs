//! One end of a connection: what is heard, what is said, and what has to be said in answer.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::timers::{Due, Timers};
use super::{
    Close, CloseCode, Limits, Masking, Message, OwnedMessage, Prepared, Reader, Role, Writer,
};
use crate::{ApiMisuse, Error, LimitExceeded};

/// How a connection behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What the peer may ask for.
    pub limits: Limits,
    /// After how long a silence the peer is asked whether it lives. Never unless set.
    pub ping_interval: Option<Duration>,
    /// How long it may take to answer, in any way. 20 s unless set.
    pub pong_wait: Duration,
    /// How long the closing handshake may take, the end of the transport included. 5 s unless set.
    pub close_wait: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            ping_interval: None,
            pong_wait: Duration::from_secs(20),
            close_wait: Duration::from_secs(5),
        }
    }
}

/// How far a connection is (RFC 6455 section 7.1).
///
/// ```text
///          send a close           the peer's close
///   Open --------------> Closing -----------------> Closed
///     \___ the peer's close: it is answered ________/
///     \___ a breach, a limit, a wait, an end without a close ___ Failed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Messages go both ways.
    Open,
    /// We sent a close: messages still come.
    Closing,
    /// Both sent one.
    Closed,
    /// A close that says why is queued if the peer can still be told.
    Failed(Error),
}

/// So many answers to pings may wait to be written; beyond it the latest is answered once they are
/// (RFC 6455 section 5.5.3 asks for no more).
const PONGS_AHEAD: u32 = 64;

/// A connection after its handshake: a [`Reader`] and a [`Writer`], and what ties them together.
/// Pings and closes are answered, and a peer that is silent for too long is given up.
///
/// After any call that changes it: [`poll`](Self::poll) until `None`, and
/// [`poll_transmit`](Self::poll_transmit) until it fills nothing.
///
/// ```
/// use mimus_proto::ws::{Close, CloseCode, Config, Connection, Message, Phase, Unmasked};
///
/// let mut server = Connection::new(Unmasked, Config::default());
/// server.recv(b"\x81\x85\0\0\0\0chirp\x88\x82\0\0\0\0\x03\xe8");
/// assert_eq!(server.poll()?, Some(Message::Text("chirp")));
/// let close = Close { code: CloseCode::NORMAL, reason: "" };
/// assert_eq!(server.poll()?, Some(Message::Close(Some(close))));
/// // The answer is queued.
/// assert_eq!((server.phase(), server.pending()), (Phase::Closed, 4));
/// # Ok::<(), mimus_proto::Error>(())
/// ```
#[derive(Debug)]
pub struct Connection<M> {
    reader: Reader,
    talk: Talk<M>,
    /// What was looked at was answered.
    answered: bool,
}

/// All but what is heard.
#[derive(Debug)]
struct Talk<M> {
    writer: Writer<M>,
    phase: Phase,
    timers: Timers,
    pongs: Pongs,
    eof: bool,
}

/// Answers to pings.
#[derive(Debug, Default)]
struct Pongs {
    /// So many were queued since the last time that all of them were written.
    ahead: u32,
    /// Where the last of them ends, counted from the connection's first byte.
    mark: u64,
    /// The latest ping that was not answered.
    owed: Option<Box<[u8]>>,
}

impl<M: Masking> Connection<M> {
    /// A connection whose handshake is done. How it masks says which end it is.
    #[must_use]
    pub fn new(masking: M, config: Config) -> Self {
        Self {
            reader: Reader::new(M::ROLE, config.limits),
            talk: Talk {
                writer: Writer::new(masking),
                phase: Phase::Open,
                timers: Timers::new(&config),
                pongs: Pongs::default(),
                eof: false,
            },
            answered: false,
        }
    }

    /// The same with permessage-deflate as it was agreed on.
    #[cfg(feature = "ws-deflate")]
    #[must_use]
    pub fn with_deflate(masking: M, config: Config, agreed: &super::deflate::Agreed) -> Self {
        let mut connection = Self::new(masking, config);
        connection.reader.set_inflate(agreed.inflate(M::ROLE));
        connection.talk.writer.set_deflate(agreed.deflate(M::ROLE));
        connection
    }
}

/// # What is heard
impl<M: Masking> Connection<M> {
    /// The buffer to read into: see [`Reader::recv_buf`].
    pub fn recv_buf(&mut self) -> &mut BytesMut {
        self.reader.recv_buf()
    }

    /// Takes bytes that came from the peer, by copy.
    pub fn recv(&mut self, bytes: &[u8]) {
        self.reader.recv(bytes);
    }

    /// Takes note that the peer closed its side of the transport. Behind what came, [`poll`](Self::poll)
    /// fails unless the last was a close frame.
    pub fn recv_eof(&mut self) {
        self.talk.eof = true;
        self.reader.recv_eof();
    }

    /// How many bytes are missing of the frame that has begun: see [`Reader::missing`].
    #[must_use]
    pub fn missing(&self) -> usize {
        self.reader.missing()
    }

    /// Whether the next thing the peer said is here: [`poll`](Self::poll) gives it, then. Pings and closes
    /// are answered by now. For callers that wait first and borrow then.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    #[inline]
    pub fn look(&mut self) -> Result<bool, Error> {
        match self.reader.glance() {
            Some(here) => Ok(here),
            None => self.look_closer(),
        }
    }

    fn look_closer(&mut self) -> Result<bool, Error> {
        match self.reader.look() {
            Ok(here) => {
                if here
                    && !self.answered
                    && let Some(control) = self.reader.found_control()
                {
                    self.talk.hear(&control);
                    self.answered = true;
                }
                Ok(here)
            }
            Err(error) => Err(self.talk.fail(error)),
        }
    }

    /// The next thing the peer said, lent; `None` until more bytes come. Pings and closes are answered
    /// by then: they are given out to be known, not to be acted on.
    ///
    /// # Errors
    /// [`Error`], and the same again on every later call. What to tell the peer is queued.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Message<'_>>, Error> {
        match self.reader.poll() {
            Ok(Some(message)) => {
                if !matches!(message, Message::Text(_) | Message::Binary(_))
                    && !std::mem::take(&mut self.answered)
                {
                    self.talk.hear(&message);
                }
                Ok(Some(message))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(self.talk.fail(error)),
        }
    }

    /// The same, owned: see [`Reader::poll_owned`].
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    #[inline]
    pub fn poll_owned(&mut self) -> Result<Option<OwnedMessage>, Error> {
        match self.reader.poll_owned() {
            Ok(Some(message)) => {
                if !matches!(message, OwnedMessage::Text(_) | OwnedMessage::Binary(_))
                    && !std::mem::take(&mut self.answered)
                {
                    self.talk.hear(&message.as_message());
                }
                Ok(Some(message))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(self.talk.fail(error)),
        }
    }
}

/// # What is said
impl<M: Masking> Connection<M> {
    /// Queues a message or a control frame: see [`Writer::send`]. A close begins the closing handshake.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<(), ApiMisuse> {
        self.talk.writer.send(message)?;
        if matches!(message, Message::Close(_)) {
            self.talk.phase = Phase::Closing;
        }
        Ok(())
    }

    /// Queues a message that may be kept: see [`Writer::send_owned`].
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_owned(&mut self, message: OwnedMessage) -> Result<(), ApiMisuse> {
        match message {
            OwnedMessage::Close(_) => self.send(message.as_message()),
            message => self.talk.writer.send_owned(message),
        }
    }

    /// Queues a piece of a text message: see [`Writer::send_text_piece`].
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_text_piece(&mut self, piece: &str, last: bool) -> Result<(), ApiMisuse> {
        self.talk.writer.send_text_piece(piece, last)
    }

    /// Queues a piece of a message of bytes: see [`Writer::send_binary_piece`].
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_binary_piece(&mut self, piece: &[u8], last: bool) -> Result<(), ApiMisuse> {
        self.talk.writer.send_binary_piece(piece, last)
    }

    /// Queues messages that were put into frames before: see [`Writer::send_prepared`].
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_prepared(&mut self, prepared: &Prepared) -> Result<(), ApiMisuse> {
        self.talk.writer.send_prepared(prepared)
    }

    /// Fills `slices` with the bytes to write next; says how many it filled. Zero when there are none.
    pub fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.talk.writer.poll_transmit(slices)
    }

    /// Takes note that the first `count` of those bytes were written.
    pub fn transmitted(&mut self, count: usize) {
        self.talk.writer.transmitted(count);
        if self.talk.pongs.owed.is_some() {
            self.talk.pay_pong();
        }
    }

    /// All bytes that wait to be written: the measure for back-pressure.
    #[must_use]
    #[inline]
    pub fn pending(&self) -> usize {
        self.talk.writer.pending()
    }
}

/// # Its life
impl<M: Masking> Connection<M> {
    /// How far it is.
    #[must_use]
    #[inline]
    pub fn phase(&self) -> Phase {
        self.talk.phase
    }

    /// Whether the transport is to be closed now: nothing waits to be written, and nothing more can be
    /// said. A client leaves the end to the server (RFC 6455 section 7.1.1) for as long as a close may
    /// take.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let talk = &self.talk;
        talk.writer.pending() == 0
            && match talk.phase {
                Phase::Open | Phase::Closing => false,
                Phase::Closed => M::ROLE == Role::Server || talk.eof || talk.timers.is_spent(),
                Phase::Failed(_) => true,
            }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout). Silence counts from the first call of this
    /// behind the last bytes, the time for a close from the first call behind the close.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        let received = self.reader.received();
        self.talk.timers.next(self.talk.phase, received, now)
    }

    /// Does what is due: asks whether the peer lives, or gives it up, which [`poll`](Self::poll) tells.
    pub fn handle_timeout(&mut self, now: Instant) {
        let received = self.reader.received();
        let failed = match self.talk.timers.due(self.talk.phase, received, now) {
            Due::Nothing => return,
            Due::Ping(payload) => {
                // Refused only behind a close, and then nothing is asked.
                let _closing = self.talk.writer.send(Message::Ping(&payload));
                return;
            }
            Due::NoPong => LimitExceeded::PongWait,
            Due::NoClose => LimitExceeded::CloseWait,
        };
        let error = self.talk.fail(failed.into());
        self.reader.give_up(error);
    }

    /// Gives up the room of empty buffers: for a connection that may be idle for long.
    pub fn shrink(&mut self) {
        self.reader.shrink();
        self.talk.writer.shrink();
    }
}

impl<M: Masking> Talk<M> {
    /// A control frame came.
    #[cold]
    fn hear(&mut self, message: &Message<'_>) {
        match *message {
            Message::Ping(payload) => {
                if self.phase == Phase::Open {
                    self.pongs.owed = Some(payload.into());
                    self.pay_pong();
                }
            }
            Message::Close(close) => self.hear_close(close),
            Message::Text(_) | Message::Binary(_) | Message::Pong(_) => {}
        }
    }

    /// Answers the latest ping, unless too many answers wait to be written.
    fn pay_pong(&mut self) {
        if self.writer.total() >= self.pongs.mark {
            self.pongs.ahead = 0;
        }
        if self.pongs.ahead == PONGS_AHEAD {
            return;
        }
        if let Some(payload) = self.pongs.owed.take()
            // Refused behind a close, where none is owed.
            && self.writer.send(Message::Pong(&payload)).is_ok()
        {
            self.pongs.ahead += 1;
            self.pongs.mark = self.writer.end();
        }
    }

    /// RFC 6455 section 5.5.1: a close is answered by one, with the code that it has.
    fn hear_close(&mut self, close: Option<Close<'_>>) {
        let answer = close.map(|close| Close { code: close.code, reason: "" });
        // Refused when ours was the first: then this is the answer.
        let _ours_was_first = self.writer.send(Message::Close(answer));
        self.phase = Phase::Closed;
    }

    /// RFC 6455 section 7.1.7: says why, if it can be said, and nothing more.
    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        if !matches!(self.phase, Phase::Failed(_)) {
            self.phase = Phase::Failed(error);
            if let Some(code) = CloseCode::of(error) {
                // Refused when a close was sent already.
                let _closing = self.writer.send(Message::Close(Some(Close { code, reason: "" })));
            }
        }
        error
    }
}
