//! A model's answer word by word, as OpenAI's chat completions stream it.
//!
//! `cargo run --example openai_stream`

#![allow(clippy::print_stdout)]

use std::{
    io::Write,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::TryStreamExt;
use mimus::{Client, sse::Events};
use mimus_testkit::Origin;
use serde::Deserialize;

/// Of a `chat.completion.chunk`, what is needed here.
#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

/// What a model says, piece by piece, and why it stopped.
#[derive(Debug, PartialEq)]
enum Said {
    Text(String),
    Finished(String),
}

/// The deltas of a stream, up to `[DONE]`.
struct Deltas(Events);

impl Stream for Deltas {
    type Item = Result<Said, Box<dyn std::error::Error>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(event) = ready!(self.0.poll_event(cx)).transpose()? else {
                return Poll::Ready(Some(Err("the stream ended without [DONE]".into())));
            };
            if event.data == "[DONE]" {
                // Nobody reads the rest, and the connection is kept all the same.
                return Poll::Ready(None);
            }
            let chunk: Chunk = event.json()?;
            let Some(choice) = chunk.choices.into_iter().next() else { continue };
            let text = choice.delta.content.map(Said::Text);
            if let Some(said) = text.or(choice.finish_reason.map(Said::Finished)) {
                return Poll::Ready(Some(Ok(said)));
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In earnest: https://api.openai.com/v1, with `bearer_auth(key)`.
    let origin = Origin::start()?;
    let client = Client::builder().base_url(origin.http_url("/v1/")).build()?;
    let ask = |prompt: &str| {
        let message = serde_json::json!({ "role": "user", "content": prompt });
        client
            .post("chat/completions")
            .json(&serde_json::json!({ "model": "m", "stream": true, "messages": [message] }))
    };

    let prompts = ["the mockingbird has forty songs", "and none of them is its own"];
    for prompt in prompts {
        let events = ask(prompt).send().await?.into_events()?;
        let (mut deltas, mut text) = (Deltas(events), String::new());
        while let Some(said) = deltas.try_next().await? {
            match said {
                Said::Text(more) => {
                    print!("{more}");
                    std::io::stdout().flush()?;
                    text.push_str(&more);
                }
                Said::Finished(why) => println!("  ({why})"),
            }
        }
        assert_eq!(text, prompt);
    }
    println!("{} prompts, {} connection", prompts.len(), origin.connections().len());
    assert_eq!(origin.connections().len(), 1);

    // What is refused says why.
    let refused = client.post("chat/completions").body("{}").send().await?.into_events();
    let refused = refused.expect_err("no prompt, no stream");
    let why = refused.why();
    println!("{why}: {}", refused.into_response().text().await?);
    Ok(())
}
