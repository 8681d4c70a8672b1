//! The machine and the socket under a WebSocket, and how they are driven.

use std::{
    fmt, io,
    io::IoSlice,
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use mimus_net::{Phase as Doing, Socket, Wait};
use mimus_proto::{
    Error as ProtoError, LimitExceeded,
    ws::{Close, CloseCode, Config, Connection, Keys, Message, OwnedClose, OwnedMessage, Phase},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::{Error, Kind, Result, conn::Intake};

/// So much may wait to be written before [`feed`](super::WebSocket::feed) waits for it.
const FEED_AHEAD: usize = 64 * 1024;

/// The most slices of one gathered write.
const SLICES: usize = 16;

/// A message of which more is missing than this is read to where it stays.
const LARGE: usize = 16 * 1024;

pub(super) type Masks = Keys<Box<dyn FnMut(&mut [u8]) + Send + Sync>>;
pub(super) type Machine = Connection<Masks>;

/// Keys that nobody can foresee (RFC 6455 section 10.3).
///
/// # Errors
/// When the operating system has no randomness.
pub(super) fn masks() -> Result<Masks, getrandom::Error> {
    let mut seed = <StdRng as rand::SeedableRng>::Seed::default();
    getrandom::fill(&mut seed)?;
    let mut generator = StdRng::from_seed(seed);
    Ok(Keys::new(Box::new(move |bytes: &mut [u8]| generator.fill_bytes(bytes))))
}

/// What a WebSocket is made of.
pub(super) struct Link {
    socket: Box<dyn Socket>,
    machine: Machine,
    intake: Intake,
    /// A layer took bytes that it has not handed on.
    unflushed: bool,
    /// The server closed its side of the transport.
    eof: bool,
    /// Nothing more can be written.
    mute: bool,
    /// The transport is closed on our side, or was given up.
    shut: bool,
    /// What the peer said when it closed.
    closed: Option<Option<OwnedClose>>,
    idle_timeout: Option<Duration>,
    /// When anything last came, where that is asked.
    heard_at: Option<Instant>,
    /// Something may have to happen by the clock.
    timed: bool,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("socket", &self.socket)
            .field("phase", &self.machine.phase())
            .finish_non_exhaustive()
    }
}

impl Link {
    /// `ahead` is what came right behind the handshake.
    pub(super) fn new(
        socket: Box<dyn Socket>,
        ahead: &BytesMut,
        mut machine: Machine,
        config: &Config,
        idle_timeout: Option<Duration>,
    ) -> Self {
        if !ahead.is_empty() {
            machine.recv(ahead);
        }
        Link {
            socket,
            machine,
            intake: Intake::new(),
            unflushed: false,
            eof: false,
            mute: false,
            shut: false,
            closed: None,
            idle_timeout,
            heard_at: None,
            timed: idle_timeout.is_some() || config.ping_interval.is_some(),
        }
    }

    /// What waits to be given out, after [`poll_look`](Self::poll_look) said that there is something. If it
    /// turns out to be wrong, the server hears why with the next call, or when the link is dropped.
    pub(super) fn take_ref(&mut self) -> Result<Option<Message<'_>>> {
        let taken = self.machine.poll().map_err(failed)?;
        if let Some(Message::Close(close)) = &taken {
            self.closed = Some(close.map(OwnedClose::from));
        }
        Ok(taken)
    }

    /// The same, to keep.
    pub(super) fn take(&mut self) -> Result<Option<OwnedMessage>> {
        let taken = self.machine.poll_owned();
        if taken.is_err() {
            self.say_why();
        }
        if let Ok(Some(OwnedMessage::Close(close))) = &taken {
            self.closed = Some(close.clone());
        }
        taken.map_err(failed)
    }

    /// What the peer said when it closed.
    pub(super) fn peer_close(&self) -> Option<OwnedClose> {
        self.closed.clone().flatten()
    }

    /// Whether something is to be given out, and nothing else is to be done before: then nobody has to wait.
    /// What is wrong [`poll_look`](Self::poll_look) tells.
    #[inline]
    pub(super) fn is_here(&mut self) -> bool {
        matches!(self.machine.look(), Ok(true)) && !self.owes()
    }

    /// Waits until something is to be given out. `false` at the end: both sides said that they close, and
    /// the transport is closed.
    pub(super) fn poll_look(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<Result<bool>> {
        loop {
            let here = match self.machine.look() {
                Ok(here) => here,
                Err(error) => {
                    self.say_why();
                    return Poll::Ready(Err(failed(error)));
                }
            };
            // An answer to a ping does not wait for the next call. A server that leaves says why before it
            // hears no more: that is read first.
            if self.owes()
                && let Poll::Ready(Err(error)) = self.poll_write(cx)
                && !self.mute
            {
                return Poll::Ready(Err(error));
            }
            if here {
                return Poll::Ready(Ok(true));
            }
            if !self.is_open() {
                let closed = self.machine.phase() == Phase::Closed;
                if self.machine.is_over() || (closed && (self.mute || self.shut)) {
                    ready!(self.poll_shut(cx));
                    return Poll::Ready(Ok(false));
                }
                if self.eof {
                    // The answer to a close waits to be written.
                    return Poll::Pending;
                }
            }
            ready!(self.poll_fill(cx, wait))?;
        }
    }

    /// Reads once.
    fn poll_fill(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<Result<()>> {
        self.arm();
        // Who has something to write waits for that, too.
        let wait = if self.owes() { Wait::Beside } else { wait };
        let missing = self.machine.missing();
        let Link { machine, intake, socket, .. } = self;
        let buf = machine.recv_buf();
        if missing > LARGE {
            intake.make_room_for(missing as u64, buf);
        } else {
            intake.make_room(buf);
        }
        let offered = buf.capacity() - buf.len();
        match socket.poll_read(cx, buf, wait) {
            Poll::Pending => {
                intake.give_back(buf);
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => {
                machine.recv_eof();
                self.eof = true;
            }
            Poll::Ready(Ok(n)) => intake.brought(n, offered),
            Poll::Ready(Err(e)) => return Poll::Ready(self.failed_io(e)),
        }
        if self.idle_timeout.is_some() {
            self.heard_at = Some(Instant::now());
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what waits to be written.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while self.machine.pending() > 0 && !self.mute {
            self.arm();
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = self.machine.poll_transmit(&mut slices);
            match self.socket.poll_write(cx, &slices[..filled]) {
                Poll::Ready(Ok(n)) => self.machine.transmitted(n),
                Poll::Ready(Err(e)) => self.failed_write(e)?,
                Poll::Pending => return Poll::Pending,
            }
            self.unflushed = true;
        }
        if self.unflushed && !self.mute {
            match self.socket.poll_flush(cx) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(e)) => self.failed_write(e)?,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(if self.mute { Err(gone()) } else { Ok(()) })
    }

    /// Whether little enough waits to be written that more may be queued.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.machine.pending() < FEED_AHEAD
    }

    /// Waits until it has room.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.has_room() {
            return Poll::Ready(Ok(()));
        }
        match self.poll_write(cx)? {
            Poll::Pending if !self.has_room() => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Queues something.
    pub(super) fn queue(
        &mut self,
        queue: impl FnOnce(&mut Machine) -> Result<(), mimus_proto::ApiMisuse>,
    ) -> Result<()> {
        if let Phase::Failed(error) = self.machine.phase() {
            return Err(failed(error));
        }
        let queued = queue(&mut self.machine);
        // From now on the end is waited for.
        self.timed |= self.machine.phase() != Phase::Open;
        queued.map_err(|e| match self.machine.phase() {
            Phase::Open => Error::request("the message cannot be sent").caused_by(e),
            _ => Error::new(Kind::Closed, "the WebSocket is closed").caused_by(e),
        })
    }

    /// Whether no close was sent or came, and nothing failed.
    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.machine.phase(), Phase::Open)
    }

    /// What changes when its life nears its end.
    pub(super) fn stage(&self) -> (Phase, bool) {
        (self.machine.phase(), self.shut)
    }

    /// Says that the connection is to be closed, unless it is on its way to that.
    pub(super) fn begin_close(&mut self, code: CloseCode, reason: &str) -> Result<()> {
        if !self.is_open() {
            return Ok(());
        }
        self.queue(|machine| machine.send(Message::Close(Some(Close { code, reason }))))
    }

    /// Waits until a connection that is being closed is, dropping what still comes.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<Result<()>> {
        while ready!(self.poll_look(cx, wait))? {
            self.take_ref()?;
        }
        Poll::Ready(Ok(()))
    }

    /// Tells the server why the connection failed, if that can be said at once.
    fn say_why(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.poll_write(&mut cx);
        let _ = self.poll_shut(&mut cx);
    }

    /// Says goodbye to the transport, in the time that closing may take. What comes of it changes nothing
    /// for anybody.
    fn poll_shut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.shut {
            let limited = self.arm();
            self.shut = self.socket.poll_close(cx).is_ready() || !limited;
        }
        if self.shut { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether something waits to be written.
    #[inline]
    fn owes(&self) -> bool {
        self.machine.pending() > 0 || self.unflushed
    }

    /// Sets the time by which a pending operation is to end. Whether there is one.
    #[inline]
    fn arm(&mut self) -> bool {
        (self.timed || !self.is_open()) && self.set_deadline()
    }

    fn set_deadline(&mut self) -> bool {
        self.timed = true;
        let now = Instant::now();
        let silent = self.idle_timeout.and_then(|idle| {
            let heard_at = *self.heard_at.get_or_insert(now);
            heard_at.checked_add(idle)
        });
        let due = self.machine.poll_timeout(now);
        let until = due.into_iter().chain(silent).min();
        self.socket.set_deadline(until);
        until.is_some()
    }

    /// Nothing more comes of the transport.
    fn give_up(&mut self) {
        (self.shut, self.mute) = (true, true);
        self.machine.recv_eof();
    }

    #[cold]
    fn failed_write(&mut self, error: io::Error) -> Result<()> {
        if error.kind() == io::ErrorKind::TimedOut {
            return self.failed_io(error);
        }
        self.mute = true;
        Err(Error::io(Doing::Send, error))
    }

    /// The time has come for something, or the transport failed.
    #[cold]
    fn failed_io(&mut self, error: io::Error) -> Result<()> {
        if error.kind() != io::ErrorKind::TimedOut {
            self.give_up();
            // Behind a close from both sides nobody minds how the transport ends.
            return match self.machine.phase() {
                Phase::Closed => Ok(()),
                _ => Err(Error::io(Doing::Body, error)),
            };
        }
        let now = Instant::now();
        let silent = self.heard_at.zip(self.idle_timeout);
        if silent.is_some_and(|(at, idle)| now.saturating_duration_since(at) >= idle) {
            self.give_up();
            return Err(Error::timeout(Doing::Body).caused_by(error));
        }
        self.machine.handle_timeout(now);
        match self.machine.phase() {
            Phase::Failed(error) => Err(failed(error)),
            _ => Ok(()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if matches!(self.machine.phase(), Phase::Failed(_)) && !self.shut {
            self.say_why();
        }
    }
}

/// Nothing can be written any more.
fn gone() -> Error {
    Error::io(Doing::Send, io::ErrorKind::BrokenPipe.into())
}

/// What the peer did, or did not do in time.
pub(super) fn failed(error: ProtoError) -> Error {
    match error {
        ProtoError::LimitExceeded(limit @ (LimitExceeded::PongWait | LimitExceeded::CloseWait)) => {
            Error::timeout(Doing::Body).caused_by(limit)
        }
        error => Error::from(error).in_phase(Doing::Body),
    }
}
