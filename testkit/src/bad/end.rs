//! Answers that stop: a stall, a FIN or an RST, in each phase.

use std::io;

use super::{drip, stall};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::{ANY, Answer, Route, route};

/// A head that promises 100 bytes.
const PROMISE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
const HALF_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nx-a";
/// Half of what [`PROMISE`] promises.
const HALF_BODY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n\
    01234567890123456789012345678901234567890123456789";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

pub(super) const ROUTES: &[Route] = &[
    route("/bad/drip-body", ANY, "a body of ?n= bytes (20), one every ?ms= (10)", |ex| {
        Box::pin(drip_body(ex))
    }),
    route("/bad/stall-after-head", ANY, "a head, then nothing", |ex| {
        said(ex, PROMISE, "", End::Stall)
    }),
    route("/bad/stall-mid-body", ANY, "half of a body, then nothing", |ex| {
        said(ex, HALF_BODY, "", End::Stall)
    }),
    route("/bad/stall-in-chunk", ANY, "half of a chunk, then nothing", |ex| {
        said(ex, CHUNKED, "a\r\nhello", End::Stall)
    }),
    route(
        "/bad/stall-before-last-crlf",
        ANY,
        "chunked but for the last CRLF, then nothing",
        |ex| said(ex, CHUNKED, "5\r\nhello\r\n0\r\n", End::Stall),
    ),
    route("/bad/close-before-head", ANY, "FIN instead of an answer", |ex| {
        said(ex, "", "", End::How(After::Close))
    }),
    route("/bad/close-in-head", ANY, "FIN inside the head", |ex| {
        said(ex, HALF_HEAD, "", End::How(After::Close))
    }),
    route("/bad/truncate", ANY, "half of a body, then FIN", |ex| {
        said(ex, HALF_BODY, "", End::How(After::Close))
    }),
    route("/bad/truncate-empty", ANY, "a head that promises a body, then FIN", |ex| {
        said(ex, PROMISE, "", End::How(After::Close))
    }),
    route("/bad/truncate-chunked", ANY, "chunked without a last chunk, then FIN", |ex| {
        said(ex, CHUNKED, "5\r\nhello\r\n", End::How(After::Close))
    }),
    route("/bad/truncate-in-chunk", ANY, "half of a chunk, then FIN", |ex| {
        said(ex, CHUNKED, "a\r\nhello", End::How(After::Close))
    }),
    route("/bad/truncate-in-size", ANY, "half of a chunk's size line, then FIN", |ex| {
        said(ex, CHUNKED, "5\r\nhello\r\n1", End::How(After::Close))
    }),
    route("/bad/truncate-last-crlf", ANY, "chunked but for the last CRLF, then FIN", |ex| {
        said(ex, CHUNKED, "5\r\nhello\r\n0\r\n", End::How(After::Close))
    }),
    route("/bad/reset-before-head", ANY, "RST instead of an answer", |ex| {
        said(ex, "", "", End::How(After::Reset))
    }),
    route("/bad/reset-in-head", ANY, "RST inside the head", |ex| {
        said(ex, HALF_HEAD, "", End::How(After::Reset))
    }),
    route("/bad/reset-after-head", ANY, "RST after the head", |ex| {
        said(ex, PROMISE, "", End::How(After::Reset))
    }),
    route("/bad/reset-mid-body", ANY, "RST in the middle of the body", |ex| {
        said(ex, HALF_BODY, "", End::How(After::Reset))
    }),
    route("/bad/reset-in-chunk", ANY, "RST in the middle of a chunk", |ex| {
        said(ex, CHUNKED, "a\r\nhello", End::How(After::Reset))
    }),
    route(
        "/bad/reset-until-close",
        ANY,
        "RST as the end of a body that ends with the connection",
        |ex| said(ex, "HTTP/1.1 200 OK\r\n\r\n", "hello", End::How(After::Reset)),
    ),
    route(
        "/bad/no-close-notify",
        ANY,
        "a body that ends with the connection, by a FIN under TLS without close_notify",
        |ex| Box::pin(no_close_notify(ex)),
    ),
];

#[derive(Clone, Copy)]
enum End {
    Stall,
    How(After),
}

/// Writes head and body, lets them arrive, and ends so.
fn said<'a>(ex: &'a mut Exchange, head: &str, body: &str, end: End) -> Answer<'a> {
    let whole = format!("{head}{body}");
    Box::pin(async move {
        if !whole.is_empty() {
            ex.write(whole).await?;
            // An RST overtakes what was sent just before it: let the client read that first.
            let settle = ex.query_ms("ms", 30);
            ex.pause(settle).await?;
        }
        match end {
            End::Stall => stall(ex).await,
            End::How(after) => Ok(after),
        }
    })
}

async fn drip_body(ex: &mut Exchange) -> io::Result<After> {
    let gap = ex.query_ms("ms", 10);
    let len = ex.query_or("n", 20usize).min(1 << 20);
    let fields = [("content-length".to_owned(), len.to_string())];
    let head = ex.head(200, &fields) + "\r\n";
    ex.write(head).await?;
    if !ex.is_head() {
        drip(ex, &vec![b'*'; len], gap).await?;
    }
    Ok(ex.after())
}

async fn no_close_notify(ex: &mut Exchange) -> io::Result<After> {
    ex.write("HTTP/1.1 200 OK\r\n\r\nhello").await?;
    ex.conn()?.io.finish_below_tls()?;
    ex.until_gone().await;
    Ok(After::Drop)
}
