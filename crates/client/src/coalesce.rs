//! Connection coalescing: a connection that was made for one host serves another too (RFC 9113 section
//! 9.1.1).
//!
//! A call that is about to dial, and knows the addresses of its host, looks for a connection to one of them
//! that was made for another host and otherwise on the same [`Route`](crate::route::Route). If the
//! certificate that it came with is good for the call's host as well, its route joins the connection, and
//! needs no dial until that is gone. A dial under way is not waited for: what certificate it will bring, if
//! any, nobody knows.

use std::{net::SocketAddr, time::Instant};

use http::StatusCode;
use mimus_net::dial::Host;
use mimus_proto::ResponseHead;

use crate::{
    call::{Call, ConnPermit},
    conn::{Exchange, Ready, Reserved, Shared},
    observe::{Observation, tell},
    pool::{Expects, Place, Shareable},
    route::RouteRef,
};

impl Call<'_> {
    /// Whether a connection of another host's will do, where the call `offers` this to its own.
    pub(crate) fn may_coalesce(&self, route: &RouteRef<'_>, offers: Expects) -> bool {
        offers != Expects::Exclusive
            && route.coalesces()
            && !self.memory.misdirected
            && self.mixes()
    }

    /// Whether the origin has not asked for connections of its own.
    fn mixes(&self) -> bool {
        !self.client.apart_origins.contains(self.request.target.authority())
    }

    /// A place on a connection to one of `addrs` that serves `host` as well.
    ///
    /// # Errors
    /// The permit, when there is none.
    pub(crate) fn coalesce(
        &self,
        route: &RouteRef<'_>,
        host: &Host,
        addrs: &[SocketAddr],
        mut permit: ConnPermit,
    ) -> Result<Ready, ConnPermit> {
        let now = Instant::now();
        for standing in self.client.pool.standing_at(addrs, |other| route.is_beside(other), now) {
            let Some(place) = self.place_for(route, host, &standing.conn, now) else { continue };
            match permit.join(&standing, || self.mixes(), now) {
                Ok(()) => {
                    let connection = standing.conn.info();
                    let authority = self.request.target.authority();
                    tracing::debug!(host = authority, peer = ?connection.peer, "coalesced");
                    let happened = Observation::Coalesced { connection: &connection };
                    tell(&self.request.settings.hooks, &happened);
                    return Ok(Ready::Shared(place));
                }
                Err(back) => permit = back,
            }
        }
        Err(permit)
    }

    /// A place on `conn`, if it has one, is alive, and may serve `host`.
    fn place_for(
        &self,
        route: &RouteRef<'_>,
        host: &Host,
        conn: &Shared,
        now: Instant,
    ) -> Option<Reserved> {
        if conn.reserve(now) != Place::Taken {
            return None;
        }
        let place = Reserved::new(conn.clone());
        let fit = place.is_alive(|idle_since| self.probe(idle_since, now))
            && !conn.excludes(route, || self.origin())
            && (self.request.protocol.is_none() || conn.takes_tunnels())
            && (conn.info().tls.as_ref())
                .is_some_and(|shown| route.transport().tls.accepts_for(host, shown));
        fit.then_some(place)
    }

    /// The request's origin as RFC 6454 section 6.2 writes it.
    fn origin(&self) -> String {
        self.request.target.url.origin().ascii_serialization()
    }

    /// Whether the server has come to say, on a connection that was made for another origin, that it is not
    /// there for the request's (RFC 8336 section 2.4). The two part.
    #[inline]
    pub(crate) fn is_unwelcome(&self, route: &RouteRef<'_>, conn: &Shared) -> bool {
        let unwelcome = conn.may_span() && conn.excludes(route, || self.origin());
        if unwelcome {
            self.part(route);
        }
        unwelcome
    }

    /// Has the route served by no connection that was made for another, until it joins one.
    fn part(&self, route: &RouteRef<'_>) {
        let pool = &self.client.pool;
        pool.part(pool.hash_of(route), |r| route.matches(r));
    }

    /// Whether the server does not serve the request's origin on this connection, which was made for
    /// another, and the request is made again on one of its own (RFC 9110 section 15.5.20: whatever its
    /// method). What a server says so of on a connection made for it is the caller's to know.
    pub(crate) fn is_misdirected(&mut self, exchange: &Exchange, head: &ResponseHead) -> bool {
        if head.status != StatusCode::MISDIRECTED_REQUEST {
            return false;
        }
        let Ok(route) = RouteRef::of(&self.request, self.client) else { return false };
        if !exchange.is_anothers(&route) {
            return false;
        }
        let authority = self.request.target.authority();
        tracing::debug!(host = authority, "the origin wants a connection of its own");
        // In this order: who joins meanwhile looks there under the lock that parting takes.
        self.client.apart_origins.insert(authority);
        self.part(&route);
        self.body_is_there() && !std::mem::replace(&mut self.memory.misdirected, true)
    }
}
