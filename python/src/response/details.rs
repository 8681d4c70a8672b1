//! The smaller things that a response tells.

use mimus::tls;
use pyo3::{prelude::*, types::PyBytes};

use crate::headers::Headers;

/// A redirect that was followed.
#[pyclass(frozen, module = "mimus", name = "Hop")]
#[derive(Debug)]
pub(crate) struct Hop(mimus::Hop);

impl Hop {
    pub(super) fn new(hop: mimus::Hop) -> Self {
        Hop(hop)
    }
}

#[pymethods]
impl Hop {
    /// The URL that answered with the redirect.
    #[getter]
    fn url(&self) -> &str {
        self.0.url.as_str()
    }

    /// With which status.
    #[getter]
    fn status(&self) -> u16 {
        self.0.status.as_u16()
    }

    /// The status, by its other name.
    #[getter]
    fn status_code(&self) -> u16 {
        self.0.status.as_u16()
    }

    /// The fields of that answer.
    #[getter]
    fn headers(&self) -> Headers {
        Headers::new(self.0.fields.clone())
    }

    fn __repr__(&self) -> String {
        format!("<Hop [{}] {}>", self.0.status.as_u16(), self.0.url)
    }
}

/// How long the phases of a call took, in seconds. Those of making a connection are None where one was used again.
#[pyclass(frozen, get_all, module = "mimus", name = "Timings")]
#[derive(Debug)]
pub(crate) struct Timings {
    /// Name resolution.
    dns: Option<f64>,
    /// The transport connection.
    connect: Option<f64>,
    /// The talk with a proxy.
    proxy: Option<f64>,
    /// The TLS handshake.
    tls: Option<f64>,
    /// From the start of the call to the response head.
    first_byte: f64,
    /// From the start of the call to the end of the body; None until that was read.
    total: Option<f64>,
}

impl Timings {
    pub(super) fn new(timings: mimus::Timings) -> Self {
        let seconds = |phase: Option<std::time::Duration>| phase.map(|took| took.as_secs_f64());
        Timings {
            dns: seconds(timings.dns),
            connect: seconds(timings.connect),
            proxy: seconds(timings.proxy),
            tls: seconds(timings.tls),
            first_byte: timings.first_byte.as_secs_f64(),
            total: seconds(timings.total),
        }
    }
}

#[pymethods]
impl Timings {
    fn __repr__(&self) -> String {
        let say = |took: Option<f64>| took.map_or_else(|| "None".into(), |n| format!("{n:.6}"));
        format!(
            "Timings(dns={}, connect={}, proxy={}, tls={}, first_byte={:.6}, total={})",
            say(self.dns),
            say(self.connect),
            say(self.proxy),
            say(self.tls),
            self.first_byte,
            say(self.total)
        )
    }
}

/// What a TLS handshake agreed on.
#[pyclass(frozen, module = "mimus", name = "TlsInfo")]
#[derive(Debug)]
pub(crate) struct TlsInfo(tls::TlsInfo);

impl TlsInfo {
    pub(crate) fn new(info: tls::TlsInfo) -> Self {
        TlsInfo(info)
    }
}

#[pymethods]
impl TlsInfo {
    /// "TLSv1.3", "TLSv1.2"...
    #[getter]
    fn version(&self) -> &str {
        self.0.version
    }

    /// The cipher suite's IANA name.
    #[getter]
    fn cipher(&self) -> &str {
        &self.0.cipher
    }

    /// The key agreement group: "X25519"...
    #[getter]
    fn group(&self) -> Option<&str> {
        self.0.group
    }

    /// The protocol that ALPN chose: "h2", "http/1.1".
    #[getter]
    fn alpn(&self) -> Option<String> {
        self.0.alpn.as_ref().map(|alpn| String::from_utf8_lossy(alpn).into_owned())
    }

    /// Whether a session was resumed.
    #[getter]
    fn resumed(&self) -> bool {
        self.0.resumed
    }

    /// Whether the name travelled encrypted (ECH).
    #[getter]
    fn ech_accepted(&self) -> bool {
        self.0.ech_accepted
    }

    /// The server's own certificate in DER.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.certificates.first().map(|der| PyBytes::new(py, der))
    }

    /// The server's chain, its own certificate first, each in DER.
    #[getter]
    fn certificates<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.certificates.iter().map(|der| PyBytes::new(py, der)).collect()
    }

    fn __repr__(&self) -> String {
        let alpn = self.alpn().unwrap_or_default();
        format!("<TlsInfo {} {} {alpn:?}>", self.0.version, self.0.cipher)
    }
}
