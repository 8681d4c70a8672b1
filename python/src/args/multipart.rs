//! `files=` in requests' shape: name -> contents, or (file name, contents[, media type[, headers]]).

use mimus::{
    Body,
    multipart::{Form, Part},
};
use pyo3::{
    exceptions::PyValueError,
    intern,
    prelude::*,
    types::{PyString, PyTuple},
};

use super::fields::{each_field, each_pair, pairs};
use crate::bodies::{self, AsyncBody};

/// The form of the fields in `data` and the files in `files`.
pub(super) fn form(
    data: Option<&Bound<'_, PyAny>>,
    files: &Bound<'_, PyAny>,
    asynchronous: AsyncBody,
) -> PyResult<Form> {
    let mut form = Form::new();
    for (name, value) in data.map_or(Ok(Vec::new()), |data| pairs(data, "data"))? {
        form = form.text(name, value);
    }
    let mut form = Some(form);
    each_pair(files, "files", |name, file| {
        let part = part(&file, asynchronous)?;
        let name: String = name.extract()?;
        form = form.take().map(|form| form.part(name, part));
        Ok(())
    })?;
    form.ok_or_else(|| PyValueError::new_err("files"))
}

fn part(file: &Bound<'_, PyAny>, asynchronous: AsyncBody) -> PyResult<Part> {
    let Ok(parts) = file.cast::<PyTuple>() else {
        let part = Part::new(contents(file, asynchronous)?);
        return Ok(match own_name(file)? {
            Some(name) => part.file_name(name),
            None => part,
        });
    };
    if !(2..=4).contains(&parts.len()) {
        return Err(PyValueError::new_err(
            "a file is its contents or (file name, contents[, media type[, headers]])",
        ));
    }
    let mut part = Part::new(contents(&parts.get_item(1)?, asynchronous)?);
    let name: Option<String> = parts.get_item(0)?.extract()?;
    let media_type: Option<String> = match parts.get_item(2) {
        Ok(media_type) => media_type.extract()?,
        Err(_) => None,
    };
    if let Some(name) = name {
        part = part.file_name(name);
    }
    if let Some(media_type) = media_type {
        part = typed(part, &media_type)?;
    }
    if let Ok(headers) = parts.get_item(3)
        && !headers.is_none()
    {
        part = with_headers(part, &headers)?;
    }
    Ok(part)
}

/// A file's contents. Each part of a form is framed by its own delimiters, so its length need not be known.
fn contents(file: &Bound<'_, PyAny>, asynchronous: AsyncBody) -> PyResult<Body> {
    bodies::from_python(file, asynchronous)
}

/// The last part of the path that an open file has as its name.
fn own_name(file: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Some(name) = file.getattr_opt(intern!(file.py(), "name"))? else { return Ok(None) };
    let Ok(name) = name.cast::<PyString>() else { return Ok(None) };
    let name = name.to_str()?;
    let last = name.rsplit('/').next().unwrap_or(name);
    // So standard input and its like are named.
    Ok((!last.is_empty() && !last.starts_with('<')).then(|| last.to_owned()))
}

fn typed(part: Part, media_type: &str) -> PyResult<Part> {
    part.media_type(media_type)
        .map_err(|_| PyValueError::new_err(format!("{media_type:?} is no media type")))
}

fn with_headers(part: Part, headers: &Bound<'_, PyAny>) -> PyResult<Part> {
    let mut all = Vec::new();
    each_field(headers, |name, value| all.push((name.to_owned(), value.to_vec())))?;
    all.into_iter().try_fold(part, |part, (name, value)| {
        let wrong = || PyValueError::new_err(format!("the header {name:?} of a file is not valid"));
        let field = http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let value = http::HeaderValue::from_bytes(&value).map_err(|_| wrong())?;
        if field == http::header::CONTENT_TYPE {
            return typed(part, value.to_str().map_err(|_| wrong())?);
        }
        Ok(part.header(field, value))
    })
}
