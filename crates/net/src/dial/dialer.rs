//! The way from a [`Plan`] to a [`Dialed`], phase by phase.

use std::{
    borrow::Cow,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    ConnectErrors, DialTimeouts, DialTimings, Dialed, Dialer, Host, Override, Plan, Race, Resolve,
    SystemResolver, TlsPlan, oneshot, race::connect_any,
};
use crate::{
    DialError, DialErrorKind, Phase, Runtime, Socket,
    proxy::{self, Proxy, ProxyKind},
    rt::{Endpoint, OptionError, within},
    tls::{self, Ech, EchConfigList, TlsConfig},
};

type Stream = Box<dyn Socket>;

impl Dialer {
    /// A dialer on `runtime` with the system's resolver and no overrides.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Dialer { runtime, resolver: Arc::new(SystemResolver), overrides: Arc::default() }
    }

    /// The same with another resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// The same with fixed answers for some names.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Vec<Override>) -> Self {
        self.overrides = Arc::new(overrides);
        self
    }

    /// Carries out `plan`. The socket comes without a deadline.
    ///
    /// # Errors
    /// A [`DialError`] that names the phase. Dropping the future closes whatever was open.
    pub async fn dial(&self, plan: &Plan, timeouts: &DialTimeouts) -> Result<Dialed, DialError> {
        self.begin(plan, timeouts)?.finish().await
    }

    /// The same in steps, for who wants to know the addresses before there is a connection.
    ///
    /// # Errors
    /// When there is no runtime to make a connection on.
    pub fn begin<'a>(
        &'a self,
        plan: &'a Plan,
        timeouts: &'a DialTimeouts,
    ) -> Result<Dial<'a>, DialError> {
        self.runtime.check().map_err(|e| {
            let detail = "there is no runtime to make the connection on";
            DialError::new(Phase::Connect, DialErrorKind::Config, detail).caused_by(e)
        })?;
        let timings = DialTimings::default();
        Ok(Dial { dialer: self, plan, timeouts, addrs: None, record: None, timings })
    }
}

/// How long addresses wait for the HTTPS record that was asked for together with them.
const RECORD_DELAY: Duration = Duration::from_millis(50);

/// Both answers; no record where it takes much longer than the addresses, cannot be had, or has no keys of use.
async fn with_record(
    runtime: &dyn Runtime,
    addrs: impl Future<Output = io::Result<Vec<IpAddr>>>,
    record: impl Future<Output = io::Result<Option<Bytes>>>,
) -> (io::Result<Vec<IpAddr>>, Option<EchConfigList>) {
    let (mut addrs, mut record) = (pin!(addrs), pin!(record));
    let mut found = None;
    let addrs = poll_fn(|cx| {
        if found.is_none()
            && let Poll::Ready(answer) = record.as_mut().poll(cx)
        {
            found = Some(answer);
        }
        addrs.as_mut().poll(cx)
    });
    let addrs = addrs.await;
    if addrs.is_ok() && found.is_none() {
        found = within(runtime, Some(Instant::now() + RECORD_DELAY), record).await;
    }
    let list = found.and_then(|answer| match answer {
        Ok(list) => list,
        Err(error) => {
            tracing::debug!(%error, "no HTTPS record");
            None
        }
    });
    // RFC 9460 section 2.2: a record that is malformed is as good as none.
    (addrs, list.and_then(|list| EchConfigList::from_bytes(list).ok()))
}

/// One dial under way. Dropping it closes whatever was open.
#[derive(Debug)]
pub struct Dial<'a> {
    dialer: &'a Dialer,
    plan: &'a Plan,
    timeouts: &'a DialTimeouts,
    /// The origin's, where they were asked for ahead.
    addrs: Option<Vec<SocketAddr>>,
    /// What the origin's HTTPS record says.
    record: Option<EchConfigList>,
    timings: DialTimings,
}

impl Dial<'_> {
    /// The addresses of the plan's host that a connection could be made to, in the order of preference.
    /// They are looked up once: [`finish`](Self::finish) goes on with them, unless there is a proxy or
    /// a Unix socket to connect to.
    ///
    /// # Errors
    /// As [`Dialer::dial`], in [`Phase::Resolve`].
    pub async fn addresses(&mut self) -> Result<&[SocketAddr], DialError> {
        let addrs = match self.addrs.take() {
            Some(addrs) => addrs,
            None => self.look_up(&self.plan.host, self.plan.port).await?,
        };
        Ok(self.addrs.insert(addrs))
    }

    /// The connection.
    ///
    /// # Errors
    /// As [`Dialer::dial`].
    pub async fn finish(mut self) -> Result<Dialed, DialError> {
        let mut socket = match self.attempt(None).await {
            Err(error) if error.ech_retry_configs().is_some() => {
                tracing::debug!(%error, "trying the keys that it gives");
                self.attempt(error.ech_retry_configs().cloned()).await?
            }
            done => done?,
        };
        socket.set_deadline(None);
        let tls = self.plan.tls.as_ref().and_then(|_| socket.tls().cloned());
        Ok(Dialed { socket, timings: self.timings, tls })
    }

    /// One connection, up to the end of the handshake; `retry` are the keys that a server gave which refused others.
    async fn attempt(&mut self, retry: Option<EchConfigList>) -> Result<Stream, DialError> {
        let plan = self.plan;
        let mut socket = match (&plan.unix, &plan.proxy) {
            (None, None) => self.connect(&plan.host, plan.port).await?,
            (None, Some(proxy)) => self.connect_through(proxy).await?,
            (Some(path), None) => self.connect_unix(path).await?,
            (Some(_), Some(_)) => return Err(unix_and_proxy()),
        };
        if let Some(tls) = &plan.tls {
            self.prepare(&tls.config).await;
            let given = retry.or_else(|| self.record.take());
            let tls = match given {
                None => Cow::Borrowed(tls),
                Some(list) => Cow::Owned(TlsPlan { ech: Ech::Config(list), ..tls.clone() }),
            };
            let start = Instant::now();
            socket = self.secure(socket, &tls, &plan.host, plan.port).await?;
            self.timings.tls = Some(start.elapsed());
        }
        Ok(socket)
    }

    /// The transport connection to a host.
    async fn connect(&mut self, host: &Host, port: u16) -> Result<Stream, DialError> {
        let addrs = match self.addrs.take() {
            Some(addrs) => addrs,
            None => self.look_up(host, port).await?,
        };
        let start = Instant::now();
        let limit = Limit::new(self.timeouts.connect, self.timeouts.total, start);
        let mut race = Race::new(addrs, start);
        let runtime = &*self.dialer.runtime;
        let connecting = connect_any(runtime, &self.plan.socket, &mut race);
        let outcome = within(runtime, limit.at, connecting).await;
        self.timings.connect = Some(start.elapsed());
        match outcome {
            Some(Some(socket)) => Ok(socket),
            Some(None) => Err(connect_error(host, port, race)),
            None => Err(connect_timeout(host, port, &race, &limit)),
        }
    }

    async fn connect_unix(&mut self, path: &Path) -> Result<Stream, DialError> {
        let start = Instant::now();
        let limit = Limit::new(self.timeouts.connect, self.timeouts.total, start);
        let (runtime, to) = (&*self.dialer.runtime, Endpoint::Unix(path.to_owned()));
        let outcome = within(runtime, limit.at, runtime.connect(&to, &self.plan.socket)).await;
        self.timings.connect = Some(start.elapsed());
        match outcome {
            Some(Ok(socket)) => Ok(socket),
            Some(Err(e)) => Err(DialError::io(Phase::Connect, path.display().to_string(), e)),
            None => Err(limit.exceeded(Phase::Connect, &path.display())),
        }
    }

    /// The connection to a proxy and, where the plan needs one, the tunnel through it.
    async fn connect_through(&mut self, proxy: &Proxy) -> Result<Stream, DialError> {
        let hop = self.proxy_tls(proxy)?;
        // What was looked up ahead is not the proxy's.
        self.addrs = None;
        let resolved = self.target_for(proxy).await?;
        let mut socket = self.connect(&proxy.host, proxy.port).await?;
        if let Some(tls) = &hop {
            self.prepare(&tls.config).await;
        }
        let start = Instant::now();
        if let Some(tls) = &hop {
            socket = self.secure(socket, tls, &proxy.host, proxy.port).await?;
        }
        let tunnel = self.needs_tunnel(proxy);
        if tunnel {
            let limit = Limit::new(self.timeouts.tls, self.timeouts.total, Instant::now());
            socket.set_deadline(limit.at);
            let (host, mut port) = (&self.plan.host, self.plan.port);
            if let Some(addr) = resolved {
                port = addr.port();
            }
            socket = proxy::tunnel(proxy, socket, host, port, resolved.map(|a| a.ip())).await?;
        }
        if tunnel || hop.is_some() {
            self.timings.proxy = Some(start.elapsed());
        }
        Ok(socket)
    }

    /// The origin's address, for the kinds of proxy that want names resolved here.
    async fn target_for(&mut self, proxy: &Proxy) -> Result<Option<SocketAddr>, DialError> {
        let v4_only = match proxy.kind {
            ProxyKind::Socks4 => true,
            ProxyKind::Socks5 => false,
            _ => return Ok(None),
        };
        let (host, port) = (&self.plan.host, self.plan.port);
        let addrs = self.resolve(host, port).await?;
        let usable = addrs.into_iter().find(|a| a.is_ipv4() || !v4_only);
        // SOCKS4 has no room for an IPv6 address.
        usable.map(Some).ok_or_else(|| no_address(host, "no IPv4 address, as SOCKS4 needs"))
    }

    fn needs_tunnel(&self, proxy: &Proxy) -> bool {
        match proxy.kind {
            // RFC 9112 section 3.2.2: a plain-text request is forwarded in absolute-form.
            ProxyKind::Http | ProxyKind::Https => self.plan.tls.is_some() || self.plan.tunnel,
            _ => true,
        }
    }

    fn proxy_tls(&self, proxy: &Proxy) -> Result<Option<TlsPlan>, DialError> {
        if proxy.kind != ProxyKind::Https {
            return Ok(None);
        }
        let missing = || {
            let detail = format!("no TLS configuration for the HTTPS proxy {}", proxy.host);
            DialError::new(Phase::Tls, DialErrorKind::Config, detail)
        };
        let config = self.plan.proxy_tls.clone().ok_or_else(missing)?;
        // CONNECT is spoken in HTTP/1.1 here, whatever the origin's ALPN is.
        Ok(Some(TlsPlan { config, alpn: vec![b"http/1.1"], early_data: false, ech: Ech::Off }))
    }

    /// Has the first use of a TLS configuration paid for off the reactor.
    async fn prepare(&self, config: &TlsConfig) {
        if config.is_prepared() {
            return;
        }
        let (done, prepared) = oneshot::channel();
        let config = config.clone();
        self.dialer.runtime.spawn_blocking(Box::new(move || {
            config.prepare();
            done.send(());
        }));
        // Where no thread can be had, the handshake makes the context itself.
        let _ = prepared.await;
    }

    async fn secure(
        &self,
        mut socket: Stream,
        plan: &TlsPlan,
        host: &Host,
        port: u16,
    ) -> Result<Stream, DialError> {
        let limit = Limit::new(self.timeouts.tls, self.timeouts.total, Instant::now());
        socket.set_deadline(limit.at);
        tls::connect(socket, plan, host, port).await
    }

    async fn look_up(&mut self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let addrs = self.resolve(host, port).await?;
        self.reachable(addrs, host)
    }

    async fn resolve(&mut self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let name = match host {
            Host::Name(name) => name,
            Host::Addr(ip, zone) => return Ok(vec![literal(*ip, *zone, port)]),
        };
        match self.overridden(name, port) {
            Some(fixed) if fixed.is_empty() => return Err(no_address(host, "no address")),
            Some(fixed) => return Ok(fixed),
            None => {}
        }
        let start = Instant::now();
        let limit = Limit::new(self.timeouts.resolve, self.timeouts.total, start);
        let runtime = &*self.dialer.runtime;
        let lookup = self.dialer.resolver.resolve(name, runtime);
        let outcome = match self.wants_record(host) {
            false => within(runtime, limit.at, lookup).await,
            true => {
                let record = self.dialer.resolver.ech(name, port, runtime);
                let both = with_record(runtime, lookup, record);
                let both = within(runtime, limit.at, both).await;
                both.map(|(ips, record)| {
                    self.record = record;
                    ips
                })
            }
        };
        let spent = self.timings.resolve.unwrap_or_default() + start.elapsed();
        self.timings.resolve = Some(spent);
        match outcome {
            Some(Ok(ips)) if ips.is_empty() => Err(no_address(host, "no address")),
            Some(Ok(ips)) => Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()),
            Some(Err(e)) => Err(resolve_error(name, e)),
            None => Err(limit.exceeded(Phase::Resolve, name)),
        }
    }

    /// Whether `host` is one whose HTTPS record may have keys that are asked for. Over a proxy it resolves names.
    fn wants_record(&self, host: &Host) -> bool {
        let plan = self.plan;
        let asks = plan.tls.as_ref().is_some_and(|tls| tls.ech == Ech::Record);
        asks && plan.proxy.is_none() && *host == plan.host
    }

    fn overridden(&self, name: &str, port: u16) -> Option<Vec<SocketAddr>> {
        let matches = |o: &&Override| {
            o.host.eq_ignore_ascii_case(name) && o.port.is_none_or(|only| only == port)
        };
        // The last that was said counts.
        let fixed = self.dialer.overrides.iter().rev().find(matches)?;
        let with_port = |addr: &SocketAddr| match addr.port() {
            0 => with_port(*addr, port),
            _ => *addr,
        };
        Some(fixed.addrs.iter().map(with_port).collect())
    }

    /// The addresses that a bound socket can reach.
    fn reachable(
        &self,
        mut addrs: Vec<SocketAddr>,
        host: &Host,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let Some(bind) = self.plan.socket.bind else {
            return Ok(addrs);
        };
        addrs.retain(|addr| addr.is_ipv4() == bind.is_ipv4());
        if addrs.is_empty() {
            return Err(no_address(host, &format!("no address of the family of {bind}")));
        }
        Ok(addrs)
    }
}

fn literal(ip: IpAddr, zone: u32, port: u16) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, port),
        IpAddr::V6(ip) => std::net::SocketAddrV6::new(ip, port, 0, zone).into(),
    }
}

fn with_port(mut addr: SocketAddr, port: u16) -> SocketAddr {
    addr.set_port(port);
    addr
}

/// When a phase has to end, and which of two limits says so.
struct Limit {
    at: Option<Instant>,
    phase: Option<Duration>,
}

impl Limit {
    fn new(phase: Option<Duration>, total: Option<Instant>, now: Instant) -> Self {
        // A duration beyond the end of the clock is no limit.
        let own = phase.and_then(|limit| now.checked_add(limit));
        match (own, total) {
            (Some(own), Some(total)) if total < own => Limit { at: Some(total), phase: None },
            (Some(own), _) => Limit { at: Some(own), phase },
            (None, total) => Limit { at: total, phase: None },
        }
    }

    fn exceeded(&self, phase: Phase, what: &dyn std::fmt::Display) -> DialError {
        DialError::new(phase, DialErrorKind::Timeout, format!("{what}: {self}"))
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.phase {
            Some(limit) => write!(f, "not done within {limit:?}"),
            None => f.write_str("not done before the call's total timeout"),
        }
    }
}

fn unix_and_proxy() -> DialError {
    let detail = "a Unix socket and a proxy exclude each other";
    DialError::new(Phase::Connect, DialErrorKind::Config, detail)
}

fn no_address(host: &Host, what: &str) -> DialError {
    DialError::new(Phase::Resolve, DialErrorKind::NameNotFound, format!("{host}: {what}"))
}

fn resolve_error(name: &str, error: io::Error) -> DialError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => DialErrorKind::NameNotFound,
        io::ErrorKind::InvalidInput => DialErrorKind::Config,
        _ => return DialError::io(Phase::Resolve, name, error),
    };
    let detail = match kind {
        DialErrorKind::NameNotFound => format!("there is no address for {name}"),
        _ => name.to_owned(),
    };
    DialError::new(Phase::Resolve, kind, detail).caused_by(error)
}

/// Every address has failed.
fn connect_error(host: &Host, port: u16, race: Race<io::Error>) -> DialError {
    let mut failures = race.into_failures();
    let is_option = |e: &io::Error| e.get_ref().is_some_and(|e| e.is::<OptionError>());
    let kind = if failures.iter().any(|(_, e)| is_option(e)) {
        DialErrorKind::Config
    } else if failures.iter().all(|(_, e)| e.kind() == io::ErrorKind::TimedOut) {
        DialErrorKind::Timeout
    } else {
        DialErrorKind::Io
    };
    match (failures.pop(), failures.len()) {
        (Some((addr, error)), 0) => {
            DialError::new(Phase::Connect, kind, target(host, port, addr)).caused_by(error)
        }
        (last, more) => {
            failures.extend(last);
            let detail = format!("{host}:{port} ({} addresses)", more + 1);
            DialError::new(Phase::Connect, kind, detail).caused_by(ConnectErrors(failures))
        }
    }
}

/// No address has answered in time.
fn connect_timeout(host: &Host, port: u16, race: &Race<io::Error>, limit: &Limit) -> DialError {
    let silent: Vec<String> = race.running().map(|addr| addr.ip().to_string()).collect();
    let what = match host {
        Host::Name(_) => format!("{host}:{port} ({})", silent.join(", ")),
        Host::Addr(..) => format!("{host}:{port}"),
    };
    limit.exceeded(Phase::Connect, &what)
}

/// `example.com:443 (93.184.216.34)`, and an address only once.
fn target(host: &Host, port: u16, addr: SocketAddr) -> String {
    match host {
        Host::Name(_) if addr.port() == port => format!("{host}:{port} ({})", addr.ip()),
        Host::Name(_) => format!("{host}:{port} ({addr})"),
        Host::Addr(..) => format!("{host}:{port}"),
    }
}
