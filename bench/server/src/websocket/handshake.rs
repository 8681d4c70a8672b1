//! The opening handshake (RFC 6455 section 4.2, RFC 7692 section 7.1).

use std::fmt::Write as _;

use boring::{base64, sha};

use crate::request::Refusal;

/// RFC 6455 section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The characters of a SHA-1 in base64.
const ACCEPT: usize = 28;
/// The largest window there is.
const MAX_BITS: u8 = 15;

/// What the client said of it, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) upgrade: bool,
    pub(crate) version: bool,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) extensions: Vec<&'a [u8]>,
}

/// A handshake that will be answered with `101`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handshake {
    accept: [u8; ACCEPT],
    deflate: Option<Deflate>,
}

/// What both sides keep to with `permessage-deflate`. What a client compressed is sent back as it came,
/// so this server's side of the agreement is always that of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Deflate {
    no_context_takeover: bool,
    max_window_bits: Option<u8>,
}

impl Handshake {
    /// The path is that of a WebSocket; `deflate` is whether it is the one with `permessage-deflate`.
    pub(crate) fn new(fields: &Fields<'_>, deflate: bool) -> Result<Self, Refusal> {
        let key = fields.key.filter(|_| fields.upgrade && fields.version);
        let digest = sha::sha1(&[key.ok_or(Refusal::BadRequest)?, GUID].concat());
        let accept = base64::encode_block(&digest);
        let offers = fields.extensions.iter().flat_map(|list| list.split(|byte| *byte == b','));
        let agreed = match deflate {
            false => None,
            // A client that does not offer it would be measured at something else than it says.
            true => Some(offers.into_iter().find_map(agree).ok_or(Refusal::BadRequest)?),
        };
        let accept = accept.as_bytes().try_into().map_err(|_| Refusal::BadRequest)?;
        Ok(Self { accept, deflate: agreed })
    }

    /// The `101` and its end.
    pub(crate) fn answer(&self, head: &mut Vec<u8>) {
        head.extend_from_slice(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Accept: ",
        );
        head.extend_from_slice(&self.accept);
        head.extend_from_slice(b"\r\n");
        if let Some(deflate) = self.deflate {
            head.extend_from_slice(b"Sec-WebSocket-Extensions: permessage-deflate");
            head.extend_from_slice(deflate.parameters().as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
    }
}

impl Deflate {
    fn parameters(self) -> String {
        let mut text = String::new();
        if self.no_context_takeover {
            text.push_str("; server_no_context_takeover; client_no_context_takeover");
        }
        if let Some(bits) = self.max_window_bits {
            // Writing to a `String` has no errors.
            let _ = write!(text, "; server_max_window_bits={bits}; client_max_window_bits={bits}");
        }
        text
    }
}

/// What is agreed to of an offer, if it is one that can be kept by sending back what came.
fn agree(offer: &[u8]) -> Option<Deflate> {
    let mut parts = std::str::from_utf8(offer).ok()?.split(';').map(str::trim);
    if parts.next() != Some("permessage-deflate") {
        return None;
    }
    let mut agreed = Deflate { no_context_takeover: false, max_window_bits: None };
    let mut narrows = false;
    for part in parts {
        let (name, value) = part.split_once('=').map_or((part, None), |(n, v)| (n, Some(v)));
        match (name.trim(), value.map(|value| value.trim().trim_matches('"'))) {
            ("server_no_context_takeover" | "client_no_context_takeover", None) => {
                agreed.no_context_takeover = true;
            }
            ("server_max_window_bits", Some(bits)) => {
                agreed.max_window_bits = Some(bits.parse().ok()?).filter(|bits| *bits < MAX_BITS);
            }
            ("client_max_window_bits", _) => narrows = true,
            _ => return None,
        }
    }
    // Without its leave the client cannot be told to use a smaller window (RFC 7692 section 7.1.2.2).
    (narrows || agreed.max_window_bits.is_none()).then_some(agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(key: &'a [u8], extensions: &[&'a [u8]]) -> Fields<'a> {
        Fields { upgrade: true, version: true, key: Some(key), extensions: extensions.to_vec() }
    }

    fn answer(extensions: &[&[u8]], deflate: bool) -> Option<String> {
        let handshake = Handshake::new(&fields(b"dGhlIHNhbXBsZSBub25jZQ==", extensions), deflate);
        let mut head = Vec::new();
        handshake.ok()?.answer(&mut head);
        String::from_utf8(head).ok()
    }

    #[test]
    fn the_key_of_the_rfc_is_accepted() {
        // RFC 6455 section 1.3.
        let plain = answer(&[b"permessage-deflate"], false).expect("it is accepted");
        assert!(plain.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        assert!(!plain.contains("Extensions"));
        let mut incomplete = fields(b"", &[]);
        incomplete.upgrade = false;
        assert_eq!(Handshake::new(&incomplete, false), Err(Refusal::BadRequest));
    }

    #[test]
    fn an_offer_is_agreed_to_as_far_as_it_can_be_kept() {
        for (offers, agreed) in [
            (&[&b"permessage-deflate"[..]][..], Some("permessage-deflate\r\n")),
            (&[b"x-a, permessage-deflate; client_max_window_bits"], Some("permessage-deflate\r\n")),
            (
                &[b"x-a", b"permessage-deflate; client_no_context_takeover"],
                Some("; server_no_context_takeover; client_no_context_takeover\r\n"),
            ),
            (
                &[b"permessage-deflate; server_max_window_bits=\"10\"; client_max_window_bits=15"],
                Some("; server_max_window_bits=10; client_max_window_bits=10\r\n"),
            ),
            (&[b"permessage-deflate; server_max_window_bits=10"], None),
            (
                &[b"permessage-deflate; server_max_window_bits=10, permessage-deflate"],
                Some("Extensions: permessage-deflate\r\n"),
            ),
            (&[b"permessage-deflate; unheard_of"], None),
            (&[], None),
        ] {
            match (answer(offers, true), agreed) {
                (Some(head), Some(agreed)) => assert!(head.contains(agreed), "{head}"),
                (head, agreed) => assert_eq!(head.as_deref(), agreed, "{offers:?}"),
            }
        }
    }
}
