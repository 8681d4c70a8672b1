//! Misbehaviour over WebSocket: every way to be wrong that a server can show in its handshake and in
//! its frames.
//!
//! Each row is at `/bad-ws/` and its name on every port that serves routes. Most go on, behind what is
//! wrong, with a right message and a right Close, which a client must not believe.

mod close;
mod compression;
mod frames;
mod handshake;
mod limits;
mod text;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use crate::conn::After;
use crate::exchange::{Exchange, Wire};
use crate::response::Response;
use crate::ws::Socket;
use crate::ws::frame;
use crate::ws::handshake::{accept, refuse};

/// What a right client makes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WsOutcome {
    /// The messages that the row tells of, and an end in order: both sides have said Close.
    Closed,
    /// The handshake is answered by an ordinary response, which is no socket.
    Refused,
    /// An error that blames the server for breaking the protocol.
    Protocol,
    /// An error that names a limit of the client.
    Limit,
    /// An error that says that the connection ended early.
    Lost,
    /// The client's own timeout.
    Timeout,
}

/// What the client is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WsAsk {
    /// Offer nothing, and receive to the end.
    Receive,
    /// Offer the subprotocols `chat` and `superchat`, and receive to the end.
    Chat,
    /// Offer permessage-deflate (RFC 7692), and receive to the end.
    Deflate,
    /// Offer nothing, and close with 1000 as soon as the socket is open.
    Close,
}

/// One way in which a server misbehaves over WebSocket, and what a right client does that takes no
/// message of more than 1 MiB.
pub struct BadWs {
    /// Its name, unique among the rows.
    pub name: String,
    /// What the server does, with the section of RFC 6455 (or another, named) that it offends.
    pub what: String,
    /// What the client is to do.
    pub ask: WsAsk,
    /// How that ends with a right client; where there is a choice, the RFC leaves one.
    pub right: Vec<WsOutcome>,
    /// The close codes of which a right client says one; none given means that it need not say any, as
    /// when the socket never opened.
    pub codes: Vec<u16>,
    /// How many messages of text or binary a right client is given.
    pub messages: u64,
    /// Whether it is the same over HTTP/2; else its subject are bytes of HTTP/1.1.
    pub http2: bool,
    run: Script,
}

impl std::fmt::Debug for BadWs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BadWs").field(&self.name).finish()
    }
}

/// Every way to misbehave over WebSocket, in the order of `--list`.
pub fn bad_ws() -> &'static [BadWs] {
    static ROWS: LazyLock<Vec<BadWs>> = LazyLock::new(|| {
        let all = [
            handshake::rows(),
            frames::rows(),
            text::rows(),
            close::rows(),
            limits::rows(),
            compression::rows(),
        ];
        all.into_iter().flatten().collect()
    });
    &ROWS
}

type Done<'a> = Pin<Box<dyn Future<Output = io::Result<After>> + Send + 'a>>;
type Script = Arc<dyn for<'a> Fn(&'a mut Exchange) -> Done<'a> + Send + Sync>;

/// A script: what the server does with an open socket, and FIN when that is over.
macro_rules! play {
    (|$socket:ident| $($body:tt)*) => {
        move |ex: &mut crate::exchange::Exchange| Box::pin(async move {
            crate::ws::handshake::accept(ex, &[]).await?;
            #[allow(unused_mut, reason = "not every script reads")]
            let mut $socket = crate::ws::Socket::new(ex);
            $($body)*
            $socket.end(crate::conn::After::Close)
        })
    };
}
use play;

/// A row that is closed in order, behind no message; the rest is said by the methods below.
fn row<F>(name: impl Into<String>, what: impl Into<String>, run: F) -> BadWs
where
    F: for<'a> Fn(&'a mut Exchange) -> Done<'a> + Send + Sync + 'static,
{
    BadWs {
        name: name.into(),
        what: what.into(),
        ask: WsAsk::Receive,
        right: vec![WsOutcome::Closed],
        codes: Vec::new(),
        messages: 0,
        http2: true,
        run: Arc::new(run),
    }
}

/// A row that sends `bytes` on the open socket, a right Close behind them, and reads until the client
/// closes too.
fn said(name: impl Into<String>, what: impl Into<String>, bytes: Vec<u8>) -> BadWs {
    answered(name, what, &[], bytes)
}

/// The same without the Close, which is among the bytes.
fn closed(name: impl Into<String>, what: impl Into<String>, bytes: Vec<u8>) -> BadWs {
    spoken(name, what, &[], bytes)
}

/// Sends `bytes` and a right Close on a socket that is opened with these fields in the answer.
fn answered(
    name: impl Into<String>,
    what: impl Into<String>,
    fields: &[(&str, &str)],
    bytes: Vec<u8>,
) -> BadWs {
    spoken(name, what, fields, [bytes, frame::close(1000, "")].concat())
}

fn spoken(
    name: impl Into<String>,
    what: impl Into<String>,
    fields: &[(&str, &str)],
    bytes: Vec<u8>,
) -> BadWs {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let fields: Arc<[_]> = fields.iter().map(owned).collect();
    let bytes: Arc<[u8]> = bytes.into();
    row(name, what, move |ex| {
        let (fields, bytes) = (Arc::clone(&fields), Arc::clone(&bytes));
        Box::pin(async move {
            accept(ex, &fields).await?;
            let mut socket = Socket::new(ex);
            // A client may leave before it has read all of it.
            socket.write(&bytes).await?;
            socket.listen().await?;
            socket.end(After::Close)
        })
    })
}

impl BadWs {
    fn ask(mut self, ask: WsAsk) -> Self {
        self.ask = ask;
        self
    }

    fn ends(mut self, right: &[WsOutcome]) -> Self {
        self.right = right.to_vec();
        self
    }

    fn with(mut self, codes: &[u16]) -> Self {
        self.codes = codes.to_vec();
        self
    }

    /// The server breaks the protocol, and is told so with this code.
    fn breaks(self, code: u16) -> Self {
        self.ends(&[WsOutcome::Protocol]).with(&[code])
    }

    /// A limit of the client is met, and the server told so (RFC 6455 section 7.4.1).
    fn exceeds(self) -> Self {
        self.ends(&[WsOutcome::Limit]).with(&[1009])
    }

    fn gives(mut self, messages: u64) -> Self {
        self.messages = messages;
        self
    }

    /// Its subject are bytes of HTTP/1.1.
    fn http1(mut self) -> Self {
        self.http2 = false;
        self
    }
}

/// Serves one socket of a row.
pub(crate) async fn serve(ex: &mut Exchange) -> io::Result<After> {
    let Some(row) = bad_ws().iter().find(|row| row.name == ex.param("name")) else {
        return ex.reply(Response::text(404, "no such row; mimus-origin --list has them\n")).await;
    };
    if let Some(after) = refuse(ex).await? {
        return Ok(after);
    }
    if !row.http2 && matches!(ex.wire, Wire::Two(_)) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    (row.run)(ex).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_row_says_what_is_right() {
        let rows = bad_ws();
        for (at, row) in rows.iter().enumerate() {
            assert!(rows[..at].iter().all(|other| other.name != row.name), "{}", row.name);
            assert!(!row.right.is_empty(), "{}", row.name);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(row.name.chars().all(plain), "{}", row.name);
        }
    }
}
