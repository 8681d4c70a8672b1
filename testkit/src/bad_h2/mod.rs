//! Misbehaviour over HTTP/2: every way to be wrong that a peer can show in frames.
//!
//! Each row is a listener of its own, because much goes wrong before a request tells its path. Its
//! frames are written by hand; the crate `h2` would refuse to send most of them.

mod connection;
mod flood;
mod flow;
mod goaway;
mod hpack;
mod message;
mod origin;
mod peer;
mod preface;
mod reset;
mod settings;
mod stream;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use crate::conn::{About, After};
use crate::h2::Tap;
use crate::io::Io;
use peer::Peer;

/// What a right client makes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A whole answer: a status of 2xx and as many bytes as the row says, of which the first are `ok`.
    Answer,
    /// An error that blames the peer for breaking the protocol.
    Protocol,
    /// An error that names a limit of the client.
    Limit,
    /// An error that says that the stream or the connection ended early.
    Closed,
    /// The client's own timeout.
    Timeout,
}

/// What the client is to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// One GET.
    Get,
    /// One POST with a body of 1 MiB whose length is told.
    Upload,
    /// A GET that is answered; then, 50 ms later and with the same client, the one that counts.
    Second,
}

/// One way in which a peer misbehaves over HTTP/2, and what a right client does.
pub struct BadH2 {
    /// Its name, unique among the rows.
    pub name: String,
    /// What the server does, with the section of RFC 9113 (or another, named) that it offends.
    pub what: String,
    /// What the client is to ask.
    pub ask: Ask,
    /// How that ends with a right client; where there is a choice, the RFC leaves one.
    pub right: Vec<Outcome>,
    /// The error codes of which a right client says one, by RST_STREAM or GOAWAY, when it does not
    /// get its answer; none given means that it need not say
    /// anything, as when the stream has ended already.
    pub codes: Vec<u32>,
    /// How many connections a right client needs at least, when it gets its answer.
    pub connections: u64,
    /// How long the body of a right answer is.
    pub body: u64,
    run: Script,
}

impl std::fmt::Debug for BadH2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BadH2").field(&self.name).finish()
    }
}

/// Every way to misbehave over HTTP/2, in the order of `--list`.
pub fn bad_h2() -> &'static [BadH2] {
    static ROWS: LazyLock<Vec<BadH2>> = LazyLock::new(|| {
        [
            preface::rows(),
            settings::rows(),
            flow::rows(),
            goaway::rows(),
            reset::rows(),
            connection::rows(),
            flood::rows(),
            stream::rows(),
            hpack::rows(),
            message::rows(),
            origin::rows(),
        ]
        .into_iter()
        .flatten()
        .collect()
    });
    &ROWS
}

/// The row of this name.
pub(crate) fn find(name: &str) -> Option<&'static BadH2> {
    bad_h2().iter().find(|row| row.name == name)
}

type Done<'a> = Pin<Box<dyn Future<Output = io::Result<After>> + Send + 'a>>;
type Script = Arc<dyn for<'a> Fn(&'a mut Peer) -> Done<'a> + Send + Sync>;

/// A script: what the peer does, and FIN when that is over.
macro_rules! play {
    (|$peer:ident| $($body:tt)*) => {
        move |$peer| Box::pin(async move {
            $($body)*
            Ok($crate::conn::After::Close)
        })
    };
}
use play;

/// A row that asks once and is answered; the rest is said by the methods below.
fn row<F>(name: impl Into<String>, what: impl Into<String>, run: F) -> BadH2
where
    F: for<'a> Fn(&'a mut Peer) -> Done<'a> + Send + Sync + 'static,
{
    BadH2 {
        name: name.into(),
        what: what.into(),
        ask: Ask::Get,
        right: vec![Outcome::Answer],
        codes: Vec::new(),
        connections: 1,
        body: peer::OK.len() as u64,
        run: Arc::new(run),
    }
}

/// A row that sends `bytes` behind the first request, as they are, and then reads on.
fn said(
    name: impl Into<String>,
    what: impl Into<String>,
    bytes: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static,
) -> BadH2 {
    let bytes = Arc::new(bytes);
    row(name, what, move |peer| {
        let bytes = Arc::clone(&bytes);
        Box::pin(async move {
            let stream = peer.first().await?;
            peer.send(bytes(stream)).await?;
            peer.listen().await?;
            Ok(After::Close)
        })
    })
}

impl BadH2 {
    fn ask(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    fn ends(mut self, right: &[Outcome]) -> Self {
        self.right = right.to_vec();
        self
    }

    fn with(mut self, codes: &[u32]) -> Self {
        self.codes = codes.to_vec();
        self
    }

    /// The peer breaks the protocol, and is told so with this code.
    fn breaks(self, code: u32) -> Self {
        self.ends(&[Outcome::Protocol]).with(&[code])
    }

    fn on(mut self, connections: u64) -> Self {
        self.connections = connections;
        self
    }

    fn body(mut self, len: u64) -> Self {
        self.body = len;
        self
    }
}

/// Serves one connection of a row.
pub(crate) async fn serve(row: &BadH2, nth: u64, about: Arc<About>, io: Box<dyn Io>) {
    let mut peer = Peer::new(Tap::new(io, about), nth);
    // A client that left while the script went on has ended it.
    let after = (row.run)(&mut peer).await.unwrap_or(After::Close);
    peer.end(after).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_row_says_what_is_right() {
        let rows = bad_h2();
        for (at, row) in rows.iter().enumerate() {
            assert!(rows[..at].iter().all(|other| other.name != row.name), "{}", row.name);
            assert!(!row.right.is_empty(), "{}", row.name);
            assert!(find(&row.name).is_some());
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(row.name.chars().all(plain), "{}", row.name);
        }
    }
}
