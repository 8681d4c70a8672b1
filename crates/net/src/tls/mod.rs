//! TLS on BoringSSL, as bytes in and bytes out.

use std::sync::Arc;

/// A shared TLS configuration: trust, identity, versions, session cache. Cheap to clone; clones
/// share the session cache.
#[derive(Debug, Clone)]
pub struct TlsConfig {
    _inner: Arc<()>,
}

/// What a handshake agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsInfo {
    /// `TLSv1.3`, `TLSv1.2`...
    pub version: &'static str,
    /// The cipher suite's IANA name.
    pub cipher: String,
    /// The protocol chosen by ALPN.
    pub alpn: Option<Vec<u8>>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Whether early data was accepted.
    pub early_data: bool,
    /// The peer's certificate chain, leaf first, each in DER.
    pub certificates: Vec<Vec<u8>>,
}
