//! The client against the embedded origin, each test on tokio current_thread, tokio multi_thread,
//! smol, and blocking.

mod bad_input;
mod basics;
mod bodies;
mod policies;
mod pool;
mod routes;
mod support;
mod timeouts;
