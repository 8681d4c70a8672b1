//! HTTP over a Unix socket, as the daemons of containers and systems speak it.
//!
//! `cargo run --example unix_socket`

#![allow(clippy::print_stdout)]

use mimus::Client;
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;

    // The URL's host goes into `Host`, and nowhere else: no name is resolved.
    let client = Client::builder()
        .base_url("http://daemon.test/")
        .unix_socket(origin.unix_path())
        .build()?;
    let response = client.get("/get").query(&[("all", true)]).send().await?;
    println!("{} from {}", response.status(), origin.unix_path().display());
    println!("{}", response.text().await?);

    Ok(())
}
