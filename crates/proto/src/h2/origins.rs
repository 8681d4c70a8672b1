//! The origins that a server says it is there for (ORIGIN, RFC 8336).

use super::frame::Header;

/// The server's Origin Set, but for the origin that the connection was made for, which is always in it
/// (RFC 8336 section 2.3).
#[derive(Debug, Default)]
pub(super) struct OriginSet {
    /// `None`: the server has not said.
    origins: Option<Vec<Box<str>>>,
}

/// Whether an ORIGIN frame means anything: on stream 0, and without the flags that would change what it
/// means (RFC 8336 section 2.1).
pub(super) fn is_valid(header: Header) -> bool {
    header.stream == 0 && header.flags & 0x0f == 0
}

impl OriginSet {
    /// Adds what a frame names, up to `most` origins in all. The rest, and what names no origin over TLS, is
    /// not remembered: no connection is thought to serve more than it does.
    pub(super) fn add(&mut self, mut payload: &[u8], most: usize) {
        let origins = self.origins.get_or_insert_default();
        while let Some((len, rest)) = payload.split_first_chunk()
            && let Some((entry, rest)) = rest.split_at_checked(u16::from_be_bytes(*len).into())
        {
            payload = rest;
            if origins.len() < most
                && let Ok(origin) = std::str::from_utf8(entry)
                && origin.starts_with("https://")
            {
                origins.push(origin.into());
            }
        }
    }

    /// Whether the server has said whom it is there for.
    pub(super) fn is_named(&self) -> bool {
        self.origins.is_some()
    }

    /// Whether the server has said whom it is there for, and `origin` is not among them.
    pub(super) fn excludes(&self, origin: &str) -> bool {
        let origins = self.origins.as_ref();
        origins.is_some_and(|all| !all.iter().any(|one| one.eq_ignore_ascii_case(origin)))
    }
}
