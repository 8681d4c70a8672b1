//! What lives longer than a request and its response: WebSockets and event streams, for threads and for asyncio.
//!
//! What can be done is an [`Operation`], written once. A [`Face`] says how Python gets what comes of it: [`Blocks`]
//! drives it on the calling thread, [`Awaits`] makes a [`Call`] of it.

mod events;
mod websocket;

pub(crate) use events::{
    AsyncEventSource, Event, EventParser, EventSource, Reconnect, open as open_events,
};
pub(crate) use websocket::{AsyncWebSocket, Deflate, Handshake, WebSocket, open as open_websocket};

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use mimus::rt;
use mimus_net::Runtime;
use pyo3::{
    exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyTypeError},
    prelude::*,
    types::PyDict,
};

use crate::{
    args::Defaults,
    asyncio::{AsyncResponse, Asyncio, Call, Eager, Work},
    bodies::{self, AsyncBody},
    forks,
    response::{BaseResponse, Response},
    wait::wait,
};

/// Something that may have to be waited for.
pub(crate) trait Operation: Send + Sized + 'static {
    type Output: Send;

    /// What comes of it without waiting, if that is here.
    fn now(&mut self, _py: Python<'_>) -> Option<PyResult<Given>> {
        None
    }

    /// What is asked `now` again when it has been waited for: for what must not be lost with a wait that is broken off,
    /// and is put where `now` finds it.
    fn again(&self) -> Option<Self> {
        None
    }

    /// Waits.
    fn run(self) -> impl Future<Output = Self::Output> + Send;

    /// What Python gets of what came, unless that is asked for again.
    ///
    /// # Errors
    /// What Python gets instead.
    fn give(py: Python<'_>, output: Self::Output) -> PyResult<Given>;
}

/// What Python gets of an operation; `None` where that is the end of an iteration.
pub(crate) type Given = Option<Py<PyAny>>;

/// How Python gets what comes of an operation.
pub(crate) trait Face: Send + Sync + 'static {
    /// What it gets at first.
    type Returned;

    /// Whose clock and sockets are used.
    fn runtime() -> &'static dyn Runtime;

    /// Begins `operation`, which is named `what` in warnings.
    ///
    /// # Errors
    /// What came of it, where it is waited for.
    fn run<O: Operation>(
        py: Python<'_>,
        what: &'static str,
        operation: O,
    ) -> PyResult<Self::Returned>;

    /// The object for a response.
    ///
    /// # Errors
    /// There is no memory for it.
    fn response(py: Python<'_>, base: BaseResponse) -> PyResult<Py<PyAny>>;

    /// How an iteration ends.
    fn end() -> PyErr;

    /// What makes a body of an async iterable.
    const BODY: AsyncBody;
}

/// The calling thread waits.
#[derive(Debug)]
pub(crate) struct Blocks;

impl Face for Blocks {
    type Returned = Py<PyAny>;

    fn runtime() -> &'static dyn Runtime {
        &rt::Blocking
    }

    fn run<O: Operation>(py: Python<'_>, _: &'static str, mut operation: O) -> PyResult<Py<PyAny>> {
        loop {
            if let Some(given) = operation.now(py) {
                return given?.ok_or_else(Blocks::end);
            }
            let again = operation.again();
            let given = O::give(py, wait(py, operation.run())?)?.ok_or_else(Blocks::end)?;
            match again {
                Some(again) => operation = again,
                None => return Ok(given),
            }
        }
    }

    fn response(py: Python<'_>, base: BaseResponse) -> PyResult<Py<PyAny>> {
        Response::create(py, base).map(Py::into_any)
    }

    fn end() -> PyErr {
        PyStopIteration::new_err(())
    }

    const BODY: AsyncBody = bodies::refuse_async;
}

/// The event loop waits.
#[derive(Debug)]
pub(crate) struct Awaits;

impl Face for Awaits {
    type Returned = Call;

    fn runtime() -> &'static dyn Runtime {
        &Asyncio
    }

    fn run<O: Operation>(_: Python<'_>, what: &'static str, operation: O) -> PyResult<Call> {
        Ok(Call::eager(what, Box::new(Begun(operation))))
    }

    fn response(py: Python<'_>, base: BaseResponse) -> PyResult<Py<PyAny>> {
        AsyncResponse::create(py, base)
    }

    fn end() -> PyErr {
        PyStopAsyncIteration::new_err(())
    }

    const BODY: AsyncBody = crate::asyncio::upload_body;
}

/// An operation as a call makes it.
struct Begun<O>(O);

impl<O: Operation> Eager for Begun<O> {
    fn now(&mut self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        let given = self.0.now(py)?;
        Some(given.and_then(|given| given.ok_or_else(Awaits::end)))
    }

    fn later(self: Box<Self>) -> (Work, Option<Box<dyn Eager>>) {
        let again = self.0.again().map(|again| Box::new(Begun(again)) as Box<dyn Eager>);
        let work = Box::pin(async move {
            let output = self.0.run().await;
            Python::attach(|py| O::give(py, output)?.ok_or_else(Awaits::end))
        });
        (work, again)
    }
}

/// What is guarded is never left half done. Not held while Python runs, or anything is waited for.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When `limit` is over, unless that is beyond what a clock can say.
fn after(limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// Which process it belongs to, by the number of forks that lie before it.
#[derive(Debug, Clone, Copy)]
struct Owner(u64);

impl Owner {
    fn here() -> Self {
        Owner(forks::generation())
    }

    fn is_here(self) -> bool {
        self.0 == forks::generation()
    }

    /// # Errors
    /// `RuntimeError` in a fork: what it would read or write there would be missing or too much for its parent.
    fn check(self) -> PyResult<()> {
        match self.is_here() {
            true => Ok(()),
            false => Err(PyRuntimeError::new_err(
                "the connection belongs to the process that this one was forked from",
            )),
        }
    }
}

/// Takes the argument `name` out of those that were given.
fn taken<'py>(given: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let value = given.get_item(name)?;
    if value.is_some() {
        given.del_item(name)?;
    }
    Ok(value.filter(|value| !value.is_none()))
}

/// # Errors
/// `TypeError` for hooks that would not be called: a session has no request that they could be shown before it begins.
fn check_hooks(defaults: &Defaults, function: &str) -> PyResult<()> {
    match defaults.hooks.awaited.is_empty() {
        true => Ok(()),
        false => Err(PyTypeError::new_err(format!(
            "{function}() awaits no hooks: make the client with plain functions",
        ))),
    }
}
