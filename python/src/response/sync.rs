//! The response whose body is read by blocking.

use bytes::Bytes;
use mimus::{Incoming, rt};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyType},
};

use super::{BaseResponse, Body, Pieces};

/// A response. Unless it was asked for with `stream=True`, its body has been read.
#[pyclass(extends = BaseResponse, frozen, module = "mimus", name = "Response")]
#[derive(Debug)]
pub(crate) struct Response;

/// What a blocking read of a body comes to.
type Read<T> = (Incoming, mimus::Result<T>);

impl Response {
    pub(crate) fn create(py: Python<'_>, base: BaseResponse) -> PyResult<Py<Response>> {
        Py::new(py, PyClassInitializer::from(base).add_subclass(Response))
    }

    /// Reads what is left, if it was not read yet.
    fn load(base: &BaseResponse, py: Python<'_>) -> PyResult<()> {
        if !matches!(*base.body(), Body::Open(_)) {
            return Ok(());
        }
        let mut incoming = base.take_body(py)?;
        let (incoming, read): Read<Bytes> = py.detach(move || {
            let read = rt::Blocking::block_on(incoming.collect());
            (incoming, read)
        });
        match read {
            Ok(bytes) => {
                base.note_end(&incoming);
                base.put_body(Body::Whole(bytes));
                Ok(())
            }
            Err(error) => {
                base.put_body(Body::Gone);
                Err(base.raise(py, &error))
            }
        }
    }

    /// The next piece as it comes.
    fn next_data(base: &BaseResponse, py: Python<'_>) -> PyResult<Option<Bytes>> {
        let mut incoming = base.take_body(py)?;
        let (incoming, read): Read<Option<Bytes>> = py.detach(move || {
            let read = rt::Blocking::block_on(incoming.data());
            (incoming, read)
        });
        match read {
            Ok(Some(data)) => {
                base.put_body(Body::Open(incoming));
                Ok(Some(data))
            }
            Ok(None) => {
                base.note_end(&incoming);
                base.put_body(Body::Gone);
                Ok(None)
            }
            Err(error) => {
                base.put_body(Body::Gone);
                Err(base.raise(py, &error))
            }
        }
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

    /// The whole body. Reads what was not read yet.
    fn read<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        Self::content(slf)
    }

    /// Iterates over the body as it comes, decoded.
    ///
    /// Args:
    ///     chunk_size: How many bytes each piece has but the last; None for pieces as they come.
    #[pyo3(signature = (chunk_size=None))]
    fn iter_bytes(slf: &Bound<'_, Self>, chunk_size: Option<usize>) -> ByteIterator {
        ByteIterator {
            response: slf.clone().unbind(),
            pieces: Pieces::new(chunk_size),
            state: Stage::Fresh,
        }
    }

    /// Closes the response: what is left of its body is not read. The connection is kept where little is left.
    fn close(slf: &Bound<'_, Self>) {
        let base = slf.as_super().get();
        let mut body = base.body();
        if matches!(*body, Body::Open(_)) {
            *body = Body::Gone;
        }
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
}

/// Pieces of a body.
#[pyclass(module = "mimus", name = "ByteIterator")]
pub(crate) struct ByteIterator {
    response: Py<Response>,
    pieces: Pieces,
    state: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Fresh,
    Streaming,
    Ended,
}

impl ByteIterator {
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        let response = self.response.bind(py).as_super().get();
        if self.state == Stage::Fresh {
            self.state = Stage::Streaming;
            // A body that was read already is handed out again.
            if let Body::Whole(bytes) = &*response.body() {
                self.state = Stage::Ended;
                if let Some(all) = self.pieces.push(bytes.clone()).filter(|all| !all.is_empty()) {
                    return Ok(Some(all));
                }
            }
        }
        loop {
            if let Some(piece) = self.pieces.next() {
                return Ok(Some(piece));
            }
            if self.state == Stage::Ended {
                return Ok(self.pieces.rest());
            }
            match Response::next_data(response, py)? {
                None => self.state = Stage::Ended,
                Some(data) => {
                    if let Some(piece) = self.pieces.push(data) {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}

#[pymethods]
impl ByteIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.next(py)?.map(|piece| PyBytes::new(py, &piece)))
    }
}
