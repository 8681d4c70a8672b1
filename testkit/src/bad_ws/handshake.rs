//! Answers to the opening handshake that are not the answer (RFC 6455 section 4.1).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{BadWs, Done, WsAsk, WsOutcome, answered, row};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::ws::Socket;
use crate::ws::frame;
use crate::ws::handshake::{accept_of, head};

/// How long a dripping server waits before each byte.
const GAP: Duration = Duration::from_millis(1);

pub(super) fn rows() -> Vec<BadWs> {
    let mut all = accepts();
    all.extend(fields());
    all.extend(agreements());
    all.extend(manners());
    all
}

/// Sends the right head as `change` makes it wrong, and closes the socket behind it.
fn changed(name: &str, what: &str, change: fn(&Exchange, String) -> String) -> BadWs {
    row(name, what, move |ex| -> Done<'_> {
        Box::pin(async move {
            let whole = change(ex, head(ex, &[]));
            ex.write([whole.as_bytes(), &frame::close(1000, "")].concat()).await?;
            let mut socket = Socket::new(ex);
            socket.listen().await?;
            socket.end(After::Close)
        })
    })
    .ends(&[WsOutcome::Protocol])
    .http1()
}

/// The head without the line of this field.
fn without(head: &str, name: &str) -> String {
    let keep = |line: &&str| !line.to_ascii_lowercase().starts_with(&format!("{name}:"));
    head.split("\r\n").filter(keep).collect::<Vec<_>>().join("\r\n")
}

/// The head with one more line.
fn with(head: &str, line: &str) -> String {
    format!("{}{line}\r\n\r\n", &head[..head.len() - 2])
}

fn accepts() -> Vec<BadWs> {
    vec![
        changed("accept-missing", "no Sec-WebSocket-Accept", |_, head| {
            without(&head, "sec-websocket-accept")
        }),
        changed("accept-wrong", "the Sec-WebSocket-Accept of RFC 6455's example", |ex, head| {
            head.replace(&accept_of(ex), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        }),
        changed("accept-is-the-key", "Sec-WebSocket-Accept is the key itself", |ex, head| {
            let key = ex.request.header("sec-websocket-key").unwrap_or_default();
            head.replace(&accept_of(ex), key)
        }),
        changed("accept-case", "Sec-WebSocket-Accept in the other case", |ex, head| {
            let swap = |c: char| {
                if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
            };
            let accept = accept_of(ex);
            head.replace(&accept, &accept.chars().map(swap).collect::<String>())
        }),
        changed("accept-short", "Sec-WebSocket-Accept without its padding", |ex, head| {
            let accept = accept_of(ex);
            head.replace(&accept, accept.trim_end_matches('='))
        }),
        changed("accept-twice-wrong", "a right Sec-WebSocket-Accept and a wrong one", |_, head| {
            with(&head, "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        }),
    ]
}

fn fields() -> Vec<BadWs> {
    vec![
        changed("upgrade-missing", "101 without Upgrade", |_, head| without(&head, "upgrade")),
        changed("upgrade-other", "101 that upgrades to h2c", |_, head| {
            head.replace("upgrade: websocket", "upgrade: h2c")
        }),
        changed("upgrade-case", "Upgrade: WebSocket, which is the same", |_, head| {
            head.replace("upgrade: websocket", "Upgrade: WebSocket")
        })
        .ends(&[WsOutcome::Closed]),
        changed("connection-missing", "101 without Connection", |_, head| {
            without(&head, "connection")
        }),
        changed("connection-other", "101 with Connection: keep-alive", |_, head| {
            head.replace("connection: Upgrade", "connection: keep-alive")
        }),
        changed("connection-list", "Upgrade is one of two options of Connection", |_, head| {
            head.replace("connection: Upgrade", "connection: keep-alive,  upgrade")
        })
        .ends(&[WsOutcome::Closed]),
        changed("status-200", "200 with all the fields of a 101, and no length", |_, head| {
            head.replace("101 Switching Protocols", "200 OK")
        })
        .ends(&[WsOutcome::Refused, WsOutcome::Protocol]),
        changed("status-102", "102 where 101 should be, and nothing more", |_, head| {
            head.replace("101 Switching Protocols", "102 Processing")
        })
        .ends(&[WsOutcome::Lost, WsOutcome::Timeout, WsOutcome::Protocol]),
        changed("version-1-0", "101 of HTTP/1.0", |_, head| head.replace("HTTP/1.1", "HTTP/1.0"))
            // RFC 6455 has a client look at the status alone; RFC 9110 section 7.8 knows no Upgrade there.
            .ends(&[WsOutcome::Protocol, WsOutcome::Closed]),
        changed("length-with-101", "101 with Content-Length (RFC 9110, 8.6)", |_, head| {
            with(&head, "content-length: 4")
        })
        .ends(&[WsOutcome::Closed, WsOutcome::Protocol]),
    ]
}

fn agreements() -> Vec<BadWs> {
    const PROTOCOL: &str = "sec-websocket-protocol";
    const EXTENSIONS: &str = "sec-websocket-extensions";
    let plain = |name: &str, what: &str, fields: &[(&str, &str)]| {
        answered(name, what, fields, Vec::new()).ends(&[WsOutcome::Protocol])
    };
    let chat =
        |name: &str, what: &str, value: &[(&str, &str)]| plain(name, what, value).ask(WsAsk::Chat);
    let deflate = |name: &str, what: &str, value: &str| {
        plain(name, what, &[(EXTENSIONS, value)]).ask(WsAsk::Deflate)
    };
    vec![
        plain("protocol-unasked", "a subprotocol nobody offered", &[(PROTOCOL, "chat")]),
        chat("protocol-other", "a subprotocol that was not offered", &[(PROTOCOL, "mqtt")]),
        chat(
            "protocol-list",
            "two subprotocols where one is chosen",
            &[(PROTOCOL, "chat, superchat")],
        ),
        chat(
            "protocol-twice",
            "two lines of Sec-WebSocket-Protocol (11.3.4)",
            &[(PROTOCOL, "chat"), (PROTOCOL, "superchat")],
        ),
        chat("protocol-case", "a subprotocol in another case than offered", &[(PROTOCOL, "CHAT")]),
        chat("protocol-none", "none of the subprotocols is chosen", &[])
            .ends(&[WsOutcome::Closed, WsOutcome::Protocol]),
        plain(
            "extension-unasked",
            "permessage-deflate unasked",
            &[(EXTENSIONS, "permessage-deflate")],
        ),
        plain("extension-unknown", "an extension nobody knows", &[(EXTENSIONS, "x-rot13")]),
        deflate(
            "deflate-and-unknown",
            "what was offered, and what was not",
            "permessage-deflate, x-rot13",
        ),
        deflate(
            "deflate-twice",
            "permessage-deflate agreed to twice (RFC 7692, 5.1)",
            "permessage-deflate, permessage-deflate",
        ),
        deflate(
            "deflate-parameter-unknown",
            "a parameter that there is not (RFC 7692, 7.1)",
            "permessage-deflate; level=9",
        ),
        deflate(
            "deflate-parameter-twice",
            "a parameter twice (RFC 7692, 7.1)",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        ),
        deflate(
            "deflate-bits-low",
            "server_max_window_bits of 7 (RFC 7692, 7.1.2.1; CVE-2026-2229)",
            "permessage-deflate; server_max_window_bits=7",
        ),
        deflate(
            "deflate-bits-high",
            "server_max_window_bits of 16 (RFC 7692, 7.1.2.1; CVE-2026-2229)",
            "permessage-deflate; server_max_window_bits=16",
        ),
        deflate(
            "deflate-bits-huge",
            "server_max_window_bits beyond any number (CVE-2026-2229)",
            "permessage-deflate; server_max_window_bits=99999999999999999999",
        ),
        deflate(
            "deflate-bits-zero-first",
            "server_max_window_bits with a leading zero (RFC 7692, 7.1.2.1)",
            "permessage-deflate; server_max_window_bits=010",
        ),
        deflate(
            "deflate-bits-none",
            "server_max_window_bits without its value (RFC 7692, 7.1.2.1)",
            "permessage-deflate; server_max_window_bits",
        ),
        deflate(
            "deflate-takeover-value",
            "server_no_context_takeover with a value (RFC 7692, 7.1.1.1)",
            "permessage-deflate; server_no_context_takeover=1",
        ),
        deflate(
            "extensions-broken",
            "Sec-WebSocket-Extensions that does not parse",
            "permessage-deflate; =; ,",
        ),
    ]
}

/// What the head is made of, and what comes behind it in one piece.
type Said = fn(&Exchange) -> Vec<u8>;

/// Writes these bytes in the way told, and then waits for the client.
fn manner(
    name: &str,
    what: &str,
    said: Said,
    write: for<'a> fn(&'a mut Exchange, Vec<u8>) -> Done<'a>,
) -> BadWs {
    let write = Arc::new(write);
    row(name, what, move |ex| -> Done<'_> {
        let write = Arc::clone(&write);
        Box::pin(async move {
            let bytes = said(ex);
            match write(ex, bytes).await? {
                After::Keep => {}
                ended => return Ok(ended),
            }
            let mut socket = Socket::new(ex);
            socket.listen().await?;
            socket.end(After::Close)
        })
    })
    .http1()
}

fn at_once(ex: &mut Exchange, bytes: Vec<u8>) -> Done<'_> {
    Box::pin(async move {
        ex.write(bytes).await?;
        Ok(After::Keep)
    })
}

async fn drip(ex: &mut Exchange, bytes: Vec<u8>) -> io::Result<After> {
    for byte in bytes {
        ex.write([byte]).await?;
        tokio::time::sleep(GAP).await;
    }
    Ok(After::Keep)
}

/// The head, a text, and a Close.
fn greeting(ex: &Exchange) -> Vec<u8> {
    [head(ex, &[]).into_bytes(), frame::text("hello"), frame::close(1000, "")].concat()
}

fn half_head(ex: &Exchange) -> Vec<u8> {
    let mut bytes = head(ex, &[]).into_bytes();
    bytes.truncate(bytes.len() / 2);
    bytes
}

fn manners() -> Vec<BadWs> {
    vec![
        manner("handshake-drip", "all of it byte by byte", greeting, |ex, bytes| {
            Box::pin(drip(ex, bytes))
        })
        .gives(1)
        .with(&[1000]),
        manner(
            "handshake-with-frames",
            "the frames are in the segment of the head",
            greeting,
            at_once,
        )
        .gives(1)
        .with(&[1000]),
        manner(
            "handshake-behind-103",
            "103 before 101",
            |ex| {
                let early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_vec();
                [early, greeting(ex)].concat()
            },
            at_once,
        )
        .gives(1),
        manner(
            "handshake-behind-100",
            "100 before 101",
            |ex| [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), greeting(ex)].concat(),
            at_once,
        )
        .gives(1),
        manner("handshake-silent", "never answers", |_| Vec::new(), at_once)
            .ends(&[WsOutcome::Timeout]),
        manner("handshake-half-silent", "half a head, and silence", half_head, at_once)
            .ends(&[WsOutcome::Timeout]),
        manner("handshake-half-fin", "half a head, and FIN", half_head, |ex, bytes| {
            Box::pin(async move {
                ex.write(bytes).await?;
                Ok(After::Close)
            })
        })
        .ends(&[WsOutcome::Lost, WsOutcome::Protocol]),
        manner(
            "handshake-fin",
            "FIN instead of an answer",
            |_| Vec::new(),
            |_, _| Box::pin(async { Ok(After::Close) }),
        )
        .ends(&[WsOutcome::Lost]),
        manner("handshake-garbage", "an answer that is not HTTP", |_| vec![0x81; 64], at_once)
            .ends(&[WsOutcome::Protocol]),
    ]
}
