//! Flags about redirects, retries, time, credentials and cookies.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueHint};

use super::values::{self, Secret, UserFlag};

/// Flags about redirects, retries and time.
#[derive(Debug, Args)]
#[command(next_help_heading = "Redirects, retries, time")]
pub(crate) struct PolicyFlags {
    /// Follow redirects
    ///
    /// The method changes as RFC 9110 section 15.4 has it, also one given with -X. Credentials and
    /// cookies of -u, -b and -H do not go to another origin.
    #[arg(short = 'L', long)]
    pub(crate) location: bool,

    /// Follow at most this many redirects; -1 is without limit
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = values::redirects,
        default_value = "50",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub(crate) max_redirs: usize,

    /// Try again this many times after a passing failure
    ///
    /// A passing failure is a timeout, a connection that was refused or broken, or one of the
    /// statuses 408, 429, 500, 502, 503 and 504. What the server may have begun to carry out is
    /// repeated only where that is harmless, as with GET, HEAD, PUT and DELETE. The wait is drawn
    /// from up to one second, then up to two, four and so on; a Retry-After of the server is followed.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) retry: Option<u32>,

    /// Wait this many seconds before each retry
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        requires = "retry",
        hide_short_help = true
    )]
    pub(crate) retry_delay: Option<Duration>,

    /// Begin no retry after this many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        requires = "retry",
        hide_short_help = true
    )]
    pub(crate) retry_max_time: Option<Duration>,

    /// Try again after any failure, and whatever the method
    ///
    /// A request may then be carried out twice.
    #[arg(long, requires = "retry", hide_short_help = true)]
    pub(crate) retry_all_errors: bool,

    /// Let the whole transfer take at most this many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) max_time: Option<Duration>,

    /// Let each step to a connection take at most this many seconds
    ///
    /// The steps are resolving the name, connecting, and the handshakes with TLS and a proxy; each
    /// may take 10 seconds by default.
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Wait at most this many seconds for the head of the response (300 by default)
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        hide_short_help = true
    )]
    pub(crate) head_timeout: Option<Duration>,

    /// Wait at most this many seconds between two pieces of a body (300 by default)
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        hide_short_help = true
    )]
    pub(crate) idle_timeout: Option<Duration>,
}

/// Flags about credentials and cookies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Credentials and cookies")]
pub(crate) struct AuthFlags {
    /// Log in as USER:PASSWORD; without the password it is asked for
    #[arg(short, long, value_name = "USER:PASSWORD", allow_hyphen_values = true)]
    pub(crate) user: Option<UserFlag>,

    /// Use the Basic scheme for -u, which is the default
    #[arg(long, requires = "user", conflicts_with = "digest", hide_short_help = true)]
    pub(crate) basic: bool,

    /// Use the Digest scheme for -u
    #[arg(long, requires = "user")]
    pub(crate) digest: bool,

    /// Log in with this bearer token
    #[arg(long = "bearer", alias = "oauth2-bearer", value_name = "TOKEN", conflicts_with = "user")]
    pub(crate) bearer: Option<Secret>,

    /// Take names and passwords from the netrc file
    ///
    /// It is the file that the environment's NETRC names, else ~/.netrc.
    #[arg(short, long)]
    pub(crate) netrc: bool,

    /// Take names and passwords from this netrc file
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "netrc",
        hide_short_help = true
    )]
    pub(crate) netrc_file: Option<PathBuf>,

    /// Send cookies 'NAME=VALUE; ...', or take them from a file
    ///
    /// What has no '=' is the name of a file in the format of Netscape's cookies.txt. A file, or an
    /// empty name, also makes mimus keep the cookies that come during the run.
    #[arg(short = 'b', long, value_name = "COOKIES|FILE")]
    pub(crate) cookie: Vec<String>,

    /// Write all cookies to this file at the end; '-' is the standard output
    #[arg(short = 'c', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cookie_jar: Option<PathBuf>,
}
