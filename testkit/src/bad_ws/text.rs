//! Text that is not UTF-8 (RFC 6455 section 8.1, RFC 3629).

use super::{BadWs, WsOutcome, play, row, said};
use crate::ws::frame::{self, FIN, op, text};

/// What is not UTF-8, whole.
const WRONG: &[(&str, &str, &[u8])] = &[
    ("lone-continuation", "a continuation byte alone", b"a\x80"),
    ("overlong-2", "a slash in two bytes", b"\xc0\xaf"),
    ("overlong-3", "a slash in three bytes", b"\xe0\x80\xaf"),
    ("overlong-4", "a slash in four bytes", b"\xf0\x80\x80\xaf"),
    ("surrogate", "a surrogate", b"\xed\xa0\x80"),
    ("surrogate-pair", "a pair of surrogates", b"\xed\xa0\xbd\xed\xb8\x80"),
    ("beyond", "a code point beyond U+10FFFF", b"\xf4\x90\x80\x80"),
    ("five-bytes", "a sequence of five bytes", b"\xf8\x88\x80\x80\x80"),
    ("fe", "the byte FE", b"\xfe"),
    ("truncated", "a code point that does not end", b"caf\xc3"),
    ("latin-1", "Latin-1", b"na\xefve"),
];

/// Behind this much of right text a vectorised check has gone far.
const FAR: usize = 1_000;

pub(super) fn rows() -> Vec<BadWs> {
    let wrong = |name: String, what: String, bytes: Vec<u8>| {
        said(name, what, [bytes, text("and on")].concat()).breaks(1007)
    };
    let mut all = Vec::new();
    for &(name, what, bytes) in WRONG {
        all.push(wrong(format!("text-{name}"), format!("text with {what}"), text(bytes)));
        let far = [&[b'x'; FAR][..], bytes].concat();
        all.push(wrong(format!("text-far-{name}"), format!("long text with {what}"), text(far)));
        let (first, rest) = bytes.split_at(1);
        let pieces = [frame::frame(op::TEXT, first), frame::frame(FIN, rest)].concat();
        all.push(wrong(
            format!("text-split-{name}"),
            format!("{what}, over two fragments"),
            pieces,
        ));
    }
    all.extend(others());
    all
}

fn others() -> Vec<BadWs> {
    vec![
        said("text-right-split", "code points over three fragments, which is right (5.6)", {
            let pieces = [
                frame::frame(op::TEXT, b"\xce"),
                frame::frame(op::MORE, b"\xba\xe1\xbd"),
                frame::frame(FIN, b"\xb9\xf0\x9f\x98\x80"),
            ];
            pieces.concat()
        })
        .gives(1)
        .with(&[1000]),
        said("text-right-nul", "text with NUL, BOM and a noncharacter, which is right", {
            text("\0\u{feff}\u{ffff}\u{10ffff}")
        })
        .gives(1)
        .with(&[1000]),
        row(
            "text-wrong-begin",
            "a fragment that can be no begin of UTF-8, and no more of it",
            play!(|socket|
                socket.write(frame::frame(op::TEXT, b"ok\xff")).await?;
                socket.listen().await?;
            ),
        )
        // Who waits for the end of the message waits in vain: section 8.1 does not say when to look.
        .ends(&[WsOutcome::Protocol, WsOutcome::Timeout])
        .with(&[1007]),
        said(
            "binary-not-text",
            "binary that is not UTF-8, which is right",
            frame::binary(b"\xff\x80"),
        )
        .gives(1)
        .with(&[1000]),
    ]
}
