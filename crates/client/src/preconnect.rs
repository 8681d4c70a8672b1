//! Connections that are opened before a request needs them: because the user says so, or because the browser of
//! a profile does.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use mimus_net::{
    BoxFuture,
    rt::{Blocking, Probe},
};
use sync_wrapper::SyncWrapper;

use crate::{
    Error, Result,
    call::{Call, ConnPermit},
    client::Inner,
    conn::Reserved,
    observe::{ConnectionInfo, Hook, Observation, tell},
    opener::{Opened, Opener},
    pool::{Expects, Place, Shareable},
    request::Request,
    route::{Route, RouteRef},
};

/// One connection on its way.
struct Ahead {
    permit: ConnPermit,
    opener: Opener,
    route: Route,
    hooks: Arc<[Arc<dyn Hook>]>,
}

/// What one came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Exclusive,
    Shared,
    /// Another shared connection serves instead.
    Superfluous,
}

impl Ahead {
    /// For requests like this one, by `deadline`.
    fn new(
        client: &Inner,
        request: &Request,
        route: &RouteRef<'_>,
        (expects, deadline): (Expects, Option<Instant>),
        permit: ConnPermit,
    ) -> Result<Self> {
        let opener = Opener::new(client, request, route, expects, deadline)?.ahead();
        Ok(Ahead { permit, opener, route: route.to_route(), hooks: request.settings.hooks.clone() })
    }

    /// Opens it, and leaves it to the pool.
    async fn open(self) -> Result<Came> {
        let dialed = self.opener.begin()?.finish().await?;
        let now = Instant::now();
        match self.opener.opened(&RouteRef::from(&self.route), dialed)? {
            Opened::Exclusive(conn) => {
                tell_of(&self.hooks, &conn.info);
                self.permit.stand(conn, now);
                Ok(Came::Exclusive)
            }
            Opened::Shared(conn, at) => {
                let Some(member) = self.permit.stand_shared(conn.clone(), at, now) else {
                    return Ok(Came::Superfluous);
                };
                tell_of(&self.hooks, &conn.info());
                conn.joined(member);
                conn.greet();
                Ok(Came::Shared)
            }
        }
    }
}

fn tell_of(hooks: &[Arc<dyn Hook>], connection: &ConnectionInfo) {
    tracing::debug!(peer = ?connection.peer, "connected ahead");
    tell(hooks, &Observation::Preconnected { connection });
}

/// Opens connections for requests like this one until so many are open: see
/// [`Client::preconnect`](crate::Client::preconnect).
pub(crate) async fn run(client: Arc<Inner>, request: Request, open: usize) -> Result<usize> {
    let now = Instant::now();
    let at = |error: Error| error.on(&request.target.url);
    let route = RouteRef::of(&request, &client)?;
    let expects = client.expects(&route, &request)?;
    if expects.may_share() && stands(&client, &route, now) {
        return Ok(0);
    }
    let deadline = request.settings.timeouts.total.and_then(|total| now.checked_add(total));
    let mut dials = Dials::default();
    for permit in ahead(&client, &route, (expects, open)) {
        let dial =
            Ahead::new(&client, &request, &route, (expects, deadline), permit).map_err(at)?;
        dials.0.push(Some(Box::pin(dial.open())));
    }
    let came = dials.all().await;
    if came.iter().any(|came| matches!(came, Ok(Came::Shared))) {
        client.note_version(&request, true);
    }
    let mut opened = 0;
    for came in came {
        opened += usize::from(came.map_err(at)? != Came::Superfluous);
    }
    Ok(opened)
}

/// Leave to open connections of this route, until there are as many as `wanted`.
fn ahead(client: &Inner, route: &RouteRef<'_>, wanted: (Expects, usize)) -> Vec<ConnPermit> {
    let (pool, is_known) = (&client.pool, |known: &Route| route.matches(known));
    pool.ahead(pool.hash_of(route), is_known, || route.to_route(), wanted, Instant::now())
}

/// Whether a shared connection of this route takes requests.
fn stands(client: &Inner, route: &RouteRef<'_>, now: Instant) -> bool {
    let all = client.pool.shared_of(client.pool.hash_of(route), |known| route.matches(known));
    all.into_iter().any(|conn| {
        conn.reserve(now) == Place::Taken && Reserved::new(conn).is_alive(|_| Probe::Thorough)
    })
}

/// Dials side by side.
#[derive(Default)]
struct Dials(Vec<Option<BoxFuture<'static, Result<Came>>>>);

impl Dials {
    async fn all(mut self) -> Vec<Result<Came>> {
        let mut done = Vec::with_capacity(self.0.len());
        poll_fn(|cx| {
            Blocking::beside(|| {
                for dial in &mut self.0 {
                    if let Some(under_way) = dial
                        && let Poll::Ready(came) = under_way.as_mut().poll(cx)
                    {
                        *dial = None;
                        done.push(came);
                    }
                }
            });
            if self.0.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        done
    }
}

/// Connections that are opened beside the one that a call dials, where no task drives them: by the call, until the
/// head of its answer is there. What is not ready by then is given up.
pub(crate) struct Beside(Vec<SyncWrapper<BoxFuture<'static, ()>>>);

impl Beside {
    /// Polls what the call waits for, and has these go on.
    pub(crate) fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if self.0.is_empty() {
            return poll(cx);
        }
        Blocking::beside(|| {
            let done = poll(cx);
            self.0.retain_mut(|spare| spare.get_mut().as_mut().poll(cx).is_pending());
            done
        })
    }

    /// Awaits `other`, and has these go on meanwhile.
    pub(crate) async fn with<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        poll_fn(|cx| self.poll_with(cx, |cx| other.as_mut().poll(cx))).await
    }
}

impl Call<'_> {
    /// Has the connections opened that the browser has open once a navigation has its own, beside `open` of them,
    /// unless the host is known to speak HTTP/2. Gives those that no task drives.
    pub(crate) fn open_spares(
        &self,
        route: &RouteRef<'_>,
        expects: Expects,
        open: usize,
    ) -> Option<Box<Beside>> {
        let profile = self.request.settings.profile.as_ref()?;
        let wanted = profile.navigation_opens(&self.request).filter(|&wanted| open < wanted)?;
        // Where a redirect leads nobody knew before.
        let is_first = self.history.is_empty() && !self.client.is_http2(&self.request);
        is_first.then(|| self.dial_spares(route, expects, wanted)).flatten()
    }

    #[cold]
    fn dial_spares(
        &self,
        route: &RouteRef<'_>,
        expects: Expects,
        wanted: usize,
    ) -> Option<Box<Beside>> {
        let permits = ahead(self.client, route, (route.offers(&self.request, expects), wanted));
        let mut left = Vec::new();
        for permit in permits {
            let spare =
                Ahead::new(self.client, &self.request, route, (expects, self.deadline), permit);
            // If that fails, the call's own dial says why.
            let spare = spare.ok()?;
            let spare = Box::pin(async move {
                if let Err(error) = spare.open().await {
                    tracing::debug!(%error, "a spare connection failed");
                }
            });
            left.extend(self.client.runtime().spawn(spare).err().map(SyncWrapper::new));
        }
        (!left.is_empty()).then(|| Box::new(Beside(left)))
    }
}
