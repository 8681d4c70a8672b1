//! Python code that answers requests in the place of servers: what `transport=` means.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use mimus::{
    BoxError, Error, Fields, Method, Url, Version,
    responder::{Request, Responder, Response},
    rt::BoxFuture,
};
use pyo3::{
    exceptions::PyTypeError, intern, prelude::*, sync::PyOnceLock, types::PyBytes, types::PyType,
};

use crate::{
    args,
    asyncio::{self, upload_body},
    bodies, errors,
    headers::Headers,
};

/// A callable that gets requests and gives responses, or what is awaited for them.
#[derive(Debug)]
pub(crate) struct Transport {
    answer: Py<PyAny>,
    /// Says which requests it leaves to the server, if it has such a method.
    passes: Option<Py<PyAny>>,
}

impl Transport {
    /// # Errors
    /// `value` cannot be called.
    pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !value.is_callable() || value.is_instance_of::<PyType>() {
            let kind = value.get_type().qualname()?;
            let what = format!("a transport is called with each request, which a {kind} is not");
            return Err(PyTypeError::new_err(what));
        }
        let passes = value.getattr_opt(intern!(value.py(), "passes"))?;
        Ok(Transport { answer: value.clone().unbind(), passes: passes.map(Bound::unbind) })
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        let passes = self.passes.as_ref().map(|passes| passes.clone_ref(py));
        Transport { answer: self.answer.clone_ref(py), passes }
    }
}

impl Responder for Transport {
    fn respond(&self, mut request: Request) -> BoxFuture<'static, Result<Response, BoxError>> {
        let answer = Python::attach(|py| self.answer.clone_ref(py));
        Box::pin(async move {
            let content = request.body_mut().collect().await?;
            let asked = Python::attach(|py| ask(py, &answer, &request, &content));
            let given = match asked.map_err(failure)? {
                Given::Now(given) => given,
                Given::Awaited(awaitable) => {
                    asyncio::answer(awaitable).map_err(failure)?.await.map_err(failure)?
                }
            };
            Python::attach(|py| response(given.bind(py))).map_err(failure)
        })
    }

    fn answers(&self, method: &Method, url: &Url) -> bool {
        let Some(passes) = &self.passes else { return true };
        Python::attach(|py| {
            let passed = passes.bind(py).call1((method.as_str(), url.as_str()));
            // A server is asked only where that is certain.
            !passed.and_then(|passed| passed.is_truthy()).unwrap_or(false)
        })
    }
}

enum Given {
    Now(Py<PyAny>),
    Awaited(Py<PyAny>),
}

/// Shows `request`, whose body is `content`, to the callable.
fn ask(py: Python<'_>, answer: &Py<PyAny>, request: &Request, content: &Bytes) -> PyResult<Given> {
    static REQUEST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let headers = Py::new(py, Headers::new(request.fields().clone()))?;
    let version = if request.version() == Version::HTTP_2 { "HTTP/2" } else { "HTTP/1.1" };
    let content = PyBytes::new(py, content);
    let shown = REQUEST.import(py, "mimus._transport", "Request")?.call1((
        request.method().as_str(),
        request.url().as_str(),
        headers,
        content,
        version,
    ))?;
    let given = answer.bind(py).call1((shown,))?;
    Ok(match given.hasattr(intern!(py, "__await__"))? {
        true => Given::Awaited(given.unbind()),
        false => Given::Now(given.unbind()),
    })
}

/// What the callable answered.
fn response(given: &Bound<'_, PyAny>) -> PyResult<Response> {
    static RESPONSE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = given.py();
    if !given.is_instance(RESPONSE.import(py, "mimus._transport", "Response")?)? {
        let kind = given.get_type().qualname()?;
        let what = format!("a transport answers with a mimus.testing.Response, not with {kind}");
        return Err(PyTypeError::new_err(what));
    }
    let (status, version): (u16, Option<String>) = (
        given.getattr(intern!(py, "status"))?.extract()?,
        given.getattr(intern!(py, "http_version"))?.extract()?,
    );
    let mut response =
        Response::new(status).fields(fields(&given.getattr(intern!(py, "headers"))?)?);
    let content = given.getattr(intern!(py, "content"))?;
    let mut body = bodies::from_python(&content, upload_body)?;
    let trailers = given.getattr(intern!(py, "trailers"))?;
    if !trailers.is_none() {
        let map = fields(&trailers)?.to_header_map();
        body = body.with_trailers(map.map_err(|e| PyTypeError::new_err(e.to_string()))?);
    }
    if let Some(version) = version {
        let version = if version == "HTTP/2" { Version::HTTP_2 } else { Version::HTTP_11 };
        response = response.version(version);
    }
    Ok(response.body(body))
}

fn fields(headers: &Bound<'_, PyAny>) -> PyResult<Fields> {
    if let Ok(headers) = headers.cast::<Headers>() {
        return Ok(headers.get().fields());
    }
    let mut all = Fields::new();
    args::fill_fields(&mut all, headers)?;
    Ok(all)
}

/// What was raised, as the failure that it stands for if it is one of the package's own.
fn failure(raised: PyErr) -> BoxError {
    match Python::attach(|py| errors::meaning(py, &raised)) {
        Some((kind, phase)) => Error::simulated(kind, phase).caused_by(raised).into(),
        None => raised.into(),
    }
}

/// Who answers in the place of all servers.
static INTERCEPTOR: Mutex<Option<Transport>> = Mutex::new(None);
/// Whether there is one.
static INTERCEPTS: AtomicBool = AtomicBool::new(false);

/// Has `transport` answer all calls from now on, of clients that have no transport of their own.
///
/// Args:
///     transport: As of a client; None for nobody.
///
/// Returns:
///     What did so until now.
#[pyfunction]
#[pyo3(signature = (transport, /))]
pub(crate) fn intercept(transport: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    let new = transport.map(Transport::from_python).transpose()?;
    let old = {
        let mut interceptor = INTERCEPTOR.lock().unwrap_or_else(PoisonError::into_inner);
        INTERCEPTS.store(new.is_some(), Ordering::Release);
        std::mem::replace(&mut *interceptor, new)
    };
    Ok(old.map(|old| old.answer))
}

/// Who answers in the place of all servers, if anybody does.
pub(crate) fn interceptor(py: Python<'_>) -> Option<Transport> {
    if !INTERCEPTS.load(Ordering::Acquire) {
        return None;
    }
    let interceptor = INTERCEPTOR.lock().unwrap_or_else(PoisonError::into_inner);
    interceptor.as_ref().map(|transport| transport.clone_ref(py))
}
