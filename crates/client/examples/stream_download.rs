//! A download that goes to a file piece by piece, with progress; no more of it than one piece is in
//! memory.
//!
//! `cargo run --example stream_download`

#![allow(clippy::print_stdout)]

use std::{io::Write, time::Duration};

use mimus::Client;
use mimus_testkit::Origin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let client = Client::builder()
        // A large download may take its time, as long as it moves.
        .idle_timeout(Duration::from_secs(30))
        .build()?;

    let mut response =
        client.get(origin.http_url("/bytes/50000000")).send().await?.error_for_status()?;
    let total = response.content_length();
    let mut file = tempfile::NamedTempFile::new()?;
    let (mut written, mut told) = (0, 0);
    while let Some(piece) = response.chunk().await? {
        // A write to a local file is short; a program with much else to do hands it to a thread.
        file.write_all(&piece)?;
        written += piece.len() as u64;
        if written - told >= 5_000_000 || total == Some(written) {
            told = written;
            match total {
                Some(total) => println!("{:3} % of {total} bytes", written * 100 / total),
                None => println!("{written} bytes"),
            }
        }
    }

    let took = response.timings().total.unwrap_or_default();
    println!("{written} bytes in {took:.2?} to {}", file.path().display());
    Ok(())
}
