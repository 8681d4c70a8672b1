//! A decoded field section: collected, judged (RFC 9113 section 8) and made a head.

use http::{StatusCode, Version};

use super::Limits;
use super::stream::Asked;
use crate::fields::{first_control, text_len};
use crate::head::{Length, bodiless, forbidden_in_trailers, parse_length};
use crate::{Error, Fields, LimitExceeded, PeerMisbehaved, ResponseHead};

/// What RFC 9113 section 6.5.2 counts for each field besides its text.
pub(super) const FIELD_EXTRA: usize = 32;

/// Room that a section begins with: enough for most responses.
const ROOM: (usize, usize) = (8, 240);

/// Which section it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Response,
    Trailers,
    /// Decoded for the sake of the table, and dropped.
    Dropped,
}

/// One section as it is decoded. The first fault decides; the rest is decoded and dropped, so that the
/// compression state stays right (RFC 9113 section 4.3).
#[derive(Debug)]
pub(super) struct Section {
    kind: Kind,
    fields: Fields,
    status: Option<StatusCode>,
    length: Length,
    bytes: usize,
    max_bytes: usize,
    max_fields: usize,
    fault: Option<Error>,
}

/// A response head and what it says of the body.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) head: ResponseHead,
    /// Bytes of body owed, where the head tells.
    pub(super) left: Option<u64>,
    /// The section's size as RFC 9113 section 6.5.2 counts.
    pub(super) bytes: u32,
}

impl Section {
    pub(super) fn new(kind: Kind, limits: &Limits) -> Self {
        let fields = match kind {
            Kind::Dropped => Fields::new(),
            Kind::Response | Kind::Trailers => Fields::with_capacity(ROOM.0, ROOM.1),
        };
        Self {
            kind,
            fields,
            status: None,
            length: Length::Absent,
            bytes: 0,
            max_bytes: limits.head_bytes as usize,
            max_fields: limits.fields,
            fault: None,
        }
    }

    /// Takes the next field.
    pub(super) fn take(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() || self.kind == Kind::Dropped {
            return;
        }
        if let Err(fault) = self.try_take(name, value) {
            self.fault = Some(fault);
            // It will not be needed: a section may go on for long.
            self.fields = Fields::new();
        }
    }

    fn try_take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        self.bytes += name.len() + value.len() + FIELD_EXTRA;
        if self.bytes > self.max_bytes {
            return Err(LimitExceeded::HeadBytes.into());
        }
        if name.first() == Some(&b':') {
            return Ok(self.pseudo(name, value)?);
        }
        if self.fields.len() >= self.max_fields {
            return Err(LimitExceeded::Fields.into());
        }
        if !is_lower_token(name) {
            return Err(PeerMisbehaved::BadFieldName.into());
        }
        check_value(value)?;
        self.note(name, value)?;
        self.fields.push_checked(name, value).map_err(|_| LimitExceeded::HeadBytes)?;
        Ok(())
    }

    /// RFC 9113 sections 8.3 and 8.3.2: `:status`, once, before all else, and nothing like it in
    /// trailers.
    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), PeerMisbehaved> {
        let first = self.status.is_none() && self.fields.is_empty();
        if name != b":status" || !first || self.kind != Kind::Response {
            return Err(PeerMisbehaved::BadPseudoField);
        }
        // RFC 9110 section 15: three digits; beyond 599 they are as good as a 5xx.
        let status = StatusCode::from_bytes(value);
        self.status = Some(status.map_err(|_| PeerMisbehaved::BadStatus)?);
        Ok(())
    }

    /// Looks at the fields that bear on the message.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), PeerMisbehaved> {
        if self.kind == Kind::Trailers && forbidden_in_trailers(name) {
            return Err(PeerMisbehaved::TrailerInvalid);
        }
        if name.len() == 14 && name == b"content-length" {
            self.length = match self.length {
                Length::Absent => parse_length(value),
                _ => Length::Bad(PeerMisbehaved::ConflictingContentLength),
            };
        }
        if is_connection_field(name) || (name.len() == 2 && name == b"te" && !is_trailers(value)) {
            return Err(PeerMisbehaved::ConnectionField);
        }
        Ok(())
    }

    /// The response head, with what it means for a request like `asked`.
    pub(super) fn response(self, asked: Asked, end: bool) -> Result<Verdict, Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let status = self.status.ok_or(PeerMisbehaved::BadPseudoField)?;
        // RFC 9113 section 8.6: there is no 101. Section 8.1: an interim response ends nothing.
        if status == StatusCode::SWITCHING_PROTOCOLS || (status.is_informational() && end) {
            return Err(PeerMisbehaved::BadStatus.into());
        }
        let left = body_length(self.length, asked, status)?;
        if end && left.is_some_and(|left| left > 0) {
            return Err(PeerMisbehaved::BodyLengthMismatch.into());
        }
        let head = ResponseHead::new(status, Version::HTTP_2, self.fields);
        Ok(Verdict { head, left, bytes: self.bytes as u32 })
    }

    /// The trailers.
    pub(super) fn trailers(self) -> Result<Fields, Error> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.fields),
        }
    }
}

/// RFC 9113 section 8.1.1, RFC 9110 section 6.4.1: a response that has no content may still say how
/// long it would have been.
fn body_length(
    length: Length,
    asked: Asked,
    status: StatusCode,
) -> Result<Option<u64>, PeerMisbehaved> {
    match length {
        Length::Bad(reason) => Err(reason),
        _ if asked == Asked::Head || bodiless(status) => Ok(Some(0)),
        // RFC 9110 section 9.3.6: a tunnel; what is said of a length is ignored.
        _ if asked == Asked::Connect && status.is_success() => Ok(None),
        Length::Valid(length) => Ok(Some(length)),
        Length::Absent => Ok(None),
    }
}

/// RFC 9113 section 8.2.2: fields that speak of a connection, which is not theirs here.
pub(super) fn is_connection_field(name: &[u8]) -> bool {
    match name.len() {
        7 => name == b"upgrade",
        10 => name == b"connection" || name == b"keep-alive",
        16 => name == b"proxy-connection",
        17 => name == b"transfer-encoding",
        _ => false,
    }
}

/// RFC 9113 section 8.2.2: all that TE may say.
pub(super) fn is_trailers(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"trailers")
}

/// RFC 9113 section 8.2.1, and RFC 9110 section 5.5, which also refuses other control bytes.
fn check_value(value: &[u8]) -> Result<(), PeerMisbehaved> {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if !is_plain(value) && text_len(value) < value.len() {
        return Err(PeerMisbehaved::ControlByte);
    }
    if blank(value.first()) || blank(value.last()) {
        return Err(PeerMisbehaved::BlankAroundValue);
    }
    Ok(())
}

/// Whether there is no control byte, not even HTAB: eight bytes at a time, the last eight again.
fn is_plain(value: &[u8]) -> bool {
    let clean = |word: &[u8; 8]| first_control(u64::from_le_bytes(*word)).is_none();
    match value.last_chunk() {
        Some(last) => value.as_chunks().0.iter().all(clean) && clean(last),
        None => value.iter().all(|&byte| byte >= b' ' && byte != 0x7f),
    }
}

/// `tchar` of RFC 9110 section 5.6.2 without upper case (RFC 9113 section 8.2.1).
static LOWER: [bool; 256] = {
    let mut table = crate::fields::TOKEN;
    let mut upper = b'A';
    while upper <= b'Z' {
        table[upper as usize] = false;
        upper += 1;
    }
    table
};

fn is_lower_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().fold(true, |all, &byte| all & LOWER[usize::from(byte)])
}
