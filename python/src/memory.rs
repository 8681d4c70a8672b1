//! Where Rust's memory and Python's meet: a `bytes` object that is filled while Python does other things, and the
//! core's pieces as buffers. The one place, beside `bodies`, that needs `unsafe`.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use bytes::Bytes;
use pyo3::{
    exceptions::PyBufferError,
    ffi,
    prelude::*,
    types::{PyBytes, PyMemoryView},
};

use crate::exchange::Whole;

/// A `bytes` object under way: nobody but this sees it before it is full.
pub(crate) struct Vessel {
    object: Py<PyBytes>,
    start: *mut u8,
    size: usize,
    filled: usize,
}

// SAFETY: the memory behind `start` is the object's, which lives as long as this, and which no other thread knows of.
unsafe impl Send for Vessel {}

impl Vessel {
    /// Room for `size` bytes, which are not written before they are there: what is only announced costs no memory.
    ///
    /// # Errors
    /// `MemoryError`.
    pub(crate) fn new(py: Python<'_>, size: usize) -> PyResult<Self> {
        let too_much = || pyo3::exceptions::PyMemoryError::new_err("the body is too large");
        let length = ffi::Py_ssize_t::try_from(size).map_err(|_| too_much())?;
        // SAFETY: without a source, this makes an object whose bytes are not set yet; null is an exception.
        let made = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), length) };
        // SAFETY: it is a new reference, or null.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, made) }?.cast_into::<PyBytes>()?;
        // SAFETY: it is a bytes object, which keeps its memory where it is.
        let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast();
        Ok(Vessel { object: object.unbind(), start, size, filled: 0 })
    }

    /// Adds `data`; false when there is no room for it.
    pub(crate) fn add(&mut self, data: &[u8]) -> bool {
        if data.len() > self.size - self.filled {
            return false;
        }
        // SAFETY: `filled` is at most `size`, the length of the object.
        let to = unsafe { self.start.add(self.filled) };
        // SAFETY: as many bytes are left, and nobody else knows of them.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
        self.filled += data.len();
        true
    }

    /// What was added.
    pub(crate) fn so_far(&self) -> &[u8] {
        // SAFETY: so many bytes were written, and nobody else writes.
        unsafe { std::slice::from_raw_parts(self.start, self.filled) }
    }

    /// What was added, as the object itself if it is full.
    pub(crate) fn finish(self) -> Whole {
        match self.filled == self.size {
            true => Whole::Python(self.object),
            false => Whole::Rust(Bytes::copy_from_slice(self.so_far())),
        }
    }
}

/// A piece of a body, as a buffer.
#[pyclass(frozen, module = "mimus", name = "Piece")]
struct Piece(Bytes);

#[pymethods]
impl Piece {
    /// # Safety
    /// Python calls this with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = &slf.get().0;
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("the piece is too large"))?;
        let start = bytes.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: the view holds a reference to the piece, whose bytes stay; it is said to be read-only.
        let done = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        match done {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// `bytes` as Python sees memory that is not its own.
pub(crate) fn view(py: Python<'_>, bytes: Bytes) -> PyResult<Bound<'_, PyMemoryView>> {
    PyMemoryView::from(Bound::new(py, Piece(bytes))?.as_any())
}
