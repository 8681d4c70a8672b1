//! One exchange: a connection, or a place on one, until the response is over.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::Bytes;
use http::Version;
use mimus_net::{Phase, Runtime, Socket, Wait, rt::Probe};
use mimus_proto::{Event, h1::Reuse};

use super::{Conn, Failure, Order, Shared, shared::OnStream};
use crate::{
    observe::ConnectionInfo,
    policy::retry::Sent,
    pool::{Lease, Shareable},
    route::{Route, RouteRef},
};

/// The most of an unwanted body that is read off to save its connection. What costs more to read
/// than a new connection does is not worth it.
const DRAIN_MAX: usize = 64 * 1024;

/// How long an end that is on its way is awaited, for nobody waits for it: a server that means to go on is
/// told soon that it need not.
#[cfg(feature = "sse")]
const LINGER: std::time::Duration = std::time::Duration::from_millis(200);

/// A connection that owes an answer. It is small, because it is moved about: what it needs on its way
/// lives elsewhere.
pub(crate) enum Exchange {
    /// HTTP/1.1: nobody else has the connection.
    Exclusive(ConnLease),
    /// HTTP/2: one stream of many.
    Shared(Box<OnStream>),
}

/// A connection lent by the pool.
pub(crate) type ConnLease = Lease<Route, Box<Conn>, Shared>;

/// A connection that can take a request.
pub(crate) enum Ready {
    Exclusive(ConnLease),
    /// With a place on it.
    Shared(Reserved),
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
        matches!(self, Ready::Shared(_))
    }

    /// Whether the connection had served before.
    pub(crate) fn is_reused(&self) -> bool {
        match self {
            Ready::Exclusive(lease) => lease.is_reused(),
            Ready::Shared(place) => place.on.has_served(),
        }
    }

    /// The version of HTTP that it speaks.
    pub(crate) fn version(&self) -> Version {
        match self {
            Ready::Exclusive(_) => Version::HTTP_11,
            Ready::Shared(_) => Version::HTTP_2,
        }
    }

    /// The connection's particulars.
    pub(crate) fn info(&self) -> Arc<ConnectionInfo> {
        match self {
            Ready::Exclusive(lease) => Arc::clone(&lease.info),
            Ready::Shared(place) => place.on.info(),
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
        }
    }
}

/// Asks whichever it is.
macro_rules! either {
    ($self:expr, $it:ident => $answer:expr) => {
        match $self {
            Exchange::Exclusive($it) => $answer,
            Exchange::Shared($it) => $answer,
        }
    };
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exchange::Exclusive(lease) => f.debug_tuple("Exclusive").field(&**lease).finish(),
            Exchange::Shared(on) => f.debug_tuple("Shared").field(on).finish(),
        }
    }
}

impl Exchange {
    /// Whether the connection had served before.
    pub(crate) fn reused(&self) -> bool {
        match self {
            Exchange::Exclusive(lease) => lease.is_reused(),
            Exchange::Shared(on) => on.reused(),
        }
    }

    /// The connection's particulars.
    pub(crate) fn info(&self) -> &Arc<ConnectionInfo> {
        match self {
            Exchange::Exclusive(lease) => &lease.info,
            Exchange::Shared(on) => on.info(),
        }
    }

    /// Whether the connection was made for another route than this.
    pub(crate) fn is_anothers(&self, route: &RouteRef<'_>) -> bool {
        match self {
            Exchange::Exclusive(_) => false,
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
        }
    }

    /// All of the body that is still to come, if it is here in one piece. The response is over then.
    pub(crate) fn take_rest(&mut self) -> Option<Bytes> {
        match self {
            Exchange::Exclusive(lease) => lease.machine.take_rest(),
            Exchange::Shared(on) => on.take_rest(),
        }
    }

    /// Bytes of the body that were not handed out, where the head told.
    pub(crate) fn remaining_body(&self) -> Option<u64> {
        match self {
            Exchange::Exclusive(lease) => lease.machine.remaining_body(),
            Exchange::Shared(on) => on.remaining_body(),
        }
    }

    /// How much is here and was not handed out, with what frames it, where that is known.
    pub(crate) fn here(&mut self) -> usize {
        match self {
            Exchange::Exclusive(lease) => lease.machine.recv_buf().len(),
            Exchange::Shared(_) => 0,
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
        }
    }

    /// The response is not wanted any more. What little of it is already here is read off, so that
    /// the connection can serve again; otherwise it is closed, or the stream reset.
    pub(crate) fn abandon(self) {
        let Exchange::Exclusive(mut lease) = self else { return };
        let mut cx = Context::from_waker(Waker::noop());
        if poll_drain(&mut lease, &mut { DRAIN_MAX }, &mut cx) == Poll::Ready(true) {
            Exchange::Exclusive(lease).finish(Instant::now());
        }
    }

    /// As [`abandon`](Self::abandon), of a response whose reader knows that its end is near: where the
    /// runtime drives tasks, one awaits it for a moment.
    #[cfg(feature = "sse")]
    pub(crate) fn linger(self, runtime: &Arc<dyn Runtime>) {
        let Exchange::Exclusive(mut lease) = self else { return };
        let mut left = DRAIN_MAX;
        let mut cx = Context::from_waker(Waker::noop());
        match poll_drain(&mut lease, &mut left, &mut cx) {
            Poll::Ready(true) => Exchange::Exclusive(lease).finish(Instant::now()),
            Poll::Ready(false) => {}
            Poll::Pending => {
                let (clock, until) = (Arc::clone(runtime), Instant::now() + LINGER);
                // One that is refused is dropped, which closes the connection.
                let _ = runtime.spawn(Box::pin(async move {
                    let drained = std::future::poll_fn(|cx| poll_drain(&mut lease, &mut left, cx));
                    if mimus_net::rt::within(&*clock, Some(until), drained).await == Some(true) {
                        Exchange::Exclusive(lease).finish(Instant::now());
                    }
                }));
            }
        }
    }

    /// Takes the connection, or the stream, out of HTTP's hands, after [`Event::Upgraded`].
    pub(crate) fn into_socket(self) -> (Box<dyn Socket>, Arc<ConnectionInfo>) {
        match self {
            Exchange::Exclusive(lease) => {
                let conn = lease.detach();
                (conn.socket, conn.info)
            }
            Exchange::Shared(on) => {
                let info = Arc::clone(on.info());
                (Box::new(on.into_tunnel()), info)
            }
        }
    }
}

/// Reads off the rest of a response, up to `left` bytes more of it. Ready with whether its end was read.
fn poll_drain(lease: &mut ConnLease, left: &mut usize, cx: &mut Context<'_>) -> Poll<bool> {
    let long = lease.machine.remaining_body().is_some_and(|rest| rest > *left as u64);
    if long || lease.sent() != Sent::Whole {
        return Poll::Ready(false);
    }
    loop {
        match lease.buffered_event() {
            Ok(Some(Event::Data(data))) if data.len() <= *left => *left -= data.len(),
            Ok(Some(Event::Trailers(_))) => {}
            Ok(Some(Event::End)) => return Poll::Ready(true),
            Ok(None) => match lease.poll_fill(cx, Wait::Beside) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Pending => return Poll::Pending,
            },
            _ => return Poll::Ready(false),
        }
    }
}
