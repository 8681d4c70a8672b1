//! From what a user gives as a URL to something that can be asked.

use mimus_net::dial::Host;
use url::Url;

use crate::{Error, Result};

/// A URL that can be requested, with what `url::Url` cannot hold: the zone of a link-local IPv6
/// address (RFC 6874).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: Url,
    zone: Option<Box<str>>,
}

impl Target {
    /// Checks that `url` has a scheme and a host that this client can talk to.
    pub(crate) fn new(url: Url) -> Result<Self> {
        Target::with_zone(url, None)
    }

    fn with_zone(url: Url, zone: Option<Box<str>>) -> Result<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            let detail = format!("the URL scheme {:?} is not http or https", url.scheme());
            return Err(Error::request(detail).on(&url));
        }
        if url.host().is_none() {
            return Err(Error::request("the URL has no host").on(&url));
        }
        Ok(Target { url, zone })
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
            Err(e) => Err(Error::request("the URL is not valid").caused_by(e)),
        }
    }

    /// The same zone on another URL of the same host; a redirect elsewhere has none.
    pub(crate) fn follow(&self, url: Url) -> Result<Self> {
        let zone = (url.host() == self.url.host()).then(|| self.zone.clone()).flatten();
        Target::with_zone(url, zone)
    }

    pub(crate) fn https(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.port().unwrap_or(if self.https() { 443 } else { 80 })
    }

    /// The host as dialling wants it.
    pub(crate) fn host(&self) -> Result<Host> {
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
            None => Err(Error::request("the URL has no host").on(&self.url)),
        }
    }

    /// The zone, which is part of what tells one connection from another.
    pub(crate) fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// `host` or `host:port`, as the `Host` field and CONNECT want it (RFC 9110 section 7.2).
    pub(crate) fn authority(&self) -> &str {
        &self.url[url::Position::BeforeHost..url::Position::AfterPort]
    }

    /// The origin-form of the request target (RFC 9112 section 3.2.1).
    pub(crate) fn origin_form(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
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
    fn into_target(self, base: Option<&Url>) -> Result<TargetUrl>;
}

/// An accepted URL; only this crate looks inside.
#[doc(hidden)]
#[derive(Debug)]
pub struct TargetUrl(pub(crate) Target);

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
            fn into_target($self, base: Option<&Url>) -> Result<TargetUrl> {
                Target::parse($text, base).map(TargetUrl)
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
    fn into_target(self, _: Option<&Url>) -> Result<TargetUrl> {
        Target::new(self).map(TargetUrl)
    }
}

impl IntoUrl for &Url {
    fn into_target(self, _: Option<&Url>) -> Result<TargetUrl> {
        Target::new(self.clone()).map(TargetUrl)
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
            assert_eq!(target.zone(), Some("lo"));
            assert_eq!(target.authority(), "[fe80::1]:8080");
        }
    }

    #[test]
    fn a_zone_in_the_query_is_none_of_ours() {
        for text in ["http://a.example/?to=http://[fe80::1%25lo]/", "/?to=http://[fe80::1%25lo]/"] {
            let base = Url::parse("http://a.example/").unwrap();
            let target = Target::parse(text, Some(&base)).unwrap();
            assert_eq!(target.url.as_str(), "http://a.example/?to=http://[fe80::1%25lo]/");
            assert_eq!(target.zone(), None);
        }
    }

    #[test]
    fn names_are_idna_and_targets_are_origin_form() {
        let target = Target::parse("https://Bücher.example/a b?q=ü#frag", None).unwrap();
        assert_eq!(target.authority(), "xn--bcher-kva.example");
        assert_eq!(target.origin_form(), "/a%20b?q=%C3%BC");
        assert_eq!(target.port(), 443);
    }

    #[test]
    fn other_schemes_and_hostless_urls_are_refused() {
        for text in ["ftp://example.com/", "data:,x", "no url", "http://", "http://a b/"] {
            assert_eq!(Target::parse(text, None).unwrap_err().kind(), crate::Kind::Request);
        }
    }

    #[test]
    fn an_error_does_not_repeat_a_password() {
        let error = Target::parse("ftp://user:hunter2@example.com/", None).unwrap_err();
        assert!(!format!("{error:#} {error:?}").contains("hunter2"));
    }
}
