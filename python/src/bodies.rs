//! Bodies to be sent, from what Python holds them in. Nothing is copied that is larger than a packet: the core reads
//! Python's own memory, files by their descriptors, and pulls iterators as it sends.

use std::{
    fs::File,
    os::fd::{BorrowedFd, RawFd},
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use mimus::{Body, BoxError};
use pyo3::{
    buffer::PyUntypedBuffer,
    exceptions::PyTypeError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyString, PyType},
};

/// Makes a body of an async iterable, where such can be sent.
pub(crate) type AsyncBody = fn(&Bound<'_, PyAny>) -> PyResult<Body>;

/// What the client that blocks says to an async iterable.
pub(crate) fn refuse_async(_: &Bound<'_, PyAny>) -> PyResult<Body> {
    Err(PyTypeError::new_err("an async iterable is a body for AsyncClient alone"))
}

/// Up to this size a copy is cheaper than holding on to Python's memory.
const COPY_BELOW: usize = 2048;

/// How much of a reader is asked for at a time.
const PIECE: usize = 64 * 1024;

/// The body in `value`: a string, any buffer, a file or path, or an iterable of strings and buffers.
pub(crate) fn from_python(value: &Bound<'_, PyAny>, asynchronous: AsyncBody) -> PyResult<Body> {
    if let Some(bytes) = in_memory(value)? {
        return Ok(bytes.into());
    }
    let py = value.py();
    if value.hasattr(intern!(py, "__fspath__"))? {
        return Ok(Body::file(value.extract::<PathBuf>()?)?);
    }
    if value.hasattr(intern!(py, "read"))? {
        return from_file(value);
    }
    if value.hasattr(intern!(py, "__aiter__"))? {
        return asynchronous(value);
    }
    let kind = value.get_type();
    if value.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err("a mapping is no body: give it as data or json"));
    }
    match value.try_iter() {
        Ok(pieces) => Ok(Body::stream(Pieces(Source::Iterator(pieces.into_any().unbind())))),
        Err(_) => Err(PyTypeError::new_err(format!("{} is no body", kind.qualname()?))),
    }
}

/// The bytes of a string or a buffer; `None` for anything else.
pub(crate) fn in_memory(value: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(Bytes::copy_from_slice(text.to_str()?.as_bytes())));
    }
    if let Ok(bytes) = value.cast::<PyBytes>()
        && bytes.as_bytes().len() <= COPY_BELOW
    {
        return Ok(Some(Bytes::copy_from_slice(bytes.as_bytes())));
    }
    let Ok(buffer) = PyUntypedBuffer::get(value) else { return Ok(None) };
    if !buffer.is_c_contiguous() {
        return Err(PyTypeError::new_err("a buffer that is sent must be contiguous"));
    }
    Ok(Some(Bytes::from_owner(Lent(buffer))))
}

/// Python's memory, for as long as the core reads it.
struct Lent(PyUntypedBuffer);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        match self.0.len_bytes() {
            0 => &[],
            // SAFETY: the buffer is contiguous, so that many bytes follow its start, and Python keeps them where they
            // are until the buffer is released. Who writes to them while they are sent sends what he wrote.
            n => unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), n) },
        }
    }
}

fn from_file(file: &Bound<'_, PyAny>) -> PyResult<Body> {
    if is_plain_file(file)?
        && let Some(body) = from_descriptor(file)?
    {
        return Ok(body);
    }
    let read = file.getattr(intern!(file.py(), "read"))?.unbind();
    let pieces = Pieces(Source::Reader(read));
    match length_in_memory(file)? {
        Some(length) => Ok(Body::sized_stream(pieces, length)),
        None => Ok(Body::stream(pieces)),
    }
}

/// Whether its descriptor gives the same bytes as its `read`: a decompressor has a descriptor too.
fn is_plain_file(file: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TYPES: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();
    let types = TYPES.get_or_try_init(file.py(), || {
        let io = file.py().import("io")?;
        let class = |name: &str| io.getattr(name).map(Bound::unbind);
        PyResult::Ok([class("BufferedReader")?, class("FileIO")?, class("BufferedRandom")?])
    })?;
    let kind = file.get_type();
    Ok(types.iter().any(|known| kind.is(known)))
}

/// The rest of a regular file, from where Python's object stands.
fn from_descriptor(file: &Bound<'_, PyAny>) -> PyResult<Option<Body>> {
    let py = file.py();
    if file.hasattr(intern!(py, "flush"))? {
        file.call_method0(intern!(py, "flush"))?;
    }
    let Ok(number) = file.call_method0(intern!(py, "fileno"))?.extract::<RawFd>() else {
        return Ok(None);
    };
    let Ok(start) = file.call_method0(intern!(py, "tell")).and_then(|at| at.extract::<u64>())
    else {
        return Ok(None);
    };
    // SAFETY: the object holds its descriptor open, and is held here.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let own = File::from(borrowed.try_clone_to_owned()?);
    Ok(Body::open_file(own, start).ok())
}

/// What is left of an `io.BytesIO`.
fn length_in_memory(file: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    static BYTES_IO: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = file.py();
    if !file.is_instance(BYTES_IO.import(py, "io", "BytesIO")?)? {
        return Ok(None);
    }
    let whole = file.call_method0(intern!(py, "getbuffer"))?.len()? as u64;
    let at: u64 = file.call_method0(intern!(py, "tell"))?.extract()?;
    Ok(Some(whole.saturating_sub(at)))
}

/// Pieces that Python code gives when it is asked.
struct Pieces(Source);

enum Source {
    Iterator(Py<PyAny>),
    /// The `read` of a file-like object.
    Reader(Py<PyAny>),
}

impl Source {
    fn next(&self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        let piece = match self {
            Source::Iterator(iterator) => {
                match iterator.bind(py).cast::<pyo3::types::PyIterator>()?.clone().next() {
                    Some(piece) => piece?,
                    None => return Ok(None),
                }
            }
            Source::Reader(read) => read.bind(py).call1((PIECE,))?,
        };
        let Some(bytes) = in_memory(&piece)? else {
            let kind = piece.get_type().qualname()?;
            let what = format!("the body must give strings or bytes, not {kind}");
            return Err(PyTypeError::new_err(what));
        };
        let ended = bytes.is_empty() && matches!(self, Source::Reader(_));
        Ok((!ended).then_some(bytes))
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = Python::attach(|py| self.0.next(py)).transpose();
        Poll::Ready(piece.map(|piece| piece.map_err(BoxError::from)))
    }
}
