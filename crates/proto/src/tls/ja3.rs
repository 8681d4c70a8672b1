//! A hello from the text of a JA3 fingerprint.

use super::{
    CipherSuite, ClientHello, ClientHelloError, Extension, ExtensionOrder, Group, SessionTicket,
    TlsVersion,
};

/// RFC 8446 section 4.1.2: what TLS 1.2 and 1.3 say in `legacy_version`.
const LEGACY_VERSION: &str = "771";

impl ClientHello {
    /// The hello that `version,ciphers,extensions,groups,point formats` describes, as JA3 writes it before
    /// it is hashed. Extensions stand in that order, which needs a patched BoringSSL.
    ///
    /// A JA3 says which extensions there are, and of most not what they say. That, and whether there is
    /// GREASE, is taken from `base`; an extension of which `base` knows nothing is refused.
    ///
    /// # Errors
    /// [`ClientHelloError`] with the part that cannot be read, or not be said: `ja3`, `version`,
    /// `cipher_suites`, `extensions`, `groups` or `point_formats`, and the parts of
    /// [`check`](Self::check).
    pub fn from_ja3(text: &str, base: &ClientHello) -> Result<Self, ClientHelloError> {
        let parts: Vec<&str> = text.trim().split(',').collect();
        let [version, ciphers, extensions, groups, formats] = parts[..] else {
            return Err(ClientHelloError::new("ja3", "it is five parts between four commas"));
        };
        if version != LEGACY_VERSION {
            let detail = format!("{version:?} is not 771, which is all that is sent");
            return Err(ClientHelloError::new("version", detail));
        }
        let mut extensions: Vec<Extension> = numbers("extensions", extensions)?;
        // What BoringSSL pads with stands last, where the length asks for it.
        let padding = extensions.pop_if(|last| *last == Extension(21)).is_some();
        let has = |code: u16| extensions.contains(&Extension(code));
        let mut hello = base.clone();
        hello.padding = padding;
        hello.cipher_suites = numbers::<CipherSuite>("cipher_suites", ciphers)?;
        hello.groups = numbers::<Group>("groups", groups)?;
        // The base's, as far as they are offered; TLS 1.3 without any would cost a round trip.
        hello.key_shares.retain(|share| hello.groups.contains(share));
        hello.key_shares.sort_by_key(|share| hello.groups.iter().position(|group| group == share));
        if !has(51) {
            hello.key_shares.clear();
        } else if hello.key_shares.is_empty() {
            hello.key_shares = hello.groups.iter().take(1).copied().collect();
        }
        let suites_of_tls12 = !hello.suites().1.is_empty();
        hello.max_version = if has(43) { TlsVersion::Tls13 } else { TlsVersion::Tls12 };
        hello.min_version = if suites_of_tls12 { TlsVersion::Tls12 } else { TlsVersion::Tls13 };
        let expected = if suites_of_tls12 { "0" } else { "" };
        if formats != expected {
            let detail = format!("{formats:?} is not {expected:?}, which is all that is sent");
            return Err(ClientHelloError::new("point_formats", detail));
        }
        hello.keep_extensions(&extensions)?;
        hello.extension_order = ExtensionOrder::Fixed(extensions);
        hello.check()?;
        Ok(hello)
    }

    /// Drops what is not among `extensions`, and refuses what is, but of which nothing is known.
    fn keep_extensions(&mut self, extensions: &[Extension]) -> Result<(), ClientHelloError> {
        let has = |code: u16| extensions.contains(&Extension(code));
        self.ocsp_stapling = has(5);
        self.signed_certificate_timestamps = has(18);
        self.session_ticket = match self.session_ticket {
            _ if !has(35) => SessionTicket::Never,
            SessionTicket::Never => SessionTicket::Always,
            kept => kept,
        };
        self.ech_grease = has(65037).then(|| self.ech_grease.take().unwrap_or_default());
        if !has(16) {
            self.alpn.clear();
        }
        if !has(43) {
            self.advertised_versions.clear();
        }
        if !has(27) {
            self.certificate_compression.clear();
            self.http1_certificate_compression = None;
        }
        self.record_size_limit = self.record_size_limit.filter(|_| has(28));
        if !has(34) {
            self.delegated_credentials.clear();
        }
        let offers_alps = |settings: &super::ApplicationSettings| has(settings.code_point.0);
        self.application_settings = self.application_settings.take().filter(offers_alps);
        self.trust_anchors = self.trust_anchors.take().filter(|_| has(51764));
        let sent: Vec<Extension> = self.extensions().collect();
        match extensions.iter().find(|extension| !sent.contains(extension)) {
            None => Ok(()),
            Some(extension) => {
                let why = match extension.0 {
                    41 | 42 => "belongs to a session that is resumed",
                    21 => "stands last where it is sent",
                    16 | 27 | 28 | 34 | 17513 | 17613 | 51764 => {
                        "says something, and neither JA3 nor the hello that it is based on says what"
                    }
                    11 | 23 | 65281 => {
                        "is sent when there are cipher suites of TLS 1.2, and only then"
                    }
                    45 | 51 => "is sent with supported_versions (43), and only then",
                    _ => "is none that can be sent",
                };
                Err(ClientHelloError::new("extensions", format!("{extension} {why}")))
            }
        }
    }
}

/// Decimal numbers between hyphens.
fn numbers<T: From<u16>>(part: &'static str, text: &str) -> Result<Vec<T>, ClientHelloError> {
    let words = text.split('-').filter(|_| !text.is_empty());
    let number = |word: &str| {
        let number = word.parse::<u16>().map(T::from);
        number.map_err(|_| ClientHelloError::new(part, format!("{word:?} is no number of 16 bits")))
    };
    words.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ApplicationProtocol, ApplicationSettings, CertificateCompression};
    use super::*;

    /// What Chromium 131 sends, in an order of its own.
    const CHROMIUM: &str = "771,4865-4866-4867-49195-49199-49196-49200-52393-52392-49171-49172-156-157-47-53,\
         0-5-10-11-13-16-18-23-27-35-43-45-51-17513-65037-65281,4588-29-23-24,0";

    fn base() -> ClientHello {
        let alps = ApplicationSettings {
            code_point: Extension(17513),
            protocols: vec![ApplicationProtocol {
                name: "h2".to_owned(),
                settings: Default::default(),
            }],
        };
        ClientHello {
            grease: true,
            signature_algorithms: vec![0x0403.into(), 0x0804.into()],
            key_shares: vec![Group(29)],
            alpn: vec!["h2".to_owned(), "http/1.1".to_owned()],
            certificate_compression: vec![CertificateCompression::Brotli],
            application_settings: Some(alps),
            record_size_limit: Some(16385),
            ..ClientHello::default()
        }
    }

    #[test]
    fn what_ja3_says_is_said_and_the_rest_is_the_base_s() {
        let hello = ClientHello::from_ja3(CHROMIUM, &base()).expect("a hello");
        assert_eq!((hello.min_version, hello.max_version), (TlsVersion::Tls12, TlsVersion::Tls13));
        assert_eq!((hello.cipher_suites.len(), hello.cipher_suites[3]), (15, CipherSuite(0xc02b)));
        assert_eq!(hello.groups, [4588, 29, 23, 24].map(Group));
        assert_eq!(hello.key_shares, [Group(29)]);
        assert!(hello.ocsp_stapling && hello.signed_certificate_timestamps && hello.grease);
        assert!(hello.ech_grease.is_some());
        assert_eq!(hello.record_size_limit, None, "JA3 does not list it");
        let ExtensionOrder::Fixed(order) = &hello.extension_order else {
            panic!("not in order");
        };
        assert_eq!(order[..3], [0, 5, 10].map(Extension));
    }

    #[test]
    fn less_is_sent_when_less_is_listed() {
        let text = "771,49195-49199,0-10-11-13-23-65281,29-23,0";
        let hello = ClientHello::from_ja3(text, &base()).expect("a hello of TLS 1.2");
        assert_eq!(hello.max_version, TlsVersion::Tls12);
        assert!(hello.alpn.is_empty() && hello.application_settings.is_none());
        assert_eq!(hello.session_ticket, SessionTicket::Never);
        let text = "771,4865,0-10-13-43-45-51,23-24,";
        let hello = ClientHello::from_ja3(text, &base());
        // The base's share is not offered: the first group is guessed.
        assert_eq!(hello.map(|hello| hello.key_shares), Ok(vec![Group(23)]));
    }

    #[test]
    fn what_is_padded_is_padded_at_its_end() {
        let text = "771,4865-49195,0-23-65281-10-11-13-51-45-43-21,29,0";
        let mut from = base();
        from.advertised_versions = vec![TlsVersion::Tls11];
        let hello = ClientHello::from_ja3(text, &from).expect("a hello");
        assert!(hello.padding);
        assert_eq!(hello.advertised_versions, [TlsVersion::Tls11]);
        let ExtensionOrder::Fixed(order) = &hello.extension_order else {
            panic!("not in order");
        };
        assert_eq!(order.last(), Some(&Extension(43)));
        let text = text.trim_end_matches("-21,29,0").to_owned() + ",29,0";
        assert_eq!(ClientHello::from_ja3(&text, &from).map(|hello| hello.padding), Ok(false));
    }

    #[test]
    fn an_error_names_the_part() {
        for (text, part) in [
            ("", "ja3"),
            ("771,1,2,3", "ja3"),
            ("769,47,0-10,29,0", "version"),
            ("771,x,0-10,29,0", "cipher_suites"),
            ("771,2570-47,0-10-11-13-23-65281,29,0", "cipher_suites"),
            ("771,47,0-10-11-13-23-65281,99999,0", "groups"),
            ("771,47,0-10-11-13-23-65281,29,0-1-2", "point_formats"),
            ("771,47,0-10-11-13-21-23-65281,29,0", "extensions"),
            ("771,47,0-10-11-13-23-34-65281,29,0", "extensions"),
            ("771,47,0-10-11-13-23-13172-65281,29,0", "extensions"),
            ("771,4865-47,0-10-11-13-23-41-43-45-51-65281,29,0", "extensions"),
            ("771,47,0-10-11-13-23-51-65281,29,0", "extensions"),
            // Always sent, and not listed.
            ("771,47,0-10-11-13-65281,29,0", "extension_order"),
        ] {
            let error = ClientHello::from_ja3(text, &base()).expect_err(text);
            assert_eq!(error.part(), part, "{text}: {error}");
        }
    }
}
