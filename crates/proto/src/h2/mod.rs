//! HTTP/2 (RFC 9113): the client's end of a connection, and of each stream on it.
//!
//! ```text
//!            open                send_end, the last DATA is a frame
//!   (idle) --------> Open ---> Finishing ---------------------------> Ended      what we send
//!                      \__________ RST_STREAM either way __________> Stopped
//!
//!                  1xx: again
//!            open      /   head           END_STREAM
//!   (idle) --------> Head --------> Body ------------> Ended                     what we receive
//!                      \_____________\__ RST_STREAM, GOAWAY, an error: Failed
//! ```
//!
//! A [`Client`] is told of bytes, and asked for bytes, for the connection; it is asked for [`Event`]s
//! and given bodies for each [`Stream`]. Who owns a stream need not be who moves the bytes:
//! [`Client::next_stirred`] names the streams whose owners have something to look at. A stream is given
//! up by [`Client::reset`], once, whatever became of it; until then its handle answers, afterwards it
//! answers with an error, even when another stream took its place in memory.
//!
//! What holds at any time:
//!
//! - **A response is whole or an error.** [`Event::End`] is given out only when END_STREAM came and the
//!   body had the length that its head promised. What else can end a stream (its reset, GOAWAY, a lost
//!   connection) is an error behind what came before it, and takes nothing from a response that is whole.
//! - **Not processed is not failed.** [`StreamError::NotProcessed`] is said only where RFC 9113 section
//!   8.7 promises it; for the rest there is [`Client::sent`].
//! - **Header blocks are written and read in order, each exactly once**, whatever becomes of the stream,
//!   so that the compression state of both ends stays the same.
//! - **Credit is never lost.** The window of the connection opens with what came, whether or not anybody
//!   reads it, the window of a stream with what its owner took. Of a stream given up, all of it counts
//!   as taken.
//! - **Frames that matter do not wait for data**: DATA becomes frames only when there is room to write
//!   them, 128 KiB ahead at most, one frame for each stream in turn.
//!
//! Where memory is bounded, and by which of the [`Limits`]:
//!
//! | what grows | by |
//! |---|---|
//! | bytes read and not understood | one frame: what we allow by SETTINGS_MAX_FRAME_SIZE, and `header_block` |
//! | a header block in pieces | `header_block`, `continuations` |
//! | a decoded head | `head_bytes`, `fields`, `informational` |
//! | the decoder's table | what we allow by SETTINGS_HEADER_TABLE_SIZE |
//! | data nobody reads | `stream_window` for each stream; `unread` for all |
//! | heads nobody reads | `head_bytes` for each stream; twice `unread` with the data of all |
//! | answers that the server does not read | `unsent_replies` |
//! | request bodies | what the caller queues beyond `capacity`, which asks for `send_queue` |
//! | streams | `streams`; of those that were reset, `reset_memory` |
//! | work for nothing | the allowances: `settings`, `pings`, `resets`, `provoked_resets`, `empty_frames`, `idle_frames` |
//!
//! Small data is copied, because a slice of the read buffer keeps all of it alive; pieces below 4 KiB
//! that pile up on a stream are put together.
//!
//! Windows grow: a PING that leaves with a WINDOW_UPDATE measures what comes in a round trip, and a
//! window that held the server back doubles, up to `stream_window` and `connection_window`. Nothing else
//! sends a PING uninvited but the keep-alive, so a small exchange is a HEADERS frame each way.
//!
//! One exchange, the server's part written by hand:
//!
//! ```
//! use std::time::Instant;
//! use http::Method;
//! use mimus_proto::h2::{Client, Code, Limits, Opening, RequestLine};
//! use mimus_proto::{Event, Fields};
//!
//! let mut client = Client::new(&Opening::default(), Limits::default(), Instant::now());
//! let fields = Fields::try_from([("Accept", "*/*")])?;
//! let stream = client.open(&RequestLine {
//!     method: &Method::GET,
//!     scheme: "https",
//!     authority: "example.com",
//!     path: "/bird",
//!     protocol: None,
//!     fields: &fields,
//!     end: true,
//!     weight: None,
//! })?;
//!
//! // What would be written to the socket: the preface, and the request.
//! while client.has_output() {
//!     let mut slices = [std::io::IoSlice::new(&[]); 8];
//!     let filled = client.poll_transmit(&mut slices);
//!     let written = slices[..filled].iter().map(|slice| slice.len()).sum();
//!     client.transmitted(written);
//! }
//!
//! // What came back: SETTINGS, HEADERS with `:status: 200`, DATA.
//! client.recv(b"\0\0\0\x04\0\0\0\0\0");
//! client.recv(b"\0\0\x01\x01\x04\0\0\0\x01\x88");
//! client.recv(b"\0\0\x05\0\x01\0\0\0\x01chirp");
//! client.process(Instant::now())?;
//! assert_eq!(client.next_stirred(), Some(stream));
//! let mut body = Vec::new();
//! while let Some(event) = client.poll_event(stream)? {
//!     match event {
//!         Event::Head(head) => assert_eq!(head.status, 200),
//!         Event::Data(data) => body.extend_from_slice(&data),
//!         Event::End => break,
//!         other => panic!("not expected here: {other:?}"),
//!     }
//! }
//! assert_eq!(body, b"chirp");
//! client.reset(stream, Code::NO_ERROR);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Event`]: crate::Event
//! [`Event::End`]: crate::Event::End

mod akamai;
mod client;
mod code;
mod conn;
mod flood;
mod flow;
mod frame;
pub mod hpack;
mod indexing;
mod limits;
mod message;
mod opening;
mod receive;
mod request;
mod section;
mod send;
mod settings;
mod stream;
mod streams;
mod timers;

/// What reading a client's frames, and answering them, takes beyond what this module shows.
#[cfg(feature = "fingerprint")]
pub(crate) mod fingerprinting {
    pub(crate) use super::frame::{
        HEADER_LEN, Header, PREFACE, begin_block, finish_block, flag, kind, number, write_ping,
        write_settings, write_settings_ack, write_window_update,
    };
    pub(crate) use super::hpack::{Forms, read_forms};
}

pub use akamai::AkamaiError;
pub use client::{Busy, Client};
pub use code::Code;
pub use indexing::{IndexingPolicy, IndexingRule, default_indexing};
pub use limits::Limits;
pub use opening::{Dependency, Opening, Priority, Pseudo, SettingId};
pub use request::{RequestLine, can_carry, can_carry_field};
pub use settings::PeerSettings;
pub use stream::{Sent, Stream, StreamError};
