//! The program as a user meets it: run against the embedded origin, judged by its output, its exit
//! code, and what the origin saw.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod body;
mod curl;
mod download;
mod exit_codes;
mod fingerprint;
mod grpc;
mod http2;
mod profile;
mod rig;
mod show;
mod sse;
mod transport;
mod ws;
