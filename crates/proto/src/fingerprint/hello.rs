//! The ClientHello (RFC 8446 section 4.1.2).

use bytes::Bytes;

use super::cursor::Cursor;
use super::extension::{Content, Extension, ExtensionId, KeyShare};
use super::is_grease;

/// The handshake message type (RFC 8446 section 4).
pub(super) const CLIENT_HELLO: u8 = 1;

/// Message type and 24-bit length (RFC 8446 section 4).
pub(super) const MESSAGE_HEADER: usize = 4;

reasons! {
    /// Why bytes are no ClientHello.
    HelloError {
        /// RFC 8446 section 5.1: a connection begins with a record of type 22.
        NotTls = "the connection does not begin with a TLS handshake record",
        /// RFC 8446 section 5.1.
        RecordLength = "a handshake record that is empty or longer than 2^14 bytes",
        /// RFC 8446 section 4.
        NotClientHello = "the first handshake message is not a ClientHello",
        /// [`MAX_HELLO`](super::MAX_HELLO).
        TooLong = "the ClientHello is longer than this reader takes",
        /// RFC 8446 section 4.1.2.
        Malformed = "the lengths in the ClientHello contradict each other",
    }
}

/// A ClientHello as it was sent: every list in its order, GREASE included.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientHello {
    /// 0x0303 in TLS 1.2 and 1.3.
    pub legacy_version: u16,
    /// The client's randomness.
    pub random: [u8; 32],
    /// In TLS 1.3 over TCP 32 random bytes (RFC 8446 appendix D.4).
    pub session_id: Bytes,
    /// The cipher suites.
    pub cipher_suites: Vec<u16>,
    /// The compression methods: only 0, unless the client is very old.
    pub compression_methods: Bytes,
    /// The extensions.
    pub extensions: Vec<Extension>,
    /// The whole handshake message, its four bytes of type and length included.
    pub message: Bytes,
}

impl ClientHello {
    /// Reads a whole handshake message, its type and length included: what QUIC carries in CRYPTO
    /// frames, and TLS over TCP in records.
    ///
    /// An extension whose content cannot be read is [`Content::Malformed`], not an error.
    ///
    /// # Errors
    /// [`HelloError::NotClientHello`] and [`HelloError::Malformed`].
    pub fn parse(message: Bytes) -> Result<Self, HelloError> {
        let Some((&[kind, a, b, c], body)) = message.split_first_chunk::<MESSAGE_HEADER>() else {
            return Err(HelloError::Malformed);
        };
        if kind != CLIENT_HELLO {
            return Err(HelloError::NotClientHello);
        }
        if u32::from_be_bytes([0, a, b, c]) as usize != body.len() {
            return Err(HelloError::Malformed);
        }
        Self::body(&message, Cursor(body)).ok_or(HelloError::Malformed)
    }

    fn body(message: &Bytes, mut cursor: Cursor<'_>) -> Option<Self> {
        let legacy_version = cursor.u16()?;
        let random = cursor.array()?;
        let session_id = message.slice_ref(cursor.short()?);
        let cipher_suites = Cursor(cursor.long()?).numbers()?;
        let compression_methods = message.slice_ref(cursor.short()?);
        // RFC 5246 section 7.4.1.2: no extensions are no vector of extensions either.
        let extensions = if cursor.is_empty() { &[][..] } else { cursor.long()? };
        let extensions = Cursor(extensions).items(|cursor| {
            let id = ExtensionId(cursor.u16()?);
            Some(Extension::read(id, message.slice_ref(cursor.long()?)))
        })?;
        let message = message.clone();
        cursor.is_empty().then_some(Self {
            legacy_version,
            random,
            session_id,
            cipher_suites,
            compression_methods,
            extensions,
            message,
        })
    }

    /// The first extension of this kind.
    #[must_use]
    pub fn extension(&self, id: ExtensionId) -> Option<&Extension> {
        self.extensions.iter().find(|extension| extension.id == id)
    }

    fn content(&self, id: ExtensionId) -> Option<&Content> {
        self.extension(id).map(|extension| &extension.content)
    }

    /// The host name asked for (RFC 6066 section 3), if it is UTF-8.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        match self.content(ExtensionId::SERVER_NAME)? {
            Content::ServerName(name) => std::str::from_utf8(name).ok(),
            _ => None,
        }
    }

    /// The protocols of ALPN (RFC 7301); empty without the extension.
    #[must_use]
    pub fn alpn(&self) -> &[Bytes] {
        match self.content(ExtensionId::ALPN) {
            Some(Content::Protocols(protocols)) => protocols,
            _ => &[],
        }
    }

    /// The supported groups; empty without the extension.
    #[must_use]
    pub fn groups(&self) -> &[u16] {
        self.numbers(ExtensionId::SUPPORTED_GROUPS)
    }

    /// The signature algorithms; empty without the extension.
    #[must_use]
    pub fn signature_algorithms(&self) -> &[u16] {
        self.numbers(ExtensionId::SIGNATURE_ALGORITHMS)
    }

    /// The versions of `supported_versions`; empty without the extension, as before TLS 1.3.
    #[must_use]
    pub fn versions(&self) -> &[u16] {
        self.numbers(ExtensionId::SUPPORTED_VERSIONS)
    }

    /// The highest version offered that is not GREASE: where there is no list, the legacy version.
    #[must_use]
    pub fn version(&self) -> u16 {
        let offered = self.versions().iter().copied().filter(|&version| !is_grease(version));
        offered.max().unwrap_or(self.legacy_version)
    }

    /// The key shares; empty without the extension.
    #[must_use]
    pub fn key_shares(&self) -> &[KeyShare] {
        match self.content(ExtensionId::KEY_SHARE) {
            Some(Content::KeyShares(shares)) => shares,
            _ => &[],
        }
    }

    /// The algorithms of certificate compression (RFC 8879); empty without the extension.
    #[must_use]
    pub fn certificate_compression(&self) -> &[u16] {
        self.numbers(ExtensionId::COMPRESS_CERTIFICATE)
    }

    /// The PSK key exchange modes; empty without the extension.
    #[must_use]
    pub fn psk_modes(&self) -> &[u8] {
        self.octets(ExtensionId::PSK_KEY_EXCHANGE_MODES)
    }

    /// The point formats (RFC 8422); empty without the extension.
    #[must_use]
    pub fn point_formats(&self) -> &[u8] {
        self.octets(ExtensionId::EC_POINT_FORMATS)
    }

    fn numbers(&self, id: ExtensionId) -> &[u16] {
        match self.content(id) {
            Some(Content::Numbers(numbers)) => numbers,
            _ => &[],
        }
    }

    fn octets(&self, id: ExtensionId) -> &[u8] {
        match self.content(id) {
            Some(Content::Octets(octets)) => octets,
            _ => &[],
        }
    }
}
