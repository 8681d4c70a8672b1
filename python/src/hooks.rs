//! Code of the user's that sees requests before they go: hooks, and callables that authenticate.

use std::{mem, sync::OnceLock};

use mimus::{BoxError, Fields, Hook, Outgoing, Request, Url};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};

use crate::headers::Headers;

/// A request that is about to be sent. What is changed in its headers is sent.
#[pyclass(frozen, module = "mimus", name = "OutgoingRequest")]
pub(crate) struct OutgoingRequest {
    /// The method.
    #[pyo3(get)]
    method: String,
    /// The URL.
    #[pyo3(get)]
    url: String,
    /// The fields as they will be sent, to change.
    #[pyo3(get)]
    headers: Py<Headers>,
    /// 0 for the first exchange of a call; redirects and retries count on.
    #[pyo3(get)]
    attempt: u32,
}

impl OutgoingRequest {
    /// A request as its caller made it.
    pub(crate) fn of(py: Python<'_>, request: &Request) -> PyResult<Self> {
        Ok(OutgoingRequest {
            method: request.method().to_string(),
            url: request.url().to_string(),
            headers: Py::new(py, Headers::new(request.fields().clone()))?,
            attempt: 0,
        })
    }

    /// The fields as they are now.
    pub(crate) fn fields(&self) -> Fields {
        self.headers.get().fields()
    }
}

#[pymethods]
impl OutgoingRequest {
    fn __repr__(&self) -> String {
        format!("<OutgoingRequest {} {}>", self.method, self.url)
    }
}

/// Callables of Python's that are asked before each exchange.
#[derive(Debug)]
pub(crate) struct Before {
    callables: Vec<Py<PyAny>>,
    /// For callables that give credentials away: those of the first URL's origin are for that origin.
    only_for: Option<OnceLock<Url>>,
}

impl Before {
    /// Sees every exchange.
    pub(crate) fn each(callables: Vec<Py<PyAny>>) -> Self {
        Before { callables, only_for: None }
    }

    /// Authenticates one call, and nothing to which a redirect leads away from its origin.
    pub(crate) fn authenticating(callable: Py<PyAny>) -> Self {
        Before { callables: vec![callable], only_for: Some(OnceLock::new()) }
    }

    fn ask(&self, py: Python<'_>, request: &mut Outgoing<'_>) -> PyResult<()> {
        let headers = Py::new(py, Headers::new(request.fields.clone()))?;
        let outgoing = OutgoingRequest {
            method: request.method.to_string(),
            url: request.url.to_string(),
            headers: headers.clone_ref(py),
            attempt: request.attempt,
        };
        let outgoing = Bound::new(py, outgoing)?;
        for callable in &self.callables {
            refuse_awaitable(&callable.bind(py).call1((&outgoing,))?)?;
        }
        *request.fields = headers.get().fields();
        Ok(())
    }
}

impl Hook for Before {
    fn before_send(&self, request: &mut Outgoing<'_>) -> Result<(), BoxError> {
        if let Some(first) = &self.only_for {
            let first = first.get_or_init(|| request.url.clone());
            if !mimus::redirect::same_origin(first, request.url) {
                return Ok(());
            }
        }
        Python::attach(|py| self.ask(py, request)).map_err(BoxError::from)
    }
}

/// What `hooks=` means: "request" and "response", each a callable or several.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) request: Vec<Py<PyAny>>,
    /// Coroutine functions, awaited with each request before its call begins.
    pub(crate) awaited: Vec<Py<PyAny>>,
    /// Called with each response before the caller gets it.
    pub(crate) response: Vec<Py<PyAny>>,
}

impl Hooks {
    pub(crate) fn from_python(hooks: &Bound<'_, PyAny>) -> PyResult<Hooks> {
        let hooks = hooks.cast::<PyDict>().map_err(|_| {
            PyTypeError::new_err("hooks must be a dict of \"request\" and \"response\"")
        })?;
        let mut all = Hooks::default();
        // A copy, which no other thread changes.
        for (name, value) in hooks.copy()? {
            match name.extract::<String>()?.as_str() {
                "request" => all.request = callables(&value)?,
                "response" => all.response = callables(&value)?,
                other => {
                    let what = format!("hooks are \"request\" and \"response\", not {other:?}");
                    return Err(PyValueError::new_err(what));
                }
            }
        }
        all.sort(hooks.py())?;
        Ok(all)
    }

    /// Sets those apart that have to be awaited.
    fn sort(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.request.is_empty() {
            return Ok(());
        }
        let is_awaited = py.import("inspect")?.getattr("iscoroutinefunction")?;
        for hook in mem::take(&mut self.request) {
            match is_awaited.call1((&hook,))?.is_truthy()? {
                true => self.awaited.push(hook),
                false => self.request.push(hook),
            }
        }
        Ok(())
    }

    /// Shows `response` to those that want to see it.
    ///
    /// # Errors
    /// What one of them raised.
    pub(crate) fn show(&self, response: &Bound<'_, PyAny>) -> PyResult<()> {
        for hook in &self.response {
            refuse_awaitable(&hook.bind(response.py()).call1((response,))?)?;
        }
        Ok(())
    }
}

/// Nobody would await what a coroutine function gave here.
fn refuse_awaitable(given: &Bound<'_, PyAny>) -> PyResult<()> {
    if given.is_none() || !given.hasattr(intern!(given.py(), "__await__"))? {
        return Ok(());
    }
    if let Some(close) = given.getattr_opt(intern!(given.py(), "close"))? {
        close.call0()?;
    }
    Err(PyTypeError::new_err(
        "what gives an awaitable can only be a hook of AsyncClient: neither one of Client, nor `auth`",
    ))
}

fn callables(value: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyAny>>> {
    let all: Vec<Bound<'_, PyAny>> = match value {
        several if several.is_instance_of::<PyList>() || several.is_instance_of::<PyTuple>() => {
            several.extract()?
        }
        one => vec![one.clone()],
    };
    match all.iter().all(|hook| hook.is_callable()) {
        true => Ok(all.into_iter().map(Bound::unbind).collect()),
        false => Err(PyTypeError::new_err("a hook must be callable")),
    }
}
