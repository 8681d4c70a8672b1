//! One exchange on a connection that many share.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::StatusCode;
use mimus_net::{BoxFuture, Phase, Runtime};
use mimus_proto::{
    Event, Fields,
    h2::{self, Code, Stream, StreamError},
};
use sync_wrapper::SyncWrapper;

use super::{Link, state::State, tunnel::Tunnel};
use crate::{
    Body,
    conn::{Deadlines, Failure, Order},
    observe::ConnectionInfo,
    policy::retry::Sent,
    route::RouteRef,
};

/// How far the request is.
enum Sending {
    /// The body waits for the server's word, or for this long (RFC 9110 section 10.1.1).
    Held(Box<Body>, SyncWrapper<BoxFuture<'static, ()>>),
    /// The body has more to give.
    Body(Box<Body>),
    /// All of it is the machine's.
    Queued,
    /// The rest is not wanted.
    Stopped,
}

/// An exchange that owes an answer, or the rest of one.
pub(crate) struct OnStream {
    link: Arc<Link>,
    stream: Stream,
    sending: Sending,
    phase: Phase,
    deadlines: Deadlines,
    /// From when the present phase is timed, and when it is over.
    since: Instant,
    until: Option<Instant>,
    /// Something moved since `until` was set, or the phase is new.
    stirred: bool,
    /// The time of the head runs.
    awaited: bool,
    reused: bool,
    heard: bool,
    /// Nothing of it was processed, as the server says itself.
    refused: bool,
    /// The stream was given up.
    left: bool,
    /// What came with the head of a response that was over by then. The stream was given up.
    rest: Option<Bytes>,
    /// Bytes of the body that were not handed out, where the head told.
    remaining: Option<u64>,
    /// Bytes of it that were here when it was last waited for as a whole.
    gathered: usize,
    info: Arc<ConnectionInfo>,
}

impl fmt::Debug for OnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnStream")
            .field("stream", &self.stream)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl OnStream {
    /// Opens a stream in a place that was reserved, which it takes if there is no error. Nothing is
    /// written yet.
    pub(super) fn begin(link: &Arc<Link>, order: Order<'_>) -> Result<Box<Self>, Failure> {
        let Order { line, body, expect_wait, deadlines, now, .. } = order;
        // A tunnel's body is what its owner writes.
        let asked = line.in_http2(body.is_none() && line.protocol.is_none());
        let opened = link.with(|state| {
            check_size(state, &asked)?;
            let stream = state.machine.open(&asked).map_err(Failure::unopened)?;
            let reused = state.served;
            state.seat(stream, now);
            Ok((stream, reused, Arc::clone(&state.info)))
        });
        let (stream, reused, info) = opened?;
        let (sending, phase, limit) = match body {
            None => (Sending::Queued, Phase::Head, deadlines.head),
            Some(body) => {
                let held = expect_wait.filter(|_| line.fields.contains("expect"));
                let until = held.and_then(|wait| now.checked_add(wait));
                let sending = match until {
                    Some(until) => {
                        Sending::Held(body, SyncWrapper::new(link.runtime.sleep_until(until)))
                    }
                    None => Sending::Body(body),
                };
                (sending, Phase::Send, deadlines.write)
            }
        };
        Ok(Box::new(OnStream {
            link: Arc::clone(link),
            stream,
            sending,
            phase,
            since: now,
            until: deadlines.of(limit, now),
            deadlines,
            stirred: false,
            awaited: phase == Phase::Head,
            reused,
            heard: false,
            refused: false,
            left: false,
            rest: None,
            remaining: None,
            gathered: 0,
            info,
        }))
    }

    /// Whether `route` is a guest on the connection.
    pub(crate) fn is_anothers(&self, route: &RouteRef<'_>) -> bool {
        self.link.is_anothers(route)
    }

    pub(crate) fn info(&self) -> &Arc<ConnectionInfo> {
        &self.info
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn reused(&self) -> bool {
        self.reused
    }

    pub(crate) fn heard(&self) -> bool {
        self.heard
    }

    /// How much of the request the server may have acted on.
    pub(crate) fn sent(&self) -> Sent {
        if self.refused {
            return Sent::Nothing;
        }
        if self.left {
            return Sent::Whole;
        }
        match self.link.with(|state| state.machine.sent(self.stream)) {
            h2::Sent::Nothing => Sent::Nothing,
            h2::Sent::Part => Sent::Head,
            h2::Sent::Whole => Sent::Whole,
        }
    }

    pub(crate) fn remaining_body(&self) -> Option<u64> {
        self.remaining
    }

    /// Whether the request still goes out. A response may be over before.
    pub(crate) fn is_sending(&self) -> bool {
        match self.sending {
            Sending::Stopped => false,
            _ if self.left => false,
            _ => self.link.with(|state| state.machine.is_sending(self.stream)),
        }
    }

    /// Sends no more of the request: the answer is there and does not want it.
    pub(crate) fn stop_sending(&mut self) {
        if self.is_sending() {
            self.sending = Sending::Stopped;
        }
    }

    /// All of the body that is still to come, if it is here in one piece. The response is over then.
    pub(crate) fn take_rest(&mut self) -> Option<Bytes> {
        match self.left {
            true => self.rest.take(),
            false => self.link.with(|state| state.machine.take_rest(self.stream)),
        }
    }

    /// The next event of a response that was over when its head was read.
    fn event_of_rest(&mut self) -> Option<Event> {
        match self.rest.take()? {
            rest if rest.is_empty() => Some(Event::End),
            rest => {
                self.rest = Some(Bytes::new());
                Some(Event::Data(rest))
            }
        }
    }

    /// The next event that is already here.
    pub(crate) fn buffered_event(&mut self) -> Result<Option<Event>, Failure> {
        if self.left {
            return Ok(self.event_of_rest());
        }
        let (link, stream) = (Arc::clone(&self.link), self.stream);
        link.with(|state| self.take_event(state, stream))
    }

    /// The next event; until then whatever the request still has to say is said.
    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<Event, Failure>> {
        if let Some(event) = self.event_of_rest() {
            return Poll::Ready(Ok(event));
        }
        let stream = self.stream;
        self.poll_until(cx, runtime, |on, state| {
            let Some(event) = on.take_event(state, stream)? else {
                return Ok(None);
            };
            if matches!(event, Event::Head(_)) && !state.machine.is_sending(stream) {
                on.rest = state.machine.take_rest(stream);
            }
            match on.rest {
                None => state.stand_up(stream),
                Some(_) => {
                    on.left = true;
                    state.vacate(stream, Code::NO_ERROR, state.heard_at);
                }
            }
            state.flush();
            Ok(Some(event))
        })
    }

    /// Drives the connection, and sends what the request still has to say, until `look` finds what it
    /// looks for.
    fn poll_until<T>(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
        mut look: impl FnMut(&mut Self, &mut State) -> Result<Option<T>, Failure>,
    ) -> Poll<Result<T, Failure>> {
        let link = Arc::clone(&self.link);
        loop {
            self.upload(cx, runtime)?;
            let polled = link.with(|state| {
                loop {
                    if let Some(found) = look(self, state)? {
                        return Ok(Poll::Ready(Some(found)));
                    }
                    if self.poll_news(state, cx)?.is_pending() {
                        return Ok(Poll::Pending);
                    }
                    // What else there is to do is not done under the lock.
                    if !state.wakes.is_empty() || self.has_body() {
                        return Ok(Poll::Ready(None));
                    }
                }
            })?;
            match polled {
                Poll::Ready(Some(found)) => return Poll::Ready(Ok(found)),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether the body may have more to give.
    fn has_body(&self) -> bool {
        matches!(self.sending, Sending::Held(..) | Sending::Body(_))
    }

    /// Waits until the rest of a body of known length is here, which then is one piece, or no more
    /// comes. Does nothing about other bodies.
    pub(crate) fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        if self.left || self.remaining.is_none() {
            return Poll::Ready(Ok(()));
        }
        let stream = self.stream;
        self.poll_until(cx, runtime, |on, state| match state.machine.gather(stream) {
            Some(here) => {
                on.stirred |= std::mem::replace(&mut on.gathered, here) != here;
                Ok(None)
            }
            None => {
                state.stand_up(stream);
                state.flush();
                Ok(Some(()))
            }
        })
    }

    /// Sends the rest of the request, under a response that is over, or until the server has had
    /// enough.
    pub(crate) fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        let stream = self.stream;
        self.poll_until(cx, runtime, |on, state| {
            let over = matches!(on.sending, Sending::Stopped)
                || !state.machine.is_sending(stream)
                || state.is_over();
            if over {
                state.stand_up(stream);
            }
            if !over && !state.machine.is_written(stream) {
                state.await_written(stream);
            }
            Ok(over.then_some(()))
        })
    }

    /// Waits for news, or until the phase is over.
    fn poll_news(&mut self, state: &mut State, cx: &mut Context<'_>) -> Result<Poll<()>, Failure> {
        self.refresh_deadline()?;
        if state.is_expired(self.stream) {
            // The server may be gone, which others want to know.
            state.doubt(self.since);
            return Err(self.timed_out());
        }
        Ok(state.poll_news(cx, self.stream, self.until))
    }

    fn take_event(&mut self, state: &mut State, stream: Stream) -> Result<Option<Event>, Failure> {
        let event = match state.machine.poll_event(stream) {
            Ok(event) => event,
            Err(error) => return Err(self.failed(state, error)),
        };
        match &event {
            None => {}
            Some(Event::Head(_)) => {
                self.remaining = state.machine.remaining_body(stream);
                (self.phase, self.heard, self.stirred) = (Phase::Body, true, true);
                self.info = Arc::clone(&state.info);
                // RFC 9110 section 10.1.1: a final status instead of 100 means that the body is not
                // wanted.
                if matches!(self.sending, Sending::Held(..)) {
                    self.sending = Sending::Stopped;
                }
            }
            Some(Event::Informational(head)) => {
                (self.heard, self.stirred) = (true, true);
                if head.status == StatusCode::CONTINUE {
                    self.release();
                }
            }
            Some(Event::Data(data)) => {
                self.stirred = true;
                let len = data.len() as u64;
                self.remaining = self.remaining.map(|left| left.saturating_sub(len));
            }
            Some(_) => self.stirred = true,
        }
        Ok(event)
    }

    fn failed(&mut self, state: &mut State, error: StreamError) -> Failure {
        self.refused = matches!(error, StreamError::NotProcessed(_));
        match error {
            StreamError::NotProcessed(Code::REFUSED_STREAM) => state.refused(),
            // RFC 9113 section 7: nothing more is asked in this version.
            StreamError::Reset(Code::HTTP_1_1_REQUIRED) => state.retire(),
            _ => {}
        }
        match (error, state.io_error()) {
            (StreamError::Connection(_), Some(io)) => Failure::Io(self.phase, io),
            (StreamError::Connection(error) | StreamError::Failed(error), _) => {
                Failure::Proto(error)
            }
            (StreamError::Misuse(misuse), _) => Failure::Misuse(misuse),
            (error, _) => Failure::Stream(error),
        }
    }

    /// The body need not wait for the server's word any more.
    fn release(&mut self) {
        self.sending = match std::mem::replace(&mut self.sending, Sending::Queued) {
            Sending::Held(body, _) => Sending::Body(body),
            other => other,
        };
    }

    /// Takes more of the body into the machine while there is room. It is asked for outside of the
    /// lock: it may be anything, even a response on the same connection.
    fn upload(&mut self, cx: &mut Context<'_>, runtime: &dyn Runtime) -> Result<(), Failure> {
        if let Sending::Held(_, wait) = &mut self.sending
            && wait.get_mut().as_mut().poll(cx).is_ready()
        {
            self.release();
        }
        while let Sending::Body(body) = &mut self.sending {
            let stream = self.stream;
            let (wanted, room) = self.link.with(|state| {
                (state.machine.wants_body(stream), state.machine.capacity(stream) > 0)
            });
            if !wanted {
                self.sending = Sending::Stopped;
                return Ok(());
            }
            if !room {
                return Ok(());
            }
            match body.poll_next(cx, runtime) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(Ok(data))) => {
                    self.stirred = true;
                    let queued = self.link.with(|state| state.machine.send_data(stream, data));
                    queued.map_err(Failure::Misuse)?;
                }
                Poll::Ready(Some(Err(e))) => return Err(Failure::Upload(e)),
                Poll::Ready(None) => {
                    let trailers = body.take_trailers().map(|map| Fields::from(&map));
                    let queued =
                        self.link.with(|state| state.machine.send_end(stream, trailers.as_ref()));
                    queued.map_err(Failure::Misuse)?;
                    self.sending = Sending::Queued;
                    self.stirred = true;
                    if self.phase == Phase::Send {
                        self.phase = Phase::Head;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sets the end of the phase anew, if there is reason to.
    fn refresh_deadline(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.stirred) {
            return Ok(());
        }
        let now = Instant::now();
        if self.deadlines.total.is_some_and(|total| total <= now) {
            return Err(self.timed_out());
        }
        match self.phase {
            // It has its time from when the request was sent, whatever comes before it.
            Phase::Head if self.awaited => {}
            Phase::Head => {
                (self.awaited, self.since) = (true, now);
                self.until = self.deadlines.of(self.deadlines.head, now);
            }
            phase => {
                self.since = now;
                self.until = self.deadlines.of(self.deadlines.limit(phase), now);
            }
        }
        Ok(())
    }

    fn timed_out(&self) -> Failure {
        Failure::Io(self.phase, self.deadlines.passed(self.phase))
    }

    /// The response is over, and so is the request, or what is left of it is not wanted.
    pub(crate) fn finish(mut self, now: Instant) {
        if !self.left {
            self.leave(Code::NO_ERROR, now);
        }
    }

    /// The stream itself, after [`Event::Upgraded`].
    pub(crate) fn into_tunnel(mut self) -> Tunnel {
        self.left = true;
        let (link, stream) = (Arc::clone(&self.link), self.stream);
        link.with(|state| state.stand_up(stream));
        Tunnel::new(link, stream, Arc::clone(&self.info))
    }

    fn leave(&mut self, code: Code, now: Instant) {
        self.left = true;
        self.link.leave(self.stream, code, now);
    }
}

/// Holds a request to SETTINGS_MAX_HEADER_LIST_SIZE, once it came. It is advice (RFC 9113 section
/// 10.5.1), which browsers do not take; but what a server does to who ignores it may be done to all
/// exchanges of the connection, and never says why.
fn check_size(state: &State, line: &h2::RequestLine<'_>) -> Result<(), Failure> {
    let Some(most) = state.machine.peer_settings().and_then(|peer| peer.max_header_list_size)
    else {
        return Ok(());
    };
    let size = line.list_size();
    if size > most as usize { Err(Failure::TooLarge(size, most)) } else { Ok(()) }
}

impl Drop for OnStream {
    fn drop(&mut self) {
        if !self.left {
            self.leave(Code::CANCEL, Instant::now());
        }
    }
}
