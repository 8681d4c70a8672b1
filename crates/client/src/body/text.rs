//! Bytes to text, by the charset the response names.

use std::{error::Error, fmt};

use bytes::Bytes;
use encoding_rs::{CoderResult, Encoding, UTF_8};

#[cfg(test)]
mod tests;

/// The charset a `Content-Type` value names, as written there.
///
/// Read as leniently as browsers do: parameters without a value, stray semicolons and quotes are no
/// reason to lose the charset. The first `charset` counts.
#[must_use]
pub fn charset_of(content_type: &str) -> Option<String> {
    let (_, mut rest) = content_type.split_once(';')?;
    loop {
        let (name, value, after) = parameter(rest);
        if name.eq_ignore_ascii_case("charset") && !value.is_empty() {
            return Some(value);
        }
        rest = after?;
    }
}

/// Splits one `name=value` off: the value unquoted (RFC 9110 section 5.6.4), and what follows the
/// semicolon after it.
fn parameter(text: &str) -> (&str, String, Option<&str>) {
    let end = text.find([';', '=']).unwrap_or(text.len());
    let name = text[..end].trim();
    let after_semicolon = |text: &'_ str| -> Option<usize> { text.find(';').map(|at| at + 1) };
    let Some(value) = text[end..].strip_prefix('=').map(str::trim_start) else {
        return (name, String::new(), text[end..].strip_prefix(';'));
    };
    let Some(quoted) = value.strip_prefix('"') else {
        let raw = value.split(';').next().unwrap_or_default().trim_end();
        let rest = after_semicolon(value).map(|at| &value[at..]);
        return (name, raw.to_owned(), rest);
    };
    let mut unquoted = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let tail = &quoted[at + 1..];
                return (name, unquoted, after_semicolon(tail).map(|at| &tail[at..]));
            }
            '\\' => unquoted.extend(chars.next().map(|(_, c)| c)),
            c => unquoted.push(c),
        }
    }
    (name, unquoted, None)
}

/// The encoding to read a body in: a byte order mark decides (the decoder looks for one), then the
/// charset of `content_type`, then `fallback`, then UTF-8. A label that the Encoding Standard does not
/// know counts as none.
fn encoding_for(content_type: Option<&str>, fallback: Option<&str>) -> &'static Encoding {
    let named = content_type.and_then(charset_of);
    named
        .as_deref()
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| Encoding::for_label(fallback?.as_bytes()))
        .unwrap_or(UTF_8)
}

/// A whole body as text. Never fails: what the encoding cannot mean becomes U+FFFD.
///
/// The encoding is that of a byte order mark, else the charset of `content_type`, else `fallback` (a
/// label such as `"windows-1252"`), else UTF-8. The mark itself is left out.
#[must_use]
pub fn decode_text(body: Bytes, content_type: Option<&str>, fallback: Option<&str>) -> String {
    let declared = encoding_for(content_type, fallback);
    let (encoding, mark) = Encoding::for_bom(&body).unwrap_or((declared, 0));
    if encoding == UTF_8 && mark == 0 {
        // The usual case: no copy when the bytes are not shared.
        return match String::from_utf8(body.into()) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
    }
    let (text, _had_errors) = encoding.decode_without_bom_handling(&body[mark..]);
    text.into_owned()
}

/// Turns the pieces of a body into text, where pieces may end inside a character.
pub struct TextDecoder {
    decoder: encoding_rs::Decoder,
    malformed: bool,
}

impl TextDecoder {
    /// The encoding is chosen by a byte order mark, else by `content_type`, else by `fallback`, else UTF-8.
    #[must_use]
    pub fn new(content_type: Option<&str>, fallback: Option<&str>) -> Self {
        Self { decoder: encoding_for(content_type, fallback).new_decoder(), malformed: false }
    }

    /// The text of `piece`, up to its last whole character. Empty when it held none.
    pub fn decode(&mut self, piece: &[u8]) -> String {
        self.run(piece, false)
    }

    /// What is left: U+FFFD when the body ended inside a character, else nothing. Call it once, last.
    pub fn finish(mut self) -> String {
        self.run(&[], true)
    }

    /// Whether anything so far had to be replaced by U+FFFD.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        self.malformed
    }

    /// The Encoding Standard's name of the encoding in use; a byte order mark may change it.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        self.decoder.encoding().name()
    }

    fn run(&mut self, mut input: &[u8], last: bool) -> String {
        let mut text = String::with_capacity(input.len() + 4);
        loop {
            let (result, read, malformed) = self.decoder.decode_to_string(input, &mut text, last);
            self.malformed |= malformed;
            input = &input[read..];
            match result {
                CoderResult::InputEmpty => return text,
                // Room for one character more at the very least, and for the rest as text.
                CoderResult::OutputFull => text.reserve(input.len() + 16),
            }
        }
    }
}

impl fmt::Debug for TextDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextDecoder")
            .field("encoding", &self.encoding())
            .field("malformed", &self.malformed)
            .finish()
    }
}

/// A line longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTooLong {
    /// The most bytes a line may have, as UTF-8.
    pub limit: usize,
}

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line is longer than {} bytes", self.limit)
    }
}

impl Error for LineTooLong {}

/// Splits text that comes in pieces into lines, each ended by LF or CRLF (not by a lone CR).
///
/// Holds the line under way and one piece, so no more than the limit and the largest piece.
#[derive(Debug)]
pub struct LineSplitter {
    text: String,
    /// Where the next line begins.
    start: usize,
    /// Up to where no LF has been found since `start`.
    searched: usize,
    limit: usize,
}

impl LineSplitter {
    /// The longest line by default: 1 MiB, far over any line of a log or of NDJSON records.
    pub const DEFAULT_LIMIT: usize = 1024 * 1024;

    /// A splitter for lines of at most `limit` bytes as UTF-8, their ends not counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { text: String::new(), start: 0, searched: 0, limit }
    }

    /// Adds a piece. Take all lines with [`next_line`](Self::next_line) before adding another.
    pub fn push(&mut self, piece: &str) {
        self.text.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.text.push_str(piece);
    }

    /// The next whole line without its end, or `None` when more text is needed.
    ///
    /// # Errors
    /// The line is too long, whether its end has come or not. The splitter stays there: every
    /// further call fails alike.
    pub fn next_line(&mut self) -> Result<Option<String>, LineTooLong> {
        let found = memchr::memchr(b'\n', &self.text.as_bytes()[self.searched..]);
        let Some(end) = found.map(|at| self.searched + at) else {
            self.searched = self.text.len();
            // The CR of a CRLF may be here already.
            return self.check(&self.text[self.start..]).map(|_| None);
        };
        let line = self.check(&self.text[self.start..end])?.to_owned();
        self.start = end + 1;
        self.searched = self.start;
        Ok(Some(line))
    }

    /// The last line, when the text did not end with a line's end.
    ///
    /// # Errors
    /// The line is too long.
    pub fn finish(self) -> Result<Option<String>, LineTooLong> {
        let line = &self.text[self.start..];
        if line.len() > self.limit {
            return Err(LineTooLong { limit: self.limit });
        }
        Ok((!line.is_empty()).then(|| line.to_owned()))
    }

    fn check<'a>(&self, line: &'a str) -> Result<&'a str, LineTooLong> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.len() > self.limit {
            return Err(LineTooLong { limit: self.limit });
        }
        Ok(line)
    }
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(Self::DEFAULT_LIMIT)
    }
}
