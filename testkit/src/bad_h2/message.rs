//! Messages that are malformed in right frames (RFC 9113 section 8).

use super::peer::{OK, OK_FIELDS, ok, ok_head, open_head};
use super::{BadH2, Outcome, said};
use crate::h2::frame::{block, code, data, headers};

type Fields = &'static [(&'static str, &'static str)];

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = heads();
    all.extend(bodies());
    all.extend(sequences());
    all.extend(right());
    all
}

/// Heads of a response that are malformed (8.2, 8.3), each with a right body behind it.
const HEADS: &[(&str, &str, Fields)] = &[
    ("head-upper-case", "a name in upper case (8.2.1)", &[(":status", "200"), ("X-Loud", "1")]),
    ("head-no-status", "no :status (8.3.2)", &[("content-type", "text/plain")]),
    ("head-two-status", "two :status (8.3)", &[(":status", "200"), (":status", "200")]),
    (
        "head-other-status",
        "two :status that differ (8.3)",
        &[(":status", "200"), (":status", "404")],
    ),
    ("head-status-late", ":status behind a field (8.3)", &[("x-a", "b"), (":status", "200")]),
    ("head-status-word", ":status is a word", &[(":status", "abc")]),
    ("head-status-short", ":status has two digits", &[(":status", "20")]),
    ("head-status-long", ":status has four digits", &[(":status", "2000")]),
    ("head-status-empty", ":status is empty", &[(":status", "")]),
    ("head-status-plus", ":status has a sign", &[(":status", "+20")]),
    ("head-status-zero", ":status is 000", &[(":status", "000")]),
    ("head-101", ":status is 101 (8.6)", &[(":status", "101")]),
    (
        "head-request-pseudo",
        "a pseudo-field of requests (8.3)",
        &[(":status", "200"), (":path", "/")],
    ),
    (
        "head-unknown-pseudo",
        "a pseudo-field nobody knows (8.3)",
        &[(":status", "200"), (":new", "1")],
    ),
    ("head-name-empty", "an empty name (8.2.1)", &[(":status", "200"), ("", "b")]),
    ("head-name-space", "a name with a space (8.2.1)", &[(":status", "200"), ("x a", "b")]),
    ("head-name-colon", "a name with a colon in it (8.2.1)", &[(":status", "200"), ("x:a", "b")]),
    (
        "head-name-control",
        "a name with a control character (8.2.1)",
        &[(":status", "200"), ("x\u{1}", "b")],
    ),
    ("head-name-del", "a name with DEL (8.2.1)", &[(":status", "200"), ("x\u{7f}", "b")]),
    ("head-name-high", "a name over ASCII (8.2.1)", &[(":status", "200"), ("x\u{e9}", "b")]),
    ("head-value-cr", "a value with CR (8.2.1)", &[(":status", "200"), ("x-a", "b\rc")]),
    (
        "head-value-lf",
        "a value with LF (8.2.1)",
        &[(":status", "200"), ("x-a", "b\nset-cookie: a=b")],
    ),
    ("head-value-nul", "a value with NUL (8.2.1)", &[(":status", "200"), ("x-a", "b\0c")]),
    (
        "head-value-space-first",
        "a value that begins with a space (8.2.1)",
        &[(":status", "200"), ("x-a", " b")],
    ),
    (
        "head-value-space-last",
        "a value that ends with a tab (8.2.1)",
        &[(":status", "200"), ("x-a", "b\t")],
    ),
    ("head-connection", "Connection (8.2.2)", &[(":status", "200"), ("connection", "close")]),
    ("head-keep-alive", "Keep-Alive (8.2.2)", &[(":status", "200"), ("keep-alive", "timeout=5")]),
    (
        "head-transfer-encoding",
        "Transfer-Encoding (8.2.2)",
        &[(":status", "200"), ("transfer-encoding", "chunked")],
    ),
    ("head-upgrade", "Upgrade (8.2.2)", &[(":status", "200"), ("upgrade", "h2c")]),
    (
        "head-proxy-connection",
        "Proxy-Connection (8.2.2)",
        &[(":status", "200"), ("proxy-connection", "close")],
    ),
    (
        "head-two-lengths",
        "two lengths that differ",
        &[(":status", "200"), ("content-length", "2"), ("content-length", "3")],
    ),
    (
        "head-length-word",
        "a length that is no number",
        &[(":status", "200"), ("content-length", "two")],
    ),
    ("head-length-plus", "a length with a sign", &[(":status", "200"), ("content-length", "+2")]),
    (
        "head-length-overflow",
        "a length over 2^64",
        &[(":status", "200"), ("content-length", "18446744073709551618")],
    ),
];

/// What some clients take and others refuse: RFC 9113 lets a recipient that does not validate go on.
const LENIENT: &[&str] = &[
    "head-value-space-first",
    "head-value-space-last",
    "head-status-zero",
    "head-keep-alive",
    "head-proxy-connection",
    "head-upgrade",
    "head-connection",
    "head-transfer-encoding",
];

fn heads() -> Vec<BadH2> {
    let of = |&(name, what, fields): &(&str, &str, Fields)| {
        let row = said(name, what, move |stream| {
            [headers(stream, block(fields), false), data(stream, OK, true)].concat()
        })
        .breaks(code::PROTOCOL_ERROR);
        if LENIENT.contains(&name) { row.ends(&[Outcome::Protocol, Outcome::Answer]) } else { row }
    };
    HEADS.iter().map(of).collect()
}

fn length(of: &'static str) -> Vec<u8> {
    block(&[(":status", "200"), ("content-length", of)])
}

fn bodies() -> Vec<BadH2> {
    let rows = [
        said("length-short", "a length of 5, and 2 bytes (8.1.1)", |stream| {
            [headers(stream, length("5"), false), data(stream, OK, true)].concat()
        }),
        said("length-long", "a length of 1, and 2 bytes (8.1.1)", |stream| {
            [headers(stream, length("1"), false), data(stream, OK, true)].concat()
        }),
        said("length-long-open", "a length of 1, 2 bytes, and no end (8.1.1)", |stream| {
            [headers(stream, length("1"), false), data(stream, OK, false)].concat()
        }),
        said(
            "length-without-body",
            "a length of 5 on a head that ends the stream (8.1.1)",
            |stream| headers(stream, length("5"), true),
        ),
        said("length-short-trailers", "a length of 5, 2 bytes, and trailers (8.1.1)", |stream| {
            let trailers = headers(stream, block(&[("x-sum", "1")]), true);
            [headers(stream, length("5"), false), data(stream, OK, false), trailers].concat()
        }),
        said("body-on-204", "a 204 with a body (RFC 9110 15.3.5)", |stream| {
            [headers(stream, block(&[(":status", "204")]), false), data(stream, OK, true)].concat()
        }),
    ];
    rows.map(|row| match row.name.as_str() {
        // The stream is still open: it is reset.
        "length-long-open" => row.breaks(code::PROTOCOL_ERROR),
        // RFC 9113 calls no body of a 204 malformed; a client that goes on must not show it.
        "body-on-204" => row.ends(&[Outcome::Protocol, Outcome::Answer]).body(0),
        // The stream has ended, so nobody needs to be told.
        _ => row.ends(&[Outcome::Protocol]),
    })
    .into()
}

fn sequences() -> Vec<BadH2> {
    let trailed = |name: &str, what: &str, fields: Fields, end: bool| {
        said(name, what, move |stream| {
            let trailers = headers(stream, block(fields), end);
            [open_head(stream), data(stream, OK, false), trailers].concat()
        })
        .ends(&[Outcome::Protocol])
        .with(if end { &[] } else { &[code::PROTOCOL_ERROR] })
    };
    vec![
        trailed("trailers-status", "trailers with :status (8.1)", &[(":status", "200")], true),
        trailed("trailers-path", "trailers with :path (8.1)", &[(":path", "/")], true),
        trailed(
            "trailers-upper-case",
            "trailers with a name in upper case",
            &[("X-Sum", "1")],
            true,
        ),
        trailed(
            "trailers-open",
            "trailers without the end of the stream (8.1)",
            &[("x-sum", "1")],
            false,
        ),
        trailed("trailers-nul", "trailers with NUL in a value", &[("x-sum", "1\0")], true),
        said("head-twice", "a second head instead of a body (8.1)", |stream| {
            [open_head(stream), ok(stream)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said("inform-and-end", "a 103 that ends the stream (8.1)", |stream| {
            headers(stream, block(&[(":status", "103")]), true)
        })
        .ends(&[Outcome::Protocol]),
        said("inform-then-data", "a 103, and DATA behind it (8.1)", |stream| {
            [headers(stream, block(&[(":status", "103")]), false), data(stream, OK, true)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said("inform-after-head", "a 103 behind the head (8.1)", |stream| {
            let late = headers(stream, block(&[(":status", "103")]), false);
            [ok_head(stream), late, data(stream, OK, true)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
    ]
}

fn right() -> Vec<BadH2> {
    vec![
        said("inform-twice", "100 and 103 before the answer (8.1)", |stream| {
            let early = headers(stream, block(&[(":status", "103"), ("link", "</a>")]), false);
            [headers(stream, block(&[(":status", "100")]), false), early, ok(stream)].concat()
        }),
        said("trailers-right", "trailers behind the body (8.1)", |stream| {
            let trailers = headers(stream, block(&[("x-sum", "1")]), true);
            [open_head(stream), data(stream, OK, false), trailers].concat()
        }),
        said("trailers-empty", "trailers without a field", |stream| {
            [ok_head(stream), data(stream, OK, false), headers(stream, [], true)].concat()
        }),
        said("end-alone", "the end of the stream in an empty DATA frame", |stream| {
            [ok_head(stream), data(stream, OK, false), data(stream, [], true)].concat()
        }),
        said("data-empty-between", "some empty DATA frames within a body", |stream| {
            let none = data(stream, [], false);
            [
                ok_head(stream),
                none.clone(),
                data(stream, OK, false),
                none.repeat(5),
                data(stream, [], true),
            ]
            .concat()
        }),
        said("length-repeated", "the same length twice (RFC 9110 8.6)", |stream| {
            let fields = [OK_FIELDS, &OK_FIELDS[2..]].concat();
            [headers(stream, block(&fields), false), data(stream, OK, true)].concat()
        })
        .ends(&[Outcome::Answer, Outcome::Protocol]),
        said("value-high", "values with bytes over ASCII (8.2.1)", |stream| {
            let fields = [OK_FIELDS, &[("x-high", "\u{e9}\u{fc}"), ("x-empty", "")]].concat();
            [headers(stream, block(&fields), false), data(stream, OK, true)].concat()
        }),
        said("status-299", "a status nobody knows, with a body", |stream| {
            [headers(stream, block(&[(":status", "299")]), false), data(stream, OK, true)].concat()
        }),
    ]
}
