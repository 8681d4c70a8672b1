//! The cookies that a client keeps, and their way to and from `http.cookiejar`.

use std::{sync::Arc, time::SystemTime};

use mimus::{
    Url,
    cookie::{CookieStore, Jar},
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyString};

/// The cookies of a client. The client adds what servers set, and sends what belongs to a URL.
#[pyclass(frozen, module = "mimus", name = "Cookies")]
#[derive(Debug)]
pub(crate) struct Cookies(Arc<Jar>);

impl Cookies {
    pub(crate) fn new(jar: Arc<Jar>) -> Self {
        Cookies(jar)
    }
}

/// Adds the cookies of a `http.cookiejar.CookieJar`. Both know the file format of Netscape's.
pub(crate) fn import(py: Python<'_>, jar: &Jar, from: &Bound<'_, PyAny>) -> PyResult<usize> {
    let text = py.import("mimus._cookies")?.call_method1("to_text", (from,))?;
    load(jar, text.cast_into::<PyString>()?.to_str()?)
}

fn load(jar: &Jar, text: &str) -> PyResult<usize> {
    jar.add_netscape(text, SystemTime::now())
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn url(text: &str) -> PyResult<Url> {
    Url::parse(text).map_err(|error| PyValueError::new_err(format!("{text:?}: {error}")))
}

#[pymethods]
impl Cookies {
    /// How many there are.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Forgets all.
    fn clear(&self) {
        self.0.clear();
    }

    /// What a request to `url` would send.
    ///
    /// Args:
    ///     url: An absolute URL.
    ///
    /// Returns:
    ///     The value of its `Cookie` field; None for no field.
    fn header(&self, url: &str) -> PyResult<Option<String>> {
        let value = self.0.cookies(&self::url(url)?);
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }

    /// Keeps a cookie as if the server of `url` had set it.
    ///
    /// Args:
    ///     url: An absolute URL.
    ///     cookie: The value of a `Set-Cookie` field.
    ///
    /// Raises:
    ///     ValueError: Such a server could not have set it.
    fn set(&self, url: &str, cookie: &str) -> PyResult<()> {
        self.0
            .set_at(&self::url(url)?, cookie.as_bytes(), SystemTime::now())
            .map_err(|why| PyValueError::new_err(format!("the cookie is not kept: {why}")))
    }

    /// Adds the cookies of a `http.cookiejar.CookieJar`.
    ///
    /// Args:
    ///     jar: The jar.
    ///
    /// Returns:
    ///     How many were added: not those that have expired.
    fn load(&self, py: Python<'_>, jar: &Bound<'_, PyAny>) -> PyResult<usize> {
        import(py, &self.0, jar)
    }

    /// Copies the cookies into a `http.cookiejar.CookieJar`.
    ///
    /// Args:
    ///     jar: Where to; a new one unless given.
    ///
    /// Returns:
    ///     The jar.
    #[pyo3(signature = (jar=None))]
    fn dump<'py>(
        &self,
        py: Python<'py>,
        jar: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = self.0.to_netscape(true);
        py.import("mimus._cookies")?.call_method1("from_text", (text, jar))
    }

    /// The cookies in the format of `cookies.txt`. It holds secrets.
    fn to_netscape(&self) -> String {
        self.0.to_netscape(true)
    }

    /// Adds the cookies of a `cookies.txt`.
    ///
    /// Args:
    ///     text: Its contents.
    ///
    /// Returns:
    ///     How many were added.
    ///
    /// Raises:
    ///     ValueError: It is no such file.
    fn load_netscape(&self, text: &str) -> PyResult<usize> {
        load(&self.0, text)
    }

    fn __repr__(&self) -> String {
        format!("<Cookies: {}>", self.0.len())
    }
}
