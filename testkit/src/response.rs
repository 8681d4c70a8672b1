//! A whole response, and how it is written.

use std::fmt::Write as _;
use std::time::SystemTime;

/// A response with a body that is in memory.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// 200 with a body of this media type.
    pub(crate) fn of(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(200).header("content-type", kind).body(body)
    }

    pub(crate) fn text(status: u16, text: impl Into<String>) -> Self {
        let whole = Self::new(status).header("content-type", "text/plain; charset=utf-8");
        whole.body(text.into())
    }

    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self::of("application/json", format!("{value:#}\n"))
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// With the length of its body.
    pub(crate) fn length(self) -> Self {
        let len = self.body.len().to_string();
        self.header("content-length", len)
    }

    /// Whether the status forbids a body (RFC 9110 sections 15.2, 15.3.5, 15.4.5).
    pub(crate) fn is_bodiless(&self) -> bool {
        self.status < 200 || matches!(self.status, 204 | 304)
    }
}

/// A response head without its length: the status line, Date and the fields given.
pub(crate) fn head(status: u16, headers: &[(String, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    // Writing to a String cannot fail.
    let _ = write!(head, "date: {}\r\n", date());
    head.push_str(&lines(headers));
    head
}

/// Field lines as HTTP/1 writes them.
pub(crate) fn lines(headers: &[(String, String)]) -> String {
    let mut lines = String::new();
    for (name, value) in headers {
        // Query text can become a value here: no line break may come through.
        let value: String = value.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')).collect();
        // Writing to a String cannot fail.
        let _ = write!(lines, "{name}: {value}\r\n");
    }
    lines
}

/// The time as Date has it (RFC 9110 section 6.6.1).
pub(crate) fn date() -> String {
    httpdate::HttpDate::from(SystemTime::now()).to_string()
}

/// The reason phrase of RFC 9110 section 15 for a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        407 => "Proxy Authentication Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
