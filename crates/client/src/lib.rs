//! Mimus.

pub mod pool;
