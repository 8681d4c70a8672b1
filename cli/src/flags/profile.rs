//! The flags of `mimus profile`, as data like the others.

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::Error};

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
