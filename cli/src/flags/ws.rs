//! The flags of `mimus ws`, as data like the others.

use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueHint, error::Error};

use super::{
    AboutFlags, AuthFlags, ConnectionFlags, Flags, PolicyFlags, TlsFlags, one_url, values,
    values::HeaderFlag,
};

/// Talk over a WebSocket.
#[derive(Parser)]
#[command(
    args_override_self = true,
    name = "mimus-ws",
    bin_name = "mimus ws",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100,
    override_usage = "mimus ws [OPTIONS] URL",
    next_help_heading = "Arguments"
)]
pub(crate) struct WsFlags {
    /// Where the WebSocket is
    ///
    /// A URL without a scheme is taken as ws. It is opened over HTTP/1.1, with --as as that browser opens
    /// it; with --http2 over HTTP/2 where the server takes WebSockets there, with --http2-prior-knowledge over
    /// nothing else.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    words: Vec<String>,

    #[command(flatten)]
    socket: SocketFlags,
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

impl std::fmt::Debug for WsFlags {
    /// Nothing: a command line is full of secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WsFlags(..)")
    }
}

/// Flags about the messages, and what is agreed on for them.
#[derive(Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct SocketFlags {
    /// Send each line as a message of text, which is the default
    #[arg(long, overrides_with_all = ["binary", "hex"])]
    pub(crate) text: bool,

    /// Send each line, without its end, as a message of bytes
    #[arg(long, overrides_with_all = ["text", "hex"])]
    pub(crate) binary: bool,

    /// Send each line, which is in hex, as a message of bytes, and show such messages so
    #[arg(long, overrides_with_all = ["text", "binary"])]
    pub(crate) hex: bool,

    /// Send one line at most, receive one message, and close
    #[arg(short = '1', long)]
    pub(crate) one_message: bool,

    /// At the end of the input, leave at once
    ///
    /// Without it the socket is then closed in order, and what comes until the server has closed too is
    /// shown.
    #[arg(long, conflicts_with = "no_close")]
    pub(crate) exit_on_eof: bool,

    /// At the end of the input, stay until the server closes
    #[arg(long)]
    pub(crate) no_close: bool,

    /// Show when each message came, in seconds since the socket was open, and how long opening took
    #[arg(long)]
    pub(crate) timing: bool,

    /// Tell what happens: heads as sent (>) and as received (<), pings, pongs, the close
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Offer this subprotocol; of several, the best first
    #[arg(long, value_name = "NAME")]
    pub(crate) subprotocol: Vec<String>,

    /// Say that this page asks (RFC 6455 section 10.2)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Option<String>,

    /// Offer compression (permessage-deflate, RFC 7692)
    #[arg(long)]
    pub(crate) deflate: bool,

    /// Take messages of at most this size; 16M by default
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub(crate) max_message: Option<u64>,

    /// After this many seconds of silence, ask whether the server lives
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) ping_interval: Option<Duration>,

    /// Let its answer take at most this many seconds; 20 by default
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        requires = "ping_interval",
        hide_short_help = true
    )]
    pub(crate) pong_timeout: Option<Duration>,

    /// Let closing take at most this many seconds; 5 by default
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = values::seconds,
        hide_short_help = true
    )]
    pub(crate) close_timeout: Option<Duration>,

    /// Send this field with the handshake: 'Name: value'; 'Name:' takes one out, @FILE reads them
    #[arg(short = 'H', long, value_name = "FIELD", allow_hyphen_values = true)]
    header: Vec<HeaderFlag>,

    /// Call yourself this; '' sends no User-Agent
    #[arg(short = 'A', long, value_name = "NAME")]
    user_agent: Option<String>,
}

/// What the words behind `mimus ws` say.
pub(crate) struct Wanted {
    /// As given.
    url: Vec<String>,
    pub(crate) socket: SocketFlags,
    pub(crate) about: AboutFlags,
    /// What makes a request is what makes any other.
    pub(crate) flags: Flags,
}

impl Wanted {
    /// Reads the words behind `mimus ws`.
    pub(crate) fn from_words(
        words: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> Result<Self, Error> {
        let words = std::iter::once("mimus ws".into()).chain(words);
        let matches = WsFlags::command().try_get_matches_from(words)?;
        let mut given = WsFlags::from_arg_matches(&matches)?;
        let mut flags = Flags::from_words(["mimus"])?;
        flags.request.header = std::mem::take(&mut given.socket.header);
        flags.request.user_agent = given.socket.user_agent.take();
        flags.policy = given.policy;
        flags.auth = given.auth;
        flags.connection = given.connection;
        flags.tls = given.tls;
        Ok(Wanted { url: given.words, socket: given.socket, about: given.about, flags })
    }

    /// The URL, as given.
    pub(crate) fn url(&self) -> Result<&str, Error> {
        one_url::<WsFlags>(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> Result<Wanted, Error> {
        Wanted::from_words(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn one_url_is_opened() {
        let line = "-1 --subprotocol a --subprotocol b -H x:y -A me --max-message 2k h:1/x";
        let given = wanted(line).unwrap();
        assert_eq!(given.url().unwrap(), "h:1/x");
        assert_eq!(given.socket.subprotocol, ["a", "b"]);
        assert_eq!((given.socket.one_message, given.socket.max_message), (true, Some(2048)));
        assert_eq!(given.flags.request.user_agent.as_deref(), Some("me"));
        assert_eq!(given.flags.request.header.len(), 1);
        for line in ["", "a b"] {
            assert!(wanted(line).unwrap().url().is_err(), "{line}");
        }
        assert!(wanted("--exit-on-eof --no-close h").is_err());
        assert!(wanted("--pong-timeout 1 h").is_err());
    }

    #[test]
    fn the_last_word_about_the_kind_of_messages_counts() {
        let kind = |line: &str| {
            let socket = wanted(line).unwrap().socket;
            (socket.text, socket.binary, socket.hex)
        };
        assert_eq!(kind("h --hex --binary"), (false, true, false));
        assert_eq!(kind("h --binary --hex --text"), (true, false, false));
    }
}
