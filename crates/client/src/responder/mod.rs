//! Exchanges without a server: a [`Responder`] gets each request as it would have been sent, and what it answers is
//! treated as if it had come from a socket.
//!
//! Everything above the connection works as ever: redirects are followed and cookies kept, retries made, credentials
//! and hooks asked, bodies decoded and limits held, timeouts of head, body and call fire. Nothing below it happens:
//! there is no pool, no name is resolved, no socket opened. So tests exercise what they are about, and a program can
//! answer some of its calls itself.
//!
//! ```
//! use mimus::responder::{Request, Response};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let answer = |mut request: Request| async move {
//!     let body = request.body_mut().collect().await?;
//!     Ok::<_, mimus::Error>(match request.url().path() {
//!         "/old" => Response::new(308).header("Location", "/new"),
//!         _ => Response::new(200).body(body),
//!     })
//! };
//! let client = mimus::Client::builder().answer_with(answer).build()?;
//! let response = client.post("https://example.com/old").body("hello").send().await?;
//! assert_eq!(response.url().path(), "/new");
//! assert_eq!(response.text().await?, "hello");
//! # Ok::<(), mimus::Error>(())
//! # }).unwrap();
//! ```
//!
//! Of versions, a request is in HTTP/2 where [`version`](crate::ClientBuilder::version) says so, in HTTP/1.1
//! otherwise. There is no upgrade, to a WebSocket for one, and no tunnel.

mod message;
#[cfg(feature = "tower")]
mod service;

use std::{fmt, sync::Arc};

use http::Method;
use url::Url;

pub(crate) use message::Progress;
pub use message::{Request, Response, Upload};
#[cfg(feature = "tower")]
pub use service::Service;

use crate::{BoxError, rt::BoxFuture};

/// Answers requests in the place of a server: see the [module](self). Functions of a [`Request`] that give a
/// future of a [`Response`], or of a `Result` with one, are such.
pub trait Responder: Send + Sync + 'static {
    /// The answer to a request.
    ///
    /// The future is polled by the call that waits for it, and dropped with that call. It may leave the request's
    /// body unread.
    ///
    /// # Errors
    /// An [`Error`](crate::Error), such as [`Error::simulated`](crate::Error::simulated) makes, or one of
    /// [`io`](std::io::Error) is treated as if it had happened on the way; any other is the call's with
    /// [`Kind::Hook`](crate::Kind::Hook).
    fn respond(&self, request: Request) -> BoxFuture<'static, Result<Response, BoxError>>;

    /// Whether it answers requests of this method to this URL. Asked before each exchange; the server gets those
    /// that it leaves.
    fn answers(&self, method: &Method, url: &Url) -> bool {
        let _ = (method, url);
        true
    }
}

impl<F, O> Responder for F
where
    F: Fn(Request) -> O + Send + Sync + 'static,
    O: Future<Output: IntoAnswer> + Send + 'static,
{
    fn respond(&self, request: Request) -> BoxFuture<'static, Result<Response, BoxError>> {
        let answer = self(request);
        Box::pin(async move { answer.await.into_answer() })
    }
}

/// What the future of a function that is a [`Responder`] may end with.
pub trait IntoAnswer {
    /// The answer, or why there is none.
    ///
    /// # Errors
    /// See [`Responder::respond`].
    fn into_answer(self) -> Result<Response, BoxError>;
}

impl IntoAnswer for Response {
    fn into_answer(self) -> Result<Response, BoxError> {
        Ok(self)
    }
}

impl<E: Into<BoxError>> IntoAnswer for Result<Response, E> {
    fn into_answer(self) -> Result<Response, BoxError> {
        self.map_err(Into::into)
    }
}

/// The responder among a call's settings.
#[derive(Clone)]
pub(crate) struct Chosen(pub(crate) Arc<dyn Responder>);

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}
