//! Server-sent events, and lines of JSON.
//!
//! | | made by | goes on when the stream ends |
//! |---|---|---|
//! | [`EventSource`] | [`Client::event_source`](crate::Client::event_source), [`RequestBuilder::event_source`](crate::RequestBuilder::event_source) | yes, behind the last event; a request other than GET only when told to |
//! | [`Events`] | [`Response::into_events`](crate::Response::into_events), [`Incoming::into_events`](crate::Incoming::into_events) | no |
//! | `JsonLines` | `Response::into_json_lines`, with the feature `json` | no |
//!
//! Each is a `Stream` where calls are awaited, and an [`Iterator`] where they block.
//!
//! ```
//! # let origin = mimus_testkit::Origin::start().unwrap();
//! # let url = origin.http_url("/sse?total=3&cut=2&ms=0&retry=1");
//! # #[cfg(feature = "tokio")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let mut source = mimus::Client::new().event_source(url);
//! # let mut seen = Vec::new();
//! while let Some(event) = source.next_event().await? {
//!     println!("{} {}: {}", event.id, event.event, event.data);
//! #   seen.push(event.id.to_string());
//! }
//! # assert_eq!((seen, source.connections()), (vec!["0".into(), "1".into(), "2".into()], 2));
//! # Ok::<(), mimus::Error>(())
//! # }).unwrap();
//! ```
//!
//! A model's answer, as the APIs of language models stream it:
//!
//! ```no_run
//! # async fn ask(request: serde_json::Value) -> Result<(), Box<dyn std::error::Error>> {
//! let client = mimus::Client::new();
//! let response = client.post("https://llm.example/v1/chat").json(&request).send().await?;
//! let mut events = response.into_events()?;
//! while let Some(event) = events.next_event().await? {
//!     if event.data == "[DONE]" {
//!         break;
//!     }
//!     let delta: serde_json::Value = event.json()?;
//!     print!("{}", delta["text"].as_str().unwrap_or_default());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - **Stopping early costs no connection.** Dropping a stream reads off a small rest that is here, and on
//!   a runtime that drives tasks waits a fifth of a second for an end that is on its way.
//! - **Silence** ends a stream after [`idle_timeout`](crate::RequestBuilder::idle_timeout); anything that
//!   comes, a comment too, begins it anew. A [total timeout](crate::RequestBuilder::timeout) holds for each
//!   connection, so one set for the client's other calls cuts its streams too.
//! - **An answer that is no stream** keeps its body: [`NotEvents`] has the response, and the error of an
//!   [`EventSource`] the first 64 KiB of it, as a [`Refusal`].
//! - **What a server may make us hold** is bounded by [`Limits`]; beyond them reading fails with
//!   [`Kind::Limit`](crate::Kind::Limit).

mod events;
#[cfg(feature = "json")]
mod json_lines;
mod refusal;
mod source;

pub use events::Events;
#[cfg(feature = "json")]
pub use json_lines::JsonLines;
pub use mimus_proto::sse::{
    ByteString, Ends, Event, EventRef, LAST_EVENT_ID, Limits, Line, Lines, MEDIA_TYPE, Parser,
    Policy, Refused, TooLong,
};
pub use refusal::{NotEvents, Refusal};
pub use source::EventSource;

use crate::{Error, Kind};

/// A line or an event was longer than allowed.
fn too_long(cause: TooLong) -> Error {
    Error::new(Kind::Limit, "the stream asks for too much room")
        .in_phase(mimus_net::Phase::Body)
        .after_sending(true)
        .caused_by(cause)
}
