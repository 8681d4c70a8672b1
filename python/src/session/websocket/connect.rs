//! From Python's arguments to a WebSocket that is to be opened.

use std::time::Duration;

use mimus::{
    Client,
    ws::{Builder, DeflateOffer},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyString},
};

use super::{Wraps, handshake::Deflate, operations::Connect};
use crate::{
    args::{self, CallArgs, Defaults},
    options::seconds,
    session::{check_hooks, taken},
};

/// What a WebSocket has beside the arguments of every call.
struct WebSocketArgs<'py> {
    subprotocols: Option<Bound<'py, PyAny>>,
    origin: Option<Bound<'py, PyAny>>,
    compression: Option<Bound<'py, PyAny>>,
    max_message_size: Option<Bound<'py, PyAny>>,
    ping_interval: Option<Bound<'py, PyAny>>,
    ping_timeout: Option<Bound<'py, PyAny>>,
    idle_timeout: Option<Bound<'py, PyAny>>,
    close_timeout: Option<Bound<'py, PyAny>>,
    http_version: Option<Bound<'py, PyAny>>,
}

/// Arguments of calls that mean nothing here.
const REFUSED: [&str; 6] = ["content", "data", "files", "json", "stream", "decode"];

/// Opens a WebSocket with the arguments that `client.websocket` was given.
///
/// # Errors
/// A Python exception for what is not valid, and where it is waited for, for why there is none.
pub(crate) fn open<F: Wraps>(
    py: Python<'_>,
    client: &Client,
    defaults: &Defaults,
    url: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<F::Returned> {
    check_hooks(defaults, "websocket")?;
    let options = args::copied(py, options)?;
    let own = WebSocketArgs::take(&options)?;
    for name in REFUSED {
        if options.contains(name)? {
            return Err(args::unexpected("websocket", name));
        }
    }
    let arguments = CallArgs::parse("websocket", Some(&options))?;
    let url = args::url(url)?;
    let builder = own.apply(client.websocket(url.to_str()?), defaults)?;
    let mut failed = None;
    let builder = builder.request(|request| {
        // There is no way out of here but with a request.
        let spare = client.get("");
        arguments.extend(py, request, defaults, F::BODY).unwrap_or_else(|error| {
            failed = Some(error);
            spare
        })
    });
    match failed {
        Some(error) => Err(error),
        None => F::run(py, "websocket", Connect::<F>::new(builder)),
    }
}

impl<'py> WebSocketArgs<'py> {
    fn take(options: &Bound<'py, PyDict>) -> PyResult<Self> {
        Ok(WebSocketArgs {
            subprotocols: taken(options, "subprotocols")?,
            origin: taken(options, "origin")?,
            compression: taken(options, "compression")?,
            max_message_size: taken(options, "max_message_size")?,
            ping_interval: taken(options, "ping_interval")?,
            ping_timeout: taken(options, "ping_timeout")?,
            idle_timeout: taken(options, "idle_timeout")?,
            close_timeout: taken(options, "close_timeout")?,
            http_version: taken(options, "http_version")?,
        })
    }

    fn apply(self, mut builder: Builder, defaults: &Defaults) -> PyResult<Builder> {
        if let Some(names) = &self.subprotocols {
            if names.is_instance_of::<PyString>() {
                return Err(PyTypeError::new_err("subprotocols must be a list of names"));
            }
            let names = names.try_iter()?.map(|name| name?.extract::<String>());
            builder = builder.subprotocols(names.collect::<PyResult<Vec<_>>>()?);
        }
        if let Some(origin) = &self.origin {
            builder = builder.origin(origin.extract::<String>()?);
        }
        if let Some(wanted) = &self.compression {
            builder = builder.deflate(compression(wanted)?);
        }
        if let Some(most) = &self.max_message_size {
            let most: usize = most.extract()?;
            builder = builder.max_message(most).max_frame(most);
        }
        let version = match &self.http_version {
            Some(version) => args::http_version(version)?,
            None => defaults.version,
        };
        if let Some(version) = version {
            builder = builder.version(version);
        }
        self.clocks(builder)
    }

    fn clocks(&self, mut builder: Builder) -> PyResult<Builder> {
        let limit = |value: &Option<Bound<'_, PyAny>>, name| match value {
            Some(value) => positive(value, name).map(Some),
            None => Ok(None),
        };
        builder = builder.ping_interval(limit(&self.ping_interval, "ping_interval")?);
        builder = builder.idle_timeout(limit(&self.idle_timeout, "idle_timeout")?);
        if let Some(wait) = limit(&self.ping_timeout, "ping_timeout")? {
            builder = builder.pong_timeout(wait);
        }
        if let Some(wait) = limit(&self.close_timeout, "close_timeout")? {
            builder = builder.close_timeout(wait);
        }
        Ok(builder)
    }
}

/// A time that is not over at once, and ends.
fn positive(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Duration> {
    seconds(value, name)?
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| PyValueError::new_err(format!("{name} must be more than 0, and finite")))
}

/// What `compression=` means.
fn compression(value: &Bound<'_, PyAny>) -> PyResult<Option<DeflateOffer>> {
    if let Ok(wanted) = value.cast::<PyBool>() {
        return Ok(wanted.is_true().then(DeflateOffer::default));
    }
    match value.cast::<Deflate>() {
        Ok(deflate) => Ok(Some((*deflate.get()).into())),
        Err(_) => Err(PyTypeError::new_err("compression must be True, False or a mimus.Deflate")),
    }
}
