//! The client of Autobahn's fuzzing server: every case is a socket on which everything is said back.

use anyhow::{Context, Result};
use clap::Args;
use mimus::{Client, ws::Message};

use crate::{Way, open};

/// Larger than the largest message of any case, which is 16 MiB.
const LARGEST: usize = 32 << 20;

/// Which cases to take, and how.
#[derive(Args)]
pub(crate) struct Cases {
    /// The server, as ws://HOST:PORT.
    url: String,
    /// What the reports call this client.
    #[arg(long, default_value = "mimus")]
    agent: String,
    #[command(flatten)]
    way: Way,
}

pub(crate) async fn run(cases: &Cases) -> Result<()> {
    let client = cases.way.client()?;
    let count: usize = ask(cases, &client, "/getCaseCount").await?.parse()?;
    for case in 1..=count {
        let url = format!("{}/runCase?case={case}&agent={}", cases.url, cases.agent);
        let socket = cases.way.socket(&client, &url).max_message(LARGEST).max_frame(LARGEST);
        let mut socket = open(socket).await.with_context(|| format!("case {case}"))?;
        // Many cases end in an error on purpose: it is for the server to say whether that was right.
        while let Ok(Some(message)) = socket.recv().await {
            if let Message::Text(_) | Message::Binary(_) = message
                && socket.send(message).await.is_err()
            {
                break;
            }
        }
    }
    let url = format!("{}/updateReports?agent={}", cases.url, cases.agent);
    let mut socket = open(cases.way.socket(&client, &url)).await?;
    while socket.recv().await?.is_some() {}
    println!("{count} cases");
    Ok(())
}

/// The one message that the server has there.
async fn ask(cases: &Cases, client: &Client, path: &str) -> Result<String> {
    let url = format!("{}{path}", cases.url);
    let mut socket = open(cases.way.socket(client, &url)).await?;
    while let Some(message) = socket.recv().await? {
        if let Message::Text(text) = message {
            return Ok(text.to_string());
        }
    }
    anyhow::bail!("{path} says nothing")
}
