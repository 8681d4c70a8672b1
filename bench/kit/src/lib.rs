//! What every measured client shares, so that only the client itself differs: the jobs it is given,
//! the loop that makes the exchanges, the clocks and counters around them.
//!
//! A measured client is a binary of its own: it implements [`AsyncPeer`] or [`BlockingPeer`] and hands
//! itself to [`run_async`], [`run_blocking`] or, when it has both, to a [`Binary`]. Its command line
//! is then:
//!
//! ```text
//! <bin> hello [--config NAME]                 one Hello for each configuration
//! <bin> serve --config NAME [--ca FILE]       a Hello, then an Answer for each Job on stdin
//! <bin> once  --config NAME [--ca FILE] --job JSON    one Answer
//! ```
//!
//! `--runtime current|multi` chooses tokio's runtime for asynchronous clients (`current` if absent), and
//! `--protocol` what the client is made to speak ([`Protocol`]; `http1` if absent).
//! The runner talks to it in JSON lines ([`job`]).
//!
//! # A slow-down, for testing the comparison
//! With `MIMUS_BENCH_SLOW=1` in the environment, each exchange has one more heap allocation and 2 us
//! of spinning in its timed part. Reports made with and without it must differ beyond noise.

mod binary;
mod clock;
pub mod codec;
pub mod job;
mod measure;
mod messages;
mod own;
pub mod peer;
mod seen;
mod timer;
mod upload;
mod version;

pub use binary::{Binary, Config, Setup, run_async, run_blocking};
pub use job::{Answer, Deliver, Hello, Job, Protocol, Sample, Upload};
pub use messages::{Message, Messages};
pub use own::Own;
pub use peer::{Ask, AsyncPeer, BlockingPeer, Cold, Outgoing, PeerError};
pub use seen::Seen;
pub use upload::Pieces;
pub use version::locked;
