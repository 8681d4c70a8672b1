//! One request being answered: what a route sees, and how it answers.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use crate::conn::{After, Conn};
use crate::request::{Body, Request};
use crate::response::{Response, head};

/// A request, its body, and the connection it came on.
pub(crate) struct Exchange {
    pub(crate) conn: Conn,
    pub(crate) request: Request,
    pub(crate) body: Body,
    /// The request's number on its connection.
    pub(crate) seq: u32,
    /// What the pattern's `{..}` segments stood for, decoded.
    pub(crate) params: Vec<(&'static str, String)>,
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
        self.body.next(&mut self.conn).await
    }

    pub(crate) async fn body_bytes(&mut self) -> io::Result<Vec<u8>> {
        self.body.collect(&mut self.conn).await
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.conn.write(bytes.as_ref()).await
    }

    /// `Keep` if the client lets the connection go on, else `Close`.
    ///
    /// A client that still holds its body back may now send it or not; the next bytes
    /// would be ambiguous, so the connection ends (RFC 9110 section 10.1.1).
    pub(crate) fn after(&self) -> After {
        let keep = self.request.keeps_alive() && !self.body.waits();
        if keep { After::Keep } else { After::Close }
    }

    /// A head that announces truly what [`Exchange::after`] will do, without framing fields.
    pub(crate) fn head(&self, status: u16, headers: &[(String, String)]) -> String {
        let mut head = head(status, headers);
        let announced = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection"));
        match self.after() {
            _ if announced => {}
            After::Keep if self.request.minor == 0 => head.push_str("connection: keep-alive\r\n"),
            After::Keep => {}
            _ => head.push_str("connection: close\r\n"),
        }
        head
    }

    /// Answers with a whole response, in one write.
    pub(crate) async fn reply(&mut self, response: Response) -> io::Result<After> {
        let mut bytes = self.head(response.status, &response.headers).into_bytes();
        if !response.is_bodiless() {
            bytes.extend_from_slice(
                format!("content-length: {}\r\n", response.body.len()).as_bytes(),
            );
        }
        bytes.extend_from_slice(b"\r\n");
        if !self.is_head() && !response.is_bodiless() {
            bytes.extend_from_slice(&response.body);
        }
        self.write(bytes).await?;
        Ok(self.after())
    }

    /// Whether the answer ends after its head (RFC 9110 section 9.3.2).
    pub(crate) fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    /// Begins a chunked answer; HTTP/1.0 clients get one that ends with the connection.
    pub(crate) async fn begin(&mut self, response: Response) -> io::Result<Chunked> {
        let after = if self.request.minor == 0 { After::Close } else { self.after() };
        let mut headers = response.headers;
        if self.request.minor == 0 {
            headers.push(("connection".to_owned(), "close".to_owned()));
        } else {
            headers.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
        }
        let head = self.head(response.status, &headers) + "\r\n";
        self.write(head).await?;
        Ok(Chunked { framed: self.request.minor != 0, silent: self.is_head(), after })
    }

    /// Nothing happens for so long.
    ///
    /// # Errors
    /// When the client leaves meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration) -> io::Result<()> {
        if time.is_zero() {
            return Ok(());
        }
        match timeout(time, self.conn.until_gone()).await {
            Err(_) => Ok(()),
            Ok(()) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// A chunked answer that was begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    framed: bool,
    silent: bool,
    after: After,
}

impl Chunked {
    /// Writes one chunk, in one write.
    pub(crate) async fn chunk(self, ex: &mut Exchange, data: &[u8]) -> io::Result<()> {
        if self.silent || data.is_empty() {
            return Ok(());
        }
        if !self.framed {
            return ex.write(data).await;
        }
        let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\r\n");
        ex.write(bytes).await
    }

    /// Writes the last chunk and these trailer lines.
    pub(crate) async fn finish(self, ex: &mut Exchange, trailers: &str) -> io::Result<After> {
        if self.framed && !self.silent {
            ex.write(format!("0\r\n{trailers}\r\n")).await?;
        }
        Ok(self.after)
    }
}
