//! Request bodies that are async iterables: a task of the loop's iterates, and what it gives is sent.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_core::Stream;
use mimus::{Body, BoxError};
use pyo3::{exceptions::PyTypeError, intern, prelude::*, sync::PyOnceLock, types::PyDict};

use super::{
    call::Call,
    hub::{self, Hub, Order, Tell, lock},
};
use crate::{bodies, errors};

/// The body that `iterable` gives, piece by piece. Nobody iterates before it is sent.
pub(crate) fn body(iterable: &Bound<'_, PyAny>) -> PyResult<Body> {
    static COPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = iterable.py();
    let context = COPY.import(py, "contextvars", "copy_context")?.call0()?.unbind();
    let iterable = iterable.clone().unbind();
    Ok(Body::stream(Pieces::Fresh { iterable: Some((iterable, context)) }))
}

/// What an async iterable gives.
enum Pieces {
    Fresh {
        /// And the context of who gave it. Taken once.
        iterable: Option<(Py<PyAny>, Py<PyAny>)>,
    },
    Flowing(Arc<Pipe>),
}

/// Between the task that iterates and the connection that sends.
struct Pipe {
    hub: Arc<Hub>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    piece: Option<Bytes>,
    end: End,
    reader: Option<Waker>,
    writer: Option<Waker>,
    task: Option<Py<PyAny>>,
}

#[derive(Default)]
enum End {
    #[default]
    Open,
    /// The iterable gives no more, or has raised this.
    Ended(Option<PyErr>),
    /// Nobody reads any more.
    Unwanted,
}

impl Pipe {
    fn poll_read(&self, cx: &mut Context<'_>) -> Poll<Option<PyResult<Bytes>>> {
        let (piece, writer) = {
            let inner = &mut *lock(&self.inner);
            match (inner.piece.take(), &mut inner.end) {
                (Some(piece), _) => (Some(Ok(piece)), inner.writer.take()),
                (None, End::Ended(error)) => (error.take().map(Err), None),
                (None, End::Open | End::Unwanted) => {
                    inner.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        writer.into_iter().for_each(Waker::wake);
        Poll::Ready(piece)
    }

    /// Hands `piece` over, once the one before was taken; whether it was still wanted.
    fn poll_write(&self, cx: &mut Context<'_>, piece: &mut Option<Bytes>) -> Poll<bool> {
        let reader = {
            let inner = &mut *lock(&self.inner);
            if !matches!(inner.end, End::Open) {
                return Poll::Ready(false);
            }
            if inner.piece.is_some() {
                inner.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            inner.piece = piece.take();
            inner.reader.take()
        };
        reader.into_iter().for_each(Waker::wake);
        Poll::Ready(true)
    }

    /// The iterable gives no more.
    fn end(&self, error: Option<PyErr>) {
        let (reader, unheard) = {
            let inner = &mut *lock(&self.inner);
            match inner.end {
                End::Open => {
                    inner.end = End::Ended(error);
                    (inner.reader.take(), None)
                }
                _ => (None, error),
            }
        };
        drop(unheard);
        reader.into_iter().for_each(Waker::wake);
    }

    /// The task that iterates, begun in the context of who gave the iterable.
    fn begin(self: Arc<Self>, iterable: Py<PyAny>, context: Py<PyAny>) -> Tell {
        Box::new(move |event_loop| {
            static PUMP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let py = event_loop.py();
            if !matches!(lock(&self.inner).end, End::Open) {
                return Ok(());
            }
            let pump = PUMP.import(py, "mimus._upload", "pump")?;
            let pumping = pump.call1((iterable, Sink(self.clone())))?;
            let options = PyDict::new(py);
            options.set_item(intern!(py, "context"), context)?;
            let task =
                event_loop.call_method(intern!(py, "create_task"), (pumping,), Some(&options))?;
            let unwanted = {
                let inner = &mut *lock(&self.inner);
                let unwanted = matches!(inner.end, End::Unwanted);
                // Given up meanwhile, by another thread or by what an eager task did: nobody else cancels it.
                if !unwanted {
                    inner.task = Some(task.clone().unbind());
                }
                unwanted
            };
            match unwanted {
                true => task.call_method0("cancel").map(drop),
                false => Ok(()),
            }
        })
    }

    /// Nobody reads any more: the iterable is told as a task is, by cancelling.
    fn abandon(&self) {
        let (task, left) = {
            let inner = &mut *lock(&self.inner);
            let was = std::mem::replace(&mut inner.end, End::Unwanted);
            let task = inner.task.take().filter(|_| matches!(was, End::Open));
            (task, (was, inner.piece.take(), inner.reader.take(), inner.writer.take()))
        };
        drop(left);
        if let Some(task) = task {
            let cancel: Tell =
                Box::new(move |event_loop| task.call_method0(event_loop.py(), "cancel").map(drop));
            self.hub.order(Order::Tell(cancel));
        }
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let pieces = self.get_mut();
        if let Pieces::Fresh { iterable } = pieces {
            let Some(hub) = hub::of_call() else {
                return Poll::Ready(Some(Err("no asyncio event loop sends this body".into())));
            };
            let Some((iterable, context)) = iterable.take() else { return Poll::Ready(None) };
            let pipe = Arc::new(Pipe { hub: hub.clone(), inner: Mutex::default() });
            hub.order(Order::Tell(pipe.clone().begin(iterable, context)));
            *pieces = Pieces::Flowing(pipe);
        }
        match pieces {
            Pieces::Flowing(pipe) => {
                pipe.poll_read(cx).map(|piece| piece.map(|piece| piece.map_err(BoxError::from)))
            }
            Pieces::Fresh { .. } => Poll::Ready(None),
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Pieces::Flowing(pipe) = self {
            pipe.abandon();
        }
    }
}

/// Where the task that iterates puts what it gets.
#[pyclass(frozen, module = "mimus._mimus")]
struct Sink(Arc<Pipe>);

#[pymethods]
impl Sink {
    /// Sends a piece, once there is room; whether it was wanted, to be awaited.
    fn send(&self, piece: &Bound<'_, PyAny>) -> PyResult<Call> {
        let Some(bytes) = bodies::in_memory(piece)? else {
            let kind = piece.get_type().qualname()?;
            let what = format!("the body must give strings or bytes, not {kind}");
            return Err(PyTypeError::new_err(what));
        };
        let (pipe, mut bytes) = (self.0.clone(), Some(bytes));
        Ok(Call::new("send", async move {
            let wanted = poll_fn(|cx| pipe.poll_write(cx, &mut bytes)).await;
            Python::attach(|py| Ok(wanted.into_pyobject(py)?.to_owned().into_any().unbind()))
        }))
    }

    /// There is no more.
    fn end(&self) {
        self.0.end(None);
    }

    /// There is no more, because this was raised.
    fn fail(&self, error: Bound<'_, PyAny>) {
        self.0.end(Some(errors::raised(error)));
    }
}
