//! What can go wrong with a call, and what to do about it.

use std::{error::Error as StdError, fmt, io};

use mimus_net::{DialError, DialErrorKind, Phase};
use mimus_proto::h2::StreamError;
use url::Url;

/// A boxed error of somebody else's.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The result of everything that talks to a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed: of what [`Kind`], in which [`Phase`], on which URL, and because of what.
///
/// `Display` gives one line without repeating the text of [`source`](StdError::source); `{:#}` adds
/// the whole chain of causes.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    phase: Option<Phase>,
    url: Option<Url>,
    detail: String,
    sent: bool,
    source: Option<BoxError>,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The request or the client's configuration is wrong; nothing was sent.
    Request,
    /// A timeout of this client fired; [`Error::phase`] says which.
    Timeout,
    /// The name has no address.
    Resolve,
    /// No transport connection could be made.
    Connect,
    /// The server's certificate was not accepted.
    Certificate,
    /// The TLS handshake failed for another reason.
    Tls,
    /// The proxy refused, misbehaved, or wants (other) credentials.
    Proxy,
    /// The peer closed or reset the connection before the exchange was over, or said over HTTP/2 that
    /// it did not process the request (REFUSED_STREAM, GOAWAY); the latter is
    /// [retryable](Error::is_retryable).
    Closed,
    /// The server reset the stream of this exchange (HTTP/2), and may have acted on the request; the
    /// connection may go on.
    Reset,
    /// Another failure of the operating system on an open connection.
    Io,
    /// The peer broke the protocol.
    Protocol,
    /// A limit of this client was exceeded (head size, decoded size, ratio...).
    Limit,
    /// The body could not be decoded (a broken coding, bad JSON, bad UTF-8 where it must be).
    Decode,
    /// The redirects lead nowhere: too many, or to something that cannot be followed.
    Redirect,
    /// The body to be sent failed to give its bytes, or cannot be sent a second time.
    Upload,
    /// The status is an error and [`error_for_status`](crate::Response::error_for_status) was asked.
    Status(http::StatusCode),
    /// A hook refused the call, or a [responder](crate::responder) did.
    Hook,
    /// The server does not offer what the call needs: HTTP/2, or extended CONNECT
    /// ([`protocol`](crate::RequestBuilder::protocol)). Nothing was sent.
    NotOffered,
}

impl Error {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            phase: None,
            url: None,
            detail: detail.into(),
            sent: false,
            source: None,
        }))
    }

    pub(crate) fn request(detail: impl Into<String>) -> Self {
        Error::new(Kind::Request, detail)
    }

    /// A failure of this kind, as if it had happened in this phase, for a [responder](crate::responder) to give. What
    /// fails before [`Phase::Send`] counts as not sent.
    #[must_use]
    pub fn simulated(kind: Kind, phase: Phase) -> Self {
        Error::new(kind, "it was said to have failed").in_phase(phase)
    }

    /// The same with `source` as its cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    #[must_use]
    pub(crate) fn in_phase(mut self, phase: Phase) -> Self {
        self.0.phase.get_or_insert(phase);
        self
    }

    #[must_use]
    pub(crate) fn on(mut self, url: &Url) -> Self {
        self.0.url.get_or_insert_with(|| without_secrets(url));
        self
    }

    #[must_use]
    pub(crate) fn after_sending(mut self, sent: bool) -> Self {
        self.0.sent = sent;
        self
    }

    /// An I/O failure on an open connection.
    pub(crate) fn io(phase: Phase, source: io::Error) -> Self {
        use io::ErrorKind as K;
        let (kind, detail) = match source.kind() {
            K::TimedOut => return Error::timeout(phase).caused_by(source),
            K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe => {
                (Kind::Closed, "the peer reset the connection")
            }
            K::UnexpectedEof => (Kind::Closed, "the peer closed the connection"),
            _ => (Kind::Io, "the connection failed"),
        };
        Error::new(kind, detail).in_phase(phase).caused_by(source)
    }

    pub(crate) fn timeout(phase: Phase) -> Self {
        Error::new(Kind::Timeout, "timed out").in_phase(phase)
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The phase of the exchange in which it went wrong, if it had begun.
    pub fn phase(&self) -> Option<Phase> {
        self.0.phase
    }

    /// The URL of the request that failed (after redirects, not always the first), without user
    /// name and password.
    pub fn url(&self) -> Option<&Url> {
        self.0.url.as_ref()
    }

    /// Whether a timeout fired.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == Kind::Timeout
    }

    /// Whether no connection could be made: resolving, connecting, TLS or the proxy failed.
    pub fn is_connect(&self) -> bool {
        matches!(self.0.phase, Some(Phase::Resolve | Phase::Connect | Phase::Tls | Phase::Proxy))
    }

    /// The status, when the error is one of [`Kind::Status`].
    pub fn status(&self) -> Option<http::StatusCode> {
        match self.0.kind {
            Kind::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the server may have acted on the request: a byte of it left, and the server did not say
    /// that it processed nothing of it (RFC 9113 section 8.7).
    pub fn was_sent(&self) -> bool {
        self.0.sent
    }

    /// Whether the same call may succeed when made again and is safe to make again whatever its
    /// method: the failure is of a passing kind, and nothing of the request [was
    /// sent](Self::was_sent), or the server said that it did not process it.
    pub fn is_retryable(&self) -> bool {
        let passing = matches!(
            self.0.kind,
            Kind::Timeout | Kind::Connect | Kind::Closed | Kind::Io | Kind::Resolve
        );
        passing && !self.0.sent
    }
}

/// User name, password and fragment do not belong in an error or a log.
pub(crate) fn without_secrets(url: &Url) -> Url {
    let mut url = url.clone();
    // These fail only for URLs that cannot have credentials, and so have none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    url
}

impl From<DialError> for Error {
    fn from(error: DialError) -> Self {
        let kind = match error.kind() {
            DialErrorKind::Timeout => Kind::Timeout,
            DialErrorKind::NameNotFound => Kind::Resolve,
            DialErrorKind::Certificate => Kind::Certificate,
            DialErrorKind::Tls => Kind::Tls,
            DialErrorKind::Proxy | DialErrorKind::ProxyAuth => Kind::Proxy,
            DialErrorKind::Config => Kind::Request,
            _ => match error.phase() {
                Phase::Resolve => Kind::Resolve,
                Phase::Tls => Kind::Tls,
                Phase::Proxy => Kind::Proxy,
                _ => Kind::Connect,
            },
        };
        let phase = error.phase();
        Error::new(kind, "no connection").in_phase(phase).caused_by(error)
    }
}

impl From<mimus_proto::Error> for Error {
    fn from(error: mimus_proto::Error) -> Self {
        match error {
            mimus_proto::Error::PeerMisbehaved(how) => {
                Error::new(Kind::Protocol, "the peer broke the protocol").caused_by(how)
            }
            mimus_proto::Error::LimitExceeded(which) => {
                Error::new(Kind::Limit, "a limit was exceeded").caused_by(which)
            }
            mimus_proto::Error::UnexpectedEof(place) => {
                Error::new(Kind::Closed, "the peer closed the connection").caused_by(place)
            }
            other => Error::new(Kind::Protocol, "the exchange failed").caused_by(other),
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        let (kind, detail) = match error {
            StreamError::NotProcessed(_) => (Kind::Closed, "the server took no more requests"),
            StreamError::Reset(_) => (Kind::Reset, "the server gave the exchange up"),
            StreamError::GoneAway(_) => (Kind::Closed, "the server left"),
            _ => (Kind::Protocol, "the exchange failed"),
        };
        Error::new(kind, detail).caused_by(error)
    }
}

impl From<mimus_proto::ApiMisuse> for Error {
    fn from(error: mimus_proto::ApiMisuse) -> Self {
        Error::request("the request cannot be written").caused_by(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)?;
        if let Some(phase) = self.0.phase {
            write!(f, " ({phase})")?;
        }
        if let Some(url) = &self.0.url {
            write!(f, " for {url}")?;
        }
        write_causes(f, self)
    }
}

/// The chain of causes behind an error's own line, where `{:#}` asks for it.
pub(crate) fn write_causes(f: &mut fmt::Formatter<'_>, error: &dyn StdError) -> fmt::Result {
    let mut cause = error.source().filter(|_| f.alternate());
    while let Some(error) = cause {
        write!(f, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("phase", &self.0.phase)
            .field("url", &self.0.url.as_ref().map(Url::as_str))
            .field("detail", &self.0.detail)
            .field("sent", &self.0.sent)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}
