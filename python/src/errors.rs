//! From the core's errors to Python's exceptions, which `mimus/_errors.py` defines.

use std::{error::Error as StdError, ffi::CString};

use mimus::{Error, Kind, Phase, UnusableUrl, Url, redirect::RedirectError};
use pyo3::{
    PyTypeInfo,
    exceptions::{PyBaseException, PyRuntimeError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::PyDict,
};

/// The class of this name in `mimus._errors`.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("mimus._errors").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// An exception of the class of this name that says `message` and nothing else.
pub(crate) fn plain(py: Python<'_>, name: &str, message: impl Into<String>) -> PyErr {
    class(py, name)
        .and_then(|class| class.call1((message.into(),)))
        .map_or_else(|error| error, PyErr::from_value)
}

/// What Python code says that it caught.
pub(crate) fn raised(error: Bound<'_, PyAny>) -> PyErr {
    match error.is_instance_of::<PyBaseException>() {
        true => PyErr::from_value(error),
        false => PyRuntimeError::new_err("it failed without saying why"),
    }
}

/// The exception for `error`: one that the user's own code raised on the way as itself.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    raise_on(py, error, None)
}

/// The same for an error that is about `url` where it does not say.
pub(crate) fn raise_on(py: Python<'_>, error: &Error, url: Option<&Url>) -> PyErr {
    if let Some(own) = raised_by_user(error) {
        return match complete(py, own, error) {
            Ok(()) => own.clone_ref(py),
            Err(failure) => failure,
        };
    }
    let details = PyDict::new(py);
    build(py, error, url, classify(error).0, &details).unwrap_or_else(|failure| failure)
}

/// The same as an exception of a given class, with `details` of its own.
pub(crate) fn raise_as(
    py: Python<'_>,
    error: &Error,
    class: &str,
    details: &Bound<'_, PyDict>,
) -> PyErr {
    match raised_by_user(error) {
        Some(own) => own.clone_ref(py),
        None => build(py, error, None, class, details).unwrap_or_else(|failure| failure),
    }
}

/// The exception of a hook, an iterator or a reader of the user's among the causes.
fn raised_by_user(error: &Error) -> Option<&PyErr> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<PyErr>() {
            return Some(own);
        }
        cause = error.source();
    }
    None
}

/// Tells an exception of the package's that a transport raised where that was.
fn complete(py: Python<'_>, own: &PyErr, error: &Error) -> PyResult<()> {
    let own = own.value(py);
    let simulated = error.kind() != Kind::Hook && own.is_instance(&class(py, "Error")?)?;
    if !simulated || !own.getattr(intern!(py, "url"))?.is_none() {
        return Ok(());
    }
    own.setattr(intern!(py, "phase"), error.phase().map(phase_name))?;
    own.setattr(intern!(py, "url"), error.url().map(Url::as_str))?;
    own.setattr(intern!(py, "was_sent"), error.was_sent())?;
    own.setattr(intern!(py, "is_retryable"), error.is_retryable())
}

/// What an exception of the package's means when a transport raises it; None for all others.
pub(crate) fn meaning(py: Python<'_>, raised: &PyErr) -> Option<(Kind, Phase)> {
    // Those that are cases of others come before them.
    const MEANINGS: [(&str, Kind, Phase); 14] = [
        ("ConnectTimeout", Kind::Timeout, Phase::Connect),
        ("PoolTimeout", Kind::Timeout, Phase::Pool),
        ("WriteTimeout", Kind::Timeout, Phase::Send),
        ("RequestTimeout", Kind::Timeout, Phase::Head),
        ("ResolveError", Kind::Resolve, Phase::Resolve),
        ("CertificateError", Kind::Certificate, Phase::Tls),
        ("TlsError", Kind::Tls, Phase::Tls),
        ("ProxyError", Kind::Proxy, Phase::Proxy),
        ("ConnectError", Kind::Connect, Phase::Connect),
        ("StreamReset", Kind::Reset, Phase::Head),
        ("ConnectionLost", Kind::Closed, Phase::Head),
        ("NotOffered", Kind::NotOffered, Phase::Tls),
        ("ProtocolError", Kind::Protocol, Phase::Head),
        ("LimitExceeded", Kind::Limit, Phase::Head),
    ];
    let value = raised.value(py);
    let means = |name: &str| class(py, name).and_then(|class| value.is_instance(&class));
    let (_, kind, phase) = MEANINGS.iter().find(|(name, ..)| means(name).unwrap_or(false))?;
    Some((*kind, *phase))
}

fn build(
    py: Python<'_>,
    error: &Error,
    url: Option<&Url>,
    class_name: &str,
    details: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let class = class(py, class_name)?;
    details.set_item(intern!(py, "kind"), classify(error).1)?;
    details.set_item(intern!(py, "phase"), error.phase().map(phase_name))?;
    details.set_item(intern!(py, "url"), error.url().or(url).map(Url::as_str))?;
    details.set_item(intern!(py, "was_sent"), error.was_sent())?;
    details.set_item(intern!(py, "is_retryable"), error.is_retryable())?;
    class.call((format!("{error:#}"),), Some(details)).map(PyErr::from_value)
}

/// The class, and the word for the kind.
fn classify(error: &Error) -> (&'static str, &'static str) {
    match error.kind() {
        Kind::Request if find_cause::<UnusableUrl>(error).is_some() => ("InvalidURL", "request"),
        Kind::Request => ("RequestError", "request"),
        Kind::Timeout => (timeout_class(error.phase()), "timeout"),
        Kind::Resolve => ("ResolveError", "resolve"),
        Kind::Connect => ("ConnectError", "connect"),
        Kind::Certificate => ("CertificateError", "certificate"),
        Kind::Tls => ("TlsError", "tls"),
        Kind::Proxy => ("ProxyError", "proxy"),
        Kind::Closed => ("ConnectionLost", "closed"),
        Kind::Io => ("ConnectionLost", "io"),
        Kind::Reset => ("StreamReset", "reset"),
        Kind::Protocol => ("ProtocolError", "protocol"),
        Kind::NotOffered => ("NotOffered", "not-offered"),
        Kind::Limit => ("LimitExceeded", "limit"),
        Kind::Decode => ("DecodeError", "decode"),
        Kind::Redirect if too_many(error) => ("TooManyRedirects", "redirect"),
        Kind::Redirect => ("RedirectError", "redirect"),
        Kind::Upload => ("BodyError", "upload"),
        Kind::Status(_) => ("StatusError", "status"),
        Kind::Hook => ("RequestError", "hook"),
        _ => ("Error", "error"),
    }
}

/// Warns of what is dropped: where no exception can be raised, and one may be on its way.
#[cold]
pub(crate) fn warn_dropped<Category: PyTypeInfo>(what: &str) {
    let Ok(what) = CString::new(what) else { return };
    Python::try_attach(|py| {
        let raised = PyErr::take(py);
        let category = py.get_type::<Category>();
        if let Err(error) = PyErr::warn(py, category.as_any(), &what, 1) {
            error.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

fn timeout_class(phase: Option<Phase>) -> &'static str {
    match phase {
        Some(Phase::Pool) => "PoolTimeout",
        Some(Phase::Resolve | Phase::Connect | Phase::Proxy | Phase::Tls) => "ConnectTimeout",
        Some(Phase::Send) => "WriteTimeout",
        Some(Phase::Head | Phase::Body) => "ReadTimeout",
        _ => "RequestTimeout",
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pool => "pool",
        Phase::Resolve => "resolve",
        Phase::Connect => "connect",
        Phase::Proxy => "proxy",
        Phase::Tls => "tls",
        Phase::Send => "send",
        Phase::Head => "head",
        Phase::Body => "body",
        _ => "unknown",
    }
}

fn find_cause<E: StdError + 'static>(error: &Error) -> Option<&E> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn too_many(error: &Error) -> bool {
    matches!(find_cause::<RedirectError>(error), Some(RedirectError::TooMany { .. }))
}
