//! `Sec-WebSocket-Extensions` (RFC 6455 section 9.1): `token *( ";" token [ "=" value ] )`, a list.

use std::borrow::Cow;

/// The field, or a part of it, is not what its grammar or its extension allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAList;

/// One extension with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extension<'a> {
    pub(super) name: &'a str,
    pub(super) params: Vec<(&'a str, Option<Cow<'a, str>>)>,
}

/// Takes all values of the field apart.
pub(super) fn read<'a>(
    values: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<Extension<'a>>, NotAList> {
    let mut all = Vec::new();
    for value in values {
        let mut rest = Rest(std::str::from_utf8(value).map_err(|_| NotAList)?);
        loop {
            // An empty element of a list means nothing (RFC 9110 section 5.6.1).
            if rest.eat(',') {
                continue;
            }
            if rest.is_empty() {
                break;
            }
            all.push(rest.extension()?);
            if !rest.is_empty() && !rest.eat(',') {
                return Err(NotAList);
            }
        }
    }
    Ok(all)
}

struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn is_empty(&mut self) -> bool {
        self.skip();
        self.0.is_empty()
    }

    fn eat(&mut self, mark: char) -> bool {
        self.skip();
        match self.0.strip_prefix(mark) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn token(&mut self) -> Result<&'a str, NotAList> {
        self.skip();
        let end = self.0.bytes().position(|byte| !is_token(byte)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        if token.is_empty() { Err(NotAList) } else { Ok(token) }
    }

    fn extension(&mut self) -> Result<Extension<'a>, NotAList> {
        let name = self.token()?;
        let mut params = Vec::new();
        while self.eat(';') {
            let name = self.token()?;
            let value = if self.eat('=') { Some(self.value()?) } else { None };
            params.push((name, value));
        }
        Ok(Extension { name, params })
    }

    /// RFC 6455 section 9.1: a quoted value is a token once it is unquoted.
    fn value(&mut self) -> Result<Cow<'a, str>, NotAList> {
        if !self.eat('"') {
            return self.token().map(Cow::Borrowed);
        }
        let mut value = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' if value.is_empty() || !value.bytes().all(is_token) => return Err(NotAList),
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Ok(Cow::Owned(value));
                }
                '\\' => value.push(chars.next().ok_or(NotAList)?.1),
                char => value.push(char),
            }
        }
        Err(NotAList)
    }
}

/// RFC 9110 section 5.6.2.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
