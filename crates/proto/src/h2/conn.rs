//! The state of a connection, and what changes all of it at once.

use std::collections::VecDeque;
use std::time::Instant;

use super::flood::{Floods, Ration};
use super::flow::{RecvWindow, SendWindow};
use super::hpack::Decoder;
use super::receive::{Block, Reading};
use super::request::HeadWriter;
use super::settings::{DEFAULT_WINDOW, Local, MAX_WINDOW};
use super::stream::{Recv, Send, StreamError};
use super::streams::Streams;
use super::timers::{Due, Timers};
use super::{Code, Dependency, Limits, Opening, PeerSettings, Priority, frame};
use crate::outbox::Outbox;
use crate::{Error, LimitExceeded, UnexpectedEof};

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// We sent GOAWAY: what is open ends in peace.
    Going,
    /// The server closed it when nothing was open.
    Closed,
    Failed(Error),
}

/// The server's GOAWAY (RFC 9113 section 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoneAway {
    pub(super) last: u32,
    pub(super) code: Code,
}

/// Answers that wait to be written, counted in two generations: the older ones are gone when the
/// outbox has passed the place where the newer began.
#[derive(Debug, Default)]
struct Replies {
    older: u32,
    newer: u32,
    mark: u64,
}

/// What an [`Opening`] says of every stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    priority: Option<Priority>,
    dependency: Dependency,
    /// Zero: nothing.
    increment: u32,
}

impl Manner {
    fn of(opening: &Opening) -> Self {
        Self {
            priority: opening.priority,
            dependency: opening.dependency,
            increment: opening.stream_window_increment.unwrap_or(0),
        }
    }

    /// A stream's window, of which SETTINGS said this much.
    pub(super) fn window(&self, initial: u32) -> u32 {
        initial.saturating_add(self.increment).min(MAX_WINDOW)
    }

    /// Writes what follows a stream's head.
    pub(super) fn write_behind(&self, out: &mut Vec<u8>, stream: u32, initial: u32) {
        let increment = self.window(initial) - initial;
        if increment > 0 {
            frame::write_window_update(out, stream, increment);
        }
    }

    /// How a stream that is about to be opened ranks, with this weight of its own.
    pub(super) fn priority(&self, weight: Option<u8>, streams: &Streams) -> Option<Priority> {
        let stated = self.priority?;
        let weight = weight.unwrap_or(stated.weight);
        let depends_on = match self.dependency {
            Dependency::Stated => stated.depends_on,
            Dependency::LastOpen => streams.last_open(weight),
        };
        Some(Priority { depends_on, weight, ..stated })
    }
}

/// Everything of a connection but the bytes that were read and not yet understood.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) limits: Limits,
    pub(super) local: Local,
    pub(super) peer: PeerSettings,
    /// Whether the server's first SETTINGS came.
    pub(super) peer_spoke: bool,
    pub(super) state: State,
    pub(super) gone_away: Option<GoneAway>,
    pub(super) streams: Streams,
    pub(super) out: Outbox,
    /// Streams with data to send, and a window of their own for it, in turn.
    pub(super) ring: VecDeque<u32>,
    pub(super) send_window: SendWindow,
    pub(super) recv_window: RecvWindow,
    /// What the windows of streams grow to.
    pub(super) stream_target: u32,
    /// The weight of all events that wait.
    pub(super) unread: usize,
    /// Bytes of DATA since the connection began.
    pub(super) received: u64,
    pub(super) writer: HeadWriter,
    /// How streams rank, and what their windows are opened by.
    pub(super) manner: Manner,
    pub(super) decoder: Decoder,
    pub(super) reading: Reading,
    /// A header block whose end has not come.
    pub(super) block: Option<Block>,
    pub(super) floods: Floods,
    replies: Replies,
    pub(super) timers: Timers,
    /// When the bytes that are being read were given to us.
    pub(super) now: Instant,
}

impl Conn {
    /// A connection whose preface is queued.
    pub(super) fn new(opening: &Opening, limits: Limits, now: Instant) -> Self {
        let local = Local::of(opening);
        let manner = Manner::of(opening);
        let increment = opening.window_increment.unwrap_or(0).min(MAX_WINDOW - DEFAULT_WINDOW);
        let mut out = Outbox::default();
        write_preface(out.text(), opening, increment);
        Self {
            limits,
            local,
            peer: PeerSettings::default(),
            peer_spoke: false,
            state: State::Open,
            gone_away: None,
            streams: Streams::new(opening.first_stream, limits.reset_memory),
            out,
            ring: VecDeque::new(),
            send_window: SendWindow::new(DEFAULT_WINDOW),
            recv_window: RecvWindow::new(DEFAULT_WINDOW + increment),
            stream_target: manner.window(local.window),
            unread: 0,
            received: 0,
            writer: HeadWriter::new(opening, limits.encoder_table),
            manner,
            decoder: Decoder::new(local.table),
            reading: Reading::Frame,
            block: None,
            floods: Floods::new(now),
            replies: Replies::default(),
            timers: Timers::new(&limits, now),
            now,
        }
    }

    /// Ends the connection with an error: the server is told, every stream that is not whole fails.
    pub(super) fn fail(&mut self, error: Error) {
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        self.state = State::Failed(error);
        // RFC 9113 section 5.4.1. None of the server's streams was processed.
        if !matches!(error, Error::UnexpectedEof(_)) {
            frame::write_go_away(self.out.text(), 0, Code::of(error));
        }
        self.fail_streams(|_| StreamError::Connection(error));
    }

    /// The server closed the connection.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        match self.state {
            State::Failed(error) => return Err(error),
            State::Closed => return Ok(()),
            State::Open | State::Going => {}
        }
        self.state = State::Closed;
        let gone = self.gone_away.filter(|gone| gone.code != Code::NO_ERROR);
        let mut cut_off = None;
        self.fail_streams(|recv| {
            let place = recv.cut_off();
            // The worst of what was lost speaks for all.
            if cut_off != Some(UnexpectedEof::InBody) {
                cut_off = Some(place);
            }
            match gone {
                Some(gone) => StreamError::GoneAway(gone.code),
                None => StreamError::Connection(place.into()),
            }
        });
        match cut_off {
            None => Ok(()),
            Some(place) => {
                self.state = State::Failed(place.into());
                Err(place.into())
            }
        }
    }

    /// Ends all streams at once. What came of a response is still given out, then the reason; a
    /// response that is whole stays so.
    fn fail_streams(&mut self, mut reason: impl FnMut(Recv) -> StreamError) {
        for index in self.streams.live() {
            let slot = self.streams.at(index);
            if matches!(slot.recv, Recv::Head { .. } | Recv::Body { .. }) {
                slot.recv = Recv::Failed(reason(slot.recv));
            }
            slot.send = Send::Stopped;
            slot.drop_outgoing();
            slot.ringed = false;
            self.streams.settle(index);
            self.streams.stir(index);
        }
        self.ring.clear();
    }

    /// The server will not process streams beyond `last` (RFC 9113 section 6.8).
    pub(super) fn leave_behind(&mut self, last: u32, code: Code) {
        for index in self.streams.live() {
            let slot = self.streams.at(index);
            let reason = match slot.recv {
                Recv::Head { .. } => StreamError::NotProcessed(code),
                // It was processed, whatever is said now.
                Recv::Body { .. } => StreamError::GoneAway(code),
                Recv::Ended { .. } | Recv::Failed(_) => continue,
            };
            if slot.id > last {
                slot.recv = Recv::Failed(reason);
                self.stop_sending(index);
                self.streams.stir(index);
            }
        }
    }

    /// Ends the sending half where it stands.
    pub(super) fn stop_sending(&mut self, index: u32) {
        let slot = self.streams.at(index);
        if !matches!(slot.send, Send::Ended) {
            slot.send = Send::Stopped;
        }
        slot.drop_outgoing();
        if std::mem::take(&mut slot.ringed) {
            self.ring.retain(|&other| other != index);
        }
        self.streams.settle(index);
    }

    /// Resets a stream because of what the server did on it (RFC 9113 section 5.4.2).
    pub(super) fn stream_error(&mut self, index: u32, error: Error) -> Result<(), Error> {
        self.spend(Ration::ProvokedResets)?;
        let slot = self.streams.at(index);
        let id = slot.id;
        // A response that is whole stays so.
        if matches!(slot.recv, Recv::Head { .. } | Recv::Body { .. }) {
            slot.recv = Recv::Failed(StreamError::Failed(error));
        }
        self.stop_sending(index);
        self.streams.stir(index);
        self.reply(|out| frame::write_reset(out, id, Code::of(error)))
    }

    /// Counts a frame that is rationed.
    pub(super) fn spend(&mut self, ration: Ration) -> Result<(), Error> {
        Ok(self.floods.spend(ration, &self.limits, self.now)?)
    }

    /// Queues an answer; too many that are not written end the connection.
    pub(super) fn reply(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        write(self.out.text());
        self.replies.newer += 1;
        if self.replies.older + self.replies.newer > self.limits.unsent_replies {
            return Err(LimitExceeded::UnsentReplies.into());
        }
        Ok(())
    }

    /// Takes note that bytes were written.
    pub(super) fn transmitted(&mut self, count: usize) {
        self.out.transmitted(count);
        let replies = &mut self.replies;
        if self.out.total() >= replies.mark {
            replies.older = replies.newer;
            replies.newer = 0;
            replies.mark = self.out.end();
        }
    }

    /// Opens the connection's window again, as far as what is unread allows.
    pub(super) fn grant_connection(&mut self) {
        let most = self.limits.unread;
        // What is unread beside the window's worth does not count against it.
        let spare = u64::from(most.saturating_sub(self.recv_window.target()));
        let held = (self.unread as u64).saturating_sub(spare);
        if let Some(increment) = self.recv_window.grant(held, most) {
            frame::write_window_update(self.out.text(), 0, increment);
            self.probe();
        }
    }

    /// Opens a stream's window again, by what its consumer took.
    pub(super) fn grant_stream(&mut self, index: u32) {
        let target = self.stream_target;
        let slot = self.streams.at(index);
        if !matches!(slot.recv, Recv::Head { .. } | Recv::Body { .. }) {
            return;
        }
        slot.recv_window.grow(target);
        if let Some(increment) = slot.recv_window.grant(slot.unread as u64, target) {
            let id = slot.id;
            frame::write_window_update(self.out.text(), id, increment);
            self.probe();
        }
    }

    /// Measures what comes in a round trip, if a window could still grow. Only asked when half a
    /// window was used up, so that small exchanges send no PING.
    fn probe(&mut self) {
        let grows = self.stream_target < self.limits.stream_window
            || self.recv_window.target() < self.limits.connection_window;
        if grows && let Some(payload) = self.timers.probe(self.received) {
            frame::write_ping(self.out.text(), false, payload);
        }
    }

    /// So much came within a round trip. The PING left when about half a window was unused: when most
    /// of that came before its answer, the window is what held the server back.
    pub(super) fn measured(&mut self, bytes: u64) {
        let wanted = |window: u32, most: u32| {
            let held_back = bytes.saturating_mul(3) >= u64::from(window);
            if held_back { window.saturating_mul(2).min(most).max(window) } else { window }
        };
        self.stream_target = wanted(self.stream_target, self.limits.stream_window);
        let whole = wanted(self.recv_window.target(), self.limits.connection_window);
        self.recv_window.grow(whole);
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if matches!(self.state, State::Failed(_) | State::Closed) {
            return;
        }
        match self.timers.due(&self.limits, self.streams.active > 0, now) {
            Due::Nothing => {}
            Due::Ping(payload) => frame::write_ping(self.out.text(), false, payload),
            Due::Failed(limit) => self.fail(limit.into()),
        }
    }
}

/// RFC 9113 section 3.4, and what a profile wants to follow it.
fn write_preface(out: &mut Vec<u8>, opening: &Opening, increment: u32) {
    out.extend_from_slice(frame::PREFACE);
    frame::write_settings(out, &opening.settings);
    // RFC 9113 section 6.9: never zero.
    if increment > 0 {
        frame::write_window_update(out, 0, increment);
    }
    for &(stream, priority) in &opening.priorities {
        frame::write_priority(out, stream, priority);
    }
}
