//! Metadata: the fields of a call that are its user's.

use std::fmt;

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::{Fields, InvalidField};

/// The protocol: values are sent without padding, and accepted with and without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        // Some encoders leave bits set that no byte comes of.
        .with_decode_allow_trailing_bits(true),
);

/// The ordered list of a call's metadata: text under names of one's own, and bytes under names that end
/// in `-bin`.
///
/// Names are lower case on the wire. Those that HTTP or gRPC use for themselves are not metadata: they
/// are refused when added, and left out when received.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata(Fields);

/// Why something is not metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidMetadata {
    /// The name belongs to HTTP or to gRPC.
    Reserved,
    /// The name does not end in `-bin`, or does and should not.
    WrongKind,
    /// The name or the value has a byte that it may not have.
    Field(InvalidField),
}

impl fmt::Display for InvalidMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reserved => "the name is reserved by HTTP or gRPC",
            Self::WrongKind => "names that end in \"-bin\" are for bytes, and only they",
            Self::Field(_) => "name or value is not valid in a field",
        })
    }
}

impl std::error::Error for InvalidMetadata {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Field(error) => Some(error),
            _ => None,
        }
    }
}

impl From<InvalidField> for InvalidMetadata {
    fn from(error: InvalidField) -> Self {
        Self::Field(error)
    }
}

impl Metadata {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The metadata among the fields of a head or of a trailer section.
    #[must_use]
    pub fn received(mut fields: Fields) -> Self {
        fields.retain(|name, _| !is_reserved(name.as_bytes()));
        Self(fields)
    }

    /// Adds text.
    ///
    /// # Errors
    /// The name is reserved or ends in `-bin`; the value is not ASCII between SP and `~`.
    pub fn append(&mut self, name: &str, value: &str) -> Result<(), InvalidMetadata> {
        if is_binary(name) {
            return Err(InvalidMetadata::WrongKind);
        }
        if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(InvalidMetadata::Field(InvalidField::Value));
        }
        self.store(name, value.as_bytes())
    }

    /// Adds bytes, which travel as base64.
    ///
    /// # Errors
    /// The name is reserved or does not end in `-bin`.
    pub fn append_bin(&mut self, name: &str, value: &[u8]) -> Result<(), InvalidMetadata> {
        if !is_binary(name) {
            return Err(InvalidMetadata::WrongKind);
        }
        self.store(name, BASE64.encode(value).as_bytes())
    }

    fn store(&mut self, name: &str, value: &[u8]) -> Result<(), InvalidMetadata> {
        let name = name.to_ascii_lowercase();
        if is_reserved(name.as_bytes()) {
            return Err(InvalidMetadata::Reserved);
        }
        Ok(self.0.append(&name, value)?)
    }

    /// The first value of that name, when it is text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get_str(name).filter(|_| !is_binary(name))
    }

    /// All values of that name that are text.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        let values = self.0.get_all(name).filter(|_| !is_binary(name));
        values.filter_map(|value| std::str::from_utf8(value).ok())
    }

    /// The first value of a `-bin` name, decoded; `None` also when it is not base64.
    #[must_use]
    pub fn get_bin(&self, name: &str) -> Option<Vec<u8>> {
        self.get_all_bin(name).next()
    }

    /// All values of a `-bin` name, decoded. Several may have been joined into one field.
    pub fn get_all_bin<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Vec<u8>> + 'a {
        binary_values(&self.0, name)
    }

    /// The entries as they are on the wire: bytes as base64.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.0
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends all entries of `other`.
    ///
    /// # Errors
    /// Together they are too large: 4 GiB.
    pub fn extend(&mut self, other: &Self) -> Result<(), InvalidMetadata> {
        Ok(self.0.extend(&other.0)?)
    }
}

impl fmt::Debug for Metadata {
    /// Credentials are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The values under a `-bin` name, decoded; what is not base64 is passed over.
pub(super) fn binary_values<'a>(
    fields: &'a Fields,
    name: &'a str,
) -> impl Iterator<Item = Vec<u8>> + 'a {
    let values = fields.get_all(name).filter(|_| is_binary(name));
    let parts = values.flat_map(|value| value.split(|&byte| byte == b','));
    parts.filter_map(|part| BASE64.decode(part.trim_ascii()).ok())
}

fn is_binary(name: &str) -> bool {
    name.len() >= 4 && name.as_bytes()[name.len() - 4..].eq_ignore_ascii_case(b"-bin")
}

/// Names that a call, or the HTTP under it, uses for itself.
fn is_reserved(name: &[u8]) -> bool {
    const RESERVED: [&[u8]; 12] = [
        b"content-type",
        b"te",
        b"host",
        b"connection",
        b"content-length",
        b"transfer-encoding",
        b"upgrade",
        b"keep-alive",
        b"proxy-connection",
        b"trailer",
        b"content-encoding",
        b"accept-encoding",
    ];
    let grpc = name.len() >= 5 && name[..5].eq_ignore_ascii_case(b"grpc-");
    grpc || RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}
