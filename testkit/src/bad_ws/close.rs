//! Closing (RFC 6455 sections 5.5.1 and 7).

use std::time::Duration;

use super::{BadWs, WsAsk, WsOutcome, closed, play, row};
use crate::ws::frame::{self, FIN, close, op, ping, text};

/// What no endpoint may send: below and between the ranges, or for reports only (section 7.4).
const WRONG: &[u16] =
    &[0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 1999, 2000, 2999, 5000, 32_768, 65_535];
/// What an endpoint may send: registered, of libraries, of applications.
const RIGHT: &[u16] = &[
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
];

pub(super) fn rows() -> Vec<BadWs> {
    let wrong = WRONG.iter().map(|&code| {
        closed(format!("close-code-{code}"), format!("Close with {code} (7.4)"), close(code, "why"))
            .breaks(1002)
    });
    let right = RIGHT.iter().map(|&code| {
        closed(
            format!("close-code-{code}"),
            format!("Close with {code}, which is right"),
            close(code, "why"),
        )
        // It typically echoes the code (5.5.1), and may say that it is done.
        .with(&[code, 1000])
    });
    wrong.chain(right).chain(bodies()).chain(behind()).chain(ends()).collect()
}

fn bodies() -> Vec<BadWs> {
    vec![
        closed("close-one-byte", "Close of one byte (5.5.1)", frame::frame(FIN | op::CLOSE, [3]))
            .breaks(1002),
        closed("close-reason-wrong", "Close with a reason that is not UTF-8 (5.5.1)", {
            close(1000, b"\xc3\x28")
        })
        .breaks(1007)
        // The frame is wrong as well as its text; both codes are seen in the field.
        .with(&[1007, 1002]),
        closed("close-reason-truncated", "Close with a reason that ends in a code point", {
            close(1000, b"caf\xc3")
        })
        .breaks(1007)
        .with(&[1007, 1002]),
        closed(
            "close-empty",
            "Close without a code, which is right",
            frame::frame(FIN | op::CLOSE, []),
        ),
        closed(
            "close-longest",
            "Close with a reason of 123 bytes, which is right",
            close(1000, [b'x'; 123]),
        )
        .with(&[1000]),
        closed("close-in-message", "Close between two fragments, which is right (5.4)", {
            [text("ok"), frame::frame(op::TEXT, "a"), close(1001, "")].concat()
        })
        .gives(1)
        .with(&[1001, 1000]),
    ]
}

fn behind() -> Vec<BadWs> {
    use WsOutcome::{Closed, Protocol};
    let done = || close(1000, "");
    vec![
        closed("text-behind-close", "a text behind Close, which a client may ignore (5.5.1)", {
            [text("ok"), done(), text("no")].concat()
        })
        .gives(1)
        .ends(&[Closed, Protocol])
        .with(&[1000]),
        closed(
            "ping-behind-close",
            "a ping behind Close, which a client may ignore",
            [done(), ping("no")].concat(),
        )
        .ends(&[Closed, Protocol])
        .with(&[1000]),
        closed(
            "close-behind-close",
            "a second Close, which a client may ignore",
            [done(), close(1011, "no")].concat(),
        )
        .ends(&[Closed, Protocol])
        .with(&[1000]),
        closed("garbage-behind-close", "garbage behind Close, which a client may ignore", {
            [done(), vec![0xff; 1000]].concat()
        })
        .ends(&[Closed, Protocol])
        .with(&[1000]),
    ]
}

fn ends() -> Vec<BadWs> {
    use WsOutcome::{Closed, Limit, Lost, Timeout};
    vec![
        row(
            "close-then-open",
            "Close both ways, and the connection stays open (7.1.1 lets the server do that)",
            play!(|socket|
                socket.close(1000, "").await?;
                socket.ex.until_gone().await;
            ),
        )
        .with(&[1000]),
        row(
            "close-unanswered",
            "the client's Close gets no answer",
            play!(|socket|
                socket.listen().await?;
                socket.ex.until_gone().await;
            ),
        )
        .ask(WsAsk::Close)
        .ends(&[Closed, Timeout])
        .with(&[1000]),
        row(
            "close-answered-by-fin",
            "the client's Close is answered by FIN",
            play!(|socket|
                socket.listen().await?;
            ),
        )
        .ask(WsAsk::Close)
        .ends(&[Closed, Lost])
        .with(&[1000]),
        row(
            "close-answered-by-messages",
            "the client's Close is answered by messages for ever",
            play!(|socket|
                socket.listen().await?;
                while socket.write(text("never mind")).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            ),
        )
        .ask(WsAsk::Close)
        .ends(&[Closed, Timeout, Limit])
        .with(&[1000]),
        row(
            "close-answered-late",
            "the client's Close is answered behind 100 messages",
            play!(|socket|
                socket.listen().await?;
                socket.write(text("one more").repeat(100)).await?;
                socket.write(close(1000, "")).await?;
            ),
        )
        .ask(WsAsk::Close)
        .with(&[1000]),
        row(
            "close-crossing",
            "both sides close at once",
            play!(|socket|
                socket.write(close(1001, "going")).await?;
                socket.listen().await?;
            ),
        )
        .ask(WsAsk::Close)
        .with(&[1000, 1001]),
    ]
}
