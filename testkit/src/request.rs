//! The request head, and its body as it comes off the wire.
//!
//! Stricter than a public server would be: what a client must not send is refused with 400.

use std::io;

use bytes::Bytes;
use percent_encoding::percent_decode_str;

use crate::conn::Conn;
use crate::record::RequestMark;

/// The longest head that is read, in bytes.
const MAX_HEAD: usize = 1 << 20;
/// The most field lines that are read.
const MAX_HEADERS: usize = 1024;
/// How many field lines there is room for at first.
const USUAL_HEADERS: usize = 48;
/// The longest chunk-size or trailer line, in bytes.
const MAX_LINE: usize = 8 * 1024;
/// The largest body a route keeps in memory, in bytes.
pub(crate) const MAX_KEPT_BODY: usize = 64 << 20;

/// The version of HTTP a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
    Http2,
}

impl Version {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
        }
    }
}

/// A request head.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The target's path, percent-encoding untouched.
    pub(crate) path: String,
    /// The query as decoded pairs, in order.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) version: Version,
    /// `:authority` of HTTP/2.
    pub(crate) authority: Option<String>,
    /// `:protocol` of extended CONNECT (RFC 8441 section 4).
    pub(crate) protocol: Option<String>,
    /// Field lines in order, names as sent, values as Latin-1.
    pub(crate) headers: Vec<(String, String)>,
    /// The whole head as it was on the wire.
    pub(crate) raw: Bytes,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter();
        lines.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn headers_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = move |(have, _): &&(String, String)| have.eq_ignore_ascii_case(name);
        self.headers.iter().filter(same).map(|(_, value)| value.as_str())
    }

    /// Whom the request is for: `:authority`, or Host (RFC 9113 section 8.3.1).
    pub(crate) fn host(&self) -> &str {
        self.authority.as_deref().or_else(|| self.header("host")).unwrap_or_default()
    }

    /// Whether a comma-separated field names this token, in any case.
    pub(crate) fn has_token(&self, name: &str, token: &str) -> bool {
        let items = self.headers_of(name).flat_map(|value| value.split(','));
        items.into_iter().any(|item| item.trim().eq_ignore_ascii_case(token))
    }

    /// Whether the client lets the connection go on (RFC 9112 section 9.3).
    pub(crate) fn keeps_alive(&self) -> bool {
        if self.has_token("connection", "close") {
            return false;
        }
        self.version != Version::Http10 || self.has_token("connection", "keep-alive")
    }
}

/// Why a head was refused.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// The client left, in order before a head or by an error.
    Gone,
    /// The head breaks a rule; what it broke.
    Bad(&'static str),
}

/// Reads one head from the connection.
pub(crate) async fn read_head(conn: &mut Conn) -> Result<Request, HeadError> {
    let mut searched = 0;
    loop {
        let from = usize::saturating_sub(searched, 3);
        let end = conn.inbox[from..].windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(at) = end {
            let whole = conn.inbox.split_to(from + at + 4);
            // A copy: the record may keep it for long, and must not keep the read buffer.
            return parse(Bytes::copy_from_slice(&whole)).map_err(HeadError::Bad);
        }
        searched = conn.inbox.len();
        if searched > MAX_HEAD {
            return Err(HeadError::Bad("the head is too long"));
        }
        if conn.fill().await.map_err(|_| HeadError::Gone)? == 0 {
            return Err(if searched == 0 {
                HeadError::Gone
            } else {
                HeadError::Bad("the head ends early")
            });
        }
    }
}

fn parse(raw: Bytes) -> Result<Request, &'static str> {
    // RFC 9112 section 2.2: a recipient may take a lone LF; no client has a reason to send one.
    if raw.iter().zip(raw.iter().skip(1)).any(|(&a, &b)| (a == b'\r') != (b == b'\n')) {
        return Err("the head has a bare CR or LF");
    }
    let mut few = [httparse::EMPTY_HEADER; USUAL_HEADERS];
    let mut many = Vec::new();
    let mut head = httparse::Request::new(&mut few);
    let mut parsed = head.parse(&raw);
    if parsed == Err(httparse::Error::TooManyHeaders) {
        many.resize(MAX_HEADERS, httparse::EMPTY_HEADER);
        head = httparse::Request::new(&mut many);
        parsed = head.parse(&raw);
    }
    match parsed {
        Ok(httparse::Status::Complete(len)) if len == raw.len() => {}
        Ok(_) => return Err("the head does not end where it should"),
        Err(httparse::Error::TooManyHeaders) => return Err("too many field lines"),
        Err(_) => return Err("the head does not parse"),
    }
    let latin1 = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    let headers = head.headers.iter().map(|line| (line.name.to_owned(), latin1(line.value)));
    let target = head.path.unwrap_or_default().to_owned();
    let (path, query) = split_target(&target);
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path,
        query,
        version: if head.version == Some(0) { Version::Http10 } else { Version::Http11 },
        authority: None,
        protocol: None,
        headers: headers.collect(),
        target,
        raw: raw.clone(),
    };
    // RFC 9112 section 3.2: one Host line, no more and no less.
    match request.headers_of("host").count() {
        1 => {}
        0 if request.version == Version::Http10 => {}
        _ => return Err("there must be one Host line"),
    }
    Ok(request)
}

/// The path and the query of a target in origin-form or absolute-form (RFC 9112 section 3.2).
pub(crate) fn split_target(target: &str) -> (String, Vec<(String, String)>) {
    let origin_form = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    let (path, query) = origin_form.split_once('?').unwrap_or((origin_form, ""));
    let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    (if path.is_empty() { "/".to_owned() } else { path.to_owned() }, pairs)
}

/// Percent-decodes one path segment.
pub(crate) fn decode(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

/// Where in its body a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Done,
    Length(u64),
    /// Before a chunk-size line.
    ChunkSize,
    /// Inside a chunk with this much left.
    Chunk(u64),
}

/// The body of the request being answered.
#[derive(Debug)]
pub(crate) struct Body {
    rest: Rest,
    read: u64,
    /// Whether the client waits for a 100 (RFC 9110 section 10.1.1) that was not sent yet.
    waits: bool,
    /// The trailer lines, once the body has ended.
    pub(crate) trailers: Vec<String>,
    pub(crate) mark: RequestMark,
}

impl Body {
    /// The framing verdict of RFC 9112 section 6.3 for a request.
    pub(crate) fn of(request: &Request, mark: RequestMark) -> Result<Self, &'static str> {
        let codings: Vec<&str> = request.headers_of("transfer-encoding").collect();
        let lengths: Vec<&str> = request.headers_of("content-length").collect();
        let rest = match (codings.as_slice(), lengths.as_slice()) {
            ([], []) => Rest::Done,
            ([], [one]) if !one.is_empty() && one.bytes().all(|b| b.is_ascii_digit()) => {
                match one.parse() {
                    Ok(0) => Rest::Done,
                    Ok(len) => Rest::Length(len),
                    Err(_) => return Err("Content-Length is out of range"),
                }
            }
            ([], _) => return Err("Content-Length is malformed or repeated"),
            ([one], []) if one.eq_ignore_ascii_case("chunked") => Rest::ChunkSize,
            (_, []) => return Err("Transfer-Encoding is not chunked alone"),
            _ => return Err("Transfer-Encoding and Content-Length together"),
        };
        let waits = rest != Rest::Done && request.has_token("expect", "100-continue");
        Ok(Self { rest, read: 0, waits, trailers: Vec::new(), mark })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.rest == Rest::Done
    }

    /// Whether the client still holds its body back.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// No 100 will be sent: the client may send its body or may not.
    pub(crate) fn refuse(&mut self) {
        self.waits = false;
    }

    pub(crate) fn read_so_far(&self) -> u64 {
        self.read
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self, conn: &mut Conn) -> io::Result<Option<Bytes>> {
        if self.waits {
            self.waits = false;
            conn.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let piece = match self.rest {
            Rest::Done => None,
            Rest::Length(left) => {
                let piece = conn.take_some(left).await?;
                let left = left - piece.len() as u64;
                self.rest = if left == 0 { Rest::Done } else { Rest::Length(left) };
                Some(piece)
            }
            Rest::ChunkSize => self.next_chunk(conn).await?,
            Rest::Chunk(left) => Some(self.in_chunk(conn, left).await?),
        };
        self.read += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        conn.about.shared.recorder.body(self.mark, self.read, self.is_done());
        Ok(piece)
    }

    async fn next_chunk(&mut self, conn: &mut Conn) -> io::Result<Option<Bytes>> {
        let line = conn.take_until(b"\r\n", MAX_LINE).await?;
        let Some(size) = chunk_size(&line) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "bad chunk size"));
        };
        if size > 0 {
            return self.in_chunk(conn, size).await.map(Some);
        }
        loop {
            let line = conn.take_until(b"\r\n", MAX_LINE).await?;
            if line.is_empty() {
                self.rest = Rest::Done;
                return Ok(None);
            }
            if self.trailers.len() == MAX_HEADERS {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "too many trailers"));
            }
            self.trailers.push(String::from_utf8_lossy(&line).into_owned());
        }
    }

    async fn in_chunk(&mut self, conn: &mut Conn, left: u64) -> io::Result<Bytes> {
        let piece = conn.take_some(left).await?;
        let left = left - piece.len() as u64;
        self.rest = Rest::Chunk(left);
        if left == 0 {
            if conn.take(2).await?.as_ref() != b"\r\n" {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "bad chunk end"));
            }
            self.rest = Rest::ChunkSize;
        }
        Ok(piece)
    }

    /// Reads and forgets what is left.
    pub(crate) async fn drain(&mut self, conn: &mut Conn) -> io::Result<()> {
        while self.next(conn).await?.is_some() {}
        Ok(())
    }
}

/// The size on a chunk's first line (RFC 9112 section 7.1): hex digits only, then extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii_end();
    let hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    if !hex {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
