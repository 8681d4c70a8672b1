//! Status codes, from one table.

use std::fmt;

use http::StatusCode;

/// A number that is no status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownCode(pub i32);

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no gRPC status code", self.0)
    }
}

impl std::error::Error for UnknownCode {}

/// Declares the codes; number, name and meaning stand together.
macro_rules! codes {
    ($($number:literal $variant:ident $name:literal $text:literal,)+) => {
        /// How a call ended (the protocol's `statuscodes.md`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum Code {
            $(#[doc = concat!("`", $name, "`: ", $text, ".")] $variant = $number,)+
        }

        impl Code {
            /// All of them, by number.
            pub const ALL: [Code; 17] = [$(Code::$variant,)+];

            /// The name in the protocol's spelling, `NOT_FOUND` for example.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ }
            }

            /// What the code means, in a few words.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Code::$variant => $text,)+ }
            }
        }

        impl TryFrom<i32> for Code {
            type Error = UnknownCode;

            fn try_from(number: i32) -> Result<Self, UnknownCode> {
                match number { $($number => Ok(Code::$variant),)+ other => Err(UnknownCode(other)) }
            }
        }
    };
}

codes! {
    0 Ok "OK" "the call succeeded",
    1 Cancelled "CANCELLED" "the caller gave the call up",
    2 Unknown "UNKNOWN" "an error of which nothing else is known",
    3 InvalidArgument "INVALID_ARGUMENT" "the arguments are wrong whatever the state of the system",
    4 DeadlineExceeded "DEADLINE_EXCEEDED" "the time ran out before the call was over",
    5 NotFound "NOT_FOUND" "what was asked for does not exist",
    6 AlreadyExists "ALREADY_EXISTS" "what was to be made exists",
    7 PermissionDenied "PERMISSION_DENIED" "the caller may not do this",
    8 ResourceExhausted "RESOURCE_EXHAUSTED" "a quota, or room, is used up",
    9 FailedPrecondition "FAILED_PRECONDITION" "the system is not in the state that this needs",
    10 Aborted "ABORTED" "the operation collided with another",
    11 OutOfRange "OUT_OF_RANGE" "an argument lies beyond what there is",
    12 Unimplemented "UNIMPLEMENTED" "the server does not have this method",
    13 Internal "INTERNAL" "something that always holds did not",
    14 Unavailable "UNAVAILABLE" "the service cannot be reached now",
    15 DataLoss "DATA_LOSS" "data is lost or broken beyond repair",
    16 Unauthenticated "UNAUTHENTICATED" "the caller did not prove who it is",
}

impl Code {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The value of a `grpc-status` field. A number of no code in the table is [`Code::Unknown`], as
    /// the protocol has it; what is no number is none.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let plausible =
            !value.is_empty() && value.len() <= 10 && value.iter().all(u8::is_ascii_digit);
        if !plausible {
            return None;
        }
        let number = std::str::from_utf8(value).ok()?.parse::<i32>();
        Some(number.ok().and_then(|number| Code::try_from(number).ok()).unwrap_or(Code::Unknown))
    }

    /// What an HTTP status means when nothing says it in gRPC's own terms
    /// (`http-grpc-status-mapping.md`).
    #[must_use]
    pub const fn from_http(status: StatusCode) -> Self {
        match status.as_u16() {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502 | 503 | 504 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }

    /// What an HTTP/2 error code on the call's stream means (`PROTOCOL-HTTP2.md`, "Errors"; the numbers
    /// are those of RFC 9113 section 7).
    #[must_use]
    pub const fn from_h2_error(code: u32) -> Self {
        match code {
            0x7 => Code::Unavailable,       // REFUSED_STREAM: nothing was processed
            0x8 => Code::Cancelled,         // CANCEL
            0xb => Code::ResourceExhausted, // ENHANCE_YOUR_CALM
            0xc => Code::PermissionDenied,  // INADEQUATE_SECURITY
            _ => Code::Internal,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
