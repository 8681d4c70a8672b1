//! Flags about how a connection is made.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use http::Version;
use mimus::tls::Ech;

use super::values::{Interface, ResolveRule, UserFlag};

/// Flags about how a connection is made.
#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionFlags {
    /// Look like this browser: chrome, firefox-153, edge-156-macos... or a profile's file
    ///
    /// Its TLS, its HTTP/2 and the fields of its requests, in its order; compressed bodies are decoded.
    /// What other flags say besides stands where that browser has it. mimus profile list shows the names.
    #[arg(long = "as", value_name = "BROWSER")]
    pub(crate) look_like: Option<String>,

    /// Say the ClientHello of this JA3: 771,CIPHERS,EXTENSIONS,GROUPS,FORMATS
    ///
    /// As it is written before it is hashed. What it does not say is as --as has it, or as the browser
    /// that is nearest.
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) ja3: Option<String>,

    /// Open HTTP/2 connections as this Akamai fingerprint says: SETTINGS|WINDOW|PRIORITY|PSEUDO
    ///
    /// For example '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p'. The rest is as --as has it.
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) akamai: Option<String>,

    /// Go through this proxy: http, https, socks4, socks4a, socks5 or socks5h
    ///
    /// Without it the environment's http_proxy, HTTPS_PROXY, ALL_PROXY and NO_PROXY count. '' is no
    /// proxy.
    #[arg(short = 'x', long, value_name = "[SCHEME://]HOST[:PORT]", value_hint = ValueHint::Url)]
    pub(crate) proxy: Option<String>,

    /// Log in at the proxy as USER:PASSWORD
    #[arg(
        short = 'U',
        long,
        value_name = "USER:PASSWORD",
        allow_hyphen_values = true,
        requires = "proxy",
        hide_short_help = true
    )]
    pub(crate) proxy_user: Option<UserFlag>,

    /// Go to these hosts without a proxy; '*' is all
    #[arg(long, value_name = "HOSTS", hide_short_help = true)]
    pub(crate) noproxy: Option<String>,

    /// Go through the proxy by CONNECT for http too
    #[arg(short = 'p', long, hide_short_help = true)]
    pub(crate) proxytunnel: bool,

    /// Speak HTTP/1.1 only
    #[arg(long = "http1.1", overrides_with_all = ["http2", "http2_prior_knowledge"])]
    pub(crate) http1_1: bool,

    /// Speak HTTP/2 where the server chooses it in the TLS handshake: the default
    ///
    /// Over plain text this is HTTP/1.1: the upgrade from there to HTTP/2 is obsolete (RFC 9113
    /// section 3.1) and not made.
    #[arg(long, overrides_with_all = ["http1_1", "http2_prior_knowledge"], hide_short_help = true)]
    pub(crate) http2: bool,

    /// Speak HTTP/2, over plain text too, without asking whether the server does
    #[arg(long, overrides_with_all = ["http1_1", "http2"])]
    pub(crate) http2_prior_knowledge: bool,

    /// Let an HTTP/2 connection serve other hosts at its address that its certificate is valid for
    ///
    /// As browsers do (RFC 9113 section 9.1.1). A host that answers 421 gets a connection of its own.
    /// Not with --insecure, --cert or a proxy.
    #[arg(long, hide_short_help = true)]
    pub(crate) coalesce: bool,

    /// Take ADDRESS for HOST and PORT, without asking a resolver
    #[arg(long, value_name = "HOST:PORT:ADDRESS", hide_short_help = true)]
    pub(crate) resolve: Vec<ResolveRule>,

    /// Connect to this Unix socket
    #[arg(
        long,
        value_name = "PATH",
        value_hint = ValueHint::FilePath,
        conflicts_with = "proxy",
        hide_short_help = true
    )]
    pub(crate) unix_socket: Option<PathBuf>,

    /// Connect from this address or network interface
    #[arg(long, value_name = "NAME|ADDRESS", hide_short_help = true)]
    pub(crate) interface: Option<Interface>,

    /// Connect to IPv4 addresses only
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    pub(crate) ipv4: bool,

    /// Connect to IPv6 addresses only
    #[arg(short = '6', long, hide_short_help = true)]
    pub(crate) ipv6: bool,
}

impl ConnectionFlags {
    /// The version of HTTP that was asked for, if one was.
    pub(crate) fn version(&self) -> Option<Version> {
        match (self.http1_1, self.http2_prior_knowledge) {
            (true, _) => Some(Version::HTTP_11),
            (_, true) => Some(Version::HTTP_2),
            _ => None,
        }
    }
}

/// Flags about TLS.
#[derive(Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsFlags {
    /// Accept any certificate: encrypted, but with nobody knows whom
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,

    /// Trust the certificates in this PEM file, and no others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,

    /// Present the certificate in this PEM file
    #[arg(
        short = 'E',
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        hide_short_help = true
    )]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of --cert, when it is not in the same file
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "cert",
        hide_short_help = true
    )]
    pub(crate) key: Option<PathBuf>,

    /// Speak TLS 1.2 or newer, which is the default
    #[arg(long = "tlsv1.2", conflicts_with = "tls13", hide_short_help = true)]
    pub(crate) tls12: bool,

    /// Speak TLS 1.3 or newer
    #[arg(long = "tlsv1.3", hide_short_help = true)]
    pub(crate) tls13: bool,

    /// Speak no newer TLS than this
    #[arg(long, value_name = "VERSION", value_enum, hide_short_help = true)]
    pub(crate) tls_max: Option<MaxVersion>,

    /// Send GET and HEAD with the TLS handshake when a session is resumed
    ///
    /// Saves a round trip. Somebody on the way could send the request again.
    #[arg(long, hide_short_help = true)]
    pub(crate) early_data: bool,

    /// Encrypt the name in the TLS handshake (ECH) with ecl:CONFIG, in base64; false does not
    ///
    /// CONFIG is the ech of the host's HTTPS record in DNS. Where the server's keys have changed, those that it gives
    /// are tried.
    #[arg(long, value_name = "ecl:CONFIG", value_parser = super::values::ech, hide_short_help = true)]
    pub(crate) ech: Option<Ech>,
}

/// The newest TLS to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaxVersion {
    /// TLS 1.2, RFC 5246.
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3, RFC 8446.
    #[value(name = "1.3")]
    Tls13,
}
