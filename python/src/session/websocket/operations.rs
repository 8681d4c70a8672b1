//! What is done with a WebSocket.

use std::{future::poll_fn, marker::PhantomData, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use mimus::{
    Error, Kind,
    ws::{Builder, CloseCode, ConnectError, Message},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyList, PyString},
};

use super::{
    Wraps,
    handshake::Handshake,
    socket::{End, Outgoing, Received, Socket, closed, raise},
};
use crate::{
    errors,
    response::BaseResponse,
    session::{Given, Operation},
};

/// Opens one.
pub(super) struct Connect<F> {
    builder: Builder,
    face: PhantomData<fn() -> F>,
}

impl<F> Connect<F> {
    pub(super) fn new(builder: Builder) -> Self {
        Connect { builder, face: PhantomData }
    }
}

impl<F: Wraps> Operation for Connect<F> {
    type Output = Result<mimus::ws::WebSocket, ConnectError>;

    async fn run(self) -> Self::Output {
        self.builder.connect().await
    }

    fn give(py: Python<'_>, output: Self::Output) -> PyResult<Given> {
        let socket = output.map_err(|failed| refused::<F>(py, failed))?;
        let handshake = Handshake::create(py, socket.handshake())?;
        let socket = Socket::new(socket, handshake, F::runtime());
        F::wrap(py, Arc::new(socket)).map(Some)
    }
}

/// The exception for why there is none. Where the server answered something else, it has the response.
fn refused<F: Wraps>(py: Python<'_>, failed: ConnectError) -> PyErr {
    if failed.response().is_none() {
        return errors::raise(py, failed.error());
    }
    let raised = errors::raise_as(py, failed.error(), "WebSocketRefused", &PyDict::new(py));
    let Some(response) = failed.into_http() else { return raised };
    let kept = F::response(py, BaseResponse::open(response))
        .and_then(|response| raised.value(py).setattr("response", response));
    match kept {
        Ok(()) => raised,
        Err(failure) => failure,
    }
}

/// What is wanted of the next message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Want {
    Any,
    Text,
    Bytes,
    Json,
    /// Any, and the end is no error if it is orderly.
    Next,
    /// As many as are here, but at most so many, and at least one.
    Batch(usize),
}

/// Receives.
#[derive(Clone)]
pub(super) struct Receiving {
    pub(super) socket: Arc<Socket>,
    pub(super) want: Want,
    pub(super) limit: Option<Duration>,
}

/// What receiving came to.
pub(super) struct Got {
    socket: Arc<Socket>,
    want: Want,
    first: Received,
}

impl Operation for Receiving {
    type Output = Got;

    fn now(&mut self, py: Python<'_>) -> Option<PyResult<Given>> {
        Some(match self.socket.here()? {
            Ok(message) => convert(py, &self.socket, self.want, message).map(Some),
            Err(end) => finish(py, &self.socket, self.want, &end),
        })
    }

    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn run(self) -> Got {
        let first = self.socket.receive(self.limit).await;
        Got { first, socket: self.socket, want: self.want }
    }

    fn give(py: Python<'_>, Got { socket, want, first }: Got) -> PyResult<Given> {
        match first {
            Received::Kept => Ok(Some(py.None())),
            Received::Over(end) => finish(py, &socket, want, &end),
            Received::Late => Err(errors::plain(py, "ReadTimeout", "no message came in time")),
            Received::Busy => {
                Err(PyRuntimeError::new_err("somebody else receives from this WebSocket already"))
            }
        }
    }
}

/// What Python gets at the end.
fn finish(py: Python<'_>, socket: &Socket, want: Want, end: &End) -> PyResult<Given> {
    match want {
        Want::Next if end.is_orderly() || socket.is_closing() => Ok(None),
        _ => Err(end.raise(py)),
    }
}

/// What Python gets of a message.
fn convert(py: Python<'_>, socket: &Socket, want: Want, message: Message) -> PyResult<Py<PyAny>> {
    match want {
        Want::Any | Want::Next => Ok(object(py, &message).unbind()),
        Want::Text => match &message {
            Message::Text(text) => Ok(PyString::new(py, text).into_any().unbind()),
            _ => Err(PyTypeError::new_err("the message is one of bytes")),
        },
        Want::Bytes => match &message {
            Message::Text(text) => Ok(PyBytes::new(py, text.as_bytes()).into_any().unbind()),
            other => Ok(object(py, other).unbind()),
        },
        Want::Json => {
            static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let value = LOADS.import(py, "json", "loads")?.call1((object(py, &message),))?;
            Ok(value.unbind())
        }
        Want::Batch(most) => {
            let batch = PyList::new(py, [object(py, &message)])?;
            // An end, and a failure, is told to who asks next.
            while batch.len() < most
                && let Some(Ok(message)) = socket.here()
            {
                batch.append(object(py, &message))?;
            }
            Ok(batch.into_any().unbind())
        }
    }
}

/// A message as what it is. It was found to be text where it says so.
fn object<'py>(py: Python<'py>, message: &Message) -> Bound<'py, PyAny> {
    let empty = Bytes::new();
    let bytes = match message {
        Message::Text(text) => return PyString::new(py, text).into_any(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes,
        Message::Close(_) => &empty,
    };
    PyBytes::new(py, bytes).into_any()
}

/// Sends.
pub(super) struct Sending {
    pub(super) socket: Arc<Socket>,
    pub(super) message: Outgoing,
}

impl Operation for Sending {
    type Output = (Arc<Socket>, Result<(), Option<Error>>);

    async fn run(self) -> Self::Output {
        let sent = self.socket.send(&self.message).await;
        (self.socket, sent)
    }

    fn give(py: Python<'_>, (socket, sent): Self::Output) -> PyResult<Given> {
        match sent {
            Ok(()) => Ok(Some(py.None())),
            Err(Some(error)) if error.kind() != Kind::Closed => {
                Err(raise(py, &error, socket.end().as_deref()))
            }
            Err(_) => Err(match socket.end() {
                Some(end) => end.raise(py),
                None => closed(py, None),
            }),
        }
    }
}

/// Closes it in order, or without waiting for anything.
pub(super) struct Closing {
    pub(super) socket: Arc<Socket>,
    pub(super) code: CloseCode,
    pub(super) reason: String,
    pub(super) waits: bool,
}

impl Operation for Closing {
    type Output = ();

    async fn run(self) {
        if !self.socket.owner().is_here() {
            return;
        }
        match self.waits {
            true => self.socket.close(self.code, &self.reason).await,
            false => {
                poll_fn(|cx| {
                    self.socket.abandon(cx, self.code);
                    Poll::Ready(())
                })
                .await;
            }
        }
    }

    fn give(py: Python<'_>, (): ()) -> PyResult<Given> {
        Ok(Some(py.None()))
    }
}
