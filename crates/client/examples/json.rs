//! JSON both ways, by types of one's own.
//!
//! `cargo run --example json`

#![allow(clippy::print_stdout)]

use mimus::{Client, Kind};
use mimus_testkit::Origin;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Bird {
    name: String,
    songs: u32,
}

/// What the origin's `/post` says back, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Echo {
    json: Bird,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::builder().base_url(origin.http_url("/")).build()?;

    let bird = Bird { name: "Mimus polyglottos".to_owned(), songs: 200 };
    let response = client.post("/post").json(&bird).send().await?.error_for_status()?;
    let echo: Echo = response.json().await?;
    println!("{:?}", echo.json);

    // What is not such JSON is an error that says where.
    let result: mimus::Result<Bird> = client.get("/html").send().await?.json().await;
    match result {
        Err(error) if error.kind() == Kind::Decode => println!("{error:#}"),
        other => println!("not expected: {other:?}"),
    }
    Ok(())
}
