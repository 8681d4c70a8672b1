//! What a responder gets and gives.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::{HeaderMap, Method, StatusCode, Version};
use http_body::{Frame, SizeHint};
use mimus_net::{Phase, Runtime};
use mimus_proto::Fields;
use url::Url;

use crate::{Body, Error, Kind, Result, request::invalid};

/// A request as it would have been sent: with the fields of client, cookies, credentials and profile among its own.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) fields: Fields,
    pub(crate) body: Upload,
}

impl Request {
    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The URL, after redirects the present one.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The target as HTTP/1.1 would say it (RFC 9112 section 3.2).
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The version of HTTP that it is said in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The fields, in the order and case of the wire, `Host` among them.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The first field of that name, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get_str(name)
    }

    /// The body, to be read.
    pub fn body_mut(&mut self) -> &mut Upload {
        &mut self.body
    }

    /// The body alone.
    pub fn into_body(self) -> Upload {
        self.body
    }

    /// The same in the types of crate `http`, which know neither order nor case of fields.
    ///
    /// # Errors
    /// The URL or the fields are larger than those types take.
    pub fn into_http(self) -> Result<http::Request<Upload>> {
        let too_large = "the request does not fit the types of crate http";
        let mut request = http::Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() =
            self.url.as_str().parse().map_err(|e| Error::request(too_large).caused_by(e))?;
        *request.version_mut() = self.version;
        *request.headers_mut() =
            self.fields.to_header_map().map_err(|e| Error::request(too_large).caused_by(e))?;
        Ok(request)
    }
}

/// How much of a request its responder has taken.
#[derive(Debug)]
pub(crate) struct Progress {
    pieces: AtomicU64,
    whole: AtomicBool,
}

impl Progress {
    /// `whole` where there is nothing to wait for.
    pub(crate) fn new(whole: bool) -> Arc<Self> {
        Arc::new(Progress { pieces: AtomicU64::new(0), whole: AtomicBool::new(whole) })
    }

    /// How often it went on.
    pub(crate) fn steps(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    fn step(&self, ended: bool) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.whole.fetch_or(ended, Ordering::Relaxed);
    }
}

/// The body of a request, pulled from its source as it is read. It is a [`Stream`] and an [`http_body::Body`], and
/// can so be sent back: [`Body::stream`].
pub struct Upload {
    body: Body,
    runtime: Arc<dyn Runtime>,
    progress: Arc<Progress>,
    taken: u64,
    trailers: Option<HeaderMap>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upload").field(&self.body).finish()
    }
}

impl Upload {
    pub(crate) fn new(body: Body, runtime: Arc<dyn Runtime>, progress: Arc<Progress>) -> Self {
        Upload { body, runtime, progress, taken: 0, trailers: None }
    }

    /// How many bytes there are in all, where that is known.
    pub fn length(&self) -> Option<u64> {
        self.body.length()
    }

    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// [`Kind::Upload`]: the source failed. Hand it on, as the call's own error.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let piece = ready!(self.body.poll_next(cx, &*self.runtime));
        self.progress.step(piece.is_none());
        match &piece {
            Some(Ok(piece)) => self.taken += piece.len() as u64,
            Some(Err(_)) => {}
            None => self.trailers = self.trailers.take().or_else(|| self.body.take_trailers()),
        }
        let failed = |e| {
            Error::new(Kind::Upload, "the request body failed").in_phase(Phase::Send).caused_by(e)
        };
        Poll::Ready(piece.map(|piece| piece.map_err(failed)))
    }

    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// As [`poll_data`](Self::poll_data).
    pub async fn data(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await.transpose()
    }

    /// All that is left.
    ///
    /// # Errors
    /// As [`poll_data`](Self::poll_data).
    pub async fn collect(&mut self) -> Result<Bytes> {
        let Some(first) = self.data().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.data().await? else { return Ok(first) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.data().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// The trailers, once the end was read and if there are any.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }
}

impl Stream for Upload {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_data(cx)
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let piece = ready!(self.poll_data(cx));
        Poll::Ready(match piece {
            Some(piece) => Some(piece.map(Frame::data)),
            None => self.trailers.take().map(|map| Ok(Frame::trailers(map))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_empty() && !self.body.has_trailers()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.length().map(|length| length.saturating_sub(self.taken));
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// What a responder answers. Mistakes are kept, and are the call's error.
///
/// A body of known length is announced by `Content-Length` unless the fields say how long it is. One that is shorter
/// than was announced breaks off, and what is beyond is cut off, as from a server.
#[derive(Debug)]
#[must_use = "an answer is nothing until it is given"]
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) version: Option<Version>,
    pub(crate) fields: Fields,
    pub(crate) body: Body,
    pub(crate) mistake: Option<Error>,
}

impl Response {
    /// An answer of this status, without fields and body.
    pub fn new(status: impl TryInto<StatusCode, Error: Into<http::Error>>) -> Self {
        let (status, mistake) = match status.try_into() {
            Ok(status) => (status, None),
            Err(e) => {
                let mistake = Error::request("the answer has no status").caused_by(e.into());
                (StatusCode::OK, Some(mistake))
            }
        };
        Response { status, version: None, fields: Fields::new(), body: Body::empty(), mistake }
    }

    /// Adds a field, after those already there and beside others of its name.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref();
        if let Err(e) = self.fields.append(name, value) {
            self.mistake.get_or_insert(invalid(name, e));
        }
        self
    }

    /// All fields at once.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The body: bytes, a file, a stream... An error that a stream gives breaks off the answer, as those of
    /// [`respond`](super::Responder::respond) do. The [trailers](Body::with_trailers) of the body are the answer's.
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// A JSON body, with its `Content-Type` unless one was set.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(self, value: &T) -> Self {
        let typed = self.fields.contains("content-type");
        let mut with = if typed { self } else { self.header("Content-Type", "application/json") };
        match crate::body::to_json(value) {
            Ok(text) => with.body = text.into(),
            Err(e) => {
                let what = "the answer cannot be encoded as JSON";
                with.mistake.get_or_insert(Error::request(what).caused_by(e));
            }
        }
        with
    }

    /// The version of HTTP that it comes in, where it is not the request's.
    pub fn version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }
}

impl<B> From<http::Response<B>> for Response
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<crate::BoxError>,
{
    fn from(response: http::Response<B>) -> Self {
        let (parts, body) = response.into_parts();
        Response::new(parts.status)
            .version(parts.version)
            .fields(Fields::from(&parts.headers))
            .body(Body::wrap(body))
    }
}
