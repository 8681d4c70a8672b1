//! The client whose calls block the thread that makes them.

use mimus::{Method, rt};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    types::{PyDict, PyString, PyType},
};

use crate::{
    args::{self, CallArgs, ClientArgs, Defaults},
    bodies,
    cookies::Cookies,
    errors,
    exchange::exchange,
    forks::OwnClient,
    response::{BaseResponse, Response},
    session::{Blocks, EventSource, open_events, open_websocket},
    wait::wait,
};

/// A client whose calls block: a pool of connections, and the settings that calls start from. Threads may share it.
///
/// Args:
///     base_url: What relative URLs are relative to.
///     params: Parameters for the query of each URL.
///     headers: Fields for each request: a mapping, or a list of pairs. None takes a default one away.
///     cookies: True (the default) keeps cookies, False does not; a mapping keeps them and sends these as well.
///     auth: (user, password), Basic, Digest, Bearer, or a callable.
///     timeout: Seconds for the whole call, a Timeout, or None.
///     follow_redirects: Whether redirects are followed, or how many. Default: up to ten.
///     proxy: A URL, a mapping of schemes to URLs, or False for none. Default: the environment's.
///     trust_env: Whether the environment's proxies count, and the netrc file where no `auth` is given. Default: True.
///     verify: True, False, a path to certificates in PEM, or such certificates as bytes.
///     cert: A path to certificate and key in PEM, (certificate, key), (certificate, key, password), or
///         (archive, None, password) for PKCS#12.
///     profile: The browser to look like on the wire.
///     http_version: "1.1", "2", or "h2c". Default: what the server chooses.
///     retries: A number or a Retry. Default: only those that are always safe.
///     limits: Limits of the pool.
///     hooks: A mapping of "request" and "response" to lists of callables.
///     local_address: The address to connect from, or the name of an interface.
///     unix_socket: A path to connect to in place of the URL's host.
///     resolve: A mapping of "host" or "host:port" to addresses.
///     decode: Whether bodies are decoded. Default: True.
///     default_headers: False sends no `Accept`, `User-Agent` or `Accept-Encoding` but the caller's.
///     transport: A callable that answers each request in the place of a server: see `mimus.testing`.
///
/// Raises:
///     RequestError: A setting cannot be used.
#[pyclass(frozen, subclass, module = "mimus", name = "Client")]
#[derive(Debug)]
pub(crate) struct Client {
    client: OwnClient,
    defaults: Defaults,
    closed: std::sync::atomic::AtomicBool,
}

impl Client {
    /// # Errors
    /// It is closed.
    fn check(&self) -> PyResult<()> {
        match self.closed.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(PyRuntimeError::new_err("the client is closed")),
            false => Ok(()),
        }
    }

    fn call(
        &self,
        py: Python<'_>,
        name: &str,
        method: Method,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.check()?;
        let arguments = CallArgs::parse(name, options)?;
        let url = args::url(url)?;
        let client = self.client.get();
        let builder = client.request(method, url.to_str()?);
        let call = arguments.apply(py, builder, &self.defaults, bodies::refuse_async)?;
        match wait(py, exchange(&client, call))? {
            Ok(answered) => {
                let response = Response::create(py, BaseResponse::of(py, answered))?;
                self.defaults.hooks.show(response.bind(py).as_any())?;
                Ok(response)
            }
            Err((error, url)) => Err(errors::raise_on(py, &error, url.as_ref())),
        }
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (**options), text_signature = "(*, base_url=None, params=None, headers=None, cookies=True, \
        auth=None, timeout=None, follow_redirects=True, proxy=None, trust_env=True, verify=True, cert=None, \
        profile=None, http_version=None, retries=None, limits=None, hooks=None, local_address=None, \
        unix_socket=None, resolve=None, decode=True, default_headers=True, transport=None)")]
    fn new(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (builder, defaults) = ClientArgs::parse("Client", options)?.apply(py)?;
        if !defaults.hooks.awaited.is_empty() {
            return Err(PyTypeError::new_err(
                "a coroutine function is a hook for AsyncClient alone",
            ));
        }
        let client =
            builder.runtime(rt::Blocking).build().map_err(|error| errors::raise(py, &error))?;
        Ok(Client { client: OwnClient::new(py, client)?, defaults, closed: false.into() })
    }

    /// Makes a call of any method.
    ///
    /// Args:
    ///     method: The method; those of the registry in any case.
    ///     url: The URL.
    ///     params: Parameters for the query: a mapping, or a list of pairs.
    ///     headers: Fields: a mapping, or a list of pairs, whose order, case and duplicates are kept.
    ///     cookies: Cookies for this call, beside those that the client keeps.
    ///     content: The body: a string, any buffer, a file or path, or an iterable of strings and buffers.
    ///     data: A form as a mapping or a list of pairs; anything else as `content`.
    ///     files: Files of a multipart form: names to contents, or to (file name, contents[, type[, headers]]).
    ///     json: A value to send as JSON.
    ///     auth: As of the client, for this call; None for none.
    ///     timeout: As of the client, for this call.
    ///     follow_redirects: As of the client, for this call.
    ///     proxy: As of the client, for this call.
    ///     verify: As of the client, for this call.
    ///     cert: As of the client, for this call.
    ///     http_version: As of the client, for this call.
    ///     unix_socket: As of the client, for this call.
    ///     resolve: As of the client, for this call.
    ///     local_address: As of the client, for this call.
    ///     retries: As of the client, for this call.
    ///     kind: What the request is to a browser: "navigate", "fetch", "image"...
    ///     stream: Return at the response's head, and leave the body to be read.
    ///     decode: As of the client, for this call.
    ///
    /// Returns:
    ///     The response, whatever its status.
    ///
    /// Raises:
    ///     Error: There was no response.
    #[pyo3(signature = (method, url, **options))]
    fn request(
        &self,
        py: Python<'_>,
        method: &Bound<'_, PyString>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "request", args::method(method.to_str()?)?, url, options)
    }

    /// As `request` with `stream=True`: for `with client.stream("GET", url) as response`.
    #[pyo3(signature = (method, url, **options))]
    fn stream(
        &self,
        py: Python<'_>,
        method: &Bound<'_, PyString>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
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
    ) -> PyResult<Py<Response>> {
        self.call(py, "get", Method::GET, url, options)
    }

    /// HEADs a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn head(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "head", Method::HEAD, url, options)
    }

    /// Asks for the options of a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn options(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "options", Method::OPTIONS, url, options)
    }

    /// POSTs to a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn post(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "post", Method::POST, url, options)
    }

    /// PUTs to a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn put(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "put", Method::PUT, url, options)
    }

    /// PATCHes a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn patch(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "patch", Method::PATCH, url, options)
    }

    /// DELETEs a URL. See `request`.
    #[pyo3(signature = (url, **options))]
    fn delete(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Response>> {
        self.call(py, "delete", Method::DELETE, url, options)
    }

    /// Opens a WebSocket. Takes the arguments of `request` but those for a body, and:
    ///
    /// Args:
    ///     subprotocols: Names to offer, the best first.
    ///     origin: The page that asks, as browsers say it.
    ///     compression: True or a Deflate to offer permessage-deflate, False not to. Default: what the browser of the
    ///         client's profile does, else False.
    ///     max_message_size: The most bytes of a message that comes, decompressed. Default: 16 MiB.
    ///     ping_interval: After how many seconds of silence the server is asked whether it lives, while something is
    ///         awaited. Default: never.
    ///     ping_timeout: How many seconds it may take to answer that. Default: 20.
    ///     idle_timeout: After how many seconds of silence the connection is given up. Default: never.
    ///     close_timeout: How many seconds closing may take. Default: 5.
    ///
    /// Returns:
    ///     The WebSocket, to be used in a `with` block.
    ///
    /// Raises:
    ///     WebSocketRefused: The server answered something else; its `response` is that.
    ///     Error: There was no answer.
    #[pyo3(signature = (url, **options))]
    fn websocket(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.check()?;
        open_websocket::<Blocks>(py, &self.client.get(), &self.defaults, url, options)
    }

    /// The events of a source. Takes the arguments of `request` but `stream`, and:
    ///
    /// Args:
    ///     method: The method. Default: POST if there is a body, else GET.
    ///     last_event_id: Begins behind the event with this ID, seen earlier.
    ///     reconnect: Whether to connect again when a stream ends or is lost, or a Reconnect. Default: for GET alone.
    ///     max_event_size: The most bytes of an event. Default: 16 MiB, 8 MiB a line.
    ///
    /// Returns:
    ///     The source, to be iterated over; it connects when that begins. In a `with` block it is closed at the end.
    #[pyo3(signature = (url, **options))]
    fn sse(
        &self,
        py: Python<'_>,
        url: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<EventSource> {
        self.check()?;
        open_events::<Blocks>(py, &self.client.get(), &self.defaults, url, options)
    }

    /// Closes the connections that nobody uses. Calls after this fail.
    fn close(&self) {
        self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
        self.client.get().close_idle();
    }

    /// The cookies that the client keeps; None if it keeps none.
    #[getter]
    fn cookies(&self) -> Option<Cookies> {
        self.defaults.jar.clone().map(Cookies::new)
    }

    /// Whether `close` was called.
    #[getter]
    fn is_closed(&self) -> bool {
        self.closed.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        match slf.get().is_closed() {
            false => Ok(slf),
            true => Err(PyRuntimeError::new_err("the client is closed")),
        }
    }

    fn __repr__(&self) -> &'static str {
        match self.is_closed() {
            false => "<mimus.Client>",
            true => "<mimus.Client [closed]>",
        }
    }

    fn __exit__(
        &self,
        _kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) {
        self.close();
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a client cannot be pickled: its connections belong to this process. Make one in each",
        ))
    }
}
