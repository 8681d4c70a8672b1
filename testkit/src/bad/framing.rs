//! Bodies whose length is told wrong, twice, or not at all (RFC 9112 section 6).

use super::say;
use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::{ANY, Answer, Route, route};

pub(super) const ROUTES: &[Route] = &[
    route("/bad/conflicting-lengths", ANY, "Content-Length: 5, and again: 6", |ex| {
        framed(ex, "content-length: 5\r\ncontent-length: 6\r\n", "hello!")
    }),
    route("/bad/repeated-length", ANY, "Content-Length: 5, twice", |ex| {
        framed(ex, "content-length: 5\r\ncontent-length: 5\r\n", "hello")
    }),
    route("/bad/length-list", ANY, "Content-Length: 5, 6 in one line", |ex| {
        framed(ex, "content-length: 5, 6\r\n", "hello!")
    }),
    route("/bad/negative-length", ANY, "Content-Length: -5", |ex| {
        framed(ex, "content-length: -5\r\n", "hello")
    }),
    route("/bad/plus-length", ANY, "Content-Length: +5", |ex| {
        framed(ex, "content-length: +5\r\n", "hello")
    }),
    route("/bad/hex-length", ANY, "Content-Length: 0x5", |ex| {
        framed(ex, "content-length: 0x5\r\n", "hello")
    }),
    route("/bad/empty-length", ANY, "Content-Length without a value", |ex| {
        framed(ex, "content-length:\r\n", "hello")
    }),
    route("/bad/overflow-length", ANY, "a Content-Length beyond 64 bits", |ex| {
        framed(ex, "content-length: 18446744073709551621\r\n", "hello")
    }),
    route("/bad/huge-length", ANY, "Content-Length: 200000000000000, five bytes, FIN", |ex| {
        Box::pin(async {
            say(ex, "HTTP/1.1 200 OK\r\ncontent-length: 200000000000000\r\n\r\nhello").await?;
            Ok(After::Close)
        })
    }),
    route("/bad/length-and-chunked", ANY, "Content-Length with Transfer-Encoding", |ex| {
        framed(ex, "content-length: 3\r\ntransfer-encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/te-gzip", ANY, "Transfer-Encoding: gzip alone", |ex| {
        framed(ex, "transfer-encoding: gzip\r\n", "hello")
    }),
    route("/bad/te-gzip-chunked", ANY, "Transfer-Encoding: gzip, chunked", |ex| {
        framed(ex, "transfer-encoding: gzip, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/te-chunked-gzip", ANY, "chunked is not the last transfer coding", |ex| {
        framed(ex, "transfer-encoding: chunked, gzip\r\n", "5\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/te-chunked-twice", ANY, "Transfer-Encoding: chunked, twice", |ex| {
        let head = "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n";
        framed(ex, head, "5\r\nhello\r\n0\r\n\r\n")
    }),
    route("/bad/te-http10", ANY, "chunked in an HTTP/1.0 answer", |ex| {
        let whole = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        Box::pin(say(ex, whole))
    }),
    route("/bad/extra-bytes", ANY, "bytes after the body's end", |ex| {
        framed(ex, "content-length: 5\r\n", "hello, and a rest that nobody announced")
    }),
    route("/bad/second-response", ANY, "a whole second answer after the first", |ex| {
        let rest = "helloHTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-smuggled: 1\r\n\r\nevil";
        framed(ex, "content-length: 5\r\n", rest)
    }),
    route("/bad/body-on-204", ANY, "204 with a length and a body", |ex| {
        Box::pin(say(ex, "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello"))
    }),
    route("/bad/body-on-304", ANY, "304 with a length and a body", |ex| {
        Box::pin(say(ex, "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\nhello"))
    }),
    route("/bad/body-on-head", ANY, "a body, even to HEAD", |ex| {
        framed(ex, "content-length: 5\r\n", "hello")
    }),
];

/// 200 with these framing lines and these body bytes, in one write.
fn framed<'a>(ex: &'a mut Exchange, lines: &str, body: &str) -> Answer<'a> {
    let whole = format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}");
    Box::pin(async move { say(ex, whole).await })
}
