//! Why a connection could not be made.

use std::{fmt, io};

use crate::tls::EchConfigList;

/// The phase of an exchange in which something happened. Timings, timeouts and errors share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting for a connection slot in the pool.
    Pool,
    /// Turning a name into addresses.
    Resolve,
    /// Opening the transport connection.
    Connect,
    /// Talking to a proxy until it hands over the tunnel.
    Proxy,
    /// The TLS handshake.
    Tls,
    /// Writing the request.
    Send,
    /// Waiting for the response head.
    Head,
    /// Reading the response body.
    Body,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Pool => "waiting for a connection",
            Phase::Resolve => "resolving the name",
            Phase::Connect => "connecting",
            Phase::Proxy => "talking to the proxy",
            Phase::Tls => "in the TLS handshake",
            Phase::Send => "sending the request",
            Phase::Head => "waiting for the response head",
            Phase::Body => "reading the response body",
        })
    }
}

/// What kind of thing went wrong while dialling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialErrorKind {
    /// The operating system or the peer failed the operation (refused, reset, unreachable...).
    Io,
    /// The phase's own timeout, or the call's total one, fired.
    Timeout,
    /// The name does not exist or has no usable address.
    NameNotFound,
    /// The peer's certificate was not accepted.
    Certificate,
    /// TLS failed for another reason.
    Tls,
    /// The proxy refused, or does not speak its protocol.
    Proxy,
    /// The proxy wants (other) credentials.
    ProxyAuth,
    /// The plan itself cannot be carried out (a bad host, an interface that is not there...).
    Config,
}

/// Why a connection could not be made: in which [`Phase`], of what kind, and the cause.
#[derive(Debug)]
pub struct DialError {
    phase: Phase,
    kind: DialErrorKind,
    detail: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    ech_retry: Option<EchConfigList>,
}

impl DialError {
    /// An error of `kind` in `phase`; `detail` says what was attempted, and with whom.
    pub fn new(phase: Phase, kind: DialErrorKind, detail: impl Into<String>) -> Self {
        DialError { phase, kind, detail: detail.into(), source: None, ech_retry: None }
    }

    /// An error of the operating system in `phase`. A timed-out operation becomes
    /// [`DialErrorKind::Timeout`].
    pub fn io(phase: Phase, detail: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::TimedOut => DialErrorKind::Timeout,
            _ => DialErrorKind::Io,
        };
        DialError::new(phase, kind, detail).caused_by(source)
    }

    /// Names the cause.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn with_ech_retry(mut self, configs: Option<EchConfigList>) -> Self {
        self.ech_retry = configs;
        self
    }

    /// The configurations that a server gave which refused the encrypted ClientHello, for one more try over a new
    /// connection (RFC 9849 section 6.1.6). It proved to be who the refused configuration named.
    pub fn ech_retry_configs(&self) -> Option<&EchConfigList> {
        self.ech_retry.as_ref()
    }

    /// The phase that failed.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The kind of failure.
    pub fn kind(&self) -> DialErrorKind {
        self.kind
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The phase is told by whoever wraps this, and by `phase`.
        f.write_str(&self.detail)
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}
