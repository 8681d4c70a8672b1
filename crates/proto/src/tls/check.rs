//! Whether a hello makes sense, whatever BoringSSL can do of it.

use std::fmt;

use super::{
    CipherSuite, ClientHello, Extension, ExtensionOrder, HpkeAead, SessionTicket, TlsVersion,
};

/// What is wrong with a [`ClientHello`], and with which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHelloError {
    part: &'static str,
    detail: String,
}

impl ClientHelloError {
    /// `part` of a hello is wrong, or whoever is to say it cannot: why.
    pub fn new(part: &'static str, detail: impl Into<String>) -> Self {
        ClientHelloError { part, detail: detail.into() }
    }

    /// The field of [`ClientHello`] that is wrong.
    pub fn part(&self) -> &'static str {
        self.part
    }
}

impl fmt::Display for ClientHelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientHello: {}: {}", self.part, self.detail)
    }
}

impl std::error::Error for ClientHelloError {}

type Checked = Result<(), ClientHelloError>;

fn ensure(holds: bool, part: &'static str, detail: &str) -> Checked {
    if holds { Ok(()) } else { Err(ClientHelloError::new(part, detail)) }
}

/// RFC 8701 section 2: two equal bytes that end in `a`.
fn is_grease(code: u16) -> bool {
    code & 0x0f0f == 0x0a0a && code >> 8 == code & 0xff
}

fn distinct<T: PartialEq + fmt::Debug>(part: &'static str, list: &[T]) -> Checked {
    // Lists of a hello are short.
    let twice = list.iter().enumerate().find(|(at, item)| list[..*at].contains(item));
    match twice {
        Some((_, item)) => Err(ClientHelloError::new(part, format!("{item:?} is there twice"))),
        None => Ok(()),
    }
}

fn ungreased<T: Copy + Into<u16>>(part: &'static str, list: &[T]) -> Checked {
    let grease = list.iter().any(|code| is_grease((*code).into()));
    ensure(!grease, part, "GREASE is not listed, because its values are drawn: see `grease`")
}

/// Code points that are listed once each, and are no GREASE.
fn codes<T: Copy + PartialEq + fmt::Debug + Into<u16>>(part: &'static str, list: &[T]) -> Checked {
    ungreased(part, list)?;
    distinct(part, list)
}

impl ClientHello {
    /// Whether the parts fit together. That BoringSSL can send it is not looked at here.
    ///
    /// # Errors
    /// The first part that is wrong.
    pub fn check(&self) -> Result<(), ClientHelloError> {
        self.check_versions()?;
        self.check_cipher_suites()?;
        self.check_groups()?;
        // Safari lists one of them twice.
        ungreased("signature_algorithms", &self.signature_algorithms)?;
        let none = self.signature_algorithms.is_empty();
        ensure(!none, "signature_algorithms", "there are none")?;
        let stands = self.signature_algorithms_grease != Some(true) || self.grease;
        ensure(stands, "signature_algorithms_grease", "there is none where `grease` is off")?;
        codes("delegated_credentials", &self.delegated_credentials)?;
        self.check_protocols()?;
        distinct("certificate_compression", &self.certificate_compression)?;
        if let Some(list) = &self.http1_certificate_compression {
            distinct("http1_certificate_compression", list)?;
        }
        self.check_ech_grease()?;
        self.check_sizes()?;
        self.check_order()
    }

    fn offers_tls13(&self) -> bool {
        self.max_version >= TlsVersion::Tls13
    }

    fn offers_tls12(&self) -> bool {
        self.min_version <= TlsVersion::Tls12
    }

    fn check_versions(&self) -> Checked {
        ensure(self.min_version <= self.max_version, "min_version", "it is above max_version")?;
        const PART: &str = "advertised_versions";
        distinct(PART, &self.advertised_versions)?;
        let below = self.advertised_versions.iter().all(|version| *version < self.min_version);
        ensure(below, PART, "they are below min_version")?;
        // Without TLS 1.3 there is no list of versions.
        ensure(self.advertised_versions.is_empty() || self.offers_tls13(), PART, "TLS 1.3 has them")
    }

    fn check_cipher_suites(&self) -> Checked {
        const PART: &str = "cipher_suites";
        codes(PART, &self.cipher_suites)?;
        let (tls13, others) = self.suites();
        let sorted = others.iter().all(|suite| !suite.is_tls13());
        ensure(sorted, PART, "those of TLS 1.3 come before the others")?;
        let fits = tls13.is_empty() != self.offers_tls13();
        ensure(fits, PART, "there are some of TLS 1.3 if it is offered, and only then")?;
        let fits = others.is_empty() != self.offers_tls12();
        ensure(
            fits,
            PART,
            "there are some of TLS 1.2 if it or a lower one is offered, and only then",
        )
    }

    fn check_groups(&self) -> Checked {
        codes("groups", &self.groups)?;
        ensure(!self.groups.is_empty(), "groups", "there are none")?;
        let mut groups = self.groups.iter();
        // RFC 8446 section 4.2.8: shares stand in the order of the groups.
        let ordered = self.key_shares.iter().all(|share| groups.any(|group| group == share));
        let detail = "they are some of `groups`, in the same order";
        ensure(ordered, "key_shares", detail)?;
        ensure(self.key_shares.is_empty() || self.offers_tls13(), "key_shares", "TLS 1.3 has them")
    }

    fn check_protocols(&self) -> Checked {
        let sized = |name: &String| (1..=255).contains(&name.len());
        ensure(self.alpn.iter().all(sized), "alpn", "a protocol's name has 1 to 255 bytes")?;
        distinct("alpn", &self.alpn)?;
        let Some(alps) = &self.application_settings else { return Ok(()) };
        const PART: &str = "application_settings";
        let known = [Extension::ALPS_OLD, Extension::ALPS].contains(&alps.code_point);
        ensure(known, PART, "its code point is 17613 or, the old one, 17513")?;
        ensure(self.offers_tls13(), PART, "TLS 1.3 has them")?;
        ensure(!alps.protocols.is_empty(), PART, "they are for at least one protocol")?;
        let names: Vec<_> = alps.protocols.iter().map(|protocol| &protocol.name).collect();
        distinct(PART, &names)?;
        let offered = names.iter().all(|name| self.alpn.contains(name));
        ensure(offered, PART, "they are for protocols of `alpn`")?;
        let small = |settings: &[u8]| settings.len() <= usize::from(u16::MAX);
        let small = alps.protocols.iter().all(|protocol| small(&protocol.settings.0));
        ensure(small, PART, "settings have at most 65535 bytes")
    }

    fn check_ech_grease(&self) -> Checked {
        let Some(ech) = &self.ech_grease else { return Ok(()) };
        const PART: &str = "ech_grease";
        ensure(self.offers_tls13(), PART, "TLS 1.3 has it")?;
        // An AEAD's tag has 16 bytes, and a hello that is hidden has some more. The upper bound keeps
        // the whole hello in one record.
        let lengths = ech.payload_lengths.iter().chain(&ech.payload_lengths_with_psk);
        let sized = lengths.into_iter().all(|length| (17..=4096).contains(length));
        ensure(sized, PART, "a payload has 17 to 4096 bytes")?;
        let known = ech.aeads.iter().all(|aead| HpkeAead::name(*aead).is_some());
        ensure(known, PART, "its AEAD is AES-128-GCM, AES-256-GCM or ChaCha20Poly1305")
    }

    fn check_sizes(&self) -> Checked {
        if let Some(limit) = self.record_size_limit {
            // RFC 8449 section 4.
            let detail = "it is 64 to 16385 bytes";
            ensure((64..=16385).contains(&limit), "record_size_limit", detail)?;
        }
        let anchors = self.trust_anchors.as_deref().unwrap_or_default();
        distinct("trust_anchors", anchors)?;
        let bytes: usize = anchors.iter().map(|anchor| 1 + anchor.as_bytes().len()).sum();
        ensure(bytes <= 8192, "trust_anchors", "they have at most 8192 bytes")
    }

    fn check_order(&self) -> Checked {
        let ExtensionOrder::Fixed(order) = &self.extension_order else { return Ok(()) };
        const PART: &str = "extension_order";
        codes(PART, order)?;
        match self.extensions().find(|extension| !order.contains(extension)) {
            Some(missing) => {
                Err(ClientHelloError::new(PART, format!("{missing} is sent, but not listed")))
            }
            None => Ok(()),
        }
    }

    /// The cipher suites of TLS 1.3, and the others.
    pub fn suites(&self) -> (&[CipherSuite], &[CipherSuite]) {
        let tls13 = self.cipher_suites.iter().take_while(|suite| suite.is_tls13()).count();
        self.cipher_suites.split_at(tls13)
    }

    /// Extensions that a first hello to a named host has, whatever their order.
    pub(super) fn extensions(&self) -> impl Iterator<Item = Extension> {
        let (tls12, tls13) = (self.offers_tls12(), self.offers_tls13());
        let alps = self.application_settings.as_ref().map(|alps| alps.code_point.0);
        let sent = [
            (0, true),
            (5, self.ocsp_stapling),
            (10, true),
            (11, tls12),
            (13, true),
            (16, !self.alpn.is_empty()),
            (18, self.signed_certificate_timestamps),
            (23, tls12),
            (27, tls13 && !self.certificate_compression.is_empty()),
            (28, self.record_size_limit.is_some()),
            (34, !self.delegated_credentials.is_empty()),
            (35, tls12 && self.session_ticket != SessionTicket::Never),
            (43, tls13),
            (45, tls13),
            (51, tls13),
            (alps.unwrap_or_default(), alps.is_some()),
            (51764, self.trust_anchors.is_some()),
            (65037, self.ech_grease.is_some()),
            (65281, tls12),
        ];
        sent.into_iter().filter(|(_, sent)| *sent).map(|(code, _)| Extension(code))
    }
}
