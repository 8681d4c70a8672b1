//! The opening handshake (RFC 6455 section 4.2, RFC 8441 section 5).

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use crate::conn::After;
use crate::exchange::{Exchange, Wire};
use crate::request::Version;
use crate::response::Response;

/// What a server hashes a key with (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A field of the answer.
pub(crate) type Field = (String, String);

pub(crate) fn field(name: &str, value: impl Into<String>) -> Field {
    (name.to_owned(), value.into())
}

/// What Sec-WebSocket-Accept has to be for the request's key.
pub(crate) fn accept_of(ex: &Exchange) -> String {
    let mut hash = Sha1::new();
    hash.update(ex.request.header("sec-websocket-key").unwrap_or_default());
    hash.update(GUID);
    STANDARD.encode(hash.finalize())
}

/// The subprotocols that the client offers, in its order.
pub(crate) fn offered(ex: &Exchange) -> Vec<String> {
    let lines = ex.request.headers_of("sec-websocket-protocol");
    lines.flat_map(|line| line.split(',')).map(|one| one.trim().to_owned()).collect()
}

/// What is wrong with the request as an opening handshake.
fn fault(ex: &Exchange) -> Option<&'static str> {
    let request = &ex.request;
    if request.headers_of("sec-websocket-version").collect::<Vec<_>>() != ["13"] {
        return Some("Sec-WebSocket-Version is not 13");
    }
    if let Wire::Two(_) = ex.wire {
        let asked = request.protocol.as_deref() == Some("websocket");
        return (!asked).then_some(":protocol is not websocket");
    }
    let keys: Vec<_> = request.headers_of("sec-websocket-key").collect();
    let key = match keys.as_slice() {
        [one] => STANDARD.decode(one).unwrap_or_default(),
        _ => Vec::new(),
    };
    let faults = [
        (request.method != "GET", "the method is not GET"),
        (request.version != Version::Http11, "the version is not HTTP/1.1"),
        (!request.has_token("upgrade", "websocket"), "Upgrade does not name websocket"),
        (!request.has_token("connection", "upgrade"), "Connection does not name Upgrade"),
        (key.len() != 16, "Sec-WebSocket-Key is not 16 bytes in base64"),
        (request.headers_of("sec-websocket-protocol").any(str::is_empty), "an empty subprotocol"),
    ];
    faults.into_iter().find_map(|(is, what)| is.then_some(what))
}

/// Answers what is no right handshake, with 400, or, where it is no handshake at all, with 426.
pub(crate) async fn refuse(ex: &mut Exchange) -> io::Result<Option<After>> {
    let Some(why) = fault(ex) else {
        return Ok(None);
    };
    let tried = ["sec-websocket-version", "sec-websocket-key"];
    let status = if tried.iter().any(|name| ex.request.header(name).is_some()) { 400 } else { 426 };
    let response = Response::text(status, format!("{why}\n"))
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13");
    let response = match ex.wire {
        Wire::One(_) => response.header("connection", "upgrade"),
        Wire::Two(_) => response,
    };
    ex.reply(response).await.map(Some)
}

/// The head of a right answer over HTTP/1.1, whole.
pub(crate) fn head(ex: &Exchange, more: &[Field]) -> String {
    let mut fields = vec![
        field("upgrade", "websocket"),
        field("connection", "Upgrade"),
        field("sec-websocket-accept", accept_of(ex)),
    ];
    fields.extend_from_slice(more);
    crate::response::head(101, &fields) + "\r\n"
}

/// Answers that the socket is open: 101, or over HTTP/2 200.
pub(crate) async fn accept(ex: &mut Exchange, more: &[Field]) -> io::Result<()> {
    let head = head(ex, more);
    match &mut ex.wire {
        Wire::One(one) => one.conn.write(head.as_bytes()).await,
        Wire::Two(stream) => {
            let fields = more.to_vec();
            stream.begin(Response { headers: fields, ..Response::new(200) }, false)
        }
    }
}
