//! What every measured client shares, so that only the client itself differs: the jobs it is given,
//! the loop that makes the exchanges, the clocks and counters around them.
//!
//! A measured client is a binary of its own: it implements [`AsyncPeer`] or [`BlockingPeer`] and hands
//! itself to this crate. The runner talks to it in JSON lines ([`job`]).

pub mod job;
pub mod peer;

pub use job::{Answer, Deliver, Hello, Job, Sample, Upload};
pub use peer::{Ask, AsyncPeer, BlockingPeer, Outgoing, PeerError, Seen};
