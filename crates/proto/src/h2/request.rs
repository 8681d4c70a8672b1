//! A request's head and trailers: checked, then written as a header block.

use http::Method;

use super::frame;
use super::frame::flag;
use super::hpack::{Encoder, Huffman};
use super::indexing::IndexingPolicy;
use super::opening::{Opening, Priority, Pseudo};
use super::section::{FIELD_EXTRA, is_connection_field, is_trailers};
use super::settings::DEFAULT_TABLE;
use crate::head::{Length, forbidden_in_trailers, parse_length};
use crate::{ApiMisuse, Fields};

/// What opens a stream.
#[derive(Debug, Clone, Copy)]
pub struct RequestLine<'a> {
    /// The method, case kept.
    pub method: &'a Method,
    /// `http` or `https`, mostly. Not sent with a CONNECT that has no `protocol`.
    pub scheme: &'a str,
    /// Host and port, without userinfo. Empty: not sent.
    pub authority: &'a str,
    /// Path and query, or `*`. Not sent with a CONNECT that has no `protocol`.
    pub path: &'a str,
    /// `:protocol` of an extended CONNECT (RFC 8441).
    pub protocol: Option<&'a str>,
    /// The fields, in this order; names are sent in lower case. A Host that says the same as
    /// `authority` is left out (RFC 9113 section 8.3.1).
    pub fields: &'a Fields,
    /// There is no body, and no trailers.
    pub end: bool,
    /// The weight that its HEADERS frame says, as on the wire (one less than what is meant), in the place
    /// of that of [`Opening::priority`]. Without such a priority nothing is said.
    pub weight: Option<u8>,
}

impl<'a> RequestLine<'a> {
    fn is_tunnel(&self) -> bool {
        self.method == Method::CONNECT && self.protocol.is_none()
    }

    /// The pseudo-fields that are sent, in this order (RFC 9113 section 8.3.1); `:protocol` follows them (RFC 8441
    /// section 4).
    pub fn pseudo_fields(
        &self,
        order: [Pseudo; 4],
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let RequestLine { method, scheme, authority, path, protocol, .. } = *self;
        let is_tunnel = self.is_tunnel();
        let said = order.into_iter().filter_map(move |pseudo| match pseudo {
            Pseudo::Method => Some((":method", method.as_str())),
            Pseudo::Authority => (!authority.is_empty()).then_some((":authority", authority)),
            // RFC 9113 section 8.5.
            Pseudo::Scheme | Pseudo::Path if is_tunnel => None,
            Pseudo::Scheme => Some((":scheme", scheme)),
            Pseudo::Path => Some((":path", path)),
        });
        said.chain(protocol.map(|protocol| (":protocol", protocol)))
    }

    /// The size of the section as the server will count it (RFC 9113 section 6.5.2), each cookie for a
    /// field of its own: what SETTINGS_MAX_HEADER_LIST_SIZE is about.
    #[must_use]
    pub fn list_size(&self) -> usize {
        let all = [Pseudo::Method, Pseudo::Scheme, Pseudo::Authority, Pseudo::Path];
        let said = self.pseudo_fields(all);
        let said = said.map(|(name, value)| name.len() + value.len() + FIELD_EXTRA);
        let fields = self.fields.raw().map(|(name, value)| {
            let crumbs = match name.len() {
                // The authority says it.
                4 if name.eq_ignore_ascii_case(b"host") => return 0,
                6 if name.eq_ignore_ascii_case(b"cookie") => {
                    value.iter().filter(|&&byte| byte == b';').count()
                }
                _ => 0,
            };
            name.len() + value.len() + FIELD_EXTRA + crumbs * ("cookie".len() + FIELD_EXTRA)
        });
        said.sum::<usize>() + fields.sum::<usize>()
    }

    /// Everything that could be wrong. Gives the length that the fields promise.
    fn check(&self) -> Result<Option<u64>, ApiMisuse> {
        // RFC 8441 section 4.
        if self.protocol.is_some() && self.method != Method::CONNECT {
            return Err(ApiMisuse::ProtocolWithoutConnect);
        }
        // RFC 9113 section 8.3.1: no userinfo, and a path that is not empty.
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.authority.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@') {
            return Err(ApiMisuse::InvalidAuthority);
        }
        if self.is_tunnel() {
            // Section 8.5.
            if self.authority.is_empty() {
                return Err(ApiMisuse::InvalidAuthority);
            }
        } else if self.path.is_empty() || !plain(self.path) || !is_scheme(self.scheme) {
            return Err(ApiMisuse::InvalidTarget);
        }
        if !self.protocol.is_none_or(|name| !name.is_empty() && plain(name)) {
            return Err(ApiMisuse::InvalidTarget);
        }
        self.check_fields()
    }

    /// The lengths of the names that matter.
    const LENGTHS: u32 = 1 << 2 | 1 << 4 | 1 << 7 | 1 << 10 | 1 << 14 | 1 << 16 | 1 << 17;

    fn check_fields(&self) -> Result<Option<u64>, ApiMisuse> {
        let mut length = None;
        for (name, value) in self.fields.raw_of_lengths(Self::LENGTHS) {
            let mut lower = [0; 17];
            let name = lower_of(name, &mut lower);
            match name {
                b"host" if !value.eq_ignore_ascii_case(self.authority.as_bytes()) => {
                    return Err(ApiMisuse::HostMismatch);
                }
                b"te" if !is_trailers(value) => return Err(ApiMisuse::ConnectionField),
                b"content-length" => {
                    length = match (length, parse_length(value)) {
                        (None, Length::Valid(length)) => Some(length),
                        _ => return Err(ApiMisuse::ContentLengthMismatch),
                    }
                }
                name if is_connection_field(name) => return Err(ApiMisuse::ConnectionField),
                _ => {}
            }
        }
        // RFC 9113 section 8.1.1.
        if self.end && length.is_some_and(|length| length > 0) {
            return Err(ApiMisuse::ContentLengthMismatch);
        }
        Ok(length)
    }
}

/// Whether none of these fields speaks of the connection, which HTTP/2 has no place for (RFC 9113
/// section 8.2.2).
#[must_use]
pub fn can_carry(fields: &Fields) -> bool {
    fields.raw_of_lengths(RequestLine::LENGTHS).all(|(name, value)| can_carry_field(name, value))
}

/// Whether this field does not speak of the connection. The name may be in any case.
#[must_use]
pub fn can_carry_field(name: &[u8], value: &[u8]) -> bool {
    // No name that does is longer.
    name.len() > 17
        || match lower_of(name, &mut [0; 17]) {
            b"te" => is_trailers(value),
            name => !is_connection_field(name),
        }
}

/// A name of at most 17 bytes in lower case.
fn lower_of<'a>(name: &[u8], room: &'a mut [u8; 17]) -> &'a [u8] {
    let len = name.len().min(room.len());
    room[..len].copy_from_slice(&name[..len]);
    room[..len].make_ascii_lowercase();
    &room[..len]
}

/// RFC 3986 section 3.1.
fn is_scheme(scheme: &str) -> bool {
    scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// RFC 9110 section 6.5.1 and RFC 9113 section 8.1: what trailers must not hold.
pub(super) fn check_trailers(trailers: &Fields) -> Result<(), ApiMisuse> {
    for (name, _) in trailers.raw() {
        let mut lower = [0; 17];
        if forbidden_in_trailers(name)
            || (name.len() <= 17 && is_connection_field(lower_of(name, &mut lower)))
        {
            return Err(ApiMisuse::ForbiddenTrailer);
        }
    }
    Ok(())
}

/// Names up to this length are put into lower case in place.
const SHORT: usize = 32;

/// Writes heads in the manner of an [`Opening`].
#[derive(Debug)]
pub(super) struct HeadWriter {
    encoder: Encoder,
    pseudo: [Pseudo; 4],
    crumbs: bool,
    huffman: Huffman,
    indexing: IndexingPolicy,
    last: Last,
    /// Long names in lower case.
    long_name: Vec<u8>,
}

/// What was last written, and for what, if that put nothing into the encoder's table: the next request
/// mostly has the same fields, and often is the same altogether, and then is the same bytes.
#[derive(Debug, Default)]
struct Last {
    /// Method, scheme, authority and path, behind each other.
    line: Vec<u8>,
    lengths: [usize; 4],
    end: bool,
    /// What the fields promise of the body.
    owed: Option<u64>,
    lines: Vec<u8>,
    block: Vec<u8>,
    /// Where the fields begin in it.
    fields_at: usize,
    /// How many entries the table had seen then.
    inserted: u32,
}

impl Last {
    /// Lists that take more than this are not kept.
    const MOST: usize = 4096;

    /// What was written for this list of fields.
    fn fields(&self, lines: Option<&[u8]>, inserted: u32) -> Option<&[u8]> {
        let same = lines == Some(&self.lines) && inserted == self.inserted;
        (same && !self.lines.is_empty()).then(|| &self.block[self.fields_at..])
    }

    /// Whether this is the request that was written.
    fn is(&self, line: &RequestLine<'_>, inserted: u32) -> bool {
        let parts = parts(line);
        let mut rest = &self.line[..];
        self.lengths == parts.map(<[u8]>::len)
            && self.end == line.end
            && line.protocol.is_none()
            && parts.iter().all(|part| rest.split_off(..part.len()) == Some(part))
            && self.fields(line.fields.lines(), inserted).is_some()
    }

    fn keep(
        &mut self,
        line: &RequestLine<'_>,
        owed: Option<u64>,
        block: &[u8],
        fields_at: usize,
        inserted: u32,
    ) {
        self.forget();
        let parts = parts(line);
        let lengths = parts.map(<[u8]>::len);
        let Some(lines) = line.fields.lines().filter(|_| line.protocol.is_none()) else {
            return;
        };
        if lines.len().max(block.len()).max(lengths.iter().sum()) <= Self::MOST {
            parts.iter().for_each(|part| self.line.extend_from_slice(part));
            self.lines.extend_from_slice(lines);
            self.block.extend_from_slice(block);
            (self.lengths, self.end, self.owed) = (lengths, line.end, owed);
            (self.fields_at, self.inserted) = (fields_at, inserted);
        }
    }

    fn forget(&mut self) {
        self.line.clear();
        self.lines.clear();
        self.block.clear();
        (self.lengths, self.fields_at) = ([0; 4], 0);
    }
}

fn parts<'a>(line: &RequestLine<'a>) -> [&'a [u8]; 4] {
    [line.method.as_str(), line.scheme, line.authority, line.path].map(str::as_bytes)
}

/// A request that can be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked {
    /// Bytes of body that the fields promise.
    pub(super) owed: Option<u64>,
    /// It is the last one again.
    again: bool,
}

impl HeadWriter {
    pub(super) fn new(opening: &Opening, cap: u32) -> Self {
        Self {
            encoder: Encoder::with_cap(DEFAULT_TABLE, cap)
                .with_names(opening.names)
                .with_updates(opening.size_updates),
            pseudo: opening.pseudo,
            crumbs: opening.cookie_crumbs,
            huffman: opening.huffman,
            indexing: opening.indexing.clone(),
            last: Last::default(),
            long_name: Vec::new(),
        }
    }

    pub(super) fn set_table(&mut self, size: u32) {
        self.last.forget();
        self.encoder.set_max_size(size);
    }

    /// Everything that could be wrong with a request, before the encoder's table is touched.
    pub(super) fn check(&self, line: &RequestLine<'_>) -> Result<Checked, ApiMisuse> {
        match self.last.is(line, self.encoder.inserted()) {
            true => Ok(Checked { owed: self.last.owed, again: true }),
            false => Ok(Checked { owed: line.check()?, again: false }),
        }
    }

    /// Writes the HEADERS frame of a checked request, and CONTINUATION where it needs them.
    pub(super) fn request(
        &mut self,
        out: &mut Vec<u8>,
        (stream, priority): (u32, Option<Priority>),
        line: &RequestLine<'_>,
        checked: Checked,
        max_frame: usize,
    ) {
        let start = frame::begin_block(out);
        let mut flags = if line.end { flag::END_STREAM } else { 0 };
        if let Some(priority) = priority {
            flags |= flag::PRIORITY;
            out.extend_from_slice(&frame::priority_bytes(priority));
        }
        self.encoder.begin(out);
        if checked.again {
            out.extend_from_slice(&self.last.block);
        } else {
            self.request_block(out, line, checked.owed);
        }
        frame::finish_block(out, start, stream, flags, max_frame);
    }

    fn request_block(&mut self, out: &mut Vec<u8>, line: &RequestLine<'_>, owed: Option<u64>) {
        let (start, inserted) = (out.len(), self.encoder.inserted());
        for (name, value) in line.pseudo_fields(self.pseudo) {
            self.field(out, name.as_bytes(), value.as_bytes());
        }
        let fields_at = out.len() - start;
        match self.last.fields(line.fields.lines(), self.encoder.inserted()) {
            Some(block) => out.extend_from_slice(block),
            None => self.each_field(out, line.fields),
        }
        if self.encoder.inserted() == inserted {
            self.last.keep(line, owed, &out[start..], fields_at, inserted);
        }
    }

    /// Writes the HEADERS frame of checked trailers, which ends the stream.
    pub(super) fn trailers(
        &mut self,
        out: &mut Vec<u8>,
        stream: u32,
        trailers: &Fields,
        max_frame: usize,
    ) {
        let start = frame::begin_block(out);
        self.encoder.begin(out);
        self.each_field(out, trailers);
        frame::finish_block(out, start, stream, flag::END_STREAM, max_frame);
    }

    fn each_field(&mut self, out: &mut Vec<u8>, fields: &Fields) {
        let mut long = std::mem::take(&mut self.long_name);
        for (name, value) in fields.raw() {
            // RFC 9113 section 8.2: lower case before it is compressed.
            let mut short = [0; SHORT];
            let name = match short.get_mut(..name.len()) {
                Some(front) => {
                    front.copy_from_slice(name);
                    // All of it: so many bytes are one or two operations.
                    short.make_ascii_lowercase();
                    &short[..name.len()]
                }
                None => {
                    long.clear();
                    long.extend_from_slice(name);
                    long.make_ascii_lowercase();
                    &long[..]
                }
            };
            match name.len() {
                // The authority says it.
                4 if name == b"host" => {}
                6 if name == b"cookie" && self.crumbs => self.cookies(out, value),
                _ => self.field(out, name, value),
            }
        }
        self.long_name = long;
    }

    /// RFC 9113 section 8.2.3: a cookie that changes spoils no other.
    fn cookies(&mut self, out: &mut Vec<u8>, value: &[u8]) {
        for crumb in value.split(|&byte| byte == b';') {
            let crumb = crumb.trim_ascii();
            if !crumb.is_empty() {
                self.field(out, b"cookie", crumb);
            }
        }
    }

    fn field(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let how = self.indexing.of(name, value);
        self.encoder.field(name, value, how, self.huffman, out);
    }
}
