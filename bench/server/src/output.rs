//! What is to be sent: bytes of its own, then a run over a page that all share, then a tail.

use std::io::Write;

use crate::pages::{CHUNK, Page, Pages};
use crate::transport::Unsent;
use crate::websocket::Handshake;

/// Largest body that is copied behind its head, so that both are one slice.
const COPIED: u64 = 4 * 1024;
/// So much may gather from pipelined answers before it is sent.
const GATHERED: usize = 64 * 1024;

/// A page, over and over.
#[derive(Debug, Default)]
struct Run {
    page: Page,
    at: usize,
    left: u64,
}

/// One connection's unsent bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    head: Vec<u8>,
    head_sent: usize,
    run: Run,
    tail: Vec<u8>,
    tail_sent: usize,
}

impl Output {
    /// Whether it has to be sent before anything can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.run.left > 0 || !self.tail.is_empty() || self.head.len() >= GATHERED
    }

    /// `200` with so many bytes and Content-Length.
    pub(crate) fn bytes(&mut self, pages: &Pages, bytes: u64, close: bool) {
        self.answer(pages, "200 OK", close);
        self.put(format_args!("Content-Length: {bytes}\r\n\r\n"));
        match usize::try_from(bytes) {
            Ok(length) if bytes <= COPIED => self.head.extend_from_slice(&pages.payload[..length]),
            _ => self.run = Run { page: Page::Payload, at: 0, left: bytes },
        }
    }

    /// `200` with so many bytes in chunks.
    pub(crate) fn chunks(&mut self, pages: &Pages, bytes: u64, close: bool) {
        self.chunked_head(pages, close);
        let chunk_on_wire = (pages.chunks.len() / 16) as u64;
        let whole = bytes / CHUNK as u64;
        self.run = Run { page: Page::Chunks, at: 0, left: whole.saturating_mul(chunk_on_wire) };
        let rest = (bytes % CHUNK as u64) as usize;
        if rest > 0 {
            self.tail.extend_from_slice(format!("{rest:x}\r\n").as_bytes());
            self.tail.extend_from_slice(&pages.payload[..rest]);
            self.tail.extend_from_slice(b"\r\n");
        }
        self.tail.extend_from_slice(b"0\r\n\r\n");
    }

    /// The head of an answer whose chunks follow one by one.
    pub(crate) fn chunked_head(&mut self, pages: &Pages, close: bool) {
        self.answer(pages, "200 OK", close);
        self.head.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    }

    /// One chunk of `size` bytes that begin with `stamp`. The last ends the body.
    pub(crate) fn stamped(&mut self, size: u64, stamp: u64, last: bool) {
        self.put(format_args!("{size:x}\r\n"));
        let stamp = stamp.to_le_bytes();
        self.head.extend_from_slice(&stamp);
        self.run = Run { page: Page::Payload, at: 0, left: size - stamp.len() as u64 };
        self.tail.extend_from_slice(if last { b"\r\n0\r\n\r\n" } else { b"\r\n" });
    }

    /// An answer with a small body.
    pub(crate) fn text(&mut self, pages: &Pages, status: &str, body: &str, close: bool) {
        self.answer(pages, status, close);
        self.put(format_args!("Content-Length: {}\r\n\r\n{body}", body.len()));
    }

    /// `100 Continue`.
    pub(crate) fn go_on(&mut self) {
        self.head.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    /// `101` to a handshake.
    pub(crate) fn switching(&mut self, handshake: &Handshake) {
        handshake.answer(&mut self.head);
    }

    fn answer(&mut self, pages: &Pages, status: &str, close: bool) {
        self.head.extend_from_slice(b"HTTP/1.1 ");
        self.head.extend_from_slice(status.as_bytes());
        self.head.extend_from_slice(b"\r\n");
        self.head.extend_from_slice(pages.fields.as_bytes());
        if close {
            self.head.extend_from_slice(b"Connection: close\r\n");
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a `Vec` has no errors.
        let _ = self.head.write_fmt(text);
    }
}

impl Unsent for Output {
    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.run.left == 0 && self.tail.is_empty()
    }

    fn pieces<'a>(&'a self, pages: &'a Pages) -> impl Iterator<Item = &'a [u8]> {
        let page = pages.of(self.run.page);
        let (mut at, mut left) = (self.run.at, self.run.left);
        let run = std::iter::from_fn(move || {
            let rest = &page[at..];
            let length = usize::try_from(left).map_or(rest.len(), |left| rest.len().min(left));
            left -= length as u64;
            at = 0;
            (length > 0).then(|| &rest[..length])
        });
        std::iter::once(&self.head[self.head_sent..])
            .chain(run)
            .chain(std::iter::once(&self.tail[self.tail_sent..]))
            .filter(|slice| !slice.is_empty())
    }

    fn advance(&mut self, pages: &Pages, mut bytes: usize) {
        let of_head = bytes.min(self.head.len() - self.head_sent);
        self.head_sent += of_head;
        bytes -= of_head;
        if self.head_sent == self.head.len() {
            self.head.clear();
            self.head_sent = 0;
        }
        let of_run = usize::try_from(self.run.left).map_or(bytes, |left| bytes.min(left));
        self.run.left -= of_run as u64;
        self.run.at = (self.run.at + of_run) % pages.of(self.run.page).len();
        self.tail_sent += bytes - of_run;
        if self.tail_sent == self.tail.len() {
            self.tail.clear();
            self.tail_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of `output`, taken `step` bytes at a time.
    fn drain(output: &mut Output, pages: &Pages, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = vec![0; step];
        while !output.is_empty() {
            let next = output.record(pages, &mut buffer);
            let (slices, used) = output.slices(pages);
            let gathered: Vec<u8> =
                slices[..used].iter().flat_map(|slice| slice.iter()).copied().collect();
            assert!(gathered.starts_with(next));
            let length = next.len();
            all.extend_from_slice(next);
            output.advance(pages, length);
        }
        all
    }

    fn body(wire: &[u8]) -> &[u8] {
        let head = wire.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        &wire[head + 4..]
    }

    #[test]
    fn a_run_goes_over_its_page_again() {
        let pages = Pages::new();
        for (bytes, step) in [(0, 7), (4096, 100), (4097, 1000), (1_000_003, 77_777)] {
            let mut output = Output::default();
            output.bytes(&pages, bytes, false);
            let wire = drain(&mut output, &pages, step);
            let due = pages.payload.iter().cycle().take(bytes as usize);
            assert!(body(&wire).iter().eq(due), "{bytes}");
        }
    }

    #[test]
    fn chunks_add_up() {
        let pages = Pages::new();
        for (bytes, step) in [(0, 5), (16_384, 999), (16_385, 5000), (500_000, 60_001)] {
            let mut output = Output::default();
            output.chunks(&pages, bytes, false);
            let wire = drain(&mut output, &pages, step);
            let (mut rest, mut sum) = (body(&wire), 0);
            loop {
                let Ok(httparse::Status::Complete((line, size))) = httparse::parse_chunk_size(rest)
                else {
                    panic!("{bytes}");
                };
                sum += size;
                rest = &rest[line + size as usize..];
                assert_eq!(&rest[..2], b"\r\n");
                rest = &rest[2..];
                if size == 0 {
                    break;
                }
            }
            assert_eq!((sum, rest.len()), (bytes, 0));
        }
    }
}
