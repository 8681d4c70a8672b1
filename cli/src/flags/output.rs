//! Flags about what is written, where, and how it looks.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::values::{self, ResumeAt};

/// Flags about what is written, and where.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Write the body to this file; '-' is the standard output
    ///
    /// The first -o is for the first URL, the second for the second, and so on. The file is written
    /// as the body comes, so that -C - can go on with what a broken download left.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Vec<PathBuf>,

    /// Write each body without an -o to a file named as the URL's last segment
    #[arg(short = 'O', long)]
    pub(crate) remote_name: bool,

    /// Put the files of -o and -O into this directory
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        hide_short_help = true
    )]
    pub(crate) output_dir: Option<PathBuf>,

    /// Make the directories that the files of -o and -O need
    #[arg(long, hide_short_help = true)]
    pub(crate) create_dirs: bool,

    /// Go on with a download at this byte; '-' after what the file holds
    ///
    /// A file that is complete already is a success. A server that does not send the rest alone ends
    /// it with exit code 33, and the file stays as it was. With --retry, a download that breaks is
    /// gone on with in the same run, by If-Range where the server gave an entity tag.
    #[arg(short = 'C', long, value_name = "OFFSET", conflicts_with = "range")]
    pub(crate) continue_at: Option<ResumeAt>,

    /// Write the response heads in front of the body
    #[arg(short, long)]
    pub(crate) include: bool,

    /// Write the response heads to this file; '-' is the standard output
    #[arg(
        short = 'D',
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        hide_short_help = true
    )]
    pub(crate) dump_header: Option<PathBuf>,

    /// Write this text after each transfer, such as '%{http_code} %{time_total}\n'
    ///
    /// %{NAME} stands for a fact about the transfer, %header{NAME} for a field of the response,
    /// %{json} for all facts at once; \n, \r and \t are what they are in C. %{stderr} and %{stdout}
    /// direct what follows, %{onerror} ends the text of a success. @FILE reads the text from a file,
    /// @- from the standard input.
    #[arg(short, long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub(crate) write_out: Option<String>,

    /// Record every exchange in this file, as HAR 1.2
    ///
    /// Redirects and retries are exchanges too. Passwords, tokens and cookies are left out, unless
    /// --show-secrets is given. Of a body the first MiB is kept.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) har: Option<PathBuf>,

    /// Fail with exit code 22, and write no body, when the status is 400 or more
    #[arg(short, long)]
    pub(crate) fail: bool,

    /// Fail with exit code 22 when the status is 400 or more, but write the body
    #[arg(long, conflicts_with = "fail", hide_short_help = true)]
    pub(crate) fail_with_body: bool,

    /// Refuse a body of more bytes than this; k, M and G multiply
    #[arg(long, value_name = "BYTES", value_parser = values::size, hide_short_help = true)]
    pub(crate) max_filesize: Option<u64>,
}

/// Flags about what is told, and how it looks on a terminal.
#[derive(Args)]
#[command(next_help_heading = "Messages and looks")]
pub(crate) struct TerminalFlags {
    /// Tell what happens: connections, TLS, heads as sent (>) and as received (<), times
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Let -v and --har show passwords, tokens and cookies
    #[arg(long, hide_short_help = true)]
    pub(crate) show_secrets: bool,

    /// Tell nothing, not even why it failed
    #[arg(short, long)]
    pub(crate) silent: bool,

    /// With -s, tell why it failed all the same
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,

    /// Show progress on every transfer
    ///
    /// Without it a bar is shown for uploads from files and downloads to files. It is always on the
    /// standard error, and only when that is a terminal.
    #[arg(short = '#', long, conflicts_with = "no_progress", hide_short_help = true)]
    pub(crate) progress_bar: bool,

    /// Show no progress
    #[arg(long, hide_short_help = true)]
    pub(crate) no_progress: bool,

    /// Write each piece of a body when it comes, even to a terminal
    ///
    /// A terminal is otherwise shown a short text at once, formatted and in pages. Files and pipes
    /// are always written at once.
    #[arg(short = 'N', long, hide_short_help = true)]
    pub(crate) no_buffer: bool,

    /// Whether heads and JSON are coloured
    ///
    /// auto does so on a terminal, unless the environment's NO_COLOR is set or TERM is dumb. JSON is
    /// coloured where it is indented.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t = ColorWhen::Auto,
        hide_short_help = true
    )]
    pub(crate) color: ColorWhen,

    /// Indent JSON, whether or not it goes to a terminal
    #[arg(long, overrides_with = "no_pretty")]
    pub(crate) pretty: bool,

    /// Show JSON as it came, on a terminal too
    #[arg(long, overrides_with = "pretty", hide_short_help = true)]
    pub(crate) no_pretty: bool,

    /// Use a pager on a terminal, even for short text
    ///
    /// Text longer than the screen is shown in pages without it. The pager is the one that the
    /// environment's PAGER names, else less.
    #[arg(long, overrides_with = "no_pager", hide_short_help = true)]
    pub(crate) pager: bool,

    /// Use no pager
    #[arg(long, overrides_with = "pager", hide_short_help = true)]
    pub(crate) no_pager: bool,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal.
    Auto,
    /// Even into a pipe.
    Always,
    /// Not at all.
    Never,
}
