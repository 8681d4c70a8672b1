//! `multipart/form-data` (RFC 7578), written the way browsers write it.

use std::{collections::VecDeque, fmt, io, path::Path};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header::InvalidHeaderValue};

use super::send::Body;

#[cfg(test)]
mod tests;

/// A form to be sent as `multipart/form-data`. Parts keep their order; names may repeat. Files and
/// streams are read while they are sent.
///
/// ```
/// use mimus::multipart::{Form, Part};
///
/// let form = Form::new()
///     .text("title", "Plumage")
///     .part("notes", Part::bytes("a,b\n").file_name("notes.csv"));
/// assert!(form.content_length().is_some());
/// ```
pub struct Form {
    boundary: String,
    parts: Vec<(String, Part)>,
}

/// One value of a [`Form`].
pub struct Part {
    body: Body,
    file_name: Option<String>,
    content_type: Option<HeaderValue>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

/// A boundary that RFC 2046 section 5.1.1 does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidBoundary;

impl fmt::Display for InvalidBoundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a multipart boundary is 1 to 70 letters, digits or any of \"'+_-.\"")
    }
}

impl std::error::Error for InvalidBoundary {}

impl Form {
    /// An empty form with a boundary of 128 random bits.
    #[must_use]
    pub fn new() -> Self {
        Self { boundary: random_boundary(), parts: Vec::new() }
    }

    /// Replaces the boundary, to look like a certain browser. It must not be guessable by whoever
    /// wrote the parts' contents: they could end their part and forge others.
    ///
    /// # Errors
    /// It is empty, longer than 70 characters, or has characters that would need quoting.
    pub fn with_boundary(mut self, boundary: impl Into<String>) -> Result<Self, InvalidBoundary> {
        let boundary = boundary.into();
        // The bchars of RFC 2046 section 5.1.1 that are also tokens: servers trip over quotes.
        let allowed = |c: u8| c.is_ascii_alphanumeric() || b"'+_-.".contains(&c);
        if !(1..=70).contains(&boundary.len()) || !boundary.bytes().all(allowed) {
            return Err(InvalidBoundary);
        }
        self.boundary = boundary;
        Ok(self)
    }

    /// Adds a text field.
    #[must_use]
    pub fn text(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.part(name, Part::text(value))
    }

    /// Adds a file, under its own name and with the media type its extension suggests.
    ///
    /// # Errors
    /// As for [`Body::file`].
    pub fn file(self, name: impl Into<String>, path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(self.part(name, Part::file(path)?))
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, name: impl Into<String>, part: Part) -> Self {
        self.parts.push((name.into(), part));
        self
    }

    /// The boundary between parts, without its leading dashes.
    #[must_use]
    pub fn boundary(&self) -> &str {
        &self.boundary
    }

    /// The value for the request's `Content-Type`.
    #[must_use]
    pub fn content_type(&self) -> HeaderValue {
        let value = format!("multipart/form-data; boundary={}", self.boundary);
        // A boundary is visible ASCII, which is always a field value.
        HeaderValue::try_from(value)
            .unwrap_or_else(|_| HeaderValue::from_static("multipart/form-data"))
    }

    /// How long the encoded form is, when every part's length is known.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        let closing = self.closing().len() as u64;
        self.parts.iter().try_fold(closing, |sum, (name, part)| {
            let head = part.head(&self.boundary, name).len() as u64;
            sum.checked_add(head + CRLF.len() as u64)?.checked_add(part.body.length()?)
        })
    }

    /// The encoded form. It can be sent again when all of its parts can.
    #[must_use]
    pub fn into_body(self) -> Body {
        let closing = self.closing();
        let mut chain = VecDeque::with_capacity(self.parts.len() * 2 + 1);
        let mut before = &b""[..];
        for (name, part) in self.parts {
            // The CRLF before a delimiter belongs to it (RFC 2046 section 5.1.1).
            let head = [before, &part.head(&self.boundary, &name)].concat();
            chain.push_back(Body::from(head));
            chain.push_back(part.body);
            before = CRLF;
        }
        chain.push_back(Body::from([before, closing.as_bytes()].concat()));
        Body::chain(chain)
    }

    fn closing(&self) -> String {
        format!("--{}--\r\n", self.boundary)
    }
}

const CRLF: &[u8] = b"\r\n";

impl Part {
    /// A part of any body; for a stream, see [`Body::stream`] and [`Body::sized_stream`].
    pub fn new(body: impl Into<Body>) -> Self {
        Self { body: body.into(), file_name: None, content_type: None, fields: Vec::new() }
    }

    /// A text field. Like a browser's, it has no media type: UTF-8 is understood.
    pub fn text(value: impl Into<String>) -> Self {
        Self::new(value.into())
    }

    /// Bytes in memory.
    pub fn bytes(value: impl Into<Bytes>) -> Self {
        Self::new(value.into())
    }

    /// A file, under its own name and with the media type its extension suggests.
    ///
    /// # Errors
    /// As for [`Body::file`].
    pub fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let part = Self::new(Body::file(path)?);
        Ok(match path.file_name() {
            Some(name) => part.file_name(name.to_string_lossy()),
            None => part,
        })
    }

    /// Names the file this part is said to be. Without a media type of its own, the part gets the
    /// one that the name's extension suggests, or `application/octet-stream`.
    #[must_use]
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// Sets the media type.
    ///
    /// # Errors
    /// It is not a valid field value.
    pub fn media_type(mut self, media_type: &str) -> Result<Self, InvalidHeaderValue> {
        self.content_type = Some(HeaderValue::from_str(media_type)?);
        Ok(self)
    }

    /// Adds a field to the part's head, after its own. RFC 7578 section 4.8 has receivers ignore all
    /// but a few.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Delimiter, head and empty line.
    fn head(&self, boundary: &str, name: &str) -> Vec<u8> {
        let mut head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", escaped(name))
                .into_bytes();
        let mut put = |pieces: &[&[u8]]| head.extend_from_slice(&pieces.concat());
        if let Some(file_name) = &self.file_name {
            put(&[b"; filename=\"", escaped(file_name).as_bytes(), b"\""]);
        }
        put(&[CRLF]);
        match (&self.content_type, &self.file_name) {
            (Some(given), _) => put(&[b"Content-Type: ", given.as_bytes(), CRLF]),
            (None, Some(file_name)) => {
                let guess = mime_guess::from_path(file_name).first_or_octet_stream();
                put(&[b"Content-Type: ", guess.essence_str().as_bytes(), CRLF]);
            }
            (None, None) => {}
        }
        for (name, value) in &self.fields {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), CRLF]);
        }
        put(&[CRLF]);
        head
    }
}

/// A name or file name between quotes, as the HTML standard's form encoding escapes it: UTF-8, with
/// three characters percent-encoded and nothing else, not even the percent sign.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => out.push_str("%22"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            c => out.push(c),
        }
    }
    out
}

/// 32 hexadecimal digits. They come from the system's secure source: contents can forge parts
/// behind a boundary that their author can predict.
fn random_boundary() -> String {
    use std::hash::{BuildHasher, RandomState};

    let bits = match (getrandom::u64(), getrandom::u64()) {
        (Ok(high), Ok(low)) => [high, low],
        // No system source: the standard library's per-process keys through a keyed hash.
        _ => [0_u64, 1].map(|n| RandomState::new().hash_one(n)),
    };
    format!("{:016x}{:016x}", bits[0], bits[1])
}

impl Default for Form {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Form> for Body {
    fn from(form: Form) -> Self {
        form.into_body()
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.parts.iter().map(|(name, part)| (name, part))).finish()
    }
}

impl fmt::Debug for Part {
    /// Shows the kind of contents, never the contents, nor custom fields' values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("body", &self.body)
            .field("file_name", &self.file_name)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}
