//! One request being answered: what a route sees, and how it answers.
//!
//! A route neither knows nor asks which version of HTTP it answers in, unless the bytes of HTTP/1
//! are its subject: those ask for the connection itself, and over HTTP/2 are refused with
//! HTTP_1_1_REQUIRED.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use crate::conn::{About, After, Conn};
use crate::h2::Stream;
use crate::record::RequestMark;
use crate::request::{Body, MAX_KEPT_BODY, Request, Version};
use crate::response::{Response, head, lines, reason};

/// A request, its body, and where its answer goes.
pub(crate) struct Exchange {
    pub(crate) about: Arc<About>,
    pub(crate) request: Request,
    /// The request's number on its connection.
    pub(crate) seq: u32,
    /// What the pattern's `{..}` segments stood for, decoded.
    pub(crate) params: Vec<(&'static str, String)>,
    pub(crate) wire: Wire,
}

/// What a request came on.
pub(crate) enum Wire {
    /// The whole connection, while it answers this one.
    One(Box<One>),
    /// One stream of many.
    Two(Box<Stream>),
}

/// An HTTP/1 connection and the body that is on it.
pub(crate) struct One {
    pub(crate) conn: Conn,
    pub(crate) body: Body,
}

impl Exchange {
    /// What the pattern's `{name}` stood for.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(have, _)| *have == name).map_or("", |(_, value)| value)
    }

    /// A numeric parameter; `None` when it is not a number of that type.
    pub(crate) fn param_as<T: FromStr>(&self, name: &str) -> Option<T> {
        self.param(name).parse().ok()
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let mut pairs = self.request.query.iter();
        pairs.find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// A query number, or `default` when it is absent or not a number.
    pub(crate) fn query_or<T: FromStr>(&self, name: &str, default: T) -> T {
        self.query(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// A query number of milliseconds.
    pub(crate) fn query_ms(&self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.query_or(name, default))
    }

    pub(crate) async fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        match &mut self.wire {
            Wire::One(one) => one.body.next(&mut one.conn).await,
            Wire::Two(stream) => stream.next_piece().await,
        }
    }

    /// The whole body; [`io::ErrorKind::FileTooLarge`] beyond [`MAX_KEPT_BODY`].
    pub(crate) async fn body_bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next_piece().await? {
            if whole.len() + piece.len() > MAX_KEPT_BODY {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// The trailer lines, once the body has ended.
    pub(crate) fn trailers(&self) -> &[String] {
        match &self.wire {
            Wire::One(one) => &one.body.trailers,
            Wire::Two(stream) => &stream.trailers,
        }
    }

    /// How many bytes of the body were read.
    pub(crate) fn read_so_far(&self) -> u64 {
        match &self.wire {
            Wire::One(one) => one.body.read_so_far(),
            Wire::Two(stream) => stream.read_so_far(),
        }
    }

    /// Where the record has this request.
    pub(crate) fn mark(&self) -> RequestMark {
        match &self.wire {
            Wire::One(one) => one.body.mark,
            Wire::Two(stream) => stream.mark,
        }
    }

    /// Whether the client still holds its body back.
    pub(crate) fn waits(&self) -> bool {
        match &self.wire {
            Wire::One(one) => one.body.waits(),
            Wire::Two(stream) => stream.waits,
        }
    }

    /// No 100 will be sent: the client may send its body or may not.
    pub(crate) fn refuse_to_continue(&mut self) {
        match &mut self.wire {
            Wire::One(one) => one.body.refuse(),
            Wire::Two(stream) => stream.waits = false,
        }
    }

    /// The connection, for a route whose subject are the bytes of HTTP/1.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] over HTTP/2.
    pub(crate) fn conn(&mut self) -> io::Result<&mut Conn> {
        match &mut self.wire {
            Wire::One(one) => Ok(&mut one.conn),
            Wire::Two(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes these bytes of HTTP/1.
    ///
    /// # Errors
    /// As [`Exchange::conn`], and when the client has left.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.conn()?.write(bytes.as_ref()).await
    }

    /// Returns when the client has gone, or has given this stream up.
    pub(crate) async fn until_gone(&mut self) {
        match &mut self.wire {
            Wire::One(one) => one.conn.until_gone().await,
            Wire::Two(stream) => stream.until_gone().await,
        }
    }

    /// `Keep` if the client lets the connection go on, else `Close`.
    ///
    /// A client that still holds its body back may now send it or not; over HTTP/1 the next bytes
    /// would be ambiguous, so the connection ends (RFC 9110 section 10.1.1).
    pub(crate) fn after(&self) -> After {
        let keep = match self.wire {
            Wire::One(_) => self.request.keeps_alive() && !self.waits(),
            Wire::Two(_) => true,
        };
        if keep { After::Keep } else { After::Close }
    }

    /// A head of HTTP/1 that announces truly what [`Exchange::after`] will do, without framing fields.
    pub(crate) fn head(&self, status: u16, headers: &[(String, String)]) -> String {
        let mut head = head(status, headers);
        let announced = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection"));
        match self.after() {
            _ if announced => {}
            After::Keep if self.request.version == Version::Http10 => {
                head.push_str("connection: keep-alive\r\n");
            }
            After::Keep => {}
            _ => head.push_str("connection: close\r\n"),
        }
        head
    }

    /// Sends an informational response (RFC 9110 section 15.2).
    pub(crate) async fn inform(&mut self, status: u16, headers: &[(&str, &str)]) -> io::Result<()> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let headers: Vec<_> = headers.iter().map(owned).collect();
        match &mut self.wire {
            Wire::One(one) => {
                let head =
                    format!("HTTP/1.1 {status} {}\r\n{}\r\n", reason(status), lines(&headers));
                one.conn.write(head.as_bytes()).await
            }
            Wire::Two(stream) => stream.inform(status, &headers),
        }
    }

    /// Answers with a whole response, in one write.
    pub(crate) async fn reply(&mut self, mut response: Response) -> io::Result<After> {
        if !response.is_bodiless() {
            response = response.length();
        }
        let silent = self.is_head() || response.is_bodiless();
        let body = if silent { Vec::new() } else { std::mem::take(&mut response.body) };
        if let Wire::Two(stream) = &mut self.wire {
            stream.begin(response, body.is_empty())?;
            if !body.is_empty() {
                stream.send(Bytes::from(body), true).await?;
            }
            return Ok(After::Keep);
        }
        let mut bytes = self.head(response.status, &response.headers).into_bytes();
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body);
        self.write(bytes).await?;
        Ok(self.after())
    }

    /// Answers with a head alone that says nothing about the length of a body.
    pub(crate) async fn reply_head(&mut self, response: Response) -> io::Result<After> {
        match &mut self.wire {
            Wire::Two(stream) => stream.begin(response, true)?,
            Wire::One(_) => return self.reply(response).await,
        }
        Ok(After::Keep)
    }

    /// Whether the answer ends after its head (RFC 9110 section 9.3.2).
    pub(crate) fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    /// Begins an answer of unknown length: chunked, or, to an HTTP/1.0 client, one that ends with
    /// the connection.
    pub(crate) async fn begin(&mut self, response: Response) -> io::Result<Begun> {
        let silent = self.is_head();
        if let Wire::Two(stream) = &mut self.wire {
            stream.begin(response, silent)?;
            return Ok(Begun { framing: Framing::Stream, silent, held: Vec::new() });
        }
        let mut headers = response.headers;
        let framing = if self.request.version == Version::Http10 {
            headers.push(("connection".to_owned(), "close".to_owned()));
            Framing::End
        } else {
            headers.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
            Framing::Chunks
        };
        let head = self.head(response.status, &headers) + "\r\n";
        self.write(head).await?;
        Ok(Begun { framing, silent, held: Vec::new() })
    }

    /// Begins an answer of known length. Over HTTP/1 its head leaves with the first piece.
    pub(crate) async fn begin_sized(&mut self, response: Response, len: u64) -> io::Result<Begun> {
        let silent = self.is_head();
        let response = response.header("content-length", len.to_string());
        if let Wire::Two(stream) = &mut self.wire {
            stream.begin(response, silent)?;
            return Ok(Begun { framing: Framing::Stream, silent, held: Vec::new() });
        }
        let held = (self.head(response.status, &response.headers) + "\r\n").into_bytes();
        Ok(Begun { framing: Framing::Length, silent, held })
    }

    /// Nothing happens for so long.
    ///
    /// # Errors
    /// When the client leaves meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration) -> io::Result<()> {
        if time.is_zero() {
            return Ok(());
        }
        match timeout(time, self.until_gone()).await {
            Err(_) => Ok(()),
            Ok(()) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Chunks,
    Length,
    /// The end of the connection is the end of the body.
    End,
    /// HTTP/2 frames it.
    Stream,
}

/// An answer that was begun.
#[derive(Debug)]
pub(crate) struct Begun {
    framing: Framing,
    silent: bool,
    /// A head that waits for the first piece.
    held: Vec<u8>,
}

impl Begun {
    /// Writes one piece, in one write.
    pub(crate) async fn chunk(&mut self, ex: &mut Exchange, data: &[u8]) -> io::Result<()> {
        if self.silent || data.is_empty() {
            return Ok(());
        }
        if let Wire::Two(stream) = &mut ex.wire {
            return stream.send(Bytes::copy_from_slice(data), false).await;
        }
        let mut bytes = std::mem::take(&mut self.held);
        if self.framing == Framing::Chunks {
            bytes.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        }
        bytes.extend_from_slice(data);
        if self.framing == Framing::Chunks {
            bytes.extend_from_slice(b"\r\n");
        }
        ex.write(bytes).await
    }

    /// Ends the answer with a last piece, in one write with the end where there are chunks.
    pub(crate) async fn finish_with(mut self, ex: &mut Exchange, data: &[u8]) -> io::Result<After> {
        if self.framing != Framing::Chunks || self.silent {
            self.chunk(ex, data).await?;
            return self.finish(ex, &[]).await;
        }
        let size = format!("{:x}\r\n", data.len());
        ex.write([size.as_bytes(), data, b"\r\n0\r\n\r\n"].concat()).await?;
        Ok(ex.after())
    }

    /// Ends the answer with these trailer fields, where its framing has room for them.
    pub(crate) async fn finish(
        mut self,
        ex: &mut Exchange,
        trailers: &[(&str, &str)],
    ) -> io::Result<After> {
        match &mut ex.wire {
            Wire::Two(_) if self.silent => {}
            Wire::Two(stream) => stream.finish(trailers)?,
            Wire::One(one) => {
                let mut rest = std::mem::take(&mut self.held);
                if self.framing == Framing::Chunks && !self.silent {
                    rest.extend_from_slice(b"0\r\n");
                    for (name, value) in trailers {
                        rest.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
                    }
                    rest.extend_from_slice(b"\r\n");
                }
                if !rest.is_empty() {
                    one.conn.write(&rest).await?;
                }
            }
        }
        Ok(if self.framing == Framing::End { After::Close } else { ex.after() })
    }
}
