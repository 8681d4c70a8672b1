//! How a connection begins: an upgrade of HTTP/1.1 (RFC 6455 section 4), or an extended CONNECT of
//! HTTP/2 and later (RFC 8441 section 5). Fields in, fields out.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{StatusCode, Version};
use sha1::{Digest as _, Sha1};

use super::extension::{self, is_token};
use crate::{Fields, InvalidField, RequestHead, ResponseHead};

/// RFC 6455 section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The version that all of this is about (RFC 6455 section 4.1).
pub const VERSION: &str = "13";

const EXTENSIONS: &str = "Sec-WebSocket-Extensions";
const PROTOCOL: &str = "Sec-WebSocket-Protocol";
const ACCEPT: &str = "Sec-WebSocket-Accept";
const KEY: &str = "Sec-WebSocket-Key";

/// What shows that an answer is one to this handshake (RFC 6455 section 4.1, item 7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key from 16 random bytes.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        Self(STANDARD.encode(random))
    }

    /// As it stands in `Sec-WebSocket-Key`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the server has to answer in `Sec-WebSocket-Accept` (RFC 6455 section 4.2.2, item 5.4).
    #[must_use]
    pub fn accept(&self) -> String {
        let hash = Sha1::new().chain_update(self.0.as_bytes()).chain_update(GUID).finalize();
        STANDARD.encode(hash)
    }
}

macro_rules! refusals {
    ($($(#[$meta:meta])* $name:ident = $text:literal,)+) => {
        /// Why an answer does not make a WebSocket.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Refused {
            /// Another status than 101, or than 2xx to an extended CONNECT: the server did not take it
            /// up, and its body may say why.
            Status(StatusCode),
            $(#[doc = concat!("\"", $text, "\"")] $(#[$meta])* $name,)+
        }

        impl fmt::Display for Refused {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Status(status) => write!(f, "the server answered {status}"),
                    $(Self::$name => f.write_str($text),)+
                }
            }
        }
    };
}

refusals! {
    /// RFC 9110 section 7.8.
    Version = "an answer in HTTP/1.0, which has no upgrade",
    /// RFC 6455 section 4.1, item 2 of the checks.
    Upgrade = "no Upgrade to websocket in the answer",
    /// RFC 6455 section 4.1, item 3.
    Connection = "no Connection: Upgrade in the answer",
    /// RFC 6455 section 4.1, item 4.
    Accept = "a Sec-WebSocket-Accept that does not fit the key, or none",
    /// RFC 6455 section 4.1, item 5.
    Extension = "an extension, or a parameter of one, that was not offered",
    /// RFC 6455 section 4.1, item 6.
    Protocol = "a subprotocol that was not offered",
}

impl std::error::Error for Refused {}

/// What a client offers besides the handshake itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Subprotocols, the best first (RFC 6455 section 1.9).
    pub protocols: Vec<String>,
    /// Compression.
    #[cfg(feature = "ws-deflate")]
    pub deflate: Option<super::deflate::Offer>,
}

/// What the server chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// One of the subprotocols, if any.
    pub protocol: Option<String>,
    /// Compression, if it was taken up.
    #[cfg(feature = "ws-deflate")]
    pub deflate: Option<super::deflate::Agreed>,
}

impl Offer {
    /// Appends what a GET over HTTP/1.1 needs besides `Host` (RFC 6455 section 4.1).
    ///
    /// # Errors
    /// [`InvalidField`] for a subprotocol that is not a token. Some fields may have been appended then.
    pub fn append_upgrade(&self, key: &Key, fields: &mut Fields) -> Result<(), InvalidField> {
        fields.append("Connection", "Upgrade")?;
        fields.append("Upgrade", "websocket")?;
        fields.append("Sec-WebSocket-Version", VERSION)?;
        fields.append(KEY, key.as_str())?;
        self.append_choices(fields)
    }

    /// Appends what an extended CONNECT with the protocol `websocket` needs: no key, no upgrade
    /// (RFC 8441 section 5).
    ///
    /// # Errors
    /// As for [`append_upgrade`](Self::append_upgrade).
    pub fn append_connect(&self, fields: &mut Fields) -> Result<(), InvalidField> {
        fields.append("sec-websocket-version", VERSION)?;
        self.append_choices(fields)
    }

    fn append_choices(&self, fields: &mut Fields) -> Result<(), InvalidField> {
        #[cfg(feature = "ws-deflate")]
        if let Some(deflate) = &self.deflate {
            fields.append(EXTENSIONS, deflate.to_string())?;
        }
        // RFC 6455 section 4.1, item 10.
        if !self.protocols.iter().all(|name| !name.is_empty() && name.bytes().all(is_token)) {
            return Err(InvalidField::Value);
        }
        if !self.protocols.is_empty() {
            fields.append(PROTOCOL, self.protocols.join(", "))?;
        }
        Ok(())
    }

    /// Checks the answer to an upgrade (RFC 6455 section 4.1).
    ///
    /// # Errors
    /// [`Refused`]: there is no WebSocket; the connection is of no more use unless it is a status.
    pub fn check_upgrade(&self, key: &Key, head: &ResponseHead) -> Result<Accepted, Refused> {
        if head.status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(Refused::Status(head.status));
        }
        if head.version < Version::HTTP_11 {
            return Err(Refused::Version);
        }
        if !has_only(&head.fields, "Upgrade", b"websocket") {
            return Err(Refused::Upgrade);
        }
        if !has_token(&head.fields, "Connection", b"upgrade") {
            return Err(Refused::Connection);
        }
        let mut accepts = head.fields.get_all(ACCEPT);
        if accepts.next() != Some(key.accept().as_bytes()) || accepts.next().is_some() {
            return Err(Refused::Accept);
        }
        self.check_choices(&head.fields)
    }

    /// Checks the answer to an extended CONNECT (RFC 8441 section 5): a status of 2xx stands for 101.
    ///
    /// # Errors
    /// [`Refused`]: there is no WebSocket.
    pub fn check_connect(&self, head: &ResponseHead) -> Result<Accepted, Refused> {
        if !head.status.is_success() {
            return Err(Refused::Status(head.status));
        }
        self.check_choices(&head.fields)
    }

    fn check_choices(&self, fields: &Fields) -> Result<Accepted, Refused> {
        let mut accepted = Accepted::default();
        let extensions =
            extension::read(fields.get_all(EXTENSIONS)).map_err(|_| Refused::Extension)?;
        // Whatever is left over was not offered, or comes twice.
        let rest = extensions.as_slice();
        #[cfg(feature = "ws-deflate")]
        let rest = match (&self.deflate, rest) {
            (Some(offer), [first, rest @ ..]) if first.name == super::deflate::NAME => {
                accepted.deflate = Some(offer.answered(first).map_err(|_| Refused::Extension)?);
                rest
            }
            _ => rest,
        };
        if !rest.is_empty() {
            return Err(Refused::Extension);
        }
        let mut protocols = fields.get_all(PROTOCOL);
        if let Some(chosen) = protocols.next() {
            // One, exactly as it was offered.
            let offered = self.protocols.iter().find(|offered| offered.as_bytes() == chosen);
            match (offered, protocols.next()) {
                (Some(offered), None) => accepted.protocol = Some(offered.clone()),
                _ => return Err(Refused::Protocol),
            }
        }
        Ok(accepted)
    }
}

/// Whether the one value of a field is this, in any case.
fn has_only(fields: &Fields, name: &str, value: &[u8]) -> bool {
    let mut all = fields.get_all(name);
    all.next().is_some_and(|first| first.eq_ignore_ascii_case(value)) && all.next().is_none()
}

/// Whether a list has this element, in any case.
fn has_token(fields: &Fields, name: &str, token: &[u8]) -> bool {
    fields.list(name).any(|element| element.eq_ignore_ascii_case(token))
}

/// What a server finds wrong with a request (RFC 6455 section 4.2.1): the status to answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRequest {
    /// 400: it is not a handshake, or not a whole one.
    NotAHandshake,
    /// 426: another version. The answer names [`VERSION`] in `Sec-WebSocket-Version` (section 4.4).
    Version,
}

/// A server's view of a handshake over HTTP/1.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    key: Key,
    /// The subprotocols that the client speaks, its favourite first.
    pub protocols: Vec<String>,
    #[cfg(feature = "ws-deflate")]
    deflate: Option<super::deflate::Agreed>,
}

impl Request {
    /// Reads a request. A server's `willing` compression is used if one of the client's offers can be
    /// met with it.
    ///
    /// # Errors
    /// [`BadRequest`].
    pub fn read(
        head: &RequestHead,
        #[cfg(feature = "ws-deflate")] willing: Option<&super::deflate::Offer>,
    ) -> Result<Self, BadRequest> {
        let fields = &head.fields;
        if head.method != http::Method::GET
            || !has_token(fields, "Upgrade", b"websocket")
            || !has_token(fields, "Connection", b"upgrade")
        {
            return Err(BadRequest::NotAHandshake);
        }
        if !has_only(fields, "Sec-WebSocket-Version", VERSION.as_bytes()) {
            return Err(BadRequest::Version);
        }
        let mut keys = fields.get_all(KEY);
        let key = match (keys.next(), keys.next()) {
            (Some(key), None) => std::str::from_utf8(key).ok(),
            _ => None,
        };
        // Section 4.2.1, item 5: 16 bytes in base64.
        let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
        let key = Key(key.ok_or(BadRequest::NotAHandshake)?.to_owned());
        let protocols = fields.list(PROTOCOL);
        let protocols = protocols.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        #[cfg(feature = "ws-deflate")]
        let deflate = {
            let offers = extension::read(fields.get_all(EXTENSIONS))
                .map_err(|_| BadRequest::NotAHandshake)?;
            let mut offers = offers.iter().filter(|offer| offer.name == super::deflate::NAME);
            willing.and_then(|willing| offers.find_map(|offer| willing.accept(offer)))
        };
        Ok(Self {
            key,
            protocols,
            #[cfg(feature = "ws-deflate")]
            deflate,
        })
    }

    /// Compression, if it is agreed on.
    #[cfg(feature = "ws-deflate")]
    #[must_use]
    pub fn deflate(&self) -> Option<&super::deflate::Agreed> {
        self.deflate.as_ref()
    }

    /// The fields of a 101, with one of the client's subprotocols if one is chosen.
    ///
    /// # Errors
    /// [`InvalidField`] for a subprotocol that is not a token.
    pub fn answer(&self, protocol: Option<&str>) -> Result<Fields, InvalidField> {
        let mut fields = Fields::new();
        fields.append("Upgrade", "websocket")?;
        fields.append("Connection", "Upgrade")?;
        fields.append(ACCEPT, self.key.accept())?;
        #[cfg(feature = "ws-deflate")]
        if let Some(agreed) = &self.deflate {
            fields.append(EXTENSIONS, agreed.to_string())?;
        }
        if let Some(protocol) = protocol {
            fields.append(PROTOCOL, protocol)?;
        }
        Ok(fields)
    }
}
