//! How a call ended, as a trailer section or a head says it.

use bytes::Bytes;
use http::StatusCode;

use super::{CONTENT_TYPE, Code, decode_message, metadata::binary_values};
use crate::Fields;

/// The outcome of a call in the peer's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The code.
    pub code: Code,
    /// The message, decoded; often empty.
    pub message: String,
    /// `grpc-status-details-bin`, decoded: by convention a serialized `google.rpc.Status`. Empty when
    /// there is none.
    pub details: Bytes,
}

impl Status {
    /// What `fields` say; `None` when they have no `grpc-status`. One that is no number is
    /// [`Code::Unknown`].
    #[must_use]
    pub fn from_fields(fields: &Fields) -> Option<Self> {
        let value = fields.get("grpc-status")?;
        let Some(code) = Code::parse(value) else {
            let message = format!("grpc-status is {:?}", value.escape_ascii().to_string());
            return Some(Self { code: Code::Unknown, message, details: Bytes::new() });
        };
        let message = fields.get("grpc-message").map(decode_message).unwrap_or_default();
        let details = binary_values(fields, "grpc-status-details-bin").next().unwrap_or_default();
        Some(Self { code, message, details: details.into() })
    }
}

/// What the head of an answer says of how the call ends, until the trailers say more.
#[derive(Debug, Clone)]
pub struct Ending {
    http: StatusCode,
    /// The `content-type`, when it is not gRPC's.
    foreign: Option<String>,
    /// What the head says in the way of a trailer section, which counts only if nothing follows it.
    alone: Option<Box<Status>>,
}

impl Ending {
    /// Keeps what counts of a head.
    #[must_use]
    pub fn of_head(http: StatusCode, head: &Fields) -> Self {
        let foreign = (!is_grpc(head))
            .then(|| head.get("content-type").unwrap_or(b"none").escape_ascii().to_string());
        Self { http, foreign, alone: Status::from_fields(head).map(Box::new) }
    }

    /// How the call ended, now that the answer is over. `empty` says that its body had not one byte: only
    /// then, and without trailers, is the head alone the answer ("Trailers-Only").
    #[must_use]
    pub fn status(self, trailers: Option<&Fields>, empty: bool) -> Status {
        match (trailers, self.alone) {
            (None, Some(said)) if empty => return *said,
            (Some(trailers), _) => {
                if let Some(said) = Status::from_fields(trailers) {
                    return said;
                }
            }
            _ => {}
        }
        let (code, message) = match self.foreign {
            _ if self.http != StatusCode::OK => {
                let message = format!("the server answered with the HTTP status {}", self.http);
                (Code::from_http(self.http), message)
            }
            Some(found) => {
                (Code::Unknown, format!("the answer is not gRPC: its content-type is {found}"))
            }
            None => (Code::Internal, "the answer ended without a grpc-status".to_owned()),
        };
        Status { code, message, details: Bytes::new() }
    }
}

/// Whether a head is one of gRPC, by its `content-type`.
#[must_use]
pub fn is_grpc(head: &Fields) -> bool {
    subtype(head).is_some()
}

/// The serialization that a gRPC `content-type` names, empty when it names none; `None` when the type
/// is not gRPC's.
#[must_use]
pub fn subtype(head: &Fields) -> Option<&str> {
    let value = head.get_str("content-type")?;
    let essence = value.split(';').next()?.trim();
    let (start, rest) = essence.split_at_checked(CONTENT_TYPE.len())?;
    match start.eq_ignore_ascii_case(CONTENT_TYPE) {
        true if rest.is_empty() => Some(""),
        true => rest.strip_prefix('+'),
        false => None,
    }
}
