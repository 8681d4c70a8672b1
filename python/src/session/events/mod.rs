//! Server-sent events, for threads and for asyncio.

mod event;
mod source;

pub(crate) use event::{Event, EventParser};

use std::{sync::Arc, time::Duration};

use mimus::{
    Client, Method,
    sse::{Limits, Policy},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict},
};

use self::source::{Closing, Reading, Source};
use super::{Awaits, Blocks, Face, check_hooks, taken};
use crate::{
    args::{self, CallArgs, Defaults},
    asyncio::Call,
};

/// When a source of events connects again.
///
/// Args:
///     retry: The seconds after which it does, until the server names a time. Default: 3.
///     max_backoff: The longest that repeated failures let it wait, in seconds. Default: 60.
///     max_failures: After how many failures in a row it stops. Default: None, never.
///     from_start: Whether it does though it never had a stream. Default: False.
///     on_server_error: Whether it does after a status of 429 or 5xx. Default: False.
///
/// Raises:
///     ValueError: A time is none.
#[pyclass(frozen, module = "mimus", name = "Reconnect")]
#[derive(Debug, Clone)]
pub(crate) struct Reconnect(Policy);

#[pymethods]
impl Reconnect {
    #[new]
    #[pyo3(signature = (*, retry=3.0, max_backoff=60.0, max_failures=None, from_start=false, on_server_error=false))]
    fn new(
        retry: f64,
        max_backoff: f64,
        max_failures: Option<u32>,
        from_start: bool,
        on_server_error: bool,
    ) -> PyResult<Self> {
        let seconds = |n: f64| {
            Duration::try_from_secs_f64(n)
                .map_err(|_| PyValueError::new_err(format!("{n} is no number of seconds")))
        };
        let mut policy = Policy::default();
        policy.retry = seconds(retry)?;
        policy.max_backoff = seconds(max_backoff)?;
        policy.max_failures = max_failures;
        policy.from_start = from_start;
        policy.on_server_error = on_server_error;
        Ok(Reconnect(policy))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A face that sources of events have.
pub(crate) trait Wraps: Face {
    type Wrapped: for<'py> IntoPyObject<'py>;

    fn wrap(source: Arc<Source>) -> Self::Wrapped;
}

/// The source with the arguments that `client.sse` was given.
///
/// # Errors
/// A Python exception for what is not valid.
pub(crate) fn open<F: Wraps>(
    py: Python<'_>,
    client: &Client,
    defaults: &Defaults,
    url: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<F::Wrapped> {
    check_hooks(defaults, "sse")?;
    let options = args::copied(py, options)?;
    let method = taken(&options, "method")?;
    let last_event_id = taken(&options, "last_event_id")?;
    let reconnect = taken(&options, "reconnect")?;
    let max_event_size = taken(&options, "max_event_size")?;
    if options.contains("stream")? {
        return Err(args::unexpected("sse", "stream"));
    }
    let method = match method {
        Some(method) => args::method(&method.extract::<String>()?)?,
        None if has_body(&options)? => Method::POST,
        None => Method::GET,
    };
    let arguments = CallArgs::parse("sse", Some(&options))?;
    let url = args::url(url)?;
    let builder = client.request(method.clone(), url.to_str()?);
    let mut source = arguments.extend(py, builder, defaults, F::BODY)?.event_source();
    let mut policy = policy(reconnect.as_ref(), &method)?;
    if let Some(size) = max_event_size {
        let size: usize = size.extract()?;
        policy.limits = Limits::default().line(size).event(size);
    }
    source = source.policy(policy);
    if let Some(id) = last_event_id {
        source = source.last_event_id_seen(&id.extract::<String>()?);
    }
    Ok(F::wrap(Arc::new(Source::new(source))))
}

fn has_body(options: &Bound<'_, PyDict>) -> PyResult<bool> {
    for name in ["content", "data", "files", "json"] {
        if options.get_item(name)?.is_some_and(|value| !value.is_none()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What `reconnect=` means. A request that may do something is not sent again unless that was asked for.
fn policy(value: Option<&Bound<'_, PyAny>>, method: &Method) -> PyResult<Policy> {
    let mut policy = Policy::default();
    let Some(value) = value else {
        policy.reconnect = *method == Method::GET;
        return Ok(policy);
    };
    if let Ok(wanted) = value.cast::<PyBool>() {
        policy.reconnect = wanted.is_true();
        return Ok(policy);
    }
    match value.cast::<Reconnect>() {
        Ok(reconnect) => Ok(reconnect.get().0.clone()),
        Err(_) => Err(PyTypeError::new_err("reconnect must be True, False or a mimus.Reconnect")),
    }
}

/// The methods that both faces have, and those that one has alone.
macro_rules! methods {
    ($class:ident, { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            /// The last event ID: what the next connection goes on behind. Empty when there is none.
            #[getter]
            fn last_event_id(&self) -> String {
                self.0.progress().0
            }

            /// How many streams were opened so far.
            #[getter]
            fn connections(&self) -> u64 {
                self.0.progress().1
            }

            /// Whether there will be no more events.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            fn __reduce__(&self) -> PyResult<()> {
                Err(PyTypeError::new_err("an event source cannot be pickled: keep its last_event_id"))
            }

            $($own)*
        }
    };
}

/// The events of a source. When a stream ends or its connection fails, it connects again and goes on behind the last
/// event. It does nothing until it is iterated over; that ends when the server says so (204), or when a stream ends and it
/// may not connect again. In a process that was forked it cannot be used.
#[pyclass(frozen, module = "mimus", name = "EventSource")]
pub(crate) struct EventSource(Arc<Source>);

impl Wraps for Blocks {
    type Wrapped = EventSource;

    fn wrap(source: Arc<Source>) -> EventSource {
        EventSource(source)
    }
}

methods!(EventSource, {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.owner().check()?;
        Blocks::run(py, "__next__", Reading(self.0.clone()))
    }

    /// Closes it. The connection is kept where nothing, or little, of its stream is left.
    fn close(&self) {
        self.0.close();
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) {
        self.0.close();
    }
});

/// The events of a source, awaited. When a stream ends or its connection fails, it connects again and goes on behind the
/// last event. It does nothing until it is iterated over; that ends when the server says so (204), or when a stream ends
/// and it may not connect again. Breaking off a wait loses nothing. In a process that was forked it cannot be used.
#[pyclass(frozen, module = "mimus", name = "AsyncEventSource")]
pub(crate) struct AsyncEventSource(Arc<Source>);

impl Wraps for Awaits {
    type Wrapped = AsyncEventSource;

    fn wrap(source: Arc<Source>) -> AsyncEventSource {
        AsyncEventSource(source)
    }
}

methods!(AsyncEventSource, {
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Call> {
        self.0.owner().check()?;
        Awaits::run(py, "anext", Reading(self.0.clone()))
    }

    /// Closes it. The connection is kept where nothing, or little, of its stream is left.
    fn aclose(&self, py: Python<'_>) -> PyResult<Call> {
        Awaits::run(py, "aclose", Closing(self.0.clone()))
    }

    fn __aenter__(slf: Py<Self>) -> Call {
        Call::new("__aenter__", async move { Ok(slf.into_any()) })
    }

    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Call> {
        self.aclose(py)
    }
});
