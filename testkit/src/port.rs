//! Every port the origin can open: one table, which tests and `--list` walk.

/// A listener with one way of behaving. All but [`Port::Http`], [`Port::Https`] and
/// [`Port::Unix`] are opened when first asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the table PORTS describes each, in one place")]
pub enum Port {
    Http,
    Https,
    Unix,
    TlsWrongName,
    TlsExpired,
    TlsNotYetValid,
    TlsSelfSigned,
    TlsClientCert,
    Tls12,
    Tls13,
    TlsEarlyData,
    TlsNoAlpn,
    TlsReset,
    TlsClose,
    TlsGarbage,
    TlsStall,
    Refused,
    NoAccept,
    SlowAccept,
    NeverRead,
    ResetOnAccept,
    CloseOnAccept,
    SpeaksFirst,
    Proxy,
    ProxyAuth,
    ProxyTls,
    ProxyStall,
    ProxyBroken,
    Socks,
    SocksAuth,
    SocksStall,
}

/// One row of the table of ports.
#[derive(Clone, Copy, Debug)]
pub struct PortInfo {
    /// The port.
    pub port: Port,
    /// Its name on the command line and in the ready line.
    pub name: &'static str,
    /// What a client meets there.
    pub what: &'static str,
}

const fn row(port: Port, name: &'static str, what: &'static str) -> PortInfo {
    PortInfo { port, name, what }
}

/// Every port, in the order of `--list`.
pub const PORTS: &[PortInfo] = &[
    row(Port::Http, "http", "HTTP/1.1 over TCP, well behaved"),
    row(
        Port::Https,
        "https",
        "HTTP/1.1 over TLS 1.2 and 1.3 with session tickets; the certificate names localhost, \
         127.0.0.1, ::1 and origin.test",
    ),
    row(Port::Unix, "unix", "HTTP/1.1 over a Unix socket"),
    row(
        Port::TlsWrongName,
        "tls-wrong-name",
        "the certificate names wrong.test only",
    ),
    row(
        Port::TlsExpired,
        "tls-expired",
        "the certificate ended yesterday",
    ),
    row(
        Port::TlsNotYetValid,
        "tls-not-yet-valid",
        "the certificate begins in a year",
    ),
    row(
        Port::TlsSelfSigned,
        "tls-self-signed",
        "the certificate is signed by its own key",
    ),
    row(
        Port::TlsClientCert,
        "tls-client-cert",
        "a client certificate is required",
    ),
    row(Port::Tls12, "tls12", "TLS 1.2 only"),
    row(Port::Tls13, "tls13", "TLS 1.3 only"),
    row(
        Port::TlsEarlyData,
        "tls-early-data",
        "TLS 1.3 only; a resumed session may send 16 KiB of early data",
    ),
    row(
        Port::TlsNoAlpn,
        "tls-no-alpn",
        "TLS that chooses no application protocol",
    ),
    row(
        Port::TlsReset,
        "tls-reset",
        "reads the ClientHello, then RST",
    ),
    row(
        Port::TlsClose,
        "tls-close",
        "reads the ClientHello, then FIN",
    ),
    row(
        Port::TlsGarbage,
        "tls-garbage",
        "answers the ClientHello with bytes that are not TLS",
    ),
    row(
        Port::TlsStall,
        "tls-stall",
        "reads the ClientHello and never answers",
    ),
    row(
        Port::Refused,
        "refused",
        "nothing listens: a connect is refused",
    ),
    row(
        Port::NoAccept,
        "no-accept",
        "the listen queue is full: a connect gets no answer",
    ),
    row(
        Port::SlowAccept,
        "slow-accept",
        "each connection waits 500 ms before it is served",
    ),
    row(
        Port::NeverRead,
        "never-read",
        "accepts, and never reads nor writes, until the client leaves",
    ),
    row(
        Port::ResetOnAccept,
        "reset-on-accept",
        "RST as soon as the connection is accepted",
    ),
    row(
        Port::CloseOnAccept,
        "close-on-accept",
        "FIN as soon as the connection is accepted",
    ),
    row(
        Port::SpeaksFirst,
        "speaks-first",
        "writes a whole response before any request, then serves normally",
    ),
    row(
        Port::Proxy,
        "proxy",
        "HTTP proxy: absolute-form requests and CONNECT, to loopback only",
    ),
    row(
        Port::ProxyAuth,
        "proxy-auth",
        "the same; wants Basic credentials, else 407",
    ),
    row(
        Port::ProxyTls,
        "proxy-tls",
        "the same proxy without auth, spoken to over TLS",
    ),
    row(
        Port::ProxyStall,
        "proxy-stall",
        "HTTP proxy that reads a request and never answers",
    ),
    row(
        Port::ProxyBroken,
        "proxy-broken",
        "HTTP proxy that answers each request with 502",
    ),
    row(
        Port::Socks,
        "socks",
        "SOCKS 4, 4a and 5 proxy without auth, to loopback only",
    ),
    row(
        Port::SocksAuth,
        "socks-auth",
        "SOCKS 5 proxy that wants user name and password",
    ),
    row(
        Port::SocksStall,
        "socks-stall",
        "SOCKS proxy that reads the greeting and never answers",
    ),
];

impl Port {
    /// The port's row in the table.
    pub fn info(self) -> &'static PortInfo {
        let found = PORTS.iter().find(|row| row.port == self);
        // Each variant has its row: `every_port_has_its_row` below.
        found.unwrap_or(&PORTS[0])
    }

    /// The port's name on the command line.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The port of this name.
    pub fn from_name(name: &str) -> Option<Port> {
        PORTS
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.port)
    }

    /// Whether a client speaks TLS to it.
    pub fn is_tls(self) -> bool {
        matches!(self, Port::Https | Port::ProxyTls) || self.name().starts_with("tls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_has_its_row() {
        // Discriminants count from 0, so the table holds all when it holds them in order.
        for (at, row) in PORTS.iter().enumerate() {
            assert_eq!(row.port as usize, at, "{}", row.name);
            assert_eq!(Port::from_name(row.name), Some(row.port));
        }
        assert_eq!(PORTS.last().map(|row| row.port), Some(Port::SocksStall));
    }
}
