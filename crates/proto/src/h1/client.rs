//! The client's end of an HTTP/1.1 connection.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode, Version};

use super::encode::{Missing, request_head};
use super::parse::{StatusLine, is_target};
use super::receiver::{Phase, Receiver};
use super::sender::{Body, Sender, Upload};
use super::{DEFAULT_EXPECT_WAIT, Limits, NoReuse, Reuse};
use crate::head::{Control, Role};
use crate::{
    ApiMisuse, BodyLength, Error, Event, Fields, Framing, LimitExceeded, PeerMisbehaved,
    ResponseHead,
};

/// One connection, one exchange at a time.
///
/// After any call that changes it: [`poll_event`](Self::poll_event) until `None`, and
/// [`poll_transmit`](Self::poll_transmit) until it fills nothing.
#[derive(Debug)]
pub struct Client {
    send: Sender,
    recv: Receiver<StatusLine>,
    exchange: Exchange,
    expect_wait: Duration,
}

/// What the request said that decides how the response is read.
#[derive(Debug)]
struct Exchange {
    method: Method,
    offers_upgrade: bool,
    informational: usize,
    wait: Wait,
    /// Why this exchange is the last one.
    last: Option<NoReuse>,
}

/// The wait for `100 Continue` (RFC 9110 section 10.1.1).
#[derive(Debug, Clone, Copy)]
enum Wait {
    None,
    /// From when the head is written.
    Unarmed,
    Until(Instant),
}

impl Client {
    /// A machine for a fresh connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            send: Sender::new(),
            recv: Receiver::new(limits),
            exchange: Exchange {
                method: Method::GET,
                offers_upgrade: false,
                informational: 0,
                wait: Wait::None,
                last: None,
            },
            expect_wait: DEFAULT_EXPECT_WAIT,
        }
    }

    /// What the peer may ask for. Holds from the next exchange on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.recv.limits = limits;
    }

    /// How long a body waits for `100 Continue`, from when its head was written. Holds for the
    /// exchanges that begin after this call.
    pub fn set_expect_wait(&mut self, wait: Duration) {
        self.expect_wait = wait;
    }

    /// Begins an exchange: queues the head.
    ///
    /// The fields go out in the order and case given. The one that `body` needs (Content-Length or
    /// Transfer-Encoding) is added at the end unless the fields carry it; no other is invented. With
    /// `Expect: 100-continue` the body is held back: see [`upload`](Self::upload).
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_head(
        &mut self,
        method: &Method,
        target: &str,
        fields: &Fields,
        body: BodyLength,
    ) -> Result<(), ApiMisuse> {
        self.check_idle()?;
        // RFC 9112 section 3: whitespace or CR LF in the line would make two of one.
        if !is_target(target) {
            return Err(ApiMisuse::InvalidTarget);
        }
        let control = Control::read(fields);
        let missing = Missing::of(&control, body)?;
        let owed = match body {
            BodyLength::None => Body::Length(0),
            BodyLength::Known(length) => Body::Length(length),
            BodyLength::Chunked => Body::Chunked,
        };
        // RFC 9110 section 10.1.1: no expectation without content.
        if control.expect && owed == Body::Length(0) {
            return Err(ApiMisuse::ExpectWithoutBody);
        }
        self.send.head(owed, control.expect, |out| {
            request_head(out, method, target, fields, missing);
        });
        self.exchange = Exchange {
            method: method.clone(),
            offers_upgrade: control.upgrade,
            informational: 0,
            wait: if control.expect { Wait::Unarmed } else { Wait::None },
            last: control.close.then_some(NoReuse::CloseSent),
        };
        self.recv.expect_head();
        Ok(())
    }

    fn check_idle(&self) -> Result<(), ApiMisuse> {
        match self.reuse() {
            Reuse::Yes => Ok(()),
            Reuse::No(NoReuse::Unfinished) => Err(ApiMisuse::ExchangeOpen),
            Reuse::No(_) => Err(ApiMisuse::NotReusable),
        }
    }

    /// Queues a piece of the body, framed as announced. Large pieces are not copied.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_data(&mut self, data: Bytes) -> Result<(), ApiMisuse> {
        self.send.data(data)
    }

    /// Ends the body. Needed for a chunked one; for others it checks that the body is whole.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_end(&mut self, trailers: Option<&Fields>) -> Result<(), ApiMisuse> {
        self.send.end(trailers)
    }

    /// Gives the body up: what was not written of it never will be, and the connection ends with
    /// this exchange. Without effect on a body that was written whole.
    pub fn stop_body(&mut self) {
        self.send.withdraw();
        self.exchange.wait = Wait::None;
    }

    /// How far the request body is.
    #[must_use]
    pub fn upload(&self) -> Upload {
        self.send.upload()
    }

    /// Whether body bytes may be written now: not while `100 Continue` is awaited.
    #[must_use]
    pub fn body_allowed_now(&self) -> bool {
        matches!(self.upload(), Upload::Open | Upload::Complete)
    }

    /// Fills `slices` with the bytes to write next; says how many it filled. Zero when there are
    /// none.
    pub fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.send.out.poll_transmit(slices)
    }

    /// Takes note that the first `count` of those bytes were written.
    pub fn transmitted(&mut self, count: usize) {
        self.send.out.transmitted(count);
    }

    /// Whether bytes wait to be written, held ones not counted.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.send.out.writable() > 0
    }

    /// All bytes queued, held ones counted: the measure for back-pressure.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.send.out.pending()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout). Only [`Upload::Held`] has such a time,
    /// and only once its head was written: the first call from then on starts the wait.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if matches!(self.exchange.wait, Wait::Unarmed) && self.send.out.head_written() {
            // A wait beyond what the clock can say is one without end.
            self.exchange.wait = Wait::Until(now.checked_add(self.expect_wait)?);
        }
        match self.exchange.wait {
            Wait::Until(deadline) => Some(deadline),
            Wait::None | Wait::Unarmed => None,
        }
    }

    /// Lets a held body go when its wait is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout(now).is_some_and(|deadline| deadline <= now) {
            self.release_body();
        }
    }

    fn release_body(&mut self) {
        self.exchange.wait = Wait::None;
        self.send.release();
    }

    /// The buffer to read into: append to it. It may be moved or replaced as long as what it holds
    /// stays the same.
    ///
    /// Read only after `poll_event` gave `None`, so that it does not grow without bound; or, for a
    /// body that is to come in one piece, up to [`remaining_body`](Self::remaining_body).
    pub fn recv_buf(&mut self) -> &mut BytesMut {
        &mut self.recv.buf
    }

    /// Gives up the room of empty buffers, but for `keep` bytes of what the next head is written to:
    /// for a connection that may be idle for long.
    pub fn shrink(&mut self, keep: usize) {
        self.send.out.shrink(keep);
        if self.recv.buf.is_empty() {
            self.recv.buf = BytesMut::new();
        }
    }

    /// Takes bytes that came from the peer, by copy.
    pub fn recv(&mut self, bytes: &[u8]) {
        self.recv.buf.extend_from_slice(bytes);
    }

    /// Takes note that the peer closed its side, in order. For a connection that broke, tell the
    /// error to whoever waits instead: a body that ends with the connection would seem whole.
    pub fn recv_eof(&mut self) {
        self.recv.eof();
    }

    /// The next thing the server said.
    ///
    /// # Errors
    /// [`Error`], and the same again on every later call: the connection is of no more use.
    pub fn poll_event(&mut self) -> Result<Option<Event>, Error> {
        match self.recv.phase() {
            Phase::Head => self.poll_head(),
            Phase::Body => self.recv.poll_body(),
            Phase::Failed(error) => Err(error),
            // RFC 9112 section 9.2: not a response to anything.
            Phase::Idle if !self.recv.buf.is_empty() => {
                Err(self.recv.fail(PeerMisbehaved::UnsolicitedBytes))
            }
            // After the end the message was good: `reuse` tells of extra bytes.
            Phase::Idle | Phase::Done | Phase::Upgraded => Ok(None),
        }
    }

    fn poll_head(&mut self) -> Result<Option<Event>, Error> {
        // Nothing was asked yet, so this answers something else (RFC 9112 section 9.2).
        if !self.recv.buf.is_empty() && !self.send.out.head_begun() {
            return Err(self.recv.fail(PeerMisbehaved::UnsolicitedBytes));
        }
        let Some((head, control)) = self.recv.poll_head()? else {
            return Ok(None);
        };
        if head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS {
            return self.informational(head).map(Some);
        }
        self.final_head(head, &control).map(Some)
    }

    fn informational(&mut self, head: ResponseHead) -> Result<Event, Error> {
        self.exchange.informational += 1;
        if self.exchange.informational > self.recv.limits.informational {
            return Err(self.recv.fail(LimitExceeded::Informational));
        }
        if head.status == StatusCode::CONTINUE {
            self.release_body();
        }
        Ok(Event::Informational(head))
    }

    fn final_head(&mut self, head: ResponseHead, control: &Control) -> Result<Event, Error> {
        // RFC 9110 section 7.8: never switch to a protocol that was not asked for.
        if head.status == StatusCode::SWITCHING_PROTOCOLS && !self.exchange.offers_upgrade {
            return Err(self.recv.fail(PeerMisbehaved::UnofferedUpgrade));
        }
        let role = Role::Response { method: &self.exchange.method, status: head.status };
        let framing =
            Framing::of(role, head.version, control).map_err(|reason| self.recv.fail(reason))?;
        self.exchange.last = self.exchange.last.or(last_because(control, head.version, framing));
        // RFC 9110 section 10.1.1: a final status instead of 100 means that the body is not wanted.
        if self.send.out.is_held() {
            self.stop_body();
        }
        self.recv.expect_body(framing);
        Ok(Event::Head(head))
    }

    /// Whether the machine needs more bytes from the peer to go on.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        !self.recv.is_eof() && matches!(self.recv.phase(), Phase::Head | Phase::Body)
    }

    /// Whether the request is whole and written.
    #[must_use]
    pub fn send_done(&self) -> bool {
        self.send.is_flushed()
    }

    /// Whether the response was reported to its end.
    #[must_use]
    pub fn recv_done(&self) -> bool {
        matches!(self.recv.phase(), Phase::Done | Phase::Upgraded)
    }

    /// Whether both are done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.send_done() && self.recv_done()
    }

    /// Bytes of the response body not yet handed out, where Content-Length told.
    #[must_use]
    pub fn remaining_body(&self) -> Option<u64> {
        self.recv.remaining_body()
    }

    /// All of the body that is still to come, if its length is known and it is here: empty when there
    /// is none. The response is over then, as if polled to [`Event::End`]. Spares the events of a
    /// small exchange; `None` changes nothing.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        self.recv.take_rest()
    }

    /// Whether the connection can carry another exchange (RFC 9112 section 9.3). A lasting reason
    /// against it shows as soon as it is known, before the end of the exchange.
    #[must_use]
    pub fn reuse(&self) -> Reuse {
        self.hindrance().map_or(Reuse::Yes, Reuse::No)
    }

    fn hindrance(&self) -> Option<NoReuse> {
        match self.recv.phase() {
            Phase::Failed(_) => return Some(NoReuse::Failed),
            Phase::Upgraded => return Some(NoReuse::Upgraded),
            Phase::Head | Phase::Body => {
                return Some(self.exchange.last.unwrap_or(NoReuse::Unfinished));
            }
            Phase::Done if self.exchange.last.is_some() => return self.exchange.last,
            Phase::Done if !self.send.is_flushed() => return Some(NoReuse::UploadUnfinished),
            Phase::Done | Phase::Idle => {}
        }
        if !self.recv.buf.is_empty() {
            return Some(NoReuse::ExtraBytes);
        }
        self.recv.is_eof().then_some(NoReuse::PeerClosed)
    }
}

/// Why the response ends the connection, if it does (RFC 9112 section 9.3).
fn last_because(control: &Control, version: Version, framing: Framing) -> Option<NoReuse> {
    if control.close {
        Some(NoReuse::CloseReceived)
    } else if framing == Framing::UntilClose {
        Some(NoReuse::CloseDelimited)
    } else if !control.persistent(version) {
        Some(NoReuse::Http10)
    } else {
        None
    }
}
