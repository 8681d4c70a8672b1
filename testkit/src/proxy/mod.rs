//! Proxies: listeners that pass bytes on, to loopback only.

pub(crate) mod http;
pub(crate) mod socks;
