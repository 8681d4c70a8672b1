//! As much of a server of HTTP/2 as makes a client go on.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http::StatusCode;

use super::http2::{Frame, HeaderBlock, Http2Error, Http2Reader};
use crate::Fields;
use crate::h2::SettingId;
use crate::h2::fingerprinting::{
    Header, begin_block, finish_block, flag, kind, write_ping, write_settings, write_settings_ack,
    write_window_update,
};
use crate::h2::hpack::{DEFAULT_TABLE_SIZE, Encoder, Huffman, Indexing};

/// The streams that a client may have open. More are a [`Http2Error::TooManyStreams`].
pub const MAX_OPEN: usize = 100;

/// RFC 9113 section 6.5.2: what any client takes.
const FRAME: usize = 16_384;

/// RFC 9113 section 6.9.2.
const WINDOW: i64 = 65_535;

/// RFC 9113 section 6.9.1: in bytes, more than any client of this sends at once.
const THEIR_WINDOW: u32 = 1 << 20;

/// Reads a client like [`Http2Reader`], and answers what must be answered: SETTINGS, PING, DATA, and
/// requests with what it is given. It obeys the client's flow control; it judges nothing, so it is a
/// server for watching clients and for nothing else.
#[derive(Debug)]
pub struct Http2Responder {
    reader: Http2Reader,
    encoder: Encoder,
    out: Vec<u8>,
    /// What the client takes on the connection.
    window: i64,
    /// What it takes on a new stream.
    initial: i64,
    open: BTreeMap<u32, Open>,
    /// Streams whose requests are whole and were not given out.
    whole: VecDeque<u32>,
}

/// An open stream.
#[derive(Debug)]
struct Open {
    window: i64,
    method: Bytes,
    path: Bytes,
    /// What is left of the answer's body, once there is one.
    body: Option<Bytes>,
}

/// A request that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WholeRequest {
    /// Its stream, for [`Http2Responder::respond`].
    pub stream: u32,
    /// `:method`
    pub method: Bytes,
    /// `:path`
    pub path: Bytes,
}

impl Default for Http2Responder {
    fn default() -> Self {
        Self::new()
    }
}

impl Http2Responder {
    /// A machine for a fresh connection. It has SETTINGS to send.
    #[must_use]
    pub fn new() -> Self {
        let mut out = Vec::new();
        let settings = [
            (SettingId::MAX_CONCURRENT_STREAMS, MAX_OPEN as u32),
            (SettingId::INITIAL_WINDOW_SIZE, THEIR_WINDOW),
        ];
        write_settings(&mut out, &settings);
        Self {
            reader: Http2Reader::new(),
            encoder: Encoder::new(DEFAULT_TABLE_SIZE),
            out,
            window: WINDOW,
            initial: WINDOW,
            open: BTreeMap::new(),
            whole: VecDeque::new(),
        }
    }

    /// Takes bytes that came.
    pub fn recv(&mut self, bytes: &[u8]) {
        self.reader.recv(bytes);
    }

    /// The next frame that is whole; what it asks for is done.
    ///
    /// # Errors
    /// [`Http2Error`], and the same again on every later call.
    pub fn poll_frame(&mut self) -> Result<Option<Frame>, Http2Error> {
        let frame = self.reader.poll_frame()?;
        if let Some(frame) = &frame {
            self.react(frame)?;
        }
        Ok(frame)
    }

    fn react(&mut self, frame: &Frame) -> Result<(), Http2Error> {
        match *frame {
            Frame::Settings { ack: false, ref settings } => {
                for &(id, value) in settings {
                    self.setting(id, value);
                }
                write_settings_ack(&mut self.out);
                self.flush();
            }
            Frame::WindowUpdate { stream, increment } => {
                if stream == 0 {
                    self.window += i64::from(increment);
                } else if let Some(open) = self.open.get_mut(&stream) {
                    open.window += i64::from(increment);
                }
                self.flush();
            }
            Frame::Headers(ref block) => {
                // Trailers come on a stream that is open.
                self.open.entry(block.stream).or_insert_with(|| Open {
                    window: self.initial,
                    method: value(block, b":method"),
                    path: value(block, b":path"),
                    body: None,
                });
                if self.open.len() > MAX_OPEN {
                    return Err(self.reader.fail(Http2Error::TooManyStreams));
                }
                self.received(block.stream, block.end_stream);
            }
            Frame::Data { stream, len, end_stream } => {
                // RFC 9113 section 6.9: an increment of zero would be an error.
                if len > 0 {
                    write_window_update(&mut self.out, 0, len);
                }
                if len > 0 && !end_stream {
                    write_window_update(&mut self.out, stream, len);
                }
                self.received(stream, end_stream);
            }
            Frame::Other { kind: kind::PING, flags, ref payload, .. } if flags & flag::ACK == 0 => {
                if let Ok(payload) = <[u8; 8]>::try_from(&payload[..]) {
                    write_ping(&mut self.out, true, payload);
                }
            }
            Frame::Other { kind: kind::RST_STREAM, stream, .. } => {
                self.open.remove(&stream);
                self.whole.retain(|&whole| whole != stream);
            }
            _ => {}
        }
        Ok(())
    }

    fn received(&mut self, stream: u32, end: bool) {
        let unanswered = self.open.get(&stream).is_some_and(|open| open.body.is_none());
        // A stream that ends again is a mistake that does no harm here.
        if end && unanswered && !self.whole.contains(&stream) {
            self.whole.push_back(stream);
        }
    }

    /// The next request that is whole, in the order of their ends. It waits for
    /// [`respond`](Self::respond).
    pub fn poll_request(&mut self) -> Option<WholeRequest> {
        let stream = self.whole.pop_front()?;
        let open = self.open.get(&stream)?;
        Some(WholeRequest { stream, method: open.method.clone(), path: open.path.clone() })
    }

    fn setting(&mut self, id: SettingId, value: u32) {
        match id {
            SettingId::HEADER_TABLE_SIZE => {
                self.encoder.set_max_size(value.min(DEFAULT_TABLE_SIZE));
            }
            SettingId::INITIAL_WINDOW_SIZE => {
                // RFC 9113 section 6.9.2: of open streams, too.
                let by = i64::from(value) - self.initial;
                self.initial = i64::from(value);
                for open in self.open.values_mut() {
                    open.window += by;
                }
            }
            _ => {}
        }
    }

    /// Answers the request of a stream. Nothing happens when the stream is not open, or was answered.
    pub fn respond(&mut self, stream: u32, status: StatusCode, fields: &Fields, body: Bytes) {
        let Some(open) = self.open.get_mut(&stream).filter(|open| open.body.is_none()) else {
            return;
        };
        let ends = body.is_empty();
        open.body = Some(body);
        let start = begin_block(&mut self.out);
        self.encoder.begin(&mut self.out);
        let mut write = |name: &[u8], value: &[u8]| {
            self.encoder.field(name, value, Indexing::Without, Huffman::Never, &mut self.out);
        };
        write(b":status", status.as_str().as_bytes());
        for (name, value) in fields.iter() {
            // RFC 9113 section 8.2.
            write(name.to_ascii_lowercase().as_bytes(), value);
        }
        let flags = if ends { flag::END_STREAM } else { 0 };
        finish_block(&mut self.out, start, stream, flags, FRAME);
        if ends {
            self.open.remove(&stream);
        }
        self.flush();
    }

    /// Writes what the windows let.
    fn flush(&mut self) {
        let (out, window) = (&mut self.out, &mut self.window);
        self.open.retain(|&stream, open| {
            let Some(body) = &mut open.body else {
                return true;
            };
            while !body.is_empty() {
                let room = usize::try_from(open.window.min(*window)).unwrap_or(0);
                let piece = body.split_to(room.min(FRAME).min(body.len()));
                if piece.is_empty() {
                    return true;
                }
                let flags = if body.is_empty() { flag::END_STREAM } else { 0 };
                let len = piece.len() as u32;
                Header { len, kind: kind::DATA, flags, stream }.write(out);
                out.extend_from_slice(&piece);
                open.window -= i64::from(len);
                *window -= i64::from(len);
            }
            false
        });
    }

    /// What is to be written to the client, all of it.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn value(block: &HeaderBlock, name: &[u8]) -> Bytes {
    let field = block.fields.iter().find(|field| field.name == name);
    field.map(|field| field.value.clone()).unwrap_or_default()
}
