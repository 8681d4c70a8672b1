//! What is answered.

use std::{
    fmt,
    marker::PhantomData,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use mimus_net::{rt, tls::TlsInfo};
use mimus_proto::{Fields, ResponseHead};
use url::Url;

use crate::{
    Error, Incoming, Kind, Result, Upgraded,
    body::decode_text,
    client::{Async, Blocking},
    observe::{ConnectionInfo, Timings},
    target::Target,
};

/// A response: its head, and its body still to be read.
pub struct Response<M = Async> {
    /// Boxed, because responses are handed on by value.
    answer: Box<Answer>,
    map: OnceLock<Box<HeaderMap>>,
    mode: PhantomData<fn() -> M>,
}

/// What the call loop ends with.
pub(crate) struct Answer {
    pub(crate) head: ResponseHead,
    pub(crate) target: Target,
    pub(crate) body: Incoming,
    pub(crate) connection: Arc<ConnectionInfo>,
    pub(crate) reused: bool,
    pub(crate) started: Instant,
    pub(crate) head_at: Instant,
    pub(crate) history: Vec<Hop>,
}

/// A redirect that was followed on the way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hop {
    /// The URL that answered with the redirect.
    pub url: Url,
    /// With which status.
    pub status: StatusCode,
    /// The fields of that answer.
    pub fields: Fields,
}

impl<M> Response<M> {
    pub(crate) fn new(answer: Answer) -> Self {
        Response { answer: Box::new(answer), map: OnceLock::new(), mode: PhantomData }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.answer.head.status
    }

    /// The protocol version.
    pub fn version(&self) -> Version {
        self.answer.head.version
    }

    /// The reason phrase, which HTTP/1 alone has and which means nothing to a client.
    pub fn reason(&self) -> &[u8] {
        self.answer.head.reason()
    }

    /// The fields as they came: in order, in their case, with duplicates.
    pub fn fields(&self) -> &Fields {
        &self.answer.head.fields
    }

    /// The fields as a map, built at the first call.
    pub fn headers(&self) -> &HeaderMap {
        let made = || Box::new(self.answer.head.fields.to_header_map().unwrap_or_default());
        self.map.get_or_init(made)
    }

    /// The first field of that name, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.head.fields.get_str(name)
    }

    /// The URL that answered; after redirects, the last.
    pub fn url(&self) -> &Url {
        &self.answer.target.url
    }

    /// The redirects that were followed, first to last.
    pub fn history(&self) -> &[Hop] {
        &self.answer.history
    }

    /// The length of the body still to be read, if it is known.
    pub fn content_length(&self) -> Option<u64> {
        self.answer.body.length()
    }

    /// The address of the server, or of the proxy; `None` over a Unix socket.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.answer.connection.peer
    }

    /// Our own address on that connection.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.answer.connection.local
    }

    /// What TLS agreed on, if there was TLS.
    pub fn tls(&self) -> Option<&TlsInfo> {
        self.answer.connection.tls.as_ref()
    }

    /// The connection by which the response came.
    pub fn connection(&self) -> &ConnectionInfo {
        &self.answer.connection
    }

    /// Whether that connection had served before, or was opened [ahead](crate::Client::preconnect).
    pub fn reused(&self) -> bool {
        self.answer.reused
    }

    /// How long the phases took; the total is there once the body's end was read.
    pub fn timings(&self) -> Timings {
        let answer = &self.answer;
        let dial = if answer.reused { Default::default() } else { answer.connection.dial };
        Timings {
            dns: dial.resolve,
            connect: dial.connect,
            proxy: dial.proxy,
            tls: dial.tls,
            first_byte: answer.head_at - answer.started,
            total: answer.body.ended().map(|end| end - answer.started),
        }
    }

    /// When the call began.
    pub fn started(&self) -> Instant {
        self.answer.started
    }

    /// The trailer section, once the body's end was read and if there was one.
    pub fn trailers(&self) -> Option<&Fields> {
        self.answer.body.trailers()
    }

    /// The response itself, or an error when its status is 4xx or 5xx.
    ///
    /// # Errors
    /// Of [`Kind::Status`]. To keep the body of an error response, look at
    /// [`status`](Self::status) instead.
    pub fn error_for_status(self) -> Result<Self> {
        let status = self.status();
        if status.is_client_error() || status.is_server_error() {
            let detail = format!("the server answered {status}");
            return Err(Error::new(Kind::Status(status), detail)
                .on(self.url())
                .after_sending(true));
        }
        Ok(self)
    }

    /// The body, to be streamed.
    pub fn into_body(self) -> Incoming {
        self.answer.body
    }

    /// Head and body, of which neither needs the other.
    #[cfg(feature = "grpc")]
    pub(crate) fn into_parts(self) -> (ResponseHead, Incoming) {
        (self.answer.head, self.answer.body)
    }

    /// The body, to be streamed from where it is.
    pub fn body_mut(&mut self) -> &mut Incoming {
        &mut self.answer.body
    }

    /// The head, and the connection that it came on.
    #[cfg(feature = "ws")]
    pub(crate) fn head(&self) -> (&ResponseHead, &Arc<ConnectionInfo>) {
        (&self.answer.head, &self.answer.connection)
    }

    /// The connection itself, after `101 Switching Protocols` or a 2xx to CONNECT; over HTTP/2, the
    /// stream (RFC 8441).
    ///
    /// # Errors
    /// When the server did not agree to an upgrade.
    pub fn upgrade(self) -> Result<Upgraded> {
        let url = &self.answer.target.url;
        match self.answer.body.into_upgraded() {
            Some(upgraded) => Ok(upgraded),
            None => {
                Err(Error::new(Kind::Protocol, "the server did not upgrade the connection").on(url))
            }
        }
    }

    async fn collect(&mut self) -> Result<Bytes> {
        let url = &self.answer.target.url;
        self.answer.body.collect().await.map_err(|e| e.on(url))
    }

    async fn collect_text(&mut self, default: Option<&str>) -> Result<String> {
        let bytes = self.collect().await?;
        Ok(decode_text(bytes, self.answer.head.fields.get_str("content-type"), default))
    }

    #[cfg(feature = "json")]
    async fn collect_json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let bytes = self.collect().await?;
        crate::body::from_json(&bytes).map_err(|e| {
            Error::new(Kind::Decode, "the body is not the JSON expected")
                .in_phase(mimus_net::Phase::Body)
                .on(&self.answer.target.url)
                .caused_by(e)
        })
    }
}

impl Response<Async> {
    /// The whole body.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub async fn bytes(mut self) -> Result<Bytes> {
        self.collect().await
    }

    /// The whole body as text: by a byte order mark, else by the charset of `Content-Type`, else as
    /// UTF-8. What is malformed becomes U+FFFD.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub async fn text(mut self) -> Result<String> {
        self.collect_text(None).await
    }

    /// As [`text`](Self::text), with another charset (a WHATWG label) where none is named.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub async fn text_with_charset(mut self, default: &str) -> Result<String> {
        self.collect_text(Some(default)).await
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`]; and of [`Kind::Decode`] when the body is not such JSON.
    #[cfg(feature = "json")]
    pub async fn json<T: serde::de::DeserializeOwned>(mut self) -> Result<T> {
        self.collect_json().await
    }

    /// The next piece of the body, or `None` at its end.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let url = &self.answer.target.url;
        self.answer.body.data().await.map_err(|e| e.on(url))
    }
}

impl Response<Blocking> {
    /// The whole body.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub fn bytes(mut self) -> Result<Bytes> {
        rt::Blocking::block_on(self.collect())
    }

    /// The whole body as text: by a byte order mark, else by the charset of `Content-Type`, else as
    /// UTF-8. What is malformed becomes U+FFFD.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub fn text(mut self) -> Result<String> {
        rt::Blocking::block_on(self.collect_text(None))
    }

    /// As [`text`](Self::text), with another charset (a WHATWG label) where none is named.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub fn text_with_charset(mut self, default: &str) -> Result<String> {
        rt::Blocking::block_on(self.collect_text(Some(default)))
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`]; and of [`Kind::Decode`] when the body is not such JSON.
    #[cfg(feature = "json")]
    pub fn json<T: serde::de::DeserializeOwned>(mut self) -> Result<T> {
        rt::Blocking::block_on(self.collect_json())
    }

    /// The next piece of the body, or `None` at its end.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`].
    pub fn chunk(&mut self) -> Result<Option<Bytes>> {
        let url = &self.answer.target.url;
        rt::Blocking::block_on(self.answer.body.data()).map_err(|e| e.on(url))
    }

    /// The body as a [`std::io::Read`].
    pub fn into_reader(self) -> crate::blocking::Reader {
        crate::blocking::Reader::new(self.into_body())
    }
}

impl<M> From<Response<M>> for http::Response<Incoming> {
    fn from(response: Response<M>) -> Self {
        let timings = response.timings();
        let headers = response.headers().clone();
        let answer = response.answer;
        let mut out = http::Response::new(answer.body);
        *out.status_mut() = answer.head.status;
        *out.version_mut() = answer.head.version;
        *out.headers_mut() = headers;
        out.extensions_mut().insert(timings);
        out.extensions_mut().insert(ConnectionInfo::clone(&answer.connection));
        out
    }
}

impl<M> fmt::Debug for Response<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("url", &crate::error::without_secrets(self.url()).as_str())
            .field("status", &self.status())
            .field("version", &self.version())
            .field("fields", self.fields())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors of others hold them, and tasks share them.
    #[test]
    fn responses_and_bodies_go_anywhere() {
        fn anywhere<T: Send + Sync + 'static>() {}
        anywhere::<Response>();
        anywhere::<Response<Blocking>>();
        anywhere::<Incoming>();
        #[cfg(feature = "ws")]
        anywhere::<(crate::ws::ConnectError, crate::ws::WebSocket, crate::ws::Receiver)>();
    }
}
