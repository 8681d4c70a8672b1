//! The same client on smol: the runtime is a value, and tokio is not in the picture.
//!
//! `cargo run --features smol --example smol`

#![allow(clippy::print_stdout)]

use futures_util::future::try_join_all;
use mimus::{Client, rt};
use mimus_testkit::Origin;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    smol::block_on(async {
        let client = Client::builder().runtime(rt::Smol).max_connections_per_host(4).build()?;

        // Twenty calls on one thread, over four connections.
        let url = origin.http_url("/bytes/1000");
        let calls = (0..20).map(|_| async { client.get(&url).send().await?.bytes().await });
        let bodies = try_join_all(calls).await?;

        let bytes: usize = bodies.iter().map(|body| body.len()).sum();
        println!("{} calls, {bytes} bytes, {:?}", bodies.len(), client.pool_stats());
        Ok(())
    })
}
