//! Misbehaviour.
pub(crate) mod tcp;
use crate::routes::Route;
pub(crate) const TABLES: &[&[Route]] = &[];
