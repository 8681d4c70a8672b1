//! Cookies in files: JSON, and the `cookies.txt` of Netscape, curl and browser extensions.

use super::{Jar, confine};
use cookie_store::{Cookie, CookieDomain, CookieExpiration};
use std::error::Error;
use std::fmt;
use std::fmt::Write;
use std::time::SystemTime;
use time::OffsetDateTime;
use url::Url;

const HEADER: &str = "# Netscape HTTP Cookie File\n";

/// How `cookies.txt` marks a cookie as `HttpOnly`: in a field that others take for a comment.
const HTTP_ONLY: &str = "#HttpOnly_";

impl Jar {
    /// The cookies as a JSON array, oldest first: those with an expiry, and, if `session`, those
    /// without. It contains secrets.
    ///
    /// # Errors
    ///
    /// A cookie cannot be written, which none that came over the wire causes.
    pub fn to_json(&self, session: bool) -> Result<String, CookieFileError> {
        let shelf = self.lock();
        let all = shelf.all().into_iter().filter(|cookie| session || cookie.is_persistent());
        serde_json::to_string_pretty(&all.collect::<Vec<_>>()).map_err(CookieFileError::from_json)
    }

    /// Adds the cookies of [`to_json`](Self::to_json), except those that have expired at `now` or
    /// that a server could not have set. Returns how many were added.
    ///
    /// # Errors
    ///
    /// The text is not such a file; then nothing is added.
    pub fn add_json(&self, text: &str, now: SystemTime) -> Result<usize, CookieFileError> {
        let cookies: Vec<Cookie<'static>> =
            serde_json::from_str(text).map_err(CookieFileError::from_json)?;
        Ok(self.add(cookies, now))
    }

    /// The cookies as a `cookies.txt`, oldest first. It contains secrets. A cookie with a tab in
    /// it, which the format cannot hold, is left out.
    pub fn to_netscape(&self, session: bool) -> String {
        let mut text = String::from(HEADER);
        for cookie in self.lock().all() {
            if session || cookie.is_persistent() {
                write_line(&mut text, cookie);
            }
        }
        text
    }

    /// Adds the cookies of a `cookies.txt`, except those that have expired at `now` or that a
    /// server could not have set. Returns how many were added.
    ///
    /// # Errors
    ///
    /// A line is neither a cookie nor a comment; then nothing is added.
    pub fn add_netscape(&self, text: &str, now: SystemTime) -> Result<usize, CookieFileError> {
        let mut cookies = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let is_comment = line.starts_with('#') && !line.starts_with(HTTP_ONLY);
            if line.trim().is_empty() || is_comment {
                continue;
            }
            let bad = CookieFileError { line: number, column: None };
            cookies.push(read_line(line).ok_or(bad)?);
        }
        Ok(self.add(cookies, now))
    }

    fn add(&self, cookies: Vec<Cookie<'static>>, now: SystemTime) -> usize {
        let moment = OffsetDateTime::from(now);
        let mut added = 0;
        for mut cookie in cookies {
            let host = cookie.domain.as_cow().map(|host| host.into_owned());
            let Some(host) = host.filter(|host| is_host(host) && is_path(&cookie.path)) else {
                continue;
            };
            let Ok(domain) = confine(&cookie.domain, &host) else {
                continue;
            };
            cookie.domain = domain;
            // What is in the file was accepted from its origin once: take that for secure.
            if !cookie.expires_by(&moment) && self.keep(cookie, true, now).is_ok() {
                added += 1;
            }
        }
        added
    }
}

/// Whether this is a host as URLs have it, in its one spelling.
fn is_host(text: &str) -> bool {
    Url::parse(&format!("https://{text}/")).is_ok_and(|url| url.host_str() == Some(text))
}

/// Whether a `Path` attribute can say this.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(|c: char| c.is_control() || c == ';')
}

fn write_line(text: &mut String, cookie: &Cookie<'_>) {
    let (name, value) = cookie.name_value();
    let (domain, subdomains) = match &cookie.domain {
        CookieDomain::HostOnly(host) => (host.clone(), "FALSE"),
        CookieDomain::Suffix(domain) => (format!(".{domain}"), "TRUE"),
        CookieDomain::NotPresent | CookieDomain::Empty => return,
    };
    if [name, value, &cookie.path].iter().any(|part| part.contains('\t')) {
        return;
    }
    let http_only = if cookie.http_only() == Some(true) { HTTP_ONLY } else { "" };
    let secure = if cookie.secure() == Some(true) { "TRUE" } else { "FALSE" };
    let expires = match cookie.expires {
        CookieExpiration::AtUtc(at) => at.unix_timestamp(),
        CookieExpiration::SessionEnd => 0,
    };
    let path = &*cookie.path;
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{http_only}{domain}\t{subdomains}\t{path}\t{secure}\t{expires}\t{name}\t{value}"
    );
}

/// A cookie line: domain, whether with subdomains, path, whether secure, expiry in seconds since
/// 1970 or 0, name, and value, which may be missing.
fn read_line(line: &str) -> Option<Cookie<'static>> {
    let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
        Some(line) => (line, "; HttpOnly"),
        None => (line, ""),
    };
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (domain, subdomains, path) = (next()?, is_true(next()?)?, next()?);
    let (secure, expires, name) = (is_true(next()?)?, next()?.parse::<i64>().ok()?, next()?);
    let value = next().unwrap_or_default();
    if next().is_some() || [path, name, value].iter().any(|part| part.contains(';')) {
        return None;
    }
    let host = domain.trim_start_matches('.');
    let mut attributes = format!("; Path={path}{http_only}");
    if secure {
        attributes.push_str("; Secure");
    }
    if subdomains {
        attributes += &format!("; Domain={host}");
    }
    let url = Url::parse(&format!("https://{host}/")).ok()?;
    let mut cookie = Cookie::parse(format!("{name}={value}{attributes}"), &url).ok()?;
    cookie.expires = match expires {
        0 => CookieExpiration::SessionEnd,
        // A time that no date can express is in the far future, or past.
        at => OffsetDateTime::from_unix_timestamp(at)
            .unwrap_or(if at > 0 { far_future() } else { OffsetDateTime::UNIX_EPOCH })
            .into(),
    };
    Some(cookie)
}

fn far_future() -> OffsetDateTime {
    time::Date::MAX.with_time(time::Time::MIDNIGHT).assume_utc()
}

fn is_true(word: &str) -> Option<bool> {
    match () {
        () if word.eq_ignore_ascii_case("true") => Some(true),
        () if word.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

/// Why a text is no cookie file. It repeats none of the text, which holds secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookieFileError {
    line: usize,
    column: Option<usize>,
}

impl CookieFileError {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    fn from_json(cause: serde_json::Error) -> Self {
        CookieFileError { line: cause.line(), column: Some(cause.column()) }
    }
}

impl fmt::Display for CookieFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        f.write_str(" of the cookie file is not what it should be")
    }
}

impl Error for CookieFileError {}
