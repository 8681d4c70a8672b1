//! Mimus.

pub mod policy;
pub mod pool;
