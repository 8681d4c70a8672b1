//! What the values of flags mean.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use mimus::{
    profile::Kind,
    tls::{Ech, EchConfigList},
};

/// A method by its exact name (methods are case-sensitive, RFC 9110 section 9.1).
pub(crate) fn method(text: &str) -> Result<Method, String> {
    Method::from_bytes(text.as_bytes()).map_err(|_| format!("{text:?} cannot be a method"))
}

/// What a request is to a browser.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    Kind::named(text).ok_or_else(|| {
        "the kinds are navigate, iframe, form-post, fetch, xhr, script, \
         async-script, style, image, favicon, font, beacon, preflight, websocket"
            .to_owned()
    })
}

/// Encrypted Client Hello, as curl says it.
pub(crate) fn ech(text: &str) -> Result<Ech, String> {
    if text == "false" {
        return Ok(Ech::Off);
    }
    let config = text.strip_prefix("ecl:").ok_or("it is ecl: and a configuration, or false")?;
    let bytes = STANDARD.decode(config).map_err(|e| format!("not in base64: {e}"))?;
    EchConfigList::from_bytes(bytes).map(Ech::Config).map_err(|e| e.to_string())
}

/// Seconds, with a fraction if need be.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = f64::from_str(text).map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

/// A number of bytes, with k, M, G or T for powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        other => return Err(format!("{other:?} is no unit; use k, M, G or T")),
    };
    let number = u64::from_str(digits).map_err(|_| "not a number of bytes".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

/// How many redirects; any negative number is without limit.
pub(crate) fn redirects(text: &str) -> Result<usize, String> {
    let number = i64::from_str(text).map_err(|_| "not a number".to_owned())?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

/// A field given with -H.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum HeaderFlag {
    /// `Name: value`, or `Name;` for an empty value.
    Send { name: String, value: String },
    /// `Name:`, which takes out what would be sent by default.
    Remove { name: String },
    /// `@FILE`: one field a line.
    File(String),
}

impl std::fmt::Debug for HeaderFlag {
    /// The name alone: the value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeaderFlag::Send { name, .. } => write!(f, "Send({name})"),
            HeaderFlag::Remove { name } => write!(f, "Remove({name})"),
            HeaderFlag::File(path) => write!(f, "File({path})"),
        }
    }
}

impl FromStr for HeaderFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(HeaderFlag::File(path.to_owned()));
        }
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value.trim())),
            None => match text.trim_end().strip_suffix(';') {
                Some(name) => (name, None),
                None => return Err("write it as 'Name: value'".to_owned()),
            },
        };
        http::HeaderName::from_str(name).map_err(|_| format!("{name:?} cannot be a name"))?;
        let name = name.to_owned();
        Ok(match value {
            Some("") => HeaderFlag::Remove { name },
            Some(value) => HeaderFlag::Send { name, value: value.to_owned() },
            None => HeaderFlag::Send { name, value: String::new() },
        })
    }
}

/// Where a download goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeAt {
    /// After what the output file holds.
    EndOfFile,
    /// At this byte.
    Offset(u64),
}

impl FromStr for ResumeAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "-" => Ok(ResumeAt::EndOfFile),
            _ => u64::from_str(text)
                .map(ResumeAt::Offset)
                .map_err(|_| "neither an offset in bytes nor -".to_owned()),
        }
    }
}

/// `HOST:PORT:ADDRESS[,ADDRESS]...` of --resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolveRule {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) addrs: Vec<SocketAddr>,
}

impl FromStr for ResolveRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || "write it as HOST:PORT:ADDRESS".to_owned();
        // curl's '+' lets the entry expire, which none does in one run.
        let text = text.strip_prefix('+').unwrap_or(text);
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once("]:").ok_or_else(shape)?,
            None => text.split_once(':').ok_or_else(shape)?,
        };
        if matches!(host, "" | "*") {
            return Err("a rule is for one host".to_owned());
        }
        let (port, addrs) = rest.split_once(':').ok_or_else(shape)?;
        let port = u16::from_str(port).map_err(|_| format!("{port:?} is no port"))?;
        let addrs = addrs
            .split(',')
            .map(|text| {
                let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
                // Port 0 keeps the URL's.
                bare.parse::<IpAddr>()
                    .map(|addr| SocketAddr::new(addr, 0))
                    .map_err(|_| format!("{text:?} is no address"))
            })
            .collect::<Result<_, _>>()?;
        Ok(ResolveRule { host: host.to_owned(), port, addrs })
    }
}

/// What --interface names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interface {
    /// A local address.
    Addr(IpAddr),
    /// A network interface.
    Name(String),
}

impl FromStr for Interface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(addr) => Ok(Interface::Addr(addr)),
            Err(_) if text.is_empty() => Err("empty".to_owned()),
            Err(_) => Ok(Interface::Name(text.to_owned())),
        }
    }
}

/// `USER[:PASSWORD]`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserFlag {
    pub(crate) user: String,
    /// `None` when there was no colon: it will be asked for.
    pub(crate) password: Option<String>,
}

impl FromStr for UserFlag {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some((user, password)) => {
                UserFlag { user: user.to_owned(), password: Some(password.to_owned()) }
            }
            None => UserFlag { user: text.to_owned(), password: None },
        })
    }
}
