//! The same core, driven by the asyncio loop itself: no task, no thread, and no queue for a call.
//!
//! ```text
//! await client.get(url)          the Task steps `Call`, which polls the Rust future on the spot: the request
//!                                is written. Pending: `Call` yields a future of the loop's, and waits.
//! selector says "readable"       `Watcher` wakes the Rust task, which is polled before the callback returns:
//!                                the response is read. The loop's future is resolved, the Task stepped.
//! ```

mod answer;
mod background;
mod bell;
mod call;
mod client;
mod hub;
mod response;
mod runtime;
mod shape;
mod source;
mod task;
mod timers;
mod upload;

pub(crate) use answer::answer;
pub(crate) use call::{Call, Eager};
pub(crate) use client::AsyncClient;
pub(crate) use response::{AsyncIterator, AsyncResponse};
pub(crate) use runtime::Asyncio;
pub(crate) use task::Work;
pub(crate) use upload::body as upload_body;
