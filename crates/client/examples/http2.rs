//! HTTP/2 by prior knowledge: many calls at once on one connection. Over https nothing need be said:
//! the server chooses in the TLS handshake.
//!
//! `cargo run --example http2`

#![allow(clippy::print_stdout)]

use futures_util::future::try_join_all;
use mimus::{Client, Version};
use mimus_testkit::{Origin, Port};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::builder().version(Version::HTTP_2).build()?;
    let calls = (1..=20).map(|n| {
        let url = origin.url(Port::H2c, &format!("/bytes/{}", n * 1000));
        let client = &client;
        async move {
            let response = client.get(url?).send().await?;
            assert_eq!(response.version(), Version::HTTP_2);
            Ok::<_, Box<dyn std::error::Error>>(response.bytes().await?.len())
        }
    });
    let lengths = try_join_all(calls).await?;
    let bytes: usize = lengths.iter().sum();
    println!("{} bodies, {bytes} bytes, {} connection", lengths.len(), origin.accepted(Port::H2c));
    assert_eq!(origin.accepted(Port::H2c), 1);
    Ok(())
}
