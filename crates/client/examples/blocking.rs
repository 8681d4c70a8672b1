//! The same client without async: calls block the thread, and no other thread is behind them.
//!
//! `cargo run --example blocking`

#![allow(clippy::print_stdout)]

use std::io::BufRead;

use mimus::blocking::Client;
use mimus_testkit::Origin;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::new();

    let response = client.get(origin.http_url("/json")).send()?.error_for_status()?;
    println!("{} in {:.1?}", response.status(), response.timings().first_byte);
    println!("{}", response.text()?);

    // A body is a `Read` and a `BufRead`: lines come out as they come in.
    let response = client.get(origin.http_url("/stream/5?ms=50")).send()?;
    for line in response.into_reader().lines() {
        println!("{}", line?);
    }

    println!("{:?}", client.pool_stats());
    Ok(())
}
