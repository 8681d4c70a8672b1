//! Event streams, and the machine that connects to their sources.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod grammar;
mod lines;
mod properties;
mod rig;
mod source;
mod wpt;
