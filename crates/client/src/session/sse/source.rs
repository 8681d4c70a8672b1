//! A source of events, however many connections that takes.

use std::{
    borrow::Cow,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures_core::Stream;
use http::Method;
use mimus_net::{rt, rt::BoxFuture};
use mimus_proto::sse::{
    Action, Ending, Event, LAST_EVENT_ID, Limits, MEDIA_TYPE, Policy, Source, Verdict,
};
use sync_wrapper::SyncWrapper;

use super::{Refusal, too_long};
use crate::{
    Client, Error, Incoming, IntoUrl, Kind, RequestBuilder, Response, Result, blocking, call,
    client::{Async, Blocking, Inner},
    profile,
    request::{Request, set},
};

/// The events of a source: a [`Stream`], or an [`Iterator`] where calls block. When a stream ends or its
/// connection fails, another is opened behind the last event (HTML standard section 9.2).
///
/// It does nothing until it is read. It ends (`None`) when the server answers 204, or when a stream ends and
/// it may not connect again. Dropping it gives the connection back when the rest is small and here, or about
/// to be.
#[must_use = "an event source does nothing until it is read"]
pub struct EventSource<M = Async> {
    client: Arc<Inner>,
    /// Until it is sent for the last time; or why there is none, until that is told.
    request: Result<Option<Box<Request>>, Option<Error>>,
    policy: Policy,
    source: Source,
    link: Link<M>,
    connections: u64,
}

enum Link<M> {
    /// There is none.
    None,
    /// An answer is awaited.
    Opening(SyncWrapper<BoxFuture<'static, Result<Response<M>>>>),
    /// The answer is no stream; what it says is read.
    Refused(SyncWrapper<BoxFuture<'static, Error>>),
    /// The stream.
    Open(Incoming),
    /// It is not time yet.
    Waiting(SyncWrapper<BoxFuture<'static, ()>>),
}

impl<M> RequestBuilder<M> {
    /// Reads the answer as an event stream, and goes on when it ends: see [`EventSource`].
    ///
    /// Asks for `text/event-stream`, fresh, unless told otherwise. A request with a method other than GET
    /// is not sent again unless [`reconnect`](EventSource::reconnect) says so. Mistakes made while building
    /// are told by the first read.
    pub fn event_source(self) -> EventSource<M> {
        let (client, request) = self.into_parts();
        let request = request.and_then(|mut request| {
            // What browsers send (HTML standard section 9.2.2, and Fetch's cache mode "no-store").
            if request.settings.profile.is_some() {
                request.ask.get_or_insert_default().kind.get_or_insert(profile::Kind::FETCH);
            }
            for (name, value) in [("Accept", MEDIA_TYPE), ("Cache-Control", "no-cache")] {
                if !request.fields.contains(name) {
                    set(&mut request.fields, name, value.as_bytes())?;
                }
            }
            Ok(request)
        });
        let mut policy = Policy::default();
        policy.reconnect = matches!(&request, Ok(request) if request.method == Method::GET);
        EventSource {
            client,
            request: request.map(Some).map_err(Some),
            source: Source::new(policy.clone()),
            policy,
            link: Link::None,
            connections: 0,
        }
    }
}

impl Client {
    /// The events of a source, by GET. To set fields or more, begin with [`get`](Self::get) and end with
    /// [`RequestBuilder::event_source`].
    pub fn event_source(&self, url: impl IntoUrl) -> EventSource {
        self.get(url).event_source()
    }
}

impl blocking::Client {
    /// The events of a source, by GET. To set fields or more, begin with [`get`](Self::get) and end with
    /// [`RequestBuilder::event_source`].
    pub fn event_source(&self, url: impl IntoUrl) -> EventSource<Blocking> {
        self.get(url).event_source()
    }
}

/// Settings, to be made before the first read.
impl<M> EventSource<M> {
    /// All that decides when it connects again, [`reconnect`](Self::reconnect) included.
    pub fn policy(mut self, policy: Policy) -> Self {
        let id = self.source.last_event_id().into_owned();
        self.source = Source::new(policy.clone());
        self.source.set_last_event_id(&id);
        self.policy = policy;
        self
    }

    fn change(self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut policy = self.policy.clone();
        change(&mut policy);
        self.policy(policy)
    }

    /// Whether it connects again at all: [`Policy::reconnect`]. Default: where the method is GET.
    pub fn reconnect(self, on: bool) -> Self {
        self.change(|policy| policy.reconnect = on)
    }

    /// The reconnection time until the server names one: [`Policy::retry`].
    pub fn retry(self, time: Duration) -> Self {
        self.change(|policy| policy.retry = time)
    }

    /// The longest that repeated failures let it wait: [`Policy::max_backoff`].
    pub fn max_backoff(self, time: Duration) -> Self {
        self.change(|policy| policy.max_backoff = time)
    }

    /// After how many failures in a row it stops: [`Policy::max_failures`].
    pub fn max_failures(self, most: impl Into<Option<u32>>) -> Self {
        self.change(|policy| policy.max_failures = most.into())
    }

    /// Whether it connects again though it never had a stream: [`Policy::from_start`].
    pub fn reconnect_from_start(self, on: bool) -> Self {
        self.change(|policy| policy.from_start = on)
    }

    /// Whether it connects again after a status of 429 or 5xx: [`Policy::on_server_error`].
    pub fn reconnect_on_server_error(self, on: bool) -> Self {
        self.change(|policy| policy.on_server_error = on)
    }

    /// What the server may make us hold: [`Policy::limits`].
    pub fn limits(self, limits: Limits) -> Self {
        self.change(|policy| policy.limits = limits)
    }

    /// Begins behind the event with this ID, seen earlier. Without it the first request has no
    /// `Last-Event-ID`.
    pub fn last_event_id_seen(mut self, id: &str) -> Self {
        self.source.set_last_event_id(id);
        self
    }
}

impl<M: 'static> EventSource<M> {
    /// The next event, or `None` when there will be none. After an error there is nothing more.
    ///
    /// # Errors
    /// No connection came about or the server answered with no stream, and it may not try again; the latter
    /// has a [`Refusal`] as its source. Of [`Kind::Limit`] when a line or an event is longer than allowed.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        let polled = ready!(self.poll_next_event(cx)).transpose();
        if !matches!(polled, Some(Ok(_))) {
            self.source.close();
            self.leave();
        }
        Poll::Ready(polled)
    }

    fn poll_next_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>>> {
        loop {
            match &mut self.link {
                Link::None => match self.source.action(Instant::now()) {
                    Action::Connect => self.connect()?,
                    Action::Wait(at) => {
                        let sleep = self.client.runtime().sleep_until(at);
                        self.link = Link::Waiting(SyncWrapper::new(sleep));
                    }
                    Action::Read | Action::Stop => return Poll::Ready(Ok(None)),
                },
                Link::Waiting(sleep) => {
                    ready!(sleep.get_mut().as_mut().poll(cx));
                    self.link = Link::None;
                }
                Link::Opening(opening) => {
                    let answer = ready!(opening.get_mut().as_mut().poll(cx));
                    self.link = Link::None;
                    match answer {
                        Ok(response) => self.answered(response),
                        Err(error) => self.lost(error)?,
                    }
                }
                Link::Refused(reading) => {
                    return Poll::Ready(Err(ready!(reading.get_mut().as_mut().poll(cx))));
                }
                Link::Open(body) => {
                    if let Some(event) = self.source.next_event().map_err(too_long)? {
                        return Poll::Ready(Ok(Some(event.to_owned())));
                    }
                    match ready!(body.poll_data(cx)) {
                        Some(Ok(piece)) => self.source.push(piece),
                        Some(Err(error)) => self.lost(error)?,
                        None => {
                            self.link = Link::None;
                            self.source.ended(Ending::Passing, Instant::now(), random());
                        }
                    }
                }
            }
        }
    }

    /// Sends the request, with the last event ID.
    fn connect(&mut self) -> Result<()> {
        let mut request = self.next_request()?;
        // Blanks around a value are no part of it on the wire (RFC 9110 section 5.5). An ID that cannot be
        // said at all ends the source: without it, events would come twice, or not at all.
        let id = self.source.last_event_id();
        let id = id.trim_matches([' ', '\t']);
        if !id.is_empty() {
            set(&mut request.fields, LAST_EVENT_ID, id.as_bytes())?;
        }
        self.source.connecting();
        let opening = call::run::<M>(Arc::clone(&self.client), Ok(request));
        self.link = Link::Opening(SyncWrapper::new(Box::pin(opening)));
        Ok(())
    }

    fn next_request(&mut self) -> Result<Box<Request>> {
        let request = self.request.as_mut().map_err(|error| {
            error.take().unwrap_or_else(|| Error::request("the request was not valid"))
        })?;
        let again = request.as_ref().and_then(|request| request.try_clone());
        again
            .map(Box::new)
            .or_else(|| request.take())
            .ok_or_else(|| Error::new(Kind::Upload, "the body cannot be sent a second time"))
    }

    fn answered(&mut self, response: Response<M>) {
        let content_type = response.header("content-type");
        let now = Instant::now();
        self.link = match self.source.answered(response.status(), content_type, now, random()) {
            Verdict::Open => {
                self.connections += 1;
                tracing::debug!(connections = self.connections, "an event stream is open");
                Link::Open(response.into_body())
            }
            Verdict::Over | Verdict::Again => Link::None,
            Verdict::Refused(why) => {
                let runtime = Arc::clone(&self.client.dialer.runtime);
                let reading = Refusal::take(why, response, runtime);
                Link::Refused(SyncWrapper::new(Box::pin(reading)))
            }
        };
    }

    /// The connection failed, or never was: an error when that is the end of it.
    fn lost(&mut self, error: Error) -> Result<()> {
        self.link = Link::None;
        match self.source.ended(ending(&error), Instant::now(), random()) {
            true => {
                tracing::debug!(%error, "an event stream was lost");
                Ok(())
            }
            false => Err(error),
        }
    }
}

impl<M> EventSource<M> {
    /// The last event ID: what the next connection would go on behind. Empty when there is none.
    pub fn last_event_id(&self) -> Cow<'_, str> {
        self.source.last_event_id()
    }

    /// The reconnection time that the server named last, if it named one.
    pub fn named_retry(&self) -> Option<Duration> {
        self.source.named_retry()
    }

    /// How many streams were opened so far.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Whether a stream is open at the moment.
    pub fn is_open(&self) -> bool {
        matches!(self.link, Link::Open(_))
    }

    fn leave(&mut self) {
        if let Link::Open(body) = &mut self.link {
            body.linger();
        }
        self.link = Link::None;
    }
}

/// Whether another attempt may go better.
fn ending(error: &Error) -> Ending {
    match error.kind() {
        Kind::Timeout
        | Kind::Resolve
        | Kind::Connect
        | Kind::Proxy
        | Kind::Closed
        | Kind::Reset
        | Kind::Io => Ending::Passing,
        _ => Ending::Futile,
    }
}

/// Spreads the attempts of many clients. Without a source of randomness they are not spread.
fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

impl EventSource<Async> {
    /// As [`poll_event`](Self::poll_event), awaited. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`poll_event`](Self::poll_event).
    pub async fn next_event(&mut self) -> Result<Option<Event>> {
        poll_fn(|cx| self.poll_event(cx)).await.transpose()
    }
}

impl Stream for EventSource<Async> {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl Iterator for EventSource<Blocking> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        rt::Blocking::block_on(poll_fn(|cx| self.poll_event(cx)))
    }
}

impl<M> Drop for EventSource<M> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<M> fmt::Debug for EventSource<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSource")
            .field("last_event_id", &self.last_event_id())
            .field("connections", &self.connections)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}
