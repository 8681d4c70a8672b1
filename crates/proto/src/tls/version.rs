//! Versions of TLS.

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TlsVersion {
    /// TLS 1.0; deprecated by RFC 8996.
    #[cfg_attr(feature = "serde", serde(rename = "1.0"))]
    Tls10,
    /// TLS 1.1; deprecated by RFC 8996.
    #[cfg_attr(feature = "serde", serde(rename = "1.1"))]
    Tls11,
    /// TLS 1.2, RFC 5246.
    #[cfg_attr(feature = "serde", serde(rename = "1.2"))]
    Tls12,
    /// TLS 1.3, RFC 8446.
    #[cfg_attr(feature = "serde", serde(rename = "1.3"))]
    Tls13,
}

impl From<TlsVersion> for u16 {
    /// As on the wire.
    fn from(version: TlsVersion) -> u16 {
        match version {
            TlsVersion::Tls10 => 0x0301,
            TlsVersion::Tls11 => 0x0302,
            TlsVersion::Tls12 => 0x0303,
            TlsVersion::Tls13 => 0x0304,
        }
    }
}
