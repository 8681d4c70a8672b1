//! From a route to a connection that speaks HTTP, whoever wants one: a call, or nobody yet.

use std::{net::SocketAddr, time::Instant};

use mimus_net::{
    DialError,
    dial::{Dial, DialTimeouts, Dialed, Dialer, Host, Plan},
};

use crate::{
    Result,
    client::Inner,
    conn::{Conn, Shared},
    pool::Expects,
    request::Request,
    route::RouteRef,
};

/// What it takes to open a connection of a route. Owned: it may outlive the call that wants it.
#[derive(Clone)]
pub(crate) struct Opener {
    dialer: Dialer,
    plan: Plan,
    timeouts: DialTimeouts,
    offers: Expects,
    early: bool,
}

/// A connection that was opened.
pub(crate) enum Opened {
    Exclusive(Box<Conn>),
    /// With the address at which calls of other hosts may find it.
    Shared(Shared, Option<SocketAddr>),
}

impl Opener {
    /// For `request`, whose route it is, until `deadline`.
    pub(crate) fn new(
        client: &Inner,
        request: &Request,
        route: &RouteRef<'_>,
        expects: Expects,
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let settings = &request.settings;
        let early = settings.transport.early_data && request.method.is_safe();
        let offers = route.offers(request, expects);
        let plan = route.plan(&request.target, offers, early)?;
        let overrides = route.transport().overrides.clone();
        let timeouts = DialTimeouts {
            resolve: settings.timeouts.resolve,
            connect: settings.timeouts.connect,
            tls: settings.timeouts.tls,
            total: deadline,
        };
        let dialer = Dialer { overrides, ..client.dialer.clone() };
        Ok(Opener { dialer, plan, timeouts, offers, early })
    }

    /// The same for a connection that no request waits for: nothing is sent before its handshake is over.
    pub(crate) fn ahead(mut self) -> Self {
        self.early = false;
        if let Some(tls) = &mut self.plan.tls {
            tls.early_data = false;
        }
        self
    }

    /// What the server is offered.
    pub(crate) fn offers(&self) -> Expects {
        self.offers
    }

    /// The origin's host.
    pub(crate) fn host(&self) -> &Host {
        &self.plan.host
    }

    /// Begins to dial.
    ///
    /// # Errors
    /// When there is no runtime to dial on.
    pub(crate) fn begin(&self) -> Result<Dial<'_>, DialError> {
        self.dialer.begin(&self.plan, &self.timeouts)
    }

    /// What was dialled, as a connection of `route`.
    ///
    /// # Errors
    /// It does not speak what was asked for.
    pub(crate) fn opened(&self, route: &RouteRef<'_>, dialed: Dialed) -> Result<Opened> {
        let proxy = self.plan.proxy.clone();
        if !route.speaks_http2(self.offers, dialed.tls.as_ref())? {
            return Ok(Opened::Exclusive(Box::new(Conn::new(dialed, proxy, self.early))));
        }
        let home = route.coalesces().then(|| Box::new(route.to_route()));
        let at = home.as_ref().and(dialed.socket.peer_addr());
        let (http2, runtime) = (&route.transport().http2, &self.dialer.runtime);
        Ok(Opened::Shared(Shared::new(dialed, proxy, self.early, home, http2, runtime), at))
    }
}
