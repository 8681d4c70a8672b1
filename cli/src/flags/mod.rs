//! The flags, as data: help, the man page and the completions are made from these items and their
//! doc comments, and from nothing else.

mod access;
mod connection;
pub(crate) mod fingerprint;
pub(crate) mod grpc;
mod output;
pub(crate) mod profile;
mod request;
pub(crate) mod sse;
pub(crate) mod values;
pub(crate) mod ws;

use clap::{
    Args, CommandFactory, FromArgMatches, Parser, ValueHint,
    error::{Error, ErrorKind},
};
use http::Method;

pub(crate) use self::{
    access::{AuthFlags, PolicyFlags},
    connection::{ConnectionFlags, MaxVersion, TlsFlags},
    output::{ColorWhen, OutputFlags, TerminalFlags},
    request::{DataKind, DataPart, RequestFlags},
};

/// HTTP from the shell.
#[derive(Parser)]
#[command(
    args_override_self = true,
    name = "mimus",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100,
    override_usage = "mimus [OPTIONS] [METHOD] URL...",
    next_help_heading = "Arguments"
)]
pub(crate) struct Flags {
    /// What to do, and where
    ///
    /// URLs, fetched one after the other over the same connections. A URL without a scheme is taken
    /// as http. Before the first URL may stand a method: get, head, post, put, patch, delete or
    /// options, or the word request and any method at all. Without one the method is GET, or POST
    /// when there is data, or PUT with -T. With the word grpc in front of all it calls gRPC methods,
    /// with the word sse it follows server-sent events, with the word ws it talks over a WebSocket, with
    /// the word fingerprint it shows what clients look like: see mimus grpc --help, mimus sse --help,
    /// mimus ws --help and mimus fingerprint --help.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    words: Vec<String>,

    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) terminal: TerminalFlags,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
    #[command(flatten)]
    pub(crate) auth: AuthFlags,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
    #[command(flatten)]
    pub(crate) about: AboutFlags,

    /// The data flags in the order in which they were given.
    #[arg(skip)]
    pub(crate) data: Vec<DataPart>,
}

impl std::fmt::Debug for Flags {
    /// Nothing: a command line is full of secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Flags(..)")
    }
}

/// Flags that tell about this program and do nothing else.
#[derive(Debug, Args)]
#[command(next_help_heading = "About")]
pub(crate) struct AboutFlags {
    /// Show this help; with "all", every flag and the exit codes
    #[arg(
        short,
        long,
        value_name = "all",
        num_args = 0..=1,
        default_missing_value = "short",
        hide_possible_values = true
    )]
    pub(crate) help: Option<HelpTopic>,

    /// Show the version and what was built in
    #[arg(short = 'V', long)]
    pub(crate) version: bool,

    /// Print the man page, in roff
    ///
    /// To read it at once: mimus --man | man -l -
    #[arg(long, hide_short_help = true)]
    pub(crate) man: bool,

    /// Print a completion script for this shell
    #[arg(long, value_name = "SHELL", hide_short_help = true)]
    pub(crate) completions: Option<clap_complete::Shell>,
}

/// How much help is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HelpTopic {
    /// The everyday flags, one line each.
    #[value(hide = true)]
    Short,
    /// Every flag, in full.
    All,
}

/// What the words of the command line ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    /// The method, when one was named.
    pub(crate) method: Option<Method>,
    /// The URLs as given; at least one.
    pub(crate) urls: Vec<String>,
}

impl Flags {
    /// Reads the process's command line.
    pub(crate) fn from_env() -> Result<Self, Error> {
        Flags::from_words(std::env::args_os())
    }

    /// Reads a command line; the first word is the program's name.
    pub(crate) fn from_words<I, T>(words: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        let matches = Flags::command().try_get_matches_from(words)?;
        let mut flags = Flags::from_arg_matches(&matches)?;
        flags.data = request::data_in_order(&matches);
        Ok(flags)
    }

    /// Splits the words into a method and URLs.
    pub(crate) fn targets(&self) -> Result<Targets, Error> {
        let (method, urls) = match self.words.split_first() {
            Some((word, rest)) if word == "request" => {
                let (name, urls) =
                    rest.split_first().ok_or_else(|| usage("request needs a METHOD"))?;
                (Some(values::method(name).map_err(usage)?), urls)
            }
            Some((word, rest)) => match named_method(word) {
                Some(method) => (Some(method), rest),
                None => (None, &self.words[..]),
            },
            None => (None, &[][..]),
        };
        if urls.is_empty() {
            return Err(usage("no URL was given; see mimus --help"));
        }
        self.check(urls)?;
        Ok(Targets { method, urls: urls.to_vec() })
    }
}

impl Flags {
    /// Checks what clap's relations between flags cannot say.
    fn check(&self, urls: &[String]) -> Result<(), Error> {
        if self.request.head && !self.request.get && !self.data.is_empty() {
            return Err(usage("-I sends no body; put the data into the query with -G"));
        }
        let upload =
            self.request.upload_file.as_deref().is_some_and(|path| path.as_os_str() == "-");
        if upload && urls.len() > 1 {
            return Err(usage("the standard input can be sent to one URL only"));
        }
        Ok(())
    }
}

/// The words that name a method in front of the URLs.
fn named_method(word: &str) -> Option<Method> {
    match word.to_ascii_lowercase().as_str() {
        "get" => Some(Method::GET),
        "head" => Some(Method::HEAD),
        "post" => Some(Method::POST),
        "put" => Some(Method::PUT),
        "patch" => Some(Method::PATCH),
        "delete" => Some(Method::DELETE),
        "options" => Some(Method::OPTIONS),
        _ => None,
    }
}

/// A mistake in the command line of `F`, told in clap's manner.
pub(crate) fn usage_of<F: CommandFactory>(message: impl std::fmt::Display) -> Error {
    F::command().error(ErrorKind::ValueValidation, message)
}

/// A mistake in the command line of `mimus` itself.
pub(crate) fn usage(message: impl std::fmt::Display) -> Error {
    usage_of::<Flags>(message)
}

/// The one URL that the words behind a subcommand have to be.
fn one_url<F: CommandFactory>(words: &[String]) -> Result<&str, Error> {
    match words {
        [url] => Ok(url),
        [] => {
            let command = F::command();
            let name = command.get_bin_name().unwrap_or("mimus");
            Err(usage_of::<F>(format!("no URL was given; see {name} --help")))
        }
        _ => Err(usage_of::<F>("one URL at a time")),
    }
}

#[cfg(test)]
mod tests;
