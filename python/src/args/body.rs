//! What a call sends: `content`, `data`, `files` and `json`.

use mimus::{Body, RequestBuilder};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyByteArray, PyBytes, PyDict, PyString, PyTuple},
};

use super::{fields, multipart};
use crate::bodies::{self, AsyncBody};

/// The arguments that make a body.
pub(super) struct Given<'a, 'py> {
    pub(super) content: Option<&'a Bound<'py, PyAny>>,
    pub(super) data: Option<&'a Bound<'py, PyAny>>,
    pub(super) files: Option<&'a Bound<'py, PyAny>>,
    pub(super) json: Option<&'a Bound<'py, PyAny>>,
    /// The length that a header of the caller's announces.
    pub(super) announced: Option<u64>,
}

/// Gives the request its body.
pub(super) fn apply<M>(
    py: Python<'_>,
    builder: RequestBuilder<M>,
    given: &Given<'_, '_>,
    asynchronous: AsyncBody,
) -> PyResult<RequestBuilder<M>> {
    let Given { content, data, files, json, announced } = *given;
    match (content, data, files, json) {
        (None, None, None, None) => Ok(builder),
        (Some(content), None, None, None) => {
            Ok(builder.body(streamed(content, announced, asynchronous)?))
        }
        (None, Some(data), None, None) if is_form(data)? => {
            Ok(builder.form(&fields::pairs(data, "data")?))
        }
        (None, Some(data), None, None) => {
            Ok(builder.body(streamed(data, announced, asynchronous)?))
        }
        (None, data, Some(files), None) => {
            Ok(builder.multipart(multipart::form(data, files, asynchronous)?))
        }
        (None, None, None, Some(value)) => Ok(apply_json(builder, to_json(py, value)?)),
        _ => Err(PyValueError::new_err(
            "content, data, files and json are different bodies: give one (data and files go together)",
        )),
    }
}

/// A body, of the announced length where it does not know its own.
fn streamed(
    value: &Bound<'_, PyAny>,
    announced: Option<u64>,
    asynchronous: AsyncBody,
) -> PyResult<Body> {
    let body = bodies::from_python(value, asynchronous)?;
    Ok(match (body.length(), announced) {
        (None, Some(length)) => body.with_length(length),
        _ => body,
    })
}

/// Whether `data` is made of names and values, and not a body already.
fn is_form(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    if data.is_instance_of::<PyDict>() || data.hasattr(intern!(data.py(), "items"))? {
        return Ok(true);
    }
    let raw = data.is_instance_of::<PyString>()
        || data.is_instance_of::<PyBytes>()
        || data.is_instance_of::<PyByteArray>();
    if raw || !data.hasattr(intern!(data.py(), "__len__"))? {
        return Ok(false);
    }
    // A list of pairs; one of pieces is a body.
    match data.try_iter() {
        Ok(mut items) => match items.next() {
            Some(first) => Ok(first?.cast::<PyTuple>().is_ok_and(|pair| pair.len() == 2)),
            None => Ok(true),
        },
        Err(_) => Ok(false),
    }
}

fn apply_json<M>(builder: RequestBuilder<M>, text: Vec<u8>) -> RequestBuilder<M> {
    builder.body(Body::from(text)).default_content_type("application/json")
}

/// JSON as Python's own module writes it, without spaces.
pub(crate) fn to_json(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    static ENCODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let encode = ENCODE.get_or_try_init(py, || {
        let options = PyDict::new(py);
        options.set_item("separators", (",", ":"))?;
        options.set_item("ensure_ascii", false)?;
        options.set_item("allow_nan", false)?;
        let encoder = py.import("json")?.getattr("JSONEncoder")?.call((), Some(&options))?;
        PyResult::Ok(encoder.getattr("encode")?.unbind())
    })?;
    let text = encode
        .bind(py)
        .call1((value,))?
        .cast_into::<PyString>()
        .map_err(|_| PyTypeError::new_err("the JSON encoder gave no string"))?;
    Ok(text.to_str()?.as_bytes().to_vec())
}
