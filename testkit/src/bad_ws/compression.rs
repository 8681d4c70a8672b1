//! permessage-deflate (RFC 7692) gone wrong, and right in the ways that are rare.

use std::io;

use super::{BadWs, WsAsk, WsOutcome, answered};
use crate::ws::deflate::{Agreed, Deflate};
use crate::ws::frame::{self, FIN, RSV1, op, text};

/// What a small message becomes.
const HELLO: [u8; 7] = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];

/// A socket with the extension, these bytes, and a Close.
fn deflated(name: &str, what: &str, bytes: Vec<u8>) -> BadWs {
    answered(name, what, &[("sec-websocket-extensions", "permessage-deflate")], bytes)
        .ask(WsAsk::Deflate)
}

fn message(payload: impl AsRef<[u8]>) -> Vec<u8> {
    frame::frame(FIN | RSV1 | op::TEXT, payload)
}

/// What this becomes with a fresh context.
fn shrunk(payload: &[u8]) -> io::Result<Vec<u8>> {
    Deflate::new(Agreed { server_resets: true, client_resets: true }).shrink(payload)
}

pub(super) fn rows() -> Vec<BadWs> {
    let mut all = wrong();
    all.extend(bombs());
    all.extend(right());
    all
}

fn wrong() -> Vec<BadWs> {
    let bad = [1007, 1002];
    let again = |name: &str, what: &str, bytes: Vec<u8>| {
        deflated(name, what, [bytes, text("and on")].concat()).ends(&[WsOutcome::Protocol])
    };
    vec![
        again(
            "deflate-garbage",
            "a block of the type that there is not",
            message([0x07, 0xff, 0xff]),
        )
        .with(&bad),
        again("deflate-stored-wrong", "a stored block whose lengths disagree", {
            message([0x00, 0x05, 0x00, 0x00, 0x00, b'H'])
        })
        .with(&bad),
        again("deflate-distance", "a match from before the first byte", {
            message([0xf2, 0x00, 0x11, 0x00, 0x00])
        })
        .with(&bad),
        again("deflate-rsv1-ping", "a compressed ping (RFC 7692, 6.1)", {
            frame::frame(FIN | RSV1 | op::PING, HELLO)
        })
        .breaks(1002),
        again("deflate-rsv1-close", "a compressed Close (RFC 7692, 6.1)", {
            frame::frame(FIN | RSV1 | op::CLOSE, HELLO)
        })
        .breaks(1002),
        again("deflate-rsv1-continuation", "RSV1 on a later fragment (RFC 7692, 6.1)", {
            let first = frame::frame(RSV1 | op::TEXT, &HELLO[..3]);
            [first, frame::frame(FIN | RSV1 | op::MORE, &HELLO[3..])].concat()
        })
        .breaks(1002),
        again(
            "deflate-rsv2",
            "RSV2 beside the extension",
            frame::frame(FIN | frame::RSV2 | op::TEXT, "x"),
        )
        .breaks(1002),
        again("deflate-text-wrong", "text that is not UTF-8, compressed", {
            // A stored block of one byte.
            message([0x00, 0x01, 0x00, 0xfe, 0xff, 0xff, 0x00])
        })
        .breaks(1007),
    ]
}

fn bombs() -> Vec<BadWs> {
    // Making them cannot fail in memory; a row that could not be made would fail its test.
    let bomb = shrunk(&vec![0; 64 << 20]).unwrap_or_default();
    let half = bomb.len() / 2;
    vec![
        deflated("deflate-bomb", "64 MiB in a frame of 64 KiB (CVE-2026-1526)", {
            frame::frame(FIN | RSV1 | op::BINARY, &bomb)
        })
        .exceeds(),
        deflated("deflate-bomb-split", "64 MiB in two fragments of 32 KiB (CVE-2026-1526)", {
            let first = frame::frame(RSV1 | op::BINARY, &bomb[..half]);
            [first, frame::frame(FIN, &bomb[half..])].concat()
        })
        .exceeds(),
        deflated("deflate-bomb-text", "64 MiB of text in a frame of 64 KiB", {
            message(shrunk(&vec![b'x'; 64 << 20]).unwrap_or_default())
        })
        .exceeds(),
    ]
}

fn right() -> Vec<BadWs> {
    let fine =
        |name: &str, what: &str, bytes: Vec<u8>| deflated(name, what, bytes).gives(1).with(&[1000]);
    vec![
        fine("deflate-right", "a compressed text", message(HELLO)),
        fine("deflate-context", "a second text that needs the first", {
            [message(HELLO), message([0xf2, 0x00, 0x11, 0x00, 0x00])].concat()
        })
        .gives(2),
        fine("deflate-not", "a text that is not compressed, which is right", text("Hello")),
        fine("deflate-between", "compressed and not in turn", {
            let second = message([0xf2, 0x00, 0x11, 0x00, 0x00]);
            [message(HELLO), text("plain"), second].concat()
        })
        .gives(3),
        fine("deflate-fragments", "a compressed text byte by byte, pings between", {
            let first = frame::frame(RSV1 | op::TEXT, &HELLO[..1]);
            let middle: Vec<u8> = HELLO[1..]
                .iter()
                .flat_map(|byte| [frame::frame(op::MORE, [*byte]), frame::ping("?")].concat())
                .collect();
            [first, middle, frame::frame(FIN, [])].concat()
        }),
        fine("deflate-stored", "a text in a stored block (RFC 7692, 7.2.3.3)", {
            message(b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00")
        }),
        fine("deflate-final", "a text in a block with BFINAL (RFC 7692, 7.2.3.4)", {
            message([0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00])
        }),
        fine("deflate-two-blocks", "a text in two blocks (RFC 7692, 7.2.3.5)", {
            message([0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00])
        }),
        fine("deflate-empty", "an empty text, compressed (RFC 7692, 7.2.3.6)", message([0x00])),
        fine("deflate-empty-final-frame", "a compressed text whose last fragment is empty", {
            [frame::frame(RSV1 | op::TEXT, HELLO), frame::frame(FIN, [])].concat()
        }),
    ]
}
