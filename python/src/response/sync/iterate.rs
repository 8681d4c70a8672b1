//! Iterating over a body.

use bytes::Bytes;
use mimus::LineSplitter;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyMemoryView, PyString},
};

use super::{Pieces, Response};
use crate::{
    memory,
    response::{BaseResponse, Decoder, LINE_MAX},
    session::{Event, EventParser},
};

/// A body piece by piece, whether it is in memory or still to come.
struct Source {
    response: Py<Response>,
    stage: Stage,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Fresh,
    Streaming,
    Ended,
}

impl Source {
    fn new(response: &Bound<'_, Response>) -> Self {
        Source { response: response.clone().unbind(), stage: Stage::Fresh }
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        if self.stage == Stage::Ended {
            return Ok(None);
        }
        let base = self.response.bind(py).as_super().get();
        // A body that was read already is handed out again.
        if self.stage == Stage::Fresh && base.is_loaded(py) {
            self.stage = Stage::Ended;
            return Ok(Some(base.loaded_bytes(py)?).filter(|all| !all.is_empty()));
        }
        self.stage = Stage::Streaming;
        let data = Response::next_data(base, py)?;
        if data.is_none() {
            self.stage = Stage::Ended;
        }
        Ok(data)
    }
}

/// Pieces of a body.
#[pyclass(module = "mimus", name = "ByteIterator")]
pub(crate) struct ByteIterator {
    source: Source,
    pieces: Pieces,
}

impl ByteIterator {
    pub(super) fn new(response: &Bound<'_, Response>, chunk_size: Option<usize>) -> Self {
        ByteIterator { source: Source::new(response), pieces: Pieces::new(chunk_size) }
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        loop {
            if let Some(piece) = self.pieces.next() {
                return Ok(Some(piece));
            }
            match self.source.next(py)? {
                None => return Ok(self.pieces.rest()),
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

/// Pieces of a body as they came, uncopied.
#[pyclass(module = "mimus", name = "RawIterator")]
pub(crate) struct RawIterator(Source);

impl RawIterator {
    pub(super) fn new(response: &Bound<'_, Response>) -> PyResult<Self> {
        let base = response.as_super().get();
        let mut incoming = base.take_body(response.py())?;
        incoming.leave_coded();
        base.put_body(super::Body::Open(incoming));
        Ok(RawIterator(Source::new(response)))
    }
}

#[pymethods]
impl RawIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        self.0.next(py)?.map(|piece| memory::view(py, piece)).transpose()
    }
}

/// A body as text.
#[pyclass(module = "mimus", name = "TextIterator")]
pub(crate) struct TextIterator {
    source: Source,
    decoder: Decoder,
}

impl TextIterator {
    pub(super) fn new(response: &Bound<'_, Response>) -> PyResult<Self> {
        let decoder = Decoder::new(response.py(), response.as_super().get())?;
        Ok(TextIterator { source: Source::new(response), decoder })
    }

    /// The next text that is not empty; `None` at the end.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        while !self.decoder.has_ended() {
            let data = self.source.next(py)?;
            let text = self.decoder.decode(py, data.as_deref())?;
            if !text.is_empty()? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

#[pymethods]
impl TextIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.next(py)
    }
}

/// The lines of a body.
#[pyclass(module = "mimus", name = "LineIterator")]
pub(crate) struct LineIterator {
    text: TextIterator,
    lines: Option<LineSplitter>,
}

impl LineIterator {
    pub(super) fn new(response: &Bound<'_, Response>) -> PyResult<Self> {
        let text = TextIterator::new(response)?;
        Ok(LineIterator { text, lines: Some(LineSplitter::new(LINE_MAX)) })
    }
}

#[pymethods]
impl LineIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        let too_long = |error: mimus::LineTooLong| PyValueError::new_err(error.to_string());
        while let Some(lines) = &mut self.lines {
            if let Some(line) = lines.next_line().map_err(too_long)? {
                return Ok(Some(line));
            }
            match self.text.next(py)? {
                Some(text) => lines.push(text.to_str()?),
                None => {
                    let last = self.lines.take().map(LineSplitter::finish);
                    return Ok(last.transpose().map_err(too_long)?.flatten());
                }
            }
        }
        Ok(None)
    }
}

/// The events of a body.
#[pyclass(module = "mimus", name = "EventIterator")]
pub(crate) struct EventIterator {
    source: Source,
    parser: EventParser,
}

impl EventIterator {
    pub(super) fn new(response: &Bound<'_, Response>) -> PyResult<Self> {
        BaseResponse::check_events(response.as_super())?;
        Ok(EventIterator { source: Source::new(response), parser: EventParser::new() })
    }
}

#[pymethods]
impl EventIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<Event>>> {
        loop {
            if let Some(event) = self.parser.next(py)? {
                return Ok(Some(event));
            }
            match self.source.next(py)? {
                Some(data) => self.parser.push(data),
                None => return Ok(None),
            }
        }
    }
}
