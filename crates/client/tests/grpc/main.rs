//! gRPC: against a peer that does exactly what a test says, and against tonic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod http2;
mod limits;
mod rig;
mod streams;
mod tonic;
