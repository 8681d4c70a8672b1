//! Flags that shape the request.

use std::{path::PathBuf, time::Duration};

use clap::{ArgMatches, Args, ValueHint};
use http::Method;
use mimus::profile::Kind;

use super::values::{self, HeaderFlag};

/// Flags that shape the request.
#[derive(Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestFlags {
    /// Use this method, whatever the other flags would choose
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = values::method)]
    pub(crate) request: Option<Method>,

    /// With --as: what the request is to the browser: navigate, fetch, xhr, script, style, image...
    ///
    /// Fields, their order and the rank among other requests follow from it. Unless given, a GET is a
    /// navigation, a form's POST a form-post, and anything else a fetch. -e names the page that asks.
    #[arg(long, value_name = "KIND", value_parser = values::kind, hide_short_help = true)]
    pub(crate) kind: Option<Kind>,

    /// Send a field: 'Name: value'
    ///
    /// 'Name;' sends it empty, 'Name:' takes out a default one, and @FILE reads one field a line.
    /// Fields are sent in the order and the case given.
    #[arg(short = 'H', long, value_name = "FIELD", allow_hyphen_values = true)]
    pub(crate) header: Vec<HeaderFlag>,

    /// Send data as a form does, by POST
    ///
    /// @FILE reads a file and leaves out its line ends and zero bytes, @- does so with the standard
    /// input. Several are joined by '&'.
    #[arg(short, long, value_name = "DATA", allow_hyphen_values = true)]
    data: Vec<String>,

    /// Send data as -d does, with no meaning given to @
    #[arg(long, value_name = "DATA", allow_hyphen_values = true, hide_short_help = true)]
    data_raw: Vec<String>,

    /// Send data as -d does, files byte for byte
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    data_binary: Vec<String>,

    /// Send data as -d does, percent-encoded
    ///
    /// 'TEXT' and '=TEXT' encode all of it, 'NAME=TEXT' what follows the first '=', '@FILE' and
    /// 'NAME@FILE' what is in the file.
    #[arg(long, value_name = "DATA", allow_hyphen_values = true, hide_short_help = true)]
    data_urlencode: Vec<String>,

    /// Send JSON, and ask for JSON
    ///
    /// As --data-binary, with Content-Type and Accept set to application/json unless -H sets them.
    /// Several are joined without anything between.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    json: Vec<String>,

    /// Send a multipart form: NAME=VALUE, NAME=@FILE or NAME=<FILE
    ///
    /// @ uploads a file, < sends a file's text as a value; '-' is the standard input. Behind the
    /// value may stand ;type=MEDIA/TYPE and ;filename=NAME. Files are streamed.
    #[arg(
        short = 'F',
        long,
        value_name = "PART",
        allow_hyphen_values = true,
        conflicts_with_all = DATA
    )]
    pub(crate) form: Vec<String>,

    /// Put the data into the URL's query and send no body
    #[arg(short = 'G', long, conflicts_with_all = ["form", "upload_file"])]
    pub(crate) get: bool,

    /// Send this file by PUT; '-' is the standard input
    ///
    /// A URL that ends with '/' gets the file's name appended. The file is streamed; what comes from
    /// the standard input is sent chunked.
    #[arg(
        short = 'T',
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = DATA,
        conflicts_with = "form"
    )]
    pub(crate) upload_file: Option<PathBuf>,

    /// Ask for the head alone, by HEAD, and show it
    #[arg(short = 'I', long, conflicts_with_all = ["form", "upload_file"])]
    pub(crate) head: bool,

    /// Ask for these bytes only, such as 0-499 or -500
    #[arg(
        short,
        long,
        value_name = "RANGE",
        value_parser = range,
        allow_hyphen_values = true
    )]
    pub(crate) range: Option<String>,

    /// Ask for a compressed body, and show it decoded
    ///
    /// Without it nothing is asked for, and a body is shown as it comes.
    #[arg(long)]
    pub(crate) compressed: bool,

    /// Say who asks; '' says nothing
    #[arg(short = 'A', long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) user_agent: Option<String>,

    /// Say where the link was; ';auto' at its end does so on redirects too
    #[arg(short = 'e', long, value_name = "URL", hide_short_help = true)]
    pub(crate) referer: Option<String>,

    /// Ask before sending a body, and wait this many seconds for the answer
    ///
    /// Sends Expect: 100-continue. When the wait is over the body is sent all the same.
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        hide_short_help = true
    )]
    pub(crate) expect100_timeout: Option<Duration>,
}

/// The flags that make up a body of data, which other kinds of body exclude.
const DATA: [&str; 5] = ["data", "data_raw", "data_binary", "data_urlencode", "json"];

/// One -d, --json or other data flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataPart {
    pub(crate) kind: DataKind,
    pub(crate) text: String,
}

/// Which flag the data came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataKind {
    /// -d
    Text,
    /// --data-raw
    Raw,
    /// --data-binary
    Binary,
    /// --data-urlencode
    UrlEncode,
    /// --json
    Json,
}

/// The data flags in the order of the command line, which a struct of lists cannot tell.
pub(super) fn data_in_order(matches: &ArgMatches) -> Vec<DataPart> {
    use DataKind::{Binary, Json, Raw, Text, UrlEncode};
    let mut found: Vec<(usize, DataPart)> = Vec::new();
    for (id, kind) in DATA.into_iter().zip([Text, Raw, Binary, UrlEncode, Json]) {
        let texts = matches.get_many::<String>(id).into_iter().flatten();
        let indices = matches.indices_of(id).into_iter().flatten();
        found
            .extend(indices.zip(texts).map(|(i, text)| (i, DataPart { kind, text: text.clone() })));
    }
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, part)| part).collect()
}

/// The right-hand side of `Range: bytes=` (RFC 9110 section 14.1.2).
fn range(text: &str) -> Result<String, String> {
    let one = |spec: &str| {
        let (first, last) = spec.trim().split_once('-')?;
        let number = |s: &str| s.is_empty() || s.bytes().all(|b| b.is_ascii_digit());
        (number(first) && number(last) && !(first.is_empty() && last.is_empty())).then_some(())
    };
    match text.split(',').all(|spec| one(spec).is_some()) {
        true => Ok(text.to_owned()),
        false => Err("write it as FIRST-LAST, FIRST- or -COUNT".to_owned()),
    }
}
