//! WebSockets that behave, each in its way.

use std::io;

use serde_json::json;

use super::frame::{self, FIN, op};
use super::handshake::{self, Field, field};
use super::{Got, Socket, deflate};
use crate::bad_ws;
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;
use crate::routes::{Route, route};

/// The largest message that is made up, in bytes.
const MAX_MADE: usize = 64 << 20;

const WS: &[&str] = &["GET", "CONNECT"];

pub(crate) const ROUTES: &[Route] = &[
    route(
        "/ws/echo",
        WS,
        "says back each message; takes the last subprotocol offered; ?deflate=yes|reset agrees to \
         permessage-deflate, ?headers=1 says the request's fields first",
        |ex| Box::pin(echo(ex)),
    ),
    route("/ws/close", WS, "closes at once, with ?code= and ?reason=", |ex| Box::pin(close(ex))),
    route(
        "/ws/drop",
        WS,
        "says back ?after=0 messages, then FIN without a Close, or RST with ?reset=1",
        |ex| Box::pin(drop_after(ex)),
    ),
    route("/ws/silent", WS, "reads, and never says a word", |ex| Box::pin(silent(ex))),
    route(
        "/ws/count",
        WS,
        "sends ?n=10 texts of ?size=0 bytes or more at once, then closes, or with ?stay=1 waits",
        |ex| Box::pin(count(ex)),
    ),
    route(
        "/ws/fragments",
        WS,
        "one text of ?n=3 fragments of ?size=5 bytes, with ?ping=1 a ping behind each; then closes",
        |ex| Box::pin(fragments(ex)),
    ),
    route(
        "/ws/ping",
        WS,
        "sends ?n=1 pings, waits for the pong of each, says how many there were, and closes",
        |ex| Box::pin(ping(ex)),
    ),
    route(
        "/ws/stuck",
        WS,
        "sends ?n=3 pings ?ms=300 later, reads nothing before ?hold=300 more, then goes on as /ws/echo \
         without answers",
        |ex| Box::pin(stuck(ex)),
    ),
    route("/ws/refuse", WS, "answers with ?status=403 and a body", |ex| Box::pin(refuse(ex))),
    route("/ws/redirect", WS, "?status=307 to ?to=/ws/echo", |ex| Box::pin(redirect(ex))),
    route("/ws/basic/{user}/{password}", WS, "/ws/echo for those credentials, else 401", |ex| {
        Box::pin(basic(ex))
    }),
    route("/bad-ws/{name}", WS, "a row of misbehaviour, listed below", |ex| {
        Box::pin(bad_ws::serve(ex))
    }),
];

/// Answers the handshake; what it agreed to is said in `more`.
async fn open<'e>(ex: &'e mut Exchange, more: &[Field]) -> io::Result<Result<Socket<'e>, After>> {
    if let Some(after) = handshake::refuse(ex).await? {
        return Ok(Err(after));
    }
    let mut fields = more.to_vec();
    if let Some(last) = handshake::offered(ex).pop() {
        fields.push(field("sec-websocket-protocol", last));
    }
    let agreed = ex.query("deflate").and_then(|how| {
        deflate::agree(ex.request.headers_of("sec-websocket-extensions"), how == "reset")
    });
    if let Some(agreed) = agreed {
        fields.push(field("sec-websocket-extensions", agreed.answer()));
    }
    handshake::accept(ex, &fields).await?;
    let mut socket = Socket::new(ex);
    if let Some(agreed) = agreed {
        socket.compress(agreed);
    }
    Ok(Ok(socket))
}

/// The socket, or the end of a route whose handshake was refused.
macro_rules! open {
    ($ex:expr) => {
        match open($ex, &[]).await? {
            Ok(socket) => socket,
            Err(after) => return Ok(after),
        }
    };
}

async fn echo(ex: &mut Exchange) -> io::Result<After> {
    let said = ex.query("headers").is_some().then(|| {
        let lines: Vec<_> =
            ex.request.headers.iter().map(|(name, value)| json!([name, value])).collect();
        json!({ "target": ex.request.target, "headers": lines }).to_string()
    });
    let mut socket = open!(ex);
    if let Some(said) = said {
        socket.send(op::TEXT, said.as_bytes()).await?;
    }
    while let Some((opcode, payload)) = socket.message().await? {
        socket.send(opcode, &payload).await?;
    }
    socket.end(After::Close)
}

async fn close(ex: &mut Exchange) -> io::Result<After> {
    let code = ex.query("code").and_then(|code| code.parse().ok());
    let reason = ex.query("reason").unwrap_or_default().to_owned();
    let mut socket = open!(ex);
    match code {
        Some(code) => socket.write(frame::close(code, reason)).await?,
        None => socket.write(frame::frame(FIN | op::CLOSE, [])).await?,
    }
    socket.listen().await?;
    socket.end(After::Close)
}

async fn drop_after(ex: &mut Exchange) -> io::Result<After> {
    let after = ex.query_or("after", 0_u64);
    let how = if ex.query("reset").is_some() { After::Reset } else { After::Close };
    let mut socket = open!(ex);
    for _ in 0..after {
        let Some((opcode, payload)) = socket.message().await? else {
            return socket.end(After::Close);
        };
        socket.send(opcode, &payload).await?;
    }
    socket.end(how)
}

async fn silent(ex: &mut Exchange) -> io::Result<After> {
    let mut socket = open!(ex);
    while !matches!(socket.next().await?, Got::Gone) {}
    Ok(After::Drop)
}

async fn count(ex: &mut Exchange) -> io::Result<After> {
    let (n, stay) = (ex.query_or("n", 10_u64), ex.query("stay").is_some());
    let size = ex.query_or("size", 0).min(MAX_MADE);
    let mut socket = open!(ex);
    let mut bytes = Vec::new();
    for at in 0..n {
        // As many in one write as fit well: a client may find thousands in what it has read.
        bytes.extend(frame::text(format!("{at:0>size$}")));
        if bytes.len() > 64 * 1024 {
            socket.write(std::mem::take(&mut bytes)).await?;
        }
    }
    socket.write(bytes).await?;
    if stay {
        while socket.message().await?.is_some() {}
    } else {
        socket.close(1000, "").await?;
    }
    socket.end(After::Close)
}

async fn fragments(ex: &mut Exchange) -> io::Result<After> {
    let (n, pings) = (ex.query_or("n", 3_u64).max(1), ex.query("ping").is_some());
    let size = ex.query_or("size", 5).min(MAX_MADE);
    let mut socket = open!(ex);
    for at in 0..n {
        let opcode = if at == 0 { op::TEXT } else { op::MORE };
        let fin = if at + 1 == n { FIN } else { 0 };
        let letter = b'a' + (at % 26) as u8;
        socket.write(frame::frame(fin | opcode, vec![letter; size])).await?;
        if pings {
            socket.write(frame::ping(at.to_string())).await?;
        }
    }
    socket.close(1000, "").await?;
    socket.end(After::Close)
}

async fn ping(ex: &mut Exchange) -> io::Result<After> {
    let n = ex.query_or("n", 1_u64);
    let mut socket = open!(ex);
    let mut came = 0;
    for at in 0..n {
        socket.write(frame::ping(at.to_string())).await?;
        loop {
            match socket.next().await? {
                Got::Pong => break came += 1,
                Got::Message(..) | Got::Ping(_) => {}
                _ => return socket.end(After::Close),
            }
        }
    }
    socket.send(op::TEXT, format!("{came} pongs").as_bytes()).await?;
    socket.close(1000, "").await?;
    socket.end(After::Close)
}

async fn stuck(ex: &mut Exchange) -> io::Result<After> {
    let n = ex.query_or("n", 3_u64);
    let (before, hold) = (ex.query_ms("ms", 300), ex.query_ms("hold", 300));
    let mut socket = open!(ex);
    // Not `pause`: that reads to see whether the client leaves.
    tokio::time::sleep(before).await;
    for at in 0..n {
        socket.write(frame::ping(at.to_string())).await?;
    }
    tokio::time::sleep(hold).await;
    while socket.message().await?.is_some() {}
    socket.end(After::Close)
}

async fn refuse(ex: &mut Exchange) -> io::Result<After> {
    let status = ex.query_or("status", 403);
    ex.reply(Response::text(status, "no socket here\n")).await
}

async fn redirect(ex: &mut Exchange) -> io::Result<After> {
    let status = ex.query_or("status", 307);
    let to = ex.query("to").unwrap_or("/ws/echo").to_owned();
    ex.reply(Response::text(status, "elsewhere\n").header("location", to)).await
}

async fn basic(ex: &mut Exchange) -> io::Result<After> {
    use base64::Engine as _;
    let pair = format!("{}:{}", ex.param("user"), ex.param("password"));
    let right = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    if ex.request.header("authorization") == Some(&right) {
        return echo(ex).await;
    }
    let response = Response::text(401, "who are you?\n");
    ex.reply(response.header("www-authenticate", "Basic realm=\"sockets\"")).await
}
