//! What a measured client has to be able to do: one exchange.

use std::time::Instant;

use bytes::Bytes;

use crate::job::{Deliver, Job};

/// Why an exchange failed.
pub type PeerError = Box<dyn std::error::Error + Send + Sync>;

/// One exchange to make.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// What to ask for.
    pub url: &'a str,
    /// What to send: nothing is a GET, anything else a POST.
    pub upload: Outgoing,
    /// What to do with the body that comes: [`Deliver::Bytes`] collects it in the client's own way and
    /// ends in [`Seen::whole`]; otherwise each piece goes to [`Seen::piece`] as it comes.
    pub deliver: Deliver,
}

/// A request body, before it takes the form that the client wants.
#[derive(Debug, Clone)]
pub enum Outgoing {
    /// None: a GET.
    None,
    /// All there, to be sent with Content-Length.
    Known(Bytes),
    /// To be streamed in pieces, chunked; the type is a `Stream`, an `http_body::Body` and a `Read`.
    Stream(crate::upload::Pieces),
}

/// A client on an async runtime.
pub trait AsyncPeer: Clone + Send + Sync + 'static {
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
    /// As [`AsyncPeer::exchange`].
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError>;

    /// Why this client cannot do `job`, if so.
    fn unsupported(&self, job: &Job) -> Option<String> {
        let _ = job;
        None
    }
}

/// What is seen of one response.
#[derive(Debug)]
pub struct Seen {
    pub(crate) began: Instant,
    pub(crate) deliver: Deliver,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
}

impl Seen {
    /// The status came.
    pub fn status(&mut self, status: u16) {
        self.status = status;
    }
}
