//! A body as it is iterated over: in bytes, in text, or in lines.

use bytes::Bytes;
use mimus::LineSplitter;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyString},
};

use crate::{
    memory,
    response::{BaseResponse, Decoder, LINE_MAX, Pieces},
    session::EventParser,
};

/// How what comes is cut. Take all items before pushing more.
pub(super) enum Shape {
    Bytes {
        pieces: Pieces,
        whole: Option<Bytes>,
        ended: bool,
    },
    /// In whatever coding it came, uncopied.
    Raw(Option<Bytes>),
    Text {
        decoder: Decoder,
        text: Option<Py<PyString>>,
    },
    Lines {
        decoder: Decoder,
        /// `None` once the last line has been given.
        lines: Option<LineSplitter>,
    },
    Events(Box<EventParser>),
}

impl Shape {
    /// Pieces of `size` bytes, or as they come.
    pub(super) fn bytes(size: Option<usize>) -> Self {
        Shape::Bytes { pieces: Pieces::new(size), whole: None, ended: false }
    }

    pub(super) fn text(py: Python<'_>, base: &BaseResponse) -> PyResult<Self> {
        Ok(Shape::Text { decoder: Decoder::new(py, base)?, text: None })
    }

    pub(super) fn lines(py: Python<'_>, base: &BaseResponse) -> PyResult<Self> {
        let lines = Some(LineSplitter::new(LINE_MAX));
        Ok(Shape::Lines { decoder: Decoder::new(py, base)?, lines })
    }

    /// # Errors
    /// `NotEventStream`.
    pub(super) fn events(response: &Bound<'_, BaseResponse>) -> PyResult<Self> {
        BaseResponse::check_events(response)?;
        Ok(Shape::Events(Box::new(EventParser::new())))
    }

    /// Takes more in, or the end.
    pub(super) fn push(&mut self, py: Python<'_>, data: Option<Bytes>) -> PyResult<()> {
        match (self, data) {
            (Shape::Bytes { pieces, whole, .. }, Some(data)) => *whole = pieces.push(data),
            (Shape::Bytes { ended, .. }, None) => *ended = true,
            (Shape::Raw(whole), data) => *whole = data,
            (Shape::Text { decoder, text }, data) => {
                *text = Some(decoder.decode(py, data.as_deref())?.unbind());
            }
            (Shape::Lines { decoder, lines: Some(lines) }, data) => {
                lines.push(decoder.decode(py, data.as_deref())?.to_str()?);
            }
            (Shape::Events(parser), Some(data)) => parser.push(data),
            // An event that was not ended is none.
            (Shape::Events(_), None) | (Shape::Lines { lines: None, .. }, _) => {}
        }
        Ok(())
    }

    /// The next item of what has come; none of them is empty but lines.
    pub(super) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Shape::Bytes { pieces, whole, ended } => {
                let here = whole.take().filter(|whole| !whole.is_empty());
                let here = here.or_else(|| pieces.next());
                let here = here.or_else(|| ended.then(|| pieces.rest()).flatten());
                Ok(here.map(|bytes| PyBytes::new(py, &bytes).into_any().unbind()))
            }
            Shape::Raw(whole) => {
                let view = whole.take().map(|bytes| memory::view(py, bytes)).transpose()?;
                Ok(view.map(|view| view.into_any().unbind()))
            }
            Shape::Text { text, .. } => match text.take() {
                Some(text) if !text.bind(py).is_empty()? => Ok(Some(text.into_any())),
                _ => Ok(None),
            },
            Shape::Events(parser) => Ok(parser.next(py)?.map(Py::into_any)),
            Shape::Lines { decoder, lines } => {
                let line = next_line(lines, decoder.has_ended())
                    .map_err(|error| PyValueError::new_err(error.to_string()))?;
                Ok(line.map(|line| PyString::new(py, &line).into_any().unbind()))
            }
        }
    }
}

fn next_line(
    place: &mut Option<LineSplitter>,
    ended: bool,
) -> Result<Option<String>, mimus::LineTooLong> {
    let Some(lines) = place else { return Ok(None) };
    match lines.next_line()? {
        None if ended => place.take().map_or(Ok(None), LineSplitter::finish),
        line => Ok(line),
    }
}
