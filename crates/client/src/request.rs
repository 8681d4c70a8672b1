//! What is asked.

use std::{fmt, marker::PhantomData, sync::Arc};

use http::Method;
use mimus_net::rt;
use mimus_proto::Fields;
use url::Url;

use crate::{
    Body, Error, Result,
    auth::Credentials,
    call,
    client::{Async, Blocking, Inner},
    options::{Settings, shared_setters},
    profile::{Ask, Kind},
    response::Response,
    target::{Accepted, IntoUrl, Known, Target},
};

/// A request ready to be executed: method, URL, fields, body, and the settings of the call.
pub struct Request {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) fields: Fields,
    pub(crate) body: Body,
    pub(crate) protocol: Option<Protocol>,
    /// It is about the server, not about the target's resource.
    pub(crate) server_wide: bool,
    pub(crate) settings: Arc<Settings>,
    /// What it is to a browser, as far as the user said.
    pub(crate) ask: Option<Box<Ask>>,
}

/// The protocol for which an extended CONNECT (RFC 8441) asks: `websocket`, for one. As an extension of
/// an [`http::Request`] it makes a CONNECT such a one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Protocol(Arc<str>);

impl Protocol {
    /// A protocol of the registry of HTTP Upgrade tokens (RFC 9110 section 16.7).
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Protocol(name.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Protocol {
    fn from(name: &str) -> Self {
        Protocol::new(name)
    }
}

impl From<String> for Protocol {
    fn from(name: String) -> Self {
        Protocol::new(name)
    }
}

impl Request {
    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.target.url
    }

    /// The fields given by the user, in order and case. The client's defaults join them on the wire.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The fields, to change.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// The body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The same request again, if its body can be sent twice.
    pub fn try_clone(&self) -> Option<Request> {
        Some(Request {
            method: self.method.clone(),
            target: self.target.clone(),
            fields: self.fields.clone(),
            body: self.body.try_clone()?,
            protocol: self.protocol.clone(),
            server_wide: self.server_wide,
            settings: self.settings.clone(),
            ask: self.ask.clone(),
        })
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &crate::error::without_secrets(&self.target.url).as_str())
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

/// Builds a [`Request`] and sends it. Mistakes are kept until [`build`](Self::build) or `send`.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder<M = Async> {
    client: Arc<Inner>,
    /// Boxed, because builders are handed on by value.
    request: Result<Box<Request>>,
    /// Takes the settings of the setters when there is no request to hold them.
    spare: Option<Box<Settings>>,
    mode: PhantomData<fn() -> M>,
}

impl<M> fmt::Debug for RequestBuilder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestBuilder").field(&self.request).finish()
    }
}

impl<M> RequestBuilder<M> {
    pub(crate) fn new(client: Arc<Inner>, method: Method, url: impl IntoUrl) -> Self {
        let target = url.into_target(&Known::new(&client.targets));
        RequestBuilder::of_target(client, method, target)
    }

    /// The GET that begins a WebSocket.
    #[cfg(feature = "ws")]
    pub(crate) fn for_web_socket(client: Arc<Inner>, url: impl IntoUrl) -> Self {
        let target = url.into_target(&Known::for_web_socket(&client.targets));
        RequestBuilder::of_target(client, Method::GET, target)
    }

    fn of_target(client: Arc<Inner>, method: Method, target: Result<Accepted>) -> Self {
        let request = target.and_then(|target| {
            let mut request = Box::new(Request {
                method,
                target: target.0,
                fields: Fields::new(),
                body: Body::empty(),
                protocol: None,
                server_wide: false,
                settings: client.settings.clone(),
                ask: None,
            });
            take_userinfo(&mut request)?;
            Ok(request)
        });
        RequestBuilder { client, request, spare: None, mode: PhantomData }
    }

    fn settings_mut(&mut self) -> &mut Settings {
        match &mut self.request {
            Ok(request) => Arc::make_mut(&mut request.settings),
            Err(_) => self.spare.get_or_insert_default(),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Request) -> Result<()>) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            let error = error.on(&request.target.url);
            self.request = Err(error);
        }
        self
    }

    /// Sends no credentials of the client's netrc file.
    pub fn no_netrc(mut self) -> Self {
        self.settings_mut().netrc = false;
        self
    }

    /// Adds a field, after those already there and beside others of its name.
    pub fn header(self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.change(|r| {
            r.fields.append(name.as_ref(), value.as_ref()).map_err(|e| invalid(name.as_ref(), e))
        })
    }

    /// Sets a field, in the place of any of its name.
    pub fn set_header(self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.change(|r| set(&mut r.fields, name.as_ref(), value.as_ref()))
    }

    /// Sets every field of `map`, in the place of those of the same names.
    pub fn headers(self, map: &http::HeaderMap) -> Self {
        self.change(|r| {
            for name in map.keys() {
                r.fields.remove(name.as_str());
            }
            r.fields.extend(&Fields::from(map)).map_err(|e| invalid("fields", e))
        })
    }

    /// Appends pairs to the URL's query, form-encoded.
    pub fn query<T: serde::Serialize + ?Sized>(self, pairs: &T) -> Self {
        self.change(|r| {
            r.target.change(|url| {
                crate::body::append_query(url, pairs)
                    .map_err(|e| Error::request("the query cannot be encoded").caused_by(e))
            })
        })
    }

    /// Appends `text` to the URL's query. It is one already: nothing is encoded but what no URL can hold.
    pub fn query_text(self, text: &str) -> Self {
        self.change(|r| {
            r.target.change(|url| {
                crate::body::append_query_text(url, text);
                Ok(())
            })
        })
    }

    /// The body: text, bytes, a file, a stream... Its length, when known, is announced; otherwise it
    /// is sent chunked.
    pub fn body(self, body: impl Into<Body>) -> Self {
        let body = body.into();
        self.change(|r| {
            r.body = body;
            Ok(())
        })
    }

    /// Makes a CONNECT an extended one (RFC 8441), which opens a tunnel to the URL's resource for another
    /// protocol: `:protocol`, over HTTP/2 only. A response of 2xx is [upgraded](crate::Response::upgrade)
    /// to the tunnel, any other is an ordinary response.
    ///
    /// An https URL is asked for over HTTP/2 if the server takes it, a http one by prior knowledge. The
    /// call waits for the server's SETTINGS; where there is no HTTP/2, or no leave to ask, it fails with
    /// [`Kind::NotOffered`](crate::Kind::NotOffered) and nothing is sent.
    pub fn protocol(self, protocol: impl Into<Protocol>) -> Self {
        self.change(|r| {
            r.protocol = Some(protocol.into());
            Ok(())
        })
    }

    /// Makes an OPTIONS ask about the server as a whole, `OPTIONS *`, whatever the URL's path (RFC 9110
    /// section 9.3.7). With any other method, sending it fails.
    pub fn server_wide(self) -> Self {
        self.change(|r| {
            r.server_wide = true;
            Ok(())
        })
    }

    /// A body of form-encoded pairs, with its `Content-Type` unless one was set.
    pub fn form<T: serde::Serialize + ?Sized>(self, pairs: &T) -> Self {
        self.change(|r| {
            let text = crate::body::to_form(pairs)
                .map_err(|e| Error::request("the form cannot be encoded").caused_by(e))?;
            content_type(&mut r.fields, "application/x-www-form-urlencoded")?;
            r.body = text.into();
            Ok(())
        })
    }

    /// A JSON body, with its `Content-Type` unless one was set.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(self, value: &T) -> Self {
        self.change(|r| {
            let text = crate::body::to_json(value)
                .map_err(|e| Error::request("the value cannot be encoded as JSON").caused_by(e))?;
            content_type(&mut r.fields, "application/json")?;
            r.body = text.into();
            Ok(())
        })
    }

    /// Says what the body is, unless `Content-Type` was set.
    pub fn default_content_type(self, media_type: &str) -> Self {
        self.change(|r| content_type(&mut r.fields, media_type))
    }

    /// A `multipart/form-data` body (RFC 7578), streamed.
    pub fn multipart(self, form: crate::multipart::Form) -> Self {
        self.change(|r| {
            set(&mut r.fields, "Content-Type", form.content_type().as_bytes())?;
            r.body = form.into_body();
            Ok(())
        })
    }

    /// What the request is to a browser, whose profile then says its fields, their order and its rank.
    /// Without effect on a client that has no profile. Unless set, a GET is a [navigation](Kind::Navigate),
    /// a POST of a form's content type the [sending of a form](Kind::FormPost), and any other request a
    /// [`fetch()`](Kind::FETCH).
    pub fn kind(self, kind: Kind) -> Self {
        self.change(|r| {
            r.ask.get_or_insert_default().kind = Some(kind);
            Ok(())
        })
    }

    /// The page that asks, as a browser sees it: from it follow `Referer`, `Origin` and `Sec-Fetch-Site`.
    /// Without effect on a client that has no profile. Unless set, it is what `Referer` or `Origin` name if
    /// the user gives one of them; else a navigation is the browser's own, and anything else is asked for
    /// by the root of the target's own origin.
    pub fn initiator(self, page: impl AsRef<str>) -> Self {
        self.change(|r| {
            let page = Url::parse(page.as_ref())
                .map_err(|e| Error::request("the initiator is no URL").caused_by(e))?;
            r.ask.get_or_insert_default().initiator = Some(page);
            Ok(())
        })
    }

    /// Whether a human hand starts a navigation, as it does unless this is said: `Sec-Fetch-User`. Without
    /// effect on a client that has no profile.
    pub fn user_activated(self, by_user: bool) -> Self {
        self.change(|r| {
            r.ask.get_or_insert_default().by_user = Some(by_user);
            Ok(())
        })
    }

    shared_setters!();

    /// Who is to send what.
    #[cfg(any(feature = "sse", feature = "ws"))]
    pub(crate) fn into_parts(self) -> (Arc<Inner>, Result<Box<Request>>) {
        (self.client, self.request)
    }

    /// The request, to look at or to keep.
    ///
    /// # Errors
    /// The first mistake made while building: a bad URL, field, or body.
    pub fn build(self) -> Result<Request> {
        self.build_boxed().map(|request| *request)
    }

    /// The same as it was built, which spares who hands it on to `execute` two moves of it.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_boxed(self) -> Result<Box<Request>> {
        self.request
    }
}

impl RequestBuilder<Async> {
    /// Sends the request and waits for the head of the response.
    ///
    /// Dropping the future at any point closes the connection it was using, or gives back what it was
    /// waiting for; nothing leaks.
    ///
    /// # Errors
    /// See [`Kind`](crate::Kind). A status of 4xx or 5xx is not an error here.
    pub fn send(self) -> impl Future<Output = Result<Response>> + Send + 'static {
        call::run(self.client, self.request)
    }
}

impl RequestBuilder<Blocking> {
    /// Sends the request and waits for the head of the response.
    ///
    /// # Errors
    /// See [`Kind`](crate::Kind). A status of 4xx or 5xx is not an error here.
    pub fn send(self) -> Result<Response<Blocking>> {
        rt::Blocking::block_on(call::run(self.client, self.request))
    }
}

/// User name and password of a URL become Basic credentials and leave the URL (RFC 9110
/// section 4.2.4 deprecates them there).
fn take_userinfo(request: &mut Request) -> Result<()> {
    if !request.target.has_userinfo() {
        return Ok(());
    }
    let url = &request.target.url;
    let decode = |text: &str| -> String {
        percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
    };
    let credentials =
        Credentials::basic(decode(url.username()), decode(url.password().unwrap_or_default()));
    Arc::make_mut(&mut request.settings).auth = Some(credentials);
    request.target.change(|url| {
        // Neither can fail on a URL that has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(())
    })
}

pub(crate) fn set(fields: &mut Fields, name: &str, value: &[u8]) -> Result<()> {
    fields.set(name, value).map_err(|e| invalid(name, e))
}

fn content_type(fields: &mut Fields, value: &str) -> Result<()> {
    if fields.contains("content-type") {
        return Ok(());
    }
    set(fields, "Content-Type", value.as_bytes())
}

pub(crate) fn invalid(name: &str, cause: mimus_proto::InvalidField) -> Error {
    Error::request(format!("the field {name:?} is not valid")).caused_by(cause)
}
