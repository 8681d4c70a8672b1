//! Connections that end, or do not end, other than they said.

use std::io;

use super::say;
use crate::conn::{After, Fate};
use crate::exchange::Exchange;
use crate::response::Response;
use crate::routes::{ANY, Route, route};

pub(super) const ROUTES: &[Route] = &[
    route(
        "/bad/close-after",
        ANY,
        "a right answer; FIN, unannounced, after ?n= further requests (0) and ?ms= of idleness (0)",
        |ex| Box::pin(close_after(ex)),
    ),
    route(
        "/bad/close-on-next",
        ANY,
        "a right answer; the next request on the connection is read and gets a FIN (?reset=1: an \
         RST), once its head is read (?body=1: its body too)",
        |ex| Box::pin(close_on_next(ex)),
    ),
    route("/bad/close-kept", ANY, "announces Connection: close, and keeps it open", |ex| {
        Box::pin(close_kept(ex))
    }),
    route("/bad/keep-closed", ANY, "announces Keep-Alive: timeout=60, and closes", |ex| {
        Box::pin(keep_closed(ex))
    }),
    route("/bad/keep-reset", ANY, "announces Keep-Alive: timeout=60; RST after ?ms= (30)", |ex| {
        Box::pin(keep_reset(ex))
    }),
    route(
        "/bad/unasked-408",
        ANY,
        "a right answer; after ?ms= (30) a 408 nobody asked for, and FIN",
        |ex| Box::pin(unasked_408(ex)),
    ),
];

async fn close_after(ex: &mut Exchange) -> io::Result<After> {
    ex.conn()?.fate =
        Fate::CloseAfter { requests: ex.query_or("n", 0), idle: ex.query_ms("ms", 0) };
    ex.reply(Response::text(200, "not for long\n")).await
}

async fn close_on_next(ex: &mut Exchange) -> io::Result<After> {
    ex.conn()?.fate = Fate::CloseOnNext {
        reset: ex.query("reset").is_some(),
        read_body: ex.query("body").is_some(),
    };
    ex.reply(Response::text(200, "once\n")).await
}

async fn close_kept(ex: &mut Exchange) -> io::Result<After> {
    ex.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\nbye").await?;
    Ok(After::Keep)
}

const KEEP: &str = "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nkeep-alive: timeout=60\r\n\
    content-length: 4\r\n\r\nstay";

async fn keep_closed(ex: &mut Exchange) -> io::Result<After> {
    ex.write(KEEP).await?;
    Ok(After::Close)
}

async fn keep_reset(ex: &mut Exchange) -> io::Result<After> {
    ex.write(KEEP).await?;
    let wait = ex.query_ms("ms", 30);
    ex.pause(wait).await?;
    Ok(After::Reset)
}

async fn unasked_408(ex: &mut Exchange) -> io::Result<After> {
    say(ex, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
    let wait = ex.query_ms("ms", 30);
    ex.pause(wait).await?;
    ex.write("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        .await?;
    Ok(After::Close)
}
