//! What comes back: as much of RFC 9112 as makes its end certain.

use std::ops::Range;

use httparse::Status;
use mimus_bench_kit::PeerError;

/// How much is read at a time, wherever to.
pub const READ: usize = 64 * 1024;

/// Bytes that came and were not looked at yet.
#[derive(Debug)]
pub struct Inbox {
    buffer: Box<[u8]>,
    here: Range<usize>,
}

/// What is used again for each exchange, also by the next connection.
#[derive(Debug)]
pub struct Buffers {
    pub inbox: Inbox,
    /// Where parts are joined that go out as one.
    pub joined: Vec<u8>,
}

impl Buffers {
    pub fn new() -> Self {
        Self { inbox: Inbox::new(), joined: Vec::new() }
    }

    /// For a new connection.
    pub fn emptied(mut self) -> Self {
        self.inbox.here = 0..0;
        self
    }
}

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After so many more bytes.
    Length(u64),
    /// After the last chunk.
    Chunked(Chunk),
}

/// What comes next of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    Size,
    Data(u64),
    DataEnd,
    BodyEnd,
    Over,
}

impl Inbox {
    fn new() -> Self {
        Self { buffer: vec![0; READ].into(), here: 0..0 }
    }

    /// Bytes that came.
    pub fn here(&self) -> &[u8] {
        &self.buffer[self.here.clone()]
    }

    /// The first `n` of them were looked at.
    pub fn used(&mut self, n: usize) {
        self.here.start += n;
    }

    /// Where more can be read to.
    pub fn room(&mut self) -> &mut [u8] {
        if self.here.start > 0 {
            self.buffer.copy_within(self.here.clone(), 0);
            self.here = 0..self.here.len();
        }
        &mut self.buffer[self.here.end..]
    }

    /// `n` bytes were read to there.
    pub fn filled(&mut self, n: usize) -> Result<(), PeerError> {
        if n == 0 {
            return Err("the server closed the connection, or its head is too large".into());
        }
        self.here.end += n;
        Ok(())
    }

    /// The status and the framing, once the whole head is here.
    pub fn head(&mut self) -> Result<Option<(u16, Framing)>, PeerError> {
        let mut rest = self.here();
        let Some(line) = next_line(&mut rest) else { return Ok(None) };
        let status = status(line)?;
        let mut framing = None;
        loop {
            match next_line(&mut rest) {
                None => return Ok(None),
                Some([]) => break,
                Some(field) => framing = framing_of(field)?.or(framing),
            }
        }
        let framing = framing.ok_or("a body that ends with the connection")?;
        self.used(self.here().len() - rest.len());
        Ok(Some((status, framing)))
    }
}

/// Takes the next line, without its end.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (line, after) = rest.split_at_checked(memchr::memchr(b'\n', rest)? + 1)?;
    *rest = after;
    Some(line.strip_suffix(b"\r\n").unwrap_or(line))
}

fn status(line: &[u8]) -> Result<u16, PeerError> {
    match line.strip_prefix(b"HTTP/1.1 ") {
        Some([a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..]) => {
            Ok([a, b, c].iter().fold(0, |sum, digit| sum * 10 + u16::from(**digit - b'0')))
        }
        _ => Err("not a status line of HTTP/1.1".into()),
    }
}

/// What a field says of the framing, if anything.
fn framing_of(field: &[u8]) -> Result<Option<Framing>, PeerError> {
    // Most fields are neither, and their first byte tells.
    match field[0] | 0x20 {
        b'c' => {
            let Some(length) = value(field, b"content-length:") else { return Ok(None) };
            Ok(Some(Framing::Length(std::str::from_utf8(length)?.parse()?)))
        }
        b't' => match value(field, b"transfer-encoding:") {
            None => Ok(None),
            Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Some(Framing::Chunked(Chunk::Size)))
            }
            Some(_) => Err("a transfer coding other than chunked".into()),
        },
        _ => Ok(None),
    }
}

fn value<'a>(field: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (head, value) = field.split_at_checked(name.len())?;
    head.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

/// A step through a body: which bytes were looked at, and which of them are content.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub used: usize,
    pub data: Range<usize>,
}

impl Framing {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Over))
    }

    /// The length of the whole body, if it is known and all `here`.
    pub fn all_of(self, here: &[u8]) -> Option<usize> {
        match self {
            Self::Length(length) => usize::try_from(length).ok().filter(|&n| n <= here.len()),
            Self::Chunked(_) => None,
        }
    }

    /// How much room the body needs, as far as is known.
    pub fn expected(self) -> Result<usize, PeerError> {
        match self {
            Self::Length(length) => Ok(usize::try_from(length)?),
            Self::Chunked(_) => Ok(0),
        }
    }

    /// The next step; one that uses nothing needs more bytes.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, PeerError> {
        match self {
            Self::Length(left) => Ok(content(left, input)),
            Self::Chunked(chunk) => chunk.step(input),
        }
    }
}

impl Chunk {
    fn step(&mut self, input: &[u8]) -> Result<Step, PeerError> {
        let (used, next) = match self {
            Self::Data(left) => {
                let step = content(left, input);
                if *left == 0 {
                    *self = Self::DataEnd;
                }
                return Ok(step);
            }
            Self::Size => match httparse::parse_chunk_size(input).map_err(|e| e.to_string())? {
                Status::Complete((n, 0)) => (n, Self::BodyEnd),
                Status::Complete((n, size)) => (n, Self::Data(size)),
                Status::Partial => (0, Self::Size),
            },
            Self::DataEnd | Self::BodyEnd if input.len() < 2 => (0, *self),
            Self::DataEnd | Self::BodyEnd if !input.starts_with(b"\r\n") => {
                return Err("no line end after a chunk".into());
            }
            Self::DataEnd => (2, Self::Size),
            Self::BodyEnd => (2, Self::Over),
            Self::Over => (0, Self::Over),
        };
        *self = next;
        Ok(Step { used, data: 0..0 })
    }
}

fn content(left: &mut u64, input: &[u8]) -> Step {
    let n = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    *left -= n as u64;
    Step { used: n, data: 0..n }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(wire: &[u8], cut: usize) -> Result<(u16, Vec<u8>), PeerError> {
        let mut inbox = Inbox::new();
        let mut parts = wire.chunks(cut);
        let mut fill = |inbox: &mut Inbox| {
            let part = parts.next().unwrap_or_default();
            inbox.room()[..part.len()].copy_from_slice(part);
            inbox.filled(part.len())
        };
        let (status, mut framing) = loop {
            if let Some(head) = inbox.head()? {
                break head;
            }
            fill(&mut inbox)?;
        };
        let mut body = Vec::new();
        while !framing.is_over() {
            let step = framing.step(inbox.here())?;
            body.extend_from_slice(&inbox.here()[step.data.clone()]);
            inbox.used(step.used);
            if step.used == 0 {
                fill(&mut inbox)?;
            }
        }
        Ok((status, body))
    }

    #[test]
    fn any_split_gives_the_same_body() {
        let wires: [&[u8]; 2] = [
            b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 11\r\n\r\nhello world",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        ];
        for wire in wires {
            for cut in 1..=wire.len() {
                let (status, body) = receive(wire, cut).unwrap();
                assert_eq!((status, &body[..]), (200, &b"hello world"[..]), "cut by {cut}");
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_an_error() {
        for wire in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
            b"HTTP/1.1 200 OK\r\n\r\nhello",
            b"SMTP\r\n",
            b"HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert!(receive(wire, 1000).is_err());
        }
    }
}
