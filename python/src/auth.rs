//! Who is asking: credentials as Python gives them.

use mimus::auth::Credentials;
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyTuple};

/// User name and password by the Basic scheme (RFC 7617), sent with the first request.
///
/// Args:
///     user: The user name.
///     password: The password.
#[pyclass(frozen, module = "mimus", name = "Basic")]
#[derive(Debug)]
pub(crate) struct Basic(Credentials);

#[pymethods]
impl Basic {
    #[new]
    fn new(user: &str, password: &str) -> Self {
        Basic(Credentials::basic(user, password))
    }

    fn __repr__(&self) -> &'static str {
        "Basic(...)"
    }
}

/// User name and password by the Digest scheme (RFC 7616), sent when the server asks.
///
/// Args:
///     user: The user name.
///     password: The password.
#[pyclass(frozen, module = "mimus", name = "Digest")]
#[derive(Debug)]
pub(crate) struct Digest(Credentials);

#[pymethods]
impl Digest {
    #[new]
    fn new(user: &str, password: &str) -> Self {
        Digest(Credentials::digest(user, password))
    }

    fn __repr__(&self) -> &'static str {
        "Digest(...)"
    }
}

/// A bearer token (RFC 6750), sent with the first request.
///
/// Args:
///     token: The token.
#[pyclass(frozen, module = "mimus", name = "Bearer")]
#[derive(Debug)]
pub(crate) struct Bearer(Credentials);

#[pymethods]
impl Bearer {
    #[new]
    fn new(token: &str) -> Self {
        Bearer(Credentials::bearer(token))
    }

    fn __repr__(&self) -> &'static str {
        "Bearer(...)"
    }
}

/// What `auth=` means.
pub(crate) enum Auth {
    /// Nobody.
    None,
    Credentials(Credentials),
    /// Asked about each request before it is sent.
    Callable(Py<PyAny>),
}

impl Auth {
    pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Auth> {
        if value.is_none() {
            return Ok(Auth::None);
        }
        if let Ok(basic) = value.cast::<Basic>() {
            return Ok(Auth::Credentials(basic.get().0.clone()));
        }
        if let Ok(digest) = value.cast::<Digest>() {
            return Ok(Auth::Credentials(digest.get().0.clone()));
        }
        if let Ok(bearer) = value.cast::<Bearer>() {
            return Ok(Auth::Credentials(bearer.get().0.clone()));
        }
        if let Ok(pair) = value.cast::<PyTuple>()
            && let Ok((user, password)) = pair.extract::<(String, String)>()
        {
            return Ok(Auth::Credentials(Credentials::basic(user, password)));
        }
        if value.is_callable() {
            return Ok(Auth::Callable(value.clone().unbind()));
        }
        Err(PyTypeError::new_err(
            "auth must be (user, password), Basic, Digest, Bearer, a callable or None",
        ))
    }
}
