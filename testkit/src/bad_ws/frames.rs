//! Frames that break the framing (RFC 6455 section 5), and frames that end in the middle.

use std::time::Duration;

use super::{BadWs, WsOutcome, play, row, said};
use crate::conn::After;
use crate::ws::Socket;
use crate::ws::frame::{self, FIN, RSV1, RSV2, RSV3, op, ping, text};
use crate::ws::handshake::accept;

pub(super) fn rows() -> Vec<BadWs> {
    let mut all = masks();
    all.extend(bits());
    all.extend(control());
    all.extend(fragments());
    all.extend(lengths());
    all.extend(cuts());
    all.extend(patience());
    all
}

/// What breaks the protocol, and is followed by a right message.
fn broken(name: impl Into<String>, what: impl Into<String>, bytes: Vec<u8>) -> BadWs {
    said(name, what, [bytes, text("and on")].concat()).breaks(1002)
}

fn masks() -> Vec<BadWs> {
    [("text", op::TEXT), ("binary", op::BINARY), ("ping", op::PING), ("pong", op::PONG)]
        .map(|(name, opcode)| {
            let what = format!("a masked {name} (5.1)");
            broken(format!("masked-{name}"), what, frame::masked(FIN | opcode, "ok"))
        })
        .into_iter()
        .chain([broken(
            "masked-close",
            "a masked Close (5.1)",
            frame::masked(FIN | op::CLOSE, [3, 232]),
        )])
        .collect()
}

fn bits() -> Vec<BadWs> {
    let kinds = [("text", op::TEXT), ("ping", op::PING), ("close", op::CLOSE)];
    let bits = [(1, RSV1), (2, RSV2), (3, RSV3)];
    let reserved = kinds.into_iter().flat_map(|(kind, opcode)| {
        bits.map(|(n, bit)| {
            let what = format!("{kind} with RSV{n}, which nothing was agreed for (5.2)");
            broken(format!("rsv{n}-{kind}"), what, frame::frame(FIN | bit | opcode, []))
        })
    });
    let continued = broken(
        "rsv1-continuation",
        "a continuation with RSV1, which nothing was agreed for (5.2)",
        [frame::frame(op::TEXT, "a"), frame::frame(FIN | RSV1, "b")].concat(),
    );
    let opcodes = (3..=7).chain(11..=15).map(|opcode| {
        let what = format!("opcode {opcode}, which is reserved (5.2)");
        broken(format!("opcode-{opcode}"), what, frame::frame(FIN | opcode, "?"))
    });
    let silent = (3..=7).step_by(4).map(|opcode| {
        let what = format!("opcode {opcode} behind a right message, without FIN (5.2)");
        let bytes = [text("ok"), frame::frame(opcode, "?")].concat();
        broken(format!("opcode-{opcode}-later"), what, bytes).gives(1)
    });
    reserved.chain([continued]).chain(opcodes).chain(silent).collect()
}

fn control() -> Vec<BadWs> {
    let long = [b'x'; 126];
    vec![
        broken(
            "ping-fragmented",
            "a ping in two fragments (5.4)",
            [frame::frame(op::PING, "a"), frame::frame(FIN, "b")].concat(),
        ),
        broken("pong-fragmented", "a pong without FIN (5.4)", frame::frame(op::PONG, "a")),
        broken("close-fragmented", "a Close without FIN (5.4)", frame::frame(op::CLOSE, [3, 232])),
        broken("ping-long", "a ping of 126 bytes (5.5)", ping(long)),
        broken("pong-long", "a pong of 126 bytes (5.5)", frame::pong(long)),
        broken("close-long", "a Close of 126 bytes (5.5)", frame::close(1000, &long[2..])),
        broken("ping-16-bit", "a ping of 1 byte whose length is in 16 bits (5.5)", {
            [frame::head_16(FIN | op::PING, 1), vec![b'x']].concat()
        }),
        broken(
            "ping-64-bit-top",
            "a ping of 2^63 bytes (5.5)",
            frame::head_64(FIN | op::PING, 1 << 63),
        )
        .ends(&[WsOutcome::Protocol, WsOutcome::Limit])
        .with(&[1002, 1009]),
        said("pong-unasked", "a pong nobody asked for (5.5.3: it is allowed)", frame::pong("7")),
        said("pings-between", "pings between the fragments of a message (5.4)", {
            let first = frame::frame(op::TEXT, "a");
            [first, ping("1"), frame::frame(op::MORE, "b"), ping("2"), frame::frame(FIN, "c")]
                .concat()
        })
        .gives(1)
        .with(&[1000]),
    ]
}

fn fragments() -> Vec<BadWs> {
    let begun = || frame::frame(op::TEXT, "a");
    vec![
        broken(
            "continuation-alone",
            "a last continuation of nothing (5.4)",
            frame::frame(FIN, "x"),
        ),
        broken(
            "continuation-first",
            "a continuation of nothing (5.4)",
            frame::frame(op::MORE, "x"),
        ),
        broken(
            "continuation-behind",
            "a continuation behind the end of its message (5.4)",
            [begun(), frame::frame(FIN, "b"), frame::frame(FIN, "c")].concat(),
        )
        .gives(1),
        broken("text-in-text", "a text inside of a text (5.4)", [begun(), text("b")].concat()),
        broken(
            "binary-in-text",
            "a binary message inside of a text (5.4)",
            [begun(), frame::binary("b"), frame::frame(FIN, "c")].concat(),
        ),
        said("fragments-empty", "a text of empty fragments but one (5.4)", {
            let empty = frame::frame(op::MORE, []);
            let middle = [empty.clone(), frame::frame(op::MORE, "ok"), empty].concat();
            [frame::frame(op::TEXT, []), middle, frame::frame(FIN, [])].concat()
        })
        .gives(1),
        said("fragments-many", "a text of 2 000 fragments of a byte", {
            let middle = frame::frame(op::MORE, "x").repeat(1_998);
            [begun(), middle, frame::frame(FIN, "z")].concat()
        })
        .gives(1),
    ]
}

fn lengths() -> Vec<BadWs> {
    use WsOutcome::{Limit, Protocol};
    vec![
        broken("length-16-short", "125 bytes whose length is in 16 bits (5.2)", {
            [frame::head_16(FIN | op::BINARY, 125), vec![0; 125]].concat()
        }),
        broken("length-64-short", "125 bytes whose length is in 64 bits (5.2)", {
            [frame::head_64(FIN | op::BINARY, 125), vec![0; 125]].concat()
        }),
        broken("length-64-16", "65 535 bytes whose length is in 64 bits (5.2)", {
            [frame::head_64(FIN | op::BINARY, 65_535), vec![0; 65_535]].concat()
        }),
        broken("length-top-bit", "a length with its highest bit set (5.2; CVE-2026-1528)", {
            frame::head_64(FIN | op::BINARY, 1 << 63 | 5)
        })
        .ends(&[Protocol, Limit])
        .with(&[1002, 1009]),
        broken("length-all-bits", "a length of 2^64-1 (5.2; CVE-2026-1528)", {
            frame::head_64(FIN | op::BINARY, u64::MAX)
        })
        .ends(&[Protocol, Limit])
        .with(&[1002, 1009]),
        broken("length-all-bits-continued", "a continuation of 2^64-1 (5.2; CVE-2026-1528)", {
            [frame::frame(op::BINARY, "ok"), frame::head_64(FIN, u64::MAX)].concat()
        })
        .ends(&[Protocol, Limit])
        .with(&[1002, 1009]),
    ]
}

/// Sends these bytes, waits until the client has had time to read them, and ends as told.
fn cut(name: &str, what: &str, bytes: Vec<u8>, end: After) -> BadWs {
    row(name, what, move |ex| {
        let bytes = bytes.clone();
        Box::pin(async move {
            accept(ex, &[]).await?;
            let mut socket = Socket::new(ex);
            socket.write(bytes).await?;
            // A reset would take along what the client has not read yet.
            tokio::time::sleep(Duration::from_millis(50)).await;
            socket.end(end)
        })
    })
    .ends(&[WsOutcome::Lost])
}

fn cuts() -> Vec<BadWs> {
    let half = || [frame::head(FIN | op::TEXT, 100), b"half".to_vec()].concat();
    let open = || [text("ok"), frame::frame(op::TEXT, "a")].concat();
    let mut all: Vec<BadWs> = [("fin", After::Close), ("rst", After::Reset)]
        .into_iter()
        .flat_map(|(word, end)| {
            let upper = word.to_uppercase();
            [
                cut(
                    &format!("{word}-at-once"),
                    &format!("{upper} behind the handshake"),
                    Vec::new(),
                    end,
                ),
                cut(
                    &format!("{word}-behind"),
                    &format!("{upper} behind a message, without Close"),
                    text("ok"),
                    end,
                )
                .gives(1),
                cut(
                    &format!("{word}-in-head"),
                    &format!("{upper} within a frame's head"),
                    vec![0x81, 126, 1],
                    end,
                ),
                cut(&format!("{word}-in-frame"), &format!("{upper} within a frame"), half(), end),
                cut(
                    &format!("{word}-in-message"),
                    &format!("{upper} between two fragments"),
                    open(),
                    end,
                )
                .gives(1),
            ]
        })
        .collect();
    all.push(
        row(
            "half-frame",
            "half a frame, and silence",
            play!(|socket|
                socket.write(frame::head(FIN | op::TEXT, 100)).await?;
                socket.write("half").await?;
                socket.listen().await?;
            ),
        )
        .ends(&[WsOutcome::Timeout]),
    );
    all
}

fn patience() -> Vec<BadWs> {
    vec![
        row(
            "frames-drip",
            "messages byte by byte",
            play!(|socket|
                for byte in [text("slowly"), frame::binary("but well"), frame::close(1000, "bye")].concat() {
                    socket.write([byte]).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                socket.listen().await?;
            ),
        )
        .gives(2)
        .with(&[1000]),
        said("messages-many", "10 000 messages in one piece", text("x").repeat(10_000)).gives(10_000),
        said("messages-empty", "an empty text and an empty binary message", {
            [text(""), frame::binary("")].concat()
        })
        .gives(2),
    ]
}
