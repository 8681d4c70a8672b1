//! Timeouts by phase, retries by policy, and errors that say what happened.
//!
//! `cargo run --example retry_and_timeouts`

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use mimus::{Client, retry::RetryPolicy};
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let ms = Duration::from_millis;
    let client = Client::builder()
        .connect_timeout(ms(500))
        .head_timeout(ms(200))
        .idle_timeout(ms(200))
        // Idempotent methods only, with jitter; a Retry-After is obeyed.
        .retry(RetryPolicy::default().max_retries(3).backoff(ms(20), ms(200)))
        .build()?;

    let started = Instant::now();
    let response = client.get(origin.http_url("/status/503")).send().await?;
    let tries = origin.requests().len();
    println!("{} after {tries} tries, {:.0?}", response.status(), started.elapsed());

    // The first is silent, the second stops half-way, the third never stops, but slowly.
    for path in ["/delay/5", "/bad/stall-mid-body", "/bad/drip-body?n=1000"] {
        let started = Instant::now();
        let call = async {
            let request = client.get(origin.http_url(path)).timeout(ms(500));
            request.send().await?.bytes().await
        };
        match call.await {
            Ok(body) => println!("{path}: {} bytes", body.len()),
            Err(error) => {
                let (kind, phase) = (error.kind(), error.phase());
                println!("{path}: {error:#} [{kind:?}, {phase:?}] {:.0?}", started.elapsed());
            }
        }
    }
    Ok(())
}
