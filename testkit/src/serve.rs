//! The HTTP/1.1 loop of one connection: head in, route, answer out, again.

use std::io;
use std::sync::Arc;

use tokio::time::timeout;

use crate::conn::{After, Conn, Fate};
use crate::exchange::{Exchange, One, Wire};
use crate::record::Seen;
use crate::request::{Body, HeadError, Request, read_head};
use crate::response::{Response, head};
use crate::routes;

/// Serves a connection until either side ends it.
pub(crate) async fn serve(mut conn: Conn) {
    let mut seq = 0;
    loop {
        let request = match next_request(&mut conn).await {
            Ok(Some(request)) => request,
            Ok(None) => return conn.end(After::Close).await,
            Err(HeadError::Bad(why)) => return refuse(conn, why).await,
            Err(HeadError::Gone) => return conn.end(After::Drop).await,
        };
        seq += 1;
        let mark = conn.about.shared.recorder.request(seen(&conn, &request, seq));
        let body = match Body::of(&request, mark) {
            Ok(body) => body,
            Err(why) => return refuse(conn, why).await,
        };
        conn.about.shared.recorder.body(mark, 0, body.is_done());
        let limit = conn.about.shared.limits.exchange;
        let about = Arc::clone(&conn.about);
        let wire = Wire::One(Box::new(One { conn, body }));
        let mut exchange = Exchange { about, request, seq, params: Vec::new(), wire };
        let after = match timeout(limit, answer(&mut exchange)).await {
            Ok(Ok(after)) => after,
            // The peer left, or the exchange took longer than any should: nothing to say.
            Ok(Err(_)) | Err(_) => After::Drop,
        };
        let Wire::One(one) = exchange.wire else {
            return;
        };
        conn = one.conn;
        if after != After::Keep {
            return conn.end(after).await;
        }
    }
}

/// The next head; `None` when the connection was idle for too long.
async fn next_request(conn: &mut Conn) -> Result<Option<Request>, HeadError> {
    let idle = match conn.fate {
        Fate::CloseAfter { requests: 0, idle } => idle,
        _ => conn.about.shared.limits.idle,
    };
    conn.settle();
    match timeout(idle, read_head(conn)).await {
        Ok(read) => read.map(Some),
        Err(_) => Ok(None),
    }
}

pub(crate) fn seen(conn: &Conn, request: &Request, seq: u32) -> Seen {
    Seen {
        conn: conn.about.id,
        seq,
        port: conn.about.port,
        method: request.method.clone(),
        version: request.version.name(),
        authority: None,
        stream: 0,
        target: request.target.clone(),
        head: request.raw.clone(),
        body_len: 0,
        body_complete: false,
        tls: conn.about.tls.clone(),
        ws: None,
    }
}

/// Reads and forgets what is left of the body.
async fn drain(exchange: &mut Exchange) -> io::Result<()> {
    while exchange.next_piece().await?.is_some() {}
    Ok(())
}

async fn answer(exchange: &mut Exchange) -> io::Result<After> {
    if let Fate::CloseOnNext { reset, read_body } = exchange.conn()?.fate {
        if read_body {
            drain(exchange).await?;
        }
        return Ok(if reset { After::Reset } else { After::Close });
    }
    if let Fate::CloseAfter { requests: left @ 1.., idle } = exchange.conn()?.fate {
        exchange.conn()?.fate = Fate::CloseAfter { requests: left - 1, idle };
    }
    let after = match routes::answer(exchange).await {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            exchange.reply(Response::text(413, "the body is too large to keep\n")).await?;
            return Ok(After::Close);
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            exchange.reply(Response::text(400, format!("{error}\n"))).await?;
            return Ok(After::Close);
        }
        other => other?,
    };
    if after == After::Keep {
        drain(exchange).await?;
        if matches!(exchange.conn()?.fate, Fate::CloseAfter { requests: 0, idle } if idle.is_zero())
        {
            return Ok(After::Close);
        }
    }
    Ok(after)
}

/// 400, and the end: after a broken head nobody knows where the next one begins.
pub(crate) async fn refuse(mut conn: Conn, why: &str) {
    let body = format!("{why}\n");
    let fields = [
        ("content-type".to_owned(), "text/plain; charset=utf-8".to_owned()),
        ("content-length".to_owned(), body.len().to_string()),
        ("connection".to_owned(), "close".to_owned()),
    ];
    let whole = format!("{}\r\n{body}", head(400, &fields));
    // Whether the client still listens does not matter: the connection ends either way.
    let _ = conn.write(whole.as_bytes()).await;
    conn.end(After::Close).await;
}
