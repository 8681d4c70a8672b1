//! One exchange: a connection from the pool, until the response is over.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    task::{Context, Poll, Waker},
    time::Instant,
};

use mimus_net::Wait;
use mimus_proto::{Event, h1::Reuse};

use super::{Conn, Failure, NoShared, Order};
use crate::{policy::retry::Sent, pool::Lease, route::Route};

/// The most of an unwanted body that is read off to save its connection. What costs more to read
/// than a new connection does is not worth it.
const DRAIN_MAX: usize = 64 * 1024;

/// A connection that owes an answer. It is small, because it is moved about: what it needs on its way
/// lives in the connection.
pub(crate) struct Exchange {
    lease: Lease<Route, Box<Conn>, NoShared>,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exchange").field(&**self).finish()
    }
}

impl Deref for Exchange {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.lease
    }
}

impl DerefMut for Exchange {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.lease
    }
}

impl Exchange {
    /// Queues a request on a leased connection. Nothing is written yet.
    pub(crate) fn start(
        mut lease: Lease<Route, Box<Conn>, NoShared>,
        order: Order<'_>,
    ) -> Result<Self, Failure> {
        let reused = lease.is_reused();
        lease.begin(order, reused)?;
        Ok(Exchange { lease })
    }

    /// Whether the connection had served before.
    pub(crate) fn reused(&self) -> bool {
        self.lease.is_reused()
    }

    /// The response is over: gives the connection back, to be used again if the protocol allows.
    pub(crate) fn finish(mut self, now: Instant) {
        if self.machine.reuse() == Reuse::Yes {
            self.rest(now);
            self.lease.release(now);
        }
    }

    /// The response is not wanted any more. What little of it is already here is read off, so that
    /// the connection can serve again; otherwise it is closed.
    pub(crate) fn abandon(mut self) {
        if self.sent() != Sent::Whole {
            return;
        }
        let mut cx = Context::from_waker(Waker::noop());
        let mut left = DRAIN_MAX;
        loop {
            match self.buffered_event() {
                Ok(Some(Event::Data(data))) if data.len() <= left => left -= data.len(),
                Ok(Some(Event::Trailers(_))) => {}
                Ok(Some(Event::End)) => return self.finish(Instant::now()),
                Ok(None) => match self.poll_fill(&mut cx, Wait::Beside) {
                    Poll::Ready(Ok(())) => {}
                    _ => return,
                },
                _ => return,
            }
        }
    }

    /// Takes the connection out of HTTP's hands, after [`Event::Upgraded`].
    pub(crate) fn into_conn(self) -> Box<Conn> {
        self.lease.detach()
    }
}
