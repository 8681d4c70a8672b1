//! permessage-deflate (RFC 7692): what is agreed on.

mod coding;
mod pack;

use std::fmt;

use super::Role;
use super::extension::{Extension, NotAList};
pub(super) use coding::{Deflate, Inflate};

/// The name of the extension.
pub(super) const NAME: &str = "permessage-deflate";

/// What a window may have (RFC 7692 section 7.1.2): 2^8 to 2^15 bytes.
const BITS: std::ops::RangeInclusive<u8> = 8..=15;

/// What one end does with its compressor (RFC 7692 section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Direction {
    /// It begins each message afresh: less memory in between, less compression.
    pub no_context_takeover: bool,
    /// Its window has 2^this bytes: 8 to 15.
    pub window_bits: u8,
}

impl Default for Direction {
    fn default() -> Self {
        Self { no_context_takeover: false, window_bits: *BITS.end() }
    }
}

/// How what is sent is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// 0 to 9: from none to smallest. 1 unless set.
    ///
    /// 1 is made for messages: it takes a tenth of the time of 6 for JSON of 1 KiB, whose messages then are
    /// two fifths larger; its memory is at most 72 KiB and not 370; and a message that would not become smaller goes
    /// out as it is.
    pub level: u32,
    /// Shorter messages go out as they are. 128 bytes unless set.
    pub threshold: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { level: 1, threshold: 128 }
    }
}

/// What a client offers, and what a server is willing to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// What the server's compressor is asked for.
    pub server: Direction,
    /// What the client's compressor promises, and the most that the server may ask of it.
    pub client: Direction,
    /// How this end compresses: not part of what is agreed on.
    pub tuning: Tuning,
}

/// What both ends agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreed {
    /// The server's compressor.
    pub server: Direction,
    /// The client's compressor.
    pub client: Direction,
    /// How this end compresses.
    pub tuning: Tuning,
}

/// The parameters of an offer or of an answer (RFC 7692 section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Params {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: Option<u8>,
    /// In an offer it may come without a value.
    client_max_window_bits: Option<Option<u8>>,
}

impl Params {
    /// RFC 7692 section 7.1: an unknown or repeated parameter, or a bad value, spoils the whole.
    fn read(extension: &Extension<'_>) -> Result<Self, NotAList> {
        let mut all = Self::default();
        for (name, value) in &extension.params {
            let flag = |set: &mut bool| match value {
                None if !*set => {
                    *set = true;
                    Ok(())
                }
                _ => Err(NotAList),
            };
            match *name {
                "server_no_context_takeover" => flag(&mut all.server_no_context_takeover)?,
                "client_no_context_takeover" => flag(&mut all.client_no_context_takeover)?,
                "server_max_window_bits" if all.server_max_window_bits.is_none() => {
                    let value = value.as_deref().ok_or(NotAList)?;
                    all.server_max_window_bits = Some(bits(value)?);
                }
                "client_max_window_bits" if all.client_max_window_bits.is_none() => {
                    all.client_max_window_bits = Some(value.as_deref().map(bits).transpose()?);
                }
                _ => return Err(NotAList),
            }
        }
        Ok(all)
    }
}

/// A decimal without leading zeroes, 8 to 15 (RFC 7692 section 7.1.2.1).
fn bits(value: &str) -> Result<u8, NotAList> {
    if value.starts_with('0') || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAList);
    }
    value.parse().ok().filter(|bits| BITS.contains(bits)).ok_or(NotAList)
}

impl fmt::Display for Offer {
    /// As it stands in `Sec-WebSocket-Extensions`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)?;
        write_direction(f, "server", self.server)?;
        if self.client.no_context_takeover {
            f.write_str("; client_no_context_takeover")?;
        }
        // Without it the server could not ask for a smaller window (RFC 7692 section 7.1.2.2).
        f.write_str("; client_max_window_bits")?;
        if self.client.window_bits < *BITS.end() {
            write!(f, "={}", self.client.window_bits)?;
        }
        Ok(())
    }
}

impl fmt::Display for Agreed {
    /// As a server answers it in `Sec-WebSocket-Extensions`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)?;
        write_direction(f, "server", self.server)?;
        write_direction(f, "client", self.client)
    }
}

fn write_direction(f: &mut fmt::Formatter<'_>, whose: &str, direction: Direction) -> fmt::Result {
    if direction.no_context_takeover {
        write!(f, "; {whose}_no_context_takeover")?;
    }
    if direction.window_bits < *BITS.end() {
        write!(f, "; {whose}_max_window_bits={}", direction.window_bits)?;
    }
    Ok(())
}

impl Offer {
    /// What a server's answer to this offer agrees on (RFC 7692 section 7.1).
    pub(super) fn answered(&self, extension: &Extension<'_>) -> Result<Agreed, NotAList> {
        let params = Params::read(extension)?;
        let most = *BITS.end();
        let server = Direction {
            no_context_takeover: params.server_no_context_takeover,
            window_bits: params.server_max_window_bits.unwrap_or(most),
        };
        // Section 7.1.1.1 and 7.1.2.1: what was asked for has to be granted.
        if self.server.no_context_takeover && !server.no_context_takeover
            || server.window_bits > self.server.window_bits
        {
            return Err(NotAList);
        }
        // Section 7.1.2.2: in an answer it has a value, and not a larger one than was offered.
        let client_bits = match params.client_max_window_bits {
            None => self.client.window_bits,
            Some(None) => return Err(NotAList),
            Some(Some(bits)) if bits > self.client.window_bits => return Err(NotAList),
            Some(Some(bits)) => bits,
        };
        let client = Direction {
            no_context_takeover: self.client.no_context_takeover
                || params.client_no_context_takeover,
            window_bits: client_bits,
        };
        Ok(Agreed { server, client, tuning: self.tuning })
    }

    /// What a server that is willing to take this makes of a client's offer; `None` when it cannot be
    /// met.
    pub(super) fn accept(&self, extension: &Extension<'_>) -> Option<Agreed> {
        let params = Params::read(extension).ok()?;
        let asked = params.server_max_window_bits.unwrap_or(*BITS.end());
        let server = Direction {
            no_context_takeover: self.server.no_context_takeover
                || params.server_no_context_takeover,
            window_bits: self.server.window_bits.min(asked),
        };
        let client_bits = match params.client_max_window_bits {
            // Section 7.1.2.2: a client that does not offer it cannot be asked for less.
            None if self.client.window_bits < *BITS.end() => return None,
            None => *BITS.end(),
            Some(offered) => self.client.window_bits.min(offered.unwrap_or(*BITS.end())),
        };
        let client = Direction {
            no_context_takeover: self.client.no_context_takeover
                || params.client_no_context_takeover,
            window_bits: client_bits,
        };
        Some(Agreed { server, client, tuning: self.tuning })
    }
}

impl Agreed {
    /// What `role` reads with.
    pub(super) fn inflate(&self, role: Role) -> Inflate {
        Inflate::new(if role == Role::Client { self.server } else { self.client })
    }

    /// What `role` writes with.
    pub(super) fn deflate(&self, role: Role) -> Deflate {
        let direction = if role == Role::Client { self.client } else { self.server };
        Deflate::new(direction, self.tuning)
    }
}
