//! Uploads: a file, whose length is announced and whose progress is told, and a stream of unknown
//! length, which goes chunked.
//!
//! `cargo run --example upload`

#![allow(clippy::print_stdout)]

use std::{io::Write, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mimus::{Body, BoxError, Client};
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::new();
    let url = origin.http_url("/upload");

    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&vec![b'x'; 8_000_000])?;
    // Told once for every 64 KiB that the connection takes.
    let body = Body::file(file.path())?.with_progress(Arc::new(|progress| {
        let (sent, total) = (progress.transferred, progress.total.unwrap_or(1));
        if sent % (1024 * 1024) == 0 || sent == total {
            println!("{:3} %", sent * 100 / total);
        }
    }));
    let receipt = client.post(&url).body(body).send().await?.error_for_status()?;
    println!("file: {}", receipt.text().await?);

    let lines = stream::iter(1..=3).then(async |n| {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        Ok::<_, BoxError>(Bytes::from(format!("line {n}\n")))
    });
    let request = client.post(&url).body(Body::stream(lines));
    println!("stream: {}", request.send().await?.text().await?);
    Ok(())
}
