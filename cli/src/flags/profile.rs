//! The flags of `mimus profile`, as data like the others.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint,
    error::Error,
};

use super::AboutFlags;

/// Show the browsers that this program can look like.
#[derive(Debug, Parser)]
#[command(
    args_override_self = true,
    name = "mimus-profile",
    bin_name = "mimus profile",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    subcommand_help_heading = "Subjects",
    next_help_heading = "Arguments"
)]
pub(crate) struct ProfileFlags {
    #[command(subcommand)]
    pub(crate) wanted: Option<Wanted>,
    #[command(flatten)]
    pub(crate) about: AboutFlags,
}

/// What is wanted of the profiles.
#[derive(Debug, Subcommand)]
pub(crate) enum Wanted {
    /// List them: name, browser, how far it was compared with the browser itself
    #[command(disable_help_flag = true)]
    List,
    /// Show all that one says, as TOML
    #[command(disable_help_flag = true)]
    Show(One),
    /// Show where two of them differ
    #[command(disable_help_flag = true)]
    Diff(Two),
    /// Make one of what a browser sends to a server of this program's own
    ///
    /// TLS, the opening of HTTP/2, the order and the values of fields and the weights of requests are what the
    /// browser shows. HPACK's rules and what did not come are those of the profile that is nearest; the report on the
    /// standard error says where that is so.
    #[command(disable_help_flag = true, max_term_width = 100, arg = help())]
    Capture(Capture),
}

/// The flag that shows the help of one subject.
fn help() -> Arg {
    Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Show this help")
}

/// How to capture one.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write the profile to this file, in place of the standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Start this one without a window, in a profile directory that is thrown away
    ///
    /// chromium, firefox (which takes certutil), or the path of one. Without it the URL to open and what has to
    /// be trusted are told.
    #[arg(long, value_name = "BROWSER", value_hint = ValueHint::CommandName)]
    pub(crate) browser: Option<String>,

    /// How many connections of HTTP/2 are made, by which what is drawn for each is told from what is fixed
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) connections: u8,

    /// The profile's name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// One profile.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The name of a profile, or a file that holds one
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Two profiles.
#[derive(Debug, Args)]
pub(crate) struct Two {
    /// The name of a profile, or a file that holds one
    #[arg(value_name = "A")]
    pub(crate) one: String,
    /// The one to compare it with
    #[arg(value_name = "B")]
    pub(crate) other: String,
}

impl ProfileFlags {
    /// Reads the words behind `mimus profile`.
    pub(crate) fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let words = std::iter::once(OsString::from("mimus profile")).chain(words);
        let matches = ProfileFlags::command().try_get_matches_from(words)?;
        ProfileFlags::from_arg_matches(&matches)
    }
}
