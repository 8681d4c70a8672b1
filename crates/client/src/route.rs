//! From a call to the whole pool key: everything that makes one connection different from another.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use http::{Method, Version};
use mimus_net::{
    Phase,
    dial::{Plan, TlsPlan},
    proxy::{Proxy, ProxyKind},
    tls::TlsInfo,
};

use crate::{
    Error, Kind, Result,
    client::Inner,
    options::Transport,
    pool::Expects,
    request::Request,
    target::{Parts, Target},
};

/// The owned key of a connection in the pool.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    https: bool,
    host: Box<str>,
    zone: Option<Box<str>>,
    port: u16,
    proxy: Option<Arc<Proxy>>,
    transport: Arc<Transport>,
    share: Share,
    /// The reactor that owns the connection's socket.
    realm: u64,
}

/// With which requests to the same place a request shares connections: browsers keep some apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Share {
    #[default]
    All,
    /// With those that carry no credentials either.
    Anonymous,
    /// With none: the beginning of a WebSocket over HTTP/1.1.
    WebSocket,
}

/// The same key borrowed from a call, so that finding a pooled connection copies nothing.
#[derive(Debug, Clone)]
pub(crate) struct RouteRef<'a> {
    https: bool,
    host: &'a str,
    zone: Option<&'a str>,
    port: u16,
    proxy: Option<Arc<Proxy>>,
    transport: &'a Arc<Transport>,
    share: Share,
    realm: u64,
}

impl<'a> RouteRef<'a> {
    /// Where `request` goes. A Unix socket takes the place of any proxy.
    pub(crate) fn of(request: &'a Request, client: &Inner) -> Result<Self> {
        let target = &request.target;
        let transport = &request.settings.transport;
        let Parts { https, port, .. } = **target;
        let proxies = &request.settings.proxies;
        let proxy = if transport.unix.is_some() || proxies.is_empty() {
            None
        } else {
            proxies.select(https, &target.dial_host()?, port)
        };
        let host = target.host();
        Ok(RouteRef {
            https,
            host,
            zone: target.zone.as_deref(),
            port,
            proxy,
            transport,
            share: match &request.settings.profile {
                None => Share::All,
                Some(profile) => profile.share(request, || client.is_http1(request)),
            },
            realm: client.runtime().realm(),
        })
    }

    /// The same way, on the connections that all requests share.
    #[cfg(feature = "ws")]
    pub(crate) fn among_all(self) -> Self {
        RouteRef { share: Share::All, ..self }
    }

    /// The proxy, if the request goes to one as it is instead of through a tunnel (RFC 9112
    /// section 3.2.2).
    pub(crate) fn forwarding_proxy(&self) -> Option<&Proxy> {
        let proxy = self.proxy.as_deref()?;
        let speaks_http = matches!(proxy.kind, ProxyKind::Http | ProxyKind::Https);
        (speaks_http && !self.https && !self.transport.tunnel).then_some(proxy)
    }

    pub(crate) fn matches(&self, route: &Route) -> bool {
        self.port == route.port
            && self.https == route.https
            && self.host == &*route.host
            && self.realm == route.realm
            && self.share == route.share
            && self.zone == route.zone.as_deref()
            && same_arc(self.transport, &route.transport)
            && match (&self.proxy, &route.proxy) {
                (None, None) => true,
                (Some(a), Some(b)) => same_arc(a, b),
                _ => false,
            }
    }

    pub(crate) fn to_route(&self) -> Route {
        Route {
            https: self.https,
            host: self.host.into(),
            zone: self.zone.map(Into::into),
            port: self.port,
            proxy: self.proxy.clone(),
            transport: self.transport.clone(),
            share: self.share,
            realm: self.realm,
        }
    }

    /// What a connection for `request` may turn out to be.
    pub(crate) fn expects(&self, request: &Request) -> Result<Expects> {
        if request.server_wide && request.method != Method::OPTIONS {
            return Err(Error::request("only an OPTIONS asks about the whole server"));
        }
        if request.protocol.is_some() {
            return self.expects_tunnel(request);
        }
        // Neither exists in HTTP/2 (RFC 9113 section 8.6; section 8.5 has tunnels of another kind).
        let switches = request.method == Method::CONNECT || request.fields.contains("upgrade");
        match request.settings.version {
            None if self.https && !switches => Ok(Expects::Either),
            None | Some(Version::HTTP_11) => Ok(Expects::Exclusive),
            Some(Version::HTTP_2) if switches => {
                Err(Error::request("HTTP/2 has no Upgrade, and no CONNECT of this kind"))
            }
            Some(Version::HTTP_2) if self.forwarding_proxy().is_some() => {
                Err(Error::request("an HTTP proxy forwards no HTTP/2: let it tunnel"))
            }
            Some(Version::HTTP_2) => Ok(Expects::Shared),
            Some(other) => {
                Err(Error::request(format!("{other:?} is not among the versions to choose")))
            }
        }
    }

    /// The same for an extended CONNECT (RFC 8441).
    fn expects_tunnel(&self, request: &Request) -> Result<Expects> {
        let wrong = if request.method != Method::CONNECT {
            "only a CONNECT has a `:protocol`"
        } else if !request.body.is_empty() {
            "a tunnel has no body but what is written to it"
        } else if self.forwarding_proxy().is_some() {
            "an HTTP proxy forwards no HTTP/2: let it tunnel"
        } else if request.settings.version.is_some_and(|version| version != Version::HTTP_2) {
            "HTTP/2 alone has a CONNECT with a `:protocol`"
        } else {
            return Ok(Expects::Shared);
        };
        Err(Error::request(wrong))
    }

    /// What a dial for `request` offers to the server. A tunnel that the server has no HTTP/2 for leaves
    /// a connection behind that serves what its owner does instead.
    pub(crate) fn offers(&self, request: &Request, expects: Expects) -> Expects {
        let open = request.protocol.is_some() && request.settings.version.is_none() && self.https;
        if open { Expects::Either } else { expects }
    }

    /// How to make a connection for this route. `early` offers TLS early data.
    pub(crate) fn plan(&self, target: &Target, expects: Expects, early: bool) -> Result<Plan> {
        let transport = &**self.transport;
        let tls = self.https.then(|| TlsPlan {
            config: transport.tls.clone(),
            alpn: match expects {
                Expects::Exclusive => vec![HTTP_1_1],
                Expects::Either => vec![H2, HTTP_1_1],
                Expects::Shared => vec![H2],
            },
            early_data: early,
            ech: transport.ech.clone(),
        });
        let mut plan = Plan::new(target.dial_host()?, self.port);
        plan.tls = tls;
        plan.proxy = self.proxy.clone();
        plan.proxy_tls = Some(transport.tls.clone());
        plan.tunnel = transport.tunnel;
        plan.unix = transport.unix.clone();
        plan.socket = transport.socket.clone();
        Ok(plan)
    }

    /// Whether a connection that was made speaks HTTP/2.
    pub(crate) fn speaks_http2(&self, expects: Expects, tls: Option<&TlsInfo>) -> Result<bool> {
        let agreed = tls.and_then(|tls| tls.alpn.as_deref()) == Some(H2);
        match expects {
            Expects::Exclusive => Ok(false),
            Expects::Either => Ok(agreed),
            // In plain text it is known before (RFC 9113 section 3.3).
            Expects::Shared if agreed || !self.https => Ok(true),
            Expects::Shared => {
                Err(Error::new(Kind::Protocol, "the server does not speak HTTP/2")
                    .in_phase(Phase::Tls))
            }
        }
    }

    /// Whether an HTTP/2 connection of this route may serve other hosts, and its calls use other hosts'.
    /// Over a proxy the addresses are not ours to compare.
    pub(crate) fn coalesces(&self) -> bool {
        let transport = self.transport();
        transport.coalesce
            && self.https
            && self.proxy.is_none()
            && transport.unix.is_none()
            && transport.tls.may_span_hosts()
    }

    /// Whether the two differ by their hosts at most.
    pub(crate) fn is_beside(&self, route: &Route) -> bool {
        RouteRef { host: &route.host, ..self.clone() }.matches(route)
    }

    pub(crate) fn transport(&self) -> &Transport {
        self.transport
    }
}

impl<'a> From<&'a Route> for RouteRef<'a> {
    fn from(route: &'a Route) -> Self {
        RouteRef {
            https: route.https,
            host: &route.host,
            zone: route.zone.as_deref(),
            port: route.port,
            proxy: route.proxy.clone(),
            transport: &route.transport,
            share: route.share,
            realm: route.realm,
        }
    }
}

/// Names of ALPN (RFC 7301 section 6, RFC 9113 section 3.2).
const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)?;
        if let Some(path) = &self.transport.unix {
            write!(f, " at {}", path.display())?;
        }
        if let Some(proxy) = &self.proxy {
            write!(f, " by {proxy}")?;
        }
        match self.share {
            Share::All => Ok(()),
            Share::Anonymous => f.write_str(" without credentials"),
            Share::WebSocket => f.write_str(" for a WebSocket"),
        }
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.https == other.https
            && self.port == other.port
            && self.host == other.host
            && self.zone == other.zone
            && self.realm == other.realm
            && self.share == other.share
            && self.proxy == other.proxy
            && same_arc(&self.transport, &other.transport)
    }
}

impl Eq for Route {}

// Both hash what nearly always differs between two routes; equality compares the rest.
impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.https, &*self.host, self.port).hash(state);
    }
}

impl Hash for RouteRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.https, self.host, self.port).hash(state);
    }
}

/// Clones share the `Arc`, which makes the common comparison one of pointers.
fn same_arc<T: PartialEq>(a: &Arc<T>, b: &Arc<T>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}
