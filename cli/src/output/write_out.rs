//! -w: a text about each transfer, with curl's names for the facts.

use std::time::Duration;

use serde_json::{Map, Number, Value};

use crate::{exit::Failure, payload::read_input};

/// The facts of one transfer, after it ended well or not.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Summary {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) url_effective: String,
    /// Position of the URL on the command line, from 0.
    pub(crate) urlnum: usize,
    /// 0 when there was no response.
    pub(crate) status: u16,
    pub(crate) http_version: &'static str,
    pub(crate) num_connects: usize,
    pub(crate) num_redirects: usize,
    pub(crate) num_retries: usize,
    pub(crate) size_download: u64,
    pub(crate) size_upload: u64,
    pub(crate) size_header: u64,
    pub(crate) size_request: u64,
    pub(crate) times: Times,
    pub(crate) remote: Option<std::net::SocketAddr>,
    pub(crate) local: Option<std::net::SocketAddr>,
    /// Where a redirect that was not followed leads.
    pub(crate) redirect_url: Option<String>,
    pub(crate) filename: Option<String>,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) certificate_refused: bool,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
}

/// When things had happened, each counted from the start of the transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) namelookup: Duration,
    pub(crate) connect: Duration,
    /// With TLS (and a proxy) ready; zero without TLS.
    pub(crate) appconnect: Duration,
    pub(crate) pretransfer: Duration,
    pub(crate) redirect: Duration,
    pub(crate) starttransfer: Duration,
    pub(crate) total: Duration,
}

/// One fact, by its name.
struct Variable {
    name: &'static str,
    value: fn(&Summary) -> Fact,
}

enum Fact {
    Text(Option<String>),
    Count(u64),
    /// The status, which curl prints with three digits.
    Status(u16),
    Seconds(Duration),
}

/// Declares the table of variables.
macro_rules! variables {
    ($($name:ident => |$s:ident| $value:expr;)+) => {
        const VARIABLES: &[Variable] =
            &[$(Variable { name: stringify!($name), value: |$s| $value },)+];
    };
}

variables! {
    content_type => |s| Fact::Text(field(s, "content-type"));
    errormsg => |s| Fact::Text(s.error.clone());
    exitcode => |s| Fact::Count(s.exit_code.into());
    filename_effective => |s| Fact::Text(s.filename.clone());
    http_code => |s| Fact::Status(s.status);
    http_version => |s| Fact::Text(Some(s.http_version.to_owned()));
    local_ip => |s| Fact::Text(Some(s.local.map(|a| a.ip().to_string()).unwrap_or_default()));
    local_port => |s| Fact::Count(s.local.map_or(0, |a| a.port()).into());
    method => |s| Fact::Text(Some(s.method.clone()));
    num_connects => |s| Fact::Count(s.num_connects as u64);
    num_headers => |s| Fact::Count(s.fields.len() as u64);
    num_redirects => |s| Fact::Count(s.num_redirects as u64);
    num_retries => |s| Fact::Count(s.num_retries as u64);
    redirect_url => |s| Fact::Text(s.redirect_url.clone());
    remote_ip => |s| Fact::Text(Some(s.remote.map(|a| a.ip().to_string()).unwrap_or_default()));
    remote_port => |s| Fact::Count(s.remote.map_or(0, |a| a.port()).into());
    response_code => |s| Fact::Status(s.status);
    scheme => |s| Fact::Text(s.url_effective.split_once(':').map(|(scheme, _)| scheme.to_owned()));
    size_download => |s| Fact::Count(s.size_download);
    size_header => |s| Fact::Count(s.size_header);
    size_request => |s| Fact::Count(s.size_request);
    size_upload => |s| Fact::Count(s.size_upload);
    speed_download => |s| Fact::Count(speed(s.size_download, s.times.total));
    speed_upload => |s| Fact::Count(speed(s.size_upload, s.times.total));
    ssl_verify_result => |s| Fact::Count(s.certificate_refused.into());
    time_appconnect => |s| Fact::Seconds(s.times.appconnect);
    time_connect => |s| Fact::Seconds(s.times.connect);
    time_namelookup => |s| Fact::Seconds(s.times.namelookup);
    time_pretransfer => |s| Fact::Seconds(s.times.pretransfer);
    time_redirect => |s| Fact::Seconds(s.times.redirect);
    time_starttransfer => |s| Fact::Seconds(s.times.starttransfer);
    time_total => |s| Fact::Seconds(s.times.total);
    url => |s| Fact::Text(Some(s.url.clone()));
    url_effective => |s| Fact::Text(Some(s.url_effective.clone()));
    urlnum => |s| Fact::Count(s.urlnum as u64);
}

/// The names that can stand in `%{...}`, for the help.
pub(crate) fn variable_names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|v| v.name).chain(SPECIAL)
}

const SPECIAL: [&str; 5] = ["header_json", "json", "onerror", "stderr", "stdout"];

fn field(summary: &Summary, name: &str) -> Option<String> {
    let found = summary.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.clone())
}

/// Bytes a second.
fn speed(bytes: u64, time: Duration) -> u64 {
    match time.as_micros() {
        0 => bytes,
        micros => (u128::from(bytes) * 1_000_000 / micros) as u64,
    }
}

/// A format, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Format {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Literal(String),
    Variable(&'static Variable),
    Field(String),
    Json,
    HeaderJson,
    /// Nothing further when all went well.
    OnError,
    To(Stream),
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Where the text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Format {
    /// Takes the value of -w apart. The second value is the unknown names in it.
    pub(crate) fn from_flag(flag: &str) -> Result<(Format, Vec<String>), Failure> {
        match flag.strip_prefix('@') {
            None => Ok(Format::parse(flag)),
            Some(path) => {
                let bytes = read_input(path.as_ref())?;
                Ok(Format::parse(&String::from_utf8_lossy(&bytes)))
            }
        }
    }

    fn parse(text: &str) -> (Format, Vec<String>) {
        let mut pieces = Vec::new();
        let mut unknown = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            let (piece, skipped) = match c {
                '%' => percent(after, &mut literal, &mut unknown),
                '\\' => (None, backslash(after, &mut literal)),
                _ => {
                    literal.push(c);
                    (None, 0)
                }
            };
            if let Some(piece) = piece {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(piece);
            }
            rest = &after[skipped..];
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        (Format { pieces }, unknown)
    }

    /// Writes the text about one transfer.
    ///
    /// # Errors
    /// As `write`.
    pub(crate) fn write<E>(
        &self,
        summary: &Summary,
        mut write: impl FnMut(Stream, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stream = Stream::Stdout;
        for piece in &self.pieces {
            let text = match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Variable(variable) => (variable.value)(summary).to_string(),
                Piece::Field(name) => field(summary, name).unwrap_or_default(),
                Piece::Json => json(summary).to_string(),
                Piece::HeaderJson => header_json(summary),
                Piece::OnError if summary.exit_code == 0 => break,
                Piece::OnError => continue,
                Piece::To(to) => {
                    stream = *to;
                    continue;
                }
            };
            write(stream, text.as_bytes())?;
        }
        Ok(())
    }
}

/// What follows a '%': the piece, if it is one, and how many bytes belong to it.
fn percent(after: &str, literal: &mut String, unknown: &mut Vec<String>) -> (Option<Piece>, usize) {
    if after.starts_with('%') {
        literal.push('%');
        return (None, 1);
    }
    for (opening, is_field) in [("{", false), ("header{", true)] {
        let Some(inner) = after.strip_prefix(opening) else { continue };
        let Some(end) = inner.find('}') else { continue };
        let name = &inner[..end];
        let length = opening.len() + end + 1;
        if is_field {
            return (Some(Piece::Field(name.to_owned())), length);
        }
        let piece = named(name);
        if piece.is_none() {
            unknown.push(name.to_owned());
        }
        return (piece, length);
    }
    literal.push('%');
    (None, 0)
}

fn named(name: &str) -> Option<Piece> {
    Some(match name {
        "json" => Piece::Json,
        "header_json" => Piece::HeaderJson,
        "onerror" => Piece::OnError,
        "stdout" => Piece::To(Stream::Stdout),
        "stderr" => Piece::To(Stream::Stderr),
        _ => Piece::Variable(VARIABLES.iter().find(|v| v.name == name)?),
    })
}

/// What follows a '\': an escape of C, or itself.
fn backslash(after: &str, literal: &mut String) -> usize {
    let known = match after.as_bytes().first() {
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        _ => {
            literal.push('\\');
            return 0;
        }
    };
    literal.push(known);
    1
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fact::Text(text) => f.write_str(text.as_deref().unwrap_or_default()),
            Fact::Count(number) => write!(f, "{number}"),
            Fact::Status(status) => write!(f, "{status:03}"),
            Fact::Seconds(time) => write!(f, "{:.6}", time.as_secs_f64()),
        }
    }
}

impl Fact {
    fn json(self) -> Value {
        match self {
            Fact::Text(text) => text.map_or(Value::Null, Value::String),
            Fact::Count(number) => number.into(),
            Fact::Status(status) => status.into(),
            Fact::Seconds(time) => {
                // To the microsecond, as in the text.
                let seconds = time.as_micros() as f64 / 1e6;
                Number::from_f64(seconds).map_or(Value::Null, Value::Number)
            }
        }
    }
}

/// All facts, as one object.
fn json(summary: &Summary) -> Value {
    VARIABLES.iter().map(|v| (v.name.to_owned(), (v.value)(summary).json())).collect()
}

/// The fields of the response: lower-case names, and for each the list of its values.
fn header_json(summary: &Summary) -> String {
    let mut map: Map<String, Value> = Map::new();
    for (name, value) in &summary.fields {
        let values = map.entry(name.to_ascii_lowercase()).or_insert_with(|| Value::Array(vec![]));
        if let Value::Array(values) = values {
            values.push(value.clone().into());
        }
    }
    Value::Object(map).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            method: "GET".into(),
            url_effective: "https://a/".into(),
            status: 204,
            http_version: "1.1",
            size_download: 3000,
            times: Times { total: Duration::from_millis(1500), ..Times::default() },
            remote: Some(([127, 0, 0, 1], 443).into()),
            fields: vec![
                ("Content-Type".into(), "text/x".into()),
                ("Set-Cookie".into(), "a=1".into()),
                ("set-cookie".into(), "b=2".into()),
            ],
            ..Summary::default()
        }
    }

    fn written(format: &str, summary: &Summary) -> (String, String) {
        let mut streams = (Vec::new(), Vec::new());
        let (format, _) = Format::parse(format);
        let write = |stream, bytes: &[u8]| {
            match stream {
                Stream::Stdout => streams.0.extend_from_slice(bytes),
                Stream::Stderr => streams.1.extend_from_slice(bytes),
            }
            Ok::<(), ()>(())
        };
        format.write(summary, write).unwrap();
        (String::from_utf8(streams.0).unwrap(), String::from_utf8(streams.1).unwrap())
    }

    #[test]
    fn facts_look_as_they_do_in_curl() {
        let table = [
            ("%{http_code} %{response_code}\\n", "204 204\n"),
            ("%{http_version}|%{scheme}|%{method}", "1.1|https|GET"),
            ("%{time_total}\\t%{speed_download}", "1.500000\t2000"),
            ("%{remote_ip}:%{remote_port}", "127.0.0.1:443"),
            ("%header{content-type};%{content_type}", "text/x;text/x"),
            ("%header{none}%{redirect_url}.", "."),
            ("100%% %x %{ \\q é", "100% %x %{ \\q é"),
            ("a%{nosuch}b", "ab"),
            ("%{header_json}", r#"{"content-type":["text/x"],"set-cookie":["a=1","b=2"]}"#),
        ];
        for (format, expected) in table {
            assert_eq!(written(format, &summary()).0, expected, "{format}");
        }
        assert_eq!(written("%{http_code}", &Summary::default()).0, "000");
    }

    #[test]
    fn text_can_be_directed_and_kept_for_errors() {
        let mut summary = summary();
        let format = "a%{stderr}b%{stdout}c%{onerror}d%{errormsg}";
        assert_eq!(written(format, &summary), ("ac".into(), "b".into()));
        summary.exit_code = 7;
        summary.error = Some("e".into());
        assert_eq!(written(format, &summary), ("acde".into(), "b".into()));
    }

    #[test]
    fn json_has_every_fact() {
        let value: Value = serde_json::from_str(&written("%{json}", &summary()).0).unwrap();
        assert_eq!(value.as_object().unwrap().len(), VARIABLES.len());
        assert_eq!(value["http_code"], 204);
        assert_eq!(value["time_total"], 1.5);
        assert_eq!(value["errormsg"], Value::Null);
    }

    #[test]
    fn unknown_names_are_reported() {
        assert_eq!(Format::parse("%{a}%{url}%{b}").1, ["a", "b"]);
        assert!(variable_names().all(|name| Format::parse(&format!("%{{{name}}}")).1.is_empty()));
    }
}
