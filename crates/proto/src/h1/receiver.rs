//! The receiving half: bytes in, one message's head, body and trailers out.

use bytes::{Buf, Bytes, BytesMut};

use super::Limits;
use super::chunked::{Decoder, Step};
use super::parse::{HeadParser, StartLine};
use crate::head::Control;
use crate::{Error, Event, Framing, UnexpectedEof};

/// Where in a message the receiver is.
#[derive(Debug, Clone, Copy)]
enum State {
    /// No message is expected.
    Idle,
    Head,
    Length(u64),
    Chunked(Decoder),
    Trailers,
    UntilClose,
    /// Whole, and not yet reported so.
    Ended,
    /// Another protocol's, and not yet reported so.
    Switched,
    Done,
    Upgraded,
    Failed(Error),
}

/// One message at a time, one after the other, off one buffer.
#[derive(Debug)]
pub(super) struct Receiver<L> {
    pub(super) buf: BytesMut,
    pub(super) limits: Limits,
    eof: bool,
    state: State,
    head: HeadParser<L>,
}

/// What the machine around the receiver has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Head,
    Body,
    Done,
    Upgraded,
    Failed(Error),
}

impl<L: StartLine> Receiver<L> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            buf: BytesMut::new(),
            limits,
            eof: false,
            state: State::Idle,
            head: HeadParser::new(),
        }
    }

    pub(super) fn eof(&mut self) {
        self.eof = true;
    }

    pub(super) fn is_eof(&self) -> bool {
        self.eof
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Idle => Phase::Idle,
            State::Head => Phase::Head,
            State::Done => Phase::Done,
            State::Upgraded => Phase::Upgraded,
            State::Failed(error) => Phase::Failed(error),
            State::Length(_)
            | State::Chunked(_)
            | State::Trailers
            | State::UntilClose
            | State::Ended
            | State::Switched => Phase::Body,
        }
    }

    /// Expects a message.
    pub(super) fn expect_head(&mut self) {
        self.state = State::Head;
    }

    /// Goes on with the body that the head announced.
    pub(super) fn expect_body(&mut self, framing: Framing) {
        self.state = match framing {
            Framing::None | Framing::Length(0) => State::Ended,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Decoder::new()),
            Framing::UntilClose => State::UntilClose,
            Framing::Upgrade => State::Switched,
        };
    }

    /// Refuses everything from here on.
    pub(super) fn fail(&mut self, error: impl Into<Error>) -> Error {
        let error = error.into();
        self.state = State::Failed(error);
        error
    }

    /// Whether the buffer holds the beginning of a head, or the parser has seen one.
    pub(super) fn head_begun(&self) -> bool {
        !self.buf.is_empty() || self.head.is_started()
    }

    /// The head, once it is whole, and what its fields control.
    pub(super) fn poll_head(&mut self) -> Result<Option<(L::Head, Control)>, Error> {
        match self.head.parse(&mut self.buf, &self.limits) {
            Ok(None) if self.eof => Err(self.fail(if self.head_begun() {
                UnexpectedEof::InHead
            } else {
                UnexpectedEof::BeforeHead
            })),
            Ok(head) => Ok(head),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// The next piece of the body, its trailers, or its end.
    pub(super) fn poll_body<H>(&mut self) -> Result<Option<Event<H>>, Error> {
        match self.state {
            State::Length(left) => self.poll_length(left),
            State::Chunked(decoder) => self.poll_chunked(decoder),
            State::Trailers => self.poll_trailers(),
            State::UntilClose => Ok(self.poll_until_close()),
            State::Ended => {
                self.state = State::Done;
                Ok(Some(Event::End))
            }
            State::Switched => {
                self.state = State::Upgraded;
                Ok(Some(Event::Upgraded(self.buf.split().freeze())))
            }
            State::Failed(error) => Err(error),
            State::Idle | State::Head | State::Done | State::Upgraded => Ok(None),
        }
    }

    fn poll_length<H>(&mut self, left: u64) -> Result<Option<Event<H>>, Error> {
        let take = usize::try_from(left).map_or(self.buf.len(), |left| left.min(self.buf.len()));
        if take == 0 {
            return self.need_more(UnexpectedEof::InBody);
        }
        self.state = match left - take as u64 {
            0 => State::Ended,
            left => State::Length(left),
        };
        Ok(Some(Event::Data(self.take(take))))
    }

    fn poll_chunked<H>(&mut self, mut decoder: Decoder) -> Result<Option<Event<H>>, Error> {
        let mut framing = 0;
        let step = loop {
            match decoder.step(&self.buf[framing..], &self.limits) {
                Ok(Step::Skip(len)) => framing += len,
                Ok(step) => break step,
                Err(error) => return Err(self.fail(error)),
            }
        };
        self.state = State::Chunked(decoder);
        self.buf.advance(framing);
        match step {
            Step::Data(len) => Ok(Some(Event::Data(self.take(len)))),
            Step::Trailers => {
                self.state = State::Trailers;
                self.poll_trailers()
            }
            Step::More | Step::Skip(_) => self.need_more(UnexpectedEof::InBody),
        }
    }

    fn poll_trailers<H>(&mut self) -> Result<Option<Event<H>>, Error> {
        let trailers = match self.head.section().trailers(&mut self.buf, &self.limits) {
            Ok(None) => return self.need_more(UnexpectedEof::InTrailers),
            Ok(Some(trailers)) => trailers,
            Err(error) => return Err(self.fail(error)),
        };
        self.state = State::Ended;
        if trailers.is_empty() { self.poll_body() } else { Ok(Some(Event::Trailers(trailers))) }
    }

    fn poll_until_close<H>(&mut self) -> Option<Event<H>> {
        if !self.buf.is_empty() {
            return Some(Event::Data(self.take(self.buf.len())));
        }
        if !self.eof {
            return None;
        }
        self.state = State::Done;
        Some(Event::End)
    }

    /// All of the body that is still to come, if its length is known and it is here. The message is
    /// over then, and no event tells so.
    pub(super) fn take_rest(&mut self) -> Option<Bytes> {
        let left = match self.state {
            State::Length(left) => usize::try_from(left).ok()?,
            State::Ended => 0,
            _ => return None,
        };
        if left > self.buf.len() {
            return None;
        }
        self.state = State::Done;
        Some(if left == 0 { Bytes::new() } else { self.take(left) })
    }

    fn take(&mut self, len: usize) -> Bytes {
        self.buf.split_to(len).freeze()
    }

    fn need_more<H>(&mut self, place: UnexpectedEof) -> Result<Option<Event<H>>, Error> {
        if self.eof { Err(self.fail(place)) } else { Ok(None) }
    }

    /// Bytes of the body not yet handed out, where the head told.
    pub(super) fn remaining_body(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            State::Ended | State::Done => Some(0),
            _ => None,
        }
    }
}
