//! How a WebSocket comes about.

use std::{fmt, sync::Arc, time::Duration};

use http::{Method, Version};
use mimus_net::{Runtime, rt};
use mimus_proto::{
    Fields, InvalidField, ResponseHead,
    ws::{
        Config,
        handshake::{Accepted, Key, Offer, Refused},
    },
};

use super::{
    link::{Link, Machine, masks},
    socket::WebSocket,
};
use crate::{
    Async, Blocking, ConnectionInfo, Error, Kind, Protocol, Request, RequestBuilder, Response,
    Result, call, client, conn::Shared, profile, route::RouteRef,
};

/// Builds a [`WebSocket`]. Mistakes are kept until [`connect`](Self::connect).
#[must_use = "a WebSocket is not begun until it is connected"]
#[derive(Debug)]
pub struct Builder<M = Async> {
    request: RequestBuilder<M>,
    plan: Plan,
}

/// How it is begun, and how it behaves.
#[derive(Debug, Clone)]
struct Plan {
    /// Over HTTP/1.1, unless it is said.
    over: Option<Over>,
    offer: Offer,
    /// The user said whether compression is offered.
    #[cfg(feature = "ws-deflate")]
    chosen: bool,
    config: Config,
    idle_timeout: Option<Duration>,
}

/// What a WebSocket is begun over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Http1,
    Http2,
    /// HTTP/2 if the server takes WebSockets there, else HTTP/1.1.
    Either,
    /// As either, if a connection of HTTP/2 is open that takes them, else HTTP/1.1.
    Open,
    /// The same, but as either too where no connection of HTTP/2 is open.
    OpenOrNew,
}

/// The connections of HTTP/2 to an origin that are open.
enum Open {
    None,
    /// One takes WebSockets.
    Taking,
    /// None does, as far as is known.
    Other,
}

/// What both ends agreed on, and how the server said so.
#[derive(Debug)]
pub struct Handshake {
    head: ResponseHead,
    accepted: Accepted,
    connection: Arc<ConnectionInfo>,
}

impl Handshake {
    /// HTTP/1.1 or HTTP/2.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// 101, or 200 over HTTP/2.
    pub fn status(&self) -> http::StatusCode {
        self.head.status
    }

    /// The fields of the server's answer.
    pub fn fields(&self) -> &Fields {
        &self.head.fields
    }

    /// The subprotocol that the server chose of those that were offered, if any.
    pub fn subprotocol(&self) -> Option<&str> {
        self.accepted.protocol.as_deref()
    }

    /// The compression that was agreed on, if any.
    #[cfg(feature = "ws-deflate")]
    pub fn deflate(&self) -> Option<&super::DeflateAgreed> {
        self.accepted.deflate.as_ref()
    }

    /// The connection's particulars.
    pub fn connection(&self) -> &ConnectionInfo {
        &self.connection
    }
}

/// Why there is no WebSocket. Where the server answered something else, its response is kept, with its
/// body.
pub struct ConnectError<M = Async>(Box<Inner<M>>);

struct Inner<M> {
    error: Error,
    response: Option<Response<M>>,
}

impl<M> ConnectError<M> {
    fn new(error: Error, response: Option<Response<M>>) -> Self {
        ConnectError(Box::new(Inner { error, response }))
    }

    /// What went wrong.
    pub fn error(&self) -> &Error {
        &self.0.error
    }

    /// What went wrong, to keep.
    pub fn into_error(self) -> Error {
        self.0.error
    }

    /// The server's answer, if it is one that makes no WebSocket.
    pub fn response(&self) -> Option<&Response<M>> {
        self.0.response.as_ref()
    }

    /// The server's answer, if it is one that makes no WebSocket: its body can be read.
    pub fn into_http(self) -> Option<Response<M>> {
        self.0.response
    }
}

impl<M> fmt::Debug for ConnectError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectError")
            .field("error", &self.0.error)
            .field("response", &self.0.response)
            .finish()
    }
}

impl<M> fmt::Display for ConnectError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.error, f)
    }
}

impl<M> std::error::Error for ConnectError<M> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.source()
    }
}

impl<M> From<Error> for ConnectError<M> {
    fn from(error: Error) -> Self {
        ConnectError::new(error, None)
    }
}

impl<M> From<ConnectError<M>> for Error {
    fn from(error: ConnectError<M>) -> Self {
        error.into_error()
    }
}

impl<M> Builder<M> {
    pub(crate) fn new(request: RequestBuilder<M>) -> Self {
        let plan = Plan {
            over: None,
            offer: Offer::default(),
            #[cfg(feature = "ws-deflate")]
            chosen: false,
            config: Config::default(),
            idle_timeout: None,
        };
        Builder { request, plan }
    }

    /// Changes the request that begins it: every option of a request can be set.
    pub fn request(self, change: impl FnOnce(RequestBuilder<M>) -> RequestBuilder<M>) -> Self {
        Builder { request: change(self.request), ..self }
    }

    /// Adds a field to the request that begins it.
    pub fn header(self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.request(|request| request.header(name, value))
    }

    /// The page that asks, as a browser says it (`Origin`, RFC 6455 section 10.2). Not sent unless set.
    pub fn origin(self, origin: impl AsRef<[u8]>) -> Self {
        self.request(|request| request.set_header("Origin", origin))
    }

    /// The subprotocols to offer, the best first.
    pub fn subprotocols<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.plan.offer.protocols = names.into_iter().map(Into::into).collect();
        self
    }

    /// Offers compression (permessage-deflate, RFC 7692). Not offered unless set: it costs time, and
    /// memory: to compress up to 72 KiB a connection, at levels above 1 about 380 kB. A client that looks like a browser offers what that one does.
    #[cfg(feature = "ws-deflate")]
    pub fn deflate(mut self, offer: impl Into<Option<super::DeflateOffer>>) -> Self {
        (self.plan.offer.deflate, self.plan.chosen) = (offer.into(), true);
        self
    }

    /// What it is begun over: an upgrade of HTTP/1.1, or a stream of an HTTP/2 connection (RFC 8441),
    /// which other requests then share. HTTP/1.1 unless set.
    pub fn version(mut self, version: Version) -> Self {
        let over = if version == Version::HTTP_2 { Over::Http2 } else { Over::Http1 };
        self.plan.over = Some(over);
        self
    }

    /// Begins it over HTTP/2 where the server takes WebSockets there, and over HTTP/1.1 elsewhere.
    pub fn prefer_http2(mut self) -> Self {
        self.plan.over = Some(Over::Either);
        self
    }

    /// Begins it over a connection of HTTP/2 to the same origin, if one is open and its server has said
    /// that it takes WebSockets, and over HTTP/1.1 otherwise, as Chromium does. No connection is made to
    /// find out. A client with a profile does what that browser does, which is this, or what Firefox does:
    /// where no connection of HTTP/2 is open it is as [`prefer_http2`](Self::prefer_http2).
    pub fn share_http2(mut self) -> Self {
        self.plan.over = Some(Over::Open);
        self
    }

    /// The most bytes of a message that comes, inflated. 16 MiB unless set.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.plan.config.limits.message = bytes;
        self
    }

    /// The most bytes of a frame that comes, as it stands on the wire. 16 MiB unless set.
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.plan.config.limits.frame = bytes;
        self
    }

    /// After how long a silence the server is asked whether it lives. Never unless set. It is asked while
    /// something is awaited: of a WebSocket that nobody waits on, nothing is sent.
    pub fn ping_interval(mut self, interval: impl Into<Option<Duration>>) -> Self {
        self.plan.config.ping_interval = interval.into();
        self
    }

    /// How long it may take to answer that, in any way. 20 seconds unless set.
    pub fn pong_timeout(mut self, wait: Duration) -> Self {
        self.plan.config.pong_wait = wait;
        self
    }

    /// After how long a silence the connection is given up. Never unless set.
    pub fn idle_timeout(mut self, silence: impl Into<Option<Duration>>) -> Self {
        self.plan.idle_timeout = silence.into();
        self
    }

    /// How long closing may take. 5 seconds unless set.
    pub fn close_timeout(mut self, wait: Duration) -> Self {
        self.plan.config.close_wait = wait;
        self
    }

    /// The same, as often as it is wanted.
    ///
    /// # Errors
    /// The first mistake made while building.
    pub(super) fn build(self) -> Result<Attempt> {
        let Builder { request, mut plan } = self;
        let (client, request) = request.into_parts();
        let mut request = request?;
        plan.suit(&mut request);
        // RFC 6455 section 4.1: a proxy is asked for a connection, not to forward the handshake.
        if !request.settings.proxies.is_empty() {
            Arc::make_mut(&mut request.settings).transport_mut().tunnel = true;
        }
        if !request.body().is_empty() {
            return Err(Error::request("a WebSocket is begun by a request without a body"));
        }
        Ok(Attempt { client, request, plan })
    }
}

impl Builder<Async> {
    /// Begins the WebSocket. A total timeout, if one is set, holds until then.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(self) -> Result<WebSocket, ConnectError> {
        self.build()?.connect().await
    }
}

impl Builder<Blocking> {
    /// Begins the WebSocket. A total timeout, if one is set, holds until then.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(self) -> Result<WebSocket<Blocking>, ConnectError<Blocking>> {
        rt::Blocking::block_on(self.build()?.connect())
    }
}

impl Plan {
    /// Does what the browser does that the client looks like, where the user does not say otherwise.
    fn suit(&mut self, request: &mut Request) {
        let Some(profile) = &request.settings.profile else { return };
        #[cfg(feature = "ws-deflate")]
        if !self.chosen && profile.web_socket_deflate().is_some() {
            self.offer.deflate = Some(super::DeflateOffer::default());
        }
        let open = request.target.https && request.settings.version.is_none();
        let offers = open && profile.web_socket_offers_http2();
        self.over.get_or_insert(if offers { Over::OpenOrNew } else { Over::Open });
        request.ask.get_or_insert_default().kind.get_or_insert(profile::Kind::WebSocket);
    }
}

/// Everything that it takes to begin a WebSocket.
#[derive(Debug)]
pub(super) struct Attempt {
    client: Arc<client::Inner>,
    request: Box<Request>,
    plan: Plan,
}

impl Attempt {
    pub(super) fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.client.dialer.runtime)
    }

    /// Begins one.
    pub(super) async fn connect<M>(&self) -> Result<WebSocket<M>, ConnectError<M>> {
        match self.plan.over.unwrap_or(Over::Http1) {
            Over::Http1 => self.over_http1(false).await,
            Over::Http2 => self.over_http2(false).await,
            Over::Either => self.over_either(true).await,
            over @ (Over::Open | Over::OpenOrNew) => match self.open()? {
                Open::Taking => self.over_either(false).await,
                Open::None if over == Over::OpenOrNew => self.over_either(true).await,
                Open::None | Open::Other => self.over_http1(false).await,
            },
        }
    }

    /// Over HTTP/2, if the server takes WebSockets there. `or_http1` lets a connection that is made for it
    /// be one of HTTP/1.1.
    async fn over_either<M>(&self, or_http1: bool) -> Result<WebSocket<M>, ConnectError<M>> {
        match self.over_http2(or_http1).await {
            Err(error) if error.error().kind() == Kind::NotOffered => self.over_http1(true).await,
            begun => begun,
        }
    }

    /// Which connections of HTTP/2 to the origin are open.
    fn open(&self) -> Result<Open> {
        // A stream begins on a connection that all requests share.
        let route = RouteRef::of(&self.request, &self.client)?.among_all();
        let pool = &self.client.pool;
        let has = |suits: fn(&Shared) -> bool| {
            pool.has_shared(pool.hash_of(&route), |r| route.matches(r), suits)
        };
        Ok(match (has(Shared::takes_tunnels), has(|_| true)) {
            (true, _) => Open::Taking,
            (false, true) => Open::Other,
            (false, false) => Open::None,
        })
    }

    /// RFC 6455 section 4.1. A question for HTTP/2 may have `left` a connection behind.
    async fn over_http1<M>(&self, left: bool) -> Result<WebSocket<M>, ConnectError<M>> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(no_randomness)?;
        let key = Key::new(random);
        let mut request = self.request(|offer, fields| offer.append_upgrade(&key, fields))?;
        Arc::make_mut(&mut request.settings).version = Some(Version::HTTP_11);
        request.ask.get_or_insert_default().takes_left = left;
        let response = call::run(Arc::clone(&self.client), Ok(request)).await?;
        let checked = self.plan.offer.check_upgrade(&key, response.head().0);
        self.finish(response, checked)
    }

    /// RFC 8441 section 5.
    async fn over_http2<M>(&self, or_http1: bool) -> Result<WebSocket<M>, ConnectError<M>> {
        let mut request = self.request(Offer::append_connect)?;
        request.method = Method::CONNECT;
        request.protocol = Some(Protocol::new("websocket"));
        if !or_http1 {
            Arc::make_mut(&mut request.settings).version = Some(Version::HTTP_2);
        }
        let response = call::run(Arc::clone(&self.client), Ok(request)).await?;
        let checked = self.plan.offer.check_connect(response.head().0);
        self.finish(response, checked)
    }

    /// The request, the handshake's fields before the user's own.
    fn request(
        &self,
        append: impl FnOnce(&Offer, &mut Fields) -> Result<(), InvalidField>,
    ) -> Result<Box<Request>> {
        let mut fields = Fields::new();
        let invalid = |e| Error::request("the handshake cannot be written").caused_by(e);
        append(&self.plan.offer, &mut fields).map_err(invalid)?;
        #[cfg(feature = "ws-deflate")]
        if let Some(profile) = &self.request.settings.profile
            && !self.plan.chosen
            && profile.web_socket_deflate() == Some(false)
        {
            // What a server may do beside that, it has no leave to say.
            fields.set("Sec-WebSocket-Extensions", "permessage-deflate").map_err(invalid)?;
        }
        fields.extend(self.request.fields()).map_err(invalid)?;
        let request = self.request.try_clone();
        let mut request = request.ok_or_else(|| Error::request("the request has a body"))?;
        *request.fields_mut() = fields;
        Ok(Box::new(request))
    }

    /// Makes a WebSocket of the server's answer.
    fn finish<M>(
        &self,
        response: Response<M>,
        checked: Result<Accepted, Refused>,
    ) -> Result<WebSocket<M>, ConnectError<M>> {
        let accepted = match checked {
            Ok(accepted) => accepted,
            Err(refused) => return Err(not_taken_up(refused, response)),
        };
        let machine = self.machine(&accepted)?;
        let (head, connection) = response.head();
        let handshake =
            Handshake { head: head.clone(), accepted, connection: Arc::clone(connection) };
        let (socket, ahead) = response.upgrade()?.into_parts();
        let Plan { config, idle_timeout, .. } = &self.plan;
        Ok(WebSocket::new(Link::new(socket, &ahead, machine, config, *idle_timeout), handshake))
    }

    fn machine(&self, accepted: &Accepted) -> Result<Machine> {
        let (masks, config) = (masks().map_err(no_randomness)?, self.plan.config);
        #[cfg(feature = "ws-deflate")]
        if let Some(agreed) = &accepted.deflate {
            return Ok(Machine::with_deflate(masks, config, agreed));
        }
        #[cfg(not(feature = "ws-deflate"))]
        let _ = accepted;
        Ok(Machine::new(masks, config))
    }
}

/// The server answered something else.
fn not_taken_up<M>(refused: Refused, response: Response<M>) -> ConnectError<M> {
    let (kind, detail) = match refused {
        Refused::Status(status) => (Kind::Status(status), "the server refused the WebSocket"),
        _ => (Kind::Protocol, "the server's answer makes no WebSocket"),
    };
    let error = Error::new(kind, detail).on(response.url()).after_sending(true).caused_by(refused);
    ConnectError::new(error, Some(response))
}

fn no_randomness(error: getrandom::Error) -> Error {
    Error::new(Kind::Io, "the operating system gave no randomness").caused_by(error.to_string())
}
