//! What the fields of a hello hold besides code points.

use std::{fmt, str::FromStr};

use super::{Extension, HpkeAead};

/// The order of the extensions of a hello. `pre_shared_key` is last in any case (RFC 8446 section
/// 4.2.11), and GREASE first and last before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ExtensionOrder {
    /// Another one for each connection.
    Permuted,
    /// This one, which names all that may be sent. Takes our patch.
    Fixed(Vec<Extension>),
}

/// When the `session_ticket` extension is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum SessionTicket {
    /// Never: only session IDs and pre-shared keys are resumed.
    Never,
    /// In each hello.
    Always,
    /// In a hello that has no `pre_shared_key`.
    WithoutPsk,
}

/// An algorithm of certificate compression (RFC 8879 section 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum CertificateCompression {
    /// RFC 1950.
    Zlib,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

impl CertificateCompression {
    /// IANA's number.
    pub fn code(self) -> u16 {
        match self {
            CertificateCompression::Zlib => 1,
            CertificateCompression::Brotli => 2,
            CertificateCompression::Zstd => 3,
        }
    }
}

/// ALPS (draft-vvv-tls-alps): settings that travel in the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ApplicationSettings {
    /// `application_settings` (17613), or `application_settings_old` (17513).
    pub code_point: Extension,
    /// The protocols that have settings, and what is sent when one of them is agreed on.
    pub protocols: Vec<ApplicationProtocol>,
}

/// A protocol with settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ApplicationProtocol {
    /// Its name in ALPN.
    pub name: String,
    /// What is sent for it: for `h2` whole frames.
    #[cfg_attr(feature = "serde", serde(default))]
    pub settings: Settings,
}

/// Bytes, in hexadecimal digits when they are text.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Settings(pub Vec<u8>);

/// An `encrypted_client_hello` without meaning.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct EchGrease {
    /// Lengths of the payload in bytes, one of which is drawn. Empty: those of BoringSSL, which are
    /// 144, 176, 208 and 240. Others take our patch.
    pub payload_lengths: Vec<u16>,
    /// The same for a hello that offers a session. Empty: no difference.
    pub payload_lengths_with_psk: Vec<u16>,
    /// AEADs, one of which is drawn. Empty: BoringSSL's choice, which is AES-128-GCM on a machine with
    /// instructions for AES and ChaCha20Poly1305 elsewhere. Others take our patch.
    pub aeads: Vec<HpkeAead>,
}

/// The identifier of a trust anchor: an object identifier below 1.3.6.1.4.1, `32473.1` for example.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TrustAnchor(Vec<u8>);

impl TrustAnchor {
    /// The identifier that these bytes are: the contents of a relative object identifier in DER.
    ///
    /// # Errors
    /// When they are none, or more than the extension can carry (255).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ValueError> {
        let ends = bytes.last().is_some_and(|last| last & 0x80 == 0);
        // X.690 section 8.20: no arc begins with a zero digit.
        let starts = bytes.iter().enumerate();
        let padded = starts.into_iter().any(|(at, byte)| {
            *byte == 0x80 && at.checked_sub(1).is_none_or(|before| bytes[before] & 0x80 == 0)
        });
        if !ends || padded || bytes.len() > 255 || arcs(bytes).is_none() {
            return Err(ValueError(
                "a trust anchor is a relative object identifier of 1 to 255 bytes",
            ));
        }
        Ok(TrustAnchor(bytes.to_vec()))
    }

    /// Its bytes on the wire, without their length.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The numbers of a relative object identifier; none when one has more than 64 bits.
fn arcs(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut arcs = Vec::new();
    let mut arc = 0_u64;
    for byte in bytes {
        if arc >> 57 != 0 {
            return None;
        }
        arc = arc << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            arcs.push(arc);
            arc = 0;
        }
    }
    Some(arcs)
}

impl FromStr for TrustAnchor {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const WRONG: ValueError =
            ValueError("a trust anchor is numbers between dots, as 32473.1 is");
        let mut bytes = Vec::new();
        for arc in text.split('.') {
            if !arc.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(WRONG);
            }
            let arc: u64 = arc.parse().map_err(|_| WRONG)?;
            let digits = (arc | 1).ilog2() / 7;
            for digit in (0..=digits).rev() {
                let more = if digit == 0 { 0 } else { 0x80 };
                bytes.push((arc >> (7 * digit)) as u8 & 0x7f | more);
            }
        }
        TrustAnchor::from_bytes(&bytes)
    }
}

impl fmt::Display for TrustAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, arc) in arcs(&self.0).unwrap_or_default().iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            write!(f, "{arc}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TrustAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Settings {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const WRONG: ValueError =
            ValueError("bytes are written as an even number of hexadecimal digits");
        if !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(WRONG);
        }
        let bytes = text.as_bytes().chunks_exact(2).map(|pair| {
            let pair = std::str::from_utf8(pair).map_err(|_| WRONG)?;
            u8::from_str_radix(pair, 16).map_err(|_| WRONG)
        });
        bytes.collect::<Result<_, _>>().map(Settings)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text or some bytes are not a value of a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError(&'static str);

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ValueError {}
