//! A channel as the `tower` service that generated clients run over.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use http_body::Frame;
use mimus_net::rt::BoxFuture;
use mimus_proto::{Fields, grpc};
use tower_service::Service;

use super::{Channel, Code, Status};
use crate::{Body, BoxError, Incoming, call, client::Async, request::Request};

/// Takes requests as generated clients make them, with any origin: they go to the channel's. Metadata and
/// settings of the channel hold; framing, compression and limits of messages are the generated client's
/// business. A `grpc-timeout` in the request is enforced here too.
///
/// It never fails: what goes wrong is told as gRPC tells it, by a status in head or trailers, so that it
/// keeps its code. Always ready: waiting for a connection is part of the call.
impl<B> Service<http::Request<B>> for Channel
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<ServiceBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let client = self.client.clone();
        let request = self.adopt(request);
        Box::pin(async move {
            let answered = match request {
                Err(status) => Err(status),
                Ok((request, deadline)) => call::run::<Async>(client, Ok(Box::new(request)))
                    .await
                    .map(|response| (response, deadline))
                    .map_err(|error| Status::of_exchange(error, deadline)),
            };
            Ok(match answered {
                Ok((response, deadline)) => {
                    let response: http::Response<Incoming> = response.into();
                    response.map(|body| ServiceBody { body: Some(body), deadline })
                }
                Err(status) => refusal(&status),
            })
        })
    }
}

impl Channel {
    /// A generated client's request as one of ours, and its deadline.
    fn adopt<B>(&self, request: http::Request<B>) -> Result<(Request, Option<Instant>), Status>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let mut method = self.method(parts.uri.path(), super::Raw);
        let asked = parts.headers.get("grpc-timeout");
        if let Some(timeout) = asked.and_then(|value| grpc::parse_timeout(value.as_bytes())) {
            method = method.timeout(timeout);
        }
        let channel = method.into_channel();
        channel.options.check()?;
        let mut fields = Fields::from(&parts.headers);
        let own = fields.extend(channel.options.metadata.fields());
        own.map_err(|error| Status::new(Code::Internal, "too much metadata").caused_by(error))?;
        if !fields.contains("te") {
            // A valid field, of a few bytes.
            let _ = fields.append("te", "trailers");
        }
        let settings = channel.options.settings.clone();
        let total = settings.timeouts.total;
        if let Some(total) = total.filter(|_| !fields.contains("grpc-timeout")) {
            // Of eight digits and a letter, it fits.
            let _ = fields.append("grpc-timeout", grpc::encode_timeout(total));
        }
        let deadline = total.and_then(|total| Instant::now().checked_add(total));
        let (target, body) = (channel.target, Body::wrap(body));
        Ok((
            Request {
                method: parts.method,
                target,
                fields,
                body,
                protocol: None,
                server_wide: false,
                settings,
                ask: None,
            },
            deadline,
        ))
    }
}

/// An answer of a head alone.
fn refusal(status: &Status) -> http::Response<ServiceBody> {
    let mut response = http::Response::new(ServiceBody { body: None, deadline: None });
    *response.status_mut() = StatusCode::OK;
    *response.headers_mut() = said(status);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(grpc::CONTENT_TYPE));
    response
}

/// A status as trailers say it.
fn said(status: &Status) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(3);
    map.insert("grpc-status", HeaderValue::from(status.code().number()));
    let text = format!("{status:#}");
    if let Ok(message) = HeaderValue::from_str(&grpc::encode_message(&text)) {
        map.insert("grpc-message", message);
    }
    map
}

/// The body of an answer to a generated client. What breaks it is told by trailers.
#[derive(Debug)]
pub struct ServiceBody {
    body: Option<Incoming>,
    deadline: Option<Instant>,
}

impl http_body::Body for ServiceBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let deadline = self.deadline;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = match Pin::new(&mut *body).poll_frame(cx) {
            // The server has said all, and does not want the rest of what is being sent.
            Poll::Pending if body.response_ended() => {
                let trailers = body.trailers().and_then(|fields| fields.to_header_map().ok());
                self.body = None;
                trailers.map(|map| Ok(Frame::trailers(map)))
            }
            pending => match ready!(pending) {
                Some(Err(error)) => {
                    self.body = None;
                    let status = Status::of_exchange(error, deadline);
                    Some(Ok(Frame::trailers(said(&status))))
                }
                frame => frame.map(|frame| frame.map_err(Into::into)),
            },
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }
}
