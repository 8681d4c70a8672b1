//! Cookies (RFC 6265 as its revision, "6265bis", has it): what to keep of a response, and what to
//! send with a request.
//!
//! Parsing and matching of single cookies is that of crate `cookie_store`; the [`Jar`] adds what
//! its store leaves open: order, limits, prefixes, and the public suffix list, which is compiled
//! in.

use cookie_store::{Cookie, CookieDomain, CookieExpiration};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use url::Url;

mod file;
#[cfg(test)]
mod tests;

pub use file::CookieFileError;

/// Where a client keeps cookies. Implement it to keep them elsewhere than in a [`Jar`].
pub trait CookieStore: fmt::Debug + Send + Sync {
    /// The value of the `Cookie` field for a request to `url`; `None` for no field.
    fn cookies(&self, url: &Url) -> Option<Vec<u8>>;

    /// Takes the raw values of the `Set-Cookie` fields of a response from `url`, in order. What is
    /// not acceptable is ignored, as RFC 6265 wants.
    fn set(&self, url: &Url, values: &mut dyn Iterator<Item = &[u8]>);
}

/// How much a [`Jar`] keeps. When there is more, expired cookies go first, then those unused for
/// longest, insecure ones before secure ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of name and value together; a larger cookie is ignored. Default: 4096.
    pub size: usize,
    /// The most cookies of one site (a registrable domain, or a host that has none). Default: 180.
    pub per_site: usize,
    /// The most cookies altogether. Default: 3000.
    pub total: usize,
    /// The longest life a server can give a cookie. Default: 400 days.
    pub lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let lifetime = Duration::from_secs(400 * 24 * 60 * 60);
        Limits { size: 4096, per_site: 180, total: 3000, lifetime }
    }
}

/// A `Set-Cookie` beyond this many bytes is not looked at: attributes count as well.
const MOST_RAW: usize = 64 * 1024;

/// Cookies in memory, for any number of threads.
///
/// A `Secure` cookie is set and sent over https only, except that `localhost` and loopback
/// addresses count as secure, as in browsers. Cookies that are not UTF-8, or have no name, are
/// ignored.
pub struct Jar {
    limits: Limits,
    shelf: Mutex<Shelf>,
}

/// The cookies by site: a request's are all on one.
#[derive(Default)]
struct Shelf {
    sites: HashMap<String, Vec<Entry>>,
    len: usize,
    /// Counts events; orders creation and use.
    clock: u64,
}

struct Entry {
    cookie: Cookie<'static>,
    created: u64,
    used: u64,
}

impl Default for Jar {
    fn default() -> Self {
        Jar::new()
    }
}

impl Jar {
    /// An empty jar with the default limits.
    pub fn new() -> Self {
        Jar::with_limits(Limits::default())
    }

    /// An empty jar.
    pub fn with_limits(limits: Limits) -> Self {
        Jar { limits, shelf: Mutex::default() }
    }

    /// How many cookies there are, expired ones that were not met yet included.
    pub fn len(&self) -> usize {
        self.lock().len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all cookies.
    pub fn clear(&self) {
        *self.lock() = Shelf::default();
    }

    /// As [`CookieStore::cookies`], at a time of the caller's.
    pub fn cookies_at(&self, url: &Url, now: SystemTime) -> Option<Vec<u8>> {
        let site = site(url.host_str()?);
        let now = OffsetDateTime::from(now);
        let mut shelf = self.lock();
        shelf.drop_expired(site, &now);
        shelf.clock += 1;
        let clock = shelf.clock;
        let mut due: Vec<&mut Entry> = (shelf.sites.get_mut(site)?.iter_mut())
            .filter(|entry| entry.cookie.matches(url))
            .collect();
        // RFC 6265, 5.4: longer paths first, then older cookies.
        due.sort_by_key(|entry| (std::cmp::Reverse(entry.cookie.path.len()), entry.created));
        let mut value = Vec::new();
        for entry in due {
            entry.used = clock;
            if !value.is_empty() {
                value.extend_from_slice(b"; ");
            }
            let (name, content) = entry.cookie.name_value();
            value.extend_from_slice(name.as_bytes());
            value.push(b'=');
            value.extend_from_slice(content.as_bytes());
        }
        (!value.is_empty()).then_some(value)
    }

    /// As [`CookieStore::set`] with one value, at a time of the caller's.
    ///
    /// # Errors
    ///
    /// The cookie is not kept, for this reason.
    pub fn set_at(&self, url: &Url, value: &[u8], now: SystemTime) -> Result<(), Rejected> {
        let cookie = self.read(url, value, now)?;
        let secure_origin = is_secure(url);
        check_attributes(&cookie, secure_origin)?;
        self.keep(cookie, secure_origin, now)
    }

    /// A `Set-Cookie`, parsed and made to fit its host and this jar.
    fn read(&self, url: &Url, value: &[u8], now: SystemTime) -> Result<Cookie<'static>, Rejected> {
        // 6265bis, 5.6 step 1: any control character but a tab spoils the whole.
        if value.len() > MOST_RAW || value.iter().any(|b| b.is_ascii_control() && *b != b'\t') {
            return Err(Rejected::Malformed);
        }
        let text = str::from_utf8(value).map_err(|_| Rejected::Malformed)?;
        let mut cookie = match Cookie::parse(text, url) {
            Ok(cookie) => cookie.into_owned(),
            Err(cookie_store::CookieError::DomainMismatch) => return Err(Rejected::Domain),
            Err(_) => return Err(Rejected::Malformed),
        };
        cookie.domain = confine(&cookie.domain, url.host_str().ok_or(Rejected::Domain)?)?;
        cookie.expires = self.expiry(&cookie, now);
        Ok(cookie)
    }

    /// 6265bis, 5.7 steps 3 to 5: `Max-Age` before `Expires`, and neither beyond the limit.
    fn expiry(&self, cookie: &Cookie<'_>, now: SystemTime) -> CookieExpiration {
        let now = OffsetDateTime::from(now);
        let latest = time::Duration::try_from(self.limits.lifetime)
            .ok()
            .and_then(|lifetime| now.checked_add(lifetime))
            .unwrap_or(now);
        if let Some(age) = cookie.max_age() {
            // Zero or less has expired already.
            let at = if age.is_positive() { now.checked_add(age).unwrap_or(latest) } else { now };
            return at.min(latest).into();
        }
        match cookie.expires() {
            Some(expires) => match CookieExpiration::from(expires) {
                CookieExpiration::AtUtc(at) => at.min(latest).into(),
                CookieExpiration::SessionEnd => CookieExpiration::SessionEnd,
            },
            None => CookieExpiration::SessionEnd,
        }
    }

    /// Puts a cookie that is acceptable in itself where it belongs.
    fn keep(
        &self,
        cookie: Cookie<'static>,
        secure_origin: bool,
        now: SystemTime,
    ) -> Result<(), Rejected> {
        let (name, value) = cookie.name_value();
        // A file can hold what no field value can.
        if [name, value].iter().any(|part| part.contains(|c: char| c.is_control() || c == ';')) {
            return Err(Rejected::Malformed);
        }
        if name.len() + value.len() > self.limits.size {
            return Err(Rejected::Size);
        }
        let domain = cookie.domain.as_cow().ok_or(Rejected::Domain)?;
        let site = site(&domain).to_owned();
        drop(domain);
        let now = OffsetDateTime::from(now);
        let mut shelf = self.lock();
        shelf.drop_expired(&site, &now);
        if !secure_origin && shelf.hides_secure(&site, &cookie) {
            return Err(Rejected::Insecure);
        }
        shelf.put(&site, cookie, &now);
        shelf.shrink_site(&site, self.limits.per_site);
        shelf.shrink(self.limits.total, &now);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CookieStore for Jar {
    fn cookies(&self, url: &Url) -> Option<Vec<u8>> {
        // Most jars stay empty: what site it is and what time need not be found out for them.
        if self.is_empty() { None } else { self.cookies_at(url, SystemTime::now()) }
    }

    fn set(&self, url: &Url, values: &mut dyn Iterator<Item = &[u8]>) {
        let now = SystemTime::now();
        for value in values {
            if let Err(reason) = self.set_at(url, value, now) {
                tracing::debug!(host = url.host_str(), %reason, "a cookie was not kept");
            }
        }
    }
}

impl fmt::Debug for Jar {
    /// Without the cookies: they are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jar").field("limits", &self.limits).field("len", &self.len()).finish()
    }
}

impl Shelf {
    fn drop_expired(&mut self, site: &str, now: &OffsetDateTime) {
        let Some(entries) = self.sites.get_mut(site) else {
            return;
        };
        let before = entries.len();
        entries.retain(|entry| !entry.cookie.expires_by(now));
        self.len -= before - entries.len();
        if entries.is_empty() {
            self.sites.remove(site);
        }
    }

    /// 6265bis, 5.7 step 16: what came without encryption may not shadow a secure cookie.
    fn hides_secure(&self, site: &str, new: &Cookie<'_>) -> bool {
        self.sites.get(site).into_iter().flatten().any(|entry| {
            let old = &entry.cookie;
            old.secure() == Some(true)
                && old.name() == new.name()
                && domains_meet(&old.domain, &new.domain)
                && path_covers(&old.path, &new.path)
        })
    }

    /// Adds `cookie`, or puts it in the place of the one it replaces; one that has expired only
    /// removes that.
    fn put(&mut self, site: &str, cookie: Cookie<'static>, now: &OffsetDateTime) {
        self.clock += 1;
        let clock = self.clock;
        let expired = cookie.expires_by(now);
        let entries = match self.sites.get_mut(site) {
            Some(entries) => entries,
            None if expired => return,
            None => self.sites.entry(site.to_owned()).or_default(),
        };
        let same = entries.iter().position(|entry| {
            let old = &entry.cookie;
            old.name() == cookie.name() && old.domain == cookie.domain && *old.path == *cookie.path
        });
        match same {
            Some(at) if expired => {
                entries.remove(at);
                self.len -= 1;
            }
            // 6265bis, 5.7 step 23: the creation time stays.
            Some(at) => {
                entries[at].cookie = cookie;
                entries[at].used = clock;
            }
            None if expired => {}
            None => {
                entries.push(Entry { cookie, created: clock, used: clock });
                self.len += 1;
            }
        }
        self.drop_empty(site);
    }

    fn shrink_site(&mut self, site: &str, limit: usize) {
        while let Some(entries) = self.sites.get_mut(site).filter(|entries| entries.len() > limit) {
            let rank = |entry: &Entry| (entry.cookie.secure() == Some(true), entry.used);
            let least = (0..entries.len()).min_by_key(|&at| rank(&entries[at]));
            let Some(at) = least else { return };
            entries.remove(at);
            self.len -= 1;
        }
        self.drop_empty(site);
    }

    fn shrink(&mut self, limit: usize, now: &OffsetDateTime) {
        if self.len <= limit {
            return;
        }
        let sites: Vec<String> = self.sites.keys().cloned().collect();
        for site in &sites {
            self.drop_expired(site, now);
        }
        while self.len > limit {
            let places = (self.sites.iter()).flat_map(|(site, all)| {
                all.iter().enumerate().map(move |(at, e)| (e.used, site, at))
            });
            let Some((_, site, at)) = places.min() else {
                return;
            };
            let site = site.clone();
            if let Some(entries) = self.sites.get_mut(&site) {
                entries.remove(at);
                self.len -= 1;
            }
            self.drop_empty(&site);
        }
    }

    fn drop_empty(&mut self, site: &str) {
        if self.sites.get(site).is_some_and(Vec::is_empty) {
            self.sites.remove(site);
        }
    }

    /// All, oldest first.
    fn all(&self) -> Vec<&Cookie<'static>> {
        let mut all: Vec<&Entry> = self.sites.values().flatten().collect();
        all.sort_by_key(|entry| entry.created);
        all.into_iter().map(|entry| &entry.cookie).collect()
    }
}

/// Why a cookie is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected {
    /// It does not parse, has no name, is not UTF-8, or contains control characters.
    Malformed,
    /// Name and value are larger than the limit.
    Size,
    /// It is for a domain the host does not belong to, or for a public suffix.
    Domain,
    /// It, or one that it would hide, is `Secure`, and its origin is not.
    Insecure,
    /// Its name promises (`__Host-`, `__Secure-`) what its attributes do not keep.
    Prefix,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejected::Malformed => "it is malformed",
            Rejected::Size => "it is too large",
            Rejected::Domain => "it is for a domain its host may not set cookies for",
            Rejected::Insecure => "it touches a secure cookie over an insecure connection",
            Rejected::Prefix => "it does not keep the promise of its name's prefix",
        })
    }
}

impl std::error::Error for Rejected {}

/// 6265bis, 5.7 steps 10 and 20 to 22.
fn check_attributes(cookie: &Cookie<'_>, secure_origin: bool) -> Result<(), Rejected> {
    let secure = cookie.secure() == Some(true);
    if secure && !secure_origin {
        return Err(Rejected::Insecure);
    }
    let named = |prefix: &str| {
        let start = cookie.name().as_bytes().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    let host_only = cookie.domain().is_none_or(str::is_empty);
    if named("__Secure-") && !secure
        || named("__Host-") && !(secure && host_only && cookie.path() == Some("/"))
    {
        return Err(Rejected::Prefix);
    }
    Ok(())
}

/// The domain a cookie of `host` is kept under: the one it asks for, if that belongs to the same
/// registrable domain. So none is kept for a public suffix, but a host that is one (and asks for
/// itself) gets a cookie of its own (6265bis, 5.7 step 9).
fn confine(domain: &CookieDomain, host: &str) -> Result<CookieDomain, Rejected> {
    let CookieDomain::Suffix(wanted) = domain else {
        return Ok(domain.clone());
    };
    match (registrable(wanted), registrable(host)) {
        (Some(theirs), Some(ours)) if theirs == ours => Ok(domain.clone()),
        _ if wanted == host => Ok(CookieDomain::HostOnly(wanted.clone())),
        _ => Err(Rejected::Domain),
    }
}

/// The registrable domain of a host: one label and a public suffix. An unlisted top-level domain
/// is a public suffix. `None` for addresses, public suffixes, and single labels.
fn registrable(host: &str) -> Option<&str> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return None;
    }
    psl::domain_str(host)
}

/// What groups cookies: a host's registrable domain, or itself.
fn site(host: &str) -> &str {
    registrable(host).unwrap_or(host)
}

/// As [`Cookie::matches`] sees it.
fn is_secure(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(url::Host::Domain(domain)) => domain == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

/// Whether either domain lies within the other.
fn domains_meet(a: &CookieDomain, b: &CookieDomain) -> bool {
    let within = |inner: &str, outer: &str| {
        let rest = inner.strip_suffix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match (a.as_cow(), b.as_cow()) {
        (Some(a), Some(b)) => within(&a, &b) || within(&b, &a),
        _ => false,
    }
}

/// RFC 6265, section 5.1.4: whether `outer`, as a cookie's path, matches a request for `inner`.
fn path_covers(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || outer.ends_with('/') || rest.starts_with('/'))
}
