//! What was on the wire: every connection and every request head, byte for byte.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::port::Port;

/// The most entries of each kind that are kept; beyond it the oldest is forgotten.
const MAX_ENTRIES: usize = 100_000;
/// The most head bytes that are kept over all requests.
const MAX_HEAD_BYTES: usize = 128 << 20;

/// One accepted connection.
#[derive(Clone, Debug)]
pub struct SeenConnection {
    /// The connection's number, unique in its origin; the first is 1.
    pub conn: u64,
    /// The port it came in on.
    pub port: Port,
    /// The client's address; `None` on the Unix socket.
    pub peer: Option<SocketAddr>,
    /// What TLS agreed on, once its handshake ended well; `None` without TLS.
    pub tls: Option<SeenTls>,
    /// What the client's frames were, on a port that speaks HTTP/2.
    pub h2: Option<SeenH2>,
    /// Whether the origin is done with it.
    pub closed: bool,
}

/// What a client sent on one HTTP/2 connection, counted from its frames (RFC 9113).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenH2 {
    /// How many streams it opened.
    pub streams: u64,
    /// The highest stream it opened; 0 before the first.
    pub last_stream: u32,
    /// Each RST_STREAM in order: stream and error code.
    pub resets: Vec<(u32, u32)>,
    /// The error code of its last GOAWAY.
    pub go_away: Option<u32>,
    /// How many frames of each type it sent.
    pub frames: BTreeMap<u8, u64>,
    /// The connection's first 16 KiB, preface included: the order of settings, the header blocks.
    pub opening: Vec<u8>,
}

impl SeenH2 {
    /// How many frames of this type it sent.
    pub fn count(&self, kind: u8) -> u64 {
        self.frames.get(&kind).copied().unwrap_or(0)
    }
}

/// What one TLS handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTls {
    /// The server name the client asked for (RFC 6066 section 3).
    pub sni: Option<String>,
    /// The application protocol that was chosen (RFC 7301).
    pub alpn: Option<Vec<u8>>,
    /// The protocol version, as `TLSv1_2` or `TLSv1_3`.
    pub version: String,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// How many bytes came as early data (RFC 8446 section 2.3).
    pub early_data: usize,
    /// Whether the client showed a certificate.
    pub client_cert: bool,
}

/// One request whose head was read whole.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The connection it came on.
    pub conn: u64,
    /// Its number on that connection; the first is 1.
    pub seq: u32,
    /// The port it came in on.
    pub port: Port,
    /// The method, as sent; `SOCKS4` or `SOCKS5` for a SOCKS request.
    pub method: String,
    /// The request target, as sent; `host:port` for a SOCKS request.
    pub target: String,
    /// The version of HTTP: `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`; `SOCKS` for a SOCKS request.
    pub version: &'static str,
    /// `:authority` of HTTP/2.
    pub authority: Option<String>,
    /// The stream it came on; 0 over HTTP/1.
    pub stream: u32,
    /// The head as it was on the wire, the empty line included; over HTTP/2 as HTTP/1 would have
    /// written it, without the pseudo-header fields.
    pub head: Bytes,
    /// Body bytes read so far, without the chunked framing.
    pub body_len: u64,
    /// Whether the body was read to its end.
    pub body_complete: bool,
    /// What TLS agreed on; `None` without TLS.
    pub tls: Option<SeenTls>,
    /// What came over the WebSocket that it opened; `None` for any other request.
    pub ws: Option<SeenWs>,
}

/// What a client said over one WebSocket (RFC 6455), as the origin has read it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenWs {
    /// How many data frames, and fragments of such, it sent.
    pub frames: u64,
    /// How many whole messages.
    pub messages: u64,
    /// How many of these were compressed (RFC 7692).
    pub compressed: u64,
    /// How many bytes their frames held.
    pub bytes: u64,
    /// How many pings.
    pub pings: u64,
    /// The payload of each pong, in order; at most 10 000.
    pub pongs: Vec<Vec<u8>>,
    /// The code, if there was one, and the reason of its Close.
    pub close: Option<(Option<u16>, String)>,
    /// Which rules it broke.
    pub broken: Vec<&'static str>,
    /// Whether it has ended its side of the stream, or lost it.
    pub gone: bool,
    /// Whether it did so in the middle of a frame.
    pub cut: bool,
}

impl Seen {
    /// The head as text; bytes that are not UTF-8 are replaced.
    pub fn head_text(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    /// The field lines of the head, in order, as sent: name and value.
    pub fn headers(&self) -> Vec<(String, String)> {
        let text = self.head_text();
        let lines = text.split("\r\n").skip(1).filter(|line| !line.is_empty());
        lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
            .collect()
    }

    /// The value of the first field line of this name, in any case.
    pub fn header(&self, name: &str) -> Option<String> {
        let mut all = self.headers().into_iter();
        all.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Points at one recorded request; stays valid while the ring moves on under it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMark {
    index: u64,
    epoch: u64,
}

#[derive(Default)]
struct Log {
    connections: VecDeque<SeenConnection>,
    requests: VecDeque<Seen>,
    /// How many requests were forgotten since the last reset.
    forgotten: u64,
    head_bytes: usize,
    epoch: u64,
}

/// The recorder of one origin.
#[derive(Default)]
pub(crate) struct Recorder {
    log: Mutex<Log>,
}

impl Recorder {
    fn log(&self) -> MutexGuard<'_, Log> {
        // A panic while it is held leaves a list that is still whole.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn opened(&self, seen: SeenConnection) {
        let mut log = self.log();
        if log.connections.len() == MAX_ENTRIES {
            log.connections.pop_front();
        }
        log.connections.push_back(seen);
    }

    pub(crate) fn update(&self, conn: u64, change: impl FnOnce(&mut SeenConnection)) {
        let mut log = self.log();
        // Numbers are given out in order, so the list is sorted by them.
        let at = log.connections.partition_point(|seen| seen.conn < conn);
        if let Some(seen) = log.connections.get_mut(at).filter(|seen| seen.conn == conn) {
            change(seen);
        }
    }

    pub(crate) fn request(&self, seen: Seen) -> RequestMark {
        let mut log = self.log();
        log.head_bytes += seen.head.len();
        log.requests.push_back(seen);
        while log.requests.len() > MAX_ENTRIES || log.head_bytes > MAX_HEAD_BYTES {
            let Some(old) = log.requests.pop_front() else {
                break;
            };
            log.head_bytes -= old.head.len();
            log.forgotten += 1;
        }
        RequestMark { index: log.forgotten + log.requests.len() as u64 - 1, epoch: log.epoch }
    }

    fn change(&self, mark: RequestMark, change: impl FnOnce(&mut Seen)) {
        let mut log = self.log();
        let Some(index) = mark.index.checked_sub(log.forgotten) else {
            return;
        };
        if mark.epoch != log.epoch {
            return;
        }
        if let Some(seen) = log.requests.get_mut(index as usize) {
            change(seen);
        }
    }

    pub(crate) fn body(&self, mark: RequestMark, len: u64, complete: bool) {
        self.change(mark, |seen| (seen.body_len, seen.body_complete) = (len, complete));
    }

    pub(crate) fn ws(&self, mark: RequestMark, change: impl FnOnce(&mut SeenWs)) {
        self.change(mark, |seen| change(seen.ws.get_or_insert_default()));
    }

    pub(crate) fn connections(&self) -> Vec<SeenConnection> {
        self.log().connections.iter().cloned().collect()
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.log().requests.iter().cloned().collect()
    }

    pub(crate) fn reset(&self) {
        let mut log = self.log();
        *log = Log { epoch: log.epoch + 1, ..Log::default() };
    }
}
