//! HTTP from the shell.

mod exit;
mod flags;

fn main() {}
