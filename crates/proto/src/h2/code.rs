//! Error codes (RFC 9113 section 7), from one table.

use std::fmt;

use crate::{Error, LimitExceeded, PeerMisbehaved};

/// Declares the registered codes; their names and `Debug` come from the same table.
macro_rules! codes {
    ($($value:literal $name:ident = $text:literal,)+) => {
        impl Code {
            $(#[doc = concat!("\"", $text, "\"")] pub const $name: Self = Self($value);)+

            /// The registered name, if there is one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)+
                    _ => None,
                }
            }

            fn text(self) -> &'static str {
                match self.0 {
                    $($value => $text,)+
                    _ => "for a reason that is not registered",
                }
            }
        }
    };
}

/// Why a stream or a connection ends, as RST_STREAM and GOAWAY carry it. Unknown values are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

codes! {
    0x0 NO_ERROR = "without an error",
    0x1 PROTOCOL_ERROR = "because of a breach of the protocol",
    0x2 INTERNAL_ERROR = "because of an internal error",
    0x3 FLOW_CONTROL_ERROR = "because of a breach of flow control",
    0x4 SETTINGS_TIMEOUT = "because settings were not acknowledged",
    0x5 STREAM_CLOSED = "because of a frame on a closed stream",
    0x6 FRAME_SIZE_ERROR = "because of a frame of a wrong size",
    0x7 REFUSED_STREAM = "before anything of it was processed",
    0x8 CANCEL = "because it is not needed any more",
    0x9 COMPRESSION_ERROR = "because the header compression state is lost",
    0xa CONNECT_ERROR = "because the tunnel broke",
    0xb ENHANCE_YOUR_CALM = "because of excessive load",
    0xc INADEQUATE_SECURITY = "because the transport is not secure enough",
    0xd HTTP_1_1_REQUIRED = "because it needs HTTP/1.1",
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({self:?})", self.text())
    }
}

impl Code {
    /// The code that tells a peer of this error.
    #[must_use]
    pub fn of(error: Error) -> Self {
        match error {
            Error::PeerMisbehaved(reason) => Self::of_breach(reason),
            Error::LimitExceeded(LimitExceeded::SettingsWait) => Self::SETTINGS_TIMEOUT,
            // Nobody may be there to read it; the connection as such did nothing wrong.
            Error::LimitExceeded(LimitExceeded::PingWait) => Self::NO_ERROR,
            Error::LimitExceeded(_) => Self::ENHANCE_YOUR_CALM,
            Error::UnexpectedEof(_) => Self::NO_ERROR,
        }
    }

    fn of_breach(reason: PeerMisbehaved) -> Self {
        use PeerMisbehaved as P;
        match reason {
            P::FrameSize => Self::FRAME_SIZE_ERROR,
            P::BadHeaderBlock => Self::COMPRESSION_ERROR,
            P::FrameOnClosedStream => Self::STREAM_CLOSED,
            P::WindowOverflow | P::WindowOverspent | P::BadInitialWindow => {
                Self::FLOW_CONTROL_ERROR
            }
            // RFC 9113 section 8.1.1: a malformed message is PROTOCOL_ERROR, as all else.
            _ => Self::PROTOCOL_ERROR,
        }
    }
}
