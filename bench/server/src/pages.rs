//! What answers are made of, made once.

use std::time::SystemTime;

use crate::http2::answer::Answers;

/// Bytes in each chunk of a chunked answer.
pub(crate) const CHUNK: usize = 16 * 1024;

/// Bodies, made once. Both pages stay in a core's second-level cache.
pub(crate) struct Pages {
    pub(crate) payload: Box<[u8]>,
    pub(crate) chunks: Box<[u8]>,
    /// Fields of every answer. The date is that of the start: answers are fixed.
    pub(crate) fields: String,
    /// The same, and all else that is the same in every answer, as HTTP/2 has it.
    pub(crate) answers: Answers,
}

impl Pages {
    pub(crate) fn new() -> Self {
        let payload: Box<[u8]> = (0..CHUNK * 16).map(|at| b'a' + (at % 23) as u8).collect();
        let chunk = [format!("{CHUNK:x}\r\n").as_bytes(), &payload[..CHUNK], b"\r\n"].concat();
        let date = httpdate::fmt_http_date(SystemTime::now());
        Self {
            payload,
            chunks: chunk.repeat(16).into_boxed_slice(),
            fields: format!(
                "Server: bench\r\nDate: {date}\r\nContent-Type: application/octet-stream\r\n"
            ),
            answers: Answers::new(&date),
        }
    }

    pub(crate) fn of(&self, page: Page) -> &[u8] {
        match page {
            Page::Payload => &self.payload,
            Page::Chunks => &self.chunks,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Page {
    #[default]
    Payload,
    Chunks,
}
