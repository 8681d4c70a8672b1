//! Redirects (RFC 9110, section 15.4): whether to follow one, where to, and with what.

use http::{Method, StatusCode};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use url::Url;

#[cfg(test)]
mod tests;

/// Which redirects are followed. The default: up to 10, to anywhere.
#[derive(Clone)]
pub struct Policy {
    rule: Rule,
    limit: usize,
    referer: bool,
}

#[derive(Clone)]
enum Rule {
    Never,
    Anywhere,
    SameHost,
    SameOrigin,
    Custom(Arc<dyn Fn(&Attempt<'_>) -> Action + Send + Sync>),
}

impl Default for Policy {
    fn default() -> Self {
        Policy { rule: Rule::Anywhere, limit: 10, referer: false }
    }
}

impl Policy {
    /// No redirect is followed: a 3xx is a response like any other.
    pub fn none() -> Self {
        Policy { rule: Rule::Never, ..Policy::default() }
    }

    /// Up to `limit` redirects a call, to anywhere; one more is an error.
    pub fn limited(limit: usize) -> Self {
        Policy { limit, ..Policy::default() }
    }

    /// Only redirects to the host they came from, on any port; another is delivered unfollowed.
    pub fn same_host() -> Self {
        Policy { rule: Rule::SameHost, ..Policy::default() }
    }

    /// Only redirects to the same scheme, host and port; another is delivered unfollowed.
    pub fn same_origin() -> Self {
        Policy { rule: Rule::SameOrigin, ..Policy::default() }
    }

    /// `decide` is asked about each redirect that could be followed, within the limit.
    pub fn custom(decide: impl Fn(&Attempt<'_>) -> Action + Send + Sync + 'static) -> Self {
        Policy { rule: Rule::Custom(Arc::new(decide)), ..Policy::default() }
    }

    /// Changes how many redirects a call may follow.
    pub fn with_limit(self, limit: usize) -> Self {
        Policy { limit, ..self }
    }

    /// Whether a followed redirect carries a `Referer`, as browsers compute it
    /// (`strict-origin-when-cross-origin`). Default: no.
    pub fn with_referer(self, referer: bool) -> Self {
        Policy { referer, ..self }
    }

    /// What to do about `response`.
    ///
    /// # Errors
    ///
    /// The redirect should be followed and cannot be: see [`RedirectError`].
    pub fn decide(&self, response: &Redirection<'_>) -> Result<Verdict, RedirectError> {
        if matches!(self.rule, Rule::Never) || !is_redirect(response.status) {
            return Ok(Verdict::Stop);
        }
        let Some(location) = response.location.map(<[u8]>::trim_ascii).filter(|l| !l.is_empty())
        else {
            return Ok(Verdict::Stop);
        };
        let url = resolve(response.url, location)?;
        let (method, drop_body) = rewrite(response.method, response.status);
        let attempt = Attempt { response, url: &url, method: &method };
        match self.action(&attempt) {
            Action::Stop => return Ok(Verdict::Stop),
            Action::Fail(cause) => return Err(RedirectError::Refused(cause)),
            Action::Follow if response.previous.len() >= self.limit => {
                return Err(RedirectError::TooMany { limit: self.limit });
            }
            Action::Follow => {}
        }
        if !drop_body && response.body == Body::Once {
            return Err(RedirectError::BodyNotReplayable);
        }
        let strip = Strip { cross_origin: !same_origin(response.url, &url), body: drop_body };
        let referer = self.referer(response.url, &url);
        Ok(Verdict::Follow(Box::new(Follow { url, method, drop_body, strip, referer })))
    }

    fn action(&self, attempt: &Attempt<'_>) -> Action {
        let from = attempt.response.url;
        let follow = match &self.rule {
            Rule::Never => false,
            Rule::Anywhere => true,
            Rule::SameHost => from.host_str() == attempt.url.host_str(),
            Rule::SameOrigin => same_origin(from, attempt.url),
            Rule::Custom(decide) => return decide(attempt),
        };
        if follow { Action::Follow } else { Action::Stop }
    }

    fn referer(&self, from: &Url, to: &Url) -> Referer {
        // RFC 9110, 10.1.3: no Referer in an unsecured request if the referring one was secured.
        if from.scheme() == "https" && to.scheme() != "https" {
            return Referer::Remove;
        }
        if !self.referer {
            return Referer::Keep;
        }
        let mut referer = from.clone();
        if !same_origin(from, to) {
            referer.set_path("/");
            referer.set_query(None);
        }
        // RFC 9110, 10.1.3: neither fragment nor userinfo.
        referer.set_fragment(None);
        clear_userinfo(&mut referer);
        Referer::Set(referer.into())
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match self.rule {
            Rule::Never => "never",
            Rule::Anywhere => "anywhere",
            Rule::SameHost => "same host",
            Rule::SameOrigin => "same origin",
            Rule::Custom(_) => "custom",
        };
        f.debug_struct("Policy")
            .field("rule", &rule)
            .field("limit", &self.limit)
            .field("referer", &self.referer)
            .finish()
    }
}

/// A response that may be a redirect, with what its request was.
#[derive(Debug, Clone, Copy)]
pub struct Redirection<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The request's URL, absolute.
    pub url: &'a Url,
    /// The request's body.
    pub body: Body,
    /// The response's status.
    pub status: StatusCode,
    /// The value of the response's first `Location` field, raw.
    pub location: Option<&'a [u8]>,
    /// The URLs requested before this one in the same call, oldest first.
    pub previous: &'a [Url],
}

/// Whether a request's body could be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    Empty,
    /// It can be produced again.
    Replayable,
    /// It is a stream that has been consumed.
    Once,
}

/// A redirect about to be followed, as a custom policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    response: &'a Redirection<'a>,
    url: &'a Url,
    method: &'a Method,
}

impl<'a> Attempt<'a> {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.response.status
    }

    /// Where the redirect comes from.
    pub fn from(&self) -> &'a Url {
        self.response.url
    }

    /// Where it leads.
    pub fn url(&self) -> &'a Url {
        self.url
    }

    /// The method it would be followed with.
    pub fn method(&self) -> &'a Method {
        self.method
    }

    /// The URLs requested in this call before [`from`](Self::from), oldest first.
    pub fn previous(&self) -> &'a [Url] {
        self.response.previous
    }

    /// Whether it leads to another scheme, host or port.
    pub fn is_cross_origin(&self) -> bool {
        !same_origin(self.response.url, self.url)
    }
}

/// A custom policy's answer.
#[derive(Debug)]
pub enum Action {
    /// Follow, unless the limit is reached.
    Follow,
    /// Deliver the redirect as the response.
    Stop,
    /// Fail the call, for this reason.
    Fail(Box<dyn Error + Send + Sync>),
}

/// What to do about a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the call's response.
    Stop,
    /// Make this request next.
    Follow(Box<Follow>),
}

/// The request that follows a redirect, where it differs from the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// Its URL. It carries the fragment of the URL it replaces if it has none of its own (RFC
    /// 9110, section 10.2.2), and user information only as far as the origin is the same: a
    /// `Location` cannot bring its own.
    pub url: Url,
    /// Its method.
    pub method: Method,
    /// Whether it goes without the body.
    pub drop_body: bool,
    /// Which of the request's fields it goes without.
    pub strip: Strip,
    /// What becomes of `Referer`.
    pub referer: Referer,
}

/// Which fields a followed request loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// Scheme, host or port changed: credentials, and what names the old host.
    pub cross_origin: bool,
    /// The body is gone: what describes it.
    pub body: bool,
}

/// Fields that would tell another origin what is meant for this one.
const BOUND_TO_ORIGIN: [&str; 7] = [
    "authorization",
    "cookie",
    "cookie2",
    "host",
    "proxy-authenticate",
    "proxy-authorization",
    "www-authenticate",
];

/// Fields about the body, besides all named `Content-*`.
const BOUND_TO_BODY: [&str; 6] =
    ["digest", "expect", "last-modified", "repr-digest", "trailer", "transfer-encoding"];

impl Strip {
    /// Whether the field `name`, in any case, is removed. A client with secrets in fields of its
    /// own (`X-Api-Key`) has to look at [`cross_origin`](Self::cross_origin) itself.
    pub fn removes(&self, name: &[u8]) -> bool {
        let among = |names: &[&str]| names.iter().any(|n| n.as_bytes().eq_ignore_ascii_case(name));
        let content = || name.get(..8).is_some_and(|p| p.eq_ignore_ascii_case(b"content-"));
        self.cross_origin && among(&BOUND_TO_ORIGIN)
            || self.body && (content() || among(&BOUND_TO_BODY))
    }
}

/// What becomes of a request's `Referer` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referer {
    /// It stays as the caller set it, if at all.
    Keep,
    /// It is removed: the redirect leads from a secured to an unsecured origin.
    Remove,
    /// It becomes this.
    Set(String),
}

/// Why a redirect could not be followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedirectError {
    /// The call has followed as many as it may. A loop ends here.
    TooMany {
        /// How many it may.
        limit: usize,
    },
    /// `Location` is not a URL reference.
    BadLocation(Option<url::ParseError>),
    /// `Location` leads to something other than `http` or `https`.
    UnsupportedScheme(String),
    /// The method stays and the body is due again, but it was a stream.
    BodyNotReplayable,
    /// A custom policy refused.
    Refused(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedirectError::TooMany { limit } => write!(f, "more than {limit} redirects"),
            RedirectError::BadLocation(Some(_)) => f.write_str("the redirect's Location is no URL"),
            RedirectError::BadLocation(None) => {
                f.write_str("the redirect's Location contains control characters")
            }
            RedirectError::UnsupportedScheme(scheme) => {
                write!(f, "the redirect leads to the scheme `{scheme}`, not http or https")
            }
            RedirectError::BodyNotReplayable => {
                f.write_str("the redirect wants the body again, and a stream cannot be sent twice")
            }
            RedirectError::Refused(_) => f.write_str("the redirect policy refused"),
        }
    }
}

impl Error for RedirectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RedirectError::BadLocation(Some(cause)) => Some(cause),
            RedirectError::Refused(cause) => Some(&**cause),
            _ => None,
        }
    }
}

/// The statuses that are followed. Not 300, whose choice is the user's; 304 is none; 305 and 306
/// are dead.
fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The method after `status`, and whether the body is dropped.
fn rewrite(method: &Method, status: StatusCode) -> (Method, bool) {
    match status.as_u16() {
        // RFC 9110, 15.4.2 and 15.4.3: POST may become GET, and everywhere does.
        301 | 302 if *method == Method::POST => (Method::GET, true),
        // RFC 9110, 15.4.4: a retrieval of something else.
        303 if *method == Method::HEAD => (Method::HEAD, true),
        303 => (Method::GET, true),
        // RFC 9110, 15.4.8 and 15.4.9: the method does not change.
        _ => (method.clone(), false),
    }
}

fn resolve(base: &Url, location: &[u8]) -> Result<Url, RedirectError> {
    if location.iter().any(u8::is_ascii_control) {
        // The URL parser would drop tabs and line ends, and so make another URL of it.
        return Err(RedirectError::BadLocation(None));
    }
    let mut url =
        (base.join(&as_text(location))).map_err(|cause| RedirectError::BadLocation(Some(cause)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(RedirectError::UnsupportedScheme(url.scheme().to_owned()));
    }
    if url.fragment().is_none() {
        // RFC 9110, 10.2.2.
        url.set_fragment(base.fragment());
    }
    clear_userinfo(&mut url);
    if same_origin(base, &url) {
        // Neither fails on a URL with a host, which http and https ones have.
        let _ = url.set_username(base.username());
        let _ = url.set_password(base.password());
    }
    Ok(url)
}

/// UTF-8 as it is; in anything else the bytes beyond ASCII percent-encoded, as browsers do.
fn as_text(location: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(location) {
        Ok(text) => text.into(),
        Err(_) => location
            .iter()
            .map(|&byte| match byte.is_ascii() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect::<String>()
            .into(),
    }
}

fn clear_userinfo(url: &mut Url) {
    let _ = url.set_username("");
    let _ = url.set_password(None);
}

/// Whether both have the same scheme, host and port (RFC 6454, section 5), without the
/// allocations of [`Url::origin`].
pub fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}
