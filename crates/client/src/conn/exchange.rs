//! One exchange: a connection, or a place on one, until the response is over.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::Version;
use mimus_net::{Phase, Runtime, Socket, rt::Probe};
use mimus_proto::{Event, h1::Reuse};

use super::{
    Asking, Conn, Failure, Order, Shared,
    answered::Answered,
    remains::{self, End},
    shared::OnStream,
};
use crate::{
    observe::ConnectionInfo,
    policy::retry::Sent,
    pool::{Lease, Shareable},
    route::{Route, RouteRef},
};

/// A connection that owes an answer. It is small, because it is moved about: what it needs on its way
/// lives elsewhere.
pub(crate) enum Exchange {
    /// HTTP/1.1: nobody else has the connection.
    Exclusive(ConnLease),
    /// HTTP/2: one stream of many.
    Shared(Box<OnStream>),
    /// There is no connection: a responder answers.
    Answered(Box<Answered>),
}

/// A connection lent by the pool.
pub(crate) type ConnLease = Lease<Route, Box<Conn>, Shared>;

/// A connection that can take a request.
pub(crate) enum Ready {
    Exclusive(ConnLease),
    /// With a place on it.
    Shared(Reserved),
    /// It is a responder.
    Answered(Box<Asking>),
}

/// A place on a shared connection, for a stream to take.
#[derive(Debug)]
pub(crate) struct Reserved {
    on: Shared,
    taken: bool,
}

impl Reserved {
    /// `on` has reserved the place.
    pub(crate) fn new(on: Shared) -> Self {
        Reserved { on, taken: false }
    }

    /// Whether the server takes extended CONNECT (RFC 8441), once it has said so or has not.
    ///
    /// # Errors
    /// The connection ended before.
    pub(crate) async fn offers_tunnels(&self) -> Result<bool, Failure> {
        self.on.offers_tunnels().await
    }

    /// What it is on.
    pub(crate) fn connection(&self) -> &Shared {
        &self.on
    }

    /// Whether the place can be used: see [`Shared::is_alive`].
    pub(crate) fn is_alive(&self, probe: impl FnOnce(Instant) -> Probe) -> bool {
        self.on.is_alive(probe)
    }

    fn begin(mut self, order: Order<'_>) -> Result<Box<OnStream>, Failure> {
        let begun = self.on.begin(order);
        self.taken = begun.is_ok();
        begun
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.taken {
            self.on.unreserve();
        }
    }
}

impl Ready {
    /// Whether it speaks HTTP/2.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Ready::Exclusive(_) => false,
            Ready::Shared(_) => true,
            Ready::Answered(asking) => asking.version == Version::HTTP_2,
        }
    }

    /// Whether the connection had served before.
    pub(crate) fn is_reused(&self) -> bool {
        match self {
            Ready::Exclusive(lease) => lease.is_reused(),
            Ready::Shared(place) => place.on.has_served(),
            Ready::Answered(_) => false,
        }
    }

    /// The version of HTTP that it speaks.
    pub(crate) fn version(&self) -> Version {
        match self {
            Ready::Exclusive(_) => Version::HTTP_11,
            Ready::Shared(_) => Version::HTTP_2,
            Ready::Answered(asking) => asking.version,
        }
    }

    /// The connection's particulars.
    pub(crate) fn info(&self) -> Arc<ConnectionInfo> {
        match self {
            Ready::Exclusive(lease) => Arc::clone(&lease.info),
            Ready::Shared(place) => place.on.info(),
            Ready::Answered(asking) => Arc::clone(&asking.info),
        }
    }

    /// Queues a request. Nothing is written yet.
    pub(crate) fn start(self, order: Order<'_>) -> Result<Exchange, Failure> {
        match self {
            Ready::Exclusive(mut lease) => {
                let reused = lease.is_reused();
                lease.begin(order, reused)?;
                Ok(Exchange::Exclusive(lease))
            }
            Ready::Shared(place) => Ok(Exchange::Shared(place.begin(order)?)),
            Ready::Answered(asking) => Ok(Exchange::Answered(asking.begin(order)?)),
        }
    }
}

/// Asks whichever it is.
macro_rules! either {
    ($self:expr, $it:ident => $answer:expr) => {
        match $self {
            Exchange::Exclusive($it) => $answer,
            Exchange::Shared($it) => $answer,
            Exchange::Answered($it) => $answer,
        }
    };
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exchange::Exclusive(lease) => f.debug_tuple("Exclusive").field(&**lease).finish(),
            Exchange::Shared(on) => f.debug_tuple("Shared").field(on).finish(),
            Exchange::Answered(answer) => f.debug_tuple("Answered").field(answer).finish(),
        }
    }
}

impl Exchange {
    /// Whether the connection had served before.
    pub(crate) fn reused(&self) -> bool {
        match self {
            Exchange::Exclusive(lease) => lease.is_reused(),
            Exchange::Shared(on) => on.reused(),
            Exchange::Answered(_) => false,
        }
    }

    /// The connection's particulars.
    pub(crate) fn info(&self) -> &Arc<ConnectionInfo> {
        match self {
            Exchange::Exclusive(lease) => &lease.info,
            Exchange::Shared(on) => on.info(),
            Exchange::Answered(answer) => answer.info(),
        }
    }

    /// Whether the connection was made for another route than this.
    pub(crate) fn is_anothers(&self, route: &RouteRef<'_>) -> bool {
        match self {
            Exchange::Exclusive(_) | Exchange::Answered(_) => false,
            Exchange::Shared(on) => on.is_anothers(route),
        }
    }

    /// What is happening.
    pub(crate) fn phase(&self) -> Phase {
        either!(self, it => it.phase())
    }

    /// How much of the request the peer may have seen.
    pub(crate) fn sent(&self) -> Sent {
        either!(self, it => it.sent())
    }

    /// Whether the peer answered at all.
    pub(crate) fn heard(&self) -> bool {
        either!(self, it => it.heard())
    }

    /// Whether the request still goes out. A response may be over before.
    pub(crate) fn is_sending(&self) -> bool {
        either!(self, it => it.is_sending())
    }

    /// Sends no more of the request: the answer is there and does not want it.
    pub(crate) fn stop_sending(&mut self) {
        either!(self, it => it.stop_sending());
    }

    /// The next event that is already here.
    pub(crate) fn buffered_event(&mut self) -> Result<Option<Event>, Failure> {
        either!(self, it => it.buffered_event())
    }

    /// Drives the connection until the next event: writes what there is to write, reads what there
    /// is to read.
    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<Event, Failure>> {
        either!(self, it => it.poll_event(cx, runtime))
    }

    /// Sends the rest of the request, under a response that is over, or until the peer has had enough.
    pub(crate) fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        either!(self, it => it.poll_rest(cx, runtime))
    }

    /// Reads on until the rest of a body of known length is here, which then is one piece, or until
    /// no more comes. Does nothing about other bodies, nor where pieces are what comes anyway.
    pub(crate) fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Result<(), Failure>> {
        match self {
            Exchange::Exclusive(lease) => lease.poll_gather(cx, runtime),
            Exchange::Shared(on) => on.poll_gather(cx, runtime),
            Exchange::Answered(_) => Poll::Ready(Ok(())),
        }
    }

    /// All of the body that is still to come, if it is here in one piece. The response is over then.
    pub(crate) fn take_rest(&mut self) -> Option<Bytes> {
        match self {
            Exchange::Exclusive(lease) => lease.machine.take_rest(),
            Exchange::Shared(on) => on.take_rest(),
            Exchange::Answered(answer) => answer.take_rest(),
        }
    }

    /// Bytes of the body that were not handed out, where the head told.
    pub(crate) fn remaining_body(&self) -> Option<u64> {
        match self {
            Exchange::Exclusive(lease) => lease.machine.remaining_body(),
            Exchange::Shared(on) => on.remaining_body(),
            Exchange::Answered(answer) => answer.remaining_body(),
        }
    }

    /// How much is here and was not handed out, with what frames it, where that is known.
    pub(crate) fn here(&mut self) -> usize {
        match self {
            Exchange::Exclusive(lease) => lease.machine.recv_buf().len(),
            Exchange::Shared(_) | Exchange::Answered(_) => 0,
        }
    }

    /// Whether what is here had better be left there, so that the rest comes behind it.
    pub(crate) fn gathers(&self) -> bool {
        self.remaining_body().is_some()
    }

    /// The response is over: gives the connection back, to be used again if the protocol allows.
    pub(crate) fn finish(self, now: Instant) {
        match self {
            Exchange::Exclusive(mut lease) => {
                if lease.machine.reuse() == Reuse::Yes {
                    lease.rest(now);
                    lease.release(now);
                }
            }
            Exchange::Shared(on) => on.finish(now),
            Exchange::Answered(_) => {}
        }
    }

    /// The response is not wanted any more. What little of it is already here is read off, so that
    /// the connection can serve again; otherwise it is closed, or the stream reset.
    pub(crate) fn abandon(self) {
        if let Exchange::Exclusive(lease) = self {
            drop(remains::read_off(lease));
        }
    }

    /// As [`abandon`](Self::abandon), of a response whose reader knows of its `end`.
    pub(crate) fn linger(self, end: End, runtime: &Arc<dyn Runtime>) {
        if let Exchange::Exclusive(lease) = self
            && let Some(remains) = remains::read_off(lease)
        {
            remains.wait(end, runtime);
        }
    }

    /// Takes the connection, or the stream, out of HTTP's hands, after [`Event::Upgraded`]. A responder has none.
    pub(crate) fn into_socket(self) -> Option<(Box<dyn Socket>, Arc<ConnectionInfo>)> {
        match self {
            Exchange::Exclusive(lease) => {
                let conn = lease.detach();
                Some((conn.socket, conn.info))
            }
            Exchange::Shared(on) => {
                let info = Arc::clone(on.info());
                Some((Box::new(on.into_tunnel()), info))
            }
            Exchange::Answered(_) => None,
        }
    }
}
