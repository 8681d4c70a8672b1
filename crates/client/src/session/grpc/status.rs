//! How a call failed.

use std::{error::Error as StdError, fmt, time::Instant};

use bytes::Bytes;
use mimus_proto::grpc::{self, Code, FrameError, Metadata};
use mimus_proto::h2::StreamError;

use crate::{BoxError, Error, Kind};

/// How a call failed: the server's word for it, or ours when there was none.
///
/// `Display` gives the code and the message on one line; `{:#}` adds the chain of causes.
pub struct Status(Box<Inner>);

struct Inner {
    code: Code,
    message: String,
    details: Bytes,
    head: Metadata,
    metadata: Metadata,
    source: Option<BoxError>,
}

/// What the code of a RST_STREAM means for a call (gRPC over HTTP/2, "Errors").
fn reset_code(error: &Error) -> Code {
    let reset = std::error::Error::source(error).and_then(|e| e.downcast_ref::<StreamError>());
    match reset {
        Some(StreamError::Reset(code)) => Code::from_h2_error(code.0),
        _ => Code::Unknown,
    }
}

impl Status {
    /// A status of one's own.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Status(Box::new(Inner {
            code,
            message: message.into(),
            details: Bytes::new(),
            head: Metadata::new(),
            metadata: Metadata::new(),
            source: None,
        }))
    }

    /// What the peer said.
    pub(super) fn said(said: grpc::Status, metadata: Metadata) -> Self {
        let grpc::Status { code, message, details } = said;
        Status(Box::new(Inner {
            code,
            message,
            details,
            head: Metadata::new(),
            metadata,
            source: None,
        }))
    }

    /// The same, behind a head with this metadata.
    #[must_use]
    pub(super) fn after(mut self, head: &Metadata) -> Self {
        self.0.head = head.clone();
        self
    }

    #[must_use]
    pub(super) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the failure of the exchange under a call means, for one with this deadline.
    pub(super) fn of_exchange(error: Error, deadline: Option<Instant>) -> Self {
        if let Some(own) = own_status(&error) {
            return own;
        }
        const PASSED: (Code, &str) =
            (Code::DeadlineExceeded, "the deadline passed before the call was over");
        let late = deadline.is_some_and(|at| at <= Instant::now());
        let (code, message) = match error.kind() {
            // A server that gives up at the same moment may be faster than our own clock.
            Kind::Timeout | Kind::Closed | Kind::Io if late => PASSED,
            Kind::Timeout if !error.is_connect() => PASSED,
            Kind::Timeout
            | Kind::Resolve
            | Kind::Connect
            | Kind::Certificate
            | Kind::Tls
            | Kind::Proxy => (Code::Unavailable, "no connection to the server"),
            Kind::Closed | Kind::Io => (Code::Unavailable, "the connection was lost"),
            // What a server does about the deadline that it was told.
            Kind::Reset if late && reset_code(&error) == Code::Cancelled => PASSED,
            Kind::Reset => (reset_code(&error), "the server reset the call"),
            Kind::Limit => (Code::ResourceExhausted, "a limit of the client was exceeded"),
            Kind::Protocol | Kind::Decode => (Code::Internal, "the server broke the protocol"),
            Kind::Request => (Code::Internal, "the call cannot be made"),
            _ => (Code::Unknown, "the call failed"),
        };
        Status::new(code, message).caused_by(error)
    }

    /// The code; never [`Code::Ok`] in what a call fails with.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message; often empty.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// `grpc-status-details-bin`, decoded: by convention a serialized `google.rpc.Status`. Empty when
    /// there is none.
    #[must_use]
    pub fn details(&self) -> &Bytes {
        &self.0.details
    }

    /// The metadata that came before the messages, if the answer had begun.
    #[must_use]
    pub fn head(&self) -> &Metadata {
        &self.0.head
    }

    /// The metadata that came with the status.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }
}

/// The status that made our own upload fail, which then is the call's.
fn own_status(error: &Error) -> Option<Status> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(Status(own)) = error.downcast_ref::<Status>() {
            return Some(Status::new(own.code, own.message.clone()));
        }
        cause = error.source();
    }
    None
}

impl From<FrameError> for Status {
    fn from(error: FrameError) -> Self {
        let code = match error {
            FrameError::TooLong { .. } => Code::ResourceExhausted,
            _ => Code::Internal,
        };
        Status::new(code, error.to_string())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code().name())?;
        if !self.message().is_empty() {
            write!(f, ": {}", self.message())?;
        }
        crate::error::write_causes(f, self)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .field("metadata", &self.0.metadata)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Status {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|error| error as _)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mimus_net::Phase;
    use mimus_proto::h2;

    use super::*;

    #[test]
    fn failures_of_the_exchange_have_codes() {
        let of = |kind, phase, deadline| {
            Status::of_exchange(Error::new(kind, "x").in_phase(phase), deadline).code()
        };
        let (past, future) = (Instant::now(), Instant::now() + Duration::from_secs(99));
        assert_eq!(of(Kind::Timeout, Phase::Connect, None), Code::Unavailable);
        assert_eq!(of(Kind::Timeout, Phase::Connect, Some(future)), Code::Unavailable);
        assert_eq!(of(Kind::Timeout, Phase::Connect, Some(past)), Code::DeadlineExceeded);
        assert_eq!(of(Kind::Timeout, Phase::Body, None), Code::DeadlineExceeded);
        assert_eq!(of(Kind::Closed, Phase::Head, Some(future)), Code::Unavailable);
        assert_eq!(of(Kind::Closed, Phase::Head, Some(past)), Code::DeadlineExceeded);
        assert_eq!(of(Kind::Protocol, Phase::Head, None), Code::Internal);
        assert_eq!(of(Kind::Limit, Phase::Head, None), Code::ResourceExhausted);
        assert_eq!(of(Kind::Hook, Phase::Head, None), Code::Unknown);
    }

    #[test]
    fn our_own_status_comes_back_out_of_a_failed_upload() {
        let own = Status::new(Code::OutOfRange, "mine");
        let status = Status::of_exchange(Error::new(Kind::Upload, "x").caused_by(own), None);
        assert_eq!(status.to_string(), "OUT_OF_RANGE: mine");
    }

    #[test]
    fn what_a_reset_means_depends_on_the_deadline() {
        let code =
            |error: StreamError, deadline| Status::of_exchange(error.into(), deadline).code();
        let reset = |code| StreamError::Reset(code);
        let now = Instant::now();
        let (passed, ahead) = (Some(now), now.checked_add(Duration::from_secs(60)));
        for deadline in [None, ahead] {
            assert_eq!(code(reset(h2::Code::CANCEL), deadline), Code::Cancelled);
            assert_eq!(code(reset(h2::Code::NO_ERROR), deadline), Code::Internal);
            let refused = StreamError::NotProcessed(h2::Code::REFUSED_STREAM);
            assert_eq!(code(refused, deadline), Code::Unavailable);
            let left = StreamError::GoneAway(h2::Code::NO_ERROR);
            assert_eq!(code(left, deadline), Code::Unavailable);
        }
        assert_eq!(code(reset(h2::Code::CANCEL), passed), Code::DeadlineExceeded);
        let calm = reset(h2::Code::ENHANCE_YOUR_CALM);
        assert_eq!(code(calm, passed), Code::ResourceExhausted);
    }
}
