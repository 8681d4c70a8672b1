//! The events of a source, however often its connection breaks.
//!
//! `cargo run --example event_source`

#![allow(clippy::print_stdout)]

use std::time::Duration;

use mimus::{Client, sse::Refusal};
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::new();

    // It breaks inside of each fourth event, and has seven in all.
    let mut source = client
        .event_source(origin.http_url("/sse?total=7&cut=3&ms=0&retry=10"))
        .max_backoff(Duration::from_secs(5))
        .max_failures(10);
    while let Some(event) = source.next_event().await? {
        println!("{}: {} by connection {}", event.event, event.id, source.connections());
    }

    // A server's error is not tried again, by the standard. What it says is there.
    let error = client.event_source(origin.http_url("/sse?status=500")).next_event().await;
    if let Some(refusal) = error.as_ref().err().and_then(Refusal::of) {
        println!("{}: {}", refusal.status(), refusal.text());
    }
    Ok(())
}
