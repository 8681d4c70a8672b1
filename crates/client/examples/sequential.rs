//! Sequential small GETs and nothing else: what to count system calls of.
//!
//! `strace -f -c target/release/examples/sequential blocking 10000 URL`, where the first argument is
//! `blocking` or `tokio`, and the origin is another process (`mimus-origin`).

#![expect(clippy::print_stdout, reason = "it is what an example is for")]

use std::{env, process::ExitCode};

type AnyError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [runtime, rounds, url] = &args[..] else {
        eprintln!("usage: sequential blocking|tokio ROUNDS URL");
        return ExitCode::from(2);
    };
    let result = rounds.parse().map_err(AnyError::from).and_then(|rounds| match &runtime[..] {
        "blocking" => blocking(rounds, url),
        "tokio" => tokio(rounds, url),
        other => Err(format!("no runtime called {other:?}").into()),
    });
    match result {
        Ok(bytes) => {
            println!("{rounds} responses, {bytes} bytes");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn blocking(rounds: u64, url: &str) -> Result<usize, AnyError> {
    let client = mimus::blocking::Client::new();
    let mut bytes = 0;
    for _ in 0..rounds {
        bytes += client.get(url).send()?.bytes()?.len();
    }
    Ok(bytes)
}

fn tokio(rounds: u64, url: &str) -> Result<usize, AnyError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = mimus::Client::new();
        let mut bytes = 0;
        for _ in 0..rounds {
            bytes += client.get(url).send().await?.bytes().await?.len();
        }
        Ok(bytes)
    })
}
