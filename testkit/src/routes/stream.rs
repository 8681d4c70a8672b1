//! Bodies that come over time.

use std::io;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::auth::hex;
use super::content::{generated, length};
use super::{ANY, GET, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;

pub(super) const ROUTES: &[Route] = &[
    route(
        "/stream-bytes/{n}",
        GET,
        "n bytes, chunked by ?chunk_size= (10240), by ?seed= (0)",
        |ex| Box::pin(stream_bytes(ex)),
    ),
    route("/stream/{n}", GET, "n lines of JSON, one a chunk; ?ms= between them (0)", |ex| {
        Box::pin(lines(ex))
    }),
    route("/drip", GET, "?numbytes= (10) over ?duration= s (2) after ?delay= s (0)", |ex| {
        Box::pin(drip(ex))
    }),
    route("/delay/{s}", ANY, "answers after that many seconds; fractions are fine", |ex| {
        Box::pin(delay(ex))
    }),
    route(
        "/upload",
        &["POST", "PUT", "PATCH"],
        "reads the body; says its length and SHA-256",
        |ex| Box::pin(upload(ex)),
    ),
];

/// The longest time a route waits, in seconds.
const MAX_WAIT: f64 = 600.0;
/// The largest chunk.
const MAX_CHUNK: usize = 16 << 20;

fn seconds(text: Option<&str>, default: f64) -> Duration {
    let number = text.and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite());
    Duration::from_secs_f64(number.unwrap_or(default).clamp(0.0, MAX_WAIT))
}

async fn stream_bytes(ex: &mut Exchange) -> io::Result<After> {
    let len = match length(ex) {
        Ok(len) => len,
        Err(response) => return ex.reply(response).await,
    };
    let size = ex.query_or("chunk_size", 10_240usize).clamp(1, MAX_CHUNK);
    let seed = ex.query_or("seed", 0);
    let mut out = ex.begin(Response::of("application/octet-stream", "")).await?;
    let mut sent = 0;
    while sent < len {
        let piece = (size as u64).min(len - sent);
        out.chunk(ex, &generated(seed, sent, piece as usize)).await?;
        sent += piece;
    }
    out.finish(ex, &[]).await
}

async fn lines(ex: &mut Exchange) -> io::Result<After> {
    let Some(count) = ex.param_as::<u32>("n") else {
        return ex.reply(Response::text(400, "not a number\n")).await;
    };
    let gap = ex.query_ms("ms", 0);
    let mut out = ex.begin(Response::of("application/x-ndjson", "")).await?;
    for id in 0..count {
        let line = json!({ "id": id, "of": count, "connection": ex.about.id });
        out.chunk(ex, format!("{line}\n").as_bytes()).await?;
        ex.pause(gap).await?;
    }
    out.finish(ex, &[]).await
}

async fn drip(ex: &mut Exchange) -> io::Result<After> {
    let count = ex.query_or("numbytes", 10u32).min(10 << 20);
    let gap = seconds(ex.query("duration"), 2.0).checked_div(count).unwrap_or_default();
    let wait = seconds(ex.query("delay"), 0.0);
    ex.pause(wait).await?;
    let status = ex.query_or("code", 200u16).clamp(200, 599);
    let response = Response::of("application/octet-stream", "").status(status);
    let mut out = ex.begin_sized(response, count.into()).await?;
    if !ex.is_head() {
        for _ in 0..count {
            ex.pause(gap).await?;
            out.chunk(ex, b"*").await?;
        }
    }
    out.finish(ex, &[]).await
}

async fn delay(ex: &mut Exchange) -> io::Result<After> {
    let wait = seconds(Some(ex.param("s")), 0.0);
    ex.pause(wait).await?;
    let value = json!({ "waited_ms": wait.as_millis() as u64, "connection": ex.about.id });
    ex.reply(Response::json(&value)).await
}

async fn upload(ex: &mut Exchange) -> io::Result<After> {
    let mut hash = Sha256::new();
    let mut pieces = 0u64;
    while let Some(piece) = ex.next_piece().await? {
        hash.update(&piece);
        pieces += 1;
    }
    let value = json!({
        "length": ex.read_so_far(),
        "sha256": hex(&hash.finalize()),
        "pieces": pieces,
        "trailers": ex.trailers(),
        "connection": ex.about.id,
    });
    ex.reply(Response::json(&value)).await
}
