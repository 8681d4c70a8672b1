//! The user's `.netrc`: logins by host, as ftp, curl and others read it.

use super::auth::{Credentials, Secret};
use std::error::Error;
use std::fmt;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// The entries of a netrc file, in order.
#[derive(Debug, Clone, Default)]
pub struct Netrc {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// `None`: the default, which fits every host.
    host: Option<String>,
    login: Option<String>,
    password: Option<Secret>,
}

impl Netrc {
    /// The login for `host` (a host alone, as in [`Url::host_str`](url::Url::host_str): neither
    /// port nor userinfo): that of its first entry with a login, or else of the default one. They
    /// are Basic credentials; a missing password is an empty one.
    pub fn lookup(&self, host: &str) -> Option<Credentials> {
        self.find(host, |_| true)
    }

    /// As [`lookup`](Self::lookup), for one `user`: the password of a login that is known, as
    /// from a URL with a user and no password.
    pub fn lookup_user(&self, host: &str, user: &str) -> Option<Credentials> {
        self.find(host, |login| login == user)
    }

    fn find(&self, host: &str, wanted: impl Fn(&str) -> bool) -> Option<Credentials> {
        let fits = |entry: &Entry| {
            entry.host.as_ref().is_none_or(|known| known.eq_ignore_ascii_case(host))
        };
        // A host's own entry hides the default, even one that comes first and even if its login
        // is not the wanted one: the default was not meant for it.
        let own = self.names(host);
        let candidates = self.entries.iter().filter(|e| e.host.is_some() == own && fits(e));
        candidates.into_iter().find_map(|entry| {
            let user = entry.login.as_ref().filter(|login| wanted(login))?.clone();
            let password = entry.password.clone().unwrap_or_else(|| Secret::from(""));
            Some(Credentials::Basic { user, password })
        })
    }

    /// Whether there is an entry for `host` other than the default.
    pub(crate) fn names(&self, host: &str) -> bool {
        let mut hosts = self.entries.iter().filter_map(|entry| entry.host.as_ref());
        hosts.any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether a file with these permission bits (`st_mode`) can be read by others than its owner,
    /// of which a user wants to be warned.
    pub fn is_exposed(mode: u32) -> bool {
        mode & 0o077 != 0
    }
}

impl FromStr for Netrc {
    type Err = NetrcError;

    /// Reads the text of a netrc file. Macros and accounts are passed over.
    fn from_str(text: &str) -> Result<Self, NetrcError> {
        let mut words = Words { rest: text, line: 1 };
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(word) = words.next()? {
            match word.as_str() {
                "machine" => entries.push(Entry::of(Some(words.operand("machine")?))),
                "default" => entries.push(Entry::of(None)),
                "login" => {
                    let login = words.operand("login")?;
                    words.entry(&mut entries, "login")?.login = Some(login);
                }
                "password" => {
                    let password = words.operand("password")?;
                    words.entry(&mut entries, "password")?.password = Some(password.into());
                }
                "account" => drop(words.operand("account")?),
                "macdef" => words.skip_macro(),
                _ => return Err(words.error(Problem::UnknownWord)),
            }
        }
        Ok(Netrc { entries })
    }
}

impl Entry {
    fn of(host: Option<String>) -> Self {
        Entry { host, login: None, password: None }
    }
}

struct Words<'a> {
    rest: &'a str,
    line: usize,
}

impl Words<'_> {
    /// The next word, unquoted; comments are passed over.
    fn next(&mut self) -> Result<Option<String>, NetrcError> {
        loop {
            let trimmed = self.rest.trim_start();
            self.advance(self.rest.len() - trimmed.len());
            if !self.rest.starts_with('#') {
                break;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
        if self.rest.starts_with('"') {
            return self.quoted().map(Some);
        }
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let word = self.rest[..end].to_owned();
        self.advance(end);
        Ok((!word.is_empty()).then_some(word))
    }

    /// A word in quotes, as curl reads it: `\n`, `\r` and `\t` are those characters, any other
    /// character behind a backslash is itself.
    fn quoted(&mut self) -> Result<String, NetrcError> {
        let mut word = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.advance(at + 1);
                    return Ok(word);
                }
                '\n' => break,
                '\\' => word.extend(chars.next().map(|(_, escaped)| match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                })),
                other => word.push(other),
            }
        }
        Err(self.error(Problem::OpenQuote))
    }

    fn operand(&mut self, of: &'static str) -> Result<String, NetrcError> {
        self.next()?.ok_or_else(|| self.error(Problem::Missing(of)))
    }

    fn entry<'e>(
        &self,
        entries: &'e mut [Entry],
        word: &'static str,
    ) -> Result<&'e mut Entry, NetrcError> {
        entries.last_mut().ok_or_else(|| self.error(Problem::NoMachine(word)))
    }

    /// A macro's name and lines, up to an empty one.
    fn skip_macro(&mut self) {
        let end = ["\n\n", "\n\r\n"].iter().filter_map(|end| self.rest.find(end)).min();
        self.advance(end.unwrap_or(self.rest.len()));
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }

    fn error(&self, problem: Problem) -> NetrcError {
        NetrcError { line: self.line, problem }
    }
}

/// Why a text is no netrc file. It repeats none of the text, which may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetrcError {
    line: usize,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    UnknownWord,
    Missing(&'static str),
    NoMachine(&'static str),
    OpenQuote,
}

impl NetrcError {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for NetrcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the netrc file: ", self.line)?;
        match self.problem {
            Problem::UnknownWord => f.write_str("a word that is no keyword"),
            Problem::Missing(word) => write!(f, "nothing follows `{word}`"),
            Problem::NoMachine(word) => write!(f, "`{word}` comes before any `machine`"),
            Problem::OpenQuote => f.write_str("a quote that is not closed on its line"),
        }
    }
}

impl Error for NetrcError {}
