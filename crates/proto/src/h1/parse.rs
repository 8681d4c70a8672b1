//! Heads and trailer sections, parsed line by line as the lines come.
//!
//! A line is judged when its LF is there, and never looked at again, so the verdict does not depend
//! on how the bytes were split, a bad line is refused before the head is whole, and a head that
//! arrives byte by byte costs no more than one scan.

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode, Version};
use memchr::memchr;

use super::Limits;
use crate::fields::{Span, has_control, is_token, token_len};
use crate::{Error, Fields, LimitExceeded, PeerMisbehaved, RequestHead, ResponseHead};

/// Offsets are 32 bits: no limit may pass this.
const MAX_SECTION: usize = u32::MAX as usize;

/// Fields to make room for before any head of the connection was seen.
const FIRST_GUESS: usize = 8;

/// A section (head or trailers) in the making: how far the front of the buffer was read.
#[derive(Debug)]
pub(super) struct Section {
    /// Where the line in question starts.
    line: usize,
    /// Up to where no LF was found.
    scanned: usize,
    spans: Vec<Span>,
    /// Fields to make room for: as many as last time.
    guess: usize,
}

impl Section {
    pub(super) fn new() -> Self {
        Self {
            line: 0,
            scanned: 0,
            spans: Vec::new(),
            guess: FIRST_GUESS,
        }
    }

    /// Whether any byte of the section was seen.
    pub(super) fn is_started(&self) -> bool {
        self.scanned > 0
    }

    /// Moves to the next line. Gives its range without CR LF, or `None` until it is whole.
    fn next_line(
        &mut self,
        buf: &[u8],
        max: usize,
        excess: LimitExceeded,
    ) -> Result<Option<(usize, usize)>, Error> {
        let found = memchr(b'\n', buf.get(self.scanned..).unwrap_or_default());
        let end = found.map_or(buf.len(), |at| self.scanned + at + 1);
        self.scanned = end;
        if end > max.min(MAX_SECTION) {
            return Err(excess.into());
        }
        if found.is_none() {
            return Ok(None);
        }
        let start = std::mem::replace(&mut self.line, end);
        let text_end = end - 2.min(end);
        if text_end < start || buf[text_end] != b'\r' {
            return Err(PeerMisbehaved::BareLf.into());
        }
        Ok(Some((start, text_end)))
    }

    /// Reads field lines up to the empty one. `true` when it was there.
    fn fields(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        excess: LimitExceeded,
    ) -> Result<bool, Error> {
        while let Some((start, end)) = self.next_line(buf, limits.head_bytes as usize, excess)? {
            if start == end {
                return Ok(true);
            }
            if self.spans.len() == limits.fields {
                return Err(LimitExceeded::Fields.into());
            }
            if self.spans.capacity() == 0 {
                self.spans.reserve_exact(self.guess);
            }
            self.spans.push(field_line(buf, start, end)?);
        }
        Ok(false)
    }

    /// Takes the finished section off the buffer and is ready for the next.
    fn take(&mut self, buf: &mut BytesMut) -> Fields {
        let text = buf.split_to(self.line);
        let spans = std::mem::take(&mut self.spans);
        self.guess = spans.len().max(FIRST_GUESS);
        (self.line, self.scanned) = (0, 0);
        Fields::from_parts(text, spans)
    }

    /// The trailer section of a chunked body (RFC 9112 section 7.1.2), once it is whole.
    pub(super) fn trailers(
        &mut self,
        buf: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Fields>, Error> {
        if !self.fields(buf, limits, LimitExceeded::TrailerBytes)? {
            return Ok(None);
        }
        Ok(Some(self.take(buf)))
    }
}

/// A first line, judged; the parts that stay in the buffer as ranges.
pub(super) trait StartLine: Sized {
    /// The head that it begins.
    type Head;

    /// Refuses as early as possible what cannot become a first line.
    fn check_prefix(front: &[u8]) -> Result<(), PeerMisbehaved>;

    /// Reads the line, which starts the buffer.
    fn parse(line: &[u8]) -> Result<Self, PeerMisbehaved>;

    /// The whole head.
    fn finish(self, fields: Fields) -> Self::Head;
}

/// A head in the making.
#[derive(Debug)]
pub(super) struct HeadParser<L> {
    start: Option<L>,
    section: Section,
}

impl<L: StartLine> HeadParser<L> {
    pub(super) fn new() -> Self {
        Self {
            start: None,
            section: Section::new(),
        }
    }

    /// Whether any byte of the head was seen.
    pub(super) fn is_started(&self) -> bool {
        self.section.is_started()
    }

    /// The head, once it is whole. It is taken off the buffer then.
    pub(super) fn parse(
        &mut self,
        buf: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<L::Head>, Error> {
        const EXCESS: LimitExceeded = LimitExceeded::HeadBytes;
        if self.start.is_none() {
            L::check_prefix(buf)?;
            match self
                .section
                .next_line(buf, limits.head_bytes as usize, EXCESS)?
            {
                None => return Ok(None),
                Some((start, end)) => self.start = Some(L::parse(&buf[start..end])?),
            }
        }
        if !self.section.fields(buf, limits, EXCESS)? {
            return Ok(None);
        }
        let fields = self.section.take(buf);
        Ok(self.start.take().map(|start| start.finish(fields)))
    }

    /// The parser of the trailers that may follow: the same scan, without a first line.
    pub(super) fn section(&mut self) -> &mut Section {
        &mut self.section
    }
}

/// `HTTP/1.1 200 OK` (RFC 9112 section 4).
#[derive(Debug)]
pub(super) struct StatusLine {
    version: Version,
    status: StatusCode,
    /// None for the registered phrase.
    reason: Option<Bytes>,
}

impl StartLine for StatusLine {
    type Head = ResponseHead;

    fn check_prefix(front: &[u8]) -> Result<(), PeerMisbehaved> {
        const PREFIX: &[u8] = b"HTTP/";
        if matches!(front, [b'\r' | b'\n', ..]) {
            return Err(PeerMisbehaved::EmptyLineBeforeHead);
        }
        let known = front.len().min(PREFIX.len());
        if front[..known] != PREFIX[..known] {
            return Err(PeerMisbehaved::BadStatusLine);
        }
        Ok(())
    }

    fn parse(line: &[u8]) -> Result<Self, PeerMisbehaved> {
        const BAD: PeerMisbehaved = PeerMisbehaved::BadStatusLine;
        let (version, rest) = line.split_at_checked(8).ok_or(BAD)?;
        let version = http_version(version).ok_or(BAD)??;
        let (status, reason) = match rest {
            [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
            // The space before an empty phrase is required, and often forgotten.
            [b' ', a, b, c] => ([*a, *b, *c], &[][..]),
            _ => return Err(BAD),
        };
        let status = StatusCode::from_bytes(&status).map_err(|_| BAD)?;
        if reason == crate::head::registered_reason(status) {
            return Ok(Self {
                version,
                status,
                reason: None,
            });
        }
        check_text(reason)?;
        Ok(Self {
            version,
            status,
            reason: Some(Bytes::copy_from_slice(reason)),
        })
    }

    fn finish(self, fields: Fields) -> ResponseHead {
        let head = ResponseHead::new(self.status, self.version, fields);
        match self.reason {
            None => head,
            Some(reason) => head.with_reason(reason),
        }
    }
}

/// `GET /path HTTP/1.1` (RFC 9112 section 3).
#[derive(Debug)]
pub(super) struct RequestLine {
    method: Method,
    target: String,
    version: Version,
}

impl StartLine for RequestLine {
    type Head = RequestHead;

    fn check_prefix(front: &[u8]) -> Result<(), PeerMisbehaved> {
        match front {
            [first, ..] if !is_token(&[*first]) => Err(PeerMisbehaved::BadRequestLine),
            _ => Ok(()),
        }
    }

    fn parse(line: &[u8]) -> Result<Self, PeerMisbehaved> {
        const BAD: PeerMisbehaved = PeerMisbehaved::BadRequestLine;
        let mut words = line.split(|&b| b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BAD);
        };
        let version = http_version(version).ok_or(BAD)??;
        let method = Method::from_bytes(method).map_err(|_| BAD)?;
        let target = std::str::from_utf8(target)
            .ok()
            .filter(|t| is_target(t))
            .ok_or(BAD)?;
        Ok(Self {
            method,
            target: target.to_owned(),
            version,
        })
    }

    fn finish(self, fields: Fields) -> RequestHead {
        RequestHead::new(self.method, self.target, self.version, fields)
    }
}

/// Whether this can be a request target: visible ASCII only (RFC 9112 section 3.2).
pub(super) fn is_target(target: &str) -> bool {
    !target.is_empty() && target.bytes().all(|b| b.is_ascii_graphic())
}

/// `HTTP/1.x` (RFC 9112 section 2.3). `None` if it is not a version at all.
fn http_version(text: &[u8]) -> Option<Result<Version, PeerMisbehaved>> {
    match text {
        b"HTTP/1.1" => Some(Ok(Version::HTTP_11)),
        b"HTTP/1.0" => Some(Ok(Version::HTTP_10)),
        // A higher minor version is read as the highest we know (RFC 9110 section 2.5).
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Some(Ok(Version::HTTP_11)),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', ..] => {
            Some(Err(PeerMisbehaved::UnsupportedVersion))
        }
        _ => None,
    }
}

/// `name ":" OWS value OWS` (RFC 9112 section 5).
fn field_line(buf: &[u8], start: usize, end: usize) -> Result<Span, PeerMisbehaved> {
    let line = &buf[start..end];
    let name_len = token_len(line);
    if name_len == 0 || line.get(name_len) != Some(&b':') {
        return Err(bad_name(line, name_len));
    }
    let (mut value, mut value_end) = (start + name_len + 1, end);
    while value < value_end && matches!(buf[value], b' ' | b'\t') {
        value += 1;
    }
    while value < value_end && matches!(buf[value_end - 1], b' ' | b'\t') {
        value_end -= 1;
    }
    check_text(&buf[value..value_end])?;
    Ok(Span::new(start, name_len, value, value_end - value))
}

/// Names what is wrong with the name on this line.
#[cold]
fn bad_name(line: &[u8], name_len: usize) -> PeerMisbehaved {
    let blank = |b: &&u8| matches!(b, b' ' | b'\t');
    match line.get(name_len) {
        Some(b' ' | b'\t') if name_len == 0 => PeerMisbehaved::ObsFold,
        Some(b' ' | b'\t') => {
            let after = line[name_len..].iter().find(|b| !blank(b));
            match after {
                Some(b':') => PeerMisbehaved::SpaceBeforeColon,
                _ => PeerMisbehaved::BadFieldName,
            }
        }
        Some(&byte) if byte < 0x20 || byte == 0x7f => bad_control(byte),
        _ => PeerMisbehaved::BadFieldName,
    }
}

/// Refuses control bytes other than HTAB (RFC 9110 section 5.5).
fn check_text(text: &[u8]) -> Result<(), PeerMisbehaved> {
    if has_control(text) {
        Err(bad_text(text))
    } else {
        Ok(())
    }
}

#[cold]
fn bad_text(text: &[u8]) -> PeerMisbehaved {
    let first = text.iter().find(|&&b| has_control(&[b]));
    first.map_or(PeerMisbehaved::ControlByte, |&byte| bad_control(byte))
}

fn bad_control(byte: u8) -> PeerMisbehaved {
    match byte {
        0 => PeerMisbehaved::NulByte,
        b'\r' => PeerMisbehaved::BareCr,
        _ => PeerMisbehaved::ControlByte,
    }
}
