//! HTTP from the shell.

mod address;
mod capture;
mod client;
mod docs;
mod exit;
mod fields;
mod fingerprint;
mod flags;
mod grpc;
mod interrupt;
mod observe;
mod output;
mod payload;
mod place;
mod profile;
mod request;
mod resume;
mod run;
mod sse;
mod warnings;
mod ws;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::run()
}
