//! HTTP/2 (RFC 9113): the well-behaved server is the crate `h2`; what is wrong on purpose, in
//! [`crate::bad_h2`], is written in raw frames.

pub(crate) mod frame;
mod serve;
mod stream;
mod tap;

pub(crate) use serve::serve;
pub(crate) use stream::Stream;
pub(crate) use tap::Tap;
