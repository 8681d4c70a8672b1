//! Mimus.
