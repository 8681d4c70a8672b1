//! The Python package `mimus`: what is Python's about it (arguments, objects, exceptions, the event loop). All that
//! is HTTP's is the Rust core's.

mod args;
mod asyncio;
mod auth;
mod bodies;
mod client;
mod cookies;
mod errors;
mod exchange;
mod forks;
mod headers;
mod hooks;
mod memory;
mod options;
mod response;
mod session;
mod transport;
mod wait;

/// The compiled part of the package.
#[pyo3::pymodule(gil_used = false)]
mod _mimus {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        asyncio::{AsyncClient, AsyncIterator, AsyncResponse, Call},
        auth::{Basic, Bearer, Digest},
        client::Client,
        cookies::Cookies,
        headers::Headers,
        hooks::OutgoingRequest,
        options::{Limits, Retry, Timeout},
        response::{BaseResponse, Hop, Response, Timings, TlsInfo},
        session::{
            AsyncEventSource, AsyncWebSocket, Deflate, Event, EventSource, Handshake, Reconnect,
            WebSocket,
        },
        transport::intercept,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
