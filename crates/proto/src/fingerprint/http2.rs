//! What a client says on HTTP/2, frame by frame (RFC 9113), with how HPACK wrote each field.

use bytes::Bytes;

use crate::h2::fingerprinting::{
    Forms, HEADER_LEN, Header, PREFACE, flag, kind, number, read_forms,
};
use crate::h2::hpack::{self, Decoder, Form};
use crate::h2::{Priority, SettingId};

/// The longest header block that is read, in bytes before decoding.
pub const MAX_BLOCK: usize = 256 * 1024;

/// The most that one block may decode to, in bytes of names and values.
pub const MAX_BLOCK_TEXT: usize = 1024 * 1024;

/// The most fields that are read of one block.
pub const MAX_BLOCK_FIELDS: usize = 1024;

/// RFC 9113 section 6.5.2: what a client may send to a server that announced nothing else.
const MAX_FRAME: u32 = 16_384;

/// What the peer may use for HPACK's table, in bytes, whatever the server announced.
const TABLE: u32 = 64 * 1024;

reasons! {
    /// Why bytes are no HTTP/2 of a client, or too much of it.
    Http2Error {
        /// RFC 9113 section 3.4.
        NotHttp2 = "the connection does not begin with the preface of HTTP/2",
        /// RFC 9113 section 4.2.
        FrameTooLong = "a frame longer than 16384 bytes",
        /// RFC 9113 section 6.
        BadFrame = "a frame whose length contradicts its kind",
        /// RFC 9113 section 6.10.
        BrokenBlock = "a header block is interrupted, or continued without a beginning",
        /// RFC 9113 section 4.3.
        BadBlock = "a header block that cannot be decoded",
        /// [`MAX_BLOCK`], [`MAX_BLOCK_TEXT`], [`MAX_BLOCK_FIELDS`].
        BlockTooLong = "a header block with more than this reader takes",
        /// [`MAX_OPEN`](super::MAX_OPEN).
        TooManyStreams = "more open streams than were allowed",
    }
}

impl From<hpack::Error> for Http2Error {
    fn from(_: hpack::Error) -> Self {
        Self::BadBlock
    }
}

/// One frame of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// SETTINGS, in their order.
    Settings {
        /// It acknowledges the server's.
        ack: bool,
        /// Unknown and reserved identifiers are kept.
        settings: Vec<(SettingId, u32)>,
    },
    /// WINDOW_UPDATE.
    WindowUpdate {
        /// 0 for the connection.
        stream: u32,
        /// In bytes.
        increment: u32,
    },
    /// PRIORITY.
    Priority {
        /// The stream that it is about.
        stream: u32,
        /// What it says; the weight as on the wire.
        priority: Priority,
    },
    /// PRIORITY_UPDATE (RFC 9218 section 7.1).
    PriorityUpdate {
        /// The stream that it is about.
        stream: u32,
        /// The priority's field value.
        value: Bytes,
    },
    /// HEADERS, with the CONTINUATION frames that belong to it.
    Headers(HeaderBlock),
    /// DATA.
    Data {
        /// Its stream.
        stream: u32,
        /// Bytes of its payload, padding included.
        len: u32,
        /// Whether it ends the stream.
        end_stream: bool,
    },
    /// Any other.
    Other {
        /// The type.
        kind: u8,
        /// The flags.
        flags: u8,
        /// The stream.
        stream: u32,
        /// The payload.
        payload: Bytes,
    },
}

/// A header block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderBlock {
    /// Its stream.
    pub stream: u32,
    /// Whether it ends the stream.
    pub end_stream: bool,
    /// Bytes of padding, if it is padded.
    pub padding: Option<u8>,
    /// The deprecated priority (RFC 7540 section 6.2), if it has one; the weight as on the wire.
    pub priority: Option<Priority>,
    /// The frames that it came in.
    pub frames: usize,
    /// The block itself.
    pub block: Bytes,
    /// The sizes of the dynamic table that it begins with (RFC 7541 section 6.3).
    pub table_sizes: Vec<usize>,
    /// Pseudo-fields and fields, in their order.
    pub fields: Vec<FieldLine>,
}

/// A field, and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldLine {
    /// The name.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
    /// The representation.
    pub form: Form,
}

/// Takes frames off what a client sends on a connection of HTTP/2, from its preface on.
#[derive(Debug)]
pub struct Http2Reader {
    buf: Vec<u8>,
    /// Where in `buf` the next frame starts.
    at: usize,
    preface: bool,
    decoder: Decoder,
    block: Option<HeaderBlock>,
    /// Of the block at hand.
    octets: Vec<u8>,
    failed: Option<Http2Error>,
}

impl Default for Http2Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Http2Reader {
    /// A reader for a connection of which nothing was read.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buf: Vec::new(),
            at: 0,
            preface: false,
            decoder: Decoder::new(TABLE),
            block: None,
            octets: Vec::new(),
            failed: None,
        }
    }

    /// Takes bytes that came. They are kept until [`poll_frame`](Self::poll_frame) reads them.
    pub fn recv(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buf.drain(..self.at);
            self.at = 0;
            self.buf.extend_from_slice(bytes);
        }
    }

    /// The next frame that is whole. A header block is given when it is.
    ///
    /// # Errors
    /// [`Http2Error`], and the same again on every later call.
    pub fn poll_frame(&mut self) -> Result<Option<Frame>, Http2Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.next().map_err(|error| self.fail(error))
    }

    /// This is the answer from now on.
    pub(super) fn fail(&mut self, error: Http2Error) -> Http2Error {
        self.failed = Some(error);
        (self.buf, self.at) = (Vec::new(), 0);
        error
    }

    fn next(&mut self) -> Result<Option<Frame>, Http2Error> {
        if !self.preface {
            let come = self.buf.len().min(PREFACE.len());
            if self.buf[..come] != PREFACE[..come] {
                return Err(Http2Error::NotHttp2);
            }
            if come < PREFACE.len() {
                return Ok(None);
            }
            self.preface = true;
            self.at = PREFACE.len();
        }
        loop {
            let rest = &self.buf[self.at..];
            let Some(header) = Header::parse(rest) else {
                return Ok(None);
            };
            if header.len > MAX_FRAME {
                return Err(Http2Error::FrameTooLong);
            }
            let end = HEADER_LEN + header.len as usize;
            let Some(payload) = rest.get(HEADER_LEN..end) else {
                return Ok(None);
            };
            let payload = Bytes::copy_from_slice(payload);
            self.at += end;
            if let Some(frame) = self.frame(header, payload)? {
                return Ok(Some(frame));
            }
        }
    }

    /// `None` while a header block has not ended.
    fn frame(&mut self, header: Header, payload: Bytes) -> Result<Option<Frame>, Http2Error> {
        if self.block.is_some() != (header.kind == kind::CONTINUATION) {
            return Err(Http2Error::BrokenBlock);
        }
        match header.kind {
            kind::HEADERS => {
                let (block, octets) = headers(header, &payload).ok_or(Http2Error::BadFrame)?;
                self.block = Some(block);
                self.continued(header, octets)
            }
            kind::CONTINUATION => self.continued(header, &payload),
            _ => plain_frame(header, payload).map(Some).ok_or(Http2Error::BadFrame),
        }
    }

    fn continued(&mut self, header: Header, octets: &[u8]) -> Result<Option<Frame>, Http2Error> {
        let Some(mut block) = self.block.take_if(|block| block.stream == header.stream) else {
            return Err(Http2Error::BrokenBlock);
        };
        block.frames += 1;
        // A frame of a block may be empty, so they are counted, too.
        if self.octets.len() + octets.len() > MAX_BLOCK || block.frames > MAX_BLOCK_FIELDS {
            return Err(Http2Error::BlockTooLong);
        }
        self.octets.extend_from_slice(octets);
        if !header.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        block.block = Bytes::from(std::mem::take(&mut self.octets));
        self.decode(&mut block)?;
        Ok(Some(Frame::Headers(block)))
    }

    fn decode(&mut self, block: &mut HeaderBlock) -> Result<(), Http2Error> {
        let Forms { table_sizes, fields: forms } =
            read_forms(&block.block, MAX_BLOCK_FIELDS)?.ok_or(Http2Error::BlockTooLong)?;
        block.table_sizes = table_sizes;
        let (mut forms, mut text) = (forms.into_iter(), 0);
        let fields = &mut block.fields;
        self.decoder.decode(&block.block, |name, value| {
            text += name.len() + value.len();
            if text > MAX_BLOCK_TEXT {
                return Err(Http2Error::BlockTooLong);
            }
            // Both went over the same block, so there is a form for each field.
            let form = forms.next().ok_or(Http2Error::BadBlock)?;
            let (name, value) = (Bytes::copy_from_slice(name), Bytes::copy_from_slice(value));
            fields.push(FieldLine { name, value, form });
            Ok(())
        })
    }
}

/// What stands before a header block (RFC 9113 section 6.2), and the block's first octets.
fn headers(header: Header, mut payload: &[u8]) -> Option<(HeaderBlock, &[u8])> {
    let mut padding = None;
    if header.has(flag::PADDED) {
        let (&len, rest) = payload.split_first()?;
        padding = Some(len);
        payload = rest;
    }
    let mut priority = None;
    if header.has(flag::PRIORITY) {
        let (five, rest) = payload.split_first_chunk()?;
        priority = Some(read_priority(*five));
        payload = rest;
    }
    let len = payload.len().checked_sub(padding.unwrap_or(0).into())?;
    let block = HeaderBlock {
        stream: header.stream,
        end_stream: header.has(flag::END_STREAM),
        padding,
        priority,
        frames: 0,
        block: Bytes::new(),
        table_sizes: Vec::new(),
        fields: Vec::new(),
    };
    Some((block, &payload[..len]))
}

fn read_priority([a, b, c, d, weight]: [u8; 5]) -> Priority {
    let stream = u32::from_be_bytes([a, b, c, d]);
    Priority { depends_on: stream & 0x7fff_ffff, exclusive: stream >> 31 != 0, weight }
}

/// Any frame but those of header blocks; `None` for a length that it cannot have.
fn plain_frame(header: Header, payload: Bytes) -> Option<Frame> {
    let Header { len, kind, flags, stream } = header;
    Some(match kind {
        kind::SETTINGS => {
            let (settings, []) = payload.as_chunks::<6>() else {
                return None;
            };
            let settings = settings.iter().map(|&[i, d, a, b, c, e]| {
                (SettingId(u16::from_be_bytes([i, d])), u32::from_be_bytes([a, b, c, e]))
            });
            Frame::Settings { ack: header.has(flag::ACK), settings: settings.collect() }
        }
        kind::WINDOW_UPDATE => {
            let increment = number(exactly(&payload, 4)?, 0)? & 0x7fff_ffff;
            Frame::WindowUpdate { stream, increment }
        }
        kind::PRIORITY => {
            let priority = read_priority(*exactly(&payload, 5)?.first_chunk()?);
            Frame::Priority { stream, priority }
        }
        kind::PRIORITY_UPDATE => {
            let stream = number(&payload, 0)? & 0x7fff_ffff;
            Frame::PriorityUpdate { stream, value: payload.slice(4..) }
        }
        kind::DATA => Frame::Data { stream, len, end_stream: header.has(flag::END_STREAM) },
        _ => Frame::Other { kind, flags, stream, payload },
    })
}

fn exactly(payload: &[u8], len: usize) -> Option<&[u8]> {
    (payload.len() == len).then_some(payload)
}
