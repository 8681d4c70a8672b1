//! gRPC: against a peer that does exactly what a test says, and against tonic.

mod calls;
mod limits;
mod rig;
mod streams;
mod tonic;
