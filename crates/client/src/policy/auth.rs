//! Authentication (RFC 9110, section 11): Basic and Bearer credentials, and the challenges of a
//! server or proxy. [`DigestSession`] answers those that ask for more.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use zeroize::Zeroizing;

pub use super::digest::{Challenged, DigestSession};
pub use super::netrc::{Netrc, NetrcError};

#[cfg(test)]
mod tests;

/// Text that never shows: `Debug` hides it, and its memory is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Secret(Zeroizing::new(text.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What a user proves to be allowed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// RFC 7617: sent with the first request.
    Basic {
        /// The user-id.
        user: String,
        /// Its password.
        password: Secret,
    },
    /// RFC 6750: sent with the first request.
    Bearer(Secret),
    /// RFC 7616: the answer to a challenge; see [`DigestSession`].
    Digest {
        /// The user name.
        user: String,
        /// Its password.
        password: Secret,
    },
}

impl Credentials {
    /// A user-id and its password, by the Basic scheme.
    pub fn basic(user: impl Into<String>, password: impl Into<String>) -> Self {
        Credentials::Basic { user: user.into(), password: Secret::from(password) }
    }

    /// A bearer token.
    pub fn bearer(token: impl Into<String>) -> Self {
        Credentials::Bearer(Secret::from(token))
    }

    /// A user name and its password, by the Digest scheme.
    pub fn digest(user: impl Into<String>, password: impl Into<String>) -> Self {
        Credentials::Digest { user: user.into(), password: Secret::from(password) }
    }

    /// The value of `Authorization` or `Proxy-Authorization` that needs no challenge, marked
    /// sensitive; `None` for Digest.
    ///
    /// # Errors
    ///
    /// The credentials contain what the scheme cannot carry.
    pub fn preemptive(&self) -> Result<Option<HeaderValue>, AuthError> {
        match self {
            Credentials::Basic { user, password } => basic(user, password.expose()).map(Some),
            Credentials::Bearer(token) => bearer(token.expose()).map(Some),
            Credentials::Digest { .. } => Ok(None),
        }
    }
}

/// The credentials of RFC 7617, in UTF-8, as the value of a field marked sensitive.
///
/// # Errors
///
/// `user` contains a colon, or either a control character (RFC 7617, section 2).
pub fn basic(user: &str, password: &str) -> Result<HeaderValue, AuthError> {
    if user.contains(':') {
        return Err(AuthError::ColonInUser);
    }
    refuse_controls(user)?;
    refuse_controls(password)?;
    let pair = Zeroizing::new(format!("{user}:{password}"));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    sensitive(value.as_bytes())
}

/// The credentials of RFC 6750 as the value of a field marked sensitive.
///
/// # Errors
///
/// `token` is empty, or contains anything but visible ASCII. Only the alphabet of RFC 6750 is
/// promised to work, but servers exist that issue more.
pub fn bearer(token: &str) -> Result<HeaderValue, AuthError> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AuthError::Token);
    }
    let value = Zeroizing::new(format!("Bearer {token}"));
    sensitive(value.as_bytes())
}

pub(super) fn refuse_controls(text: &str) -> Result<(), AuthError> {
    match text.chars().any(char::is_control) {
        true => Err(AuthError::ControlCharacter),
        false => Ok(()),
    }
}

pub(super) fn sensitive(value: &[u8]) -> Result<HeaderValue, AuthError> {
    let mut value = HeaderValue::from_bytes(value).map_err(|_| AuthError::ControlCharacter)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Why credentials could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    /// A user-id with a colon cannot be told from its password.
    ColonInUser,
    /// A control character in a user, a password or a challenge.
    ControlCharacter,
    /// A bearer token that is empty or not visible ASCII.
    Token,
    /// No challenge has been seen yet, so there is nothing to answer.
    NoChallenge,
    /// The server insists on a digest over the body, which is a stream.
    BodyNotAtHand,
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AuthError::ColonInUser => "the user name contains a colon",
            AuthError::ControlCharacter => "a control character in the credentials",
            AuthError::Token => "the bearer token is not made of visible ASCII characters",
            AuthError::NoChallenge => "there is no challenge to answer",
            AuthError::BodyNotAtHand => {
                "the server wants a digest over the body, which is a stream"
            }
        })
    }
}

impl Error for AuthError {}

/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// The scheme, as the server spells it.
    pub scheme: &'a str,
    /// A token68 in place of parameters (as in `Negotiate`).
    pub token68: Option<&'a str>,
    /// The parameters in order, unquoted. Values need not be UTF-8.
    pub params: Vec<(&'a str, Cow<'a, [u8]>)>,
}

impl Challenge<'_> {
    /// Whether the scheme is `scheme`, in any case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The first parameter called `name`, in any case.
    pub fn param(&self, name: &str) -> Option<&[u8]> {
        find_param(&self.params, name)
    }
}

fn find_param<'p>(params: &'p [(&str, Cow<'_, [u8]>)], name: &str) -> Option<&'p [u8]> {
    params.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
}

/// The challenges in the value of one field, in order (RFC 9110, section 11.6.1). What does not
/// parse ends the list: the challenges before it stand.
pub fn challenges(value: &[u8]) -> Vec<Challenge<'_>> {
    let mut scan = Scan { rest: value };
    let mut list: Vec<Challenge<'_>> = Vec::new();
    loop {
        scan.skip(|byte| is_space(byte) || byte == b',');
        let Some(word) = scan.token() else {
            return list;
        };
        let before = scan.rest;
        scan.skip(is_space);
        if scan.eat(b'=') {
            let (Some(challenge), Some(value)) = (list.last_mut(), scan.param_value()) else {
                return list;
            };
            challenge.params.push((word, value));
            continue;
        }
        let spaced = scan.rest.len() < before.len();
        let token68 = if spaced { scan.token68() } else { None };
        list.push(Challenge { scheme: word, token68, params: Vec::new() });
    }
}

/// The parameters of `Authentication-Info` (RFC 7615, section 3), up to what does not parse.
pub(super) fn info_param(value: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut scan = Scan { rest: value };
    let mut params = Vec::new();
    loop {
        scan.skip(|byte| is_space(byte) || byte == b',');
        let Some(word) = scan.token() else { break };
        scan.skip(is_space);
        if !scan.eat(b'=') {
            break;
        }
        let Some(value) = scan.param_value() else {
            break;
        };
        params.push((word, value));
    }
    find_param(&params, name).map(<[u8]>::to_vec)
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| !wanted(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        self.take(wanted);
    }

    fn eat(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn token(&mut self) -> Option<&'a str> {
        Some(self.take(is_tchar)).filter(|t| !t.is_empty()).and_then(|t| str::from_utf8(t).ok())
    }

    /// A token68 that fills the rest of its list element; otherwise nothing is taken.
    fn token68(&mut self) -> Option<&'a str> {
        let start = self.rest;
        let body = self.take(|b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b)).len();
        let padding = self.take(|byte| byte == b'=').len();
        let text = str::from_utf8(&start[..body + padding]).ok();
        self.skip(is_space);
        if body > 0 && matches!(self.rest.first(), None | Some(b',')) {
            return text;
        }
        self.rest = start;
        None
    }

    /// What follows the `=` of a parameter. An unquoted value may be more than a token: servers
    /// send base64 that way.
    fn param_value(&mut self) -> Option<Cow<'a, [u8]>> {
        self.skip(is_space);
        if self.eat(b'"') {
            return self.quoted();
        }
        Some(self.take(|byte| !is_space(byte) && byte != b',').into())
    }

    /// The rest of a quoted-string (RFC 9110, section 5.6.4) behind its first quote.
    fn quoted(&mut self) -> Option<Cow<'a, [u8]>> {
        let plain = self.take(|byte| byte != b'"' && byte != b'\\');
        if self.eat(b'"') {
            return Some(plain.into());
        }
        let mut value = plain.to_vec();
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                b'"' => return Some(value.into()),
                b'\\' => {
                    let (&escaped, rest) = self.rest.split_first()?;
                    self.rest = rest;
                    value.push(escaped);
                }
                _ => value.push(byte),
            }
        }
        None
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// RFC 9110, section 5.6.2.
fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
