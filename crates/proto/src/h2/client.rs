//! The client's end of an HTTP/2 connection.

use std::io::IoSlice;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::Method;

use super::conn::{Conn, State};
use super::flow::{RecvWindow, SendWindow};
use super::frame;
use super::request::{RequestLine, check_trailers};
use super::stream::{Asked, Recv, Send, Sent, Slot, Stream, StreamError};
use super::{Code, Limits, Opening, PeerSettings};
use crate::{ApiMisuse, Error, Event, Fields, UnexpectedEof};

/// Why no stream can be opened now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Busy {
    /// As many streams are open as the server, or [`Limits`], allows (RFC 9113 section 5.1.2): one
    /// that ends makes room.
    Full,
    /// The connection takes no more streams ever: a GOAWAY, an error, its end, or no identifier left.
    Going,
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "as many streams are open as are allowed",
            Self::Going => "the connection takes no more streams",
        })
    }
}

/// One connection, many streams at a time.
///
/// After bytes came: [`process`](Self::process), then [`poll_event`](Self::poll_event) for each stream
/// that [`next_stirred`](Self::next_stirred) names, until `None`. After any call that changes it:
/// [`poll_transmit`](Self::poll_transmit) until it fills nothing.
pub struct Client {
    buf: BytesMut,
    eof: bool,
    conn: Conn,
}

impl std::fmt::Debug for Client {
    /// What waits in either direction is left out: there are secrets in it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.conn.state)
            .field("gone_away", &self.conn.gone_away)
            .field("peer", &self.conn.peer)
            .field("open_streams", &self.conn.streams.active)
            .field("to_read", &self.buf.len())
            .field("to_write", &self.conn.out.pending())
            .finish_non_exhaustive()
    }
}

/// # The connection's bytes
impl Client {
    /// A machine for a fresh connection; the preface is queued.
    #[must_use]
    pub fn new(opening: &Opening, limits: Limits, now: Instant) -> Self {
        Self { buf: BytesMut::new(), eof: false, conn: Conn::new(opening, limits, now) }
    }

    /// The buffer to read into: append to it. It may be moved or replaced as long as what it holds
    /// stays the same. Behind [`process`](Self::process) it holds less than a frame.
    pub fn recv_buf(&mut self) -> &mut BytesMut {
        &mut self.buf
    }

    /// Takes bytes that came from the server, by copy.
    pub fn recv(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// Takes note that the server closed its side. [`process`](Self::process) then tells what that
    /// means.
    pub fn recv_eof(&mut self) {
        self.eof = true;
    }

    /// Reads every frame that is there into the streams' queues. Large data is sliced off the buffer,
    /// not copied; what has come of a DATA frame is given on before its end.
    ///
    /// # Errors
    /// The connection failed, and every later call says the same: a GOAWAY is queued, each stream
    /// gives what came of it and then [`StreamError::Connection`].
    pub fn process(&mut self, now: Instant) -> Result<(), Error> {
        if let State::Failed(error) = self.conn.state {
            self.buf.clear();
            return Err(error);
        }
        self.conn.now = now;
        if !self.buf.is_empty() {
            self.conn.timers.heard(now);
        }
        if let Err(error) = self.conn.read(&mut self.buf) {
            self.buf.clear();
            self.conn.fail(error);
            return Err(error);
        }
        if self.eof { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), Error> {
        // A frame was cut off.
        if !self.buf.is_empty() || !self.conn.is_between_frames() {
            self.buf.clear();
            let closed = self.conn.close();
            let cut_off = UnexpectedEof::InFrame.into();
            self.conn.fail(cut_off);
            return closed.and(Err(cut_off));
        }
        self.conn.close()
    }

    /// Fills `slices` with the bytes to write next; says how many it filled. Zero when there are
    /// none. Control frames and heads go ahead of data that was not made frames yet, which is made as
    /// there is room for 128 KiB: seventeen slices take all of it.
    pub fn poll_transmit<'a>(&'a mut self, slices: &mut [IoSlice<'a>]) -> usize {
        self.conn.commit();
        self.conn.out.poll_transmit(slices)
    }

    /// Takes note that the first `count` of those bytes were written.
    pub fn transmitted(&mut self, count: usize) {
        self.conn.transmitted(count);
    }

    /// Whether bytes wait to be written.
    #[must_use]
    pub fn has_output(&self) -> bool {
        let conn = &self.conn;
        conn.out.pending() > 0 || (!conn.ring.is_empty() && conn.send_window.available() > 0)
    }

    /// Whether bytes from the server would be read.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        !self.eof && !self.conn.is_over()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if self.conn.is_over() {
            return None;
        }
        self.conn.timers.next(&self.conn.limits, self.conn.streams.active > 0, now)
    }

    /// Does what is due: asks by PING whether the server lives, or ends the connection because it did
    /// not answer. [`process`](Self::process) tells of the latter.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.conn.handle_timeout(now);
    }

    /// Gives up the room of empty buffers, but for `keep` bytes of what heads are written to: for a
    /// connection that may be idle for long.
    pub fn shrink(&mut self, keep: usize) {
        self.conn.out.shrink(keep);
        if self.buf.is_empty() {
            self.buf = BytesMut::new();
        }
        if self.conn.ring.is_empty() {
            self.conn.streams.shrink();
        }
    }
}

/// # The connection's state, for whoever keeps it
impl Client {
    /// Whether a stream can be opened now.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn can_open(&self) -> Result<(), Busy> {
        let conn = &self.conn;
        if conn.state != State::Open || conn.gone_away.is_some() || !conn.streams.has_ids() {
            return Err(Busy::Going);
        }
        if conn.streams.active < self.max_streams() { Ok(()) } else { Err(Busy::Full) }
    }

    /// How many streams may be open at a time, as far as is known now.
    #[must_use]
    pub fn max_streams(&self) -> u32 {
        let conn = &self.conn;
        let server = match conn.peer_spoke {
            true => conn.peer.max_concurrent_streams.unwrap_or(u32::MAX),
            false => conn.limits.streams_before_settings,
        };
        server.min(conn.limits.streams)
    }

    /// How many streams are open on the wire: those whose response or request is not at its end.
    #[must_use]
    pub fn open_streams(&self) -> u32 {
        self.conn.streams.active
    }

    /// Whether no stream is open, and nothing waits to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.conn.streams.active == 0 && !self.has_output()
    }

    /// What the server announced, once its SETTINGS came.
    #[must_use]
    pub fn peer_settings(&self) -> Option<&PeerSettings> {
        self.conn.peer_spoke.then_some(&self.conn.peer)
    }

    /// Whether an ORIGIN frame came that says whom the server is there for (RFC 8336), so that it may
    /// [exclude](Self::excludes) others.
    #[must_use]
    pub fn names_origins(&self) -> bool {
        self.conn.origins.is_named()
    }

    /// Whether the server has said which origins it is there for (RFC 8336), and this one, as RFC 6454
    /// section 6.2 writes it, is not among them. About the origin that the connection was made for it says
    /// nothing: that one is always served.
    #[must_use]
    pub fn excludes(&self, origin: &str) -> bool {
        self.conn.origins.excludes(origin)
    }

    /// The code of the server's GOAWAY, if one came.
    #[must_use]
    pub fn gone_away(&self) -> Option<Code> {
        self.conn.gone_away.map(|gone| gone.code)
    }

    /// Why the connection failed, if it did.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        match self.conn.state {
            State::Failed(error) => Some(error),
            State::Open | State::Going | State::Closed => None,
        }
    }

    /// Asks the server whether it lives; no answer within [`Limits::ping_wait`] ends the connection.
    /// Without effect while an answer is awaited.
    pub fn ping(&mut self, now: Instant) {
        let wait = self.conn.limits.ping_wait;
        if self.conn.is_over() {
            return;
        }
        if let Some(payload) = self.conn.timers.ask(wait, now) {
            frame::write_ping(self.conn.out.text(), false, payload);
        }
    }

    /// Whether the answer to a PING is awaited: not the connection to choose for a new request.
    #[must_use]
    pub fn awaits_pong(&self) -> bool {
        self.conn.timers.awaits_pong()
    }

    /// Tells the server that no stream follows. Open ones go on.
    pub fn go_away(&mut self, code: Code) {
        if self.conn.state == State::Open {
            self.conn.state = State::Going;
            frame::write_go_away(self.conn.out.text(), 0, code);
        }
    }
}

/// # Streams
impl Client {
    /// Opens a stream with a request's head. The end of its handle's life is [`reset`](Self::reset),
    /// which must be called once whatever became of the stream.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn open(&mut self, line: &RequestLine<'_>) -> Result<Stream, ApiMisuse> {
        self.can_open().map_err(|_| ApiMisuse::CannotOpen)?;
        let conn = &mut self.conn;
        // RFC 8441 section 3.
        if line.protocol.is_some() && !conn.peer.connect_protocol {
            return Err(ApiMisuse::NoConnectProtocol);
        }
        let checked = conn.writer.check(line)?;
        let asked = match *line.method {
            Method::HEAD => Asked::Head,
            Method::CONNECT => Asked::Connect,
            _ => Asked::Other,
        };
        let send = SendWindow::new(conn.peer.initial_window_size);
        let (manner, initial) = (conn.manner, conn.local.window);
        let priority = manner.priority(line.weight, &conn.streams);
        let recv = RecvWindow::new(manner.window(initial));
        let stream = conn.streams.open(asked, send, recv);
        let begins_at = conn.out.end();
        let max = conn.peer.max_frame_size as usize;
        conn.writer.request(conn.out.text(), (stream.id, priority), line, checked, max);
        manner.write_behind(conn.out.text(), stream.id, initial);
        let slot = conn.streams.at(stream.slot);
        slot.weight = priority.map_or(0, |priority| priority.weight);
        slot.begins_at = begins_at;
        slot.owed = checked.owed;
        if line.end {
            slot.send = Send::Ended;
            slot.ends_at = conn.out.end();
        }
        Ok(stream)
    }

    /// Bytes of body worth queueing now: what the stream's window and [`Limits::send_queue`] leave.
    /// When there were none, [`next_stirred`](Self::next_stirred) names the stream once there are.
    #[must_use]
    pub fn capacity(&self, stream: Stream) -> usize {
        let Some(slot) = self.conn.streams.get(stream) else {
            return 0;
        };
        if !matches!(slot.send, Send::Open) {
            return 0;
        }
        let most = slot.send_window.available().min(self.conn.limits.send_queue as usize);
        most.saturating_sub(slot.outgoing_len)
    }

    /// Queues a piece of the body. More than [`capacity`](Self::capacity) is taken, and waits.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_data(&mut self, stream: Stream, data: Bytes) -> Result<(), ApiMisuse> {
        let slot = self.sending(stream)?;
        let len = data.len();
        // RFC 9113 section 8.1.1.
        if let Some(owed) = &mut slot.owed {
            *owed = owed.checked_sub(len as u64).ok_or(ApiMisuse::BodyTooLong)?;
        }
        if len == 0 {
            return Ok(());
        }
        slot.outgoing.push_back(data);
        slot.outgoing_len += len;
        if !slot.ringed && slot.send_window.available() > 0 {
            slot.ringed = true;
            self.conn.ring.push_back(stream.slot);
        }
        Ok(())
    }

    /// Ends the body, with trailers or without.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn send_end(&mut self, stream: Stream, trailers: Option<&Fields>) -> Result<(), ApiMisuse> {
        let slot = self.sending(stream)?;
        if slot.owed.is_some_and(|owed| owed > 0) {
            return Err(ApiMisuse::BodyTooShort);
        }
        if let Some(trailers) = trailers {
            check_trailers(trailers)?;
        }
        let trailers = trailers.filter(|trailers| !trailers.is_empty());
        slot.send = Send::Finishing(trailers.map(|trailers| Box::new(trailers.clone())));
        if slot.outgoing_len == 0 {
            self.conn.finish(stream.slot, false);
        }
        Ok(())
    }

    fn sending(&mut self, stream: Stream) -> Result<&mut Slot, ApiMisuse> {
        let slot = self.conn.streams.get_mut(stream).ok_or(ApiMisuse::NoStream)?;
        match slot.send {
            Send::Open => Ok(slot),
            Send::Finishing(_) | Send::Ended => Err(ApiMisuse::BodyOver),
            Send::Stopped => Err(ApiMisuse::BodyWithdrawn),
        }
    }

    /// Whether more of the body may be sent: not after its end, and not once the server made clear
    /// that it does not want it.
    #[must_use]
    pub fn wants_body(&self, stream: Stream) -> bool {
        self.conn.streams.get(stream).is_some_and(|slot| matches!(slot.send, Send::Open))
    }

    /// Whether some of the request still waits to be written, or to be queued.
    #[must_use]
    pub fn is_sending(&self, stream: Stream) -> bool {
        self.conn.streams.get(stream).is_some_and(|slot| match slot.send {
            Send::Open | Send::Finishing(_) => true,
            Send::Ended => slot.ends_at > self.conn.out.total(),
            Send::Stopped => false,
        })
    }

    /// Whether all of the body that was queued so far was written. A handle that is void has nothing
    /// left.
    #[must_use]
    pub fn is_written(&self, stream: Stream) -> bool {
        self.conn
            .streams
            .get(stream)
            .is_none_or(|slot| slot.outgoing_len == 0 && slot.framed_to <= self.conn.out.total())
    }

    /// Tells the server anew how a response ranks (RFC 9218 section 7.1). `value` is a priority field's
    /// value; what it may say is the caller's to know.
    ///
    /// # Errors
    /// [`ApiMisuse`]; nothing was queued then.
    pub fn reprioritize(&mut self, stream: Stream, value: &str) -> Result<(), ApiMisuse> {
        self.conn.streams.get(stream).ok_or(ApiMisuse::NoStream)?;
        let plain = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if !plain || value.len() > 1024 {
            return Err(ApiMisuse::InvalidTarget);
        }
        frame::write_priority_update(self.conn.out.text(), stream.id, value.as_bytes());
        Ok(())
    }

    /// Gives a stream up: the handle is void. If it was not at its end on both sides, the server is
    /// told, with this code. What was not read of it no longer counts.
    pub fn reset(&mut self, stream: Stream, code: Code) {
        let conn = &mut self.conn;
        let Some(slot) = conn.streams.get(stream) else {
            return;
        };
        if !slot.closed {
            frame::write_reset(conn.out.text(), stream.id, code);
            conn.streams.at(stream.slot).recv = Recv::Ended { told: true };
        }
        conn.stop_sending(stream.slot);
        conn.unread -= conn.streams.vacate(stream.slot);
        if !conn.is_over() {
            conn.grant_connection();
        }
    }

    /// The next thing the server said on a stream. The credit of data is given back here.
    ///
    /// Behind [`Event::End`] there is nothing: `None`, until the stream is given up.
    ///
    /// # Errors
    /// [`StreamError`], behind everything that came before it, and the same again on every later call.
    pub fn poll_event(&mut self, stream: Stream) -> Result<Option<Event>, StreamError> {
        let conn = &mut self.conn;
        let slot = conn.streams.get_mut(stream).ok_or(StreamError::Misuse(ApiMisuse::NoStream))?;
        if let Some(data) = slot.take_whole() {
            return Ok(Some(Event::Data(data)));
        }
        if let Some(event) = slot.pop() {
            conn.unread -= super::stream::weight(&event);
            if !conn.is_over() {
                if matches!(event, Event::Data(_)) {
                    conn.grant_stream(stream.slot);
                }
                conn.grant_connection();
            }
            return Ok(Some(event));
        }
        match &mut slot.recv {
            Recv::Ended { told: told @ false } => {
                *told = true;
                Ok(Some(Event::End))
            }
            Recv::Failed(error) => Err(*error),
            Recv::Ended { told: true } | Recv::Head { .. } | Recv::Body { .. } => Ok(None),
        }
    }

    /// Bytes of the body that [`poll_event`](Self::poll_event) has not given out, once the head came and
    /// if it says how long the body is.
    #[must_use]
    pub fn remaining_body(&self, stream: Stream) -> Option<u64> {
        let slot = self.conn.streams.get(stream)?;
        let coming = self.conn.coming(stream.id);
        slot.remaining(coming)
    }

    /// All that is still to come of a response that is whole and was not read further than its head, if
    /// that is no more than one piece of data: empty when there is none. The response is over then, as
    /// if polled to [`Event::End`]. `None` changes nothing.
    pub fn take_rest(&mut self, stream: Stream) -> Option<Bytes> {
        let conn = &mut self.conn;
        let rest = conn.streams.get_mut(stream)?.take_rest()?;
        conn.unread -= rest.len();
        if !rest.is_empty() && !conn.is_over() {
            conn.grant_connection();
        }
        Some(rest)
    }

    /// Has the rest of a body of known length, whose head was read, put into one piece, for a consumer
    /// that wants it all: its credit is given back as it comes. Gives how much is here; `None` when there
    /// is nothing to wait for, and what there is is the next event. A poll before that gives what is
    /// here.
    pub fn gather(&mut self, stream: Stream) -> Option<usize> {
        let conn = &mut self.conn;
        let coming = conn.coming(stream.id);
        let slot = conn.streams.get_mut(stream)?;
        let taken = slot.gather_whole(coming);
        let here = match slot.recv {
            Recv::Body { left: Some(_) } => slot.whole().map(|whole| whole.len()),
            _ => None,
        };
        conn.unread -= taken;
        if taken > 0 && !conn.is_over() {
            conn.grant_stream(stream.slot);
            conn.grant_connection();
        }
        here
    }

    /// The next stream with news since the last call: events, room for more body, failure.
    pub fn next_stirred(&mut self) -> Option<Stream> {
        self.conn.streams.next_stirred()
    }

    /// How much of a request was written. [`Sent::Whole`] for a handle that is void.
    #[must_use]
    pub fn sent(&self, stream: Stream) -> Sent {
        let written = self.conn.out.total();
        match self.conn.streams.get(stream) {
            None => Sent::Whole,
            Some(slot) if slot.ends_at <= written => Sent::Whole,
            Some(slot) if slot.begins_at < written => Sent::Part,
            Some(_) => Sent::Nothing,
        }
    }
}
