//! Everything of Mimus that touches the operating system: runtimes, sockets, name resolution, TLS,
//! proxies.
//!
//! The one currency is [`Socket`]: a byte stream with a deadline. A TCP connection is one, a Unix
//! socket is one, TLS wraps one and is one, a proxy turns one into another. [`Runtime`] makes the
//! first of them; [`dial`] puts the rest on top.

pub mod dial;
mod error;
pub mod proxy;
pub mod rt;
pub mod tls;

pub use error::{DialError, DialErrorKind, Phase};
pub use rt::{BoxFuture, Runtime, Socket, Wait};
