//! A server of HTTP/2 that says what its script says: frames out as written, frames in by their bounds.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::conn::After;
use crate::h2::Tap;
use crate::h2::frame::{self, HEAD, Head, PREFACE, flag, kind};
use crate::io::Io;

/// The longest payload that is read; no client may send more than 16 KiB unasked.
const MAX_PAYLOAD: usize = 1 << 20;
/// How long a polite close waits for the client's own FIN.
const LINGER: Duration = Duration::from_secs(2);

/// One connection of one row.
pub(super) struct Peer {
    io: Tap,
    /// The connection's number in its row; the first is 1.
    pub(super) nth: u64,
    /// Whether the client's SETTINGS and PINGs are acknowledged as they come.
    pub(super) polite: bool,
    /// What the client lets be sent on each stream at first, and by now on the connection.
    initial: i64,
    window: i64,
    /// What it gave to streams besides, less what was sent on them.
    granted: HashMap<u32, i64>,
}

/// A frame of the client.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) head: Head,
    pub(super) payload: Vec<u8>,
}

/// The fields of an ordinary answer of two bytes.
pub(super) const OK_FIELDS: &[(&str, &str)] =
    &[(":status", "200"), ("content-type", "text/plain"), ("content-length", "2")];
/// The body of every right answer, or its begin.
pub(super) const OK: &[u8] = b"ok";

/// The head of an ordinary answer of two bytes.
pub(super) fn ok_head(stream: u32) -> Vec<u8> {
    frame::headers(stream, frame::block(OK_FIELDS), false)
}

/// The head of an answer that does not tell its length.
pub(super) fn open_head(stream: u32) -> Vec<u8> {
    frame::headers(stream, frame::block(&[(":status", "200")]), false)
}

/// A whole ordinary answer.
pub(super) fn ok(stream: u32) -> Vec<u8> {
    [ok_head(stream), frame::data(stream, OK, true)].concat()
}

impl Peer {
    pub(super) fn new(io: Tap, nth: u64) -> Self {
        let granted = HashMap::new();
        Self { io, nth, polite: true, initial: 65_535, window: 65_535, granted }
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.io.write_all(bytes.as_ref()).await?;
        self.io.flush().await
    }

    /// Reads the client's preface.
    pub(super) async fn preface(&mut self) -> io::Result<()> {
        let mut preface = [0; PREFACE.len()];
        self.io.read_exact(&mut preface).await?;
        if preface == PREFACE { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Reads the client's preface and sends SETTINGS with these values.
    pub(super) async fn open(&mut self, settings: &[(u16, u32)]) -> io::Result<()> {
        self.preface().await?;
        self.send(frame::settings(settings)).await
    }

    /// The next frame, whatever it is.
    pub(super) async fn next(&mut self) -> io::Result<Frame> {
        let mut bytes = [0; HEAD];
        self.io.read_exact(&mut bytes).await?;
        let head = Head::parse(&bytes);
        if head.len > MAX_PAYLOAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut payload = vec![0; head.len];
        self.io.read_exact(&mut payload).await?;
        self.note(head, &payload);
        if self.polite && !head.has(flag::ACK) {
            match head.kind {
                kind::SETTINGS => self.send(frame::settings_ack()).await?,
                kind::PING => self.send(frame::frame(kind::PING, flag::ACK, 0, &payload)).await?,
                _ => {}
            }
        }
        Ok(Frame { head, payload })
    }

    /// Keeps account of the client's windows (RFC 9113 section 6.9).
    fn note(&mut self, head: Head, payload: &[u8]) {
        match (head.kind, payload) {
            (kind::SETTINGS, _) => {
                for six in payload.chunks_exact(6) {
                    if let &[0, 4, a, b, c, d] = six {
                        self.initial = u32::from_be_bytes([a, b, c, d]).into();
                    }
                }
            }
            (kind::WINDOW_UPDATE, &[a, b, c, d]) => {
                let more = i64::from(u32::from_be_bytes([a, b, c, d]));
                match head.stream {
                    0 => self.window += more,
                    stream => *self.granted.entry(stream).or_default() += more,
                }
            }
            _ => {}
        }
    }

    /// Sends one DATA frame that counts `cost` bytes, once the client's windows have room for it.
    pub(super) async fn within(&mut self, stream: u32, data: &[u8], cost: usize) -> io::Result<()> {
        let cost = cost as i64;
        while self.window < cost
            || self.initial + self.granted.get(&stream).copied().unwrap_or(0) < cost
        {
            self.next().await?;
        }
        self.window -= cost;
        *self.granted.entry(stream).or_default() -= cost;
        self.send(data).await
    }

    /// Reads to the end of the next request's head: its stream, and whether a body follows.
    pub(super) async fn head(&mut self) -> io::Result<(u32, bool)> {
        loop {
            let Frame { head, .. } = self.next().await?;
            if head.kind != kind::HEADERS {
                continue;
            }
            let mut whole = head.has(flag::END_HEADERS);
            while !whole {
                let next = self.next().await?.head;
                whole = next.kind == kind::CONTINUATION && next.has(flag::END_HEADERS);
            }
            return Ok((head.stream, !head.has(flag::END_STREAM)));
        }
    }

    /// Reads the next request to its end, giving credit for its body: its stream.
    pub(super) async fn request(&mut self) -> io::Result<u32> {
        let (stream, body) = self.head().await?;
        if body {
            self.rest(stream).await?;
        }
        Ok(stream)
    }

    /// Reads the rest of a request's body, giving credit for it.
    pub(super) async fn rest(&mut self, stream: u32) -> io::Result<()> {
        loop {
            let Frame { head, payload } = self.next().await?;
            let ends = head.kind == kind::RST_STREAM
                || matches!(head.kind, kind::DATA | kind::HEADERS) && head.has(flag::END_STREAM);
            if head.stream == stream && ends {
                return Ok(());
            }
            if head.kind == kind::DATA && !payload.is_empty() {
                self.credit(stream, payload.len()).await?;
            }
        }
    }

    /// Reads the rest of a request's body without giving credit for it.
    pub(super) async fn whole(&mut self, stream: u32) -> io::Result<()> {
        loop {
            let head = self.next().await?.head;
            if head.stream == stream && head.kind == kind::DATA && head.has(flag::END_STREAM) {
                return Ok(());
            }
        }
    }

    /// Reads so many bytes of a body without giving credit for them.
    pub(super) async fn take(&mut self, most: usize) -> io::Result<()> {
        let mut taken = 0;
        while taken < most {
            let Frame { head, payload } = self.next().await?;
            if head.kind == kind::DATA {
                taken += payload.len();
            }
        }
        Ok(())
    }

    /// Lets the client send that much more, on the stream and on the connection.
    pub(super) async fn credit(&mut self, stream: u32, len: usize) -> io::Result<()> {
        let len = len as u32;
        let both = [frame::window_update(0, len), frame::window_update(stream, len)];
        self.send(both.concat()).await
    }

    /// Opens, and reads the first request whole.
    pub(super) async fn first(&mut self) -> io::Result<u32> {
        self.open(&[]).await?;
        self.request().await
    }

    /// Answers one request rightly: its stream.
    pub(super) async fn answer(&mut self) -> io::Result<u32> {
        let stream = self.request().await?;
        self.send(ok(stream)).await?;
        Ok(stream)
    }

    /// Answers each further request rightly until the client leaves.
    pub(super) async fn behave(&mut self) -> io::Result<()> {
        loop {
            self.answer().await?;
        }
    }

    /// Refuses each further request until the client leaves.
    pub(super) async fn refuse(&mut self) -> io::Result<()> {
        loop {
            let (stream, _) = self.head().await?;
            self.send(frame::reset(stream, frame::code::REFUSED_STREAM)).await?;
        }
    }

    /// Serves a whole connection as any server would.
    pub(super) async fn serve(&mut self) -> io::Result<()> {
        self.open(&[]).await?;
        self.behave().await
    }

    /// Reads on, and answers nothing but SETTINGS and PING, until the client leaves.
    pub(super) async fn listen(&mut self) -> io::Result<()> {
        loop {
            self.next().await?;
        }
    }

    /// Says the same again and again, and heeds nothing, until the client leaves.
    pub(super) async fn flood(&mut self, piece: &[u8]) -> io::Result<()> {
        self.repeat(piece, u64::MAX).await
    }

    /// Says the same so often, and heeds nothing meanwhile; after it the client's frames cannot be
    /// told from each other any more.
    pub(super) async fn repeat(&mut self, piece: &[u8], times: u64) -> io::Result<()> {
        // Few large writes: what one frame costs the client is to be seen, not what it costs here.
        const ROUND: usize = 16 * 1024;
        let many = (ROUND / piece.len().max(1)).max(1);
        let round = piece.repeat(many);
        let (mut read, mut write) = tokio::io::split(&mut self.io);
        let heard = async {
            let mut rest = vec![0; ROUND];
            while read.read(&mut rest).await? > 0 {}
            Ok(())
        };
        let said = async {
            let mut left = times;
            while left > 0 {
                let now = left.min(many as u64);
                write.write_all(&round[..now as usize * piece.len()]).await?;
                write.flush().await?;
                left -= now;
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        tokio::pin!(heard);
        tokio::select! {
            end = &mut heard => end,
            end = said => {
                if end.is_err() {
                    // What the client said before it left is still to be read, and counted.
                    let _ = timeout(LINGER, heard).await;
                }
                end
            }
        }
    }

    /// Writes byte by byte, each in a packet of its own.
    pub(super) async fn drip(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            self.send([*byte]).await?;
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Nothing happens for so long; nothing is read either.
    pub(super) async fn pause(&self, ms: u64) {
        sleep(Duration::from_millis(ms)).await;
    }

    /// Lets what was said arrive before what comes next.
    pub(super) async fn settle(&self) {
        self.pause(30).await;
    }

    /// Ends the connection in the way asked for.
    pub(super) async fn end(mut self, how: After) {
        match how {
            After::Drop => {}
            After::Reset => self.io.reset_on_close(),
            After::Keep | After::Close => {
                let mut rest = vec![0; 4096];
                // Also where nothing can be sent any more: the client's last words are counted.
                let _ = self.io.shutdown().await;
                let drain = async { while matches!(self.io.read(&mut rest).await, Ok(1..)) {} };
                // A client that goes on sending is cut off.
                let _ = timeout(LINGER, drain).await;
            }
        }
    }
}
