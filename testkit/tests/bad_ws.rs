//! Misbehaviour over WebSocket, met by the crate `tungstenite`: a client that nobody here wrote agrees with
//! the table, but where this file names how it differs.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::time::Duration;

use common::socket::*;
use common::{PATIENCE, origin};
use futures_util::StreamExt;
use mimus_testkit::{BadWs, Origin, WsAsk, WsOutcome, bad_ws};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

/// What a client waits for a message.
const WAIT: Duration = Duration::from_millis(1500);

/// How tungstenite ends where a right client, or this table, would have it otherwise.
const OTHERWISE: &[(&str, WsOutcome)] = &[
    // It reads one line of a field, as a whole and in its first spelling.
    ("accept-twice-wrong", WsOutcome::Closed),
    ("protocol-twice", WsOutcome::Closed),
    ("connection-list", WsOutcome::Protocol),
    // It knows no extensions, and does not look for them.
    ("extension-unasked", WsOutcome::Closed),
    ("extension-unknown", WsOutcome::Closed),
    // It takes 1xx for the answer, and a head in small pieces for an attack.
    ("status-102", WsOutcome::Refused),
    ("handshake-behind-103", WsOutcome::Refused),
    ("handshake-behind-100", WsOutcome::Refused),
    ("handshake-drip", WsOutcome::Protocol),
    // It takes a length in any of its forms.
    ("ping-16-bit", WsOutcome::Closed),
    ("length-16-short", WsOutcome::Closed),
    ("length-64-short", WsOutcome::Closed),
    ("length-64-16", WsOutcome::Closed),
    // It leaves it to its user to end the connection in time.
    ("close-then-open", WsOutcome::Timeout),
];

fn outcome(error: &Error) -> WsOutcome {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => WsOutcome::Closed,
        Error::Http(_) => WsOutcome::Refused,
        Error::Capacity(CapacityError::MessageTooLong { .. }) => WsOutcome::Limit,
        Error::Io(_)
        | Error::Protocol(
            ProtocolError::ResetWithoutClosingHandshake | ProtocolError::HandshakeIncomplete,
        ) => WsOutcome::Lost,
        _ => WsOutcome::Protocol,
    }
}

/// Receives to the end: how many messages there were, and how it ended.
async fn receive<S>(mut socket: WebSocketStream<S>, ask: WsAsk) -> (u64, WsOutcome)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = 0;
    let all = async {
        if ask == WsAsk::Close {
            let bye = CloseFrame { code: CloseCode::Normal, reason: "".into() };
            socket.close(Some(bye)).await.map_err(|error| outcome(&error))?;
        }
        loop {
            match socket.next().await {
                None => return Ok(()),
                Some(Ok(Message::Text(_) | Message::Binary(_))) => messages += 1,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(outcome(&error)),
            }
        }
    };
    let ended = match timeout(WAIT, all).await {
        Err(_) => WsOutcome::Timeout,
        Ok(Ok(())) => WsOutcome::Closed,
        Ok(Err(outcome)) => outcome,
    };
    (messages, ended)
}

async fn meet(origin: &Origin, row: &BadWs, http2: bool) -> (u64, WsOutcome) {
    let path = format!("/bad-ws/{}", row.name);
    let fields: &[(&'static str, &str)] = match row.ask {
        WsAsk::Chat => &[("sec-websocket-protocol", "chat, superchat")],
        _ => &[],
    };
    if http2 {
        let socket = open_h2(origin, &path, fields).await.expect("over HTTP/2 all rows are opened");
        return receive(socket, row.ask).await;
    }
    match timeout(WAIT, open(origin, &path, fields)).await {
        Err(_) => (0, WsOutcome::Timeout),
        Ok(Err(error)) => (0, outcome(&error)),
        Ok(Ok((socket, _))) => receive(socket, row.ask).await,
    }
}

/// `None` when all is as the table has it.
async fn judge(origin: &Origin, row: &BadWs, http2: bool) -> Option<String> {
    origin.reset();
    let (messages, ended) = timeout(PATIENCE, meet(origin, row, http2)).await.expect("in time");
    if let Some(&(_, known)) = OTHERWISE.iter().find(|(name, _)| *name == row.name) {
        return (known != ended).then(|| format!("{}: {ended:?}, not {known:?}", row.name));
    }
    // It answers a wrong Close with the right code, and tells its user of no error.
    let told = ended == WsOutcome::Closed
        && seen(origin)
            .close
            .is_some_and(|(code, _)| code.is_some_and(|code| row.codes.contains(&code)));
    if !row.right.contains(&ended) && !told {
        return Some(format!("{}: {ended:?}, not {:?}", row.name, row.right));
    }
    // Of what comes behind its own Close, a client gives as much as it likes.
    let counts = ended == WsOutcome::Closed && row.ask != WsAsk::Close;
    (counts && messages != row.messages)
        .then(|| format!("{}: {messages} messages, not {}", row.name, row.messages))
}

#[test]
fn a_client_that_nobody_here_wrote_agrees_with_the_table() {
    // It knows no compression; those rows are met by the client they are for.
    let rows: Vec<_> = bad_ws().iter().filter(|row| row.ask != WsAsk::Deflate).collect();
    assert!(rows.len() > 130, "{}", rows.len());
    let surprises: Vec<String> = std::thread::scope(|scope| {
        let begin = |share: Vec<&'static BadWs>| {
            scope.spawn(move || {
                let origin = origin();
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let mut surprises = Vec::new();
                for row in share {
                    surprises.extend(runtime.block_on(judge(&origin, row, false)));
                    // What is wrong in the fields of an answer over HTTP/2, tungstenite is not shown.
                    let in_fields = ["extension-", "protocol-"];
                    if row.http2 && !in_fields.iter().any(|name| row.name.starts_with(name)) {
                        surprises.extend(runtime.block_on(judge(&origin, row, true)));
                    }
                }
                surprises
            })
        };
        let shares: Vec<_> =
            rows.chunks(rows.len().div_ceil(16)).map(<[_]>::to_vec).map(begin).collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}
