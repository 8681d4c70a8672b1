//! mimus.
fn main() {}
