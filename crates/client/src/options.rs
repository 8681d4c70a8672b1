//! Everything a call can be told, once for the client and again for any single call.
//!
//! [`Settings`] is one struct behind an `Arc`. A client holds its defaults; a request starts with a
//! clone of that `Arc` and copies the struct only when something is overridden.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Version;
use mimus_net::{
    dial::{Override, SocketOptions},
    proxy::Proxies,
    tls::{Ech, TlsConfig},
};
use mimus_proto::{h1, h2};

use crate::{
    auth::Credentials,
    body::DecodeLimits,
    observe::Hook,
    policy::{redirect, retry::RetryPolicy},
    profile::Profile,
    responder::Chosen,
};

/// How long each phase of a call may take. `None` is without limit.
///
/// Each is a bound on the phase, not on a system call: a peer that sends a byte now and then extends
/// none but `idle` and `write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Waiting for a connection when the pool's limits are reached. Default: none.
    pub pool: Option<Duration>,
    /// Name resolution. Default: 10 s.
    pub resolve: Option<Duration>,
    /// The transport connection, all addresses together. Default: 10 s.
    pub connect: Option<Duration>,
    /// The TLS handshake, and the talk with a proxy. Default: 10 s.
    pub tls: Option<Duration>,
    /// From the request's last byte to the end of the response head. Default: 5 min.
    pub head: Option<Duration>,
    /// Between two reads of a body. Default: 5 min.
    pub idle: Option<Duration>,
    /// Between two writes of a body. Default: 5 min.
    pub write: Option<Duration>,
    /// The whole call, from `send` to the end of the body, redirects and retries included.
    /// Default: none.
    pub total: Option<Duration>,
}

impl Timeouts {
    /// No limit anywhere.
    pub const NONE: Timeouts = Timeouts {
        pool: None,
        resolve: None,
        connect: None,
        tls: None,
        head: None,
        idle: None,
        write: None,
        total: None,
    };
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            pool: None,
            resolve: Some(Duration::from_secs(10)),
            connect: Some(Duration::from_secs(10)),
            tls: Some(Duration::from_secs(10)),
            head: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(300)),
            write: Some(Duration::from_secs(300)),
            total: None,
        }
    }
}

/// What a connection is made with. Calls share connections exactly when these are equal.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    pub(crate) tls: TlsConfig,
    pub(crate) socket: SocketOptions,
    pub(crate) unix: Option<PathBuf>,
    pub(crate) overrides: Arc<Vec<Override>>,
    pub(crate) tunnel: bool,
    pub(crate) early_data: bool,
    pub(crate) ech: Ech,
    pub(crate) coalesce: bool,
    pub(crate) http2: Http2,
}

/// How an HTTP/2 connection is opened, and what its server may ask for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Http2 {
    pub(crate) opening: Arc<h2::Opening>,
    pub(crate) limits: h2::Limits,
}

impl PartialEq for Http2 {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.opening, &other.opening) && self.limits == other.limits
    }
}

impl PartialEq for Transport {
    fn eq(&self, other: &Self) -> bool {
        self.tls.same(&other.tls)
            && self.socket == other.socket
            && self.unix == other.unix
            && self.overrides == other.overrides
            && self.tunnel == other.tunnel
            && self.early_data == other.early_data
            && self.ech == other.ech
            && self.coalesce == other.coalesce
            && self.http2 == other.http2
    }
}

/// The settings of a call.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// `None`: what client and server agree on.
    pub(crate) version: Option<Version>,
    pub(crate) timeouts: Timeouts,
    pub(crate) redirect: redirect::Policy,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) auth: Option<Credentials>,
    /// Whether the client's netrc file has a say where there are none.
    pub(crate) netrc: bool,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) decode: Option<DecodeLimits>,
    pub(crate) body_limit: Option<u64>,
    pub(crate) expect_continue: Option<Duration>,
    pub(crate) limits: h1::Limits,
    pub(crate) transport: Arc<Transport>,
    pub(crate) hooks: Arc<[Arc<dyn Hook>]>,
    /// The browser to look like.
    pub(crate) profile: Option<Profile>,
    /// Who answers in the place of servers.
    pub(crate) responder: Option<Chosen>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            version: None,
            timeouts: Timeouts::default(),
            redirect: redirect::Policy::default(),
            retry: None,
            auth: None,
            netrc: true,
            proxies: Arc::new(Proxies::none()),
            decode: Some(DecodeLimits::default()),
            body_limit: None,
            expect_continue: None,
            limits: h1::Limits::default(),
            transport: Arc::new(Transport {
                tls: TlsConfig::default(),
                socket: SocketOptions::default(),
                unix: None,
                overrides: Arc::default(),
                tunnel: false,
                early_data: false,
                ech: Ech::default(),
                coalesce: false,
                http2: Http2::default(),
            }),
            hooks: Arc::new([]),
            profile: None,
            responder: None,
        }
    }
}

impl Settings {
    pub(crate) fn transport_mut(&mut self) -> &mut Transport {
        Arc::make_mut(&mut self.transport)
    }

    pub(crate) fn add_hook(&mut self, hook: Arc<dyn Hook>) {
        self.hooks = self.hooks.iter().cloned().chain([hook]).collect();
    }
}

/// The setters that a client builder and a request builder share: on the first they are defaults, on
/// the second they hold for one call. `self.settings_mut()` must give a `&mut Settings`.
macro_rules! shared_setters {
    () => {
        /// All timeouts at once.
        pub fn timeouts(mut self, timeouts: $crate::Timeouts) -> Self {
            self.settings_mut().timeouts = timeouts;
            self
        }

        /// The time for the whole call, from `send` to the end of the body.
        pub fn timeout(mut self, total: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().timeouts.total = total.into();
            self
        }

        /// The time to wait for a connection when the pool's limits are reached.
        pub fn pool_timeout(mut self, limit: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().timeouts.pool = limit.into();
            self
        }

        /// The time for name resolution.
        pub fn resolve_timeout(mut self, limit: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().timeouts.resolve = limit.into();
            self
        }

        /// The time for the transport connection, all addresses together.
        pub fn connect_timeout(mut self, limit: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().timeouts.connect = limit.into();
            self
        }

        /// The time for the TLS handshake, and for the talk with a proxy.
        pub fn tls_timeout(mut self, limit: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().timeouts.tls = limit.into();
            self
        }

        /// The time from the request's last byte to the end of the response head.
        pub fn head_timeout(mut self, limit: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().timeouts.head = limit.into();
            self
        }

        /// The time between two reads, or two writes, of a body.
        pub fn idle_timeout(mut self, limit: impl Into<Option<std::time::Duration>>) -> Self {
            let limit = limit.into();
            let timeouts = &mut self.settings_mut().timeouts;
            (timeouts.idle, timeouts.write) = (limit, limit);
            self
        }

        /// Which redirects are followed. The default follows up to ten.
        pub fn redirect(mut self, policy: $crate::redirect::Policy) -> Self {
            self.settings_mut().redirect = policy;
            self
        }

        /// Retries beyond those that are always safe and always made (see
        /// [`retry`](crate::retry)). `None`, the default, makes no others.
        pub fn retry(mut self, policy: impl Into<Option<$crate::retry::RetryPolicy>>) -> Self {
            self.settings_mut().retry = policy.into();
            self
        }

        /// Credentials for the origin: Basic, Bearer, or Digest.
        pub fn auth(mut self, credentials: impl Into<Option<$crate::auth::Credentials>>) -> Self {
            self.settings_mut().auth = credentials.into();
            self
        }

        /// User name and password by the Basic scheme (RFC 7617).
        pub fn basic_auth(self, user: impl Into<String>, password: impl Into<String>) -> Self {
            self.auth($crate::auth::Credentials::basic(user, password))
        }

        /// A bearer token (RFC 6750).
        pub fn bearer_auth(self, token: impl Into<String>) -> Self {
            self.auth($crate::auth::Credentials::bearer(token))
        }

        /// User name and password by the Digest scheme (RFC 7616): sent when the server asks.
        pub fn digest_auth(self, user: impl Into<String>, password: impl Into<String>) -> Self {
            self.auth($crate::auth::Credentials::digest(user, password))
        }

        /// One proxy for everything.
        pub fn proxy(self, proxy: $crate::Proxy) -> Self {
            self.proxies($crate::Proxies::all(proxy))
        }

        /// Which proxy serves which URL. The default is the environment's say.
        pub fn proxies(mut self, proxies: $crate::Proxies) -> Self {
            self.settings_mut().proxies = std::sync::Arc::new(proxies);
            self
        }

        /// No proxy, whatever the environment says.
        pub fn no_proxy(self) -> Self {
            self.proxies($crate::Proxies::none())
        }

        /// Tunnel plain-text requests through an HTTP proxy by CONNECT too.
        pub fn proxy_tunnel(mut self, on: bool) -> Self {
            self.settings_mut().transport_mut().tunnel = on;
            self
        }

        /// Whether compressed bodies are asked for and decoded, and within which limits. `None`
        /// sends no `Accept-Encoding` and hands bodies over as they come.
        pub fn decode(mut self, limits: impl Into<Option<$crate::DecodeLimits>>) -> Self {
            self.settings_mut().decode = limits.into();
            self
        }

        /// The most bytes a (decoded) response body may have; beyond them reading fails with
        /// [`Kind::Limit`](crate::Kind::Limit). No limit by default.
        pub fn body_limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
            self.settings_mut().body_limit = bytes.into();
            self
        }

        /// Send `Expect: 100-continue` with every body, and wait this long for the server's word
        /// before sending it anyway (RFC 9110 section 10.1.1). Off by default.
        pub fn expect_continue(mut self, wait: impl Into<Option<std::time::Duration>>) -> Self {
            self.settings_mut().expect_continue = wait.into();
            self
        }

        /// The version of HTTP to speak: 1.1 or 2. By default the server chooses in the TLS handshake
        /// (ALPN), and plain text is HTTP/1.1; HTTP/2 over plain text (h2c) takes it for granted that
        /// the server speaks it (RFC 9113 section 3.3).
        pub fn version(mut self, version: impl Into<Option<http::Version>>) -> Self {
            self.settings_mut().version = version.into();
            self
        }

        /// What a server may ask for on an HTTP/2 connection.
        pub fn http2_limits(mut self, limits: $crate::Http2Limits) -> Self {
            self.settings_mut().transport_mut().http2.limits = limits;
            self
        }

        /// How HTTP/2 connections open: settings and their order, windows, priorities, the order of
        /// pseudo-fields. Calls share connections when they share the same `Arc`.
        pub fn http2_opening(
            mut self,
            opening: impl Into<std::sync::Arc<$crate::Http2Opening>>,
        ) -> Self {
            self.settings_mut().transport_mut().http2.opening = opening.into();
            self
        }

        /// The limits on response heads and chunked framing.
        pub fn http1_limits(mut self, limits: $crate::Http1Limits) -> Self {
            self.settings_mut().limits = limits;
            self
        }

        /// How TLS is done: trust, identity, versions.
        pub fn tls(mut self, config: $crate::TlsConfig) -> Self {
            self.settings_mut().transport_mut().tls = config;
            self
        }

        /// Send requests with safe methods as TLS 1.3 early data when a session is resumed. An
        /// attacker may replay early data (RFC 8470), so this is off by default.
        pub fn early_data(mut self, on: bool) -> Self {
            self.settings_mut().transport_mut().early_data = on;
            self
        }

        /// Encrypted Client Hello (RFC 9849): with a [configuration](crate::tls::EchConfigList) of the server's,
        /// or by default one from its HTTPS record where the [resolver](crate::ClientBuilder::resolver) can tell (the
        /// feature `hickory` has one that can; the system's cannot). The profile's meaningless extension takes its
        /// place where there is none.
        pub fn ech(mut self, ech: impl Into<$crate::tls::Ech>) -> Self {
            self.settings_mut().transport_mut().ech = ech.into();
            self
        }

        /// Connection coalescing: send requests over an open HTTP/2 connection that was made for another
        /// host, as browsers do, where the address it is connected to is one of this host's, and its
        /// certificate is valid for this host too (RFC 9113 section 9.1.1). The ports must be the same, and
        /// every option that a connection is made with. An origin that answers 421 (Misdirected Request) is
        /// asked once more on a connection of its own, and served on such ever after.
        ///
        /// Never done over a proxy, where nobody here knows the addresses; with a client certificate; nor
        /// where certificates or host names are not verified. Off by default: requests to one host then
        /// tell nothing to another's connection.
        pub fn coalesce(mut self, on: bool) -> Self {
            self.settings_mut().transport_mut().coalesce = on;
            self
        }

        /// Options of the transport socket: keep-alive, bind address, interface...
        pub fn socket_options(mut self, options: $crate::SocketOptions) -> Self {
            self.settings_mut().transport_mut().socket = options;
            self
        }

        /// Connect to this Unix socket in place of the URL's host.
        pub fn unix_socket(mut self, path: impl Into<std::path::PathBuf>) -> Self {
            self.settings_mut().transport_mut().unix = Some(path.into());
            self
        }

        /// Connect to `addrs` when the URL names `host` (and `port`, when given). Port 0 in an
        /// address keeps the URL's. TLS and `Host` still go by the name.
        pub fn resolve(
            mut self,
            host: &str,
            port: Option<u16>,
            addrs: impl IntoIterator<Item = std::net::SocketAddr>,
        ) -> Self {
            let overrides = &mut self.settings_mut().transport_mut().overrides;
            std::sync::Arc::make_mut(overrides).push(mimus_net::dial::Override {
                host: host.to_ascii_lowercase(),
                port,
                addrs: addrs.into_iter().collect(),
            });
            self
        }

        /// Has `responder` answer in the place of servers: see [`responder`](crate::responder).
        pub fn answer_with(mut self, responder: impl $crate::responder::Responder) -> Self {
            let responder = $crate::responder::Chosen(std::sync::Arc::new(responder));
            self.settings_mut().responder = Some(responder);
            self
        }

        /// Adds a hook.
        pub fn hook(mut self, hook: impl $crate::Hook) -> Self {
            self.settings_mut().add_hook(std::sync::Arc::new(hook));
            self
        }
    };
}
pub(crate) use shared_setters;
