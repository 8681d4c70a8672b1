//! What a client with a profile sends, against what the browsers do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod behaviour;
mod capture;
mod golden;
mod peer;
mod table;
