//! What both ends agreed on, and how the server said so.

use mimus::{
    ConnectionInfo, Version,
    ws::{self, DeflateAgreed, DeflateDirection, DeflateOffer, DeflateTuning},
};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{headers::Headers, response::TlsInfo};

/// Compression of messages (permessage-deflate, RFC 7692): how it is offered, and how it was agreed on.
///
/// Args:
///     level: How hard to compress what is sent, 0 to 9. Default: 1, which is made for messages.
///     threshold: Shorter messages go out as they are, in bytes. Default: 128.
///     server_no_context_takeover: Whether the server compresses each message afresh. Default: False.
///     client_no_context_takeover: Whether we do. Default: False.
///     server_max_window_bits: The server's window has 2 to the power of this bytes, 8 to 15. Default: 15.
///     client_max_window_bits: The same of ours. Default: 15.
///
/// Raises:
///     ValueError: A level or a window is none.
#[pyclass(frozen, eq, hash, module = "mimus", name = "Deflate")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Deflate {
    /// How hard what is sent is compressed.
    #[pyo3(get)]
    level: u32,
    /// Shorter messages go out as they are, in bytes.
    #[pyo3(get)]
    threshold: usize,
    /// Whether the server compresses each message afresh.
    #[pyo3(get)]
    server_no_context_takeover: bool,
    /// Whether we compress each message afresh.
    #[pyo3(get)]
    client_no_context_takeover: bool,
    /// The logarithm of the server's window.
    #[pyo3(get)]
    server_max_window_bits: u8,
    /// The logarithm of our window.
    #[pyo3(get)]
    client_max_window_bits: u8,
}

#[pymethods]
impl Deflate {
    #[new]
    #[pyo3(signature = (*, level=1, threshold=128, server_no_context_takeover=false,
                        client_no_context_takeover=false, server_max_window_bits=15, client_max_window_bits=15))]
    fn new(
        level: u32,
        threshold: usize,
        server_no_context_takeover: bool,
        client_no_context_takeover: bool,
        server_max_window_bits: u8,
        client_max_window_bits: u8,
    ) -> PyResult<Self> {
        if level > 9 {
            return Err(PyValueError::new_err(format!("level must be 0 to 9, not {level}")));
        }
        for bits in [server_max_window_bits, client_max_window_bits] {
            if !(8..=15).contains(&bits) {
                return Err(PyValueError::new_err(format!(
                    "a window has 8 to 15 bits, not {bits}"
                )));
            }
        }
        Ok(Deflate {
            level,
            threshold,
            server_no_context_takeover,
            client_no_context_takeover,
            server_max_window_bits,
            client_max_window_bits,
        })
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl From<Deflate> for DeflateOffer {
    fn from(deflate: Deflate) -> Self {
        DeflateOffer {
            server: DeflateDirection {
                no_context_takeover: deflate.server_no_context_takeover,
                window_bits: deflate.server_max_window_bits,
            },
            client: DeflateDirection {
                no_context_takeover: deflate.client_no_context_takeover,
                window_bits: deflate.client_max_window_bits,
            },
            tuning: DeflateTuning { level: deflate.level, threshold: deflate.threshold },
        }
    }
}

impl From<&DeflateAgreed> for Deflate {
    fn from(agreed: &DeflateAgreed) -> Self {
        Deflate {
            level: agreed.tuning.level,
            threshold: agreed.tuning.threshold,
            server_no_context_takeover: agreed.server.no_context_takeover,
            client_no_context_takeover: agreed.client.no_context_takeover,
            server_max_window_bits: agreed.server.window_bits,
            client_max_window_bits: agreed.client.window_bits,
        }
    }
}

/// How the server took up a WebSocket.
#[pyclass(frozen, module = "mimus", name = "Handshake")]
#[derive(Debug)]
pub(crate) struct Handshake {
    status: u16,
    version: Version,
    headers: Py<Headers>,
    pub(super) subprotocol: Option<String>,
    pub(super) compression: Option<Deflate>,
    connection: ConnectionInfo,
}

impl Handshake {
    /// # Errors
    /// There is no memory for it.
    pub(super) fn create(py: Python<'_>, handshake: &ws::Handshake) -> PyResult<Py<Self>> {
        let headers = Py::new(py, Headers::new(handshake.fields().clone()))?;
        let made = Handshake {
            status: handshake.status().as_u16(),
            version: handshake.version(),
            headers,
            subprotocol: handshake.subprotocol().map(str::to_owned),
            compression: handshake.deflate().map(Deflate::from),
            connection: handshake.connection().clone(),
        };
        Py::new(py, made)
    }
}

#[pymethods]
impl Handshake {
    /// The status: 101, or 200 over HTTP/2.
    #[getter]
    fn status(&self) -> u16 {
        self.status
    }

    /// The fields of the server's answer.
    #[getter]
    fn headers(&self, py: Python<'_>) -> Py<Headers> {
        self.headers.clone_ref(py)
    }

    /// The version of HTTP: "HTTP/1.1", "HTTP/2".
    #[getter]
    pub(super) fn http_version(&self) -> &'static str {
        match self.version {
            Version::HTTP_2 => "HTTP/2",
            _ => "HTTP/1.1",
        }
    }

    /// What TLS agreed on; None without TLS.
    #[getter]
    fn tls(&self) -> Option<TlsInfo> {
        self.connection.tls.clone().map(TlsInfo::new)
    }

    /// Address and port of the server, or of the proxy; None over a Unix socket.
    #[getter]
    fn remote_addr(&self) -> Option<(String, u16)> {
        self.connection.peer.map(|addr| (addr.ip().to_string(), addr.port()))
    }

    /// Our own address and port; None over a Unix socket.
    #[getter]
    fn local_addr(&self) -> Option<(String, u16)> {
        self.connection.local.map(|addr| (addr.ip().to_string(), addr.port()))
    }

    fn __repr__(&self) -> String {
        format!("<Handshake [{} {}]>", self.http_version(), self.status)
    }
}
