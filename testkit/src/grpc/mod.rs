//! A gRPC server over the routes of HTTP/2: an echo service, its reflection, and calls that go wrong.
//!
//! The wire is that of the gRPC specification ("gRPC over HTTP2"); nothing here knows the client.

mod bad;
mod call;
mod echo;
mod reflection;
mod schema;

pub use bad::{GrpcBad, grpc_bad};
pub use schema::descriptors as grpc_descriptors;

use crate::routes::Route;

/// The rows of all methods.
pub(crate) const TABLES: &[&[Route]] = &[echo::ROUTES, reflection::ROUTES, bad::ROUTES];

/// Status codes of gRPC that are said here.
pub(crate) mod code {
    pub(crate) const OK: i32 = 0;
    pub(crate) const UNKNOWN: i32 = 2;
    pub(crate) const INVALID_ARGUMENT: i32 = 3;
    pub(crate) const DEADLINE_EXCEEDED: i32 = 4;
    pub(crate) const NOT_FOUND: i32 = 5;
    pub(crate) const PERMISSION_DENIED: i32 = 7;
    pub(crate) const RESOURCE_EXHAUSTED: i32 = 8;
    pub(crate) const UNIMPLEMENTED: i32 = 12;
    pub(crate) const INTERNAL: i32 = 13;
    pub(crate) const UNAVAILABLE: i32 = 14;
    pub(crate) const UNAUTHENTICATED: i32 = 16;
}
