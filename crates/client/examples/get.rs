//! One GET, and what its response tells.
//!
//! `cargo run --example get [URL]`; without a URL, the embedded origin answers.

#![allow(clippy::print_stdout)]

use mimus::Client;
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let url = std::env::args().nth(1).unwrap_or_else(|| origin.http_url("/json"));

    let client = Client::new();
    let response = client
        .get(&url)
        .header("Accept-Language", "la")
        .query(&[("q", "mockingbird")])
        .timeout(std::time::Duration::from_secs(10))
        .send()
        .await?
        .error_for_status()?;

    println!("{} {:?} from {:?}", response.status(), response.version(), response.remote_addr());
    for (name, value) in response.fields().iter() {
        println!("{name}: {}", String::from_utf8_lossy(value));
    }
    println!("\n{}", response.text().await?);
    Ok(())
}
