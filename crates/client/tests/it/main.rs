//! The client against the embedded origin, each test on tokio current_thread, tokio multi_thread,
//! smol, and blocking.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_h2;
mod bad_input;
mod bad_ws;
mod basics;

mod bodies;
mod coalesce;
mod h2;
mod h2_peer;
mod large;
mod policies;
mod pool;
mod preconnect;
mod remains;
mod responder;
mod review;
mod routes;
mod schedule;
#[cfg(feature = "sse")]
mod sse;
mod support;
mod timeouts;
mod tunnel;
mod ws;
