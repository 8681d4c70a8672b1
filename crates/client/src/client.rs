//! The client: what calls share.

use std::{fmt, sync::Arc};

use mimus_net::{Runtime, dial::Dialer};
use mimus_proto::Fields;

use crate::{
    Body, ClientBuilder, Error, Incoming, Result,
    conn::{Conn, Shared},
    cookie::CookieStore,
    options::Settings,
    origins::Origins,
    policy::netrc::Netrc,
    pool::{Limits, SharedPool},
    profile::Hints,
    request::Request,
    response::Response,
    route::Route,
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
    /// What origins want to be told, if the client has a profile.
    pub(crate) hints: Hints,
    pub(crate) cookies: Option<Arc<dyn CookieStore>>,
    pub(crate) netrc: Option<Netrc>,
}

impl Inner {
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.dialer.runtime
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

    /// Executes a request and waits for the head of the response.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`](crate::RequestBuilder::send).
    pub async fn execute(&self, request: Request) -> Result<Response> {
        crate::call::run(self.inner.clone(), Ok(Box::new(request))).await
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
