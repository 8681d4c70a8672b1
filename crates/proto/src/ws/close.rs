//! Close codes (RFC 6455 section 7.4) and what a close frame carries.

use std::fmt;

use crate::{Error, LimitExceeded, PeerMisbehaved};

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(pub u16);

macro_rules! codes {
    ($($code:literal $name:ident = $text:literal,)+) => {
        impl CloseCode {
            $(#[doc = $text] pub const $name: Self = Self($code);)+

            /// What the code says, for the registered ones.
            #[must_use]
            pub const fn text(self) -> Option<&'static str> {
                Some(match self.0 {
                    $($code => $text,)+
                    _ => return None,
                })
            }
        }
    };
}

// RFC 6455 section 7.4.1, and the IANA registry of section 11.7.
codes! {
    1000 NORMAL = "the purpose is fulfilled",
    1001 GOING_AWAY = "the endpoint goes away",
    1002 PROTOCOL_ERROR = "a breach of the protocol",
    1003 UNSUPPORTED = "a type of data that is not accepted",
    1005 NO_STATUS = "a close frame without a code; never on the wire",
    1006 ABNORMAL = "no close frame; never on the wire",
    1007 INVALID_PAYLOAD = "data that does not fit its type",
    1008 POLICY_VIOLATION = "a message against the endpoint's policy",
    1009 TOO_BIG = "a message that is too big",
    1010 EXTENSION_MISSING = "an extension that the server did not take up",
    1011 INTERNAL_ERROR = "an unexpected condition",
    1012 SERVICE_RESTART = "the service restarts",
    1013 TRY_AGAIN_LATER = "the service is overloaded",
    1014 BAD_GATEWAY = "an invalid answer from the server behind",
    1015 TLS_HANDSHAKE = "a failed TLS handshake; never on the wire",
}

impl CloseCode {
    /// Whether it may stand in a close frame (RFC 6455 section 7.4.2, and the registry): not below
    /// 1000, not reserved, not beyond 4999.
    #[must_use]
    pub const fn can_be_sent(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }

    /// What to tell a peer of this error. `None` when the peer is gone, or cannot be told anything.
    #[must_use]
    pub const fn of(error: Error) -> Option<Self> {
        use PeerMisbehaved as P;
        Some(match error {
            Error::PeerMisbehaved(P::InvalidUtf8 | P::BadCompression) => Self::INVALID_PAYLOAD,
            Error::PeerMisbehaved(_) => Self::PROTOCOL_ERROR,
            Error::LimitExceeded(LimitExceeded::CloseWait | LimitExceeded::PongWait)
            | Error::UnexpectedEof(_) => return None,
            Error::LimitExceeded(_) => Self::TOO_BIG,
        })
    }
}

impl fmt::Debug for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => write!(f, "{} ({text})", self.0),
            None => self.0.fmt(f),
        }
    }
}

/// What a close frame says (RFC 6455 section 5.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    /// Why.
    pub code: CloseCode,
    /// Why, in words; may be empty.
    pub reason: &'a str,
}

impl<'a> Close<'a> {
    /// Reads the payload of a close frame: `None` when it is empty.
    pub(super) fn read(payload: &'a [u8]) -> Result<Option<Self>, PeerMisbehaved> {
        let (code, reason) = match payload {
            [] => return Ok(None),
            [high, low, reason @ ..] => (CloseCode(u16::from_be_bytes([*high, *low])), reason),
            [_] => return Err(PeerMisbehaved::BadCloseFrame),
        };
        if !code.can_be_sent() {
            return Err(PeerMisbehaved::BadCloseCode);
        }
        // RFC 6455 section 5.5.1: the reason is UTF-8; section 8.1 makes it 1007 if it is not.
        let reason = simdutf8::basic::from_utf8(reason).map_err(|_| PeerMisbehaved::InvalidUtf8)?;
        Ok(Some(Self { code, reason }))
    }
}
