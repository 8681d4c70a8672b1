//! Heads and trailer sections, parsed line by line as the lines come.
//!
//! A line is judged when its LF is there, and never looked at again, so the verdict does not depend
//! on how the bytes were split, and a bad line is refused before the head is whole. A line that is
//! there already is read in one pass; one that is not waits for its LF, and what was searched for it
//! is not searched again, so that a head arriving byte by byte costs two passes.

use bytes::BytesMut;
use http::{Method, StatusCode, Version};
use memchr::memchr;

use super::Limits;
use crate::fields::{Span, has_control, is_control, is_token, text_len, token_len, trim_ows};
use crate::head::{Control, forbidden_in_trailers};
use crate::{Error, Fields, LimitExceeded, PeerMisbehaved, RequestHead, ResponseHead};

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
    /// What the fields so far say about message and connection.
    control: Control,
    /// Fields to make room for: as many as last time.
    guess: usize,
}

impl Section {
    pub(super) fn new() -> Self {
        let (spans, control) = (Vec::new(), Control::none());
        Self { line: 0, scanned: 0, spans, control, guess: FIRST_GUESS }
    }

    /// Whether any byte of the section was seen.
    pub(super) fn is_started(&self) -> bool {
        self.scanned > 0
    }

    /// The offset after the LF of this line, or `None` until the line is whole.
    fn line_end(&mut self, buf: &[u8], bound: Bound) -> Result<Option<usize>, Error> {
        let found = memchr(b'\n', buf.get(self.scanned..).unwrap_or_default());
        let end = found.map_or(buf.len(), |at| self.scanned + at + 1);
        self.scanned = end;
        bound.check(end)?;
        Ok(found.map(|_| end))
    }

    fn advance(&mut self, end: usize) {
        (self.line, self.scanned) = (end, end);
    }

    /// The next line, once it is whole.
    fn next_line(&mut self, buf: &[u8], bound: Bound) -> Result<Option<Line>, Error> {
        // A line that was there in part before is read only when its LF has come.
        if self.scanned > self.line && self.line_end(buf, bound)?.is_none() {
            return Ok(None);
        }
        match field_line(buf, self.line) {
            Ok(line) => {
                let (Line::Field(_, end) | Line::Empty(end)) = line;
                bound.check(end)?;
                self.advance(end);
                Ok(Some(line))
            }
            Err(fault) => {
                self.scanned = self.line;
                match self.line_end(buf, bound)? {
                    None => Ok(None),
                    Some(_) => Err(fault.into()),
                }
            }
        }
    }

    /// Reads field lines up to the empty one. `true` when it was there.
    fn fields(&mut self, buf: &[u8], limits: &Limits, bound: Bound) -> Result<bool, Error> {
        while let Some(line) = self.next_line(buf, bound)? {
            let Line::Field(span, _) = line else {
                return Ok(true);
            };
            if self.spans.len() == limits.fields {
                return Err(LimitExceeded::Fields.into());
            }
            if self.spans.capacity() == 0 {
                self.spans = Vec::with_capacity(self.guess.min(limits.fields));
            }
            self.spans.push(span);
            let name = span.raw_name(buf);
            if Control::may_concern(name) {
                self.control.note(name, span.value_in(buf));
            }
        }
        Ok(false)
    }

    /// Takes the finished section off the buffer, with what it controls, and is ready for the next.
    fn take(&mut self, buf: &mut BytesMut) -> (Fields, Control) {
        let text = buf.split_to(self.line);
        let spans = std::mem::take(&mut self.spans);
        self.guess = spans.len().max(FIRST_GUESS);
        (self.line, self.scanned) = (0, 0);
        let control = std::mem::replace(&mut self.control, Control::none());
        (Fields::from_parts(text, spans), control)
    }

    /// The trailer section of a chunked body (RFC 9112 section 7.1.2), once it is whole.
    pub(super) fn trailers(
        &mut self,
        buf: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Fields>, Error> {
        let bound = Bound::new(limits, LimitExceeded::TrailerBytes);
        if !self.fields(buf, limits, bound)? {
            return Ok(None);
        }
        let (trailers, _) = self.take(buf);
        if trailers.raw().any(|(name, _)| forbidden_in_trailers(name)) {
            return Err(PeerMisbehaved::TrailerInvalid.into());
        }
        Ok(Some(trailers))
    }
}

/// How long a section may be, and what it is to be longer.
#[derive(Clone, Copy)]
struct Bound {
    bytes: usize,
    excess: LimitExceeded,
}

impl Bound {
    fn new(limits: &Limits, excess: LimitExceeded) -> Self {
        // Offsets are 32 bits, and so is the limit.
        Self { bytes: limits.head_bytes as usize, excess }
    }

    fn check(self, end: usize) -> Result<(), LimitExceeded> {
        if end > self.bytes { Err(self.excess) } else { Ok(()) }
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
        Self { start: None, section: Section::new() }
    }

    /// Whether any byte of the head was seen.
    pub(super) fn is_started(&self) -> bool {
        self.section.is_started()
    }

    /// The head, once it is whole, and what its fields control. It is taken off the buffer then.
    pub(super) fn parse(
        &mut self,
        buf: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<(L::Head, Control)>, Error> {
        let bound = Bound::new(limits, LimitExceeded::HeadBytes);
        if self.start.is_none() {
            L::check_prefix(buf)?;
            let Some(end) = self.section.line_end(buf, bound)? else {
                return Ok(None);
            };
            let [line @ .., b'\r', b'\n'] = &buf[..end] else {
                return Err(PeerMisbehaved::BareLf.into());
            };
            self.start = Some(L::parse(line)?);
            self.section.advance(end);
        }
        if !self.section.fields(buf, limits, bound)? {
            return Ok(None);
        }
        let (fields, control) = self.section.take(buf);
        Ok(self.start.take().map(|start| (start.finish(fields), control)))
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
    reason: Option<Box<[u8]>>,
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
            return Ok(Self { version, status, reason: None });
        }
        if has_control(reason) {
            return Err(bad_control(&reason[text_len(reason)..]));
        }
        Ok(Self { version, status, reason: Some(reason.into()) })
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
        let target = std::str::from_utf8(target).ok().filter(|t| is_target(t)).ok_or(BAD)?;
        Ok(Self { method, target: target.to_owned(), version })
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
        [b'H', b'T', b'T', b'P', b'/', b'0' | b'2'..=b'9', b'.' | b' ', ..] => {
            Some(Err(PeerMisbehaved::UnsupportedVersion))
        }
        _ => None,
    }
}

/// What stands on a line of a section, and the offset after its LF.
enum Line {
    Field(Span, usize),
    Empty(usize),
}

/// `name ":" OWS value OWS` (RFC 9112 section 5), from `start` on. An error counts only if the LF of
/// the line is there.
fn field_line(buf: &[u8], start: usize) -> Result<Line, PeerMisbehaved> {
    let line = buf.get(start..).unwrap_or_default();
    let name_len = token_len(line);
    if name_len == 0 || line.get(name_len) != Some(&b':') {
        return match line {
            [b'\r', b'\n', ..] => Ok(Line::Empty(start + 2)),
            _ => Err(bad_name(line, name_len)),
        };
    }
    let mut value = name_len + 1;
    while matches!(line.get(value), Some(b' ' | b'\t')) {
        value += 1;
    }
    let end = value + text_len(&line[value..]);
    let [b'\r', b'\n', ..] = line[end..] else {
        return Err(bad_control(&line[end..]));
    };
    let value_len = trim_end(&line[value..end]);
    let span = Span::new(start, name_len, start + value, value_len);
    Ok(Line::Field(span, start + end + 2))
}

/// The length without the SP and HTAB at the end.
fn trim_end(text: &[u8]) -> usize {
    text.iter().rposition(|b| !matches!(b, b' ' | b'\t')).map_or(0, |last| last + 1)
}

/// Names what is wrong with the name that starts this line.
#[cold]
fn bad_name(line: &[u8], name_len: usize) -> PeerMisbehaved {
    let rest = &line[name_len..];
    match rest {
        [b' ' | b'\t', ..] if name_len == 0 => PeerMisbehaved::ObsFold,
        [b' ' | b'\t', ..] if trim_ows(rest).starts_with(b":") => PeerMisbehaved::SpaceBeforeColon,
        [byte, ..] if is_control(*byte) => bad_control(rest),
        _ => PeerMisbehaved::BadFieldName,
    }
}

/// Names the control byte that these bytes start with.
#[cold]
fn bad_control(rest: &[u8]) -> PeerMisbehaved {
    match rest {
        [0, ..] => PeerMisbehaved::NulByte,
        [b'\r', ..] => PeerMisbehaved::BareCr,
        [b'\n', ..] => PeerMisbehaved::BareLf,
        _ => PeerMisbehaved::ControlByte,
    }
}
