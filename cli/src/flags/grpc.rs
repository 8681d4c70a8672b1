//! The flags of `mimus grpc`, as data like the others.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, ValueHint, error::Error};

use super::{AboutFlags, ConnectionFlags, TlsFlags, usage_of, values, values::HeaderFlag};

/// Call gRPC methods with JSON.
#[derive(Parser)]
#[command(
    args_override_self = true,
    name = "mimus-grpc",
    bin_name = "mimus grpc",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100,
    override_usage = "mimus grpc [OPTIONS] URL SERVICE/METHOD\n       \
                      mimus grpc [OPTIONS] URL list [SERVICE]\n       \
                      mimus grpc [OPTIONS] URL describe [NAME]",
    next_help_heading = "Arguments"
)]
pub(crate) struct GrpcFlags {
    /// Where, and what: a method to call, list, or describe
    ///
    /// A method is package.Service/Method. "list" shows the services, or the methods of one;
    /// "describe" shows a service, method, message or enum as its definition, or all services. With
    /// --protoset or --proto these two need no URL. A URL without a scheme is taken as http, and the
    /// server is taken to speak HTTP/2, over plain text too, unless --http1.1 says otherwise.
    #[arg(value_name = "WORDS", value_hint = ValueHint::Url)]
    words: Vec<String>,

    #[command(flatten)]
    pub(crate) call: CallFlags,
    #[command(flatten)]
    pub(crate) schema: SchemaFlags,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
    #[command(flatten)]
    pub(crate) about: AboutFlags,
}

impl std::fmt::Debug for GrpcFlags {
    /// Nothing: a command line is full of secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GrpcFlags(..)")
    }
}

/// Flags that shape a call.
#[derive(Args)]
#[command(next_help_heading = "Call")]
pub(crate) struct CallFlags {
    /// Send these messages: JSON documents, one after another
    ///
    /// @FILE reads a file, @ or @- the standard input, as it comes. Without it an empty message is
    /// sent, or none by a method that takes many.
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) data: Option<String>,

    /// Send metadata: 'name: value'
    ///
    /// The value of a name that ends in -bin is base64. @FILE reads one a line.
    #[arg(short = 'H', long, value_name = "FIELD", allow_hyphen_values = true)]
    pub(crate) header: Vec<HeaderFlag>,

    /// Give the call up after this many seconds, and tell the server so
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) max_time: Option<Duration>,

    /// Compress what is sent, by gzip
    #[arg(long)]
    pub(crate) gzip: bool,

    /// Take messages of at most this size; 4M by default
    #[arg(long, value_name = "BYTES", value_parser = values::size, hide_short_help = true)]
    pub(crate) max_message: Option<u64>,

    /// Show fields that have their default value too
    #[arg(long)]
    pub(crate) emit_defaults: bool,

    /// Show each message on one line
    #[arg(short, long)]
    pub(crate) compact: bool,

    /// Show the metadata that comes before and after the messages
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Flags about where the definitions come from: from the server itself (reflection) without them.
#[derive(Args)]
#[command(next_help_heading = "Definitions")]
pub(crate) struct SchemaFlags {
    /// Take the definitions from this descriptor set, made by protoc or buf
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "proto"
    )]
    pub(crate) protoset: Vec<PathBuf>,

    /// Take the definitions from this .proto file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) proto: Vec<PathBuf>,

    /// Look for imported .proto files here; in the current directory by default
    #[arg(
        short = 'I',
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        requires = "proto"
    )]
    pub(crate) import_path: Vec<PathBuf>,
}

/// What the words ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Where; not needed for what the files say.
    pub(crate) url: Option<String>,
    pub(crate) what: What,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The services, or one's methods.
    List(Option<String>),
    /// One definition, or those of all services.
    Describe(Option<String>),
    /// A service and its method.
    Call(String, String),
}

impl GrpcFlags {
    /// Reads the words behind `mimus grpc`.
    pub(crate) fn from_words(
        words: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> Result<Self, Error> {
        GrpcFlags::try_parse_from(std::iter::once("mimus grpc".into()).chain(words))
    }

    /// Makes sense of the words.
    pub(crate) fn wanted(&self) -> Result<Wanted, Error> {
        let local = !self.schema.protoset.is_empty() || !self.schema.proto.is_empty();
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (url, rest) = match words[..] {
            [] => return Err(usage_of::<GrpcFlags>("no URL was given; see mimus grpc --help")),
            ["list" | "describe", ..] if local => (None, &words[..]),
            [url, ref rest @ ..] => (Some(url.to_owned()), rest),
        };
        let owned = |name: &str| Some(name.to_owned());
        let what = match *rest {
            ["list"] => What::List(None),
            ["list", service] => What::List(owned(service)),
            ["describe"] => What::Describe(None),
            ["describe", name] => What::Describe(owned(name.trim_start_matches('.'))),
            [method] => {
                let method = method.trim_start_matches('/');
                let parts = method.rsplit_once('/').or_else(|| method.rsplit_once('.'));
                let Some((service, name)) = parts else {
                    return Err(usage_of::<GrpcFlags>(format!("{method:?} is not SERVICE/METHOD")));
                };
                What::Call(service.to_owned(), name.to_owned())
            }
            [] => {
                return Err(usage_of::<GrpcFlags>(
                    "what is wanted there? SERVICE/METHOD, list or describe",
                ));
            }
            _ => return Err(usage_of::<GrpcFlags>("too many words; see mimus grpc --help")),
        };
        Ok(Wanted { url, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> Result<Wanted, Error> {
        GrpcFlags::from_words(line.split(' ').map(Into::into)).unwrap().wanted()
    }

    #[test]
    fn words_say_where_and_what() {
        let call = |url: &str| Wanted {
            url: Some(url.into()),
            what: What::Call("p.Service".into(), "Method".into()),
        };
        for method in ["p.Service/Method", "/p.Service/Method", "p.Service.Method"] {
            assert_eq!(wanted(&format!("localhost:1 {method}")).unwrap(), call("localhost:1"));
        }
        let list = |url: Option<&str>, service: Option<&str>| Wanted {
            url: url.map(Into::into),
            what: What::List(service.map(Into::into)),
        };
        assert_eq!(wanted("h list").unwrap(), list(Some("h"), None));
        assert_eq!(wanted("h list p.S").unwrap(), list(Some("h"), Some("p.S")));
        assert_eq!(wanted("--protoset f list").unwrap(), list(None, None));
        assert_eq!(wanted("--proto f h list").unwrap(), list(Some("h"), None));
        let described = wanted("h describe .p.M").unwrap();
        assert_eq!(described.what, What::Describe(Some("p.M".into())));
    }

    #[test]
    fn words_that_say_nothing_are_refused() {
        for line in ["h", "h method", "h list a b", "list"] {
            assert!(wanted(line).is_err(), "{line}");
        }
        assert!(GrpcFlags::from_words([]).unwrap().wanted().is_err());
    }
}
