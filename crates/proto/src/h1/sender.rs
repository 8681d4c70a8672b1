//! The sending half: one message's head, body and trailers, framed.

use bytes::Bytes;

use super::chunked::write_size;
use super::encode::last_chunk;
use super::outbox::Outbox;
use crate::head::forbidden_in_trailers;
use crate::{ApiMisuse, Fields};

/// How far a request body is (see [`Client::upload`](super::Client::upload)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Upload {
    /// No exchange is open.
    Idle,
    /// More body is owed, but not before the peer says `100 Continue` or the wait is over.
    Held,
    /// More body is owed, and welcome.
    Open,
    /// The message is whole; bytes of it may still wait to be written.
    Complete,
    /// The body will not be sent any more.
    Withdrawn,
}

/// What the body being sent still owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
    /// Ends with the connection (responses to HTTP/1.0 only).
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Body(Body),
    Complete,
    Withdrawn,
}

impl State {
    fn start(body: Body) -> Self {
        match body {
            Body::Length(0) => Self::Complete,
            body => Self::Body(body),
        }
    }

    fn after_data(self, len: u64) -> Result<Self, ApiMisuse> {
        match self {
            Self::Idle => Err(ApiMisuse::NoExchange),
            Self::Complete => Err(ApiMisuse::BodyOver),
            Self::Withdrawn => Err(ApiMisuse::BodyWithdrawn),
            Self::Body(Body::Length(left)) => left
                .checked_sub(len)
                .map(|left| Self::start(Body::Length(left)))
                .ok_or(ApiMisuse::BodyTooLong),
            Self::Body(Body::Chunked | Body::UntilClose) => Ok(self),
        }
    }
}

/// One message at a time, one after the other.
#[derive(Debug)]
pub(super) struct Sender {
    state: State,
    pub(super) out: Outbox,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self { state: State::Idle, out: Outbox::default() }
    }

    /// Queues a head. `hold` keeps the body back until [`Self::release`].
    pub(super) fn head(&mut self, body: Body, hold: bool, write: impl FnOnce(&mut Vec<u8>)) {
        self.state = State::start(body);
        self.out.head(hold, write);
    }

    pub(super) fn data(&mut self, data: Bytes) -> Result<(), ApiMisuse> {
        if data.is_empty() && matches!(self.state, State::Body(_) | State::Complete) {
            // A chunk of size 0 would end the body.
            return Ok(());
        }
        let next = self.state.after_data(data.len() as u64)?;
        if self.state == State::Body(Body::Chunked) {
            self.out.text(|text| write_size(text, data.len()));
            self.out.data(data);
            self.out.text(|text| text.extend_from_slice(b"\r\n"));
        } else {
            self.out.data(data);
        }
        self.state = next;
        Ok(())
    }

    pub(super) fn end(&mut self, trailers: Option<&Fields>) -> Result<(), ApiMisuse> {
        let chunked = self.state == State::Body(Body::Chunked);
        match self.state {
            State::Idle => return Err(ApiMisuse::NoExchange),
            State::Withdrawn => return Err(ApiMisuse::BodyWithdrawn),
            State::Body(Body::Length(_)) => return Err(ApiMisuse::BodyTooShort),
            State::Body(_) | State::Complete => {}
        }
        if let Some(trailers) = trailers {
            if !chunked {
                return Err(ApiMisuse::TrailersNeedChunked);
            }
            if trailers.raw().any(|(name, _)| forbidden_in_trailers(name)) {
                return Err(ApiMisuse::ForbiddenTrailer);
            }
        }
        if chunked {
            self.out.text(|text| last_chunk(text, trailers));
        }
        self.state = State::Complete;
        Ok(())
    }

    /// Forgets the last message: the next head opens another.
    pub(super) fn restart(&mut self) {
        self.state = State::Idle;
    }

    /// Lets a held body go.
    pub(super) fn release(&mut self) {
        self.out.release();
    }

    /// Drops what was not written of the body, for good. A body that was written whole stays so.
    pub(super) fn withdraw(&mut self) {
        let owed = matches!(self.state, State::Body(_));
        if owed || (self.state == State::Complete && self.out.body_pending()) {
            self.out.keep_head();
            self.state = State::Withdrawn;
        }
    }

    /// Whether the message is whole and written.
    pub(super) fn is_flushed(&self) -> bool {
        self.state == State::Complete && self.out.pending() == 0
    }

    /// Whether the message is whole, written or not.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// How far the body is.
    pub(super) fn upload(&self) -> Upload {
        match self.state {
            State::Idle => Upload::Idle,
            State::Withdrawn => Upload::Withdrawn,
            _ if self.out.is_held() => Upload::Held,
            State::Body(_) => Upload::Open,
            State::Complete => Upload::Complete,
        }
    }
}
