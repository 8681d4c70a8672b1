//! Server-sent events: the event stream of the HTML standard (WHATWG, section 9.2), and lines of JSON.
//!
//! A [`Parser`] takes the body apart, however it is split; a [`Source`] says when to connect, to wait, to
//! go on and to stop. Neither opens a connection or reads a clock.
//!
//! ```
//! use mimus_proto::sse::{Limits, Parser};
//!
//! let mut parser = Parser::new(Limits::default());
//! parser.push("event: delta\ndata: {\"text\":".into());
//! assert!(parser.next_event()?.is_none());
//! parser.push(" \"hi\"}\n\n: a comment\n".into());
//! let event = parser.next_event()?.expect("it is whole now");
//! assert_eq!(event.event(), "delta");
//! assert_eq!(event.data(), "{\"text\": \"hi\"}");
//! assert!(parser.next_event()?.is_none());
//! # Ok::<(), mimus_proto::sse::TooLong>(())
//! ```

mod event;
mod lines;
mod parser;
mod source;

use std::fmt;

pub use bytestring::ByteString;
pub use event::{Event, EventRef};
pub use lines::{Ends, Line, Lines};
pub use parser::Parser;
pub use source::{Action, Ending, Policy, Refused, Source, Verdict};

/// The media type of an event stream, without parameters.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// The name of the field that says, in a request, which event was seen last.
pub const LAST_EVENT_ID: &str = "Last-Event-ID";

/// Whether a value of `Content-Type` names an event stream. Parameters do not matter: the standard reads
/// every event stream as UTF-8.
#[must_use]
pub fn is_event_stream(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(MEDIA_TYPE)
}

/// What a server may make its client hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one line, its end not counted. Default: 8 MiB, which holds an image as base64.
    pub line: usize,
    /// Bytes of one event's data, all its lines together. Default: 16 MiB.
    pub event: usize,
}

impl Limits {
    /// With another [`line`](Self::line).
    #[must_use]
    pub fn line(self, bytes: usize) -> Self {
        Limits { line: bytes, ..self }
    }

    /// With another [`event`](Self::event).
    #[must_use]
    pub fn event(self, bytes: usize) -> Self {
        Limits { event: bytes, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { line: 8 << 20, event: 16 << 20 }
    }
}

/// A limit was exceeded. Nothing of the stream is read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLong {
    /// A line has more bytes than allowed.
    Line {
        /// [`Limits::line`].
        limit: usize,
    },
    /// The data of an event has more bytes than allowed.
    Event {
        /// [`Limits::event`].
        limit: usize,
    },
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { limit } => write!(f, "a line is longer than {limit} bytes"),
            Self::Event { limit } => write!(f, "the data of an event is longer than {limit} bytes"),
        }
    }
}

impl std::error::Error for TooLong {}
