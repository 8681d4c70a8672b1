//! The client under the middleware of tower: here a limit on calls at a time, and a timeout.
//!
//! `cargo run --features tower --example tower_service`

#![allow(clippy::print_stdout)]

use std::time::Duration;

use http_body_util::BodyExt;
use mimus::{Body, Client};
use mimus_testkit::Origin;
use tower::{ServiceBuilder, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let origin = Origin::start()?;
    let service = ServiceBuilder::new()
        .concurrency_limit(10)
        .timeout(Duration::from_millis(300))
        .service(Client::new());

    for path in ["/get", "/delay/5"] {
        let request = http::Request::get(origin.http_url(path)).body(Body::empty())?;
        match service.clone().oneshot(request).await {
            Ok(response) => {
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                println!("{path}: {status}, {} bytes", body.len());
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
    Ok(())
}
