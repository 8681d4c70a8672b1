//! The response whose body is read by blocking.

mod iterate;
mod save;

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mimus::Incoming;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyType},
};

use self::iterate::{ByteIterator, EventIterator, LineIterator, RawIterator, TextIterator};
use super::{BaseResponse, Body, Pieces};
use crate::{
    exchange::{Whole, read_whole},
    wait::wait,
};

/// A response. Unless it was asked for with `stream=True`, its body has been read.
#[pyclass(extends = BaseResponse, frozen, module = "mimus", name = "Response")]
#[derive(Debug, Default)]
pub(crate) struct Response {
    /// How far `read` has come.
    reading: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    /// Of a body that is in memory, where the next `read` begins.
    at: usize,
    /// What came beyond the last `read` of a stream.
    rest: Bytes,
}

/// What a blocking read of a body comes to.
type Read<T> = (Box<Incoming>, mimus::Result<T>);

impl Response {
    pub(crate) fn create(py: Python<'_>, base: BaseResponse) -> PyResult<Py<Response>> {
        Py::new(py, PyClassInitializer::from(base).add_subclass(Response::default()))
    }

    /// Reads what is left, if it was not read yet.
    fn load(base: &BaseResponse, py: Python<'_>) -> PyResult<()> {
        if !matches!(*base.body(), Body::Open(_)) {
            return Ok(());
        }
        let mut incoming = base.take_body(py)?;
        let read: PyResult<Read<Whole>> = wait(py, async move {
            let read = read_whole(&mut incoming).await;
            (incoming, read)
        });
        base.settle(py, read, |whole| base.keep(py, whole))
    }

    /// The next piece as it comes; `None` at the end.
    fn next_data(base: &BaseResponse, py: Python<'_>) -> PyResult<Option<Bytes>> {
        let mut incoming = base.take_body(py)?;
        let read: PyResult<Read<Option<Bytes>>> = wait(py, async move {
            let read = incoming.data().await;
            (incoming, read)
        });
        match read {
            Ok((incoming, Ok(Some(data)))) => {
                base.put_body(Body::Open(incoming));
                Ok(Some(data))
            }
            other => base.settle(py, other, |_| Body::Gone).map(|()| None),
        }
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next `n` bytes of a body that is in memory.
    fn read_memory<'py>(
        &self,
        content: &Bound<'py, PyBytes>,
        n: Option<usize>,
    ) -> Bound<'py, PyBytes> {
        let mut reading = self.reading();
        let all = content.as_bytes();
        let left = all.len() - reading.at;
        let end = reading.at + n.map_or(left, |n| n.min(left));
        let (start, whole) = (reading.at, reading.at == 0 && end == all.len());
        reading.at = end;
        match whole {
            true => content.clone(),
            false => PyBytes::new(content.py(), &all[start..end]),
        }
    }

    /// The next `n` bytes of a stream; fewer at its end.
    fn read_stream<'py>(
        &self,
        base: &BaseResponse,
        py: Python<'py>,
        n: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let wanted = n.unwrap_or(usize::MAX);
        let mut all = std::mem::take(&mut self.reading().rest);
        if all.len() < wanted && matches!(*base.body(), Body::Open(_)) {
            let mut joined = Vec::from(all);
            while joined.len() < wanted
                && let Some(data) = Self::next_data(base, py)?
            {
                joined.extend_from_slice(&data);
            }
            all = joined.into();
        }
        if all.is_empty() && base.is_cut_short() {
            return Err(base.consumed(py));
        }
        let rest = all.split_off(all.len().min(wanted));
        self.reading().rest = rest;
        Ok(PyBytes::new(py, &all))
    }
}

#[pymethods]
impl Response {
    /// The whole body, decoded. Reads what was not read yet.
    ///
    /// Raises:
    ///     StreamConsumed: The body was streamed, or closed.
    #[getter]
    fn content<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let (py, base) = (slf.py(), slf.as_super().get());
        Self::load(base, py)?;
        base.loaded(py)
    }

    /// The whole body as text: in the encoding that was set, else by a byte order mark, else by `Content-Type`, else as
    /// UTF-8. What is malformed becomes U+FFFD.
    #[getter]
    fn text<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, base) = (slf.py(), slf.as_super().get());
        Self::load(base, py)?;
        base.loaded_text(py)
    }

    /// The whole body as JSON.
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
        let (py, base) = (slf.py(), slf.as_super().get());
        Self::load(base, py)?;
        base.loaded_json(py, options)
    }

    /// Reads on where the last `read` ended, as a file does.
    ///
    /// Args:
    ///     n: How many bytes, of which there are fewer at the end; all that is left without it.
    ///
    /// Returns:
    ///     The bytes; none at the end.
    #[pyo3(signature = (n=-1))]
    fn read<'py>(slf: &Bound<'py, Self>, n: isize) -> PyResult<Bound<'py, PyBytes>> {
        let (py, this, base) = (slf.py(), slf.get(), slf.as_super().get());
        let n = usize::try_from(n).ok();
        if n.is_none() && !this.has_begun() {
            Self::load(base, py)?;
        }
        match base.is_loaded(py) {
            true => Ok(this.read_memory(&base.loaded(py)?, n)),
            false => this.read_stream(base, py, n),
        }
    }

    /// Iterates over the body as it comes, decoded.
    ///
    /// Args:
    ///     chunk_size: How many bytes each piece has but the last; None for pieces as they come.
    #[pyo3(signature = (chunk_size=None))]
    fn iter_bytes(slf: &Bound<'_, Self>, chunk_size: Option<usize>) -> ByteIterator {
        ByteIterator::new(slf, chunk_size)
    }

    /// Iterates over the body as the server sent it, in whatever coding, without copying it.
    ///
    /// Returns:
    ///     An iterator of `memoryview`.
    ///
    /// Raises:
    ///     StreamConsumed: The body was read or streamed before: only `stream=True` leaves it to be read.
    fn iter_raw(slf: &Bound<'_, Self>) -> PyResult<RawIterator> {
        RawIterator::new(slf)
    }

    /// Iterates over the body as text, as it comes.
    fn iter_text(slf: &Bound<'_, Self>) -> PyResult<TextIterator> {
        TextIterator::new(slf)
    }

    /// Iterates over the lines of the body as they come, without their ends.
    fn iter_lines(slf: &Bound<'_, Self>) -> PyResult<LineIterator> {
        LineIterator::new(slf)
    }

    /// Iterates over the events of an event stream as they come, such as those of a language model's answer.
    ///
    /// Returns:
    ///     An iterator of `Event`.
    ///
    /// Raises:
    ///     NotEventStream: The status is none of success, or the type none of event streams.
    fn iter_events(slf: &Bound<'_, Self>) -> PyResult<EventIterator> {
        EventIterator::new(slf)
    }

    /// Writes the body to a file, as it comes.
    ///
    /// Args:
    ///     path: Where to; a file that is there is overwritten.
    ///     progress: Called with the bytes so far, and those in all or None, after each piece.
    ///
    /// Returns:
    ///     How many bytes were written.
    ///
    /// Raises:
    ///     OSError: The file cannot be written.
    ///     Error: The body did not come whole.
    #[pyo3(signature = (path, *, progress=None))]
    fn save(
        slf: &Bound<'_, Self>,
        path: std::path::PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        save::save(slf.as_super().get(), slf.py(), &path, progress)
    }

    /// Closes the response: what is left of its body is not read. The connection is kept where little is left.
    fn close(slf: &Bound<'_, Self>) {
        let left = {
            let mut body = slf.as_super().get().body();
            match matches!(*body, Body::Open(_)) {
                true => Some(std::mem::replace(&mut *body, Body::Gone)),
                false => None,
            }
        };
        drop(left);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) {
        Self::close(slf);
    }

    fn __iter__(slf: &Bound<'_, Self>) -> ByteIterator {
        ByteIterator::new(slf, None)
    }
}

impl Response {
    /// Whether `read` has handed something out.
    fn has_begun(&self) -> bool {
        let reading = self.reading();
        reading.at > 0 || !reading.rest.is_empty()
    }
}
