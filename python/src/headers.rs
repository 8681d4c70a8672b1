//! The fields of a message, as Python sees them.

use mimus::Fields;
use pyo3::{
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{PyBytes, PyIterator, PyList, PyString, PyTuple},
};

/// The fields of a message: in order, in their case, with duplicates; looked up in any case.
///
/// It is a mapping in which duplicates are joined by ", " (RFC 9110 section 5.2), but for `Set-Cookie`, whose first one
/// it has: see `get_list` and `pairs`.
///
/// Args:
///     fields: A mapping, or a list of pairs.
#[pyclass(frozen, mapping, module = "mimus", name = "Headers")]
#[derive(Debug)]
pub(crate) struct Headers(Fields);

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
        Headers(fields)
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.0
    }

    /// What `headers[name]` is.
    fn joined<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyString>> {
        let first = self.0.get(name)?;
        let mut all = self.0.get_all(name).peekable();
        all.next();
        if all.peek().is_none() || name.eq_ignore_ascii_case("set-cookie") {
            return Some(text(py, first));
        }
        let values: Vec<&[u8]> = self.0.get_all(name).collect();
        Some(text(py, &values.join(&b", "[..])))
    }

    /// The names in order, each once.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::with_capacity(self.0.len());
        for (name, _) in self.0.iter() {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                names.push(name);
            }
        }
        names
    }
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
        Ok(Headers(all))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyString>> {
        self.joined(py, name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => Ok(self.0.contains(name.to_str()?)),
            Err(_) => Ok(false),
        }
    }

    fn __len__(&self) -> usize {
        self.names().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.names())?.try_iter()
    }

    /// The names, each once, in the order in which they first came.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names())
    }

    /// The values of `keys()`, duplicates joined.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names().into_iter().filter_map(|name| self.joined(py, name)))
    }

    /// Name and value of each of `keys()`, duplicates joined.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let items: Vec<_> = (self.names().into_iter())
            .filter_map(|name| Some((name, self.joined(py, name)?)))
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
        let values: Vec<_> = self.0.get_all(name).map(|value| text(py, value)).collect();
        PyList::new(py, values)
    }

    /// Each field as it came: name and value, in order.
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| (name, text(py, value))).collect();
        PyList::new(py, pairs)
    }

    /// Each field as it came, in bytes.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pairs: Vec<_> = (self.0.iter())
            .map(|(name, value)| (PyBytes::new(py, name.as_bytes()), PyBytes::new(py, value)))
            .collect();
        PyList::new(py, pairs)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let theirs = match other.cast::<Headers>() {
            Ok(other) => Some(lowered(&other.get().0)),
            Err(_) => {
                let mut fields = Fields::new();
                match crate::args::fill_fields(&mut fields, other) {
                    Ok(()) => Some(lowered(&fields)),
                    Err(error) if error.is_instance_of::<PyTypeError>(py) => None,
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(theirs.is_some_and(|theirs| theirs == lowered(&self.0)))
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
