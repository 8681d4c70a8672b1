//! Answers that are no event stream, with what they say instead.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use mimus_net::{Runtime, rt};
use mimus_proto::{Fields, sse::Refused};
use sync_wrapper::SyncWrapper;

use crate::{Error, Incoming, Kind, Response, client::Async};

/// The most of the body of a [`Refusal`] that is kept.
const KEPT: usize = 64 * 1024;

/// How long that body may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// A response whose body is no event stream, and why it is not.
pub struct NotEvents<M = Async> {
    why: Refused,
    response: SyncWrapper<Response<M>>,
}

impl<M> NotEvents<M> {
    pub(super) fn new(why: Refused, response: Response<M>) -> Self {
        NotEvents { why, response: SyncWrapper::new(response) }
    }

    /// Why.
    pub fn why(&self) -> Refused {
        self.why
    }

    /// The response, with its body to be read.
    pub fn into_response(self) -> Response<M> {
        self.response.into_inner()
    }
}

impl<M> fmt::Display for NotEvents<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<M> fmt::Debug for NotEvents<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotEvents").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<M> StdError for NotEvents<M> {}

impl<M> From<NotEvents<M>> for Error {
    /// Without the response: whoever wants its body takes it out before.
    fn from(refused: NotEvents<M>) -> Self {
        error(refused.why).on(refused.into_response().url())
    }
}

fn error(why: Refused) -> Error {
    let kind = match why {
        Refused::Status(status) => Kind::Status(status),
        _ => Kind::Protocol,
    };
    Error::new(kind, why.to_string()).after_sending(true)
}

/// What the server of an [`EventSource`](super::EventSource) answered instead of a stream: the cause of the
/// error that it fails with.
#[derive(Clone)]
pub struct Refusal {
    status: StatusCode,
    fields: Fields,
    body: Bytes,
}

impl Refusal {
    /// The refusal that an error was caused by, if it was.
    pub fn of(error: &Error) -> Option<&Refusal> {
        error.source()?.downcast_ref()
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The fields of the head.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The body, or its first 64 KiB, or as much of it as came within 5 seconds.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The same as text; what is not UTF-8 becomes U+FFFD.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Reads what the response says, into an error.
    pub(super) async fn take<M>(
        why: Refused,
        response: Response<M>,
        runtime: Arc<dyn Runtime>,
    ) -> Error {
        let error = error(why).on(response.url());
        let (status, fields) = (response.status(), response.fields().clone());
        let mut body = response.into_body();
        let mut kept = BytesMut::new();
        // A clock that cannot say the end gives the peer none.
        let until = std::time::Instant::now().checked_add(PATIENCE);
        // Whatever is wrong with the rest, what came says more.
        let _ = rt::within(&*runtime, until, keep(&mut body, &mut kept)).await;
        error.caused_by(Refusal { status, fields, body: kept.freeze() })
    }
}

async fn keep(body: &mut Incoming, kept: &mut BytesMut) -> crate::Result<()> {
    while let Some(piece) = body.data().await? {
        let room = KEPT - kept.len();
        kept.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() >= room {
            break;
        }
    }
    Ok(())
}

impl fmt::Display for Refusal {
    /// The beginning of what the body says, if it is text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 200;
        let text = self.text();
        let text = text.trim();
        if text.is_empty() || text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
            return f.write_str("its body is empty, or no text");
        }
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = line.chars().take(SHOWN).collect();
        let more = if shown.len() < line.len() { "..." } else { "" };
        write!(f, "it says: {shown}{more}")
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("fields", &self.fields)
            .field("body", &self.body.len())
            .finish()
    }
}

impl StdError for Refusal {}
