//! The bytes of a connection: as much of RFC 9113 as makes the end of an answer certain, without any
//! input or output.

use std::ops::Range;

use mimus_bench_kit::PeerError;

use super::block;

/// How much is read at a time, wherever to.
pub const READ: usize = 64 * 1024;
/// Bytes of a frame's head.
pub const HEAD: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const GOAWAY: u8 = 0x7;
const WINDOW_UPDATE: u8 = 0x8;
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What the server may send unasked. Were it more, what it sent would have left the cache when it is read.
const WINDOW: u32 = 1 << 20;
/// What a window is before anything is said (RFC 9113 section 6.9.2), and a frame's payload.
const DEFAULT_WINDOW: u32 = 65_535;
const DEFAULT_FRAME: usize = 16_384;
/// The largest frame that is taken.
const FRAME: u32 = 64 << 10;
/// Credit is given back in pieces of this size.
const CREDIT: u32 = WINDOW / 2;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The head of an answer, with status 200, and what it says of the body's length.
    Head { stream: u32, length: Option<u64>, end: bool },
    /// A part of the body: where it is among what was read.
    Data { stream: u32, at: Range<usize>, end: bool },
    /// The end of a call, which went well.
    Trailers { stream: u32 },
    /// Something else.
    Other,
    /// Nothing, until more was read.
    More,
}

/// A DATA frame of which more is to come.
#[derive(Debug, Clone, Copy)]
struct Payload {
    stream: u32,
    left: usize,
    end: bool,
}

/// Both directions of one connection.
pub struct Wire {
    inbox: Box<[u8]>,
    here: Range<usize>,
    /// What is to be sent before anything else.
    pub out: Vec<u8>,
    next: u32,
    payload: Option<Payload>,
    /// Received and not given back: on the connection, and on the present stream.
    taken: u32,
    stream_taken: u32,
    /// What may be sent: on the connection, on a new stream, on the present one, in a frame.
    window: i64,
    initial: i64,
    stream_window: i64,
    frame_max: usize,
}

impl Wire {
    pub fn new() -> Self {
        let mut out = PREFACE.to_vec();
        head(12, SETTINGS, 0, 0, &mut out);
        // SETTINGS_INITIAL_WINDOW_SIZE, SETTINGS_MAX_FRAME_SIZE.
        for (id, value) in [(0x4_u16, WINDOW), (0x5, FRAME)] {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        window_update(0, WINDOW - DEFAULT_WINDOW, &mut out);
        Self {
            inbox: vec![0; READ].into(),
            here: 0..0,
            out,
            next: 1,
            payload: None,
            taken: 0,
            stream_taken: 0,
            window: DEFAULT_WINDOW.into(),
            initial: DEFAULT_WINDOW.into(),
            stream_window: 0,
            frame_max: DEFAULT_FRAME,
        }
    }

    /// Opens a stream with a header block, which is the request's end if nothing follows.
    pub fn open(&mut self, block: &[u8], end: bool) -> u32 {
        let stream = self.next;
        self.next += 2;
        self.stream_window = self.initial;
        self.stream_taken = 0;
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        head(block.len(), HEADERS, flags, stream, &mut self.out);
        self.out.extend_from_slice(block);
        stream
    }

    /// The head of the next frame for a body of which `length` bytes are left, and how many it takes;
    /// `None` while a window is shut.
    pub fn frame(&mut self, stream: u32, length: usize, end: bool) -> Option<([u8; HEAD], usize)> {
        let open = self.window.min(self.stream_window).max(0) as usize;
        let taken = length.min(self.frame_max).min(open);
        if taken == 0 && length > 0 {
            return None;
        }
        self.window -= taken as i64;
        self.stream_window -= taken as i64;
        let flags = if end && taken == length { END_STREAM } else { 0 };
        Some((head_of(taken, DATA, flags, stream), taken))
    }

    /// Where more can be read to.
    pub fn room(&mut self) -> &mut [u8] {
        if self.here.start > 0 {
            self.inbox.copy_within(self.here.clone(), 0);
            self.here = 0..self.here.len();
        }
        &mut self.inbox[self.here.end..]
    }

    /// `n` bytes were read to there.
    pub fn filled(&mut self, n: usize) -> Result<(), PeerError> {
        if n == 0 {
            return Err("the server closed the connection, or its frame is too large".into());
        }
        self.here.end += n;
        Ok(())
    }

    /// What an event said is there.
    pub fn bytes(&self, at: Range<usize>) -> &[u8] {
        &self.inbox[at]
    }

    /// How much of a DATA frame is still to be read, if nothing else is.
    pub fn to_come(&self) -> usize {
        match &self.payload {
            Some(payload) if self.here.is_empty() => payload.left,
            _ => 0,
        }
    }

    /// `n` bytes of it were read elsewhere to; true if the body ends with them.
    pub fn took(&mut self, n: usize) -> bool {
        let Some(payload) = &mut self.payload else { return false };
        payload.left -= n;
        let Payload { stream, left, end } = *payload;
        if left == 0 {
            self.payload = None;
        }
        self.taken += n as u32;
        self.stream_taken += n as u32;
        if self.taken >= CREDIT {
            window_update(0, self.taken, &mut self.out);
            self.taken = 0;
        }
        // Streams at a time are short: only one that is alone comes so far.
        if self.stream_taken >= CREDIT && !end {
            window_update(stream, self.stream_taken, &mut self.out);
            self.stream_taken = 0;
        }
        end && left == 0
    }

    /// What came next.
    pub fn event(&mut self) -> Result<Event, PeerError> {
        if let Some(Payload { stream, left, .. }) = self.payload {
            let n = left.min(self.here.len());
            if n == 0 {
                return Ok(Event::More);
            }
            let at = self.here.start..self.here.start + n;
            self.here.start += n;
            let end = self.took(n);
            return Ok(Event::Data { stream, at, end });
        }
        let Some(&[a, b, c, kind, flags, ref id @ ..]) =
            self.inbox[self.here.clone()].first_chunk::<HEAD>()
        else {
            return Ok(Event::More);
        };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes(*id);
        let end = flags & END_STREAM != 0;
        if kind == DATA {
            if flags & PADDED != 0 {
                return Err("padding".into());
            }
            self.here.start += HEAD;
            if length == 0 {
                let at = self.here.start..self.here.start;
                return Ok(Event::Data { stream, at, end });
            }
            self.payload = Some(Payload { stream, left: length, end });
            return self.event();
        }
        let at = self.here.start + HEAD..self.here.start + HEAD + length;
        if at.end > self.here.end {
            return Ok(Event::More);
        }
        self.here.start = at.end;
        match kind {
            HEADERS if flags == END_HEADERS || flags == END_HEADERS | END_STREAM => {
                head_event(&self.inbox[at], stream, end)
            }
            HEADERS => Err("a header block that is not in one frame, alone".into()),
            RST_STREAM => Err("the stream was reset".into()),
            GOAWAY => Err("the server says GOAWAY".into()),
            _ => self.control(kind, flags, stream, at),
        }
    }

    fn control(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        at: Range<usize>,
    ) -> Result<Event, PeerError> {
        let payload = &self.inbox[at];
        match kind {
            SETTINGS if flags & ACK == 0 => {
                for [a, b, value @ ..] in payload.as_chunks::<6>().0 {
                    let value = u32::from_be_bytes(*value);
                    match u16::from_be_bytes([*a, *b]) {
                        0x4 => {
                            self.stream_window += i64::from(value) - self.initial;
                            self.initial = value.into();
                        }
                        0x5 => self.frame_max = value as usize,
                        _ => {}
                    }
                }
                head(0, SETTINGS, ACK, 0, &mut self.out);
            }
            PING if flags & ACK == 0 => {
                head(payload.len(), PING, ACK, 0, &mut self.out);
                self.out.extend_from_slice(payload);
            }
            WINDOW_UPDATE => {
                let increment: [u8; 4] = payload.try_into()?;
                let increment = i64::from(u32::from_be_bytes(increment));
                match stream {
                    0 => self.window += increment,
                    // Only one that sends a long body has its window filled.
                    _ => self.stream_window += increment,
                }
            }
            _ => {}
        }
        Ok(Event::Other)
    }
}

/// The head of an answer, or the trailers of a call.
fn head_event(fields: &[u8], stream: u32, end: bool) -> Result<Event, PeerError> {
    let Some(rest) = fields.strip_prefix(&[block::STATUS_200]) else {
        return match block::literals(fields, |field| field.is(b"grpc-status", b"0")) {
            Some(true) if end => Ok(Event::Trailers { stream }),
            _ => Err("neither status 200 nor trailers of a call that went well".into()),
        };
    };
    let mut length = None;
    let read = block::literals(rest, |field| {
        if field.index == block::CONTENT_LENGTH {
            length = str::from_utf8(field.value).ok().and_then(|digits| digits.parse().ok());
        }
        false
    });
    read.ok_or("a field that is no plain literal")?;
    Ok(Event::Head { stream, length, end })
}

fn head_of(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

fn head(length: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&head_of(length, kind, flags, stream));
}

/// Gives credit, on the connection if the stream is 0.
fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    head(4, WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&increment.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Vec<u8> {
        let mut wire = Vec::new();
        head(6, SETTINGS, 0, 0, &mut wire);
        wire.extend_from_slice(&[0, 4, 0, 1, 0, 0]);
        head(6, HEADERS, END_HEADERS, 1, &mut wire);
        wire.extend_from_slice(b"\x88\x0f\x0d\x0211");
        wire.truncate(wire.len() - 1);
        wire.push(b'1');
        for (part, end) in [(&b"hello"[..], 0), (b"", 0), (b" world", END_STREAM)] {
            head(part.len(), DATA, end, 1, &mut wire);
            wire.extend_from_slice(part);
        }
        wire
    }

    #[test]
    fn any_split_gives_the_same_body() {
        let answer = answer();
        for cut in 1..=answer.len() {
            let (mut wire, mut parts, mut body) = (Wire::new(), answer.chunks(cut), Vec::new());
            wire.out.clear();
            assert_eq!(wire.open(b"", true), 1);
            loop {
                match wire.event().unwrap() {
                    Event::Head { stream, length, end } => {
                        assert_eq!((stream, length, end), (1, Some(11), false));
                    }
                    Event::Data { at, end, .. } => {
                        body.extend_from_slice(wire.bytes(at));
                        if end {
                            break;
                        }
                    }
                    Event::More => {
                        let part = parts.next().unwrap();
                        wire.room()[..part.len()].copy_from_slice(part);
                        wire.filled(part.len()).unwrap();
                    }
                    Event::Trailers { .. } => panic!("there are none"),
                    Event::Other => {}
                }
            }
            assert_eq!(body, b"hello world", "cut by {cut}");
            assert!(wire.out.ends_with(&head_of(0, SETTINGS, ACK, 0)));
        }
    }

    #[test]
    fn frames_keep_to_the_windows() {
        let mut wire = Wire::new();
        wire.open(b"", false);
        let mut sent = 0;
        while let Some((_, n)) = wire.frame(1, 100_000 - sent, true) {
            assert!(n <= DEFAULT_FRAME);
            sent += n;
        }
        assert_eq!(sent, 65_535);
        assert!(wire.frame(1, 0, true).is_some());
    }

    #[test]
    fn another_status_is_an_error() {
        assert!(head_event(b"\x8d", 1, true).is_err());
        assert!(head_event(b"\x00\x0bgrpc-status\x015", 1, true).is_err());
        let trailers = head_event(b"\x00\x0bgrpc-status\x010", 1, true).unwrap();
        assert_eq!(trailers, Event::Trailers { stream: 1 });
    }
}
