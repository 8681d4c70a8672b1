//! Uploads that are answered early, or not taken.

use std::io;
use std::time::Duration;

use tokio::time::sleep;

use super::say;
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;
use crate::routes::{ANY, Route, route};

pub(super) const ROUTES: &[Route] = &[
    route("/bad/early-413", ANY, "413 before the body is read, which is then read on", |ex| {
        Box::pin(ex.reply(too_large()))
    }),
    route(
        "/bad/early-413-close",
        ANY,
        "413 before the body is read, then FIN; reads on for 2 s",
        |ex| Box::pin(early(ex, After::Close)),
    ),
    route(
        "/bad/early-413-drop",
        ANY,
        "413 before the body is read, then closes over unread data (RST)",
        |ex| Box::pin(early(ex, After::Drop)),
    ),
    route(
        "/bad/early-200",
        ANY,
        "200 after ?bytes= (1) of the body; the rest is read after",
        |ex| Box::pin(early_200(ex)),
    ),
    route(
        "/bad/upload-stall",
        ANY,
        "never reads the body, never answers; gives up after ?ms= (60000)",
        |ex| Box::pin(never_read(ex)),
    ),
    route(
        "/bad/upload-slow",
        ANY,
        "reads the body in pieces, ?ms= apart (10), then answers",
        |ex| Box::pin(slow(ex)),
    ),
    route("/bad/upload-reset", ANY, "RST after ?bytes= of the body (65536)", |ex| {
        Box::pin(after_some(ex, After::Reset))
    }),
    route(
        "/bad/upload-close",
        ANY,
        "FIN without an answer after ?bytes= of the body (65536)",
        |ex| Box::pin(after_some(ex, After::Close)),
    ),
    route("/bad/expect-ignored", ANY, "sends no 100 to Expect, and waits for the body", |ex| {
        Box::pin(expect_ignored(ex))
    }),
    route("/bad/expect-refused", ANY, "417 to any request, before its body; then FIN", |ex| {
        Box::pin(expect_refused(ex))
    }),
    route("/bad/expect-stall", ANY, "sends 100 at once, and never answers", |ex| {
        Box::pin(expect_stall(ex))
    }),
];

fn too_large() -> Response {
    Response::text(413, "too large\n")
}

/// Reads at least `count` bytes of the body, or all of it.
async fn read_some(ex: &mut Exchange, count: u64) -> io::Result<()> {
    while ex.read_so_far() < count && ex.next_piece().await?.is_some() {}
    Ok(())
}

async fn early(ex: &mut Exchange, end: After) -> io::Result<After> {
    ex.reply(too_large().header("connection", "close")).await?;
    if end == After::Drop {
        // Let some of the upload arrive unread, for the close to become an RST.
        let settle = ex.query_ms("ms", 30);
        sleep(settle.min(Duration::from_secs(60))).await;
    }
    Ok(end)
}

async fn early_200(ex: &mut Exchange) -> io::Result<After> {
    let count = ex.query_or("bytes", 1);
    read_some(ex, count).await?;
    ex.reply(Response::text(200, "enough\n")).await
}

async fn never_read(ex: &mut Exchange) -> io::Result<After> {
    sleep(ex.query_ms("ms", 60_000)).await;
    Ok(After::Drop)
}

async fn slow(ex: &mut Exchange) -> io::Result<After> {
    let gap = ex.query_ms("ms", 10);
    while ex.next_piece().await?.is_some() {
        sleep(gap).await;
    }
    let len = ex.read_so_far();
    ex.reply(Response::text(200, format!("{len} bytes\n"))).await
}

async fn after_some(ex: &mut Exchange, end: After) -> io::Result<After> {
    let count = ex.query_or("bytes", 65_536);
    read_some(ex, count).await?;
    Ok(end)
}

async fn expect_ignored(ex: &mut Exchange) -> io::Result<After> {
    ex.refuse_to_continue();
    let body = ex.body_bytes().await?;
    ex.reply(Response::text(200, format!("{} bytes\n", body.len()))).await
}

async fn expect_refused(ex: &mut Exchange) -> io::Result<After> {
    let response = Response::text(417, "no\n").header("connection", "close");
    ex.reply(response).await?;
    Ok(After::Close)
}

async fn expect_stall(ex: &mut Exchange) -> io::Result<After> {
    say(ex, "HTTP/1.1 100 Continue\r\n\r\n").await?;
    super::stall(ex).await
}
