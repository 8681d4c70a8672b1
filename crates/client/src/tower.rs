//! The client as a `tower` service, so that the ecosystem's middleware wraps it.

use std::task::{Context, Poll};

use mimus_net::BoxFuture;
use tower_service::Service;

use crate::{Body, Client, Error, Incoming};

/// Takes and gives the types of crate `http`. Always ready: waiting for a connection is part of the
/// call.
impl<B: Into<Body> + Send + 'static> Service<http::Request<B>> for Client {
    type Response = http::Response<Incoming>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { Client::call(&client, request).await })
    }
}
