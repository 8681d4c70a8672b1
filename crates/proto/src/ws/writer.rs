//! Messages in, bytes out.

use std::io::IoSlice;

use bytes::Bytes;

use super::codec::Deflate;
use super::frame::{CONTROL_MAX, Header, Opcode, RSV1};
use super::{Close, Kind, Masking, Message, OwnedMessage, Prepared};
use crate::ApiMisuse;
use crate::outbox::Outbox;
use crate::simd::mask;

/// From here on a payload that may be kept is not copied.
const KEEP_FROM: usize = 4096;

/// Writes frames: header, mask and payload in one pass behind what waits already. Many small messages
/// become one run of bytes; a large one that is given by value is queued as it is.
///
/// ```
/// use mimus_proto::ws::{Message, Unmasked, Writer};
///
/// let mut writer = Writer::new(Unmasked);
/// writer.send(Message::Text("chirp"))?;
/// let mut slices = [std::io::IoSlice::new(&[]); 2];
/// assert_eq!(writer.poll_transmit(&mut slices), 1);
/// assert_eq!(&*slices[0], b"\x81\x05chirp");
/// writer.transmitted(7);
/// assert_eq!(writer.pending(), 0);
/// # Ok::<(), mimus_proto::ApiMisuse>(())
/// ```
#[derive(Debug)]
pub struct Writer<M> {
    out: Outbox,
    masking: M,
    state: State,
    deflate: Option<Box<Deflate>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between messages.
    Idle,
    /// Between the fragments of a message.
    Open { kind: Kind, compressed: bool },
    /// A close frame is queued, and nothing follows it.
    Closed,
}

impl<M: Masking> Writer<M> {
    /// A writer for a fresh connection. Does not allocate.
    #[must_use]
    pub fn new(masking: M) -> Self {
        Self { out: Outbox::default(), masking, state: State::Idle, deflate: None }
    }

    #[cfg(feature = "ws-deflate")]
    pub(super) fn set_deflate(&mut self, deflate: Deflate) {
        self.deflate = Some(Box::new(deflate));
    }

    /// Queues a message, or a control frame: these may stand between the fragments of a message.
    ///
    /// # Errors
    /// [`ApiMisuse::Closing`] behind a close frame, [`ApiMisuse::MessageOpen`] between fragments,
    /// [`ApiMisuse::ControlTooLong`], [`ApiMisuse::BadCloseCode`]. Nothing was queued then.
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<(), ApiMisuse> {
        let (opcode, payload) = match message {
            Message::Text(text) => (Opcode::Text, text.as_bytes()),
            Message::Binary(bytes) => (Opcode::Binary, bytes),
            Message::Ping(bytes) => return self.control(Opcode::Ping, bytes),
            Message::Pong(bytes) => return self.control(Opcode::Pong, bytes),
            Message::Close(close) => return self.close(close),
        };
        self.whole(opcode, payload)
    }

    /// The same for what may be kept: a large payload is not copied. A client masks it where it is when
    /// nobody else holds it, and copies it otherwise.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_owned(&mut self, message: OwnedMessage) -> Result<(), ApiMisuse> {
        let (opcode, bytes) = match message {
            OwnedMessage::Text(text) => (Opcode::Text, text.into_bytes()),
            OwnedMessage::Binary(bytes) => (Opcode::Binary, bytes),
            other => return self.send(other.as_message()),
        };
        if bytes.len() < KEEP_FROM {
            return self.whole(opcode, &bytes);
        }
        self.check_idle()?;
        if !self.compressed(opcode, &bytes) {
            self.keep(opcode, bytes);
        }
        Ok(())
    }

    fn keep(&mut self, opcode: Opcode, bytes: Bytes) {
        let mask = self.masking.key();
        let header = Header { fin: true, rsv: 0, opcode, mask, len: bytes.len() as u64 };
        let out = self.out.text();
        let Some(key) = mask else {
            header.write(out);
            return self.out.data(bytes);
        };
        match bytes.try_into_mut() {
            Ok(mut own) => {
                header.write(out);
                mask::in_place(&mut own, key);
                self.out.data(own.freeze());
            }
            Err(shared) => header.write_with(&shared, out),
        }
    }

    /// Queues a piece of a text message, as a fragment. The first one begins it, `last` ends it.
    ///
    /// # Errors
    /// [`ApiMisuse::Closing`], or [`ApiMisuse::MessageOpen`] when a message of bytes is under way.
    pub fn send_text_piece(&mut self, piece: &str, last: bool) -> Result<(), ApiMisuse> {
        self.piece(Kind::Text, piece.as_bytes(), last)
    }

    /// Queues a piece of a message of bytes, as a fragment. The first one begins it, `last` ends it.
    ///
    /// # Errors
    /// [`ApiMisuse::Closing`], or [`ApiMisuse::MessageOpen`] when a message of text is under way.
    pub fn send_binary_piece(&mut self, piece: &[u8], last: bool) -> Result<(), ApiMisuse> {
        self.piece(Kind::Binary, piece, last)
    }

    /// Queues messages that were put into frames before.
    ///
    /// # Errors
    /// [`ApiMisuse::Closing`], [`ApiMisuse::MessageOpen`].
    pub fn send_prepared(&mut self, prepared: &Prepared) -> Result<(), ApiMisuse> {
        self.check_idle()?;
        let Some(mut key) = self.masking.key() else {
            if prepared.bytes().len() < KEEP_FROM {
                self.out.text().extend_from_slice(prepared.bytes());
            } else {
                self.out.data(prepared.bytes().clone());
            }
            return Ok(());
        };
        let out = self.out.text();
        out.reserve(prepared.masked_len());
        for (at, (header, payload)) in prepared.frames().enumerate() {
            // A new key for each frame (RFC 6455 section 5.3).
            if at > 0 {
                key = self.masking.key().unwrap_or(key);
            }
            Header { mask: Some(key), ..header }.write_with(payload, out);
        }
        Ok(())
    }

    /// Fills `slices` with the bytes to write next; says how many it filled. Zero when there are none.
    pub fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.out.poll_transmit(slices)
    }

    /// Takes note that the first `count` of those bytes were written.
    pub fn transmitted(&mut self, count: usize) {
        self.out.transmitted(count);
    }

    /// All bytes that wait to be written: the measure for back-pressure.
    #[must_use]
    #[inline]
    pub fn pending(&self) -> usize {
        self.out.pending()
    }

    /// Whether a close frame was queued: nothing can be sent any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Gives up the room of an empty queue: for a connection that may be idle for long.
    pub fn shrink(&mut self) {
        self.out.shrink(0);
        if let Some(deflate) = &mut self.deflate {
            deflate.shrink();
        }
    }

    /// Bytes written since the connection began.
    pub(super) fn total(&self) -> u64 {
        self.out.total()
    }

    /// The place, counted from the connection's first byte, behind all that is queued.
    pub(super) fn end(&self) -> u64 {
        self.out.end()
    }

    #[inline]
    fn check_idle(&self) -> Result<(), ApiMisuse> {
        if matches!(self.state, State::Idle) { Ok(()) } else { Err(self.busy()) }
    }

    /// Why no message can begin.
    #[cold]
    fn busy(&self) -> ApiMisuse {
        if self.is_closed() { ApiMisuse::Closing } else { ApiMisuse::MessageOpen }
    }

    #[inline]
    fn whole(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), ApiMisuse> {
        self.check_idle()?;
        if !self.compressed(opcode, payload) {
            frame(self.out.text(), &mut self.masking, (opcode, true, 0), payload);
        }
        Ok(())
    }

    /// Queues a message in compressed form, if that is agreed on and worth it.
    #[inline]
    fn compressed(&mut self, opcode: Opcode, payload: &[u8]) -> bool {
        self.deflate.is_some() && self.deflated(opcode, payload)
    }

    #[inline(never)]
    fn deflated(&mut self, opcode: Opcode, payload: &[u8]) -> bool {
        let payload = self.deflate.as_mut().and_then(|deflate| deflate.whole(payload));
        let Some(payload) = payload else { return false };
        frame(self.out.text(), &mut self.masking, (opcode, true, RSV1), payload);
        true
    }

    fn piece(&mut self, kind: Kind, payload: &[u8], last: bool) -> Result<(), ApiMisuse> {
        let (opcode, compressed, rsv) = match self.state {
            State::Closed => return Err(ApiMisuse::Closing),
            State::Open { kind: open, .. } if open != kind => return Err(ApiMisuse::MessageOpen),
            State::Open { compressed, .. } => (Opcode::Continuation, compressed, 0),
            State::Idle => {
                let opcode = if kind == Kind::Text { Opcode::Text } else { Opcode::Binary };
                let compressed = self.deflate.as_ref().is_some_and(|deflate| deflate.is_on());
                (opcode, compressed, if compressed { RSV1 } else { 0 })
            }
        };
        self.state = if last { State::Idle } else { State::Open { kind, compressed } };
        let payload = match &mut self.deflate {
            Some(deflate) if compressed => deflate.piece(payload, last),
            _ => payload,
        };
        frame(self.out.text(), &mut self.masking, (opcode, last, rsv), payload);
        Ok(())
    }

    #[inline(never)]
    fn control(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), ApiMisuse> {
        if self.state == State::Closed {
            return Err(ApiMisuse::Closing);
        }
        // RFC 6455 section 5.5.
        if payload.len() > CONTROL_MAX {
            return Err(ApiMisuse::ControlTooLong);
        }
        frame(self.out.text(), &mut self.masking, (opcode, true, 0), payload);
        Ok(())
    }

    #[inline(never)]
    fn close(&mut self, close: Option<Close<'_>>) -> Result<(), ApiMisuse> {
        let mut payload = Vec::new();
        if let Some(close) = close {
            // RFC 6455 section 7.4: some codes exist only to be told to an application.
            if !close.code.can_be_sent() {
                return Err(ApiMisuse::BadCloseCode);
            }
            payload.extend_from_slice(&close.code.0.to_be_bytes());
            payload.extend_from_slice(close.reason.as_bytes());
        }
        self.control(Opcode::Close, &payload)?;
        self.state = State::Closed;
        Ok(())
    }
}

/// Appends a frame: its opcode, whether it is final, its reserved bits, its payload.
#[inline]
fn frame<M: Masking>(
    out: &mut Vec<u8>,
    masking: &mut M,
    (opcode, fin, rsv): (Opcode, bool, u8),
    payload: &[u8],
) {
    let (mask, len) = (masking.key(), payload.len() as u64);
    Header { fin, rsv, opcode, mask, len }.write_with(payload, out);
}
