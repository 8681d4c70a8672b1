//! Heads that are slow, broken or endless.

use std::fmt::Write as _;
use std::io;

use super::{drip, flood, say, stall};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::{ANY, Route, route};

pub(super) const ROUTES: &[Route] = &[
    route("/bad/drip-head", ANY, "a right answer; its head comes a byte every ?ms= (5)", |ex| {
        Box::pin(drip_head(ex))
    }),
    route("/bad/stall-before-head", ANY, "never answers", |ex| Box::pin(stall(ex))),
    route("/bad/stall-in-head", ANY, "half a head, then nothing", |ex| Box::pin(half_a_head(ex))),
    route("/bad/garbage-head", ANY, "bytes that are not HTTP", |ex| {
        Box::pin(say(ex, b"\x16\x03\x01\xff\x00 what?\x07\r\n\r\n\x80\x81garbage\r\n\r\n"))
    }),
    route("/bad/status-word", ANY, "a status that is a word", |ex| {
        Box::pin(say(ex, "HTTP/1.1 two OK\r\ncontent-length: 0\r\n\r\n"))
    }),
    route("/bad/status-short", ANY, "a status of two digits", |ex| {
        Box::pin(say(ex, "HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n"))
    }),
    route("/bad/version", ANY, "HTTP/9.9", |ex| {
        Box::pin(say(ex, "HTTP/9.9 200 OK\r\ncontent-length: 0\r\n\r\n"))
    }),
    route("/bad/http09", ANY, "a body without any head", |ex| Box::pin(http09(ex))),
    route("/bad/bare-lf", ANY, "lines that end with LF alone", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\ncontent-length: 2\n\nok"))
    }),
    route("/bad/bare-cr", ANY, "a CR inside a value", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\nx-a: b\rc: d\r\ncontent-length: 2\r\n\r\nok"))
    }),
    route("/bad/obs-fold", ANY, "a value that goes on in the next line", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\nx-a: b\r\n  c\r\ncontent-length: 2\r\n\r\nok"))
    }),
    route("/bad/space-before-colon", ANY, "Content-Length : 2", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok"))
    }),
    route("/bad/space-before-name", ANY, "the first field line begins with a space", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\n x-a: b\r\ncontent-length: 2\r\n\r\nok"))
    }),
    route("/bad/no-colon", ANY, "a field line without a colon", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\nnonsense\r\ncontent-length: 2\r\n\r\nok"))
    }),
    route("/bad/empty-name", ANY, "a field line without a name", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\n: b\r\ncontent-length: 2\r\n\r\nok"))
    }),
    route("/bad/nul-in-value", ANY, "a NUL inside a value", |ex| {
        Box::pin(say(ex, "HTTP/1.1 200 OK\r\nx-a: b\0c\r\ncontent-length: 2\r\n\r\nok"))
    }),
    route("/bad/many-headers", ANY, "?n= field lines (10000)", |ex| Box::pin(many(ex))),
    route("/bad/big-header", ANY, "a value of ?bytes= (1 MiB)", |ex| Box::pin(long(ex, 1 << 20))),
    route("/bad/huge-header", ANY, "a value of ?bytes= (1 GiB)", |ex| Box::pin(long(ex, 1 << 30))),
    route("/bad/endless-head", ANY, "field lines without end", |ex| {
        Box::pin(endless(ex, "HTTP/1.1 200 OK\r\n", "x-more: and more\r\n"))
    }),
    route("/bad/endless-status-line", ANY, "a reason phrase without end", |ex| {
        Box::pin(endless(ex, "HTTP/1.1 200 ", "fine and "))
    }),
    route("/bad/endless-empty-lines", ANY, "empty lines instead of an answer", |ex| {
        Box::pin(endless(ex, "", "\r\n"))
    }),
    route("/bad/endless-1xx", ANY, "103 without end", |ex| {
        Box::pin(endless(ex, "", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"))
    }),
    route("/bad/endless-100", ANY, "100 without end", |ex| {
        Box::pin(endless(ex, "", "HTTP/1.1 100 Continue\r\n\r\n"))
    }),
    route("/bad/unasked-101", ANY, "101 to a client that asked for no upgrade", |ex| {
        Box::pin(say(ex, "HTTP/1.1 101 Switching Protocols\r\nupgrade: what\r\n\r\nwhatever"))
    }),
];

async fn drip_head(ex: &mut Exchange) -> io::Result<After> {
    let gap = ex.query_ms("ms", 5);
    let fields = [("content-length".to_owned(), "2".to_owned())];
    let head = ex.head(200, &fields) + "\r\n";
    drip(ex, head.as_bytes(), gap).await?;
    say(ex, if ex.is_head() { "" } else { "ok" }).await
}

async fn half_a_head(ex: &mut Exchange) -> io::Result<After> {
    ex.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a: b").await?;
    stall(ex).await
}

async fn http09(ex: &mut Exchange) -> io::Result<After> {
    ex.write("<title>1991</title>\n").await?;
    Ok(After::Close)
}

async fn many(ex: &mut Exchange) -> io::Result<After> {
    let count = ex.query_or("n", 10_000u32).min(10_000_000);
    ex.write("HTTP/1.1 200 OK\r\n").await?;
    let mut lines = String::new();
    for n in 0..count {
        // Writing to a String cannot fail.
        let _ = write!(lines, "x-{n}: {n}\r\n");
        if lines.len() > 16 * 1024 || n + 1 == count {
            ex.write(&lines).await?;
            lines.clear();
        }
    }
    say(ex, "content-length: 2\r\n\r\nok").await
}

async fn long(ex: &mut Exchange, default: u64) -> io::Result<After> {
    let bytes = ex.query_or("bytes", default);
    ex.write("HTTP/1.1 200 OK\r\nx-long: ").await?;
    flood(ex, &[b'a'; 64 * 1024], Some(bytes)).await?;
    say(ex, "\r\ncontent-length: 2\r\n\r\nok").await
}

async fn endless(ex: &mut Exchange, begin: &str, piece: &str) -> io::Result<After> {
    ex.write(begin).await?;
    // About 16 KiB a write, whole pieces each.
    let many = piece.repeat(16 * 1024 / piece.len());
    flood(ex, many.as_bytes(), None).await?;
    Ok(After::Drop)
}
