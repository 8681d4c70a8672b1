//! From a [`Plan`] to a connected [`Socket`]: resolve, race, proxy, TLS.

mod dialer;
mod oneshot;
mod race;
mod resolve;

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
pub use dialer::Dial;
pub use race::{
    ATTEMPT_DELAY, AttemptId, ConnectErrors, FIRST_FAMILY_COUNT, MAX_ADDRS, Race, Step,
};
#[cfg(feature = "hickory")]
pub use resolve::HickoryResolver;
pub use resolve::{StaticResolver, SystemResolver};

use crate::{
    Runtime, Socket,
    proxy::Proxy,
    tls::{Ech, TlsConfig, TlsInfo},
};

/// Options of a transport socket. `None` leaves the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SocketOptions {
    /// `TCP_NODELAY`. On by default: a request is written whole.
    pub nodelay: bool,
    /// `SO_KEEPALIVE` with this idle time. 60 s by default.
    pub keepalive: Option<Duration>,
    /// `TCP_USER_TIMEOUT`: how long sent data may stay unacknowledged (Linux).
    pub user_timeout: Option<Duration>,
    /// The local address to bind; its family restricts the addresses tried.
    pub bind: Option<IpAddr>,
    /// The network interface to bind (`SO_BINDTODEVICE`, Linux).
    pub interface: Option<String>,
    /// `SO_SNDBUF`, in bytes.
    pub send_buffer: Option<usize>,
    /// `SO_RCVBUF`, in bytes.
    pub recv_buffer: Option<usize>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            nodelay: true,
            keepalive: Some(Duration::from_secs(60)),
            user_timeout: None,
            bind: None,
            interface: None,
            send_buffer: None,
            recv_buffer: None,
        }
    }
}

/// The host of an origin or a proxy, as the URL had it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A registered name, in ASCII (IDNA done by the URL parser).
    Name(String),
    /// An address; for IPv6 with the zone, if any, as a scope id.
    Addr(IpAddr, u32),
}

impl fmt::Display for Host {
    /// As in a URL's authority, but with a zone's `%` plain (RFC 4007 section 11).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Addr(IpAddr::V4(ip), _) => write!(f, "{ip}"),
            Host::Addr(IpAddr::V6(ip), 0) => write!(f, "[{ip}]"),
            Host::Addr(IpAddr::V6(ip), zone) => write!(f, "[{ip}%{zone}]"),
        }
    }
}

/// How long each phase may take. `None` is without limit. `total` is an instant, because it spans
/// the whole call and not only the dial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DialTimeouts {
    /// Name resolution.
    pub resolve: Option<Duration>,
    /// All attempts of the transport connection together.
    pub connect: Option<Duration>,
    /// The TLS handshake (each, where a proxy adds one), and the talk with a proxy.
    pub tls: Option<Duration>,
    /// The end of the call.
    pub total: Option<Instant>,
}

/// Everything that decides what connection is made. Equal plans give interchangeable connections.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The origin's host.
    pub host: Host,
    /// The origin's port.
    pub port: u16,
    /// TLS to the origin; `None` is plain text.
    pub tls: Option<TlsPlan>,
    /// The proxy to go through. Excludes `unix`.
    pub proxy: Option<Arc<Proxy>>,
    /// TLS to the proxy itself, which an HTTPS proxy cannot do without.
    pub proxy_tls: Option<TlsConfig>,
    /// With an HTTP proxy and a plain-text origin: tunnel by CONNECT as well, instead of leaving the
    /// request to be forwarded (RFC 9112 section 3.2.2).
    pub tunnel: bool,
    /// A Unix socket to connect to in place of the host.
    pub unix: Option<PathBuf>,
    /// Options of the transport socket.
    pub socket: SocketOptions,
}

impl Plan {
    /// A plain-text connection to `host`, straight.
    pub fn new(host: Host, port: u16) -> Self {
        Plan {
            host,
            port,
            tls: None,
            proxy: None,
            proxy_tls: None,
            tunnel: false,
            unix: None,
            socket: SocketOptions::default(),
        }
    }

    /// The same, with TLS to the origin.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsPlan) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The same, through `proxy`; `tls` is for talking to an HTTPS proxy.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Arc<Proxy>, tls: Option<TlsConfig>) -> Self {
        self.proxy = Some(proxy);
        self.proxy_tls = tls;
        self
    }
}

/// TLS to one server.
#[derive(Debug, Clone)]
pub struct TlsPlan {
    /// The shared configuration.
    pub config: TlsConfig,
    /// ALPN protocols, most preferred first.
    pub alpn: Vec<&'static [u8]>,
    /// Offer early data (0-RTT) when a resumed session allows it.
    pub early_data: bool,
    /// Whether the host's name travels encrypted. [`tls::connect`](crate::tls::connect) asks for no records: to it
    /// [`Ech::Record`] is [`Ech::Off`].
    pub ech: Ech,
}

/// A name to addresses. Implementations must not block the reactor.
pub trait Resolve: fmt::Debug + Send + Sync + 'static {
    /// The addresses of `name`, in the resolver's order of preference. An empty list is the same as
    /// a name that does not exist.
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        runtime: &'a dyn Runtime,
    ) -> crate::BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;

    /// The ECHConfigList of the HTTPS record of `name`, for who connects to `port` of its addresses (RFC 9460, RFC
    /// 9848). None where there is none, and from resolvers that ask for no such records.
    fn ech<'a>(
        &'a self,
        name: &'a str,
        port: u16,
        runtime: &'a dyn Runtime,
    ) -> crate::BoxFuture<'a, std::io::Result<Option<Bytes>>> {
        let _ = (name, port, runtime);
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// What dials: a runtime, a resolver, and overrides.
#[derive(Debug, Clone)]
pub struct Dialer {
    /// The runtime on which sockets and timers are made.
    pub runtime: Arc<dyn Runtime>,
    /// Who resolves names.
    pub resolver: Arc<dyn Resolve>,
    /// Fixed answers, by lower-case name; the port, when given, also replaces the origin's.
    pub overrides: Arc<Vec<Override>>,
}

/// A fixed answer in place of the resolver's (curl's `--resolve`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The name, in lower case.
    pub host: String,
    /// Applies to this port only; `None` applies to all.
    pub port: Option<u16>,
    /// Where to connect. Port 0 keeps the origin's.
    pub addrs: Vec<SocketAddr>,
}

/// A connected socket and how it came about.
#[derive(Debug)]
pub struct Dialed {
    /// The stream, with TLS done where the plan says so.
    pub socket: Box<dyn Socket>,
    /// How long each phase took.
    pub timings: DialTimings,
    /// What TLS with the origin agreed on.
    pub tls: Option<TlsInfo>,
}

/// How long each phase of a dial took; `None` where the phase did not happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DialTimings {
    /// Name resolution.
    pub resolve: Option<Duration>,
    /// The transport connection, all attempts of the race together.
    pub connect: Option<Duration>,
    /// The talk with the proxy, TLS with it included.
    pub proxy: Option<Duration>,
    /// The TLS handshake with the origin.
    pub tls: Option<Duration>,
}

/// The index of a network interface, which is what the zone of a link-local IPv6 address names
/// (RFC 4007 section 11). A number stands for itself.
///
/// # Errors
/// When there is no interface of that name.
pub fn scope_id(zone: &str) -> std::io::Result<u32> {
    if let Ok(index) = zone.parse() {
        return Ok(index);
    }
    // Any socket will do to ask the kernel by.
    let socket = std::net::UdpSocket::bind((std::net::Ipv6Addr::UNSPECIFIED, 0))?;
    Ok(rustix::net::netdevice::name_to_index(&socket, zone)?)
}
