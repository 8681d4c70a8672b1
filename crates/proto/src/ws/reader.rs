//! Bytes in, messages out.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use super::codec::Inflate;
use super::frame::{Header, Opcode, RSV1, payload, plain_head};
use super::{Close, Kind, Limits, Message, OwnedMessage, Role};
use crate::simd::mask;
use crate::simd::utf8::{as_text, check_more, to_text};
use crate::{Error, LimitExceeded, PeerMisbehaved, UnexpectedEof};

/// So many fragments of a message may be empty. They cost no memory, but work that leads nowhere.
const EMPTY_FRAGMENTS: u32 = 1024;

/// An assembled message leaves no more room than this behind.
const KEEP: usize = 16 * 1024;

/// Reads frames, puts fragments together, checks all that RFC 6455 asks of a sender.
///
/// A message that came in one frame is lent, or cut off, where it was read to. Behind it nothing is
/// moved: what was given out stays where it is until [`recv_buf`](Self::recv_buf) or
/// [`recv`](Self::recv) is called again. Fragments and what was compressed are put together in memory of
/// the reader's own, which grows with what came and not with what was announced.
///
/// After an error it gives the same error again; after a close frame it reads nothing more.
///
/// ```
/// use mimus_proto::ws::{Limits, Message, Reader, Role};
///
/// let mut reader = Reader::new(Role::Client, Limits::default());
/// reader.recv(b"\x81\x05chirp\x82\x01!\x81");
/// assert_eq!(reader.poll()?, Some(Message::Text("chirp")));
/// assert_eq!(reader.poll()?, Some(Message::Binary(b"!")));
/// assert_eq!(reader.poll()?, None);
/// # Ok::<(), mimus_proto::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    buf: BytesMut,
    /// How much of `buf` was given out.
    start: usize,
    state: State,
    /// The message that comes in fragments.
    open: Option<Open>,
    /// What was found and not given out yet.
    found: Option<Whole>,
    /// How far the frame at `start` was looked at while it is not whole.
    seen: Seen,
    /// What came of a message in fragments, or in compressed form; or all of the last such.
    gathered: Vec<u8>,
    role: Role,
    limits: Limits,
    /// The most that a frame may have that is a message: both limits hold for it.
    in_one_max: u64,
    inflate: Option<Box<Inflate>>,
    eof: bool,
    /// Bytes that came and are not in `buf` any more.
    gone: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// A header is next.
    Header,
    /// The payload of a fragment, or of what is compressed, is taken as it comes.
    Piece(Piece),
    /// A close frame came (RFC 6455 section 5.5.1: it is the last).
    Closed,
    Failed(Error),
}

/// What is left of a frame that is taken as it comes.
#[derive(Debug, Clone, Copy)]
struct Piece {
    left: u64,
    fin: bool,
    /// Begins with what the next byte is masked with.
    mask: Option<[u8; 4]>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    kind: Kind,
    compressed: bool,
    /// So much of `gathered` is known to be text.
    checked: usize,
    /// Fragments that brought nothing and ended nothing.
    empty: u32,
}

/// Of a payload of which a part is here.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    unmasked: usize,
    /// So much of it is known to be text.
    checked: usize,
    /// How many bytes are to come.
    missing: usize,
}

/// Something whole.
#[derive(Debug)]
enum Whole {
    /// It lies in the buffer.
    Here(Opcode, Range<usize>),
    /// It is what was gathered.
    Gathered(Kind),
}

impl Reader {
    /// A reader for this end of a fresh connection. Does not allocate.
    #[must_use]
    pub fn new(role: Role, limits: Limits) -> Self {
        Self {
            buf: BytesMut::new(),
            start: 0,
            state: State::Header,
            open: None,
            found: None,
            seen: Seen::default(),
            gathered: Vec::new(),
            role,
            limits,
            in_one_max: limits.frame.min(limits.message) as u64,
            inflate: None,
            eof: false,
            gone: 0,
        }
    }

    #[cfg(feature = "ws-deflate")]
    pub(super) fn set_inflate(&mut self, inflate: Inflate) {
        self.inflate = Some(Box::new(inflate));
    }

    /// The buffer to read into: append to it. It may be moved or replaced as long as what it holds
    /// stays the same.
    ///
    /// Call it only when [`poll`](Self::poll) gave `None`, so that it does not grow without bound. When
    /// all of it was given out it is empty, with all its room; otherwise making room in it is what moves
    /// the rest, if it has to be moved.
    #[inline]
    pub fn recv_buf(&mut self) -> &mut BytesMut {
        if self.found.is_some() {
            return &mut self.buf;
        }
        if !self.gathered.is_empty() {
            self.release();
        }
        self.gone += self.start as u64;
        if self.start == self.buf.len() {
            self.buf.clear();
        } else {
            self.buf.advance(self.start);
        }
        self.start = 0;
        &mut self.buf
    }

    /// Takes bytes that came from the peer, by copy.
    pub fn recv(&mut self, bytes: &[u8]) {
        self.recv_buf().extend_from_slice(bytes);
    }

    /// Takes note that the peer closed its side of the transport. [`poll`](Self::poll) then fails behind
    /// what came, unless the last was a close frame.
    pub fn recv_eof(&mut self) {
        self.eof = true;
    }

    /// How many bytes are missing of the frame that has begun, as far as its header tells: at least so
    /// many will come. Zero when none has begun.
    #[must_use]
    pub fn missing(&self) -> usize {
        match self.state {
            State::Piece(piece) => usize::try_from(piece.left).unwrap_or(usize::MAX),
            _ => self.seen.missing,
        }
    }

    /// How many bytes came since the connection began.
    pub(super) fn received(&self) -> u64 {
        self.gone + self.buf.len() as u64
    }

    /// Makes it fail with what went wrong elsewhere.
    pub(super) fn give_up(&mut self, error: Error) {
        self.fail(error);
    }

    /// Whether a close frame came: nothing more is read.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Gives up the room of empty buffers: for a connection that may be idle for long.
    pub fn shrink(&mut self) {
        if self.recv_buf().is_empty() {
            self.buf = BytesMut::new();
        }
        if self.open.is_none() {
            self.gathered = Vec::new();
        }
    }

    /// Forgets a message that was put together and given out.
    #[inline(never)]
    fn release(&mut self) {
        if self.open.is_none() {
            self.gathered.clear();
            if self.gathered.capacity() > KEEP {
                // As a whole: the allocator has it for the next.
                self.gathered = Vec::new();
            }
        }
    }

    /// Whether the next message or control frame is here: [`poll`](Self::poll) gives it, then.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    #[inline]
    pub fn look(&mut self) -> Result<bool, Error> {
        match self.glance() {
            Some(here) => Ok(here),
            None => self.find(),
        }
    }

    /// The same as far as it can be told without a change: whether a plain message is here, or nothing. What
    /// is asked most.
    #[inline]
    pub(super) fn glance(&self) -> Option<bool> {
        if self.is_dry() { Some(false) } else { self.plain_here().map(|_| true) }
    }

    fn find(&mut self) -> Result<bool, Error> {
        if self.found.is_none() {
            self.found = self.step()?;
        }
        Ok(self.found.is_some())
    }

    /// What was found, if it is a control frame.
    #[inline]
    pub(super) fn found_control(&self) -> Option<Message<'_>> {
        match &self.found {
            Some(Whole::Here(opcode, range)) if opcode.is_control() => {
                view(*opcode, &self.buf[range.clone()]).ok()
            }
            _ => None,
        }
    }

    /// What was found, or is to be found now.
    #[inline]
    fn next(&mut self) -> Result<Option<Whole>, Error> {
        match self.found.take() {
            None => self.step(),
            found => Ok(found),
        }
    }

    /// Between frames, without another byte, and nothing was found before.
    #[inline]
    fn is_dry(&self) -> bool {
        self.start == self.buf.len()
            && matches!(self.state, State::Header)
            && self.found.is_none()
            && !self.eof
    }

    /// A message that is one frame, and all here: what comes most, judged by its first two bytes. What it is,
    /// how many bytes its header takes, how many its payload. `None` when it is anything else, or wrong, which
    /// [`step`](Self::step) tells, or when something was found before.
    #[inline(always)]
    fn plain_here(&self) -> Option<(Opcode, usize, usize)> {
        let usual = self.found.is_none() && self.open.is_none() && self.seen.missing == 0;
        if !usual || !matches!(self.state, State::Header) {
            return None;
        }
        let bytes = self.buf.get(self.start..)?;
        let (opcode, size, len) = plain_head(bytes, self.role)?;
        if len as u64 > self.in_one_max || len > bytes.len() - size {
            return None;
        }
        Some((opcode, size, len))
    }

    /// Takes such a message.
    #[inline(always)]
    fn plain(&mut self) -> Option<(Opcode, Range<usize>)> {
        let (opcode, size, len) = self.plain_here()?;
        let range = self.start + size..self.start + size + len;
        if self.role == Role::Server {
            self.unmask(range.clone());
        }
        self.start = range.end;
        Some((opcode, range))
    }

    /// Unmasks such a message, whose key stands before it.
    #[inline(never)]
    fn unmask(&mut self, range: Range<usize>) {
        let (before, payload) = self.buf[..range.end].split_at_mut(range.start);
        if let Some(key) = before.last_chunk() {
            mask::in_place(payload, *key);
        }
    }

    /// The next message or control frame, lent; `None` until more bytes come.
    ///
    /// # Errors
    /// [`Error`], and the same again on every later call. [`CloseCode::of`](super::CloseCode::of) says
    /// what to tell the peer.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<Message<'_>>, Error> {
        match self.plain() {
            Some((opcode, range)) => lent(view(opcode, &self.buf[range]), &mut self.state),
            None => self.poll_other(),
        }
    }

    /// [`poll`](Self::poll) of what is not plain: apart from it, so that it is short where it is called.
    #[inline(never)]
    fn poll_other(&mut self) -> Result<Option<Message<'_>>, Error> {
        let Some(whole) = self.next()? else { return Ok(None) };
        let Self { buf, gathered, state, .. } = self;
        let read = match whole {
            Whole::Here(opcode, range) => view(opcode, &buf[range]),
            Whole::Gathered(Kind::Text) => view(Opcode::Text, gathered),
            Whole::Gathered(Kind::Binary) => Ok(Message::Binary(gathered)),
        };
        lent(read, state)
    }

    /// The same, owned: cut off the buffer, not copied.
    ///
    /// What is cut off keeps all of the buffer alive. Copy small messages that are kept for long
    /// ([`poll`](Self::poll) and [`Message::to_owned`]).
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    #[inline]
    pub fn poll_owned(&mut self) -> Result<Option<OwnedMessage>, Error> {
        let (opcode, range) = match self.plain() {
            Some(here) => here,
            None => match self.next()? {
                Some(Whole::Here(opcode, range)) => (opcode, range),
                Some(Whole::Gathered(kind)) => return self.take_gathered(kind).map(Some),
                None => return Ok(None),
            },
        };
        let bytes = self.cut(range);
        self.own(opcode, bytes).map(Some)
    }

    #[inline(never)]
    fn take_gathered(&mut self, kind: Kind) -> Result<OwnedMessage, Error> {
        let opcode = if kind == Kind::Text { Opcode::Text } else { Opcode::Binary };
        let bytes = std::mem::take(&mut self.gathered).into();
        self.own(opcode, bytes)
    }

    #[inline]
    fn own(&mut self, opcode: Opcode, bytes: Bytes) -> Result<OwnedMessage, Error> {
        owned(opcode, bytes).map_err(|breach| self.fail(breach))
    }

    /// Takes what was just found out of the buffer.
    #[inline]
    fn cut(&mut self, range: Range<usize>) -> Bytes {
        self.start = 0;
        self.gone += range.end as u64;
        let mut bytes = self.buf.split_to(range.end).freeze();
        bytes.advance(range.start);
        bytes
    }

    #[cold]
    fn fail(&mut self, error: impl Into<Error>) -> Error {
        let error = error.into();
        self.state = State::Failed(error);
        error
    }

    /// Goes on to the end of the next whole thing.
    fn step(&mut self) -> Result<Option<Whole>, Error> {
        loop {
            if !matches!(self.state, State::Header)
                && let Some(done) = self.step_elsewhere()?
            {
                return Ok(done);
            }
            let (header, size) = match Header::read(&self.buf[self.start..]) {
                Ok(Some(header)) => header,
                Ok(None) => return self.dry(),
                Err(breach) => return Err(self.fail(breach)),
            };
            if let Err(error) = self.judge(&header) {
                return Err(self.fail(error));
            }
            // Most messages are one frame.
            let in_one = header.fin && header.rsv == 0 && header.opcode != Opcode::Continuation;
            if !in_one && !header.opcode.is_control() {
                self.start += size;
                self.begin_piece(&header)?;
                continue;
            }
            let Some(range) = payload(self.start, size, header.len, self.buf.len()) else {
                self.look_ahead(&header, size)?;
                return self.dry();
            };
            let done = self.seen.unmasked;
            if self.seen.missing > 0 {
                self.seen = Seen::default();
            }
            if let Some(key) = header.mask {
                mask::in_place(&mut self.buf[range.start + done..range.end], turned(key, done));
            }
            self.start = range.end;
            if header.opcode == Opcode::Close {
                self.state = State::Closed;
            }
            return Ok(Some(Whole::Here(header.opcode, range)));
        }
    }

    /// What of a header depends on who reads it, and on what came before.
    #[inline]
    fn judge(&self, header: &Header) -> Result<(), Error> {
        // RFC 6455 section 5.1: a client masks, a server does not.
        if header.mask.is_some() != (self.role == Role::Server) {
            return Err(match self.role {
                Role::Client => PeerMisbehaved::MaskForbidden.into(),
                Role::Server => PeerMisbehaved::MaskMissing.into(),
            });
        }
        let starts = matches!(header.opcode, Opcode::Text | Opcode::Binary);
        if !starts || header.rsv != 0 || self.open.is_some() {
            return self.judge_sequence(header);
        }
        if header.len > self.in_one_max {
            return Err(self.too_long(header.len));
        }
        Ok(())
    }

    /// The same for what is not simply the beginning of a message.
    #[cold]
    fn judge_sequence(&self, header: &Header) -> Result<(), Error> {
        use PeerMisbehaved as P;
        if header.rsv != 0 {
            // RFC 7692 section 6.2: the bit stands on the first frame of a message, and on no other.
            let starts = matches!(header.opcode, Opcode::Text | Opcode::Binary);
            if header.rsv != RSV1 || !starts || self.inflate.is_none() {
                return Err(P::ReservedBits.into());
            }
        }
        if header.opcode.is_control() {
            return Ok(());
        }
        let gathered = match (&self.open, header.opcode) {
            (None, Opcode::Continuation) => return Err(P::FragmentWithoutStart.into()),
            (None, _) => 0,
            (Some(_), Opcode::Continuation) => self.gathered.len(),
            (Some(_), _) => return Err(P::FragmentInterrupted.into()),
        };
        if header.len > self.limits.frame as u64 {
            return Err(LimitExceeded::FrameBytes.into());
        }
        // What is compressed is measured as it is inflated.
        let compressed = header.rsv != 0 || self.open.is_some_and(|open| open.compressed);
        let room = self.limits.message.saturating_sub(gathered);
        if !compressed && header.len > room as u64 {
            return Err(LimitExceeded::MessageBytes.into());
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self, len: u64) -> Error {
        if len > self.limits.frame as u64 {
            LimitExceeded::FrameBytes.into()
        } else {
            LimitExceeded::MessageBytes.into()
        }
    }

    /// Unmasks and checks what is here of a payload, so that text that can never be is refused at once
    /// (RFC 6455 section 8.1), and no byte is unmasked twice.
    #[cold]
    fn look_ahead(&mut self, header: &Header, size: usize) -> Result<(), Error> {
        let here = self.buf.len() - self.start;
        // The limit allows the length, so it is one of memory.
        self.seen.missing = size.saturating_add(header.len as usize).saturating_sub(here);
        if here < size || header.opcode.is_control() {
            return Ok(());
        }
        let bytes = &mut self.buf[self.start + size..];
        if let Some(key) = header.mask {
            let done = self.seen.unmasked;
            mask::in_place(&mut bytes[done..], turned(key, done));
            self.seen.unmasked = bytes.len();
        }
        if header.opcode == Opcode::Text {
            match check_more(bytes, self.seen.checked) {
                Ok(checked) => self.seen.checked = checked,
                Err(_) => return Err(self.fail(PeerMisbehaved::InvalidUtf8)),
            }
        }
        Ok(())
    }

    /// A frame whose payload is taken as it comes.
    fn begin_piece(&mut self, header: &Header) -> Result<(), Error> {
        if self.open.is_none() {
            self.gathered.clear();
            let kind = if header.opcode == Opcode::Text { Kind::Text } else { Kind::Binary };
            self.open = Some(Open { kind, compressed: header.rsv != 0, checked: 0, empty: 0 });
        }
        self.state = State::Piece(Piece { left: header.len, fin: header.fin, mask: header.mask });
        match &mut self.open {
            Some(open) if header.len == 0 && !header.fin => {
                open.empty += 1;
                if open.empty > EMPTY_FRAGMENTS {
                    return Err(self.fail(LimitExceeded::EmptyFragments));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Anywhere but before a header. `None`: a header is next after all.
    #[cold]
    fn step_elsewhere(&mut self) -> Result<Option<Option<Whole>>, Error> {
        match self.state {
            State::Header => Ok(None),
            State::Closed => {
                self.start = self.buf.len();
                Ok(Some(None))
            }
            State::Failed(error) => {
                self.start = self.buf.len();
                Err(error)
            }
            State::Piece(piece) => match self.take_piece(piece) {
                Ok(Some(kind)) => Ok(Some(Some(Whole::Gathered(kind)))),
                Ok(None) if matches!(self.state, State::Header) => Ok(None),
                Ok(None) => self.dry().map(Some),
                Err(error) => Err(self.fail(error)),
            },
        }
    }

    /// Takes what is here of a piece. Gives the kind of the message when it ends it.
    fn take_piece(&mut self, mut piece: Piece) -> Result<Option<Kind>, Error> {
        let Some(mut open) = self.open else { return Ok(None) };
        let here = self.buf.len() - self.start;
        let count = usize::try_from(piece.left).map_or(here, |left| left.min(here));
        let bytes = &mut self.buf[self.start..self.start + count];
        if let Some(key) = &mut piece.mask {
            mask::in_place(bytes, *key);
            *key = turned(*key, count);
        }
        self.start += count;
        piece.left -= count as u64;
        let ends = piece.left == 0 && piece.fin;

        let taken = match &mut self.inflate {
            Some(inflate) if open.compressed => {
                inflate.take(bytes, ends, &mut self.gathered, self.limits.message)
            }
            _ => {
                self.gathered.extend_from_slice(bytes);
                Ok(())
            }
        };
        // At its end the whole of it is checked when it is given out.
        if open.kind == Kind::Text && !ends {
            open.checked = check_more(&self.gathered, open.checked)
                .map_err(|_| PeerMisbehaved::InvalidUtf8)?;
        }
        taken?;
        self.state = if piece.left == 0 { State::Header } else { State::Piece(piece) };
        self.open = if ends { None } else { Some(open) };
        Ok(ends.then_some(open.kind))
    }

    /// Nothing more is here.
    #[cold]
    fn dry(&mut self) -> Result<Option<Whole>, Error> {
        if !self.eof {
            return Ok(None);
        }
        let between = self.start == self.buf.len() && matches!(self.state, State::Header);
        Err(self.fail(match between && self.open.is_none() {
            true => UnexpectedEof::BeforeClose,
            false => UnexpectedEof::InFrame,
        }))
    }
}

/// A message, or how it is from now on.
#[inline]
fn lent<'a>(
    read: Result<Message<'a>, PeerMisbehaved>,
    state: &mut State,
) -> Result<Option<Message<'a>>, Error> {
    match read {
        Ok(message) => Ok(Some(message)),
        Err(breach) => {
            *state = State::Failed(breach.into());
            Err(breach.into())
        }
    }
}

/// What a payload means.
#[inline(always)]
fn view(opcode: Opcode, bytes: &[u8]) -> Result<Message<'_>, PeerMisbehaved> {
    Ok(match opcode {
        Opcode::Text => match as_text(bytes) {
            Ok(text) => Message::Text(text),
            Err(_) => return Err(PeerMisbehaved::InvalidUtf8),
        },
        Opcode::Binary | Opcode::Continuation => Message::Binary(bytes),
        Opcode::Ping => Message::Ping(bytes),
        Opcode::Pong => Message::Pong(bytes),
        Opcode::Close => Message::Close(Close::read(bytes)?),
    })
}

#[inline]
fn owned(opcode: Opcode, bytes: Bytes) -> Result<OwnedMessage, PeerMisbehaved> {
    Ok(match opcode {
        Opcode::Text => match to_text(bytes) {
            Ok(text) => OwnedMessage::Text(text),
            Err(_) => return Err(PeerMisbehaved::InvalidUtf8),
        },
        Opcode::Binary | Opcode::Continuation => OwnedMessage::Binary(bytes),
        Opcode::Ping => OwnedMessage::Ping(bytes),
        Opcode::Pong => OwnedMessage::Pong(bytes),
        Opcode::Close => OwnedMessage::Close(Close::read(&bytes)?.map(Into::into)),
    })
}

/// The key as it stands for a byte that is `count` bytes behind the first.
fn turned(mut key: [u8; 4], count: usize) -> [u8; 4] {
    key.rotate_left(count % 4);
    key
}
