//! Mimus.

mod body;

pub use body::*;
