//! What was answered, as Python sees it.

mod details;
mod pieces;
mod sync;
mod text;

pub(crate) use details::{Hop, Timings, TlsInfo};
pub(crate) use pieces::Pieces;
pub(crate) use sync::Response;
pub(crate) use text::Decoder;

/// The longest line of a body that is iterated over, in bytes: what is kept of one that has no lines.
pub(crate) const LINE_MAX: usize = 64 * 1024 * 1024;

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use mimus::{Incoming, TextDecoder, sse::MEDIA_TYPE};
use pyo3::{
    exceptions::PyResourceWarning,
    intern,
    prelude::*,
    pybacked::PyBackedBytes,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyList, PyString},
};

use crate::{
    errors,
    exchange::{Answered, End, Whole},
    forks,
    headers::Headers,
};

/// What a response of either client has: everything but the ways to read its body.
#[pyclass(subclass, frozen, module = "mimus", name = "BaseResponse")]
pub(crate) struct BaseResponse {
    /// Without its body.
    answer: mimus::Response,
    body: Mutex<Body>,
    /// Set when the body's end was read.
    end: std::sync::OnceLock<End>,
    encoding: Mutex<Option<String>>,
    content: PyOnceLock<Py<PyBytes>>,
    headers: PyOnceLock<Py<Headers>>,
    url: PyOnceLock<Py<PyString>>,
    /// That of the process whose connection it came by.
    generation: u64,
}

/// Where the body is.
#[derive(Debug)]
pub(crate) enum Body {
    /// Not read to its end yet.
    Open(Box<Incoming>),
    /// With whoever reads it now.
    Taken,
    /// All of it is in `content`.
    InContent,
    /// It was streamed, or is no longer wanted, or failed.
    Gone,
}

/// What is said to who wants a body that is gone.
const CONSUMED: &str = "the body was streamed or closed already";

impl BaseResponse {
    /// The response whose body is to be read.
    pub(crate) fn open(mut answer: mimus::Response) -> Self {
        let body = Box::new(mem::take(answer.body_mut()));
        BaseResponse::new(answer, Body::Open(body))
    }

    /// What became of an exchange.
    pub(crate) fn of(py: Python<'_>, answered: Answered) -> Self {
        match answered {
            Answered { answer, read: None } => BaseResponse::open(answer),
            Answered { answer, read: Some((whole, end)) } => {
                let response = BaseResponse::new(answer, Body::InContent);
                let _ = response.end.set(end);
                response.keep(py, whole);
                response
            }
        }
    }

    /// Makes `whole` the content.
    pub(crate) fn keep(&self, py: Python<'_>, whole: Whole) -> Body {
        let bytes = match whole {
            Whole::Rust(bytes) => PyBytes::new(py, &bytes).unbind(),
            Whole::Python(bytes) => bytes,
        };
        // Nobody had it before it was read.
        let _ = self.content.set(py, bytes);
        Body::InContent
    }

    /// Puts the body where it belongs after the last read of it.
    pub(crate) fn settle<T>(
        &self,
        py: Python<'_>,
        read: PyResult<(Box<Incoming>, mimus::Result<T>)>,
        body: impl FnOnce(T) -> Body,
    ) -> PyResult<()> {
        let (body, settled) = match read {
            Ok((incoming, Ok(all))) => {
                self.note_end(&incoming);
                (body(all), Ok(()))
            }
            Ok((_, Err(error))) => (Body::Gone, Err(self.raise(py, &error))),
            Err(raised) => (Body::Gone, Err(raised)),
        };
        self.put_body(body);
        settled
    }

    /// Whether all of the body is here.
    pub(crate) fn is_loaded(&self, py: Python<'_>) -> bool {
        self.content.get(py).is_some()
    }

    /// The same as `loaded`, for Rust.
    pub(crate) fn loaded_bytes(&self, py: Python<'_>) -> PyResult<Bytes> {
        Ok(Bytes::from_owner(PyBackedBytes::from(self.loaded(py)?)))
    }

    fn new(answer: mimus::Response, body: Body) -> Self {
        BaseResponse {
            answer,
            body: Mutex::new(body),
            end: std::sync::OnceLock::new(),
            encoding: Mutex::new(None),
            content: PyOnceLock::new(),
            headers: PyOnceLock::new(),
            url: PyOnceLock::new(),
            generation: forks::generation(),
        }
    }

    /// What the body came with is kept when it is over.
    pub(crate) fn note_end(&self, incoming: &Incoming) {
        let _ = self.end.set(End::of(incoming));
    }

    /// Nobody gets `answer`, if it is a response: there is nobody to close it either.
    pub(crate) fn forgo(py: Python<'_>, answer: &Py<PyAny>) {
        if let Ok(response) = answer.bind(py).cast::<BaseResponse>() {
            let left = mem::replace(&mut *response.get().body(), Body::Gone);
            drop(left);
        }
    }

    /// Never held while something is waited for, or Python runs.
    pub(crate) fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the body out to be read.
    ///
    /// # Errors
    /// `StreamConsumed` when it is not there to be read.
    pub(crate) fn take_body(&self, py: Python<'_>) -> PyResult<Box<Incoming>> {
        if self.generation != forks::generation() {
            let why = "the body belongs to the process that this one was forked from";
            return Err(errors::plain(py, "StreamConsumed", why));
        }
        let mut body = self.body();
        let why = match mem::replace(&mut *body, Body::Taken) {
            Body::Open(incoming) => return Ok(incoming),
            other => {
                let why = match &other {
                    Body::Taken => "the body is being read elsewhere",
                    Body::InContent => "the body was read already: it is in `content`",
                    Body::Open(_) | Body::Gone => CONSUMED,
                };
                *body = other;
                why
            }
        };
        drop(body);
        Err(errors::plain(py, "StreamConsumed", why))
    }

    pub(crate) fn put_body(&self, body: Body) {
        *self.body() = body;
    }

    /// The core's error on this response's URL.
    pub(crate) fn raise(&self, py: Python<'_>, error: &mimus::Error) -> PyErr {
        errors::raise_on(py, error, Some(self.answer.url()))
    }

    /// The whole body, if it is here.
    pub(crate) fn loaded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(content) = self.content.get(py) {
            return Ok(content.bind(py).clone());
        }
        let why = match *self.body() {
            Body::Open(_) | Body::Taken => "the body was not read yet",
            Body::InContent | Body::Gone => CONSUMED,
        };
        Err(errors::plain(py, "StreamConsumed", why))
    }

    /// What is said to who wants a body that is gone.
    pub(crate) fn consumed(&self, py: Python<'_>) -> PyErr {
        errors::plain(py, "StreamConsumed", CONSUMED)
    }

    /// Whether the body is gone without its end having been seen.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.end.get().is_none() && matches!(*self.body(), Body::Gone)
    }

    pub(crate) fn chosen_encoding(&self) -> Option<String> {
        self.encoding.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.answer.fields().get_str("content-type")
    }

    /// The body as text.
    pub(crate) fn loaded_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let content = self.loaded(py)?;
        if let Some(encoding) = self.chosen_encoding() {
            return content.call_method1(intern!(py, "decode"), (encoding, intern!(py, "replace")));
        }
        let bytes = content.as_bytes();
        let mut decoder = TextDecoder::new(self.content_type(), None);
        let is_utf8 = decoder.encoding() == "UTF-8" && !bytes.starts_with(b"\xef\xbb\xbf");
        if is_utf8 && !bytes.starts_with(b"\xff\xfe") && !bytes.starts_with(b"\xfe\xff") {
            let text = PyString::from_encoded_object(&content, Some(c"utf-8"), Some(c"replace"));
            return text.map(Bound::into_any);
        }
        let text = decoder.decode(bytes) + &decoder.finish();
        Ok(PyString::new(py, &text).into_any())
    }

    /// The body as Python's own module reads JSON.
    pub(crate) fn loaded_json<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        LOADS.import(py, "json", "loads")?.call((self.loaded(py)?,), options)
    }

    /// Whether the body can be read as an event stream.
    ///
    /// # Errors
    /// `NotEventStream`: its status or type says that it is something else.
    pub(crate) fn check_events(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        let essence = this.content_type().and_then(|value| value.split(';').next());
        let is_stream = essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(MEDIA_TYPE));
        if this.answer.status().is_success() && is_stream {
            return Ok(());
        }
        let py = slf.py();
        let details = PyDict::new(py);
        details.set_item("response", slf)?;
        details.set_item("url", this.url(py))?;
        let message = format!(
            "the answer is no event stream: {}, {}",
            this.say(),
            essence.unwrap_or("of no type")
        );
        let class = errors::class(py, "NotEventStream")?;
        Err(PyErr::from_value(class.call((message,), Some(&details))?))
    }

    /// The first word of the head, for messages.
    fn say(&self) -> String {
        let status = self.answer.status();
        format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default())
    }

    fn total(&self) -> Option<Duration> {
        let end = self.end.get()?.at?;
        Some(end - self.answer.started())
    }
}

impl Drop for BaseResponse {
    fn drop(&mut self) {
        // The connection is the parent's, and so is what is to be done about it.
        if self.generation != forks::generation() {
            mem::forget(mem::replace(&mut *self.body(), Body::Gone));
        }
        // It costs a connection, so who was to close it is told, as by Python's own files and sockets.
        if matches!(&*self.body(), Body::Open(incoming) if incoming.ended().is_none()) {
            errors::warn_dropped::<PyResourceWarning>(&format!("unclosed {}", self.__repr__()));
        }
    }
}

#[pymethods]
impl BaseResponse {
    /// The status: 200, 404...
    #[getter]
    fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    /// The status, by its other name.
    #[getter]
    fn status_code(&self) -> u16 {
        self.answer.status().as_u16()
    }

    /// The reason phrase; where the server sent none, as in HTTP/2, the usual one.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self.answer.reason() {
            b"" => PyString::new(py, self.answer.status().canonical_reason().unwrap_or_default()),
            reason => crate::headers::text(py, reason),
        }
    }

    /// Whether the status is below 400.
    #[getter]
    fn ok(&self) -> bool {
        self.status() < 400
    }

    /// Whether it sends on to another URL.
    #[getter]
    fn is_redirect(&self) -> bool {
        matches!(self.status(), 301 | 302 | 303 | 307 | 308)
            && self.answer.fields().contains("location")
    }

    /// The fields of the head.
    #[getter]
    fn headers(&self, py: Python<'_>) -> PyResult<Py<Headers>> {
        let made = || Py::new(py, Headers::new(self.answer.fields().clone()));
        Ok(self.headers.get_or_try_init(py, made)?.clone_ref(py))
    }

    /// The fields behind the body; None until it was read, or when there were none.
    #[getter]
    fn trailers(&self) -> Option<Headers> {
        self.end.get()?.trailers.as_deref().cloned().map(Headers::new)
    }

    /// The version of HTTP: "HTTP/1.1", "HTTP/2".
    #[getter]
    fn http_version(&self) -> &'static str {
        match self.answer.version() {
            mimus::Version::HTTP_09 => "HTTP/0.9",
            mimus::Version::HTTP_10 => "HTTP/1.0",
            mimus::Version::HTTP_2 => "HTTP/2",
            mimus::Version::HTTP_3 => "HTTP/3",
            _ => "HTTP/1.1",
        }
    }

    /// The URL that answered: after redirects, the last.
    #[getter]
    fn url(&self, py: Python<'_>) -> Py<PyString> {
        let made = || PyString::new(py, self.answer.url().as_str()).unbind();
        self.url.get_or_init(py, made).clone_ref(py)
    }

    /// The redirects that were followed, first to last.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let hops = self.answer.history().iter().cloned().map(Hop::new);
        let hops = hops.map(|hop| Py::new(py, hop)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, hops)
    }

    /// How long it took, as a `datetime.timedelta`: to the end of the body if it was read, else to the head.
    #[getter]
    fn elapsed(&self) -> Duration {
        self.total().unwrap_or_else(|| self.answer.timings().first_byte)
    }

    /// How long each phase took.
    #[getter]
    fn timings(&self) -> Timings {
        let mut timings = self.answer.timings();
        timings.total = self.total();
        Timings::new(timings)
    }

    /// What TLS agreed on; None without TLS.
    #[getter]
    fn tls(&self) -> Option<TlsInfo> {
        self.answer.tls().cloned().map(TlsInfo::new)
    }

    /// Address and port of the server, or of the proxy; None over a Unix socket.
    #[getter]
    fn remote_addr(&self) -> Option<(String, u16)> {
        self.answer.remote_addr().map(|addr| (addr.ip().to_string(), addr.port()))
    }

    /// Our own address and port; None over a Unix socket.
    #[getter]
    fn local_addr(&self) -> Option<(String, u16)> {
        self.answer.local_addr().map(|addr| (addr.ip().to_string(), addr.port()))
    }

    /// Whether the connection had served before.
    #[getter]
    fn reused(&self) -> bool {
        self.answer.reused()
    }

    /// The cookies that this response sets, by name.
    #[getter]
    fn cookies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for line in self.answer.fields().get_all("set-cookie") {
            let pair = line.split(|&byte| byte == b';').next().unwrap_or_default();
            let Some(at) = pair.iter().position(|&byte| byte == b'=') else { continue };
            let (name, value) = (pair[..at].trim_ascii(), pair[at + 1..].trim_ascii());
            all.set_item(crate::headers::text(py, name), crate::headers::text(py, value))?;
        }
        Ok(all)
    }

    /// The encoding of the text: what was set here, else what `Content-Type` says, else UTF-8.
    #[getter]
    fn encoding(&self) -> String {
        self.chosen_encoding().unwrap_or_else(|| {
            TextDecoder::new(self.content_type(), None).encoding().to_ascii_lowercase()
        })
    }

    #[setter]
    fn set_encoding(&self, encoding: Option<String>) {
        *self.encoding.lock().unwrap_or_else(PoisonError::into_inner) = encoding;
    }

    /// The encoding that `Content-Type` names, if it names one.
    #[getter]
    fn charset(&self) -> Option<String> {
        mimus::charset_of(self.content_type()?)
    }

    /// Whether the body is no longer to be had from the connection.
    #[getter]
    fn is_closed(&self) -> bool {
        !matches!(*self.body(), Body::Open(_) | Body::Taken)
    }

    /// Returns the response itself, or raises when its status is 4xx or 5xx.
    ///
    /// Raises:
    ///     StatusError: The status is one of those; its `response` is this.
    fn raise_for_status<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        let status = this.answer.status();
        if !status.is_client_error() && !status.is_server_error() {
            return Ok(slf.clone());
        }
        let py = slf.py();
        let url = this.url(py);
        let details = PyDict::new(py);
        details.set_item("response", slf)?;
        details.set_item("url", &url)?;
        let message = format!("the server answered {} for {}", this.say(), this.answer.url());
        let class = errors::class(py, "StatusError")?;
        Err(PyErr::from_value(class.call((message,), Some(&details))?))
    }

    fn __repr__(&self) -> String {
        format!("<Response [{}]>", self.say())
    }

    fn __bool__(&self) -> bool {
        self.ok()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a response cannot be pickled: keep its status, headers and content",
        ))
    }
}
