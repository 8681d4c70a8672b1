//! Every port the origin can open: one table, which tests and `--list` walk.

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

/// Makes the enum and its table from one list, in the order of `--list`.
macro_rules! ports {
    ($($port:ident, $name:literal, $what:literal;)*) => {
        /// A listener with one way of behaving. All but [`Port::Http`], [`Port::Https`] and
        /// [`Port::Unix`] are opened when first asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Port {
            $(#[doc = $what] $port,)*
        }

        /// Every port, in the order of `--list`.
        pub const PORTS: &[PortInfo] =
            &[$(PortInfo { port: Port::$port, name: $name, what: $what },)*];
    };
}

ports! {
    Http, "http", "HTTP/1.1 over TCP, well behaved";
    Https, "https",
        "HTTP/1.1 over TLS 1.2 and 1.3 with session tickets; the certificate names \
         localhost, 127.0.0.1, ::1 and origin.test";
    H2c, "h2c", "HTTP/2 over TCP by prior knowledge, well behaved";
    H2, "tls-h2", "HTTP/2 over TLS; offers h2 and nothing else (ALPN)";
    H2OrHttp1, "tls-h2-http1", "HTTP/2 or HTTP/1.1 over TLS, as the client prefers; offers h2 first";
    BadH2, "bad-h2", "one of the rows of misbehaviour over HTTP/2; opened by its name";
    Unix, "unix", "HTTP/1.1 over a Unix socket";
    TlsWrongName, "tls-wrong-name", "the certificate names wrong.test only";
    TlsExpired, "tls-expired", "the certificate ended yesterday";
    TlsNotYetValid, "tls-not-yet-valid", "the certificate begins in a year";
    TlsSelfSigned, "tls-self-signed", "the certificate is signed by its own key";
    TlsClientCert, "tls-client-cert", "a client certificate is required";
    Tls12, "tls12", "TLS 1.2 only";
    Tls13, "tls13", "TLS 1.3 only";
    TlsEarlyData, "tls-early-data", "TLS 1.3 only; a resumed session may send 16 KiB of early data";
    TlsNoAlpn, "tls-no-alpn", "TLS that chooses no application protocol";
    TlsReset, "tls-reset", "reads the ClientHello, then RST";
    TlsClose, "tls-close", "reads the ClientHello, then FIN";
    TlsGarbage, "tls-garbage", "answers the ClientHello with bytes that are not TLS";
    TlsStall, "tls-stall", "reads the ClientHello and never answers";
    Refused, "refused", "nothing listens: a connect is refused";
    NoAccept, "no-accept", "the listen queue is full: a connect gets no answer";
    SlowAccept, "slow-accept", "each connection waits 500 ms before it is served";
    NeverRead, "never-read", "accepts, and never reads nor writes, until the client leaves";
    ResetOnAccept, "reset-on-accept", "RST as soon as the connection is accepted";
    CloseOnAccept, "close-on-accept", "FIN as soon as the connection is accepted";
    SpeaksFirst, "speaks-first", "writes a whole response before any request, then serves normally";
    Proxy, "proxy", "HTTP proxy: absolute-form requests and CONNECT, to loopback only";
    ProxyAuth, "proxy-auth", "the same; wants Basic credentials, else 407";
    ProxyTls, "proxy-tls", "the same proxy without auth, spoken to over TLS";
    ProxyStall, "proxy-stall", "HTTP proxy that reads a request and never answers";
    ProxyBroken, "proxy-broken", "HTTP proxy that answers each request with 502";
    Socks, "socks", "SOCKS 4, 4a and 5 proxy without auth, to loopback only";
    SocksAuth, "socks-auth", "SOCKS 5 proxy that wants user name and password";
    SocksStall, "socks-stall", "SOCKS proxy that reads the greeting and never answers";
}

impl Port {
    /// The port's name on the command line.
    pub fn name(self) -> &'static str {
        // Enum and table are made from one list, so a variant's number is its row's.
        PORTS[self as usize].name
    }

    /// The port of this name.
    pub fn from_name(name: &str) -> Option<Port> {
        PORTS.iter().find(|row| row.name == name).map(|row| row.port)
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
    fn names_lead_back_to_their_ports() {
        for row in PORTS {
            assert_eq!(row.port.name(), row.name);
            assert_eq!(Port::from_name(row.name), Some(row.port));
        }
        assert_eq!(Port::from_name("nowhere"), None);
    }
}
