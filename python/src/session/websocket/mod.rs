//! WebSockets, for threads and for asyncio.

mod connect;
mod handshake;
mod operations;
mod socket;

pub(crate) use connect::open;
pub(crate) use handshake::{Deflate, Handshake};

use std::sync::Arc;

use bytes::Bytes;
use mimus::ws::CloseCode;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
    types::{PyBytes, PyString},
};

use self::{
    operations::{Closing, Receiving, Sending, Want},
    socket::{Outgoing, Socket},
};
use super::{Awaits, Blocks, Face};
use crate::{args::to_json, asyncio::Call, bodies::in_memory, options::seconds};

/// The most bytes of a ping, a pong, and a close with its code (RFC 6455 section 5.5).
const CONTROL_MAX: usize = 125;

/// A face that WebSockets have.
pub(crate) trait Wraps: Face {
    /// # Errors
    /// There is no memory for it.
    fn wrap(py: Python<'_>, socket: Arc<Socket>) -> PyResult<Py<PyAny>>;
}

impl Wraps for Blocks {
    fn wrap(py: Python<'_>, socket: Arc<Socket>) -> PyResult<Py<PyAny>> {
        Py::new(py, WebSocket(socket)).map(Py::into_any)
    }
}

impl Wraps for Awaits {
    fn wrap(py: Python<'_>, socket: Arc<Socket>) -> PyResult<Py<PyAny>> {
        Py::new(py, AsyncWebSocket(socket)).map(Py::into_any)
    }
}

impl Socket {
    fn receive_as<F: Face>(
        self: &Arc<Self>,
        py: Python<'_>,
        what: &'static str,
        want: Want,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<F::Returned> {
        self.owner().check()?;
        let limit = timeout.map(|timeout| seconds(timeout, "timeout")).transpose()?.flatten();
        F::run(py, what, Receiving { socket: Arc::clone(self), want, limit })
    }

    fn send_as<F: Face>(
        self: &Arc<Self>,
        py: Python<'_>,
        what: &'static str,
        message: Outgoing,
    ) -> PyResult<F::Returned> {
        self.owner().check()?;
        F::run(py, what, Sending { socket: Arc::clone(self), message })
    }

    fn close_as<F: Face>(
        self: &Arc<Self>,
        py: Python<'_>,
        code: u16,
        reason: &str,
    ) -> PyResult<F::Returned> {
        self.owner().check()?;
        let code = CloseCode(code);
        if !code.can_be_sent() {
            return Err(PyValueError::new_err(format!("{} is no code to close with", code.0)));
        }
        if reason.len() > CONTROL_MAX - 2 {
            return Err(PyValueError::new_err("the reason has more than 123 bytes"));
        }
        let (socket, reason) = (Arc::clone(self), reason.to_owned());
        F::run(py, "close", Closing { socket, code, reason, waits: true })
    }

    /// At the end of a block: whoever leaves it with an error has no time for a goodbye.
    fn exit_as<F: Face>(
        self: &Arc<Self>,
        py: Python<'_>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<F::Returned> {
        let (socket, reason) = (Arc::clone(self), String::new());
        let (code, waits) = match error {
            None => (CloseCode::NORMAL, true),
            Some(_) => (CloseCode::GOING_AWAY, false),
        };
        F::run(py, "close", Closing { socket, code, reason, waits })
    }
}

/// What `send` means by `message`.
fn outgoing(message: &Bound<'_, PyAny>) -> PyResult<Outgoing> {
    match message.cast::<PyString>() {
        Ok(text) => Ok(Outgoing::Text(text.clone().try_into()?)),
        Err(_) => binary(message),
    }
}

fn binary(data: &Bound<'_, PyAny>) -> PyResult<Outgoing> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Outgoing::Bytes(PyBackedBytes::from(bytes.clone())));
    }
    match in_memory(data)? {
        Some(bytes) if !data.is_instance_of::<PyString>() => Ok(Outgoing::Buffer(bytes)),
        _ => Err(PyTypeError::new_err("a message is a string, or bytes, or a buffer of bytes")),
    }
}

fn json(value: &Bound<'_, PyAny>) -> PyResult<Outgoing> {
    let text = PyString::new(value.py(), &String::from_utf8_lossy(&to_json(value.py(), value)?));
    Ok(Outgoing::Text(text.try_into()?))
}

fn payload(payload: Option<PyBackedBytes>) -> PyResult<Bytes> {
    let bytes = payload.as_deref().map(Bytes::copy_from_slice).unwrap_or_default();
    match bytes.len() <= CONTROL_MAX {
        true => Ok(bytes),
        false => Err(PyValueError::new_err("the payload has more than 125 bytes")),
    }
}

/// The methods that both faces have, and those that one has alone.
macro_rules! methods {
    ($class:ident, $face:ident, $returned:ty, { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            /// Sends a message: text if it is a string, else bytes.
            ///
            /// Args:
            ///     message: A string, or any buffer.
            ///
            /// Raises:
            ///     WebSocketClosed: It is closed, or the connection failed.
            fn send(&self, message: &Bound<'_, PyAny>) -> PyResult<$returned> {
                self.0.send_as::<$face>(message.py(), "send", outgoing(message)?)
            }

            /// Sends a message of text. See `send`.
            fn send_text(&self, py: Python<'_>, text: PyBackedStr) -> PyResult<$returned> {
                self.0.send_as::<$face>(py, "send_text", Outgoing::Text(text))
            }

            /// Sends a message of bytes. See `send`.
            fn send_bytes(&self, data: &Bound<'_, PyAny>) -> PyResult<$returned> {
                self.0.send_as::<$face>(data.py(), "send_bytes", binary(data)?)
            }

            /// Sends a value as JSON, in a message of text. See `send`.
            fn send_json(&self, value: &Bound<'_, PyAny>) -> PyResult<$returned> {
                self.0.send_as::<$face>(value.py(), "send_json", json(value)?)
            }

            /// Receives the next message: a string if it is text, else bytes. Pings are answered meanwhile. One at a time may
            /// receive, while others send. Breaking off the wait loses nothing.
            ///
            /// Args:
            ///     timeout: For how many seconds to wait; None for as long as it takes.
            ///
            /// Raises:
            ///     ReadTimeout: No message came in time; a later one can be received.
            ///     WebSocketClosed: There are no more, however it ended.
            ///     WebSocketProtocolError: The server broke the protocol.
            ///     WebSocketTooLarge: The message is larger than `max_message_size`.
            ///     WebSocketTimeout: The server no longer answers.
            #[pyo3(signature = (timeout=None))]
            fn recv(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<$returned> {
                self.0.receive_as::<$face>(py, "recv", Want::Any, timeout)
            }

            /// Receives a message of text. One of bytes is a TypeError. See `recv`.
            #[pyo3(signature = (timeout=None))]
            fn recv_text(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<$returned> {
                self.0.receive_as::<$face>(py, "recv_text", Want::Text, timeout)
            }

            /// Receives a message as bytes, text as its UTF-8. See `recv`.
            #[pyo3(signature = (timeout=None))]
            fn recv_bytes(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<$returned> {
                self.0.receive_as::<$face>(py, "recv_bytes", Want::Bytes, timeout)
            }

            /// Receives the value of a message of JSON. See `recv`.
            #[pyo3(signature = (timeout=None))]
            fn recv_json(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<$returned> {
                self.0.receive_as::<$face>(py, "recv_json", Want::Json, timeout)
            }

            /// Receives all messages that have come, at least one: it waits where there is none. See `recv`.
            ///
            /// Args:
            ///     limit: The most messages; None for all that are here.
            ///     timeout: For how many seconds to wait; None for as long as it takes.
            ///
            /// Returns:
            ///     A list of strings and bytes.
            #[pyo3(signature = (limit=None, timeout=None))]
            fn recv_batch(
                &self,
                py: Python<'_>,
                limit: Option<usize>,
                timeout: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<$returned> {
                let want = Want::Batch(limit.unwrap_or(usize::MAX));
                self.0.receive_as::<$face>(py, "recv_batch", want, timeout)
            }

            /// Asks the server for a pong with the same payload.
            ///
            /// Args:
            ///     data: The payload, of at most 125 bytes.
            #[pyo3(signature = (data=None))]
            fn ping(&self, py: Python<'_>, data: Option<PyBackedBytes>) -> PyResult<$returned> {
                self.0.send_as::<$face>(py, "ping", Outgoing::Ping(payload(data)?))
            }

            /// Sends a pong that nobody asked for, as a sign of life.
            ///
            /// Args:
            ///     data: The payload, of at most 125 bytes.
            #[pyo3(signature = (data=None))]
            fn pong(&self, py: Python<'_>, data: Option<PyBackedBytes>) -> PyResult<$returned> {
                self.0.send_as::<$face>(py, "pong", Outgoing::Pong(payload(data)?))
            }

            /// Closes it in order: says so, and waits for the server to do the same, at most for `close_timeout`. What it
            /// sends until then is dropped. Where it is closed already this does nothing.
            ///
            /// Args:
            ///     code: Why: 1000 for no special reason, or 3000 to 4999 for one's own.
            ///     reason: Why, in words; at most 123 bytes.
            #[pyo3(signature = (code=1000, reason=""))]
            fn close(&self, py: Python<'_>, code: u16, reason: &str) -> PyResult<$returned> {
                self.0.close_as::<$face>(py, code, reason)
            }

            /// How the server took it up.
            #[getter]
            fn response(&self, py: Python<'_>) -> Py<Handshake> {
                self.0.handshake.clone_ref(py)
            }

            /// The subprotocol that the server chose; None for none.
            #[getter]
            fn subprotocol(&self) -> Option<String> {
                self.0.handshake.get().subprotocol.clone()
            }

            /// The compression that was agreed on; None for none.
            #[getter]
            fn compression(&self) -> Option<Deflate> {
                self.0.handshake.get().compression
            }

            /// The version of HTTP that it was opened by: "HTTP/1.1", "HTTP/2".
            #[getter]
            fn http_version(&self) -> &'static str {
                self.0.handshake.get().http_version()
            }

            /// Why it ended: the server's code, 1005 if it gave none, 1006 if it did not end in order; None before the end.
            #[getter]
            fn close_code(&self) -> Option<u16> {
                self.0.end().map(|end| end.code().0)
            }

            /// Why, in the server's words; None before the end.
            #[getter]
            fn close_reason(&self) -> Option<String> {
                self.0.end().map(|end| end.reason().to_owned())
            }

            /// Whether nothing more can be sent.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            fn __repr__(&self) -> String {
                let state = if self.0.is_closed() { "closed" } else { "open" };
                format!("<{} {state}>", stringify!($class))
            }

            fn __reduce__(&self) -> PyResult<()> {
                Err(PyTypeError::new_err("a WebSocket cannot be pickled"))
            }

            $($own)*
        }
    };
}

/// A WebSocket: messages both ways. Iterating gives what comes, until the server closes it in order.
///
/// One thread may receive while others send. Leaving its block closes it: in order, or if that is by an exception
/// without waiting for the server. In a process that was forked it cannot be used.
#[pyclass(frozen, module = "mimus", name = "WebSocket")]
pub(crate) struct WebSocket(Arc<Socket>);

methods!(WebSocket, Blocks, Py<PyAny>, {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.receive_as::<Blocks>(py, "__next__", Want::Next, None)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.0.exit_as::<Blocks>(py, error).map(drop)
    }
});

/// A WebSocket whose calls are awaited. Iterating gives what comes, until the server closes it in order.
///
/// One task may receive while others send. Leaving its block closes it: in order, or if that is by an exception
/// without waiting for the server. In a process that was forked it cannot be used.
#[pyclass(frozen, module = "mimus", name = "AsyncWebSocket")]
pub(crate) struct AsyncWebSocket(Arc<Socket>);

methods!(AsyncWebSocket, Awaits, Call, {
    /// As `close`, by its other name.
    #[pyo3(signature = (code=1000, reason=""))]
    fn aclose(&self, py: Python<'_>, code: u16, reason: &str) -> PyResult<Call> {
        self.0.close_as::<Awaits>(py, code, reason)
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Call> {
        self.0.receive_as::<Awaits>(py, "anext", Want::Next, None)
    }

    fn __aenter__(slf: Py<Self>) -> Call {
        Call::new("__aenter__", async move { Ok(slf.into_any()) })
    }

    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Call> {
        self.0.exit_as::<Awaits>(py, error)
    }
});
