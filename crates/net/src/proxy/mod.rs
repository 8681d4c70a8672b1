//! Proxies: HTTP CONNECT, HTTPS, SOCKS4/4a/5/5h, and the environment's say in the matter.
//!
//! A [`Proxy`] is where and how; [`Proxies`] says which one serves a URL; [`tunnel`] talks to one
//! until the socket is connected to the target. The SOCKS conversations are pure machines
//! ([`socks`]), driven by [`tunnel`]; CONNECT is an HTTP/1.1 exchange of `mimus-proto`.

mod connect;
pub mod no_proxy;
mod parse;
mod prefixed;
mod rules;
pub mod socks;

use std::{fmt, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::BytesMut;

use crate::{
    DialError, DialErrorKind, Phase, Socket, Wait,
    dial::Host,
    rt::io::{flush, read, write_all},
};

pub use parse::ProxyError;
pub use prefixed::Prefixed;
pub use rules::Proxies;
use socks::{Progress, Socks};

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProxyKind {
    /// HTTP: absolute-form for plain text, CONNECT for TLS.
    Http,
    /// The same, inside TLS with the proxy.
    Https,
    /// SOCKS4: names resolved here.
    Socks4,
    /// SOCKS4a: names resolved by the proxy.
    Socks4a,
    /// SOCKS5: names resolved here.
    Socks5,
    /// SOCKS5: names resolved by the proxy.
    Socks5h,
}

impl ProxyKind {
    /// The URL scheme that means this kind.
    pub fn scheme(self) -> &'static str {
        match self {
            ProxyKind::Http => "http",
            ProxyKind::Https => "https",
            ProxyKind::Socks4 => "socks4",
            ProxyKind::Socks4a => "socks4a",
            ProxyKind::Socks5 => "socks5",
            ProxyKind::Socks5h => "socks5h",
        }
    }

    /// Whether the target's name has to be resolved before [`tunnel`] is called.
    pub fn resolves_here(self) -> bool {
        matches!(self, ProxyKind::Socks4 | ProxyKind::Socks5)
    }
}

/// One proxy. Neither its `Debug` nor its `Display` shows the password or the headers' values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// How it is spoken to.
    pub kind: ProxyKind,
    /// Its host.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// User name and password.
    pub auth: Option<(String, String)>,
    /// Further fields of a CONNECT request, in this order.
    pub headers: Vec<(String, String)>,
}

impl Proxy {
    /// A proxy from its URL: `http://user:password@host:port`, where the scheme is one of `http`,
    /// `https`, `socks4`, `socks4a`, `socks5`, `socks5h`, and `http` when it is missing. Without a
    /// port it is 80, 443 or 1080. User name and password are percent-decoded.
    ///
    /// # Errors
    /// What is wrong with the URL; never quoting its credentials.
    pub fn parse(url: &str) -> Result<Proxy, ProxyError> {
        parse::proxy(url)
    }

    /// The value of `Proxy-Authorization` (RFC 7617), when there are credentials.
    pub fn basic_auth(&self) -> Option<String> {
        let (user, password) = self.auth.as_ref()?;
        Some(format!("Basic {}", BASE64.encode(format!("{user}:{password}"))))
    }
}

impl std::str::FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Proxy::parse(url)
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), authority(&self.host, self.port))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("auth", &self.auth.is_some())
            .field("headers", &headers)
            .finish()
    }
}

/// `host:port` as RFC 3986 writes it. A zone means something on this machine only, and is left out.
fn authority(host: &Host, port: u16) -> String {
    match host {
        Host::Name(name) => format!("{name}:{port}"),
        Host::Addr(ip, _zone) => std::net::SocketAddr::new(*ip, port).to_string(),
    }
}

/// Talks to `proxy`, at the other end of `socket`, until it hands over a connection to `target`.
/// For [`ProxyKind::Https`], `socket` is the TLS connection with the proxy. A proxy that does not
/// resolve names ([`ProxyKind::resolves_here`]) is told `resolved` in place of a name.
///
/// What the target sent together with the proxy's last answer is the first thing that the returned
/// socket reads. The socket's own deadline bounds the talk.
///
/// # Errors
/// A [`DialError`] in [`Phase::Proxy`]: `ProxyAuth` when the proxy wants (other) credentials, `Proxy`
/// when it refuses or does not speak its protocol, `Config` when `target` cannot be told to this kind
/// of proxy, `Timeout` and `Io` as the socket failed.
pub async fn tunnel(
    proxy: &Proxy,
    mut socket: Box<dyn Socket>,
    target: &Host,
    port: u16,
    resolved: Option<IpAddr>,
) -> Result<Box<dyn Socket>, DialError> {
    let address = resolved.filter(|_| proxy.kind.resolves_here()).map(|ip| Host::Addr(ip, 0));
    let target = address.as_ref().unwrap_or(target);
    let leftover = match proxy.kind {
        ProxyKind::Http | ProxyKind::Https => {
            connect::connect(proxy, &mut *socket, target, port).await?
        }
        kind => {
            let machine = Socks::new(kind, proxy.auth.as_ref(), target, port)
                .map_err(|error| socks_error(proxy, error))?;
            socks(proxy, machine, &mut *socket).await?
        }
    };
    Ok(Prefixed::new(leftover.freeze(), socket))
}

/// Drives a SOCKS conversation; returns what came after it.
async fn socks(
    proxy: &Proxy,
    mut machine: Socks,
    socket: &mut dyn Socket,
) -> Result<BytesMut, DialError> {
    let mut input = BytesMut::with_capacity(512);
    loop {
        match machine.poll(&mut input).map_err(|error| socks_error(proxy, error))? {
            Progress::Write(bytes) => send(proxy, socket, &bytes).await?,
            Progress::Read => {
                if receive(proxy, socket, &mut input).await? == 0 {
                    let detail = format!("{proxy} closed the connection before it answered");
                    return Err(DialError::new(Phase::Proxy, DialErrorKind::Proxy, detail));
                }
            }
            Progress::Done => return Ok(input),
        }
    }
}

fn socks_error(proxy: &Proxy, error: socks::SocksError) -> DialError {
    DialError::new(Phase::Proxy, error.kind(), proxy.to_string()).caused_by(error)
}

/// Writes `bytes` and sees them off.
async fn send(proxy: &Proxy, socket: &mut dyn Socket, bytes: &[u8]) -> Result<(), DialError> {
    let sent = match write_all(socket, bytes).await {
        Ok(()) => flush(socket).await,
        failed => failed,
    };
    sent.map_err(|error| DialError::io(Phase::Proxy, format!("writing to {proxy}"), error))
}

/// One read; 0 is the end of the stream.
async fn receive(
    proxy: &Proxy,
    socket: &mut dyn Socket,
    input: &mut BytesMut,
) -> Result<usize, DialError> {
    input.reserve(512);
    let read = read(socket, input, Wait::Alone).await;
    read.map_err(|error| DialError::io(Phase::Proxy, format!("reading from {proxy}"), error))
}

#[cfg(test)]
mod tests;
