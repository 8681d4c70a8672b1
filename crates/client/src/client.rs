//! The client: what calls share.

use std::{fmt, future::Future, sync::Arc};

use mimus_net::{Runtime, dial::Dialer};
use mimus_proto::Fields;

use crate::{
    Body, ClientBuilder, Error, Incoming, Result,
    conn::{Conn, Shared},
    cookie::CookieStore,
    options::Settings,
    origins::Origins,
    policy::netrc::Netrc,
    pool::{Expects, Limits, SharedPool},
    profile::Hints,
    request::Request,
    response::Response,
    route::{Route, RouteRef},
    target::Targets,
};

/// Calls that are awaited: the mode of what [`Client`] makes.
#[derive(Debug, Clone, Copy)]
pub enum Async {}

/// Calls that block the thread: the mode of what [`blocking::Client`](crate::blocking::Client)
/// makes.
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
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones of a client share.
pub(crate) struct Inner {
    pub(crate) settings: Arc<Settings>,
    /// Sent with every request that does not set a field of the same name.
    pub(crate) default_fields: Fields,
    /// Whether requests whose answer is decoded say in which codings it may come.
    pub(crate) names_codings: bool,
    pub(crate) targets: Targets,
    pub(crate) dialer: Dialer,
    pub(crate) pool: SharedPool<Route, Box<Conn>, Shared>,
    pub(crate) pool_limits: Limits,
    /// Those that want HTTP/1.1 (HTTP_1_1_REQUIRED, RFC 9113 section 7).
    pub(crate) http1_origins: Origins,
    /// Those that want connections of their own (421, RFC 9110 section 15.5.20).
    pub(crate) apart_origins: Origins,
    /// Those that speak HTTP/2, if the client has a profile.
    pub(crate) http2_origins: Origins,
    /// Those that took HTTP/1.1, if the client has a profile.
    pub(crate) http1_takers: Origins,
    /// What origins want to be told, if the client has a profile.
    pub(crate) hints: Hints,
    pub(crate) cookies: Option<Arc<dyn CookieStore>>,
    pub(crate) netrc: Option<Netrc>,
}

impl Inner {
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.dialer.runtime
    }

    /// What a connection for `request` may be, after what its origin said of versions.
    ///
    /// # Errors
    /// As [`RouteRef::expects`].
    pub(crate) fn expects(&self, route: &RouteRef<'_>, request: &Request) -> Result<Expects> {
        let wants_http1 = || self.http1_origins.contains(request.target.authority());
        Ok(match route.expects(request)? {
            Expects::Either if wants_http1() => Expects::Exclusive,
            expects => expects,
        })
    }

    /// Takes note whether the origin of `request` speaks HTTP/2, which browsers remember.
    pub(crate) fn note_version(&self, request: &Request, is_http2: bool) {
        if request.settings.profile.is_some() && request.target.https {
            let known = if is_http2 { &self.http2_origins } else { &self.http1_takers };
            known.insert(request.target.authority());
        }
    }

    /// Whether it is known to.
    pub(crate) fn is_http2(&self, request: &Request) -> bool {
        request.target.https && self.http2_origins.contains(request.target.authority())
    }

    /// Whether it is known not to.
    pub(crate) fn is_http1(&self, request: &Request) -> bool {
        let took = || self.http1_takers.contains(request.target.authority());
        !request.target.https || took() && !self.is_http2(request)
    }
}

impl Inner {
    /// The same settings with a pool of its own that has no connections.
    pub(crate) fn with_new_pool(&self) -> Inner {
        Inner {
            settings: self.settings.clone(),
            default_fields: self.default_fields.clone(),
            names_codings: self.names_codings,
            targets: Targets::new(self.targets.base().cloned()),
            dialer: self.dialer.clone(),
            pool: SharedPool::new(self.pool_limits.clone()),
            pool_limits: self.pool_limits.clone(),
            http1_origins: Origins::default(),
            apart_origins: Origins::default(),
            http2_origins: Origins::default(),
            http1_takers: Origins::default(),
            hints: Hints::default(),
            cookies: self.cookies.clone(),
            netrc: self.netrc.clone(),
        }
    }
}

/// What both clients have: the ways to start a request, and a look at what they share.
macro_rules! client_methods {
    ($mode:ty) => {
        /// Starts a request of any method.
        pub fn request(
            &self,
            method: http::Method,
            url: impl $crate::IntoUrl,
        ) -> $crate::RequestBuilder<$mode> {
            $crate::RequestBuilder::new(self.inner.clone(), method, url)
        }

        /// Starts a GET.
        pub fn get(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::GET, url)
        }

        /// Starts a HEAD.
        pub fn head(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::HEAD, url)
        }

        /// Starts a POST.
        pub fn post(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::POST, url)
        }

        /// Starts a PUT.
        pub fn put(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::PUT, url)
        }

        /// Starts a PATCH.
        pub fn patch(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::PATCH, url)
        }

        /// Starts a DELETE.
        pub fn delete(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::DELETE, url)
        }

        /// Starts an OPTIONS.
        pub fn options(&self, url: impl $crate::IntoUrl) -> $crate::RequestBuilder<$mode> {
            self.request(http::Method::OPTIONS, url)
        }

        /// Starts a WebSocket. The URL is one of `ws`, `wss`, `http` or `https`.
        #[cfg(feature = "ws")]
        pub fn websocket(&self, url: impl $crate::IntoUrl) -> $crate::ws::Builder<$mode> {
            $crate::ws::Builder::new($crate::RequestBuilder::for_web_socket(
                self.inner.clone(),
                url,
            ))
        }

        /// An [`http::Request`] as a request of this client. Of its extensions, a
        /// [`Protocol`](crate::Protocol) counts.
        ///
        /// # Errors
        /// When the URI is not absolute, or has a scheme other than http and https.
        pub fn from_http<B: Into<$crate::Body>>(
            &self,
            request: http::Request<B>,
        ) -> $crate::Result<$crate::Request> {
            let (parts, body) = request.into_parts();
            let mut request = self.request(parts.method, parts.uri).body(body).build()?;
            *request.fields_mut() = $crate::Fields::from(&parts.headers);
            request.protocol = parts.extensions.get().cloned();
            Ok(request)
        }

        /// What the pool holds and has done so far.
        pub fn pool_stats(&self) -> $crate::PoolStats {
            self.inner.pool.stats(std::time::Instant::now())
        }

        /// The same for each origin, proxy and kind of connection, in no order.
        pub fn pool_stats_by_route(&self) -> Vec<(String, $crate::PoolStats)> {
            let all = self.inner.pool.key_stats(std::time::Instant::now());
            all.into_iter().map(|(route, stats)| (route.to_string(), stats)).collect()
        }

        /// Closes the connections that nobody uses.
        pub fn close_idle(&self) {
            self.inner.pool.close_idle(std::time::Instant::now());
        }

        /// A client with the same settings and cookies, and a pool of its own that has no connections. A
        /// process that was forked needs one: it may not use its parent's connections.
        #[must_use]
        pub fn with_new_pool(&self) -> Self {
            Self::from_inner(std::sync::Arc::new(self.inner.with_new_pool()))
        }

        /// The client's cookies, if it keeps any.
        pub fn cookies(&self) -> Option<&std::sync::Arc<dyn $crate::cookie::CookieStore>> {
            self.inner.cookies.as_ref()
        }
    };
}
pub(crate) use client_methods;

impl Client {
    client_methods!(Async);

    /// A client with the default settings, on the tokio runtime in which its calls are made.
    ///
    /// Making one opens nothing and reads nothing but the environment's proxy variables.
    #[cfg(feature = "tokio")]
    pub fn new() -> Self {
        match ClientBuilder::<Async>::new().build() {
            Ok(client) => client,
            // Only a user's own settings can make `build` fail.
            Err(e) => unreachable!("the default settings are valid: {e:#}"),
        }
    }

    /// A client with settings of one's own.
    pub fn builder() -> ClientBuilder<Async> {
        ClientBuilder::new()
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Client { inner }
    }

    /// Opens connections to the origin of `url` ahead of requests, until `count` are open, those in use and
    /// those being opened included: names resolved, TCP connected, TLS done, through the client's proxy if
    /// there is one. No request is sent. Returns how many this call opened and keeps, all at once.
    ///
    /// One connection of HTTP/2 serves as many requests as its server allows: where one is open, none is
    /// opened, and of those opened one is kept. Which version it is the server says; to open several to a server
    /// of both, set the client's [`version`](ClientBuilder::version) to 1.1.
    ///
    /// Fewer are opened where the pool's limits leave room for fewer
    /// ([`max_connections`](ClientBuilder::max_connections) and its like): nothing is waited for or closed to make
    /// room. What stays unused is closed after
    /// [`pool_idle_timeout`](ClientBuilder::pool_idle_timeout), as any idle connection; servers may
    /// close it before, and the request that finds it so gets another.
    ///
    /// Dropping the future closes what is not there yet.
    ///
    /// ```
    /// # let origin = mimus_testkit::Origin::start().unwrap();
    /// # let url = origin.http_url("/get");
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = mimus::Client::new();
    /// assert_eq!(client.preconnect(&url, 2).await?, 2);
    /// assert!(client.get(&url).send().await?.reused());
    /// # Ok::<(), mimus::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// When the URL is not one of http or https, or one of the connections cannot be opened, by the client's
    /// timeouts for name resolution, connecting and TLS, and its total one. Those that can are kept.
    pub fn preconnect(
        &self,
        url: impl crate::IntoUrl,
        count: usize,
    ) -> impl Future<Output = Result<usize>> + Send + 'static {
        let (client, request) = (self.inner.clone(), self.get(url).build());
        async move { crate::preconnect::run(client, request?, count).await }
    }

    /// Executes a request and waits for the head of the response.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`](crate::RequestBuilder::send).
    pub async fn execute(&self, request: impl Into<Box<Request>> + Send) -> Result<Response> {
        crate::call::run(self.inner.clone(), Ok(request.into())).await
    }

    /// Executes an [`http::Request`], giving an [`http::Response`]. The extensions of the response
    /// hold a [`ConnectionInfo`](crate::ConnectionInfo) and the [`Timings`](crate::Timings) so far.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`](crate::RequestBuilder::send).
    pub async fn call<B: Into<Body>>(
        &self,
        request: http::Request<B>,
    ) -> Result<http::Response<Incoming>> {
        Ok(self.execute(self.from_http(request)?).await?.into())
    }
}

#[cfg(feature = "tokio")]
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

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("runtime", &self.dialer.runtime)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// A bad default field, base URL or file found while building.
pub(crate) fn bad_setting(what: &str, cause: impl Into<crate::BoxError>) -> Error {
    Error::request(format!("the client cannot be built: {what}")).caused_by(cause)
}
