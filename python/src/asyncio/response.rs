//! The response whose body is awaited.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mimus::Incoming;
use pyo3::{
    exceptions::{PyRuntimeError, PyStopAsyncIteration},
    prelude::*,
    types::{PyBytes, PyDict, PyType},
};

use super::{call::Call, hub::lock, shape::Shape};
use crate::{
    exchange::read_whole,
    response::{BaseResponse, Body},
};

/// A response. Unless it was asked for with `stream=True`, its body has been read.
#[pyclass(extends = BaseResponse, frozen, module = "mimus", name = "AsyncResponse")]
#[derive(Debug)]
pub(crate) struct AsyncResponse;

/// A body while it is read. Where reading is broken off, it goes back to its response.
struct Reading {
    response: Py<BaseResponse>,
    /// What reads on behind the break, if that is possible.
    incoming: Option<Box<Incoming>>,
}

impl Reading {
    fn begin(py: Python<'_>, response: &Py<AsyncResponse>) -> PyResult<Self> {
        let response = response.bind(py).as_super();
        let incoming = response.get().take_body(py)?;
        Ok(Reading { response: response.clone().unbind(), incoming: Some(incoming) })
    }

    fn base(&self) -> &BaseResponse {
        self.response.get()
    }

    /// The next piece.
    async fn data(mut self) -> PyResult<Option<Bytes>> {
        let read = match &mut self.incoming {
            Some(incoming) => incoming.data().await,
            None => Ok(None),
        };
        match read {
            Ok(Some(data)) => Ok(Some(data)),
            Ok(None) => {
                self.end(Body::Gone);
                Ok(None)
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// All that is left. It cannot be broken off and gone on with.
    async fn all(mut self) -> PyResult<()> {
        let Some(mut incoming) = self.incoming.take() else { return Ok(()) };
        match read_whole(&mut incoming).await {
            Ok(whole) => {
                self.incoming = Some(incoming);
                let body = Python::attach(|py| self.base().keep(py, whole));
                self.end(body);
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn end(&mut self, body: Body) {
        if let Some(incoming) = self.incoming.take() {
            self.base().note_end(&incoming);
        }
        self.base().put_body(body);
    }

    fn fail(&mut self, error: &mimus::Error) -> PyErr {
        self.incoming = None;
        Python::attach(|py| self.base().raise(py, error))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let incoming = self.incoming.take();
        let base = self.base();
        if matches!(*base.body(), Body::Taken) {
            base.put_body(incoming.map_or(Body::Gone, Body::Open));
        }
    }
}

impl AsyncResponse {
    pub(crate) fn create(py: Python<'_>, base: BaseResponse) -> PyResult<Py<PyAny>> {
        let response = Py::new(py, PyClassInitializer::from(base).add_subclass(AsyncResponse));
        response.map(Py::into_any)
    }

    /// The body, which is read unless that was done.
    async fn load(response: Py<AsyncResponse>) -> PyResult<Py<PyAny>> {
        let reading = Python::attach(|py| {
            let is_open = matches!(*response.bind(py).as_super().get().body(), Body::Open(_));
            is_open.then(|| Reading::begin(py, &response)).transpose()
        })?;
        if let Some(reading) = reading {
            reading.all().await?;
        }
        Python::attach(|py| {
            let content = response.bind(py).as_super().get().loaded(py)?;
            Ok(content.into_any().unbind())
        })
    }

    fn close(response: &Bound<'_, Self>) {
        let base = response.as_super().get();
        let left = {
            let body = &mut *base.body();
            match body {
                Body::Open(_) => std::mem::replace(body, Body::Gone),
                _ => Body::Gone,
            }
        };
        drop(left);
    }

    fn iterate(slf: &Bound<'_, Self>, shape: Shape) -> AsyncIterator {
        let iteration = Some(Iteration { shape, stage: Stage::Fresh });
        AsyncIterator { response: slf.clone().unbind(), iteration: Arc::new(Mutex::new(iteration)) }
    }
}

#[pymethods]
impl AsyncResponse {
    /// The whole body, decoded, once it was read.
    ///
    /// Raises:
    ///     StreamConsumed: It was not read yet, or it was streamed or closed.
    #[getter]
    fn content<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        slf.as_super().get().loaded(slf.py())
    }

    /// The whole body as text, once it was read: in the encoding that was set, else by a byte order mark, else by
    /// `Content-Type`, else as UTF-8. What is malformed becomes U+FFFD.
    #[getter]
    fn text<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().loaded_text(slf.py())
    }

    /// The whole body as JSON, once it was read.
    ///
    /// Args:
    ///     **options: For `json.loads`.
    ///
    /// Raises:
    ///     ValueError: It is not JSON.
    #[pyo3(signature = (**options))]
    fn json<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().loaded_json(slf.py(), options)
    }

    /// Reads what was not read yet.
    ///
    /// Returns:
    ///     The whole body, to be awaited.
    fn aread(slf: Py<Self>) -> Call {
        Call::new("aread", Self::load(slf))
    }

    /// Iterates over the body as it comes, decoded.
    ///
    /// Args:
    ///     chunk_size: How many bytes each piece has but the last; None for pieces as they come.
    #[pyo3(signature = (chunk_size=None))]
    fn aiter_bytes(slf: &Bound<'_, Self>, chunk_size: Option<usize>) -> AsyncIterator {
        Self::iterate(slf, Shape::bytes(chunk_size))
    }

    /// Iterates over the body as the server sent it, in whatever coding, without copying it.
    ///
    /// Returns:
    ///     An async iterator of `memoryview`.
    ///
    /// Raises:
    ///     StreamConsumed: The body was read or streamed before: only `stream=True` leaves it to be read.
    fn aiter_raw(slf: &Bound<'_, Self>) -> PyResult<AsyncIterator> {
        let base = slf.as_super().get();
        let mut incoming = base.take_body(slf.py())?;
        incoming.leave_coded();
        base.put_body(Body::Open(incoming));
        Ok(Self::iterate(slf, Shape::Raw(None)))
    }

    /// Iterates over the body as text, as it comes.
    fn aiter_text(slf: &Bound<'_, Self>) -> PyResult<AsyncIterator> {
        Ok(Self::iterate(slf, Shape::text(slf.py(), slf.as_super().get())?))
    }

    /// Iterates over the lines of the body, each ended by LF or CRLF, without their ends.
    fn aiter_lines(slf: &Bound<'_, Self>) -> PyResult<AsyncIterator> {
        Ok(Self::iterate(slf, Shape::lines(slf.py(), slf.as_super().get())?))
    }

    /// Iterates over the events of an event stream as they come, such as those of a language model's answer.
    ///
    /// Returns:
    ///     An async iterator of `Event`.
    ///
    /// Raises:
    ///     NotEventStream: The status is none of success, or the type none of event streams.
    fn aiter_events(slf: &Bound<'_, Self>) -> PyResult<AsyncIterator> {
        Ok(Self::iterate(slf, Shape::events(slf.as_super())?))
    }

    fn __aiter__(slf: &Bound<'_, Self>) -> AsyncIterator {
        Self::aiter_bytes(slf, None)
    }

    /// Writes the body to a file, as it comes.
    ///
    /// Args:
    ///     path: Where to; a file that is there is overwritten.
    ///     progress: Called with the bytes so far, and those in all or None, after each piece.
    ///
    /// Returns:
    ///     How many bytes were written, to be awaited.
    ///
    /// Raises:
    ///     OSError: The file cannot be written.
    ///     Error: The body did not come whole.
    #[pyo3(signature = (path, *, progress=None))]
    fn asave<'py>(
        slf: &Bound<'py, Self>,
        path: &Bound<'py, PyAny>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, base) = (slf.py(), slf.as_super().get());
        let total = match base.is_loaded(py) {
            true => Some(base.loaded(py)?.as_bytes().len() as u64),
            false => match &*base.body() {
                Body::Open(incoming) => incoming.length(),
                _ => None,
            },
        };
        let save = py.import("mimus._save")?.getattr("save")?;
        save.call1((slf, path, total, progress))
    }

    /// Closes the response: what is left of its body is not read. The connection is kept where little is left.
    fn aclose(slf: Py<Self>) -> Call {
        Call::new("aclose", async move {
            Python::attach(|py| {
                Self::close(slf.bind(py));
                Ok(py.None())
            })
        })
    }

    fn __aenter__(slf: Py<Self>) -> Call {
        Call::new("__aenter__", async move { Ok(slf.into_any()) })
    }

    fn __aexit__(
        slf: Py<Self>,
        _kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> Call {
        Self::aclose(slf)
    }
}

/// Pieces of a body, to be awaited one by one. Breaking off a wait loses nothing.
#[pyclass(frozen, module = "mimus", name = "AsyncIterator", generic)]
pub(crate) struct AsyncIterator {
    response: Py<AsyncResponse>,
    iteration: Arc<Mutex<Option<Iteration>>>,
}

struct Iteration {
    shape: Shape,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    /// All of it has been handed to the shape.
    Loaded,
    Streaming,
    Ended,
}

/// What an iteration does next.
enum Step {
    Give(Py<PyAny>),
    Read(Reading),
}

impl Iteration {
    /// Gives what is here, or reads. A body that was read before is handed out again.
    fn step(&mut self, py: Python<'_>, response: &Py<AsyncResponse>) -> PyResult<Step> {
        let base = response.bind(py).as_super().get();
        loop {
            if let Some(item) = self.shape.next(py)? {
                return Ok(Step::Give(item));
            }
            match self.stage {
                Stage::Fresh if base.is_loaded(py) => {
                    self.stage = Stage::Loaded;
                    self.shape.push(py, Some(base.loaded_bytes(py)?))?;
                }
                Stage::Fresh | Stage::Streaming => {
                    self.stage = Stage::Streaming;
                    return Reading::begin(py, response).map(Step::Read);
                }
                Stage::Loaded => self.push(py, None)?,
                Stage::Ended => return Err(PyStopAsyncIteration::new_err(())),
            }
        }
    }

    fn push(&mut self, py: Python<'_>, data: Option<Bytes>) -> PyResult<()> {
        if data.is_none() {
            self.stage = Stage::Ended;
        }
        self.shape.push(py, data)
    }
}

/// Goes on with an iteration, whose lock is not held meanwhile: decoders are Python's.
fn with<T>(
    place: &Mutex<Option<Iteration>>,
    work: impl FnOnce(&mut Iteration) -> PyResult<T>,
) -> PyResult<T> {
    let Some(mut iteration) = lock(place).take() else {
        return Err(PyRuntimeError::new_err("the body is being iterated over elsewhere"));
    };
    let done = work(&mut iteration);
    *lock(place) = Some(iteration);
    done
}

async fn next(
    response: Py<AsyncResponse>,
    place: Arc<Mutex<Option<Iteration>>>,
) -> PyResult<Py<PyAny>> {
    loop {
        let step = Python::attach(|py| with(&place, |iteration| iteration.step(py, &response)))?;
        let reading = match step {
            Step::Give(item) => return Ok(item),
            Step::Read(reading) => reading,
        };
        let data = reading.data().await?;
        Python::attach(|py| with(&place, |iteration| iteration.push(py, data)))?;
    }
}

#[pymethods]
impl AsyncIterator {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> Call {
        Call::new("anext", next(self.response.clone_ref(py), self.iteration.clone()))
    }
}
