//! A ClientHello as data: what is to be said, which `mimus-net` says, and a file may say to it.
//!
//! [`ClientHello`] says what a browser's hello says, down to the order of what is listed; what varies
//! between its connections (keys, GREASE values, a permutation) is drawn anew for each. With the
//! feature `serde` it reads and writes as a table, in TOML for example:
//!
//! ```toml
//! min_version = "1.2"
//! max_version = "1.3"
//! grease = true
//! cipher_suites = ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]
//! groups = ["x25519mlkem768", "x25519", "secp256r1", "0x0018"]
//! key_shares = ["x25519mlkem768", "x25519"]
//! signature_algorithms = ["ecdsa_secp256r1_sha256", "rsa_pss_rsae_sha256"]
//! alpn = ["h2", "http/1.1"]
//! application_settings = { code_point = "application_settings", protocols = [{ name = "h2", settings = "" }] }
//! certificate_compression = ["brotli"]
//! trust_anchors = ["44947.2.1"]
//! ech_grease = {}
//! ```
//!
//! Parts of which it is said that they take our patch are an error in a build whose BoringSSL has not
//! got it (`mimus_net::tls::BORINGSSL_IS_PATCHED`).
//!
//! What is left out is not sent. Code points are written by IANA's names, whatever their case, or as
//! numbers.

mod check;
mod codes;
mod ja3;
#[cfg(feature = "serde")]
mod text;
mod values;
mod version;

pub use check::ClientHelloError;
pub use codes::{CipherSuite, Extension, Group, HpkeAead, SignatureScheme, UnknownName};
pub use values::{
    ApplicationProtocol, ApplicationSettings, CertificateCompression, EchGrease, ExtensionOrder,
    SessionTicket, Settings, TrustAnchor, ValueError,
};
pub use version::TlsVersion;

/// What a ClientHello says, in the order in which it says it.
///
/// GREASE (RFC 8701) and what belongs to one connection (the server's name, keys, a ticket, a cookie)
/// are not listed: [`grease`](Self::grease) and the rest say whether they are there. Extensions that
/// are always sent are not mentioned either: with TLS 1.2 `extended_master_secret`,
/// `renegotiation_info` and `ec_point_formats`; with TLS 1.3 `supported_versions`,
/// `psk_key_exchange_modes` (`psk_dhe_ke`) and `key_share`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ClientHello {
    /// The lowest version offered. TLS 1.2 by default.
    pub min_version: TlsVersion,
    /// The highest version offered. TLS 1.3 by default.
    pub max_version: TlsVersion,
    /// Versions below the lowest one that are listed all the same, in this order, and never agreed to: as
    /// Safari 18 does. Takes our patch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub advertised_versions: Vec<TlsVersion>,
    /// Whether GREASE values stand where Chromium has them: first among cipher suites, groups, key
    /// shares, versions and extensions, and as the last extension.
    pub grease: bool,
    /// Cipher suites, those of TLS 1.3 first. From the first other one that BoringSSL lacks they are only
    /// advertised, which takes our patch.
    pub cipher_suites: Vec<CipherSuite>,
    /// In which order the extensions stand.
    pub extension_order: ExtensionOrder,
    /// Groups that are offered. From the first that BoringSSL lacks they are only advertised, which takes our patch.
    pub groups: Vec<Group>,
    /// Groups that a key is sent for at once: a part of [`groups`](Self::groups), in the same order.
    pub key_shares: Vec<Group>,
    /// Signature algorithms that are accepted.
    pub signature_algorithms: Vec<SignatureScheme>,
    /// Whether a GREASE value stands first among the signature algorithms. None: as
    /// [`grease`](Self::grease) says, otherwise it takes our patch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub signature_algorithms_grease: Option<bool>,
    /// Protocols offered by ALPN (RFC 7301). A connection offers those of them that its plan has too,
    /// and its plan's when none is in both; one without ALPN in its plan has none.
    pub alpn: Vec<String>,
    /// ALPS, for those of its protocols that ALPN offers.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub application_settings: Option<ApplicationSettings>,
    /// Certificate compression (RFC 8879).
    pub certificate_compression: Vec<CertificateCompression>,
    /// The same where HTTP/1.1 is the only protocol offered, as browsers do for a WebSocket. None: no
    /// difference.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub http1_certificate_compression: Option<Vec<CertificateCompression>>,
    /// An `encrypted_client_hello` that means nothing (RFC 9849 section 6.2), where there is no
    /// configuration for a real one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub ech_grease: Option<EchGrease>,
    /// Whether signed certificate timestamps are asked for (RFC 6962).
    pub signed_certificate_timestamps: bool,
    /// Whether a stapled OCSP response is asked for (RFC 6066 section 8).
    pub ocsp_stapling: bool,
    /// When `session_ticket` (RFC 5077) is there.
    pub session_ticket: SessionTicket,
    /// Trust anchors that are asked for (draft-ietf-tls-trust-anchor-ids). None: no such extension.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub trust_anchors: Option<Vec<TrustAnchor>>,
    /// The largest record that is accepted, in bytes (RFC 8449). Takes our patch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub record_size_limit: Option<u16>,
    /// Signature algorithms of delegated credentials (RFC 9345); empty: no such extension. Takes our
    /// patch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub delegated_credentials: Vec<SignatureScheme>,
    /// Whether a hello of 256 to 511 bytes is padded to 512 (RFC 7685). Takes our patch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub padding: bool,
    /// Whether sessions are remembered and offered. On by default.
    pub resumption: bool,
}

impl Default for ClientHello {
    /// TLS 1.2 and 1.3 with resumption, and nothing else: not valid before cipher suites, groups, key
    /// shares and signature algorithms are added.
    fn default() -> Self {
        ClientHello {
            min_version: TlsVersion::Tls12,
            max_version: TlsVersion::Tls13,
            advertised_versions: Vec::new(),
            grease: false,
            cipher_suites: Vec::new(),
            extension_order: ExtensionOrder::Permuted,
            groups: Vec::new(),
            key_shares: Vec::new(),
            signature_algorithms: Vec::new(),
            signature_algorithms_grease: None,
            alpn: Vec::new(),
            application_settings: None,
            certificate_compression: Vec::new(),
            http1_certificate_compression: None,
            ech_grease: None,
            signed_certificate_timestamps: false,
            ocsp_stapling: false,
            session_ticket: SessionTicket::Always,
            trust_anchors: None,
            record_size_limit: None,
            delegated_credentials: Vec::new(),
            padding: false,
            resumption: true,
        }
    }
}
