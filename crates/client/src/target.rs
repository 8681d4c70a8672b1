//! From what a user gives as a URL to something that can be asked.

use std::{
    fmt,
    hash::BuildHasher,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use foldhash::fast::RandomState;
use mimus_net::dial::Host;
use mimus_proto::{Fields, InvalidField};
use url::{
    Position::{AfterHost, AfterPort, AfterQuery, BeforeHost, BeforePath},
    Url,
};

use crate::{Error, Result};

/// Why a URL cannot be requested: the source of an [`Error`] of [`Kind::Request`](crate::Kind::Request).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnusableUrl {
    /// It is none.
    Syntax(url::ParseError),
    /// Its scheme is another than http and https.
    Scheme(String),
    /// It names no host.
    NoHost,
    /// Its host cannot be written to a `Host` field.
    Host(InvalidField),
}

impl fmt::Display for UnusableUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableUrl::Syntax(error) => error.fmt(f),
            UnusableUrl::Scheme(scheme) => write!(f, "the scheme {scheme:?} is not http or https"),
            UnusableUrl::NoHost => f.write_str("it has no host"),
            UnusableUrl::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UnusableUrl {}

fn unusable(url: &Url, why: UnusableUrl) -> Error {
    Error::request("the URL cannot be requested").on(url).caused_by(why)
}

/// A URL that can be requested, with what `url::Url` cannot hold: the zone of a link-local IPv6
/// address (RFC 6874). Clones share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target(Arc<Parts>);

/// A URL taken apart once, for every call that uses it.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) url: Url,
    /// The zone, which is part of what tells one connection from another.
    pub(crate) zone: Option<Box<str>>,
    pub(crate) https: bool,
    pub(crate) port: u16,
    /// `Host: authority`, ready to be sent.
    pub(crate) host_field: Fields,
    /// The fields of a request that has nothing of its own to say, once there was one: over HTTP/1.1, and
    /// over HTTP/2 if they differ.
    pub(crate) plain_fields: [OnceLock<Fields>; 2],
    /// Whether HTTP/2 can carry all of those.
    pub(crate) plain_suits_http2: OnceLock<bool>,
    host: Range<usize>,
    authority: Range<usize>,
    origin_form: Range<usize>,
}

impl std::ops::Deref for Target {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Target {
    /// Checks that `url` has a scheme and a host that this client can talk to.
    pub(crate) fn new(url: Url) -> Result<Self> {
        Target::with_zone(url, None)
    }

    fn with_zone(url: Url, zone: Option<Box<str>>) -> Result<Self> {
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            other => {
                return Err(unusable(&url, UnusableUrl::Scheme(other.to_owned())));
            }
        };
        if url.host().is_none() {
            return Err(unusable(&url, UnusableUrl::NoHost));
        }
        let offset = |position| url[..position].len();
        let host = offset(BeforeHost)..offset(AfterHost);
        let authority = host.start..offset(AfterPort);
        let origin_form = offset(BeforePath)..offset(AfterQuery);
        let mut host_field = Fields::new();
        host_field
            .append("Host", &url.as_str()[authority.clone()])
            .map_err(|e| unusable(&url, UnusableUrl::Host(e)))?;
        let port = url.port().unwrap_or(if https { 443 } else { 80 });
        Ok(Target(Arc::new(Parts {
            url,
            zone,
            https,
            port,
            host_field,
            plain_fields: Default::default(),
            plain_suits_http2: OnceLock::new(),
            host,
            authority,
            origin_form,
        })))
    }

    pub(crate) fn parse(text: &str, base: Option<&Url>) -> Result<Self> {
        let (text, zone) = without_zone(text);
        let parsed = match base {
            Some(base) => base.join(&text),
            None => Url::parse(&text),
        };
        match parsed {
            Ok(url) => Target::with_zone(url, zone),
            // The text may hold a password, so it stays out of the message.
            Err(e) => Err(Error::request("the URL is not valid").caused_by(UnusableUrl::Syntax(e))),
        }
    }

    /// The same zone on another URL of the same host; a redirect elsewhere has none.
    pub(crate) fn follow(&self, url: Url) -> Result<Self> {
        let zone = (url.host() == self.url.host()).then(|| self.zone.clone()).flatten();
        Target::with_zone(url, zone)
    }

    /// The same with another URL of the same host.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Url) -> Result<()>) -> Result<()> {
        let mut url = self.url.clone();
        change(&mut url)?;
        *self = Target::with_zone(url, self.zone.clone())?;
        Ok(())
    }

    /// Whether the URL holds a user name or a password.
    pub(crate) fn has_userinfo(&self) -> bool {
        // Nothing else comes between the scheme's slashes and the host.
        self.host.start > self.url.scheme().len() + "://".len()
    }
}

/// Everything else follows from these.
impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url && self.zone == other.zone
    }
}

impl Eq for Parts {}

impl Parts {
    /// The host as dialling wants it.
    pub(crate) fn dial_host(&self) -> Result<Host> {
        match self.url.host() {
            Some(url::Host::Domain(name)) => Ok(Host::Name(name.to_owned())),
            Some(url::Host::Ipv4(addr)) => Ok(Host::Addr(addr.into(), 0)),
            Some(url::Host::Ipv6(addr)) => {
                let scope = match &self.zone {
                    Some(zone) => mimus_net::dial::scope_id(zone).map_err(|e| {
                        let detail = format!("no network interface is called {zone:?}");
                        Error::request(detail).on(&self.url).caused_by(e)
                    })?,
                    None => 0,
                };
                Ok(Host::Addr(addr.into(), scope))
            }
            None => Err(unusable(&self.url, UnusableUrl::NoHost)),
        }
    }

    /// The host as text, an IPv6 address in brackets.
    pub(crate) fn host(&self) -> &str {
        &self.url.as_str()[self.host.clone()]
    }

    /// `host` or `host:port`, as the `Host` field and CONNECT want it (RFC 9110 section 7.2).
    pub(crate) fn authority(&self) -> &str {
        &self.url.as_str()[self.authority.clone()]
    }

    /// The origin-form of the request target (RFC 9112 section 3.2.1).
    pub(crate) fn origin_form(&self) -> &str {
        &self.url.as_str()[self.origin_form.clone()]
    }

    /// The target of a request about the whole server (RFC 9112 section 3.2.4), absolute where a proxy
    /// forwards it.
    pub(crate) fn asterisk_form(&self, forwarded: bool) -> &str {
        match forwarded {
            true => &self.url.as_str()[..self.origin_form.start],
            false => "*",
        }
    }

    /// The absolute-form of the request target (RFC 9112 section 3.2.2).
    pub(crate) fn absolute_form(&self) -> &str {
        &self.url.as_str()[..self.origin_form.end]
    }
}

/// What a client makes of the text of URLs: those it parsed lately need not be parsed again, which
/// would cost more than all the rest of a small exchange.
///
/// As many as [`SLOTS`] are kept, each in the slot that its hash names.
pub(crate) struct Targets {
    base: Option<Url>,
    hasher: RandomState,
    recent: Mutex<Recent>,
}

/// A slot holds the text that was parsed, and what came of it.
type Recent = Box<[Option<(Box<str>, Target)>]>;

/// How many parsed URLs a client keeps, and the longest text it keeps one of, in bytes.
const SLOTS: usize = 64;
const KEPT_MAX: usize = 1024;

impl Targets {
    /// Texts are read relative to `base`, if there is one.
    pub(crate) fn new(base: Option<Url>) -> Self {
        let recent = Mutex::new(vec![None; SLOTS].into_boxed_slice());
        Targets { base, hasher: RandomState::default(), recent }
    }

    pub(crate) fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// The target that `text` names.
    pub(crate) fn parse(&self, text: &str) -> Result<Target> {
        if text.len() > KEPT_MAX {
            return Target::parse(text, self.base());
        }
        let slot = self.hasher.hash_one(text) as usize % SLOTS;
        if let Some((known, target)) = &self.recent()[slot]
            && **known == *text
        {
            return Ok(target.clone());
        }
        let target = Target::parse(text, self.base())?;
        // Passwords are not kept.
        if !target.has_userinfo() {
            let fresh = Some((text.into(), target.clone()));
            let replaced = std::mem::replace(&mut self.recent()[slot], fresh);
            drop(replaced);
        }
        Ok(target)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        // Nothing that can panic runs under the lock.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the zone out of `http://[fe80::1%25eth0]/`; a bare `%` is accepted as browsers' users type it.
fn without_zone(text: &str) -> (std::borrow::Cow<'_, str>, Option<Box<str>>) {
    let zone = || {
        // Of the URL itself, not of one in its query.
        let scheme = text.find("://").filter(|end| !text[..*end].contains(['/', '?', '#']))?;
        let open = text[scheme + 3..].starts_with('[').then_some(scheme + 4)?;
        let close = open + text[open..].find(']')?;
        let percent = open + text[open..close].find('%')?;
        let name = &text[percent + 1..close];
        let name = name.strip_prefix("25").filter(|n| !n.is_empty()).unwrap_or(name);
        Some((percent, close, name))
    };
    match zone() {
        Some((percent, close, name)) => {
            let stripped = [&text[..percent], &text[close..]].concat();
            (stripped.into(), Some(name.into()))
        }
        None => (text.into(), None),
    }
}

/// What can be given where a URL is wanted: text, [`Url`], or [`http::Uri`].
pub trait IntoUrl: sealed::Sealed {
    #[doc(hidden)]
    fn into_target(self, known: &Known<'_>) -> Result<Accepted>;
}

/// What the client knows about URLs; only this crate looks inside.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "nobody outside ever holds one")]
pub struct Known<'a> {
    targets: &'a Targets,
    /// The URL may be one of `ws` or `wss` (RFC 6455 section 3), which are http and https here.
    web_socket: bool,
}

impl<'a> Known<'a> {
    pub(crate) fn new(targets: &'a Targets) -> Self {
        Known { targets, web_socket: false }
    }

    #[cfg(feature = "ws")]
    pub(crate) fn for_web_socket(targets: &'a Targets) -> Self {
        Known { targets, web_socket: true }
    }

    fn text(&self, text: &str) -> Result<Accepted> {
        if !self.web_socket {
            return self.targets.parse(text).map(Accepted);
        }
        let http = match text.split_once(':') {
            Some((ws, rest)) if ws.eq_ignore_ascii_case("ws") => Some(["http:", rest].concat()),
            Some((wss, rest)) if wss.eq_ignore_ascii_case("wss") => Some(["https:", rest].concat()),
            _ => None,
        };
        self.targets.parse(http.as_deref().unwrap_or(text)).map(Accepted)
    }

    fn url(&self, mut url: Url) -> Result<Accepted> {
        let http = match url.scheme() {
            "ws" if self.web_socket => Some("http"),
            "wss" if self.web_socket => Some("https"),
            _ => None,
        };
        // The four are all special, so that one can be made another.
        if let Some(http) = http
            && url.set_scheme(http).is_err()
        {
            return Err(Error::request("the URL's scheme cannot be changed").on(&url));
        }
        Target::new(url).map(Accepted)
    }
}

/// An accepted URL; only this crate looks inside.
#[doc(hidden)]
#[derive(Debug)]
pub struct Accepted(pub(crate) Target);

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for String {}
    impl Sealed for &String {}
    impl Sealed for url::Url {}
    impl Sealed for &url::Url {}
    impl Sealed for http::Uri {}
    impl Sealed for &http::Uri {}
}

macro_rules! from_text {
    ($($type:ty, $self:ident => $text:expr;)*) => {$(
        impl IntoUrl for $type {
            fn into_target($self, known: &Known<'_>) -> Result<Accepted> {
                known.text($text)
            }
        }
    )*};
}

from_text! {
    &str, self => self;
    String, self => &self;
    &String, self => self;
    http::Uri, self => &self.to_string();
    &http::Uri, self => &self.to_string();
}

impl IntoUrl for Url {
    fn into_target(self, known: &Known<'_>) -> Result<Accepted> {
        known.url(self)
    }
}

impl IntoUrl for &Url {
    fn into_target(self, known: &Known<'_>) -> Result<Accepted> {
        known.url(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_kept_beside_the_url() {
        for text in ["http://[fe80::1%25lo]:8080/x", "http://[fe80::1%lo]:8080/x"] {
            let target = Target::parse(text, None).unwrap();
            assert_eq!(target.url.as_str(), "http://[fe80::1]:8080/x");
            assert_eq!(target.zone.as_deref(), Some("lo"));
            assert_eq!(target.authority(), "[fe80::1]:8080");
        }
    }

    #[test]
    fn a_zone_in_the_query_is_none_of_ours() {
        for text in ["http://a.example/?to=http://[fe80::1%25lo]/", "/?to=http://[fe80::1%25lo]/"] {
            let base = Url::parse("http://a.example/").unwrap();
            let target = Target::parse(text, Some(&base)).unwrap();
            assert_eq!(target.url.as_str(), "http://a.example/?to=http://[fe80::1%25lo]/");
            assert_eq!(target.zone, None);
        }
    }

    #[test]
    fn names_are_idna_and_targets_are_origin_form() {
        let target = Target::parse("https://Bücher.example/a b?q=ü#frag", None).unwrap();
        assert_eq!(target.authority(), "xn--bcher-kva.example");
        assert_eq!(target.origin_form(), "/a%20b?q=%C3%BC");
        assert_eq!(target.asterisk_form(false), "*");
        assert!(target.url.as_str().starts_with(target.asterisk_form(true)));
        assert!(!target.asterisk_form(true).ends_with('/'));
        assert_eq!(target.port, 443);
    }

    #[test]
    fn other_schemes_and_hostless_urls_are_refused() {
        for text in ["ftp://example.com/", "data:,x", "no url", "http://", "http://a b/"] {
            assert_eq!(Target::parse(text, None).unwrap_err().kind(), crate::Kind::Request);
        }
    }

    #[test]
    fn a_text_parsed_before_gives_the_same_target() {
        let base = Url::parse("http://a.example/dir/").unwrap();
        for base in [None, Some(base)] {
            let targets = Targets::new(base.clone());
            for _ in 0..3 {
                for n in 0..2 * SLOTS {
                    let text = format!("http://[::1]:{n}/x?{n}#f");
                    let fresh = Target::parse(&text, base.as_ref()).unwrap();
                    assert_eq!(targets.parse(&text).unwrap(), fresh);
                }
                assert!(targets.parse("http://").is_err());
            }
        }
        let targets = Targets::new(Some(Url::parse("http://a.example/dir/").unwrap()));
        assert_eq!(targets.parse("x").unwrap().origin_form(), "/dir/x");
        assert_eq!(targets.parse("x").unwrap().origin_form(), "/dir/x");
    }

    #[test]
    fn neither_passwords_nor_very_long_texts_are_kept() {
        let targets = Targets::new(None);
        let long = format!("http://a.example/{}", "x".repeat(KEPT_MAX));
        for text in ["http://u:hunter2@a.example/", "http://u@a.example/", "http://:p@a/", &long] {
            targets.parse(text).unwrap();
            assert!(targets.recent().iter().all(Option::is_none), "{text}");
        }
        targets.parse("http://a.example/@").unwrap();
        assert_eq!(targets.recent().iter().flatten().count(), 1);
    }

    #[test]
    fn an_error_does_not_repeat_a_password() {
        let error = Target::parse("ftp://user:hunter2@example.com/", None).unwrap_err();
        assert!(!format!("{error:#} {error:?}").contains("hunter2"));
    }
}
