//! Message heads, and what they say about the body that follows.

use http::{Method, StatusCode, Version};

use crate::fields::{elements, is_named};
use crate::{Fields, PeerMisbehaved};

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestHead {
    /// The method, case kept.
    pub method: Method,
    /// The target as on the wire: origin, absolute, authority or asterisk form
    /// (RFC 9112 section 3.2).
    pub target: String,
    /// The version that the sender speaks.
    pub version: Version,
    /// The fields, as sent.
    pub fields: Fields,
}

impl RequestHead {
    /// A head from its parts.
    #[must_use]
    pub fn new(method: Method, target: String, version: Version, fields: Fields) -> Self {
        Self { method, target, version, fields }
    }
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseHead {
    /// The status code.
    pub status: StatusCode,
    /// The version that the sender speaks.
    pub version: Version,
    /// The fields, as sent.
    pub fields: Fields,
    reason: Reason,
}

/// A reason phrase, which almost always is the registered one and then costs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    Registered,
    Other(Box<[u8]>),
}

impl ResponseHead {
    /// A head from its parts, with the registered reason phrase.
    #[must_use]
    pub fn new(status: StatusCode, version: Version, fields: Fields) -> Self {
        Self { status, version, fields, reason: Reason::Registered }
    }

    /// The same head with a phrase other than the registered one.
    pub(crate) fn with_reason(self, reason: Box<[u8]>) -> Self {
        Self { reason: Reason::Other(reason), ..self }
    }

    /// The reason phrase as received; empty in protocols without one.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        match &self.reason {
            Reason::Registered => registered_reason(self.status),
            Reason::Other(reason) => reason,
        }
    }
}

pub(crate) fn registered_reason(status: StatusCode) -> &'static [u8] {
    status.canonical_reason().unwrap_or_default().as_bytes()
}

/// The body that a sender announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyLength {
    /// No body, and no field that speaks of one.
    None,
    /// Exactly so many bytes.
    Known(u64),
    /// As many as come.
    Chunked,
}

/// How the end of a received body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// There is no body.
    None,
    /// Exactly so many bytes.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Until the peer closes the connection.
    UntilClose,
    /// No message follows: the connection belongs to the next protocol.
    Upgrade,
}

impl Framing {
    /// The framing of a response to a request with this method (RFC 9112 section 6.3).
    ///
    /// Whether an upgrade was offered is not asked here: a 101 is always an upgrade.
    ///
    /// # Errors
    /// What two parsers could read in two ways is refused: see [`PeerMisbehaved`].
    pub fn of_response(method: &Method, head: &ResponseHead) -> Result<Self, PeerMisbehaved> {
        let role = Role::Response { method, status: head.status };
        Self::of(role, head.version, &Control::read(&head.fields))
    }

    /// The framing of a request (RFC 9112 section 6.3).
    ///
    /// # Errors
    /// What two parsers could read in two ways is refused: see [`PeerMisbehaved`].
    pub fn of_request(head: &RequestHead) -> Result<Self, PeerMisbehaved> {
        Self::of(Role::Request, head.version, &Control::read(&head.fields))
    }

    /// The verdict; the numbers are the items of RFC 9112 section 6.3.
    pub(crate) fn of(
        role: Role<'_>,
        version: Version,
        control: &Control,
    ) -> Result<Self, PeerMisbehaved> {
        if let Role::Response { method, status } = role {
            // 101 ends the message after the head, like 2. (RFC 9110 section 15.2.2)
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Self::Upgrade);
            }
            // 1. HEAD, 1xx, 204 and 304 have no body, whatever the fields say.
            if method == Method::HEAD || bodiless(status) {
                return Ok(Self::None);
            }
            // 2. 2xx to CONNECT: a tunnel; the framing fields are ignored.
            if method == Method::CONNECT && status.is_success() {
                return Ok(Self::Upgrade);
            }
        }
        match (control.transfer, control.length) {
            // 3. Both: the mark of request smuggling and response splitting.
            (Transfer::Chunked | Transfer::Other, Length::Valid(_) | Length::Bad(_)) => {
                Err(PeerMisbehaved::TransferEncodingWithContentLength)
            }
            // Section 6.1: such a message has faulty framing, even if it looks right.
            (Transfer::Chunked | Transfer::Other, _) if version < Version::HTTP_11 => {
                Err(PeerMisbehaved::TransferEncodingInHttp10)
            }
            // 4. Only chunked, once, is understood (section 7 lets a client ask for no more).
            (Transfer::Chunked, Length::Absent) => Ok(Self::Chunked),
            (Transfer::Other, Length::Absent) => {
                Err(PeerMisbehaved::TransferEncodingNotFinalChunked)
            }
            // 5. An invalid Content-Length; we count a repeated one as such.
            (Transfer::Absent, Length::Bad(reason)) => Err(reason),
            // 6. A valid one.
            (Transfer::Absent, Length::Valid(length)) => Ok(Self::Length(length)),
            (Transfer::Absent, Length::Absent) => Ok(match role {
                // 7. A request that says nothing has no body.
                Role::Request => Self::None,
                // 8. A response that says nothing goes on until the close.
                Role::Response { .. } => Self::UntilClose,
            }),
        }
    }
}

/// Whether responses of this status never have a body (RFC 9110 sections 15.2, 15.3.5, 15.4.5).
pub(crate) fn bodiless(status: StatusCode) -> bool {
    status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}

/// Which message the framing is asked of.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    Request,
    Response { method: &'a Method, status: StatusCode },
}

/// What Content-Length says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Absent,
    Valid(u64),
    Bad(PeerMisbehaved),
}

/// What Transfer-Encoding says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    Absent,
    Chunked,
    Other,
}

/// The fields that control the message and the connection, read in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) length: Length,
    pub(crate) transfer: Transfer,
    /// `Connection: close` (RFC 9112 section 9.6).
    pub(crate) close: bool,
    /// `Connection: keep-alive` (RFC 9112 section 9.3).
    pub(crate) keep_alive: bool,
    /// An Upgrade field (RFC 9110 section 7.8).
    pub(crate) upgrade: bool,
    /// `Expect: 100-continue` (RFC 9110 section 10.1.1).
    pub(crate) expect: bool,
    /// How many Host fields there are.
    pub(crate) hosts: usize,
}

impl Control {
    /// What a head without fields says.
    pub(crate) const fn none() -> Self {
        Self {
            length: Length::Absent,
            transfer: Transfer::Absent,
            close: false,
            keep_alive: false,
            upgrade: false,
            expect: false,
            hosts: 0,
        }
    }

    pub(crate) fn read(fields: &Fields) -> Self {
        let mut control = Self::none();
        for (name, value) in fields.raw_of_lengths(Self::LENGTHS) {
            control.note(name, value);
        }
        control
    }

    /// The lengths of the names that matter: they sort out nearly every other field before a byte of
    /// it is looked at.
    const LENGTHS: u32 = 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 14 | 1 << 17;

    /// Whether a name of this length can be one of those that matter.
    pub(crate) fn may_concern(name: &[u8]) -> bool {
        name.len() < 32 && Self::LENGTHS >> name.len() & 1 == 1
    }

    /// Takes note of a field.
    pub(crate) fn note(&mut self, name: &[u8], value: &[u8]) {
        match name.len() {
            4 if is_named(name, b"host") => self.hosts += 1,
            6 if is_named(name, b"expect") => {
                self.expect |= value.eq_ignore_ascii_case(b"100-continue");
            }
            7 if is_named(name, b"upgrade") => self.upgrade = true,
            10 if is_named(name, b"connection") => self.note_connection(value),
            14 if is_named(name, b"content-length") => {
                self.length = match self.length {
                    Length::Absent => parse_length(value),
                    Length::Valid(_) | Length::Bad(_) => {
                        Length::Bad(PeerMisbehaved::ConflictingContentLength)
                    }
                };
            }
            17 if is_named(name, b"transfer-encoding") => {
                let sole = self.transfer == Transfer::Absent;
                self.transfer = match value {
                    value if sole && value.eq_ignore_ascii_case(b"chunked") => Transfer::Chunked,
                    _ => Transfer::Other,
                };
            }
            _ => {}
        }
    }

    fn note_connection(&mut self, value: &[u8]) {
        // Nearly always it is one option alone, which then is told without looking for where it ends.
        if !self.note_option(value) {
            for option in elements(value) {
                self.note_option(option);
            }
        }
    }

    /// Whether it is an option that matters.
    fn note_option(&mut self, option: &[u8]) -> bool {
        let (close, keep_alive) = (is_named(option, b"close"), is_named(option, b"keep-alive"));
        self.close |= close;
        self.keep_alive |= keep_alive;
        close || keep_alive
    }

    /// Whether the sender of this message leaves the connection open (RFC 9112 section 9.3).
    pub(crate) fn persistent(&self, version: Version) -> bool {
        !self.close && (version >= Version::HTTP_11 || self.keep_alive)
    }
}

/// `Content-Length = 1*DIGIT` (RFC 9110 section 8.6): no sign, no list, no overflow.
pub(crate) fn parse_length(value: &[u8]) -> Length {
    if value.contains(&b',') {
        return Length::Bad(PeerMisbehaved::ConflictingContentLength);
    }
    match decimal(value) {
        Some(length) => Length::Valid(length),
        None => Length::Bad(PeerMisbehaved::BadContentLength),
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit <= 9)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Whether a trailer of this name would change how the message that it ends is framed or routed
/// (RFC 9110 section 6.5.1).
pub(crate) fn forbidden_in_trailers(name: &[u8]) -> bool {
    [&b"content-length"[..], b"transfer-encoding", b"host"]
        .iter()
        .any(|framing| framing.eq_ignore_ascii_case(name))
}
