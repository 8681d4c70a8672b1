//! The server's end of an HTTP/1.1 connection: the counterpart that tests and tools talk to.

use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode, Version};

use super::encode::{Missing, response_head};
use super::parse::RequestLine;
use super::receiver::{Phase, Receiver};
use super::sender::{Body, Sender};
use super::{Limits, NoReuse, Reuse};
use crate::head::{Control, Role, bodiless};
use crate::{ApiMisuse, BodyLength, Error, Event, Fields, Framing, PeerMisbehaved, RequestHead};

/// One connection, one exchange at a time; pipelined requests wait in the buffer.
///
/// After any call that changes it: [`poll_event`](Self::poll_event) until `None`, and
/// [`poll_transmit`](Self::poll_transmit) until it fills nothing.
#[derive(Debug)]
pub struct Server {
    send: Sender,
    recv: Receiver<RequestLine>,
    exchange: Option<Exchange>,
    /// Why no request follows the one at hand.
    last: Option<NoReuse>,
}

/// What the request said that decides how it is answered.
#[derive(Debug)]
struct Exchange {
    method: Method,
    version: Version,
    offers_upgrade: bool,
    expects_continue: bool,
    answered: bool,
    /// The response made the connection another protocol's.
    switched: bool,
}

impl Server {
    /// A machine for a fresh connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let mut recv = Receiver::new(limits);
        recv.expect_head();
        Self { send: Sender::new(), recv, exchange: None, last: None }
    }

    /// The buffer to read into: append to it, and do nothing else.
    pub fn recv_buf(&mut self) -> &mut BytesMut {
        &mut self.recv.buf
    }

    /// Takes bytes that came from the peer, by copy.
    pub fn recv(&mut self, bytes: &[u8]) {
        self.recv.buf.extend_from_slice(bytes);
    }

    /// Takes note that the peer closed its side.
    pub fn recv_eof(&mut self) {
        self.recv.eof();
    }

    /// The next thing the client said. The head of a pipelined request comes when the response
    /// before it is whole.
    ///
    /// # Errors
    /// [`Error`], and the same again on every later call.
    pub fn poll_event(&mut self) -> Result<Option<Event<RequestHead>>, Error> {
        if self.recv.phase() == Phase::Done {
            self.after_request();
        }
        match self.recv.phase() {
            // A close between two requests is in order.
            Phase::Head if !self.recv.head_begun() => Ok(None),
            Phase::Head => self.poll_head(),
            Phase::Body => self.recv.poll_body(),
            Phase::Failed(error) => Err(error),
            Phase::Idle | Phase::Done | Phase::Upgraded => Ok(None),
        }
    }

    /// The request is over: what follows depends on the response.
    fn after_request(&mut self) {
        if self.exchange.as_ref().is_some_and(|exchange| exchange.switched) {
            self.recv.expect_body(Framing::Upgrade);
        } else if self.send.is_complete() && self.last.is_none() {
            self.exchange = None;
            self.recv.expect_head();
        }
    }

    fn poll_head(&mut self) -> Result<Option<Event<RequestHead>>, Error> {
        let Some((head, control)) = self.recv.poll_head()? else {
            return Ok(None);
        };
        let framing = Framing::of(Role::Request, head.version, &control)
            .map_err(|reason| self.recv.fail(reason))?;
        // RFC 9112 section 3.2: exactly one Host in HTTP/1.1, at most one before.
        if control.hosts > 1 || (control.hosts == 0 && head.version >= Version::HTTP_11) {
            return Err(self.recv.fail(PeerMisbehaved::BadHost));
        }
        if !control.persistent(head.version) {
            let http10 = !control.close;
            self.last = Some(if http10 { NoReuse::Http10 } else { NoReuse::CloseReceived });
        }
        self.exchange = Some(Exchange {
            method: head.method.clone(),
            version: head.version,
            offers_upgrade: control.upgrade,
            // RFC 9110 section 10.1.1: an HTTP/1.0 client cannot mean it.
            expects_continue: control.expect && head.version >= Version::HTTP_11,
            answered: false,
            switched: false,
        });
        self.send.restart();
        self.recv.expect_body(framing);
        Ok(Some(Event::Head(head)))
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.expects_continue)
    }

    /// Queues an interim response: 1xx, but not 101.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_informational(
        &mut self,
        status: StatusCode,
        fields: &Fields,
    ) -> Result<(), ApiMisuse> {
        let exchange = self.exchange.as_mut().ok_or(ApiMisuse::NoExchange)?;
        if exchange.answered {
            return Err(ApiMisuse::HeadAlreadySent);
        }
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ApiMisuse::WrongStatusClass);
        }
        exchange.expects_continue &= status != StatusCode::CONTINUE;
        self.send.out.text(|out| response_head(out, status, fields, Missing::Nothing));
        Ok(())
    }

    /// Queues the final head, or a 101.
    ///
    /// The fields go out in the order and case given. The one that `body` needs is added at the end
    /// unless the fields carry it; [`BodyLength::None`] adds `Content-Length: 0` where a client would
    /// otherwise read until the close. To HTTP/1.0 a chunked body goes out unframed and ends with the
    /// connection. A head that never has a body (to HEAD, 204, 304) may announce one.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_head(
        &mut self,
        status: StatusCode,
        fields: &Fields,
        body: BodyLength,
    ) -> Result<(), ApiMisuse> {
        let exchange = self.exchange.as_mut().ok_or(ApiMisuse::NoExchange)?;
        if exchange.answered {
            return Err(ApiMisuse::HeadAlreadySent);
        }
        let switched = match status {
            StatusCode::SWITCHING_PROTOCOLS if exchange.offers_upgrade => true,
            status if status.is_informational() => return Err(ApiMisuse::WrongStatusClass),
            status => exchange.method == Method::CONNECT && status.is_success(),
        };
        let control = Control::read(fields);
        let wordless = switched || status == StatusCode::NO_CONTENT;
        let silent = wordless || bodiless(status) || exchange.method == Method::HEAD;
        let unframed = body == BodyLength::Chunked && exchange.version < Version::HTTP_11;
        let missing = match body {
            // RFC 9110 section 8.6: no Content-Length in 1xx and 204, nor in 2xx to CONNECT.
            _ if unframed || wordless => Missing::of(&control, BodyLength::None)?,
            // What a HEAD or a 304 says of a length is the caller's to know.
            BodyLength::None if silent => Missing::Nothing,
            BodyLength::None => Missing::of(&control, BodyLength::Known(0))?,
            body => Missing::of(&control, body)?,
        };
        let owed = match body {
            _ if silent => Body::Length(0),
            BodyLength::None => Body::Length(0),
            BodyLength::Known(length) => Body::Length(length),
            BodyLength::Chunked if unframed => Body::UntilClose,
            BodyLength::Chunked => Body::Chunked,
        };
        exchange.answered = true;
        exchange.switched = switched;
        if control.close {
            self.last = self.last.or(Some(NoReuse::CloseSent));
        } else if owed == Body::UntilClose {
            self.last = self.last.or(Some(NoReuse::CloseDelimited));
        }
        self.send.head(owed, false, |out| {
            response_head(out, status, fields, missing);
        });
        Ok(())
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

    /// Fills `slices` with the bytes to write next; says how many it filled.
    pub fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.send.out.poll_transmit(slices)
    }

    /// Takes note that the first `count` of those bytes were written.
    pub fn transmitted(&mut self, count: usize) {
        self.send.out.transmitted(count);
    }

    /// Whether bytes wait to be written.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.send.out.writable() > 0
    }

    /// Whether the response is whole and written.
    #[must_use]
    pub fn send_done(&self) -> bool {
        self.send.is_flushed()
    }

    /// Whether the machine needs more bytes from the peer to go on.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        !self.recv.is_eof() && matches!(self.recv.phase(), Phase::Head | Phase::Body)
    }

    /// Whether another request may follow (RFC 9112 section 9.3). Close when it says no for a
    /// lasting reason and the response is written.
    #[must_use]
    pub fn reuse(&self) -> Reuse {
        let hindrance = match self.recv.phase() {
            Phase::Failed(_) => Some(NoReuse::Failed),
            Phase::Upgraded => Some(NoReuse::Upgraded),
            _ if self.last.is_some() => self.last,
            Phase::Head if self.exchange.is_none() => {
                self.recv.is_eof().then_some(NoReuse::PeerClosed)
            }
            Phase::Done if self.send.is_flushed() => {
                self.recv.is_eof().then_some(NoReuse::PeerClosed)
            }
            Phase::Idle | Phase::Head | Phase::Body | Phase::Done => Some(NoReuse::Unfinished),
        };
        hindrance.map_or(Reuse::Yes, Reuse::No)
    }
}
