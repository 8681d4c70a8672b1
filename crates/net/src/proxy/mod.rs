//! Proxies: HTTP CONNECT, HTTPS, SOCKS4/4a/5/5h, and the environment's say in the matter.

use crate::dial::Host;

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

/// One proxy. Its `Debug` does not show the password.
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
}
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("x") }
}
