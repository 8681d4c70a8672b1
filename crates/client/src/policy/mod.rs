//! What a client does about an outcome: functions from what happened to what comes next.
//!
//! Nothing here performs I/O, reads a clock or draws a random number: the time and the randomness
//! are arguments. The call loop asks, and acts.

pub mod auth;
pub mod cookie;
pub mod digest;
pub mod netrc;
pub mod redirect;
pub mod retry;
