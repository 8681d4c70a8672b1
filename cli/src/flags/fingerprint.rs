//! The flags of `mimus fingerprint`, as data like the others.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueHint, error::Error};

use super::{
    AboutFlags, AuthFlags, ConnectionFlags, Flags, RequestFlags, TlsFlags, one_url, request,
    usage_of,
};

/// Show what clients look like on the wire.
#[derive(Parser)]
#[command(
    args_override_self = true,
    name = "mimus-fingerprint",
    bin_name = "mimus fingerprint",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100,
    override_usage = "mimus fingerprint [OPTIONS] URL\n       mimus fingerprint [OPTIONS] --listen [ADDRESS]",
    next_help_heading = "Arguments"
)]
pub(crate) struct FingerprintFlags {
    /// What would be asked for
    ///
    /// The request is sent to a server of this program's own that goes by the URL's name, and to nobody
    /// else. A URL without a scheme is taken as https.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    words: Vec<String>,

    #[command(flatten)]
    look: LookFlags,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    auth: AuthFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    about: AboutFlags,
}

impl std::fmt::Debug for FingerprintFlags {
    /// Nothing: a command line is full of secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FingerprintFlags(..)")
    }
}

/// Flags about whom to look at, and how it is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fingerprints")]
pub(crate) struct LookFlags {
    /// Show whoever connects here, in place of this program
    ///
    /// A port of its own choice on 127.0.0.1 unless the address says another.
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:0"
    )]
    pub(crate) listen: Option<String>,

    /// Show everything, as one line of JSON for each connection
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// With --listen: the certificate's hosts and addresses, beside localhost's and the one listened at
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    pub(crate) name: Vec<String>,

    /// With --listen: write the certificate that clients have to trust to this file, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_file: Option<PathBuf>,

    /// With --listen: stop after this many connections
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
}

/// What the words behind `mimus fingerprint` say.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// As given.
    url: Vec<String>,
    pub(crate) look: LookFlags,
    pub(crate) about: AboutFlags,
    /// What makes a request is what makes any other.
    pub(crate) flags: Flags,
}

/// Whom to look at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// This program, asking for a URL.
    Us(&'a str),
    /// Whoever connects to an address.
    Them(&'a str),
}

impl Wanted {
    /// Reads the words behind `mimus fingerprint`.
    pub(crate) fn from_words(
        words: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> Result<Self, Error> {
        let words = std::iter::once("mimus fingerprint".into()).chain(words);
        let matches = FingerprintFlags::command().try_get_matches_from(words)?;
        let given = FingerprintFlags::from_arg_matches(&matches)?;
        let mut flags = Flags::from_words(["mimus"])?;
        flags.data = request::data_in_order(&matches);
        flags.request = given.request;
        flags.auth = given.auth;
        flags.connection = given.connection;
        flags.tls = given.tls;
        Ok(Wanted { url: given.words, look: given.look, about: given.about, flags })
    }

    /// Whom to look at.
    pub(crate) fn subject(&self) -> Result<Subject<'_>, Error> {
        match (&self.look.listen, &self.url[..]) {
            (None, words) => one_url::<FingerprintFlags>(words).map(Subject::Us),
            (Some(addr), []) => Ok(Subject::Them(addr)),
            (Some(_), _) => {
                Err(usage_of::<FingerprintFlags>("--listen takes an address, and no URL"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> Result<Wanted, Error> {
        Wanted::from_words(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn a_url_is_us_and_an_address_is_them() {
        let of = |line: &str| format!("{:?}", wanted(line).unwrap().subject().map_err(|_| ()));
        assert_eq!(of("-H a:b -d x h"), r#"Ok(Us("h"))"#);
        assert_eq!(of("--listen"), r#"Ok(Them("127.0.0.1:0"))"#);
        assert_eq!(of("--count 2 --listen [::1]:9 --jsonl"), r#"Ok(Them("[::1]:9"))"#);
        for line in ["", "a b", "--listen a b"] {
            assert_eq!(of(line), "Err(())", "{line}");
        }
    }
}
