//! What lives longer than a head and a body: each is a body, or an upgraded stream, and a codec of
//! `mimus_proto` over it.

#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "sse")]
pub mod sse;
#[cfg(feature = "ws")]
pub mod ws;
