//! The client: what calls share.

use std::{fmt, marker::PhantomData, sync::Arc};

use http::Method;
use mimus_net::{Runtime, dial::Dialer, rt};
use mimus_proto::Fields;
use url::Url;

use crate::{
    Body, ClientBuilder, Error, Incoming, RequestBuilder, Result,
    conn::Conn,
    cookie::CookieStore,
    options::Settings,
    policy::netrc::Netrc,
    pool::SharedPool,
    request::Request,
    response::Response,
    route::Route,
    target::IntoUrl,
};

/// Calls that are awaited. The default mode of [`Client`].
#[derive(Debug, Clone, Copy)]
pub enum Async {}

/// Calls that block the thread. The mode of everything in [`blocking`](crate::blocking).
#[derive(Debug, Clone, Copy)]
pub enum Blocking {}

/// An HTTP client: a pool of connections, and the settings that calls start from.
///
/// Cheap to clone; clones share everything. Make one and keep it.
///
/// ```
/// # let origin = mimus_testkit::Origin::start().unwrap();
/// # let url = origin.http_url("/get");
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let client = mimus::Client::new();
/// let response = client.get(url).header("X-Token", "1").send().await?;
/// assert_eq!(response.status(), 200);
/// let text = response.text().await?;
/// # assert!(text.contains("X-Token"));
/// # Ok::<(), mimus::Error>(())
/// # }).unwrap();
/// ```
pub struct Client<M = Async> {
    inner: Arc<Inner>,
    mode: PhantomData<fn() -> M>,
}

/// What the clones of a client share.
pub(crate) struct Inner {
    pub(crate) settings: Arc<Settings>,
    /// Sent with every request that does not set a field of the same name.
    pub(crate) default_fields: Fields,
    pub(crate) base_url: Option<Url>,
    pub(crate) dialer: Dialer,
    pub(crate) pool: SharedPool<Route, Box<Conn>>,
    pub(crate) cookies: Option<Arc<dyn CookieStore>>,
    pub(crate) netrc: Option<Netrc>,
}

impl Inner {
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.dialer.runtime
    }
}

impl<M> Client<M> {
    pub(crate) fn from_inner(inner: Inner) -> Self {
        Client { inner: Arc::new(inner), mode: PhantomData }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Starts a request of any method.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder<M> {
        RequestBuilder::new(self.clone(), method, url)
    }

    /// Starts a GET.
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::GET, url)
    }

    /// Starts a HEAD.
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::HEAD, url)
    }

    /// Starts a POST.
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::POST, url)
    }

    /// Starts a PUT.
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::PUT, url)
    }

    /// Starts a PATCH.
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::PATCH, url)
    }

    /// Starts a DELETE.
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::DELETE, url)
    }

    /// Starts an OPTIONS.
    pub fn options(&self, url: impl IntoUrl) -> RequestBuilder<M> {
        self.request(Method::OPTIONS, url)
    }

    /// What the pool holds and has done so far.
    pub fn pool_stats(&self) -> crate::pool::Stats {
        self.inner.pool.stats()
    }

    /// Closes the connections that nobody uses.
    pub fn close_idle(&self) {
        self.inner.pool.close_idle();
    }

    /// The client's cookies, if it keeps any.
    pub fn cookies(&self) -> Option<&Arc<dyn CookieStore>> {
        self.inner.cookies.as_ref()
    }

    /// An [`http::Request`] as a request of this client.
    ///
    /// # Errors
    /// When the URI is not absolute, or has a scheme other than http and https.
    pub fn from_http<B: Into<Body>>(&self, request: http::Request<B>) -> Result<Request> {
        let (parts, body) = request.into_parts();
        let mut request = self.request(parts.method, parts.uri).body(body).build()?;
        *request.fields_mut() = Fields::from(&parts.headers);
        Ok(request)
    }
}

impl Client<Async> {
    /// A client with the default settings, on the tokio runtime that makes its calls.
    ///
    /// Making one opens nothing and reads nothing but the environment's proxy variables.
    #[cfg(feature = "tokio")]
    pub fn new() -> Self {
        ClientBuilder::<Async>::new().build().unwrap_or_else(|e| {
            // Only a user's own settings can make `build` fail.
            unreachable!("the default settings are valid: {e:#}")
        })
    }

    /// A client with settings of one's own.
    pub fn builder() -> ClientBuilder<Async> {
        ClientBuilder::new()
    }

    /// Executes a request and waits for the head of the response.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`].
    pub async fn execute(&self, request: Request) -> Result<Response> {
        crate::call::run(&self.inner, request).await.map(Response::new)
    }

    /// Executes an [`http::Request`], giving an [`http::Response`]. The extensions of the response
    /// hold a [`ConnectionInfo`](crate::ConnectionInfo) and the [`Timings`](crate::Timings) so far.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`].
    pub async fn call<B: Into<Body>>(
        &self,
        request: http::Request<B>,
    ) -> Result<http::Response<Incoming>> {
        Ok(self.execute(self.from_http(request)?).await?.into())
    }
}

impl Client<Blocking> {
    /// A blocking client with the default settings.
    pub fn new() -> Self {
        ClientBuilder::<Blocking>::new()
            .build()
            .unwrap_or_else(|e| unreachable!("the default settings are valid: {e:#}"))
    }

    /// A blocking client with settings of one's own.
    pub fn builder() -> ClientBuilder<Blocking> {
        ClientBuilder::<Blocking>::new()
    }

    /// Executes a request and waits for the head of the response.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`].
    pub fn execute(&self, request: Request) -> Result<Response<Blocking>> {
        rt::Blocking::block_on(crate::call::run(&self.inner, request)).map(Response::new)
    }
}

#[cfg(feature = "tokio")]
impl Default for Client<Async> {
    fn default() -> Self {
        Client::<Async>::new()
    }
}

impl Default for Client<Blocking> {
    fn default() -> Self {
        Client::<Blocking>::new()
    }
}

impl<M> Clone for Client<M> {
    fn clone(&self) -> Self {
        Client { inner: self.inner.clone(), mode: PhantomData }
    }
}

impl<M> fmt::Debug for Client<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("runtime", &self.inner.dialer.runtime)
            .field("pool", &self.inner.pool.stats())
            .finish_non_exhaustive()
    }
}

/// A bad default field, base URL or file found while building.
pub(crate) fn bad_setting(what: &str, cause: impl Into<crate::BoxError>) -> Error {
    Error::request(format!("the client cannot be built: {what}")).caused_by(cause)
}
