//! A proxy from its URL.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use super::{Proxy, ProxyKind};
use crate::dial::Host;

/// What is wrong with a proxy's URL. It never shows the URL: there may be a password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyError {
    detail: String,
    source: Option<url::ParseError>,
}

impl ProxyError {
    fn new(detail: impl Into<String>) -> Self {
        ProxyError { detail: detail.into(), source: None }
    }

    /// The same, said of where the URL was found.
    pub(super) fn found_in(mut self, place: &str) -> Self {
        self.detail = format!("{place}: {}", self.detail);
        self
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for ProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}

/// See [`Proxy::parse`].
pub(super) fn proxy(url: &str) -> Result<Proxy, ProxyError> {
    let url = url.trim();
    let (kind, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (kind(scheme)?, rest),
        None => (ProxyKind::Http, url),
    };
    // A backslash too: an http URL ends its host there, one of an unknown scheme does not.
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if !matches!(path, "" | "/") {
        return Err(ProxyError::new("a proxy URL ends after the port"));
    }
    // As an http URL for the rules of hosts and credentials; as one of an unknown scheme for the
    // port, which an http URL drops when it is 80.
    let parsed = parse(&format!("http://{authority}/"))?;
    let port = match parse(&format!("proxy://{authority}/"))?.port() {
        Some(0) => return Err(ProxyError::new("a proxy cannot be at port 0")),
        Some(port) => port,
        None => default_port(kind),
    };
    let host = match parsed.host() {
        Some(url::Host::Domain(name)) => Host::Name(name.to_owned()),
        Some(url::Host::Ipv4(ip)) => Host::Addr(ip.into(), 0),
        Some(url::Host::Ipv6(ip)) => Host::Addr(ip.into(), 0),
        None => return Err(ProxyError::new("a proxy URL names a host")),
    };
    Ok(Proxy { kind, host, port, auth: auth(kind, &parsed)?, headers: Vec::new() })
}

fn parse(url: &str) -> Result<Url, ProxyError> {
    Url::parse(url).map_err(|error| ProxyError {
        detail: "the proxy is not given as a URL".to_owned(),
        source: Some(error),
    })
}

fn kind(scheme: &str) -> Result<ProxyKind, ProxyError> {
    const KINDS: [ProxyKind; 6] = [
        ProxyKind::Http,
        ProxyKind::Https,
        ProxyKind::Socks4,
        ProxyKind::Socks4a,
        ProxyKind::Socks5,
        ProxyKind::Socks5h,
    ];
    let known = KINDS.into_iter().find(|kind| kind.scheme().eq_ignore_ascii_case(scheme));
    known.ok_or_else(|| {
        ProxyError::new("a proxy is http, https, socks4, socks4a, socks5 or socks5h")
    })
}

fn default_port(kind: ProxyKind) -> u16 {
    match kind {
        ProxyKind::Http => 80,
        ProxyKind::Https => 443,
        // Registered for SOCKS (RFC 1928 section 3).
        ProxyKind::Socks4 | ProxyKind::Socks4a | ProxyKind::Socks5 | ProxyKind::Socks5h => 1080,
    }
}

fn auth(kind: ProxyKind, url: &Url) -> Result<Option<(String, String)>, ProxyError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded
            .map(String::from)
            .map_err(|_| ProxyError::new("the proxy's user name or password is not UTF-8"))
    };
    let user = decode(url.username())?;
    let speaks_http = matches!(kind, ProxyKind::Http | ProxyKind::Https);
    // RFC 7617 section 2: the first colon ends the name.
    if speaks_http && user.contains(':') {
        return Err(ProxyError::new("the user name for an HTTP proxy cannot hold a colon"));
    }
    Ok(Some((user, decode(url.password().unwrap_or_default())?)))
}
