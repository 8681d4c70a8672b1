//! The fields of a message, as Python sees them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mimus::Fields;
use pyo3::{
    exceptions::{PyKeyError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyIterator, PyList, PyString, PyTuple},
};

/// The fields of a message: in order, in their case, with duplicates; looked up in any case.
///
/// It is a mapping, which can be changed, in which duplicates are joined by ", " (RFC 9110 section 5.2), but for `Set-Cookie`, whose first one
/// it has: see `get_list` and `pairs`.
///
/// Args:
///     fields: A mapping, or a list of pairs.
#[pyclass(frozen, mapping, module = "mimus", name = "Headers")]
#[derive(Debug)]
pub(crate) struct Headers(Mutex<Fields>);

/// A value as text: UTF-8 if it is that, else each byte as a character (ISO 8859-1).
pub(crate) fn text<'py>(py: Python<'py>, value: &[u8]) -> Bound<'py, PyString> {
    match std::str::from_utf8(value) {
        Ok(text) => PyString::new(py, text),
        Err(_) => {
            let text: String = value.iter().map(|&byte| char::from(byte)).collect();
            PyString::new(py, &text)
        }
    }
}

impl Headers {
    pub(crate) fn new(fields: Fields) -> Self {
        Headers(Mutex::new(fields))
    }

    /// A copy of the fields.
    pub(crate) fn fields(&self) -> Fields {
        self.lock().clone()
    }

    /// Never held while Python runs.
    fn lock(&self) -> MutexGuard<'_, Fields> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `headers[name]` is.
    fn joined<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyString>> {
        joined(py, &self.lock(), name)
    }
}

fn joined<'py>(py: Python<'py>, fields: &Fields, name: &str) -> Option<Bound<'py, PyString>> {
    let mut all = fields.get_all(name);
    let first = all.next()?;
    let Some(second) = all.next().filter(|_| !name.eq_ignore_ascii_case("set-cookie")) else {
        return Some(text(py, first));
    };
    let values: Vec<&[u8]> = [first, second].into_iter().chain(all).collect();
    Some(text(py, &values.join(&b", "[..])))
}

/// The names in order, each once.
fn names(fields: &Fields) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::with_capacity(fields.len());
    for (name, _) in fields.iter() {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    names
}

fn invalid(error: mimus::InvalidField) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Headers {
    #[new]
    #[pyo3(signature = (fields=None))]
    fn py_new(fields: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut all = Fields::new();
        if let Some(fields) = fields {
            crate::args::fill_fields(&mut all, fields)?;
        }
        Ok(Headers::new(all))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyString>> {
        self.joined(py, name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __setitem__(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = crate::args::field_value(value)?;
        self.lock().set(name, value).map_err(invalid)
    }

    fn __delitem__(&self, name: &str) -> PyResult<()> {
        match self.lock().remove(name) {
            0 => Err(PyKeyError::new_err(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// Adds a field behind those that are there, and beside others of its name.
    ///
    /// Args:
    ///     name: Its name.
    ///     value: Its value.
    ///
    /// Raises:
    ///     ValueError: One of the two cannot be sent.
    fn add(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = crate::args::field_value(value)?;
        self.lock().append(name, value).map_err(invalid)
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.lock().contains(name.to_str()?)),
            Err(_) => Ok(false),
        }
    }

    fn __len__(&self) -> usize {
        names(&self.lock()).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    /// The names, each once, in the order in which they first came.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, names(&self.fields()))
    }

    /// The values of `keys()`, duplicates joined.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let fields = self.fields();
        let values: Vec<_> =
            names(&fields).into_iter().filter_map(|name| joined(py, &fields, name)).collect();
        PyList::new(py, values)
    }

    /// Name and value of each of `keys()`, duplicates joined.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let fields = self.fields();
        let items: Vec<_> = (names(&fields).into_iter())
            .filter_map(|name| Some((name, joined(py, &fields, name)?)))
            .collect();
        PyList::new(py, items)
    }

    /// The value of a field, or `default`.
    ///
    /// Args:
    ///     name: Its name, in any case.
    ///     default: What to return when there is none.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> Option<Bound<'py, PyAny>> {
        self.joined(py, name).map(Bound::into_any).or(default)
    }

    /// All values of a field, in order.
    ///
    /// Args:
    ///     name: Its name, in any case.
    fn get_list<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let values: Vec<_> = self.fields().get_all(name).map(|value| text(py, value)).collect();
        PyList::new(py, values)
    }

    /// Each field as it came: name and value, in order.
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let fields = self.fields();
        let pairs: Vec<_> = fields.iter().map(|(name, value)| (name, text(py, value))).collect();
        PyList::new(py, pairs)
    }

    /// Each field as it came, in bytes.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pairs: Vec<_> = (self.fields().iter())
            .map(|(name, value)| (PyBytes::new(py, name.as_bytes()), PyBytes::new(py, value)))
            .collect();
        PyList::new(py, pairs)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let theirs = match other.cast::<Headers>() {
            Ok(other) => Some(lowered(&other.get().fields())),
            Err(_) => {
                let mut fields = Fields::new();
                match crate::args::fill_fields(&mut fields, other) {
                    Ok(()) => Some(lowered(&fields)),
                    Err(error) if error.is_instance_of::<PyTypeError>(py) => None,
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(theirs.is_some_and(|theirs| theirs == lowered(&self.fields())))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Headers({})", self.pairs(py)?.repr()?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (py.get_type::<Headers>(), (self.raw(py)?,)).into_pyobject(py)
    }
}

/// What two lists of fields that mean the same have in common.
fn lowered(fields: &Fields) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> =
        fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec())).collect();
    // The order of fields of one name counts, that of others does not (RFC 9110 section 5.3).
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}
