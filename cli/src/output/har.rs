//! --har: every exchange as an entry of an HTTP Archive, version 1.2.

use std::{path::Path, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use mimus::{Fields, Url};
use serde::Serialize;

use super::{is_secret, without_secret, without_userinfo, write_private};
use crate::{
    exit::Failure,
    observe::{Answer, Exchange, Record, version_name},
    payload::Payload,
};

/// The most of a body that is kept.
const BODY_MAX: usize = 1024 * 1024;

/// The archive of a run.
#[derive(Debug)]
pub(crate) struct Archive {
    show_secrets: bool,
    entries: Vec<Entry>,
}

/// The beginning of a response body, and how long it was.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    kept: Vec<u8>,
    size: u64,
}

impl Capture {
    /// One piece of the body.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let room = BODY_MAX - self.kept.len();
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        self.size += piece.len() as u64;
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: String,
    /// Milliseconds, the sum of the timings.
    time: f64,
    request: Request,
    response: Response,
    cache: Empty,
    timings: Timings,
    #[serde(rename = "serverIPAddress", skip_serializing_if = "Option::is_none")]
    server_ip_address: Option<String>,
    /// The port of our own end, by which entries on one connection are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<String>,
}

#[derive(Debug, Serialize)]
struct Empty {}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    http_version: &'static str,
    cookies: Vec<Pair>,
    headers: Vec<Pair>,
    query_string: Vec<Pair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    post_data: Option<PostData>,
    headers_size: i64,
    body_size: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    mime_type: String,
    params: Vec<Pair>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// 0 when none came.
    status: u16,
    status_text: String,
    http_version: &'static str,
    cookies: Vec<Pair>,
    headers: Vec<Pair>,
    content: Content,
    #[serde(rename = "redirectURL")]
    redirect_url: String,
    headers_size: i64,
    body_size: i64,
    #[serde(rename = "_error", skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    size: i64,
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'static str>,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Pair {
    name: String,
    value: String,
}

/// Milliseconds; -1 is "does not apply".
#[derive(Debug, Serialize)]
struct Timings {
    blocked: f64,
    dns: f64,
    connect: f64,
    ssl: f64,
    send: f64,
    wait: f64,
    receive: f64,
}

/// How the last exchange of a transfer went on after its head.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    /// What was kept of the body.
    pub(crate) body: &'a Capture,
    /// Its bytes before they were decoded.
    pub(crate) size: u64,
    /// When the end was read, or reading failed.
    pub(crate) at: std::time::Instant,
    /// Why it failed.
    pub(crate) error: Option<&'a str>,
}

impl Archive {
    /// An archive without entries.
    pub(crate) fn new(show_secrets: bool) -> Self {
        Archive { show_secrets, entries: Vec::new() }
    }

    /// Adds the exchanges of one transfer.
    pub(crate) fn push(&mut self, record: &Record, payload: &Payload, ending: &Ending<'_>) {
        let last = record.exchanges.len().saturating_sub(1);
        for (i, exchange) in record.exchanges.iter().enumerate() {
            let ending = (i == last).then_some(ending);
            self.entries.push(self.entry(exchange, payload, ending));
        }
    }

    /// Writes the archive.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Har<'a> {
            log: Log<'a>,
        }
        #[derive(Serialize)]
        struct Log<'a> {
            version: &'static str,
            creator: Creator,
            entries: &'a [Entry],
        }
        #[derive(Serialize)]
        struct Creator {
            name: &'static str,
            version: &'static str,
        }
        let creator = Creator { name: "mimus", version: env!("CARGO_PKG_VERSION") };
        let har = Har { log: Log { version: "1.2", creator, entries: &self.entries } };
        let mut text = serde_json::to_vec_pretty(&har)
            .map_err(|e| Failure::write(path.display(), &e.into()))?;
        text.push(b'\n');
        write_private(path, &text)
    }

    fn entry(&self, exchange: &Exchange, payload: &Payload, ending: Option<&Ending<'_>>) -> Entry {
        let timings = timings(exchange, ending);
        let addr = exchange.link.as_ref().map(|link| &link.info);
        Entry {
            started_date_time: humantime::format_rfc3339_millis(exchange.begun.system).to_string(),
            time: timings.sum(),
            request: self.request(exchange, payload),
            response: self.response(exchange, ending),
            cache: Empty {},
            timings,
            server_ip_address: addr.and_then(|a| a.peer).map(|peer| peer.ip().to_string()),
            connection: addr.and_then(|a| a.local).map(|local| local.port().to_string()),
        }
    }

    fn request(&self, exchange: &Exchange, payload: &Payload) -> Request {
        let cookies = exchange.fields.get_all("cookie").flat_map(|value| {
            String::from_utf8_lossy(value).split(';').map(|p| self.cookie(p)).collect::<Vec<_>>()
        });
        Request {
            method: exchange.method.clone(),
            url: self.url(&exchange.url),
            http_version: version_name(exchange.version),
            cookies: cookies.collect(),
            headers: self.headers(&exchange.fields),
            query_string: pairs(exchange.url.query_pairs()),
            post_data: (exchange.uploaded > 0).then(|| post_data(&exchange.fields, payload)),
            headers_size: -1,
            body_size: signed(exchange.uploaded),
        }
    }

    fn response(&self, exchange: &Exchange, ending: Option<&Ending<'_>>) -> Response {
        let error = ending.and_then(|e| e.error).map(str::to_owned);
        let Some(answer) = &exchange.answer else {
            return Response {
                status: 0,
                status_text: String::new(),
                http_version: "",
                cookies: Vec::new(),
                headers: Vec::new(),
                content: Content::default(),
                redirect_url: String::new(),
                headers_size: -1,
                body_size: -1,
                error,
            };
        };
        let cookies = answer.fields.get_all("set-cookie").map(|value| {
            let value = String::from_utf8_lossy(value);
            self.cookie(value.split(';').next().unwrap_or_default())
        });
        Response {
            status: answer.status.as_u16(),
            status_text: answer.reason.clone(),
            http_version: version_name(answer.version),
            cookies: cookies.collect(),
            headers: self.headers(&answer.fields),
            content: content(answer, ending),
            redirect_url: match &exchange.redirected_to {
                Some(url) => self.url(url),
                None => answer.fields.get_str("location").unwrap_or_default().to_owned(),
            },
            headers_size: -1,
            body_size: body_size(answer, ending),
            error,
        }
    }

    fn headers(&self, fields: &Fields) -> Vec<Pair> {
        let pair = |(name, value): (&str, &[u8])| {
            let value = String::from_utf8_lossy(value);
            let value = match is_secret(name) && !self.show_secrets {
                true => without_secret(name, &value),
                false => value.into_owned(),
            };
            Pair { name: name.to_owned(), value }
        };
        fields.iter().map(pair).collect()
    }

    fn cookie(&self, pair: &str) -> Pair {
        let (name, value) = pair.trim().split_once('=').unwrap_or((pair.trim(), ""));
        let value = if self.show_secrets { value } else { "[hidden]" };
        Pair { name: name.to_owned(), value: value.to_owned() }
    }

    fn url(&self, url: &Url) -> String {
        match self.show_secrets {
            true => url.to_string(),
            false => without_userinfo(url).to_string(),
        }
    }
}

fn pairs<'a, K, V>(pairs: impl Iterator<Item = (K, V)> + 'a) -> Vec<Pair>
where
    K: Into<String>,
    V: Into<String>,
{
    pairs.map(|(name, value)| Pair { name: name.into(), value: value.into() }).collect()
}

fn post_data(fields: &Fields, payload: &Payload) -> PostData {
    let mime_type = fields.get_str("content-type").unwrap_or_default().to_owned();
    let (text, comment) = match payload {
        Payload::Data { bytes, .. } if bytes.len() <= BODY_MAX => {
            (String::from_utf8_lossy(bytes).into_owned(), None)
        }
        Payload::None | Payload::Data { .. } => (String::new(), Some("too long to be kept")),
        Payload::File { .. } | Payload::Stdin | Payload::Form(_) => {
            (String::new(), Some("streamed, and not kept"))
        }
    };
    let params = match mime_type.starts_with(crate::payload::FORM) {
        true => pairs(form_urlencoded::parse(text.as_bytes())),
        false => Vec::new(),
    };
    PostData { mime_type, params, text, comment }
}

fn content(answer: &Answer, ending: Option<&Ending<'_>>) -> Content {
    let mime_type = answer.fields.get_str("content-type").unwrap_or_default().to_owned();
    let Some(body) = ending.map(|e| e.body) else {
        return Content { size: -1, mime_type, comment: Some("not kept"), ..Content::default() };
    };
    let (text, encoding) = match std::str::from_utf8(&body.kept) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (STANDARD.encode(&body.kept), Some("base64")),
    };
    Content {
        size: signed(body.size),
        mime_type,
        text: Some(text).filter(|text| !text.is_empty()),
        encoding,
        comment: (body.size > body.kept.len() as u64).then_some("the first MiB"),
    }
}

/// The bytes of the body before decoding. Of a redirect's body only the announced length is known.
fn body_size(answer: &Answer, ending: Option<&Ending<'_>>) -> i64 {
    let announced = || answer.fields.get_str("content-length").and_then(|v| v.parse().ok());
    match ending {
        Some(ending) => signed(ending.size),
        None => announced().unwrap_or(-1),
    }
}

/// HAR has -1 for what is not known, and so signed numbers.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn timings(exchange: &Exchange, ending: Option<&Ending<'_>>) -> Timings {
    let millis = |time: Duration| time.as_micros() as f64 / 1e3;
    let dial = match &exchange.link {
        Some(link) if link.fresh => link.info.dial,
        _ => Default::default(),
    };
    let tls = dial.tls.unwrap_or_default();
    // In HAR the TLS handshake is a part of connecting.
    let connect = dial.connect.map(|time| time + dial.proxy.unwrap_or_default() + tls);
    let made = dial.resolve.unwrap_or_default() + connect.unwrap_or_default();
    let before = exchange.sent.saturating_duration_since(exchange.begun.instant);
    let answered = exchange.answer.as_ref().map(|answer| answer.at);
    Timings {
        blocked: millis(before.saturating_sub(made)),
        dns: dial.resolve.map_or(-1.0, millis),
        connect: connect.map_or(-1.0, millis),
        ssl: dial.tls.map_or(-1.0, millis),
        send: 0.0,
        wait: answered.map_or(0.0, |at| millis(at.saturating_duration_since(exchange.sent))),
        receive: match (answered, ending) {
            (Some(at), Some(ending)) => millis(ending.at.saturating_duration_since(at)),
            _ => 0.0,
        },
    }
}

impl Timings {
    /// `ssl` is a part of `connect`, and -1 counts for nothing.
    fn sum(&self) -> f64 {
        [self.blocked, self.dns, self.connect, self.send, self.wait, self.receive]
            .into_iter()
            .map(|time| time.max(0.0))
            .sum()
    }
}
