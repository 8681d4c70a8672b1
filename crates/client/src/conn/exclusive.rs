//! A connection that carries one exchange at a time, driven by whoever waits for it.

use std::{
    fmt,
    io::{self, IoSlice},
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use http::Method;
use mimus_net::{BoxFuture, Phase, Runtime, Wait};
use mimus_proto::{
    ApiMisuse, BodyLength, Event, Fields,
    h1::{self, Upload},
    h2,
};
use sync_wrapper::SyncWrapper;

use super::{Conn, room::Room};
use crate::{Body, BoxError, Error, Kind, policy::retry::Sent};

/// Queued output beyond which no more of an upload is taken in.
const OUTPUT_HIGH: usize = 256 * 1024;

/// How often an upload is topped up and written before the answer is looked for.
const SEND_ROUNDS: usize = 16;

/// The most slices of one gathered write.
const SLICES: usize = 16;

/// Room for a request's head that an idle connection keeps.
const KEEP_OUTPUT: usize = 1024;

/// Until when each phase of an exchange may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    pub(crate) total: Option<Instant>,
    pub(crate) head: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) write: Option<Duration>,
}

impl Deadlines {
    /// How long a phase may last, or nothing happen in it.
    pub(crate) fn limit(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Head => self.head,
            Phase::Send => self.write,
            _ => self.idle,
        }
    }

    /// The end of a phase that began at `now` and may last `limit`.
    pub(crate) fn of(&self, limit: Option<Duration>, now: Instant) -> Option<Instant> {
        // A limit beyond what the clock can say is none.
        match (limit.and_then(|l| now.checked_add(l)), self.total) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Tells which of the limits it was that passed in `phase`.
    pub(crate) fn passed(&self, phase: Phase) -> io::Error {
        let over = self.total.is_some_and(|total| total <= Instant::now());
        let (what, limit) = match phase {
            _ if over => ("the time for the whole call is over", None),
            Phase::Head => ("no response head came within", self.limit(phase)),
            Phase::Send => ("the peer took nothing within", self.limit(phase)),
            _ => ("nothing came within", self.limit(phase)),
        };
        let text = match limit {
            Some(limit) => format!("{what} {limit:?}"),
            None => what.to_owned(),
        };
        io::Error::new(io::ErrorKind::TimedOut, text)
    }
}

/// Why an exchange failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection failed in this phase.
    Io(Phase, io::Error),
    /// The peer broke the protocol, exceeded a limit, or ended too early.
    Proto(mimus_proto::Error),
    /// The server gave up one stream of many, or the connection after it said so.
    Stream(h2::StreamError),
    /// The request cannot be written.
    Misuse(ApiMisuse),
    /// The fields take so many bytes, and the server wants so many at most.
    TooLarge(usize, u32),
    /// The body to be sent failed.
    Upload(BoxError),
    /// What a responder gave in the place of an answer, or made of one.
    Responder(Error),
}

impl Failure {
    /// A stream could not be opened. When the server takes no more of them, it is as if it had refused
    /// this one.
    pub(crate) fn unopened(misuse: ApiMisuse) -> Self {
        match misuse {
            ApiMisuse::CannotOpen => {
                Failure::Stream(h2::StreamError::NotProcessed(h2::Code::REFUSED_STREAM))
            }
            other => Failure::Misuse(other),
        }
    }

    pub(crate) fn into_error(self, phase: Phase) -> Error {
        match self {
            Failure::Io(phase, e) => Error::io(phase, e),
            Failure::Proto(e) => Error::from(e).in_phase(phase),
            Failure::Stream(e) => Error::from(e).in_phase(phase),
            Failure::Misuse(e) => Error::from(e),
            Failure::TooLarge(size, most) => Error::request(format!(
                "the request's fields are {size} bytes, of which the server takes {most} at most"
            )),
            Failure::Upload(e) => Error::new(Kind::Upload, "the request body failed")
                .in_phase(Phase::Send)
                .caused_by(e),
            Failure::Responder(e) => e,
        }
    }
}

/// The head of a request, as it will be written.
#[derive(Debug)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a Method,
    /// What stands on the line in HTTP/1.1, and in `:path`.
    pub(crate) target: &'a str,
    pub(crate) scheme: &'a str,
    pub(crate) authority: &'a str,
    /// `:protocol` of an extended CONNECT, which HTTP/2 alone has.
    pub(crate) protocol: Option<&'a str>,
    /// With what `length` calls for among them.
    pub(crate) fields: &'a Fields,
    /// What HTTP/2 says of its weight, if it says something.
    pub(crate) weight: Option<u8>,
    pub(crate) length: BodyLength,
}

impl<'a> RequestLine<'a> {
    /// As HTTP/2 has it; `end`: nothing follows it.
    pub(crate) fn in_http2(&self, end: bool) -> h2::RequestLine<'a> {
        h2::RequestLine {
            method: self.method,
            scheme: self.scheme,
            authority: self.authority,
            path: self.target,
            protocol: self.protocol,
            fields: self.fields,
            end,
            weight: self.weight,
        }
    }
}

/// What is asked of a connection.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) line: &'a RequestLine<'a>,
    /// `None` where the line speaks of none.
    pub(crate) body: Option<Box<Body>>,
    pub(crate) limits: h1::Limits,
    pub(crate) expect_wait: Option<Duration>,
    pub(crate) deadlines: Deadlines,
    pub(crate) now: Instant,
}

/// How far the request is.
enum Sending {
    /// The body has more to give.
    Body(Box<Body>),
    /// There is no body, and the head is queued in the machine.
    Head,
    /// The end of the body is queued in the machine.
    Queued,
    /// Everything was written.
    Done,
    /// The rest is not wanted, or writing failed. What the peer says is still worth reading.
    Stopped(Option<io::Error>),
}

/// What a connection knows of the exchange that it carries.
pub(super) struct Turn {
    sending: Sending,
    phase: Phase,
    deadlines: Deadlines,
    /// Something moved since the deadline was set, or the phase is new.
    stirred: bool,
    /// Something came that may hold an event.
    news: bool,
    /// Runs while the body waits for `100 Continue`.
    expect_timer: Option<SyncWrapper<BoxFuture<'static, ()>>>,
    /// A new connection is read before it is written to: what the peer says unasked is no answer.
    untouched: bool,
    /// Whether a byte of the request went out, and whether one of a response came.
    wrote: bool,
    heard: bool,
}

impl Turn {
    /// Between two exchanges.
    pub(super) fn none() -> Self {
        Turn {
            sending: Sending::Done,
            phase: Phase::Send,
            deadlines: Deadlines { total: None, head: None, idle: None, write: None },
            stirred: false,
            news: false,
            expect_timer: None,
            untouched: false,
            wrote: false,
            heard: false,
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Conn {
    /// Queues a request. Nothing is written yet.
    pub(super) fn begin(&mut self, order: Order<'_>, reused: bool) -> Result<(), Failure> {
        let Order { line, body, limits, expect_wait, deadlines, now } = order;
        // The connection may have served a call with other settings.
        self.machine.set_limits(limits);
        self.machine.set_expect_wait(expect_wait.unwrap_or(h1::DEFAULT_EXPECT_WAIT));
        self.machine
            .send_head(line.method, line.target, line.fields, line.length)
            .map_err(Failure::Misuse)?;
        let (sending, limit) = match body {
            Some(body) => (Sending::Body(body), deadlines.write),
            None => {
                self.machine.send_end(None).map_err(Failure::Misuse)?;
                (Sending::Head, deadlines.head)
            }
        };
        self.socket.set_deadline(deadlines.of(limit, now));
        self.turn = Turn { sending, deadlines, untouched: !reused && !self.early, ..Turn::none() };
        Ok(())
    }

    /// What is happening.
    pub(crate) fn phase(&self) -> Phase {
        self.turn.phase
    }

    /// How much of the request the peer may have seen.
    pub(crate) fn sent(&self) -> Sent {
        match self.turn.sending {
            Sending::Done => Sent::Whole,
            _ if self.turn.wrote => Sent::Head,
            _ => Sent::Nothing,
        }
    }

    /// Whether the peer answered at all.
    pub(crate) fn heard(&self) -> bool {
        self.turn.heard
    }

    /// Sends no more of the request: the answer is there and does not want it.
    pub(crate) fn stop_sending(&mut self) {
        if self.is_sending() {
            self.machine.stop_body();
            self.turn.sending = Sending::Stopped(None);
        }
    }

    /// The next event that is already here.
    pub(crate) fn buffered_event(&mut self) -> Result<Option<Event>, Failure> {
        let event = self.machine.poll_event().map_err(Failure::Proto)?;
        if let Some(Event::Head(_)) = event {
            self.turn.phase = Phase::Body;
            self.turn.stirred = true;
            let here = self.machine.recv_buf().len() as u64;
            self.intake.room = Room::suiting(self.machine.remaining_body().unwrap_or(here));
            if std::mem::take(&mut self.early) {
                Arc::make_mut(&mut self.info).tls = self.socket.tls().cloned();
            }
        }
        Ok(event)
    }

    /// Drives the connection until the next event: writes what there is to write, reads what there
    /// is to read.
    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<Event, Failure>> {
        if std::mem::take(&mut self.turn.untouched)
            && let Poll::Ready(read) = self.poll_fill(cx, Wait::Beside)
        {
            read?;
            self.turn.news = true;
        }
        loop {
            if self.turn.news
                && let Some(event) = self.buffered_event()?
            {
                return Poll::Ready(Ok(event));
            }
            self.turn.news = false;
            let wait = self.poll_flush(cx, runtime)?;
            ready!(self.poll_fill(cx, wait))?;
            self.turn.news = true;
        }
    }

    /// Writes what there is to write. A read is all there is to wait for if that is done.
    fn poll_flush(&mut self, cx: &mut Context<'_>, runtime: &dyn Runtime) -> Result<Wait, Failure> {
        Ok(match self.poll_send(cx, runtime)? {
            Poll::Ready(()) => Wait::Alone,
            Poll::Pending => Wait::Beside,
        })
    }

    /// Reads on until the rest of a body of known length is here, which then is one piece, or until
    /// no more comes. Does nothing about other bodies.
    pub(crate) fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        while let Some(left) = self.machine.remaining_body()
            && self.machine.wants_read()
        {
            let buf = self.machine.recv_buf();
            let missing = left.saturating_sub(buf.len() as u64);
            if missing == 0 {
                break;
            }
            let wait = self.poll_flush(cx, runtime)?;
            self.intake.make_room_for(missing, self.machine.recv_buf());
            ready!(self.poll_read(cx, wait))?;
            self.turn.news = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Sets the deadline of the phase anew, if there is reason to. Sockets look at theirs only when
    /// they have to wait; a peer that never makes them wait is stopped here.
    fn refresh_deadline(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.turn.stirred) {
            let now = Instant::now();
            if self.turn.deadlines.total.is_some_and(|total| total <= now) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let limit = self.turn.deadlines.limit(self.turn.phase);
            // Nobody is idle while the body waits for 100 Continue.
            let machine = &mut self.machine;
            let held = machine.upload() == Upload::Held;
            let from = held.then(|| machine.poll_timeout(now)).flatten().unwrap_or(now);
            self.socket.set_deadline(self.turn.deadlines.of(limit, from));
        }
        Ok(())
    }

    /// Moves the request out. Ready when all of it went, or no more of it will.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Result<Poll<()>, Failure> {
        let mut rounds = 0;
        while self.is_sending() {
            rounds += 1;
            if rounds > SEND_ROUNDS {
                // A peer that takes everything at once must not keep its answer from being read.
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            let starved = self.poll_upload(cx, runtime)?.is_pending();
            match self.poll_write(cx) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(())) if starved => return Ok(Poll::Pending),
                Poll::Ready(Ok(())) => self.all_queued_is_out(),
                Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::TimedOut => {
                    return Err(Failure::Io(Phase::Send, self.timed_out()));
                }
                Poll::Ready(Err(e)) => {
                    self.turn.sending = Sending::Stopped(Some(e));
                    self.await_head(true);
                }
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Takes more of the body into the machine while there is room. Pending when the body has
    /// nothing at the moment, or must not be sent yet.
    fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Result<Poll<()>, Failure> {
        while let Sending::Body(body) = &mut self.turn.sending {
            let machine = &mut self.machine;
            if machine.pending_bytes() >= OUTPUT_HIGH {
                break;
            }
            if machine.upload() == Upload::Withdrawn {
                // A final answer came where 100 Continue was awaited.
                self.turn.sending = Sending::Stopped(None);
                break;
            }
            if machine.upload() == Upload::Held {
                let Some(at) = machine.poll_timeout(Instant::now()) else {
                    // The wait begins when the head is out: until then there is that to write. One
                    // that the clock cannot say the end of has none.
                    return Ok(if machine.has_output() { Poll::Ready(()) } else { Poll::Pending });
                };
                let timer = self
                    .turn
                    .expect_timer
                    .get_or_insert_with(|| SyncWrapper::new(runtime.sleep_until(at)));
                if timer.get_mut().as_mut().poll(cx).is_pending() {
                    return Ok(Poll::Pending);
                }
                machine.handle_timeout(at);
            }
            match body.poll_next(cx, runtime) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Some(Ok(data))) => {
                    machine.send_data(data).map_err(Failure::Misuse)?;
                    if body.may_block(runtime) {
                        // What is here does not wait for a read that may take its time.
                        break;
                    }
                }
                Poll::Ready(Some(Err(e))) => return Err(Failure::Upload(e)),
                Poll::Ready(None) => {
                    // Only a chunked body, which is still open, can have them (RFC 9112 section 7.1.2).
                    let open = machine.upload() == Upload::Open;
                    let trailers = body.take_trailers().filter(|_| open);
                    let trailers = trailers.map(|map| Fields::from(&map));
                    machine.send_end(trailers.as_ref()).map_err(Failure::Misuse)?;
                    self.turn.sending = Sending::Queued;
                    self.turn.stirred = true;
                }
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Writes what is queued, all of it.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.machine.has_output() {
            self.refresh_deadline()?;
            let conn = &mut *self;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = conn.machine.poll_transmit(&mut slices);
            let n = ready!(conn.socket.poll_write(cx, &slices[..filled]))?;
            conn.machine.transmitted(n);
            self.turn.wrote = true;
            self.turn.stirred |= !matches!(self.turn.sending, Sending::Head);
        }
        self.socket.poll_flush(cx)
    }

    fn all_queued_is_out(&mut self) {
        if let Sending::Head | Sending::Queued = self.turn.sending {
            // The deadline of the answer's head was set at the start if there was no body first.
            let had_body = matches!(self.turn.sending, Sending::Queued);
            self.turn.sending = Sending::Done;
            self.await_head(had_body);
        }
    }

    fn await_head(&mut self, set_deadline: bool) {
        if self.turn.phase == Phase::Send {
            self.turn.phase = Phase::Head;
            self.turn.stirred = set_deadline;
        }
    }

    /// Makes room and reads once.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        wait: Wait,
    ) -> Poll<Result<(), Failure>> {
        self.intake.make_room(self.machine.recv_buf());
        self.poll_read(cx, wait)
    }

    /// Reads once, into the room that was made.
    fn poll_read(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<Result<(), Failure>> {
        if let Err(e) = self.refresh_deadline() {
            return Poll::Ready(Err(self.read_failed(e)));
        }
        let conn = &mut *self;
        let buf = conn.machine.recv_buf();
        let offered = buf.capacity() - buf.len();
        match conn.socket.poll_read(cx, buf, wait) {
            Poll::Pending => {
                conn.intake.give_back(buf);
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => conn.machine.recv_eof(),
            Poll::Ready(Ok(n)) => {
                self.turn.heard = true;
                self.turn.stirred |= self.turn.phase == Phase::Body;
                if n == offered {
                    self.intake.room = Room::Large;
                }
            }
            Poll::Ready(Err(e)) => return Poll::Ready(Err(self.read_failed(e))),
        }
        Poll::Ready(Ok(()))
    }

    /// Gives up what an idle connection does not need.
    pub(super) fn rest(&mut self, now: Instant) {
        self.intake.give_back(self.machine.recv_buf());
        self.machine.shrink(KEEP_OUTPUT);
        self.turn = Turn::none();
        self.idle_since = now;
    }

    /// Nobody waits for the rest of the response any more.
    pub(super) fn unlimit(&mut self) {
        self.turn.deadlines = Turn::none().deadlines;
        self.socket.set_deadline(None);
    }

    /// A peer that refuses an upload resets the connection: the failed write says more.
    fn read_failed(&mut self, error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::TimedOut {
            return Failure::Io(self.turn.phase, self.timed_out());
        }
        match &mut self.turn.sending {
            Sending::Stopped(first) if self.turn.phase == Phase::Head => match first.take() {
                Some(first) => Failure::Io(Phase::Send, first),
                None => Failure::Io(self.turn.phase, error),
            },
            _ => Failure::Io(self.turn.phase, error),
        }
    }

    fn timed_out(&self) -> io::Error {
        self.turn.deadlines.passed(self.turn.phase)
    }

    /// Whether the request still goes out. A response may be over before.
    pub(crate) fn is_sending(&self) -> bool {
        matches!(self.turn.sending, Sending::Head | Sending::Body(_) | Sending::Queued)
    }

    /// Sends the rest of the request, under a response that is over, or until the peer has had enough.
    pub(crate) fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        if self.poll_send(cx, runtime)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        // Nothing more is due. Whatever comes ends the upload: RFC 9112 section 9.6 has a client stop
        // when the peer closes.
        match ready!(self.poll_fill(cx, Wait::Beside)) {
            Err(Failure::Io(phase, e)) if e.kind() == io::ErrorKind::TimedOut => {
                Poll::Ready(Err(Failure::Io(phase, e)))
            }
            _ => {
                self.stop_sending();
                Poll::Ready(Ok(()))
            }
        }
    }
}
