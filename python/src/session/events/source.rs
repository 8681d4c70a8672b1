//! Events of a source, however many connections that takes.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use mimus::{
    Error, rt,
    sse::{self, Refusal},
};
use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyBytes, PyDict},
};
use tokio::sync;

use super::event::Event;
use crate::{
    errors,
    headers::Headers,
    session::{Given, Operation, Owner, lock},
};

/// A source as both faces share it. It is locked for the time of a poll alone, so that it can be closed while somebody
/// waits for it.
pub(crate) struct Source {
    inner: Mutex<Inner>,
    /// The turns of those who read.
    reading: sync::Mutex<()>,
    /// Who reads: a source that is taken away wakes nobody.
    reader: Mutex<Option<Waker>>,
    owner: Owner,
}

struct Inner {
    source: Option<sse::EventSource>,
    /// What was waited for and is not handed out yet.
    kept: VecDeque<(sse::Event, Option<Duration>)>,
    /// What is known of a source that is over.
    last: (String, u64),
}

impl Source {
    pub(super) fn new(source: sse::EventSource) -> Self {
        Source {
            inner: Mutex::new(Inner {
                source: Some(source),
                kept: VecDeque::new(),
                last: (String::new(), 0),
            }),
            reading: sync::Mutex::default(),
            reader: Mutex::default(),
            owner: Owner::here(),
        }
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    /// Lets go of the connection, which may be of use to others.
    pub(super) fn close(&self) {
        let source = lock(&self.inner).take();
        let reader = lock(&self.reader).take();
        if self.owner.is_here() {
            drop(source);
        } else {
            // That is its parent's.
            mem::forget(source);
        }
        reader.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.inner).source.is_none()
    }

    /// The last event ID, and how many streams were opened.
    pub(super) fn progress(&self) -> (String, u64) {
        let inner = lock(&self.inner);
        match &inner.source {
            Some(source) => progress(source),
            None => inner.last.clone(),
        }
    }

    /// Waits for the next event, and keeps it.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let inner = &mut *lock(&self.inner);
        let Some(source) = &mut inner.source else { return Poll::Ready(Next::Over) };
        // Not asleep in it, for it is locked.
        let next = match rt::Blocking::beside(|| source.poll_event(cx)) {
            Poll::Pending => {
                let left = lock(&self.reader).replace(cx.waker().clone());
                drop(left);
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(event))) => {
                inner.kept.push_back((event, source.named_retry()));
                return Poll::Ready(Next::Kept);
            }
            Poll::Ready(Some(Err(error))) => Next::Failed(error),
            Poll::Ready(None) => Next::Over,
        };
        drop(inner.take());
        Poll::Ready(next)
    }
}

impl Inner {
    /// Takes the source away.
    fn take(&mut self) -> Option<sse::EventSource> {
        let source = self.source.take()?;
        self.last = progress(&source);
        Some(source)
    }
}

fn progress(source: &sse::EventSource) -> (String, u64) {
    (source.last_event_id().into_owned(), source.connections())
}

impl Drop for Source {
    fn drop(&mut self) {
        self.close();
    }
}

/// What reading comes to.
pub(super) enum Next {
    /// An event, which is kept for who asks for it.
    Kept,
    Failed(Error),
    Over,
    /// Somebody else reads.
    Busy,
}

/// Reads the next event.
#[derive(Clone)]
pub(super) struct Reading(pub(super) Arc<Source>);

impl Operation for Reading {
    type Output = Next;

    fn now(&mut self, py: Python<'_>) -> Option<PyResult<Given>> {
        let (event, retry) = lock(&self.0.inner).kept.pop_front()?;
        let event = Event::new(py, &event.event, &event.data, &event.id, retry);
        Some(Py::new(py, event).map(|event| Some(event.into_any())))
    }

    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn run(self) -> Next {
        let Ok(_turn) = self.0.reading.try_lock() else { return Next::Busy };
        poll_fn(|cx| self.0.poll_next(cx)).await
    }

    fn give(py: Python<'_>, next: Next) -> PyResult<Given> {
        match next {
            Next::Kept => Ok(Some(py.None())),
            Next::Failed(error) => Err(raise(py, &error)),
            Next::Over => Ok(None),
            Next::Busy => {
                Err(PyRuntimeError::new_err("somebody else reads from this source already"))
            }
        }
    }
}

/// Lets go of a source.
pub(super) struct Closing(pub(super) Arc<Source>);

impl Operation for Closing {
    type Output = ();

    async fn run(self) {
        self.0.close();
    }

    fn give(py: Python<'_>, (): ()) -> PyResult<Given> {
        Ok(Some(py.None()))
    }
}

/// The exception for `error`: with what the server said instead of a stream, if it did.
fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let Some(refusal) = Refusal::of(error) else { return errors::raise(py, error) };
    let details = PyDict::new(py);
    let filled = details
        .set_item("status", refusal.status().as_u16())
        .and_then(|()| details.set_item("headers", Headers::new(refusal.fields().clone())))
        .and_then(|()| details.set_item("content", PyBytes::new(py, refusal.body())));
    match filled {
        Ok(()) => errors::raise_as(py, error, "NotEventStream", &details),
        Err(failure) => failure,
    }
}
