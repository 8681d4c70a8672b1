//! Calls that block the thread: no runtime, no threads behind the scenes, the same call loop.
//!
//! Everything here works inside an async program too, where it blocks the thread it runs on, as any
//! other blocking call would.
//!
//! ```
//! # let origin = mimus_testkit::Origin::start().unwrap();
//! # let url = origin.http_url("/get");
//! let client = mimus::blocking::Client::new();
//! let response = client.get(url).send()?;
//! assert_eq!(response.status(), 200);
//! assert!(response.text()?.contains("\"method\""));
//! # Ok::<(), mimus::Error>(())
//! ```

use std::{
    fmt,
    future::poll_fn,
    io::{self, BufRead, Read},
    sync::Arc,
};

use mimus_net::rt;

use crate::{
    Incoming, IntoUrl, Request, Result,
    client::{self, Inner, client_methods},
    reader::BodyReader,
};

/// An HTTP client whose calls block: a pool of connections, and the settings that calls start from.
///
/// Cheap to clone; clones share everything. Make one and keep it.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

impl Client {
    client_methods!(client::Blocking);

    /// A client with the default settings.
    ///
    /// Making one opens nothing and reads nothing but the environment's proxy variables.
    pub fn new() -> Self {
        match ClientBuilder::new().build() {
            Ok(client) => client,
            // Only a user's own settings can make `build` fail.
            Err(e) => unreachable!("the default settings are valid: {e:#}"),
        }
    }

    /// A client with settings of one's own.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Client { inner }
    }

    /// Opens connections to the origin of `url` ahead of requests, until `count` are open, and waits for them: see
    /// [`Client::preconnect`](crate::Client::preconnect). They are opened side by side, on this thread.
    ///
    /// # Errors
    /// As [`Client::preconnect`](crate::Client::preconnect).
    pub fn preconnect(&self, url: impl IntoUrl, count: usize) -> Result<usize> {
        let request = self.get(url).build()?;
        rt::Blocking::block_on(crate::preconnect::run(self.inner.clone(), request, count))
    }

    /// Executes a request and waits for the head of the response.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`].
    pub fn execute(&self, request: impl Into<Box<Request>>) -> Result<Response> {
        rt::Blocking::block_on(crate::call::run(self.inner.clone(), Ok(request.into())))
    }
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Builds a [`Client`].
pub type ClientBuilder = crate::ClientBuilder<client::Blocking>;
/// Builds a request that blocks when sent.
pub type RequestBuilder = crate::RequestBuilder<client::Blocking>;
/// A response whose body is read by blocking.
pub type Response = crate::Response<client::Blocking>;

/// GETs one URL with a client made for it. More than one call wants a [`Client`].
///
/// # Errors
/// As [`RequestBuilder::send`].
pub fn get(url: impl IntoUrl) -> Result<Response> {
    Client::new().get(url).send()
}

/// The body of a response as a [`Read`] and [`BufRead`].
#[derive(Debug)]
pub struct Reader(BodyReader);

impl Reader {
    pub(crate) fn new(body: Incoming) -> Self {
        Reader(BodyReader::new(body))
    }

    /// The body behind it.
    pub fn get_ref(&self) -> &Incoming {
        self.0.get_ref()
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        rt::Blocking::block_on(poll_fn(|cx| self.0.poll_fill(cx)))?;
        Ok(self.0.here())
    }

    fn consume(&mut self, n: usize) {
        self.0.advance(n);
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let here = self.fill_buf()?;
        let n = here.len().min(out.len());
        out[..n].copy_from_slice(&here[..n]);
        self.consume(n);
        Ok(n)
    }
}
