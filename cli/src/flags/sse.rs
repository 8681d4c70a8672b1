//! The flags of `mimus sse`, as data like the others.

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueHint, error::Error};

use super::{
    AboutFlags, AuthFlags, ConnectionFlags, Flags, PolicyFlags, RequestFlags, TlsFlags, one_url,
    request, usage_of,
};

/// Follow server-sent events.
#[derive(Parser)]
#[command(
    args_override_self = true,
    name = "mimus-sse",
    bin_name = "mimus sse",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100,
    override_usage = "mimus sse [OPTIONS] URL",
    next_help_heading = "Arguments"
)]
pub(crate) struct SseFlags {
    /// Where the events come from
    ///
    /// A URL without a scheme is taken as http. Without data it is asked by GET, and when the stream ends
    /// or its connection breaks, again, behind the last event, until the server answers 204. With data
    /// it is asked by POST, once.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    words: Vec<String>,

    #[command(flatten)]
    stream: StreamFlags,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    auth: AuthFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    about: AboutFlags,
}

impl std::fmt::Debug for SseFlags {
    /// Nothing: a command line is full of secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SseFlags(..)")
    }
}

/// Flags about the stream, and how it is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct StreamFlags {
    /// Show events of this type only; one that names none is a "message"
    #[arg(long, value_name = "TYPE")]
    pub(crate) event: Vec<String>,

    /// Show each event as one line of JSON: its event, id and data
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// Show when each event came, in seconds since the beginning
    #[arg(long)]
    pub(crate) timing: bool,

    /// Stop after this many events
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,

    /// Begin behind the event with this ID
    #[arg(long, value_name = "ID")]
    pub(crate) last_event_id: Option<String>,

    /// Stop when the stream ends
    #[arg(long, overrides_with = "reconnect")]
    pub(crate) no_reconnect: bool,

    /// Connect again when the stream ends, also after sending data
    ///
    /// The data is sent again each time.
    #[arg(long, overrides_with = "no_reconnect", hide_short_help = true)]
    pub(crate) reconnect: bool,

    /// Give up when this many attempts in a row to connect again have failed
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub(crate) max_failures: Option<u32>,

    /// Tell what happens: connections, TLS, heads as sent (>) and as received (<)
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// What the words behind `mimus sse` say.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// As given.
    url: Vec<String>,
    pub(crate) stream: StreamFlags,
    pub(crate) about: AboutFlags,
    /// What makes a request is what makes any other.
    pub(crate) flags: Flags,
}

impl Wanted {
    /// Reads the words behind `mimus sse`.
    pub(crate) fn from_words(
        words: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> Result<Self, Error> {
        let words = std::iter::once("mimus sse".into()).chain(words);
        let matches = SseFlags::command().try_get_matches_from(words)?;
        let given = SseFlags::from_arg_matches(&matches)?;
        let mut flags = Flags::from_words(["mimus"])?;
        flags.data = request::data_in_order(&matches);
        flags.request = given.request;
        // A source that moved is followed, as browsers do.
        flags.policy = PolicyFlags { location: true, ..given.policy };
        flags.auth = given.auth;
        flags.connection = given.connection;
        flags.tls = given.tls;
        Ok(Wanted { url: given.words, stream: given.stream, about: given.about, flags })
    }

    /// The URL, as given.
    pub(crate) fn url(&self) -> Result<&str, Error> {
        let request = &self.flags.request;
        if request.head || request.upload_file.is_some() || request.range.is_some() {
            return Err(usage_of::<SseFlags>("-I, -T and -r make no stream of events"));
        }
        one_url::<SseFlags>(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> Result<Wanted, Error> {
        Wanted::from_words(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn one_url_is_followed() {
        let given =
            wanted("--count 3 h:1/x --event a --event b -d x -H a:b --idle-timeout 2").unwrap();
        assert_eq!(given.url().unwrap(), "h:1/x");
        assert_eq!(
            (given.stream.count, &given.stream.event[..]),
            (Some(3), &["a", "b"].map(str::to_owned)[..])
        );
        assert_eq!(given.flags.data.len(), 1);
        assert_eq!(given.flags.policy.idle_timeout, Some(std::time::Duration::from_secs(2)));
        for line in ["", "a b", "-I h", "-T f h", "-r 0-1 h"] {
            assert!(wanted(line).unwrap().url().is_err(), "{line}");
        }
    }

    #[test]
    fn the_last_word_about_reconnecting_counts() {
        let both = |line: &str| {
            let stream = wanted(line).unwrap().stream;
            (stream.reconnect, stream.no_reconnect)
        };
        assert_eq!(both("h --reconnect --no-reconnect"), (false, true));
        assert_eq!(both("h --no-reconnect --reconnect"), (true, false));
    }
}
