//! Coroutines that answer requests in the place of servers: each is a task of the loop's.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use pyo3::{exceptions::PyTypeError, prelude::*, sync::PyOnceLock};

use super::hub::{self, Hub, Order, Tell, lock};
use crate::errors;

/// Awaits what a transport gave. Dropping it cancels the task.
///
/// # Errors
/// The call at hand is not awaited, so that there is no loop.
pub(crate) fn answer(
    awaitable: Py<PyAny>,
) -> PyResult<impl Future<Output = PyResult<Py<PyAny>>> + Send + 'static> {
    let Some(hub) = hub::of_call() else {
        // It would warn that nobody awaited it.
        Python::attach(|py| awaitable.call_method0(py, "close").map(drop).unwrap_or_default());
        return Err(PyTypeError::new_err("a coroutine function answers AsyncClient alone"));
    };
    let slot = Arc::new(Slot { hub, inner: Mutex::default() });
    slot.hub.order(Order::Tell(slot.clone().begin(awaitable)));
    Ok(Answer(slot))
}

struct Slot {
    hub: Arc<Hub>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    state: State,
    task: Option<Py<PyAny>>,
}

#[derive(Default)]
enum State {
    #[default]
    Begun,
    Awaited(Waker),
    Done(PyResult<Py<PyAny>>),
    /// Nobody waits any more, or has waited with success.
    Over,
}

impl Slot {
    fn begin(self: Arc<Self>, awaitable: Py<PyAny>) -> Tell {
        Box::new(move |event_loop| {
            if let Err(error) = self.clone().start(event_loop, awaitable) {
                self.end(Err(error));
            }
            Ok(())
        })
    }

    fn start(self: Arc<Self>, event_loop: &Bound<'_, PyAny>, awaitable: Py<PyAny>) -> PyResult<()> {
        static ANSWER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = event_loop.py();
        let answering = ANSWER.import(py, "mimus._transport", "answer")?;
        let answering = answering.call1((awaitable, Sink(self.clone())))?;
        let task = event_loop.call_method1("create_task", (answering,))?;
        let unwanted = {
            let inner = &mut *lock(&self.inner);
            let unwanted = matches!(inner.state, State::Over);
            inner.task = (!unwanted).then(|| task.clone().unbind());
            unwanted
        };
        if unwanted {
            task.call_method0("cancel")?;
        }
        Ok(())
    }

    fn end(&self, output: PyResult<Py<PyAny>>) {
        let was = {
            let inner = &mut *lock(&self.inner);
            match inner.state {
                State::Over => State::Done(output),
                _ => mem::replace(&mut inner.state, State::Done(output)),
            }
        };
        if let State::Awaited(waker) = was {
            waker.wake();
        }
    }
}

/// What the task ends with.
struct Answer(Arc<Slot>);

impl Future for Answer {
    type Output = PyResult<Py<PyAny>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let was = {
            let inner = &mut *lock(&self.0.inner);
            let now = match inner.state {
                State::Done(_) => State::Over,
                _ => State::Awaited(cx.waker().clone()),
            };
            mem::replace(&mut inner.state, now)
        };
        match was {
            State::Done(output) => Poll::Ready(output),
            _ => Poll::Pending,
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let (was, task) = {
            let inner = &mut *lock(&self.0.inner);
            (mem::replace(&mut inner.state, State::Over), inner.task.take())
        };
        let Some(task) = task.filter(|_| !matches!(was, State::Over | State::Done(_))) else {
            return;
        };
        let cancel: Tell =
            Box::new(move |event_loop| task.call_method0(event_loop.py(), "cancel").map(drop));
        self.0.hub.order(Order::Tell(cancel));
    }
}

/// Where the task puts what it comes to.
#[pyclass(frozen, module = "mimus._mimus")]
struct Sink(Arc<Slot>);

#[pymethods]
impl Sink {
    /// This is the answer.
    fn done(&self, answer: Py<PyAny>) {
        self.0.end(Ok(answer));
    }

    /// There is none, because this was raised.
    fn fail(&self, error: Bound<'_, PyAny>) {
        self.0.end(Err(errors::raised(error)));
    }
}
