//! Services of `tower` as responders.

use std::{
    future::poll_fn,
    sync::{Mutex, PoisonError},
};

use mimus_net::BoxFuture;
use tower_service::Service as TowerService;

use super::{Request, Responder, Response, Upload};
use crate::BoxError;

/// A `tower` service as a [`Responder`]: a server's router can so be called without a server. Each exchange is
/// answered by a clone.
#[derive(Debug)]
pub struct Service<S>(Mutex<S>);

impl<S> Service<S> {
    /// Has `service` answer.
    pub fn new(service: S) -> Self {
        Service(Mutex::new(service))
    }
}

impl<S, B> Responder for Service<S>
where
    S: TowerService<http::Request<Upload>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn respond(&self, request: Request) -> BoxFuture<'static, Result<Response, BoxError>> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let answer = service.call(request.into_http()?).await.map_err(Into::into)?;
            Ok(Response::from(answer))
        })
    }
}
