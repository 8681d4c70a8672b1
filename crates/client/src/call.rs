//! One call, from request to answer. Read it from the top: [`run`] is the whole of it.

use std::{
    borrow::Cow,
    future::poll_fn,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Method, Version};
use mimus_net::{
    Phase,
    proxy::Proxy,
    rt::{self, Probe},
};
use mimus_proto::{BodyLength, Event, Fields, ResponseHead};

use crate::{
    Body, Error, Incoming, Kind, Protocol, Result,
    client::Inner,
    conn::{
        Asking, Conn, Deadlines, Exchange, Failure, Order, Ready, RequestLine, Reserved, Shared,
    },
    incoming::Reading,
    observe::{Observation, Outgoing, tell},
    opener::{Opened, Opener},
    policy::retry::Sent,
    pool::{Acquired, Asked, DialPermit, Expects},
    preconnect::Beside,
    request::Request,
    responder::Chosen,
    response::{Answer, Hop, Response},
    route::{Route, RouteRef},
    verdict::{Memory, Next},
    wire,
};

/// A connection that idled for longer is looked at by a system call before it is used again. By then
/// the call costs nothing in comparison.
const IDLE_BEFORE_PROBE: Duration = Duration::from_millis(1);

pub(crate) type ConnPermit = DialPermit<Route, Box<Conn>, Shared>;
type ConnAcquired = Acquired<Route, Box<Conn>, Shared>;
type ConnAsked = Asked<Route, Box<Conn>, Shared>;

/// Makes the call: exchange after exchange, until one of them is the answer.
pub(crate) async fn run<M>(
    client: Arc<Inner>,
    request: Result<Box<Request>>,
) -> Result<Response<M>> {
    let mut call = Call::new(&client, request?);
    loop {
        let outcome = call.attempt().await;
        match call.judge(&outcome) {
            Next::Done => match outcome.result {
                Ok((exchange, head)) => return call.answer(exchange, head),
                Err(error) => return Err(call.fail(error)),
            },
            Next::Again { at } => {
                // A body that came is nobody's; its connection may serve the next exchange.
                if let Ok((exchange, _)) = outcome.result {
                    exchange.abandon();
                }
                if let Some(at) = at {
                    client.runtime().sleep_until(at).await;
                }
            }
            Next::Fail(error) => return Err(call.fail(error)),
        }
    }
}

/// A call under way.
pub(crate) struct Call<'a> {
    pub(crate) client: &'a Arc<Inner>,
    pub(crate) request: Box<Request>,
    pub(crate) started: Instant,
    pub(crate) deadline: Option<Instant>,
    /// Exchanges begun so far.
    pub(crate) attempts: u32,
    pub(crate) history: Vec<Hop>,
    /// What the policies remember from one exchange to the next.
    pub(crate) memory: Memory,
    head_at: Instant,
    body_gone: bool,
    /// Spare connections that no task drives, until the head is there.
    beside: Option<Box<Beside>>,
}

/// How one exchange ended.
pub(crate) struct Outcome {
    pub(crate) trace: Trace,
    pub(crate) result: Result<(Exchange, ResponseHead)>,
}

/// What decides whether an exchange may be repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trace {
    /// How much of the request the server may have seen.
    pub(crate) sent: Sent,
    /// Whether the connection had served before.
    pub(crate) reused: bool,
    /// Whether a byte of a response came.
    pub(crate) heard: bool,
}

impl<'a> Call<'a> {
    fn new(client: &'a Arc<Inner>, request: Box<Request>) -> Self {
        let started = Instant::now();
        // A timeout beyond what the clock can say is none.
        let total = request.settings.timeouts.total;
        let deadline = total.and_then(|total| started.checked_add(total));
        Call {
            client,
            request,
            started,
            deadline,
            attempts: 0,
            history: Vec::new(),
            memory: Memory::default(),
            head_at: started,
            body_gone: false,
            beside: None,
        }
    }

    /// One exchange.
    async fn attempt(&mut self) -> Outcome {
        let mut exchange = match self.send().await {
            Ok(exchange) => exchange,
            Err(error) => {
                let trace = Trace { sent: Sent::Nothing, reused: false, heard: false };
                return Outcome { trace, result: Err(error) };
            }
        };
        let head = self.head(&mut exchange).await;
        self.beside = None;
        let trace =
            Trace { sent: exchange.sent(), reused: exchange.reused(), heard: exchange.heard() };
        let result = match head {
            Ok(head) => Ok((exchange, head)),
            Err(failure) => {
                let error = failure.into_error(exchange.phase());
                Err(error.after_sending(trace.sent > Sent::Nothing))
            }
        };
        Outcome { trace, result }
    }

    /// From the request to a connection with the request queued on it.
    async fn send(&mut self) -> Result<Exchange> {
        let now = if self.attempts == 0 { self.started } else { Instant::now() };
        self.attempts += 1;
        let route = RouteRef::of(&self.request, self.client)?;
        let forwarding = route.forwarding_proxy();
        let length = wire::body_length(&self.request);
        let target = &self.request.target;
        // A browser's depend on the version, which only the connection knows.
        let mut fields = Cow::Owned(Fields::new());
        if self.request.settings.profile.is_none() {
            let additions = additions(&mut self.memory, &self.request, self.client, forwarding)?;
            fields = wire::fields(self.client, target, &self.request, length, additions, false)?;
            self.ask_hooks(&mut fields)?;
        }
        let expects = self.client.expects(&route, &self.request)?;
        let (ready, now) = match self.ready(&route, expects, now) {
            Ok(ready) => {
                if self.request.settings.profile.is_some()
                    && let Ready::Exclusive(lease) = &ready
                {
                    self.open_spares(&route, expects, lease.open());
                }
                (ready, now)
            }
            // Boxed, because it is rare and its state is large. It may have taken long.
            Err(asked) => {
                let mut beside = None;
                let ready =
                    Box::pin(self.connect(&route, expects, asked, &mut beside, now)).await?;
                self.beside = beside;
                (ready, Instant::now())
            }
        };
        let ready = match self.request.protocol {
            None => ready,
            Some(_) => Box::pin(self.for_tunnel(ready)).await?,
        };
        let mut weight = None;
        if let Some(profile) = &self.request.settings.profile {
            let (additions, http2) = (
                additions(&mut self.memory, &self.request, self.client, forwarding)?,
                ready.is_shared(),
            );
            fields = wire::fields(self.client, target, &self.request, length, additions, http2)?;
            self.ask_hooks(&mut fields)?;
            weight = profile.weight(crate::profile::kind_of(&self.request));
        }
        let forwards = forwarding.is_some();
        let body = match length {
            BodyLength::None => None,
            _ => Some(Call::take_body(&mut self.request.body, &mut self.body_gone)?),
        };
        let mut authority = "";
        if ready.is_shared() {
            wire::suit_http2(&mut fields, target);
            // The user's own, if there is one.
            authority = fields.get_str("host").unwrap_or_default();
        }
        let asked = wire::target(&self.request, forwards);
        let line = RequestLine {
            method: &self.request.method,
            target: &asked,
            scheme: self.request.target.url.scheme(),
            authority,
            protocol: self.request.protocol.as_ref().map(Protocol::as_str),
            fields: &fields,
            weight,
            length,
        };
        self.tell_sending(&ready, &line);
        let order = Order {
            line: &line,
            body: body.map(Box::new),
            limits: self.request.settings.limits,
            expect_wait: self.request.settings.expect_continue,
            deadlines: self.deadlines(),
            now,
        };
        let exchange = ready.start(order).map_err(|e| e.into_error(Phase::Send))?;
        wire::recycle(fields);
        Ok(exchange)
    }

    fn deadlines(&self) -> Deadlines {
        let timeouts = &self.request.settings.timeouts;
        Deadlines {
            total: self.deadline,
            head: timeouts.head,
            idle: timeouts.idle,
            write: timeouts.write,
        }
    }

    /// Waits for the final head.
    async fn head(&mut self, exchange: &mut Exchange) -> Result<ResponseHead, Failure> {
        let runtime = self.client.runtime();
        loop {
            let event = poll_fn(|cx| match &mut self.beside {
                None => exchange.poll_event(cx, runtime),
                Some(beside) => beside.poll_with(cx, |cx| exchange.poll_event(cx, runtime)),
            });
            match event.await? {
                Event::Head(head) => {
                    self.head_at = Instant::now();
                    let hooks = &self.request.settings.hooks;
                    if !hooks.is_empty() {
                        let url = &self.request.target.url;
                        let elapsed = self.head_at - self.started;
                        tell(hooks, &Observation::Head { url, head: &head, elapsed });
                    }
                    return Ok(head);
                }
                Event::Informational(head) => {
                    tell(&self.request.settings.hooks, &Observation::Informational { head: &head });
                }
                // Nothing else can precede the head.
                _ => {}
            }
        }
    }

    /// An open connection for `route`; or else what the pool says.
    #[inline]
    fn ready(
        &self,
        route: &RouteRef<'_>,
        expects: Expects,
        now: Instant,
    ) -> Result<Ready, ConnAsked> {
        if let Some(responder) = &self.request.settings.responder
            && let Some(asking) = self.asking(responder, expects)
        {
            return Ok(Ready::Answered(Box::new(asking)));
        }
        match self.acquire(route, expects, now) {
            Asked::Granted(acquired) => self.fresh(acquired, route, expects, now),
            waiting => Err(waiting),
        }
    }

    /// The responder in the place of a connection, if it wants this exchange.
    #[cold]
    fn asking(&self, responder: &Chosen, expects: Expects) -> Option<Asking> {
        let (method, url) = (&self.request.method, &self.request.target.url);
        let version = match expects {
            Expects::Shared => Version::HTTP_2,
            Expects::Exclusive | Expects::Either => Version::HTTP_11,
        };
        let responder = Some(&responder.0).filter(|responder| responder.answers(method, url))?;
        let runtime = &self.client.dialer.runtime;
        Some(Asking::new(Arc::clone(responder), Arc::clone(runtime), url.clone(), version))
    }

    fn acquire(&self, route: &RouteRef<'_>, expects: Expects, now: Instant) -> ConnAsked {
        let pool = &self.client.pool;
        let hash = pool.hash_of(route);
        pool.acquire(hash, |r| route.matches(r), || route.to_route(), expects, now)
    }

    /// Passes over connections that died while nobody used them.
    fn fresh(
        &self,
        mut acquired: ConnAcquired,
        route: &RouteRef<'_>,
        expects: Expects,
        now: Instant,
    ) -> Result<Ready, ConnAsked> {
        loop {
            acquired = match acquired {
                Acquired::Lease(mut lease) => {
                    let probe = self.probe(lease.idle_since, now);
                    if lease.is_clear() && !lease.socket.is_stale(probe) {
                        return Ok(Ready::Exclusive(lease));
                    }
                    tracing::trace!("a pooled connection had died");
                    lease.stale(now)
                }
                Acquired::Shared(shared) => {
                    let place = Reserved::new(shared);
                    if place.is_alive(|idle_since| self.probe(idle_since, now))
                        && !self.is_unwelcome(route, place.connection())
                    {
                        return Ok(Ready::Shared(place));
                    }
                    drop(place);
                    match self.acquire(route, expects, now) {
                        Asked::Granted(acquired) => acquired,
                        waiting => return Err(waiting),
                    }
                }
                dial => return Err(Asked::Granted(dial)),
            };
        }
    }

    /// A connection for `route`, by waiting for one or by dialling.
    async fn connect(
        &self,
        route: &RouteRef<'_>,
        expects: Expects,
        mut asked: ConnAsked,
        beside: &mut Option<Box<Beside>>,
        now: Instant,
    ) -> Result<Ready> {
        let until = self.deadlines().of(self.request.settings.timeouts.pool, now);
        loop {
            let acquired = match asked {
                Asked::Granted(acquired) => acquired,
                Asked::Wait(waiting) => rt::within(self.client.runtime(), until, waiting)
                    .await
                    .ok_or_else(|| Error::timeout(Phase::Pool))?,
            };
            asked = match self.fresh(acquired, route, expects, Instant::now()) {
                Ok(ready) => return Ok(ready),
                Err(Asked::Granted(Acquired::Dial(permit))) => {
                    return self.dial(route, expects, permit, beside).await;
                }
                Err(asked) => asked,
            };
        }
    }

    /// How hard to look at an idle connection. A request that could not be repeated had better not be
    /// sent in vain; for others a fresh look is not worth a system call, because a failure is retried.
    pub(crate) fn probe(&self, idle_since: Instant, now: Instant) -> Probe {
        let repeatable = self.request.method.is_idempotent() && self.request.body.is_replayable();
        let fresh = idle_since + IDLE_BEFORE_PROBE > now;
        if repeatable && fresh { Probe::Free } else { Probe::Thorough }
    }

    async fn dial(
        &self,
        route: &RouteRef<'_>,
        expects: Expects,
        permit: ConnPermit,
        beside: &mut Option<Box<Beside>>,
    ) -> Result<Ready> {
        let opener = Opener::new(self.client, &self.request, route, expects, self.deadline)?;
        let mut dial = opener.begin()?;
        let permit = match self.may_coalesce(route, opener.offers()) {
            false => permit,
            true => match self.coalesce(route, opener.host(), dial.addresses().await?, permit) {
                Ok(ready) => return Ok(ready),
                Err(permit) => permit,
            },
        };
        *beside = self.open_spares(route, expects, 0);
        let dialed = match beside {
            None => dial.finish().await?,
            Some(beside) => beside.with(dial.finish()).await?,
        };
        let ready = match opener.opened(route, dialed)? {
            Opened::Exclusive(conn) => {
                self.client.note_version(&self.request, false);
                Ready::Exclusive(permit.connected(conn, Instant::now()))
            }
            Opened::Shared(shared, at) => {
                let reserved = shared.reserve_first();
                shared.joined(permit.shared(shared.clone(), at, Instant::now()));
                self.client.note_version(&self.request, true);
                Ready::Shared(reserved)
            }
        };
        let connection = ready.info();
        tracing::debug!(host = self.request.target.authority(), peer = ?connection.peer, "connected");
        tell(&self.request.settings.hooks, &Observation::Connected { connection: &connection });
        Ok(ready)
    }

    /// The connection, if its server takes extended CONNECT.
    async fn for_tunnel(&self, ready: Ready) -> Result<Ready> {
        let now = Instant::now();
        let place = match ready {
            Ready::Shared(place) => place,
            Ready::Exclusive(lease) => {
                lease.release(now);
                return Err(Error::new(Kind::NotOffered, "the server does not speak HTTP/2"));
            }
            Ready::Answered(_) => {
                return Err(Error::new(Kind::NotOffered, "a responder takes no extended CONNECT"));
            }
        };
        let until = self.deadlines().of(self.request.settings.timeouts.head, now);
        match rt::within(self.client.runtime(), until, place.offers_tunnels()).await {
            None => Err(Error::timeout(Phase::Head)),
            Some(Err(failure)) => Err(failure.into_error(Phase::Head)),
            Some(Ok(true)) => Ok(Ready::Shared(place)),
            Some(Ok(false)) => {
                Err(Error::new(Kind::NotOffered, "the server takes no extended CONNECT"))
            }
        }
    }

    fn take_body(body: &mut Body, gone: &mut bool) -> Result<Body> {
        match body.try_clone() {
            Some(again) => Ok(again),
            None if !std::mem::replace(gone, true) => Ok(std::mem::take(body)),
            None => Err(Error::new(Kind::Upload, "the body cannot be sent a second time")),
        }
    }

    /// The call goes on without its body.
    pub(crate) fn drop_body(&mut self) {
        self.request.body = Body::empty();
        self.body_gone = false;
    }

    /// Whether the body can still be sent (again).
    pub(crate) fn body_is_there(&self) -> bool {
        !self.body_gone
    }

    fn ask_hooks(&self, fields: &mut Cow<'_, Fields>) -> Result<()> {
        for hook in self.request.settings.hooks.iter() {
            let mut outgoing = Outgoing {
                method: &self.request.method,
                url: &self.request.target.url,
                fields: fields.to_mut(),
                attempt: self.attempts - 1,
            };
            hook.before_send(&mut outgoing)
                .map_err(|e| Error::new(Kind::Hook, "a hook refused the request").caused_by(e))?;
        }
        Ok(())
    }

    fn tell_sending(&self, ready: &Ready, line: &RequestLine<'_>) {
        let hooks = &self.request.settings.hooks;
        if hooks.is_empty() {
            return;
        }
        if ready.is_reused() {
            tell(hooks, &Observation::Reused { connection: &ready.info() });
        }
        let order = self.request.settings.transport.http2.opening.pseudo;
        let pseudo: Vec<_> = match ready.is_shared() {
            false => Vec::new(),
            true => line.in_http2(false).pseudo_fields(order).collect(),
        };
        let sending = Observation::Sending {
            method: line.method,
            url: &self.request.target.url,
            target: line.target,
            version: ready.version(),
            pseudo: &pseudo,
            fields: line.fields,
        };
        tell(hooks, &sending);
    }

    /// Makes the answer of the exchange that is one.
    fn answer<M>(self, mut exchange: Exchange, head: ResponseHead) -> Result<Response<M>> {
        let settings = &self.request.settings;
        let connection = exchange.info().clone();
        let reused = exchange.reused();
        if !head.status.is_success() && !head.status.is_informational() {
            exchange.stop_sending();
        }
        let reading = Reading {
            fields: &head.fields,
            decode: settings.decode.as_ref().filter(|_| self.request.method != Method::HEAD),
            limit: settings.body_limit,
        };
        let runtime = &self.client.dialer.runtime;
        let body = match Incoming::new(exchange, reading, runtime, self.head_at) {
            Ok(body) => body,
            Err(error) => return Err(self.fail(error.after_sending(true))),
        };
        Ok(Response::new(Answer {
            head,
            body,
            connection,
            reused,
            started: self.started,
            head_at: self.head_at,
            target: self.request.target,
            history: self.history,
        }))
    }

    fn fail(&self, error: Error) -> Error {
        let error = error.on(&self.request.target.url);
        tracing::debug!(%error, "the call failed");
        tell(&self.request.settings.hooks, &Observation::Failed { error: &error });
        error
    }
}

/// What a call has to say besides the user.
fn additions<'p>(
    memory: &mut Memory,
    request: &Request,
    client: &Inner,
    forwarding: Option<&'p Proxy>,
) -> Result<wire::Additions<'p>> {
    let body_comes = !request.body.is_empty();
    Ok(wire::Additions {
        authorization: memory.authorization(request, client)?,
        left_origin: memory.left_origin(),
        forwarding,
        expect_continue: body_comes && request.settings.expect_continue.is_some(),
    })
}
