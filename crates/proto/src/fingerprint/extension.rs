//! Extensions of a ClientHello (RFC 8446 section 4.2), by content.

use bytes::Bytes;

use super::cursor::Cursor;
use super::is_grease;

/// Declares the extensions; their names and `Debug` come from the same table.
macro_rules! extensions {
    ($($(#[$meta:meta])* $value:literal $name:ident = $text:literal,)+) => {
        /// The type of an extension. Unknown values are kept.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct ExtensionId(pub u16);

        impl ExtensionId {
            $($(#[$meta])* pub const $name: Self = Self($value);)+

            /// The registered name, or what it is known by; `GREASE` for RFC 8701.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)+
                    other => is_grease(other).then_some("GREASE"),
                }
            }
        }
    };
}

extensions! {
    /// RFC 6066 section 3.
    0 SERVER_NAME = "server_name",
    /// RFC 6066 section 8.
    5 STATUS_REQUEST = "status_request",
    /// RFC 8446 section 4.2.7.
    10 SUPPORTED_GROUPS = "supported_groups",
    /// RFC 8422 section 5.1.2.
    11 EC_POINT_FORMATS = "ec_point_formats",
    /// RFC 8446 section 4.2.3.
    13 SIGNATURE_ALGORITHMS = "signature_algorithms",
    /// RFC 7301.
    16 ALPN = "application_layer_protocol_negotiation",
    /// RFC 6962 section 3.3.1.
    18 SIGNED_CERTIFICATE_TIMESTAMP = "signed_certificate_timestamp",
    /// RFC 7685.
    21 PADDING = "padding",
    /// RFC 7366.
    22 ENCRYPT_THEN_MAC = "encrypt_then_mac",
    /// RFC 7627.
    23 EXTENDED_MASTER_SECRET = "extended_master_secret",
    /// RFC 8879.
    27 COMPRESS_CERTIFICATE = "compress_certificate",
    /// RFC 8449.
    28 RECORD_SIZE_LIMIT = "record_size_limit",
    /// RFC 9345.
    34 DELEGATED_CREDENTIAL = "delegated_credential",
    /// RFC 5077.
    35 SESSION_TICKET = "session_ticket",
    /// RFC 8446 section 4.2.11.
    41 PRE_SHARED_KEY = "pre_shared_key",
    /// RFC 8446 section 4.2.10.
    42 EARLY_DATA = "early_data",
    /// RFC 8446 section 4.2.1.
    43 SUPPORTED_VERSIONS = "supported_versions",
    /// RFC 8446 section 4.2.2.
    44 COOKIE = "cookie",
    /// RFC 8446 section 4.2.9.
    45 PSK_KEY_EXCHANGE_MODES = "psk_key_exchange_modes",
    /// RFC 8446 section 4.2.4.
    47 CERTIFICATE_AUTHORITIES = "certificate_authorities",
    /// RFC 8446 section 4.2.6.
    49 POST_HANDSHAKE_AUTH = "post_handshake_auth",
    /// RFC 8446 section 4.2.3.
    50 SIGNATURE_ALGORITHMS_CERT = "signature_algorithms_cert",
    /// RFC 8446 section 4.2.8.
    51 KEY_SHARE = "key_share",
    /// RFC 9001 section 8.2.
    57 QUIC_TRANSPORT_PARAMETERS = "quic_transport_parameters",
    /// ALPS as Chromium sent it before version 135; draft-vvv-tls-alps.
    17513 APPLICATION_SETTINGS_OLD = "application_settings_old",
    /// ALPS; draft-vvv-tls-alps.
    17613 APPLICATION_SETTINGS = "application_settings",
    /// draft-ietf-tls-trust-anchor-ids.
    51764 TRUST_ANCHORS = "trust_anchors",
    /// RFC 9849.
    65037 ENCRYPTED_CLIENT_HELLO = "encrypted_client_hello",
    /// RFC 5746.
    65281 RENEGOTIATION_INFO = "renegotiation_info",
}

impl std::fmt::Debug for ExtensionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// One extension, as it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extension {
    /// Its type.
    pub id: ExtensionId,
    /// Its bytes, without type and length.
    pub raw: Bytes,
    /// What they say.
    pub content: Content,
}

/// What an extension says. Which list a list is, its [`ExtensionId`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// The type is one of RFC 8701's.
    Grease,
    /// The content is empty, as it has to be in this extension.
    Empty,
    /// server_name: the host name.
    ServerName(Bytes),
    /// status_request.
    StatusRequest(StatusRequest),
    /// supported_groups, signature_algorithms, signature_algorithms_cert, supported_versions,
    /// compress_certificate, delegated_credential.
    Numbers(Vec<u16>),
    /// psk_key_exchange_modes, ec_point_formats.
    Octets(Bytes),
    /// ALPN, and application_settings, old and new.
    Protocols(Vec<Bytes>),
    /// key_share.
    KeyShares(Vec<KeyShare>),
    /// record_size_limit, in bytes.
    RecordSizeLimit(u16),
    /// pre_shared_key.
    PreSharedKey(PskOffer),
    /// encrypted_client_hello of an outer ClientHello.
    Ech(Ech),
    /// trust_anchors: the identifiers, in DER without tag and length.
    TrustAnchors(Vec<Bytes>),
    /// padding, session_ticket, cookie, certificate_authorities, renegotiation_info,
    /// quic_transport_parameters, and what is not known: the bytes say it.
    Opaque,
    /// The bytes are not what the extension's definition asks for.
    Malformed,
}

/// What status_request asks for (RFC 6066 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusRequest {
    /// 1 for OCSP.
    pub status_type: u8,
    /// Bytes of the list of responders.
    pub responders: u16,
    /// Bytes of the extensions.
    pub extensions: u16,
}

/// A key share (RFC 8446 section 4.2.8), without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyShare {
    /// The group.
    pub group: u16,
    /// Bytes of its key.
    pub len: u16,
}

/// The offered pre-shared keys (RFC 8446 section 4.2.11), by length in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PskOffer {
    /// Of each identity.
    pub identities: Vec<u16>,
    /// Of each binder.
    pub binders: Vec<u8>,
}

/// An encrypted ClientHello (RFC 9849 section 5), or GREASE of it: nothing tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ech {
    /// HPKE's key derivation function.
    pub kdf: u16,
    /// HPKE's cipher.
    pub aead: u16,
    /// Which of the server's configurations.
    pub config_id: u8,
    /// Bytes of the encapsulated key. Zero in the second ClientHello after a HelloRetryRequest.
    pub enc_len: u16,
    /// Bytes of the encrypted ClientHello.
    pub payload_len: u16,
}

impl Extension {
    pub(super) fn read(id: ExtensionId, raw: Bytes) -> Self {
        let content = if is_grease(id.0) {
            Content::Grease
        } else {
            content(id, &raw).unwrap_or(Content::Malformed)
        };
        Self { id, raw, content }
    }
}

/// `None` when the bytes contradict the definition.
fn content(id: ExtensionId, raw: &Bytes) -> Option<Content> {
    use ExtensionId as Id;
    let mut cursor = Cursor(raw);
    let content = match id {
        Id::SIGNED_CERTIFICATE_TIMESTAMP
        | Id::ENCRYPT_THEN_MAC
        | Id::EXTENDED_MASTER_SECRET
        | Id::EARLY_DATA
        | Id::POST_HANDSHAKE_AUTH => Content::Empty,
        Id::SERVER_NAME => Content::ServerName(host_name(&mut cursor, raw)?),
        Id::STATUS_REQUEST => Content::StatusRequest(status_request(&mut cursor)?),
        Id::SUPPORTED_GROUPS
        | Id::SIGNATURE_ALGORITHMS
        | Id::SIGNATURE_ALGORITHMS_CERT
        | Id::DELEGATED_CREDENTIAL => Content::Numbers(Cursor(cursor.long()?).numbers()?),
        Id::SUPPORTED_VERSIONS | Id::COMPRESS_CERTIFICATE => {
            Content::Numbers(Cursor(cursor.short()?).numbers()?)
        }
        Id::EC_POINT_FORMATS | Id::PSK_KEY_EXCHANGE_MODES => {
            Content::Octets(raw.slice_ref(cursor.short()?))
        }
        Id::ALPN | Id::APPLICATION_SETTINGS | Id::APPLICATION_SETTINGS_OLD => {
            Content::Protocols(strings(&mut cursor, raw)?)
        }
        Id::TRUST_ANCHORS => Content::TrustAnchors(strings(&mut cursor, raw)?),
        Id::KEY_SHARE => Content::KeyShares(Cursor(cursor.long()?).items(key_share)?),
        Id::RECORD_SIZE_LIMIT => Content::RecordSizeLimit(cursor.u16()?),
        Id::PRE_SHARED_KEY => Content::PreSharedKey(psk_offer(&mut cursor)?),
        Id::ENCRYPTED_CLIENT_HELLO => Content::Ech(ech(&mut cursor)?),
        _ => return Some(Content::Opaque),
    };
    cursor.is_empty().then_some(content)
}

/// RFC 6066 section 3: there is one name type, 0, and one name of it.
fn host_name(cursor: &mut Cursor<'_>, raw: &Bytes) -> Option<Bytes> {
    let mut names = Cursor(cursor.long()?);
    let kind = names.u8()?;
    let name = names.long()?;
    (kind == 0 && names.is_empty()).then(|| raw.slice_ref(name))
}

fn status_request(cursor: &mut Cursor<'_>) -> Option<StatusRequest> {
    let status_type = cursor.u8()?;
    let responders = cursor.u16()?;
    cursor.take(responders.into())?;
    let extensions = cursor.u16()?;
    cursor.take(extensions.into())?;
    Some(StatusRequest { status_type, responders, extensions })
}

/// A list of strings that each have one byte of length.
fn strings(cursor: &mut Cursor<'_>, raw: &Bytes) -> Option<Vec<Bytes>> {
    Cursor(cursor.long()?).items(|cursor| cursor.short().map(|text| raw.slice_ref(text)))
}

fn key_share(cursor: &mut Cursor<'_>) -> Option<KeyShare> {
    let group = cursor.u16()?;
    let len = cursor.u16()?;
    cursor.take(len.into())?;
    Some(KeyShare { group, len })
}

fn psk_offer(cursor: &mut Cursor<'_>) -> Option<PskOffer> {
    let identities = Cursor(cursor.long()?).items(|cursor| {
        let len = cursor.u16()?;
        cursor.take(len.into())?;
        // The obfuscated age of the ticket.
        cursor.array::<4>()?;
        Some(len)
    })?;
    let binders = Cursor(cursor.long()?).items(|cursor| {
        let len = cursor.u8()?;
        cursor.take(len.into())?;
        Some(len)
    })?;
    Some(PskOffer { identities, binders })
}

fn ech(cursor: &mut Cursor<'_>) -> Option<Ech> {
    // RFC 9849 section 5: 0 is outer; 1, inner, is never in the clear.
    if cursor.u8()? != 0 {
        return None;
    }
    let (kdf, aead, config_id) = (cursor.u16()?, cursor.u16()?, cursor.u8()?);
    let enc_len = cursor.u16()?;
    cursor.take(enc_len.into())?;
    let payload_len = cursor.u16()?;
    cursor.take(payload_len.into())?;
    Some(Ech { kdf, aead, config_id, enc_len, payload_len })
}
