//! Events, and how those of one response are read.

use bytes::Bytes;
use mimus::sse::{Limits, Parser, TooLong};
use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyString},
};

use crate::errors;

/// An event of an event stream.
#[pyclass(frozen, module = "mimus", name = "Event")]
#[derive(Debug)]
pub(crate) struct Event {
    /// Its type: "message" where it names none.
    #[pyo3(get)]
    event: Py<PyString>,
    /// Its data, lines joined by LF.
    #[pyo3(get)]
    data: Py<PyString>,
    /// The last event ID: that of this event, or of the last one before it that had one. Empty when there is none.
    #[pyo3(get)]
    id: Py<PyString>,
    /// The time after which the server wants a client to connect again, in milliseconds, if it has named one so far.
    #[pyo3(get)]
    retry: Option<u64>,
}

impl Event {
    pub(super) fn new(
        py: Python<'_>,
        event: &str,
        data: &str,
        id: &str,
        retry: Option<std::time::Duration>,
    ) -> Self {
        let event = match event {
            "message" => intern!(py, "message").clone(),
            other => PyString::new(py, other),
        };
        Event {
            event: event.unbind(),
            data: PyString::new(py, data).unbind(),
            id: PyString::new(py, id).unbind(),
            retry: retry.and_then(|time| u64::try_from(time.as_millis()).ok()),
        }
    }
}

#[pymethods]
impl Event {
    /// The data as JSON.
    ///
    /// Args:
    ///     **options: For `json.loads`.
    ///
    /// Raises:
    ///     ValueError: It is not JSON.
    #[pyo3(signature = (**options))]
    fn json<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        LOADS.import(py, "json", "loads")?.call((&self.data,), options)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (event, data, id) = (self.event.bind(py), self.data.bind(py), self.id.bind(py));
        Ok(format!("Event(event={}, data={}, id={})", event.repr()?, data.repr()?, id.repr()?))
    }
}

/// Reads the events of one response.
pub(crate) struct EventParser(Parser);

impl EventParser {
    pub(crate) fn new() -> Self {
        EventParser(Parser::new(Limits::default()))
    }

    pub(crate) fn push(&mut self, data: Bytes) {
        self.0.push(data);
    }

    /// The next event of what came.
    ///
    /// # Errors
    /// `LimitExceeded`: a line or an event is too long.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Py<Event>>> {
        let too_long = |error: TooLong| errors::plain(py, "LimitExceeded", error.to_string());
        let event = self.0.next_event().map_err(too_long)?.map(|event| event.to_owned());
        let Some(event) = event else { return Ok(None) };
        let event = Event::new(py, &event.event, &event.data, &event.id, self.0.retry());
        Py::new(py, event).map(Some)
    }
}
