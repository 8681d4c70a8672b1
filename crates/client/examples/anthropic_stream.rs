//! A model's answer word by word, as Anthropic's messages stream it: events of many types, each JSON.
//!
//! `cargo run --example anthropic_stream`

#![allow(clippy::print_stdout)]

use std::io::Write;

use mimus::{
    blocking::Client,
    sse::{Event, Events},
};
use mimus_testkit::Origin;
use serde::Deserialize;

type Failure = Box<dyn std::error::Error>;

/// What an event means. Their type stands in their data too.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Meaning {
    ContentBlockDelta {
        delta: BlockDelta,
    },
    MessageDelta {
        delta: MessageDelta,
    },
    MessageStop,
    Error {
        error: serde_json::Value,
    },
    /// `message_start`, `ping`, and whatever there will be.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

/// What a model says, piece by piece, and why it stopped.
enum Said {
    Text(String),
    Stopped(String),
}

/// The deltas of a stream, up to `message_stop`.
struct Deltas(Events<mimus::Blocking>);

impl Deltas {
    /// What an event says, if it is something to show. `None` is the end.
    fn meaning(event: &Event) -> Result<Option<Option<Said>>, Failure> {
        Ok(Some(match event.json()? {
            Meaning::ContentBlockDelta { delta: BlockDelta::TextDelta { text } } => {
                Some(Said::Text(text))
            }
            Meaning::MessageDelta { delta } => delta.stop_reason.map(Said::Stopped),
            Meaning::MessageStop => return Ok(None),
            Meaning::Error { error } => return Err(error.to_string().into()),
            Meaning::ContentBlockDelta { .. } | Meaning::Other => None,
        }))
    }
}

impl Iterator for Deltas {
    type Item = Result<Said, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let said = match self.0.next() {
                Some(Ok(event)) => Deltas::meaning(&event).transpose()?,
                Some(Err(error)) => Err(error.into()),
                None => Err("the stream ended without message_stop".into()),
            };
            if let Some(said) = said.transpose() {
                return Some(said);
            }
        }
    }
}

fn main() -> Result<(), Failure> {
    // In earnest: https://api.anthropic.com/v1/messages, with `header("x-api-key", key)`.
    let origin = Origin::start()?;
    let client = Client::new();
    let prompt = "a bird that sings in forty tongues";
    let message = serde_json::json!({ "role": "user", "content": prompt });
    let asked = serde_json::json!({ "model": "m", "stream": true, "messages": [message] });
    let response = client.post(origin.http_url("/v1/messages")).json(&asked).send()?;

    let mut text = String::new();
    for said in Deltas(response.into_events()?) {
        match said? {
            Said::Text(more) => {
                print!("{more}");
                std::io::stdout().flush()?;
                text.push_str(&more);
            }
            Said::Stopped(why) => println!("  ({why})"),
        }
    }
    assert_eq!(text, prompt);
    Ok(())
}
