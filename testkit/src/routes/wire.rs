//! What the protocol itself can do: trailers, 1xx, tunnels, the end of a connection, HTTP/1.0.

use std::io;

use super::{ANY, GET, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;

pub(super) const ROUTES: &[Route] = &[
    route("/trailers", GET, "chunked, with two trailer lines", |ex| Box::pin(trailers(ex))),
    route(
        "/echo-tunnel",
        &["CONNECT"],
        "extended CONNECT (RFC 8441): says back each piece",
        |ex| Box::pin(echo_tunnel(ex)),
    ),
    route("/refused-tunnel", &["CONNECT"], "extended CONNECT that is answered with 403", |ex| {
        Box::pin(ex.reply(Response::text(403, "no tunnel\n")))
    }),
    route("/early-hints", GET, "103 with Link, then 200", |ex| Box::pin(early_hints(ex))),
    route("/continue", ANY, "100, then 200 once the body is read", |ex| Box::pin(go_on(ex))),
    route("/expect-refused", ANY, "417 to Expect: 100-continue, else 200", |ex| {
        Box::pin(expect_refused(ex))
    }),
    route(
        "/misdirected",
        ANY,
        "421 where TLS was made for another host than the request is for, else 200",
        |ex| Box::pin(misdirected(ex)),
    ),
    route("/close", ANY, "Connection: close, or GOAWAY, and it does", |ex| Box::pin(close(ex))),
    route("/http10", ANY, "an HTTP/1.0 answer that ends with the connection", |ex| {
        Box::pin(http10(ex))
    }),
    route("/until-close", ANY, "an HTTP/1.1 answer that ends with the connection", |ex| {
        Box::pin(until_close(ex))
    }),
];

async fn trailers(ex: &mut Exchange) -> io::Result<After> {
    let response = Response::of("text/plain", "").header("trailer", "x-count, x-checksum");
    let mut out = ex.begin(response).await?;
    out.chunk(ex, b"one, ").await?;
    out.chunk(ex, b"two\n").await?;
    out.finish(ex, &[("x-count", "2"), ("x-checksum", "9")]).await
}

async fn echo_tunnel(ex: &mut Exchange) -> io::Result<After> {
    let Some(protocol) = ex.request.protocol.clone() else {
        return ex.reply(Response::text(501, "no tunnel without a :protocol\n")).await;
    };
    let mut out = ex.begin(Response::new(200).header("x-protocol", protocol)).await?;
    while let Some(piece) = ex.next_piece().await? {
        out.chunk(ex, &piece).await?;
    }
    out.finish(ex, &[]).await
}

async fn early_hints(ex: &mut Exchange) -> io::Result<After> {
    ex.inform(103, &[("link", "</style.css>; rel=preload; as=style")]).await?;
    let wait = ex.query_ms("ms", 0);
    ex.pause(wait).await?;
    ex.reply(Response::text(200, "and the answer\n")).await
}

async fn go_on(ex: &mut Exchange) -> io::Result<After> {
    // The body sends its own 100 when the client waits for one.
    if !ex.waits() {
        ex.inform(100, &[]).await?;
    }
    let body = ex.body_bytes().await?;
    ex.reply(Response::text(200, format!("{} bytes\n", body.len()))).await
}

async fn expect_refused(ex: &mut Exchange) -> io::Result<After> {
    if ex.request.has_token("expect", "100-continue") {
        return ex.reply(Response::text(417, "no\n")).await;
    }
    let body = ex.body_bytes().await?;
    ex.reply(Response::text(200, format!("{} bytes\n", body.len()))).await
}

async fn misdirected(ex: &mut Exchange) -> io::Result<After> {
    let host = ex.request.host();
    let host = host.rsplit_once(':').map_or(host, |(host, _port)| host);
    let made_for = ex.about.tls.as_ref().and_then(|tls| tls.sni.as_deref());
    if made_for.is_some_and(|name| name != host) {
        return ex.reply(Response::text(421, "not on this connection\n")).await;
    }
    let body = ex.body_bytes().await?;
    ex.reply(Response::text(200, format!("{} bytes\n", body.len()))).await
}

async fn close(ex: &mut Exchange) -> io::Result<After> {
    ex.reply(Response::text(200, "bye\n").header("connection", "close")).await?;
    Ok(After::Close)
}

async fn http10(ex: &mut Exchange) -> io::Result<After> {
    ex.write(b"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nas it was in 1996\n").await?;
    Ok(After::Close)
}

async fn until_close(ex: &mut Exchange) -> io::Result<After> {
    ex.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nto the end\n").await?;
    Ok(After::Close)
}
