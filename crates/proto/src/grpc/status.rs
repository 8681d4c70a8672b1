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

    /// What the head and the trailer section of a finished answer say together.
    ///
    /// `empty` says that the body had not one byte. Only then, and without trailers, is the head alone
    /// the answer ("Trailers-Only"): otherwise a `grpc-status` in it means nothing.
    #[must_use]
    pub fn of_answer(
        status: StatusCode,
        head: &Fields,
        trailers: Option<&Fields>,
        empty: bool,
    ) -> Self {
        if let Some(said) = trailers.and_then(Self::from_fields) {
            return said;
        }
        let alone = if empty && trailers.is_none() { Self::from_fields(head) } else { None };
        alone.unwrap_or_else(|| Self::unsaid(status, head))
    }

    /// What an answer means that does not say how the call ended.
    #[must_use]
    pub fn unsaid(status: StatusCode, head: &Fields) -> Self {
        let (code, message) = if status != StatusCode::OK {
            (Code::from_http(status), format!("the server answered with the HTTP status {status}"))
        } else if !is_grpc(head) {
            let found = head.get("content-type").unwrap_or(b"none").escape_ascii().to_string();
            (Code::Unknown, format!("the answer is not gRPC: its content-type is {found}"))
        } else {
            (Code::Internal, "the answer ended without a grpc-status".to_owned())
        };
        Self { code, message, details: Bytes::new() }
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
