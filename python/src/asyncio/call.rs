//! What is awaited: a coroutine in all but its type, which polls a Rust future on the spot.

use std::{
    future::Future,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::{
    exceptions::{PyBaseException, PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError},
    intern,
    prelude::*,
    types::PyType,
};

use super::{
    background,
    hub::{self, lock},
    task::{Stand, Task, Work},
};
use crate::errors;

/// What may be done without waiting, and without a task.
pub(crate) trait Eager: Send {
    /// What comes of it, if that is here.
    fn now(&mut self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>>;

    /// What has to be waited for otherwise; and what is asked again once that has ended well, where what it gives is no
    /// matter. What was waited for is lost with a call that is cancelled behind its end, what is asked for then is not.
    fn later(self: Box<Self>) -> (Work, Option<Box<dyn Eager>>);
}

enum Stage {
    /// A coroutine comes first.
    Before(Py<PyAny>, Work),
    Eager(Box<dyn Eager>),
    New(Work, Option<Box<dyn Eager>>),
    Begun(Arc<Task>, Option<Box<dyn Eager>>),
    /// A coroutine sees what it ended with.
    After(Py<PyAny>, Py<PyAny>),
    Over,
}

/// A call under way. Await it, once; or give it to asyncio where that takes a coroutine.
#[pyclass(frozen, module = "mimus", name = "Call", generic)]
pub(crate) struct Call {
    stage: Mutex<Stage>,
    what: &'static str,
    /// Makes a coroutine of what it ends with, which comes after.
    after: Option<Py<PyAny>>,
    entered: Mutex<Entered>,
}

/// Whether it is the subject of an `async with`.
#[derive(Default)]
enum Entered {
    #[default]
    No,
    /// What it ends with is kept to be closed.
    Yes(Option<Py<PyAny>>),
}

impl Call {
    /// What `await` gives is what `work` ends with; `what` names it in warnings.
    pub(crate) fn new(
        what: &'static str,
        work: impl Future<Output = PyResult<Py<PyAny>>> + Send + 'static,
    ) -> Self {
        Call::at(Stage::New(Box::pin(work), None), what)
    }

    /// The same for what may be here already. That is looked at when it is awaited: a call that never is takes nothing.
    pub(crate) fn eager(what: &'static str, work: Box<dyn Eager>) -> Self {
        Call::at(Stage::Eager(work), what)
    }

    fn at(stage: Stage, what: &'static str) -> Self {
        Call { stage: Mutex::new(stage), what, after: None, entered: Mutex::default() }
    }

    /// The same between two coroutines: one that is run before it, and one that `after` makes of the result.
    pub(super) fn between(mut self, before: Option<Py<PyAny>>, after: Option<Py<PyAny>>) -> Self {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        *stage = match (before, mem::replace(stage, Stage::Over)) {
            (Some(before), Stage::New(work, _)) => Stage::Before(before, work),
            (_, stage) => stage,
        };
        self.after = after;
        self
    }

    /// One step: the end, or the future by which Python waits for it.
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.beside(py) {
            None => self.step_itself(py),
            Some(coroutine) => {
                let step = coroutine.call_method1(intern!(py, "send"), (py.None(),));
                self.step_beside(py, step)
            }
        }
    }

    /// The coroutine that has its turn in place of this.
    fn beside<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &*lock(&self.stage) {
            Stage::Before(coroutine, _) | Stage::After(coroutine, _) => {
                Some(coroutine.bind(py).clone())
            }
            _ => None,
        }
    }

    fn is_new(&self) -> bool {
        matches!(*lock(&self.stage), Stage::New(..) | Stage::Eager(_) | Stage::Before(..))
    }

    /// What is here without waiting.
    fn try_now(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        let mut eager = {
            let stage = &mut *lock(&self.stage);
            match mem::replace(stage, Stage::Over) {
                Stage::Eager(eager) => eager,
                other => {
                    *stage = other;
                    return None;
                }
            }
        };
        let done = eager.now(py);
        if done.is_none() {
            let (work, again) = eager.later();
            *lock(&self.stage) = Stage::New(work, again);
        }
        done
    }

    fn step_itself<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(done) = self.try_now(py) {
            return self.came(py, done?);
        }
        let (event_loop, task) = self.go_on(py)?;
        let mut stand = task.look(None);
        if let Stand::Waits = stand {
            let future = event_loop.call_method0(intern!(py, "create_future"))?;
            stand = task.look(Some(&future));
            if let Stand::Waits = stand {
                // Says to whoever steps us that it was awaited and not yielded.
                future.setattr(intern!(py, "_asyncio_future_blocking"), true)?;
                return Ok(future);
            }
        }
        match stand {
            Stand::Done(output) => {
                let again = self.end();
                let output = output?;
                match again {
                    None => self.came(py, output),
                    Some(eager) => {
                        *lock(&self.stage) = Stage::Eager(eager);
                        self.step_itself(py)
                    }
                }
            }
            Stand::Gone => Err(over()),
            Stand::Waits | Stand::Awaited => {
                Err(PyRuntimeError::new_err("this call is being awaited already"))
            }
        }
    }

    /// It ended with `output`.
    fn came<'py>(&self, py: Python<'py>, output: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some(after) = &self.after else { return self.give(py, output) };
        let coroutine = after.call1(py, (&output,))?;
        *lock(&self.stage) = Stage::After(coroutine, output);
        self.step(py)
    }

    fn give<'py>(&self, py: Python<'py>, output: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Entered::Yes(kept) = &mut *lock(&self.entered) {
            *kept = Some(output.clone_ref(py));
        }
        Err(PyStopIteration::new_err((output,)))
    }

    /// Goes on after a step of the coroutine before or after it.
    fn step_beside<'py>(
        &self,
        py: Python<'py>,
        step: PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let error = match step {
            Err(error) => error,
            waits => return waits,
        };
        let stage = mem::replace(&mut *lock(&self.stage), Stage::Over);
        match stage {
            _ if !error.is_instance_of::<PyStopIteration>(py) => Err(error),
            Stage::Before(_, work) => {
                *lock(&self.stage) = Stage::New(work, None);
                self.step_itself(py)
            }
            Stage::After(_, output) => self.give(py, output),
            _ => Err(over()),
        }
    }

    /// The task, which is begun and polled now if it was not, and the loop that it is on.
    fn go_on<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Arc<Task>)> {
        if let Stage::Begun(task, _) = &*lock(&self.stage) {
            let event_loop = task.hub().event_loop(py);
            let closed = || PyRuntimeError::new_err("the event loop of this call is gone");
            return Ok((event_loop.ok_or_else(closed)?, task.clone()));
        }
        let (event_loop, hub) = hub::running(py)?;
        let task = {
            let stage = &mut *lock(&self.stage);
            let Stage::New(work, again) = mem::replace(stage, Stage::Over) else {
                return Err(over());
            };
            let task = match hub.watches() {
                true => Task::awaited(&hub, work),
                false => background::spawn(&hub, work)?,
            };
            *stage = Stage::Begun(task.clone(), again);
            task
        };
        hub.turn(&event_loop, || task.run(py));
        Ok((event_loop, task))
    }

    /// Drops what there is of it, but who is to be asked again.
    fn end(&self) -> Option<Box<dyn Eager>> {
        let left = mem::replace(&mut *lock(&self.stage), Stage::Over);
        let Stage::Begun(task, again) = left else { return None };
        task.abandon();
        again
    }

    /// As [`end`](Self::end), so that connections are closed when this returns.
    fn end_now(&self, py: Python<'_>) {
        match hub::running(py) {
            Ok((event_loop, hub)) => hub.turn(&event_loop, || drop(self.end())),
            Err(_) => drop(self.end()),
        }
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("cannot reuse an already awaited call")
}

#[pymethods]
impl Call {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py)
    }

    /// Goes on with the call, as `__next__`.
    fn send<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let is_new = self.is_new();
        if !value.is_none() && is_new {
            let message = "can't send non-None value to a just-started coroutine";
            return Err(PyTypeError::new_err(message));
        }
        self.step(value.py())
    }

    /// Ends the call where it is, closing what it used, and raises the exception.
    #[pyo3(signature = (typ, val=None, tb=None))]
    fn throw<'py>(
        &self,
        typ: &Bound<'py, PyAny>,
        val: Option<&Bound<'py, PyAny>>,
        tb: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let error = exception(typ, val)?;
        if let Some(tb) = tb.filter(|tb| !tb.is_none()) {
            error.call_method1(intern!(tb.py(), "with_traceback"), (tb,))?;
        }
        let py = typ.py();
        if let Some(coroutine) = self.beside(py) {
            let step = coroutine.call_method1(intern!(py, "throw"), (error,));
            return self.step_beside(py, step);
        }
        self.end_now(py);
        Err(PyErr::from_value(error))
    }

    /// Ends the call where it is, closing what it used.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = match self.beside(py) {
            Some(coroutine) => coroutine.call_method0(intern!(py, "close")).map(drop),
            None => Ok(()),
        };
        self.end_now(py);
        closed
    }

    /// The same as awaiting it; what it gives is closed at the end of the block.
    fn __aenter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        *lock(&slf.get().entered) = Entered::Yes(None);
        slf
    }

    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        kind: &Bound<'py, PyAny>,
        error: &Bound<'py, PyAny>,
        traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kept = mem::take(&mut *lock(&self.entered));
        match kept {
            Entered::Yes(Some(kept)) => {
                kept.bind(py).call_method1(intern!(py, "__aexit__"), (kind, error, traceback))
            }
            _ => Err(PyRuntimeError::new_err("the call was not entered")),
        }
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.what
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.what
    }
}

/// What `throw` was asked to raise.
fn exception<'py>(
    typ: &Bound<'py, PyAny>,
    val: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let val = val.filter(|val| !val.is_none());
    match (typ.cast::<PyType>(), val) {
        (Err(_), None) if typ.is_instance_of::<PyBaseException>() => Ok(typ.clone()),
        (Ok(_), Some(val)) if val.is_instance_of::<PyBaseException>() => Ok(val.clone()),
        (Ok(class), None) if class.is_subclass_of::<PyBaseException>()? => class.call0(),
        (Ok(class), Some(val)) if class.is_subclass_of::<PyBaseException>()? => class.call1((val,)),
        _ => Err(PyTypeError::new_err("exceptions must be classes or instances of BaseException")),
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let was_new = matches!(*lock(&self.stage), Stage::New(..) | Stage::Eager(_));
        drop(self.end());
        if was_new {
            let what = format!("call '{}' was never awaited", self.what);
            errors::warn_dropped::<PyRuntimeWarning>(&what);
        }
    }
}
