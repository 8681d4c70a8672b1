//! The client whose calls are awaited.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use mimus::Method;
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    types::{PyDict, PyString, PyTuple, PyType},
};

use super::{call::Call, hub, response::AsyncResponse, runtime::Asyncio, upload};
use crate::{
    args::{self, CallArgs, ClientArgs, Defaults},
    cookies::Cookies,
    errors,
    exchange::exchange,
    forks::OwnClient,
    hooks::OutgoingRequest,
    response::BaseResponse,
    session::{AsyncEventSource, Awaits, open_events, open_websocket},
};

/// A client whose calls are awaited, on whatever asyncio event loop runs: it keeps connections for each. It may be made
/// before there is a loop.
///
/// Args:
///     **options: As of `Client`.
///
/// Raises:
///     RequestError: A setting cannot be used.
#[pyclass(frozen, subclass, module = "mimus", name = "AsyncClient")]
#[derive(Debug)]
pub(crate) struct AsyncClient {
    shared: Arc<Shared>,
    defaults: Defaults,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    client: OwnClient,
    /// How many event loops had been closed when it was last asked.
    loops_closed: AtomicU64,
}

impl Shared {
    /// Idle connections of loops that are closed would stay until they have been idle for too long.
    fn leave_closed_loops(&self) {
        let now = hub::closed_so_far();
        if self.loops_closed.swap(now, Ordering::Relaxed) != now {
            self.client.get().close_idle();
        }
    }
}

impl AsyncClient {
    /// # Errors
    /// It is closed.
    fn check(&self) -> PyResult<()> {
        match self.closed.load(Ordering::Relaxed) {
            true => Err(PyRuntimeError::new_err("the client is closed")),
            false => Ok(()),
        }
    }

    fn call(
        &self,
        py: Python<'_>,
        name: &'static str,
        method: Method,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.check()?;
        let arguments = CallArgs::parse(name, options)?;
        let url = args::url(url)?;
        let client = self.shared.client.get();
        let builder = client.request(method, url.to_str()?);
        let mut call = arguments.apply(py, builder, &self.defaults, upload::body)?;
        let hooks = &self.defaults.hooks;
        let asked = match hooks.awaited.is_empty() {
            true => None,
            false => Some(Py::new(py, OutgoingRequest::of(py, &call.request)?)?),
        };
        let before = asked.as_ref().map(|request| tell(py, &hooks.awaited, request.bind(py)));
        let (client, shared) = (client.into_owned(), self.shared.clone());
        let made = Call::new(name, async move {
            if let Some(asked) = asked {
                *call.request.fields_mut() = asked.get().fields();
            }
            shared.leave_closed_loops();
            let done = exchange(&client, call).await;
            Python::attach(|py| match done {
                Ok(answered) => AsyncResponse::create(py, BaseResponse::of(py, answered)),
                Err((error, url)) => Err(errors::raise_on(py, &error, url.as_ref())),
            })
        });
        Ok(made.between(before.transpose()?, self.after(py)?))
    }

    /// What shows a response to the hooks, if there are any.
    fn after(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let hooks = &self.defaults.hooks.response;
        if hooks.is_empty() {
            return Ok(None);
        }
        let tell = py.import("mimus._hooks")?.getattr("tell")?;
        let partial = py.import("functools")?.getattr("partial")?;
        Ok(Some(partial.call1((tell, PyTuple::new(py, hooks)?))?.unbind()))
    }

    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Relaxed);
        self.shared.client.get().close_idle();
        hub::sweep(py);
    }
}

/// The coroutine that calls `hooks` with `what`, and awaits those that want it.
fn tell(
    py: Python<'_>,
    hooks: &[Py<PyAny>],
    what: &Bound<'_, OutgoingRequest>,
) -> PyResult<Py<PyAny>> {
    let tell = py.import("mimus._hooks")?.getattr("tell")?;
    tell.call1((PyTuple::new(py, hooks)?, what)).map(Bound::unbind)
}

#[pymethods]
impl AsyncClient {
    #[new]
    #[pyo3(signature = (**options), text_signature = "(*, base_url=None, params=None, headers=None, cookies=True, \
        auth=None, timeout=None, follow_redirects=True, proxy=None, trust_env=True, verify=True, cert=None, \
        profile=None, http_version=None, retries=None, limits=None, hooks=None, local_address=None, \
        unix_socket=None, resolve=None, decode=True, default_headers=True, transport=None)")]
    fn new(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (builder, defaults) = ClientArgs::parse("AsyncClient", options)?.apply(py)?;
        let client = builder.runtime(Asyncio).build().map_err(|error| errors::raise(py, &error))?;
        let loops_closed = hub::closed_so_far().into();
        let shared = Arc::new(Shared { client: OwnClient::new(py, client)?, loops_closed });
        Ok(AsyncClient { shared, defaults, closed: AtomicBool::new(false) })
    }

    /// Makes a call of any method. Arguments and errors are those of `Client.request`; `content` may also be an
    /// async iterable.
    ///
    /// Returns:
    ///     What is awaited for the response, once, or entered with `async with`, which closes the response at the end.
    #[pyo3(signature = (method, url, **options))]
    fn request(
        &self,
        py: Python<'_>,
        method: &Bound<'_, PyString>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "request", args::method(method.to_str()?)?, url, options)
    }

    /// As `request` with `stream=True`: for `async with client.stream("GET", url) as response`.
    #[pyo3(signature = (method, url, **options))]
    fn stream(
        &self,
        py: Python<'_>,
        method: &Bound<'_, PyString>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let options = args::streamed(py, options)?;
        self.call(py, "stream", args::method(method.to_str()?)?, url, Some(&options))
    }

    /// GETs a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn get(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "get", Method::GET, url, options)
    }

    /// HEADs a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn head(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "head", Method::HEAD, url, options)
    }

    /// Asks for the options of a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn options(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "options", Method::OPTIONS, url, options)
    }

    /// POSTs to a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn post(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "post", Method::POST, url, options)
    }

    /// PUTs to a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn put(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "put", Method::PUT, url, options)
    }

    /// PATCHes a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn patch(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "patch", Method::PATCH, url, options)
    }

    /// DELETEs a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn delete(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.call(py, "delete", Method::DELETE, url, options)
    }

    /// Opens a WebSocket. Arguments and errors are those of `Client.websocket`.
    ///
    /// Returns:
    ///     What is awaited for the WebSocket, once, or entered with `async with`, which closes it at the end.
    #[pyo3(signature = (url, **options))]
    fn websocket(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.check()?;
        self.shared.leave_closed_loops();
        open_websocket::<Awaits>(py, &self.shared.client.get(), &self.defaults, url, options)
    }

    /// The events of a source. Arguments are those of `Client.sse`.
    ///
    /// Returns:
    ///     The source, to be iterated over; it connects when that begins. In an `async with` block it is closed at the end.
    #[pyo3(signature = (url, **options))]
    fn sse(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<AsyncEventSource> {
        self.check()?;
        self.shared.leave_closed_loops();
        open_events::<Awaits>(py, &self.shared.client.get(), &self.defaults, url, options)
    }

    /// Closes the connections that nobody uses. Calls after this fail.
    fn aclose(slf: Py<Self>) -> Call {
        Call::new("aclose", async move {
            Python::attach(|py| {
                slf.get().close(py);
                Ok(py.None())
            })
        })
    }

    /// The cookies that the client keeps; None if it keeps none.
    #[getter]
    fn cookies(&self) -> Option<Cookies> {
        self.defaults.jar.clone().map(Cookies::new)
    }

    /// Whether `aclose` was called.
    #[getter]
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn __aenter__(slf: Py<Self>) -> PyResult<Call> {
        match slf.get().is_closed() {
            false => Ok(Call::new("__aenter__", async move { Ok(slf.into_any()) })),
            true => Err(PyRuntimeError::new_err("the client is closed")),
        }
    }

    fn __repr__(&self) -> &'static str {
        match self.is_closed() {
            false => "<mimus.AsyncClient>",
            true => "<mimus.AsyncClient [closed]>",
        }
    }

    fn __aexit__(
        slf: Py<Self>,
        _kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> Call {
        Self::aclose(slf)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a client cannot be pickled: its connections belong to this process. Make one in each",
        ))
    }
}
