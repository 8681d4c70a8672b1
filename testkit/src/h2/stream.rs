//! One stream of an HTTP/2 connection, seen from a route.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::conn::About;
use crate::record::RequestMark;
use crate::response::{Response, date};

/// What no message of HTTP/2 may carry (RFC 9113 section 8.2.2); routes are written for HTTP/1.
const NOT_HERE: &[&str] = &["connection", "keep-alive", "transfer-encoding", "upgrade"];

/// A request's body and the way back.
pub(crate) struct Stream {
    answer: Answer,
    body: RecvStream,
    read: u64,
    /// Whether the client waits for a 100 (RFC 9110 section 10.1.1) that was not sent yet.
    pub(crate) waits: bool,
    /// The trailer lines, once the body has ended.
    pub(crate) trailers: Vec<String>,
    about: Arc<About>,
    pub(crate) mark: RequestMark,
}

/// How far the answer is.
enum Answer {
    Awaited(SendResponse<Bytes>),
    Begun(SendStream<Bytes>),
}

pub(super) fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
    }
    io::Error::new(io::ErrorKind::ConnectionAborted, error)
}

fn out_of_order() -> io::Error {
    io::Error::other("a route has answered twice, or not begun")
}

fn fields(headers: &[(String, String)]) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        // What query text made of a value goes out without its line breaks, as over HTTP/1.
        let clean: Vec<u8> = value
            .chars()
            .filter(|c| !matches!(c, '\r' | '\n' | '\0'))
            .map(|c| u8::try_from(c).unwrap_or(b'?'))
            .collect();
        let (Ok(name), Ok(value)) =
            (HeaderName::try_from(&lower), HeaderValue::from_bytes(clean.trim_ascii()))
        else {
            continue;
        };
        if !NOT_HERE.contains(&lower.as_str()) {
            map.append(name, value);
        }
    }
    map
}

fn response(status: u16, headers: &[(String, String)]) -> io::Result<http::Response<()>> {
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).map_err(io::Error::other)?;
    *response.headers_mut() = fields(headers);
    Ok(response)
}

impl Stream {
    pub(super) fn new(
        send: SendResponse<Bytes>,
        body: RecvStream,
        waits: bool,
        about: Arc<About>,
        mark: RequestMark,
    ) -> Self {
        let waits = waits && !body.is_end_stream();
        Self {
            answer: Answer::Awaited(send),
            body,
            read: 0,
            waits,
            trailers: Vec::new(),
            about,
            mark,
        }
    }

    pub(crate) fn read_so_far(&self) -> u64 {
        self.read
    }

    /// The next piece of the body. Its credit is given back now, so a route that does not read
    /// stops its client at the window.
    pub(crate) async fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        if self.waits {
            self.waits = false;
            self.inform(100, &[])?;
        }
        let Some(piece) = self.body.data().await else {
            if let Some(fields) = self.body.trailers().await.map_err(broken)? {
                let line = |(name, value): (&HeaderName, &HeaderValue)| {
                    format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
                };
                self.trailers = fields.iter().map(line).collect();
            }
            self.about.shared.recorder.body(self.mark, self.read, true);
            return Ok(None);
        };
        let piece = piece.map_err(broken)?;
        self.body.flow_control().release_capacity(piece.len()).map_err(broken)?;
        self.read += piece.len() as u64;
        self.about.shared.recorder.body(self.mark, self.read, self.body.is_end_stream());
        Ok(Some(piece))
    }

    /// Sends an informational response (RFC 9113 section 8.1).
    pub(crate) fn inform(&mut self, status: u16, headers: &[(String, String)]) -> io::Result<()> {
        match &mut self.answer {
            Answer::Awaited(send) => {
                send.send_informational(response(status, headers)?).map_err(broken)
            }
            Answer::Begun(_) => Err(out_of_order()),
        }
    }

    /// Sends the head of the answer; `end` when nothing follows it.
    pub(crate) fn begin(&mut self, head: Response, end: bool) -> io::Result<()> {
        let Answer::Awaited(send) = &mut self.answer else {
            return Err(out_of_order());
        };
        let mut whole = response(head.status, &head.headers)?;
        if let Ok(date) = HeaderValue::try_from(date()) {
            whole.headers_mut().insert(http::header::DATE, date);
        }
        self.answer = Answer::Begun(send.send_response(whole, end).map_err(broken)?);
        Ok(())
    }

    /// Sends a piece of the body as the client's windows allow.
    pub(crate) async fn send(&mut self, mut piece: Bytes, end: bool) -> io::Result<()> {
        let Answer::Begun(send) = &mut self.answer else {
            return Err(out_of_order());
        };
        while !piece.is_empty() {
            send.reserve_capacity(piece.len());
            let room = poll_fn(|cx| send.poll_capacity(cx)).await;
            let room = room.ok_or(io::ErrorKind::ConnectionAborted)?.map_err(broken)?;
            let part = piece.split_to(room.min(piece.len()));
            send.send_data(part, end && piece.is_empty()).map_err(broken)?;
        }
        Ok(())
    }

    /// Sends `piece` again and again, from `at` on, until something comes, which is returned; `None` is
    /// the end of the client's side.
    pub(crate) async fn flood(
        &mut self,
        piece: &[u8],
        at: &mut usize,
    ) -> io::Result<Option<Bytes>> {
        let Answer::Begun(send) = &mut self.answer else {
            return Err(out_of_order());
        };
        loop {
            send.reserve_capacity(piece.len() - *at);
            let room = tokio::select! {
                came = self.body.data() => {
                    let Some(came) = came.transpose().map_err(broken)? else {
                        return Ok(None);
                    };
                    self.body.flow_control().release_capacity(came.len()).map_err(broken)?;
                    return Ok(Some(came));
                }
                room = poll_fn(|cx| send.poll_capacity(cx)) => room,
            };
            let room = room.ok_or(io::ErrorKind::ConnectionAborted)?.map_err(broken)?;
            let part = &piece[*at..piece.len().min(*at + room)];
            send.send_data(Bytes::copy_from_slice(part), false).map_err(broken)?;
            *at = (*at + part.len()) % piece.len();
            // A fast reader would else keep this task from ever letting others run.
            tokio::task::yield_now().await;
        }
    }

    /// Ends the answer with these trailers, if any.
    pub(crate) fn finish(&mut self, trailers: &[(&str, &str)]) -> io::Result<()> {
        let Answer::Begun(send) = &mut self.answer else {
            return Err(out_of_order());
        };
        if trailers.is_empty() {
            return send.send_data(Bytes::new(), true).map_err(broken);
        }
        let owned = trailers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        send.send_trailers(fields(&owned.collect::<Vec<_>>())).map_err(broken)
    }

    /// Returns when the client has given the stream up, or has gone.
    pub(crate) async fn until_gone(&mut self) {
        // Whichever it is, nobody waits for the answer any more.
        let _ = poll_fn(|cx| match &mut self.answer {
            Answer::Awaited(send) => send.poll_reset(cx),
            Answer::Begun(send) => send.poll_reset(cx),
        })
        .await;
    }

    pub(crate) fn reset(&mut self, reason: Reason) {
        match &mut self.answer {
            Answer::Awaited(send) => send.send_reset(reason),
            Answer::Begun(send) => send.send_reset(reason),
        }
    }
}
