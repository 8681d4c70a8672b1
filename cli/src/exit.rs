//! How the process ends: exit codes, which are curl's where curl has one, and the error line.

use std::{fmt, io, process::ExitCode};

use mimus::{Kind, Phase, grpc::Code};

/// Declares the codes once: the enum, its numbers, and the table that the help and the man page show.
macro_rules! exit_codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal,)+) => {
        /// How the process ends.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Exit {
            $($(#[doc = $doc])+ $name = $code,)+
        }

        impl Exit {
            /// Every code with its meaning, in ascending order.
            pub(crate) const TABLE: &[(u8, &str)] = &[$(($code, concat!($($doc),+)),)+];
        }
    };
}

exit_codes! {
    /// All went well.
    Ok = 0,
    /// The URL's scheme is not http or https, nor for a WebSocket ws or wss.
    Scheme = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The URL is not valid.
    Url = 3,
    /// The proxy's name has no address.
    ResolveProxy = 5,
    /// The host's name has no address.
    Resolve = 6,
    /// No connection could be made.
    Connect = 7,
    /// The server's answer is not HTTP.
    Protocol = 8,
    /// The body ended before its end.
    Partial = 18,
    /// The status was 400 or more, and -f or --fail-with-body was given; or it promises no events.
    Status = 22,
    /// The output could not be written.
    Write = 23,
    /// A file or the standard input could not be read.
    Read = 26,
    /// A timeout fired.
    Timeout = 28,
    /// The server does not go on with a download.
    Range = 33,
    /// The TLS handshake failed.
    Tls = 35,
    /// There were too many redirects.
    Redirects = 47,
    /// The server closed the connection without an answer.
    Empty = 52,
    /// The request could not be sent.
    Send = 55,
    /// The response could not be received.
    Receive = 56,
    /// The client certificate or its key cannot be used.
    ClientCertificate = 58,
    /// The server's certificate was not accepted.
    Certificate = 60,
    /// The body's coding is broken.
    Encoding = 61,
    /// The body is larger than allowed.
    TooLarge = 63,
    /// The file of trusted certificates cannot be used.
    TrustFile = 77,
    /// The server reset the HTTP/2 stream.
    Stream = 92,
    /// The proxy refused, or wants other credentials.
    Proxy = 97,
    /// The server closed the WebSocket with a code that is neither 1000 nor 1001.
    Close = 98,
    /// The gRPC call ended with CANCELLED.
    GrpcCancelled = 101,
    /// The gRPC call ended with UNKNOWN.
    GrpcUnknown = 102,
    /// The gRPC call ended with INVALID_ARGUMENT.
    GrpcInvalidArgument = 103,
    /// The gRPC call ended with DEADLINE_EXCEEDED.
    GrpcDeadlineExceeded = 104,
    /// The gRPC call ended with NOT_FOUND.
    GrpcNotFound = 105,
    /// The gRPC call ended with ALREADY_EXISTS.
    GrpcAlreadyExists = 106,
    /// The gRPC call ended with PERMISSION_DENIED.
    GrpcPermissionDenied = 107,
    /// The gRPC call ended with RESOURCE_EXHAUSTED.
    GrpcResourceExhausted = 108,
    /// The gRPC call ended with FAILED_PRECONDITION.
    GrpcFailedPrecondition = 109,
    /// The gRPC call ended with ABORTED.
    GrpcAborted = 110,
    /// The gRPC call ended with OUT_OF_RANGE.
    GrpcOutOfRange = 111,
    /// The gRPC call ended with UNIMPLEMENTED.
    GrpcUnimplemented = 112,
    /// The gRPC call ended with INTERNAL.
    GrpcInternal = 113,
    /// The gRPC call ended with UNAVAILABLE.
    GrpcUnavailable = 114,
    /// The gRPC call ended with DATA_LOSS.
    GrpcDataLoss = 115,
    /// The gRPC call ended with UNAUTHENTICATED.
    GrpcUnauthenticated = 116,
    /// Interrupted by Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// How a run ends whose call ended with this status: 100 and its number.
    pub(crate) fn of_grpc(code: Code) -> Self {
        match code {
            Code::Ok => Exit::Ok,
            Code::Cancelled => Exit::GrpcCancelled,
            Code::Unknown => Exit::GrpcUnknown,
            Code::InvalidArgument => Exit::GrpcInvalidArgument,
            Code::DeadlineExceeded => Exit::GrpcDeadlineExceeded,
            Code::NotFound => Exit::GrpcNotFound,
            Code::AlreadyExists => Exit::GrpcAlreadyExists,
            Code::PermissionDenied => Exit::GrpcPermissionDenied,
            Code::ResourceExhausted => Exit::GrpcResourceExhausted,
            Code::FailedPrecondition => Exit::GrpcFailedPrecondition,
            Code::Aborted => Exit::GrpcAborted,
            Code::OutOfRange => Exit::GrpcOutOfRange,
            Code::Unimplemented => Exit::GrpcUnimplemented,
            Code::Internal => Exit::GrpcInternal,
            Code::Unavailable => Exit::GrpcUnavailable,
            Code::DataLoss => Exit::GrpcDataLoss,
            Code::Unauthenticated => Exit::GrpcUnauthenticated,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a transfer, or the run, failed: the exit code, what failed, and its causes.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What failed, and why, in one line.
    pub(crate) message: String,
    /// The reader of our output went away, which is nobody's mistake and not worth a message.
    pub(crate) quiet: bool,
}

impl Failure {
    /// A failure of our own making.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: message.into(), quiet: false }
    }

    /// A file, or the standard input, that cannot be read.
    pub(crate) fn read(what: impl fmt::Display, cause: &io::Error) -> Self {
        Failure::new(Exit::Read, format!("{what} cannot be read: {cause}"))
    }

    /// An output that cannot be written.
    pub(crate) fn write(what: impl fmt::Display, cause: &io::Error) -> Self {
        Failure {
            exit: Exit::Write,
            message: format!("{what} cannot be written: {cause}"),
            quiet: cause.kind() == io::ErrorKind::BrokenPipe,
        }
    }
}

impl Failure {
    /// A failure of the library's. `proxied` says that the flags name a proxy, and so that a name
    /// without address is the proxy's.
    pub(crate) fn of(error: &mimus::Error, proxied: bool) -> Self {
        let reset = causes(error)
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .any(|cause| cause.kind() != io::ErrorKind::UnexpectedEof);
        let exit = match (error.kind(), error.phase()) {
            (Kind::Request | Kind::Hook, _) => Exit::Usage,
            (Kind::Timeout, _) => Exit::Timeout,
            (Kind::Resolve, _) if proxied => Exit::ResolveProxy,
            (Kind::Resolve, _) => Exit::Resolve,
            (Kind::Connect, _) => Exit::Connect,
            (Kind::Certificate, _) => Exit::Certificate,
            (Kind::Tls, _) => Exit::Tls,
            (Kind::Proxy, _) => Exit::Proxy,
            (Kind::Closed, Some(Phase::Body)) if !reset => Exit::Partial,
            (Kind::Closed, Some(Phase::Head)) if !reset => Exit::Empty,
            (Kind::Closed | Kind::Io, Some(Phase::Send)) => Exit::Send,
            (Kind::Closed | Kind::Io, _) => Exit::Receive,
            (Kind::Reset, _) => Exit::Stream,
            (Kind::Protocol, Some(Phase::Head)) => Exit::Protocol,
            (Kind::Protocol, _) => Exit::Receive,
            (Kind::Limit, Some(Phase::Body)) => Exit::TooLarge,
            (Kind::Limit, _) => Exit::Receive,
            (Kind::Decode, _) => Exit::Encoding,
            (Kind::Redirect, _) => Exit::Redirects,
            (Kind::Upload, _) => Exit::Read,
            (Kind::Status(_), _) => Exit::Status,
            _ => Exit::Receive,
        };
        Failure::new(exit, format!("{error:#}"))
    }
}

/// Tells what is wrong with the command line, or what it asked to be told of itself.
pub(crate) fn wrong_usage(error: &clap::Error) -> Exit {
    // Nobody is left to tell that this cannot be told.
    let _ = error.print();
    Exit::Usage
}

/// The causes of an error, nearest first.
fn causes(error: &mimus::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) {}", self.exit as u8, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_each_code_has_one_meaning() {
        assert!(Exit::TABLE.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(Exit::TABLE.iter().all(|(_, meaning)| meaning.ends_with('.')));
    }

    #[test]
    fn grpc_codes_are_a_hundred_and_their_number() {
        for code in Code::ALL.into_iter().skip(1) {
            assert_eq!(i32::from(Exit::of_grpc(code) as u8), 100 + code.number(), "{code}");
        }
    }

    #[test]
    fn a_reader_that_left_is_not_told_about() {
        let broken = Failure::write("the standard output", &io::ErrorKind::BrokenPipe.into());
        let full = Failure::write("x", &io::ErrorKind::StorageFull.into());
        assert!(broken.quiet && !full.quiet);
        assert_eq!(full.exit, Exit::Write);
    }
}
