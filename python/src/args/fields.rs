//! Names and values: headers, cookies, parameters.

use mimus::RequestBuilder;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple},
};

use crate::headers::Headers;

/// Calls `visit` for each pair of a mapping or an iterable of pairs, in order.
pub(super) fn each_pair<'py>(
    pairs: &Bound<'py, PyAny>,
    what: &str,
    mut visit: impl FnMut(Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(map) = pairs.cast::<PyDict>() {
        // A copy: `visit` may run code of the user's, and other threads run beside it, who may change what is theirs.
        return map.copy()?.iter().try_for_each(|(name, value)| visit(name, value));
    }
    let items = match pairs.getattr_opt(intern!(pairs.py(), "items"))? {
        Some(items) => items.call0()?,
        None => pairs.clone(),
    };
    let wrong = || PyTypeError::new_err(format!("{what} must be a mapping or a list of pairs"));
    if items.is_instance_of::<PyString>() || items.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    for pair in items.try_iter().map_err(|_| wrong())? {
        let (name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) =
            pair?.extract().map_err(|_| wrong())?;
        visit(name, value)?;
    }
    Ok(())
}

/// The bytes of a field's name or value: text goes as UTF-8.
pub(super) fn with_bytes<R>(
    value: &Bound<'_, PyAny>,
    what: &str,
    take: impl FnOnce(&[u8]) -> R,
) -> PyResult<R> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(take(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(take(bytes.as_bytes()));
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return Ok(take(value.str()?.to_str()?.as_bytes()));
    }
    let kind = value.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("{what} must be a string or bytes, not {kind}")))
}

/// Visits the fields of what was given as headers; one whose value is None is not to be sent.
pub(super) fn each_field_or_none(
    headers: &Bound<'_, PyAny>,
    mut visit: impl FnMut(&str, Option<&[u8]>),
) -> PyResult<()> {
    if let Ok(headers) = headers.cast::<Headers>() {
        headers.get().fields().iter().for_each(|(name, value)| visit(name, Some(value)));
        return Ok(());
    }
    each_pair(headers, "headers", |name, value| {
        let name = with_bytes(&name, "a header's name", |name| {
            String::from_utf8_lossy(name).into_owned()
        })?;
        if value.is_none() {
            visit(&name, None);
            return Ok(());
        }
        with_bytes(&value, "a header's value", |value| visit(&name, Some(value)))
    })
}

/// The same where each must have a value.
pub(super) fn each_field(
    headers: &Bound<'_, PyAny>,
    mut visit: impl FnMut(&str, &[u8]),
) -> PyResult<()> {
    let mut missing = None;
    each_field_or_none(headers, |name, value| match value {
        Some(value) => visit(name, value),
        None => missing = Some(name.to_owned()),
    })?;
    match missing {
        None => Ok(()),
        Some(name) => Err(PyTypeError::new_err(format!(
            "the header {name:?} is None, which only a client's headers may be: it takes a default away"
        ))),
    }
}

/// Adds the headers of a call. What they say of the body's length is left in `announced`.
pub(super) fn headers<M>(
    builder: RequestBuilder<M>,
    headers: &Bound<'_, PyAny>,
    announced: &mut Option<u64>,
) -> PyResult<RequestBuilder<M>> {
    let mut builder = Some(builder);
    each_field(headers, |name, value| {
        if name.eq_ignore_ascii_case("content-length") {
            *announced = std::str::from_utf8(value).ok().and_then(|length| length.parse().ok());
        }
        builder = builder.take().map(|builder| builder.header(name, value));
    })?;
    builder.ok_or_else(|| PyTypeError::new_err("headers"))
}

/// The cookies of one call behind those of every call. Those that the client keeps follow on the wire.
pub(super) fn cookies<M>(
    builder: RequestBuilder<M>,
    usual: &[u8],
    cookies: Option<&Bound<'_, PyAny>>,
) -> PyResult<RequestBuilder<M>> {
    let mut line = usual.to_vec();
    if let Some(cookies) = cookies {
        let own = cookie_line(cookies)?;
        if !line.is_empty() && !own.is_empty() {
            line.extend_from_slice(b"; ");
        }
        line.extend_from_slice(&own);
    }
    Ok(if line.is_empty() { builder } else { builder.header("Cookie", line) })
}

/// The value of a `Cookie` field.
pub(super) fn cookie_line(cookies: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut line = Vec::new();
    each_pair(cookies, "cookies", |name, value| {
        if !line.is_empty() {
            line.extend_from_slice(b"; ");
        }
        with_bytes(&name, "a cookie's name", |name| line.extend_from_slice(name))?;
        line.push(b'=');
        with_bytes(&value, "a cookie's value", |value| line.extend_from_slice(value))
    })?;
    Ok(line)
}

/// Parameters of a query or a form: None is left out, a list repeats its name.
pub(super) fn pairs(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<(String, String)>> {
    let mut all = Vec::new();
    each_pair(given, what, |name, value| {
        let name = text(&name)?;
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for value in value.try_iter()? {
                let value = value?;
                if !value.is_none() {
                    all.push((name.clone(), text(&value)?));
                }
            }
        } else if !value.is_none() {
            all.push((name, text(&value)?));
        }
        Ok(())
    })?;
    Ok(all)
}

/// A parameter's text: numbers as Python writes them, truth as JSON does.
pub(super) fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(if truth.is_true() { "true" } else { "false" }.to_owned());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return match std::str::from_utf8(bytes.as_bytes()) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(PyValueError::new_err("a parameter's bytes must be UTF-8")),
        };
    }
    Ok(value.str()?.to_str()?.to_owned())
}

/// Adds to the URL's query: pairs are encoded, a string is a query already.
pub(super) fn query<M>(
    builder: RequestBuilder<M>,
    params: &Bound<'_, PyAny>,
) -> PyResult<RequestBuilder<M>> {
    if let Ok(text) = params.cast::<PyString>() {
        return Ok(builder.query_text(text.to_str()?));
    }
    if let Ok(bytes) = params.cast::<PyBytes>() {
        return match std::str::from_utf8(bytes.as_bytes()) {
            Ok(text) => Ok(builder.query_text(text)),
            Err(_) => Err(PyValueError::new_err("params as bytes must be UTF-8")),
        };
    }
    Ok(builder.query(&pairs(params, "params")?))
}

/// Adds a mapping or a list of pairs to `all`.
pub(crate) fn fill_fields(all: &mut mimus::Fields, headers: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut invalid = None;
    each_field(headers, |name, value| {
        if let Err(error) = all.append(name, value) {
            invalid.get_or_insert_with(|| format!("the field {name:?} is not valid: {error}"));
        }
    })?;
    invalid.map_or(Ok(()), |what| Err(PyValueError::new_err(what)))
}

/// The value of one field.
pub(crate) fn field_value(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    with_bytes(value, "a header's value", <[u8]>::to_vec)
}
