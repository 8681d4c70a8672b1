//! What a request carries, from the flags that say so.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::{
    address::escape,
    exit::{Exit, Failure},
    flags::{DataKind, DataPart, Flags},
};

/// What a request carries. Can be turned into a body once for each URL, except what comes from the
/// standard input, which is there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload {
    /// No body.
    None,
    /// Data that was given or read, and of which type it is.
    Data { bytes: Vec<u8>, media_type: &'static str },
    /// A file of data, streamed; `media_type` is `None` for an upload by -T.
    File { path: PathBuf, media_type: Option<&'static str> },
    /// The standard input, streamed and of unknown length.
    Stdin,
    /// The parts of a multipart form.
    Form(Vec<FormPart>),
}

/// One part of a multipart form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormPart {
    pub(crate) name: String,
    pub(crate) content: PartContent,
    pub(crate) media_type: Option<String>,
    pub(crate) file_name: Option<String>,
}

/// Where the content of a part comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartContent {
    /// From the command line.
    Text(String),
    /// From a file, as an upload.
    File(PathBuf),
    /// From a file, as a value. `-` is the standard input.
    Value(PathBuf),
    /// From the standard input, as an upload.
    Stdin,
}

pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
pub(crate) const JSON: &str = "application/json";

impl Payload {
    /// Puts together what the flags ask for, reading what must be read at once.
    pub(crate) fn from_flags(flags: &Flags) -> Result<Self, Failure> {
        if let Some(path) = &flags.request.upload_file {
            return Ok(match path.as_os_str() == "-" {
                true => Payload::Stdin,
                false => Payload::File { path: path.clone(), media_type: None },
            });
        }
        if !flags.request.form.is_empty() {
            let parts: Result<_, _> = flags.request.form.iter().map(|t| form_part(t)).collect();
            return parts.map(Payload::Form);
        }
        match flags.data.as_slice() {
            [] => Ok(Payload::None),
            // A single file needs not be in memory.
            [DataPart { kind: kind @ (DataKind::Binary | DataKind::Json), text }]
                if text.starts_with('@') && text != "@-" && !flags.request.get =>
            {
                let media_type = Some(media_type(*kind));
                Ok(Payload::File { path: text[1..].into(), media_type })
            }
            parts => data(parts),
        }
    }

    /// Whether there is a body.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Payload::None)
    }
}

fn media_type(kind: DataKind) -> &'static str {
    match kind {
        DataKind::Json => JSON,
        DataKind::Text | DataKind::Raw | DataKind::Binary | DataKind::UrlEncode => FORM,
    }
}

/// Joins the parts: data by '&', JSON by nothing.
fn data(parts: &[DataPart]) -> Result<Payload, Failure> {
    let mut bytes = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 && part.kind != DataKind::Json {
            bytes.push(b'&');
        }
        bytes.extend_from_slice(&part_bytes(part)?);
    }
    let json = parts.iter().any(|part| part.kind == DataKind::Json);
    Ok(Payload::Data {
        bytes,
        media_type: media_type(if json { DataKind::Json } else { DataKind::Text }),
    })
}

fn part_bytes(part: &DataPart) -> Result<Vec<u8>, Failure> {
    let file = part.text.strip_prefix('@');
    match (part.kind, file) {
        (DataKind::Raw, _) => Ok(part.text.clone().into_bytes()),
        (DataKind::Text, Some(path)) => {
            let mut bytes = read_input(Path::new(path))?;
            bytes.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
            Ok(bytes)
        }
        (DataKind::Binary | DataKind::Json, Some(path)) => read_input(Path::new(path)),
        (DataKind::Text | DataKind::Binary | DataKind::Json, None) => {
            Ok(part.text.clone().into_bytes())
        }
        (DataKind::UrlEncode, _) => url_encoded(&part.text),
    }
}

/// The forms of --data-urlencode: whichever of '=' and '@' comes first decides.
fn url_encoded(text: &str) -> Result<Vec<u8>, Failure> {
    let (name, value) = match text.find(['=', '@']) {
        None => ("", text.as_bytes().to_vec()),
        Some(at) if text[at..].starts_with('=') => {
            (&text[..at], text.as_bytes()[at + 1..].to_vec())
        }
        Some(at) => (&text[..at], read_input(Path::new(&text[at + 1..]))?),
    };
    let glue = if name.is_empty() { "" } else { "=" };
    // A space is a plus in a form.
    Ok([name, glue, &escape(&value).replace("%20", "+")].concat().into_bytes())
}

/// Everything in a file, or in the standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|e| Failure::read("the standard input", &e));
    }
    fs::read(path).map_err(|e| Failure::read(path.display(), &e))
}

/// `NAME=CONTENT[;type=...][;filename=...]`.
fn form_part(text: &str) -> Result<FormPart, Failure> {
    let (name, rest) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| Failure::new(Exit::Usage, format!("-F {text:?} is not NAME=CONTENT")))?;
    let first = attribute(rest);
    let mut part = FormPart {
        name: name.to_owned(),
        content: part_content(&rest[..first.map_or(rest.len(), |(at, _)| at)]),
        media_type: None,
        file_name: None,
    };
    let mut next = first.map(|(at, marker)| (&rest[at + marker.len()..], marker));
    while let Some((rest, marker)) = next {
        let following = attribute(rest);
        let value = &rest[..following.map_or(rest.len(), |(at, _)| at)];
        let slot = if marker == TYPE { &mut part.media_type } else { &mut part.file_name };
        *slot = Some(unquoted(value));
        next = following.map(|(at, marker)| (&rest[at + marker.len()..], marker));
    }
    Ok(part)
}

const TYPE: &str = ";type=";
const FILE_NAME: &str = ";filename=";

/// Where the next attribute begins, outside quotes, and which it is. Any other ';' is content.
fn attribute(text: &str) -> Option<(usize, &'static str)> {
    let quoted = text.strip_prefix(['@', '<']).unwrap_or(text).starts_with('"');
    let skip = match quoted {
        true => text.char_indices().filter(|&(_, c)| c == '"').nth(1).map_or(0, |(at, _)| at),
        false => 0,
    };
    [TYPE, FILE_NAME]
        .into_iter()
        .filter_map(|marker| text[skip..].find(marker).map(|at| (skip + at, marker)))
        .min()
}

fn part_content(text: &str) -> PartContent {
    match (text.strip_prefix('@'), text.strip_prefix('<')) {
        (Some("-"), _) => PartContent::Stdin,
        (Some(path), _) => PartContent::File(unquoted(path).into()),
        (_, Some(path)) => PartContent::Value(unquoted(path).into()),
        _ => PartContent::Text(unquoted(text)),
    }
}

/// Takes off a pair of quotes, and the backslashes before quotes and backslashes within.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(&next @ ('"' | '\\'))) => {
                plain.push(next);
                chars.next();
            }
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(words: &[&str]) -> Payload {
        let words = ["mimus", "http://a/"].iter().chain(words);
        Payload::from_flags(&Flags::from_words(words).unwrap()).unwrap()
    }

    fn text(words: &[&str]) -> (String, &'static str) {
        match payload(words) {
            Payload::Data { bytes, media_type } => (String::from_utf8(bytes).unwrap(), media_type),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn data_is_joined_and_json_is_not() {
        assert_eq!(text(&["-d", "a=1", "--data-raw", "@b"]), ("a=1&@b".into(), FORM));
        assert_eq!(text(&["--json", "{\"a\":", "--json", "1}"]), ("{\"a\":1}".into(), JSON));
        assert_eq!(text(&["-d", ""]), (String::new(), FORM));
        assert_eq!(payload(&[]), Payload::None);
    }

    #[test]
    fn url_encoding_has_five_forms() {
        let table = [
            ("a b&c", "a+b%26c"),
            ("=a=b+", "a%3Db%2B"),
            ("n=a b", "n=a+b"),
            ("n=a@b", "n=a%40b"),
            ("~é", "~%C3%A9"),
        ];
        for (given, expected) in table {
            assert_eq!(text(&["--data-urlencode", given]).0, expected);
        }
    }

    #[test]
    fn a_missing_file_is_a_read_error() {
        for word in ["@no/such/file", "n@no/such/file"] {
            let flags = Flags::from_words(["mimus", "u", "--data-urlencode", word]).unwrap();
            let failure = Payload::from_flags(&flags).unwrap_err();
            assert_eq!(failure.exit, Exit::Read);
            assert!(failure.message.contains("no/such/file"));
        }
    }

    #[test]
    fn one_binary_file_is_streamed() {
        let file = |media_type| Payload::File { path: "f".into(), media_type };
        assert_eq!(payload(&["--data-binary", "@f"]), file(Some(FORM)));
        assert_eq!(payload(&["--json", "@f"]), file(Some(JSON)));
        assert_eq!(payload(&["-T", "f"]), file(None));
        assert_eq!(payload(&["-T", "-"]), Payload::Stdin);
    }

    #[test]
    fn form_parts_have_attributes() {
        let part = |text| form_part(text).unwrap();
        let plain = part("a=b;c=d");
        assert_eq!(plain.content, PartContent::Text("b;c=d".into()));
        let typed = part("a=b;type=text/plain; charset=x;filename=\"q;\\\"type=1\"");
        assert_eq!(typed.media_type.as_deref(), Some("text/plain; charset=x"));
        assert_eq!(typed.file_name.as_deref(), Some("q;\"type=1"));
        let file = part("a=@\"x;type=y.txt\";type=t/t");
        assert_eq!(file.content, PartContent::File("x;type=y.txt".into()));
        assert_eq!(file.media_type.as_deref(), Some("t/t"));
        assert_eq!(part("a=<v").content, PartContent::Value("v".into()));
        assert_eq!(part("a=@-").content, PartContent::Stdin);
        assert_eq!(part("a=").content, PartContent::Text(String::new()));
        for text in ["", "a", "=b"] {
            assert_eq!(form_part(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }
}
