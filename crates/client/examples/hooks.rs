//! A hook that signs every request and logs every exchange, redirects and retries included.
//!
//! `cargo run --example hooks`

#![allow(clippy::print_stdout)]

use mimus::{BoxError, Client, Hook, Observation, Outgoing};
use mimus_testkit::Origin;

#[derive(Debug)]
struct Log;

impl Hook for Log {
    fn before_send(&self, request: &mut Outgoing<'_>) -> Result<(), BoxError> {
        request.fields.set("X-Attempt", request.attempt.to_string())?;
        Ok(())
    }

    fn observe(&self, happened: &Observation<'_>) {
        match happened {
            Observation::Connected { connection } => println!("  new: {:?}", connection.peer),
            Observation::Reused { connection } => println!("  kept: {:?}", connection.peer),
            Observation::Sending { method, target, fields, .. } => {
                println!("> {method} {target}, attempt {:?}", fields.get_str("x-attempt"));
            }
            Observation::Head { head, elapsed, .. } => println!("< {} {elapsed:.1?}", head.status),
            Observation::Redirecting { to, .. } => println!("  redirected to {to}"),
            Observation::Retrying { after, .. } => println!("  again in {after:.1?}"),
            Observation::Failed { error } => println!("! {error:#}"),
            _ => {}
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::builder().hook(Log).build()?;
    client.get(origin.http_url("/redirect/2")).send().await?.bytes().await?;
    // Fails, and is logged as it does.
    let refused = client.get(origin.http_url("/bad/conflicting-lengths")).send().await;
    println!("an error too: {}", refused.is_err());
    Ok(())
}
