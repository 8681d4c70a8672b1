//! One stream of events about a call; timings, logs, metrics and HAR files are its consumers.

use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Method, StatusCode, Version};
use mimus_net::{
    dial::{DialTimings, Dialed},
    proxy::Proxy,
    tls::TlsInfo,
};
use mimus_proto::{Fields, ResponseHead};
use url::Url;

use crate::{BoxError, Error};

/// Sees every exchange of a client, and may change a request before it is sent.
///
/// Hooks run on the task (or thread) that makes the call, in the order in which they were added; they
/// must not block. For middleware that awaits, wrap the client as a `tower` service.
pub trait Hook: fmt::Debug + Send + Sync + 'static {
    /// Called before each exchange (each redirect and retry is one), with the fields as they will be
    /// sent. An error ends the call with [`Kind::Hook`](crate::Kind::Hook).
    ///
    /// # Errors
    /// Whatever makes this request one that must not be sent.
    fn before_send(&self, request: &mut Outgoing<'_>) -> Result<(), BoxError> {
        let _ = request;
        Ok(())
    }

    /// Called for each thing that happens.
    fn observe(&self, happened: &Observation<'_>) {
        let _ = happened;
    }
}

/// A request about to be sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outgoing<'a> {
    /// The method.
    pub method: &'a Method,
    /// The URL.
    pub url: &'a Url,
    /// The fields in wire order.
    pub fields: &'a mut Fields,
    /// 0 for the first exchange of a call; redirects and retries count on.
    pub attempt: u32,
}

/// Something that happened on the way of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A new connection stands.
    Connected {
        /// Its particulars.
        connection: &'a ConnectionInfo,
    },
    /// A connection stands that no request has needed yet: one of
    /// [`preconnect`](crate::Client::preconnect), or a spare one, as the browser of a profile opens. Told by whoever opens
    /// it, which may be a task of the runtime.
    Preconnected {
        /// Its particulars.
        connection: &'a ConnectionInfo,
    },
    /// A pooled connection was taken.
    Reused {
        /// Its particulars.
        connection: &'a ConnectionInfo,
    },
    /// An open connection that was made for another host serves this one too.
    Coalesced {
        /// Its particulars.
        connection: &'a ConnectionInfo,
    },
    /// A request goes out, with this head.
    Sending {
        /// The method.
        method: &'a Method,
        /// The URL.
        url: &'a Url,
        /// The request target as written.
        target: &'a str,
        /// The version of HTTP it is said in.
        version: Version,
        /// Over HTTP/2 what stands before the fields, in its order: `:method` and its kin (RFC 9113 section 8.3.1).
        pseudo: &'a [(&'static str, &'a str)],
        /// The fields as written, `Host` included.
        fields: &'a Fields,
    },
    /// An interim (1xx) response came.
    Informational {
        /// Its head.
        head: &'a ResponseHead,
    },
    /// The final response head came.
    Head {
        /// The URL that was asked.
        url: &'a Url,
        /// The head as received.
        head: &'a ResponseHead,
        /// From the start of the call.
        elapsed: Duration,
    },
    /// A redirect is followed.
    Redirecting {
        /// The status that sent us on.
        status: StatusCode,
        /// Where to.
        to: &'a Url,
    },
    /// The exchange failed or its answer asks for another try, which will be made.
    Retrying {
        /// What went wrong; `None` when the status asked for it.
        error: Option<&'a Error>,
        /// How long the client waits first.
        after: Duration,
    },
    /// The call failed for good.
    Failed {
        /// Why.
        error: &'a Error,
    },
}

/// The particulars of a connection; what a response reports about the one it came by.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The address connected to (a proxy's, if there is one); `None` for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The proxy it goes through. Its `Debug` and `Display` do not show its password.
    pub proxy: Option<Arc<Proxy>>,
    /// Our own address.
    pub local: Option<SocketAddr>,
    /// What TLS with the origin agreed on.
    pub tls: Option<TlsInfo>,
    /// How long each phase of making it took.
    pub dial: DialTimings,
    /// When it stood.
    pub established: Instant,
}

impl ConnectionInfo {
    /// `proxy` is the one that `dialed` goes through.
    pub(crate) fn new(dialed: &Dialed, proxy: Option<Arc<Proxy>>, now: Instant) -> Self {
        ConnectionInfo {
            peer: dialed.socket.peer_addr(),
            proxy,
            local: dialed.socket.local_addr(),
            tls: dialed.tls.clone(),
            dial: dialed.timings,
            established: now,
        }
    }
}

/// How long the phases of a call took. The phases of dialling are zero-length (`None`) on a reused
/// connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timings {
    /// Name resolution.
    pub dns: Option<Duration>,
    /// The transport connection.
    pub connect: Option<Duration>,
    /// The talk with a proxy.
    pub proxy: Option<Duration>,
    /// The TLS handshake.
    pub tls: Option<Duration>,
    /// From the start of the call (redirects and retries included) to the final response head.
    pub first_byte: Duration,
    /// From the start of the call to the end of the body; `None` until the end was read.
    pub total: Option<Duration>,
}

/// Hands an observation to every hook. Building it must be cheap, because it is built per call.
pub(crate) fn tell(hooks: &[Arc<dyn Hook>], happened: &Observation<'_>) {
    for hook in hooks {
        hook.observe(happened);
    }
}
