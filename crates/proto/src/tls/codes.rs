//! The code points of a ClientHello, which people write by the names that IANA gives them.

use std::{fmt, str::FromStr};

/// A text that is neither a known name nor a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    text: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not {}: neither a name of IANA's nor 0x and four digits",
            self.text, self.what
        )
    }
}

impl std::error::Error for UnknownName {}

/// `0x` and one to four hexadecimal digits.
fn number(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    // What `from_str_radix` takes besides digits is a sign.
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

macro_rules! code_points {
    ($(#[$doc:meta])* $type:ident, $what:literal, $($code:literal $name:literal)*) => {
        $(#[$doc])*
        ///
        /// As text: the name in IANA's registry, whatever its case, or `0x` and hexadecimal digits.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub u16);

        impl $type {
            /// IANA's name, where there is one and we know it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($name),)*
                    _ => None,
                }
            }
        }

        impl From<$type> for u16 {
            fn from(code: $type) -> u16 {
                code.0
            }
        }

        impl From<u16> for $type {
            fn from(code: u16) -> Self {
                $type(code)
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                const NAMES: &[(&str, u16)] = &[$(($name, $code)),*];
                let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                let code = named.map(|(_, code)| *code).or_else(|| number(text));
                code.map($type).ok_or_else(|| UnknownName { what: $what, text: text.to_owned() })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#06x}", self.0),
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(super::text::NameOrNumber::new($what))
            }
        }
    };
}

code_points! {
    /// A cipher suite.
    CipherSuite, "a cipher suite",
    0x000a "TLS_RSA_WITH_3DES_EDE_CBC_SHA"
    0x002f "TLS_RSA_WITH_AES_128_CBC_SHA"
    0x0035 "TLS_RSA_WITH_AES_256_CBC_SHA"
    0x003c "TLS_RSA_WITH_AES_128_CBC_SHA256"
    0x003d "TLS_RSA_WITH_AES_256_CBC_SHA256"
    0x009c "TLS_RSA_WITH_AES_128_GCM_SHA256"
    0x009d "TLS_RSA_WITH_AES_256_GCM_SHA384"
    0x1301 "TLS_AES_128_GCM_SHA256"
    0x1302 "TLS_AES_256_GCM_SHA384"
    0x1303 "TLS_CHACHA20_POLY1305_SHA256"
    0xc008 "TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA"
    0xc009 "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"
    0xc00a "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"
    0xc012 "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"
    0xc013 "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"
    0xc014 "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"
    0xc023 "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"
    0xc024 "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"
    0xc027 "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"
    0xc028 "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"
    0xc02b "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    0xc02c "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    0xc02f "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    0xc030 "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    0xcca8 "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    0xcca9 "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
}

code_points! {
    /// A key agreement group ("supported groups", RFC 8446 section 4.2.7).
    Group, "a group",
    0x0017 "secp256r1"
    0x0018 "secp384r1"
    0x0019 "secp521r1"
    0x001d "x25519"
    0x001e "x448"
    0x0100 "ffdhe2048"
    0x0101 "ffdhe3072"
    0x0102 "ffdhe4096"
    0x0103 "ffdhe6144"
    0x0104 "ffdhe8192"
    0x0200 "MLKEM512"
    0x0201 "MLKEM768"
    0x0202 "MLKEM1024"
    0x11eb "SecP256r1MLKEM768"
    0x11ec "X25519MLKEM768"
    0x11ed "SecP384r1MLKEM1024"
    0x6399 "X25519Kyber768Draft00"
}

code_points! {
    /// A signature algorithm (RFC 8446 section 4.2.3).
    SignatureScheme, "a signature scheme",
    0x0201 "rsa_pkcs1_sha1"
    0x0203 "ecdsa_sha1"
    0x0401 "rsa_pkcs1_sha256"
    0x0403 "ecdsa_secp256r1_sha256"
    0x0501 "rsa_pkcs1_sha384"
    0x0503 "ecdsa_secp384r1_sha384"
    0x0601 "rsa_pkcs1_sha512"
    0x0603 "ecdsa_secp521r1_sha512"
    0x0804 "rsa_pss_rsae_sha256"
    0x0805 "rsa_pss_rsae_sha384"
    0x0806 "rsa_pss_rsae_sha512"
    0x0807 "ed25519"
    0x0808 "ed448"
    0x0809 "rsa_pss_pss_sha256"
    0x080a "rsa_pss_pss_sha384"
    0x080b "rsa_pss_pss_sha512"
    0x0904 "mldsa44"
    0x0905 "mldsa65"
    0x0906 "mldsa87"
}

code_points! {
    /// An extension of a ClientHello. `application_settings_old` is the first code point of ALPS, which
    /// IANA does not name.
    Extension, "an extension",
    0 "server_name"
    5 "status_request"
    10 "supported_groups"
    11 "ec_point_formats"
    13 "signature_algorithms"
    16 "application_layer_protocol_negotiation"
    18 "signed_certificate_timestamp"
    21 "padding"
    23 "extended_master_secret"
    27 "compress_certificate"
    28 "record_size_limit"
    34 "delegated_credential"
    35 "session_ticket"
    41 "pre_shared_key"
    42 "early_data"
    43 "supported_versions"
    44 "cookie"
    45 "psk_key_exchange_modes"
    51 "key_share"
    17513 "application_settings_old"
    17613 "application_settings"
    51764 "trust_anchors"
    65037 "encrypted_client_hello"
    65281 "renegotiation_info"
}

code_points! {
    /// An HPKE AEAD (RFC 9180 section 7.3).
    HpkeAead, "an HPKE AEAD",
    1 "AES-128-GCM"
    2 "AES-256-GCM"
    3 "ChaCha20Poly1305"
}

impl CipherSuite {
    /// Whether it is one of TLS 1.3's (RFC 8446 appendix B.4), which name no key agreement.
    pub(super) fn is_tls13(self) -> bool {
        self.0 >> 8 == 0x13
    }
}

impl Extension {
    /// ALPS at its first code point.
    pub const ALPS_OLD: Extension = Extension(17513);
    /// ALPS at the code point that Chromium has used since version 133.
    pub const ALPS: Extension = Extension(17613);
}
