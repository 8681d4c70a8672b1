//! Cookies that outlive the program: kept in a jar, saved to a file, and loaded by the next client.
//!
//! `cargo run --example cookies`

#![allow(clippy::print_stdout)]

use std::{fs, sync::Arc, time::SystemTime};

use mimus::{Client, cookie::Jar};
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let file = tempfile::NamedTempFile::new()?;

    let jar = Arc::new(Jar::new());
    let client = Client::builder().cookie_store(jar.clone()).build()?;
    let login = "/cookies/set?session=s3cret&_attrs=Path=/;%20Max-Age=3600";
    client.get(origin.http_url(login)).send().await?.error_for_status()?;
    // A `cookies.txt`, which curl and browser extensions read too; `to_json` keeps more.
    fs::write(file.path(), jar.to_netscape(false))?;
    println!("{} cookie saved", jar.len());

    let jar = Arc::new(Jar::new());
    let loaded = jar.add_netscape(&fs::read_to_string(file.path())?, SystemTime::now())?;
    let client = Client::builder().cookie_store(jar).build()?;
    let text = client.get(origin.http_url("/cookies")).send().await?.text().await?;
    println!("{loaded} cookie loaded, and sent: {text}");
    Ok(())
}
