//! What a measured client has to be able to do: one exchange.

use bytes::Bytes;

use crate::{Deliver, Job, Messages, Pieces, Seen};

/// Why an exchange failed.
pub type PeerError = Box<dyn std::error::Error + Send + Sync>;

/// One exchange to make.
#[derive(Debug)]
pub struct Ask<'a> {
    /// What to ask for.
    pub url: &'a str,
    /// What to send: nothing is a GET, anything else a POST.
    pub upload: Outgoing,
    /// How many exchanges are under way at any time, this one included.
    pub in_flight: u32,
    /// What to do with the body that comes: [`Deliver::Bytes`] collects it in the client's own way and
    /// ends in [`Seen::whole`]; otherwise each piece goes to [`Seen::piece`] as it comes.
    pub deliver: Deliver,
    /// What to send instead, over a WebSocket that is open from the exchange before: all of them, written at
    /// once as far as the client can. Each comes back, and goes to [`Seen::message`].
    pub messages: Option<&'a Messages>,
}

impl<'a> Ask<'a> {
    /// The messages to send, for a client that was made for WebSocket.
    ///
    /// # Errors
    /// There are none: the suite asks it for something else.
    pub fn messages(&self) -> Result<&'a Messages, PeerError> {
        self.messages.ok_or_else(|| "a WebSocket sends messages".into())
    }
}

/// A request body, before it takes the form that the client wants.
#[derive(Debug)]
pub enum Outgoing {
    /// None: a GET.
    None,
    /// All there, to be sent with Content-Length; of a gRPC call, the text of its message.
    Known(Bytes),
    /// To be streamed in pieces, chunked; the type is a `Stream`, an `http_body::Body` and a `Read`.
    Stream(Pieces),
}

/// How a client comes to open a connection for each exchange of a [`Job`] that is `cold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cold {
    /// It is told when it is made ([`Setup::cold`](crate::Setup::cold)) and keeps no connection.
    Configured,
    /// It has no such setting: a client is made for each exchange, within the timed part.
    NewClient,
}

/// A client on an async runtime.
///
/// A clone shares the connections of the original, as far as the client's own clones do. There is one
/// clone for each exchange under way at a time; a clone is never asked for two exchanges at once.
pub trait AsyncPeer: Clone + Send + Sync + 'static {
    /// How it opens a connection for each exchange.
    const COLD: Cold = Cold::NewClient;

    /// Makes one exchange, over a kept connection where the client has one, and tells `seen` of the
    /// status and of the body as it comes.
    fn exchange(
        &self,
        ask: Ask<'_>,
        seen: &mut Seen,
    ) -> impl Future<Output = Result<(), PeerError>> + Send;

    /// Why this client cannot do `job`, if so.
    fn unsupported(&self, job: &Job) -> Option<String> {
        let _ = job;
        None
    }
}

/// A client that blocks its thread.
pub trait BlockingPeer: 'static {
    /// How it opens a connection for each exchange.
    const COLD: Cold = Cold::NewClient;

    /// As [`AsyncPeer::exchange`].
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError>;

    /// Why this client cannot do `job`, if so.
    fn unsupported(&self, job: &Job) -> Option<String> {
        let _ = job;
        None
    }
}
