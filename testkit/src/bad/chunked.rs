//! The chunked coding, strained and broken (RFC 9112 section 7.1).

use std::io;

use super::{drip, flood, say};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::{ANY, Answer, Route, route};

const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

pub(super) const ROUTES: &[Route] = &[
    route(
        "/bad/chunk-split",
        ANY,
        "right, but each byte in a write of its own, ?ms= apart (1)",
        |ex| Box::pin(split(ex)),
    ),
    route("/bad/chunk-one-byte", ANY, "right: 1000 chunks of one byte, in one write", |ex| {
        chunks(ex, "1\r\nx\r\n".repeat(1000) + "0\r\n\r\n")
    }),
    route("/bad/chunk-extensions", ANY, "right: chunk extensions, quoted ones too", |ex| {
        chunks(ex, "5;a;b=c;d=\"e;\\\"f\"\r\nhello\r\n0;last\r\n\r\n")
    }),
    route("/bad/chunk-leading-zeros", ANY, "right: a size with 12 leading zeros", |ex| {
        chunks(ex, "0000000000005\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-long-size", ANY, "a size line of 1 MiB of zeros", |ex| {
        chunks(ex, "0".repeat(1 << 20) + "5\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-long-extension", ANY, "an extension of 1 MiB", |ex| {
        chunks(ex, format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(1 << 20)))
    }),
    route("/bad/chunk-endless-extension", ANY, "an extension without end", |ex| {
        Box::pin(endless(ex, "5;", "a"))
    }),
    route("/bad/chunk-negative", ANY, "a size of -5", |ex| chunks(ex, "-5\r\nhello\r\n0\r\n\r\n")),
    route("/bad/chunk-plus", ANY, "a size of +5", |ex| chunks(ex, "+5\r\nhello\r\n0\r\n\r\n")),
    route("/bad/chunk-0x", ANY, "a size of 0x5", |ex| chunks(ex, "0x5\r\nhello\r\n0\r\n\r\n")),
    route("/bad/chunk-space", ANY, "a space before the size", |ex| {
        chunks(ex, " 5\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-no-size", ANY, "an empty line where a size should be", |ex| {
        chunks(ex, "\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-not-hex", ANY, "a size of xyz", |ex| chunks(ex, "xyz\r\nhello\r\n0\r\n\r\n")),
    route("/bad/chunk-overflow", ANY, "a size beyond 64 bits that is 5 when cut", |ex| {
        chunks(ex, "10000000000000005\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-max", ANY, "a size of 2^64 - 1", |ex| {
        chunks(ex, "ffffffffffffffff\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-bare-lf", ANY, "size lines that end with LF alone", |ex| {
        chunks(ex, "5\nhello\n0\n\n")
    }),
    route("/bad/chunk-no-crlf", ANY, "no CRLF after a chunk's data", |ex| {
        chunks(ex, "5\r\nhello0\r\n\r\n")
    }),
    route("/bad/chunk-longer", ANY, "more data than the size says", |ex| {
        chunks(ex, "5\r\nhello, world\r\n0\r\n\r\n")
    }),
    route("/bad/chunk-many-trailers", ANY, "10000 trailer lines", |ex| {
        chunks(ex, "5\r\nhello\r\n0\r\n".to_owned() + &"x-t: 1\r\n".repeat(10_000) + "\r\n")
    }),
    route("/bad/chunk-endless-trailers", ANY, "trailer lines without end", |ex| {
        Box::pin(endless(ex, "5\r\nhello\r\n0\r\n", "x-t: 1\r\n"))
    }),
    route("/bad/chunk-bad-trailer", ANY, "a trailer line without a colon", |ex| {
        chunks(ex, "5\r\nhello\r\n0\r\nnonsense\r\n\r\n")
    }),
    route("/bad/chunk-framing-trailer", ANY, "Content-Length and Host as trailers", |ex| {
        chunks(ex, "5\r\nhello\r\n0\r\ncontent-length: 9\r\nhost: evil\r\n\r\n")
    }),
];

/// A chunked head and this as the body, in one write.
fn chunks(ex: &mut Exchange, body: impl AsRef<str>) -> Answer<'_> {
    let whole = format!("{HEAD}{}", body.as_ref());
    Box::pin(async move { say(ex, whole).await })
}

async fn split(ex: &mut Exchange) -> io::Result<After> {
    let gap = ex.query_ms("ms", 1);
    ex.write(HEAD).await?;
    let body = "5\r\nhello\r\nA;x=\"y\"\r\n, chunked \r\n5\r\nworld\r\n0\r\nx-end: 1\r\n\r\n";
    drip(ex, body.as_bytes(), gap).await?;
    Ok(ex.after())
}

async fn endless(ex: &mut Exchange, begin: &str, piece: &str) -> io::Result<After> {
    ex.write(format!("{HEAD}{begin}")).await?;
    let many = piece.repeat(16 * 1024 / piece.len());
    flood(ex, many.as_bytes(), None).await?;
    Ok(After::Drop)
}
