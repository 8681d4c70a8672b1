//! An HTTP client that costs little more than the socket under it.
//!
//! ```
//! # let origin = mimus_testkit::Origin::start().unwrap();
//! # let url = origin.http_url("/gzip");
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let client = mimus::Client::new();
//! let text = client.get(url).send().await?.error_for_status()?.text().await?;
//! assert!(text.contains("gzip"));
//! # Ok::<(), mimus::Error>(())
//! # }).unwrap();
//! ```
//!
//! - [`Client`] is awaited, on tokio, smol, or a [`Runtime`](rt::Runtime) of your own, chosen by value.
//!   [`blocking::Client`] blocks the calling thread; it is the same code.
//! - What is set on the [`ClientBuilder`] is the default of every call; the [`RequestBuilder`] has the
//!   same setters for one call.
//! - A connection is driven by the future that waits for it. There is no task behind it, no channel,
//!   and no timer until something has to wait.
//! - Dropping a future or a response at any point leaks nothing: its connection is closed, or goes
//!   back to the pool when the protocol allows.
//!
//! # Features
//! All only compile code in; behaviour is chosen by value. `tokio` (default), `smol`, `hickory` (its
//! resolver), `json` (default), `gzip`, `deflate`, `brotli`, `zstd` (all default), `tower` (the
//! client as a `tower_service::Service`), `sse` (default, module `sse`: server-sent events, lines of JSON),
//! `grpc` (module `grpc`), `grpc-prost` (its codec of prost messages), `fingerprint` (module `fingerprint`: what
//! clients look like on the wire).

#![forbid(unsafe_code)]

pub mod blocking;
mod body;
mod builder;
mod call;
mod client;
mod coalesce;
mod conn;
mod error;
#[cfg(feature = "fingerprint")]
pub mod fingerprint;
mod halves;
mod incoming;
mod observe;
mod opener;
mod options;
mod origins;
mod policy;
mod pool;
mod preconnect;
pub mod profile;
mod reader;
mod request;
pub mod responder;
mod response;
mod route;
mod session;
mod target;
#[cfg(feature = "tower")]
mod tower;
mod upgrade;
mod verdict;
mod wire;

pub use body::{
    Body, BodyFrames, Coding, DecodeError, DecodeErrorKind, DecodeLimits, FormError,
    LengthMismatch, LineSplitter, LineTooLong, Meter, Observed, Observer, Progress, TextDecoder,
    charset_of, encode, multipart,
};
pub use builder::ClientBuilder;
pub use client::{Async, Blocking, Client};
pub use error::{BoxError, Error, Kind, Result};
pub use incoming::Incoming;
pub use mimus_net::{
    DialError, DialErrorKind, Phase,
    dial::{self, Resolve, SocketOptions},
    proxy::{Proxies, Proxy, ProxyError, ProxyKind},
    rt,
    tls::{self, TlsConfig, TlsInfo},
};
pub use mimus_proto::{
    Fields, InvalidField, ResponseHead,
    h1::Limits as Http1Limits,
    h2::{self, Limits as Http2Limits, Opening as Http2Opening},
};
pub use observe::{ConnectionInfo, Hook, Observation, Outgoing, Timings};
pub use options::Timeouts;
pub use policy::{auth, cookie, redirect, retry};
pub use pool::{Limits as PoolLimits, Stats as PoolStats};
pub use reader::BodyReader;
pub use request::{Protocol, Request, RequestBuilder};
pub use response::{Hop, Response};
#[cfg(feature = "grpc")]
pub use session::grpc;
#[cfg(feature = "sse")]
pub use session::sse;
#[cfg(feature = "ws")]
pub use session::ws;
pub use target::{IntoUrl, UnusableUrl};
pub use upgrade::Upgraded;

pub use http::{HeaderMap, Method, StatusCode, Version};
pub use url::Url;

/// GETs one URL with a client made for it. More than one call wants a [`Client`].
///
/// # Errors
/// As [`RequestBuilder::send`].
#[cfg(feature = "tokio")]
pub async fn get(url: impl IntoUrl) -> Result<Response> {
    Client::new().get(url).send().await
}
