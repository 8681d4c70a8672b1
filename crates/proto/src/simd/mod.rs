//! The one place with `unsafe` in this crate: masking by whatever vectors the processor has, and text
//! that is not checked twice.

pub(crate) mod mask;
pub(crate) mod utf8;
