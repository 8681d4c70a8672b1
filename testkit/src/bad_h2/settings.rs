//! SETTINGS (RFC 9113 section 6.5), right and wrong.

use super::peer::ok;
use super::{Ask, BadH2, Outcome, play, row};
use crate::h2::frame::{self, code, flag, kind, reset, setting, settings};

/// Opens with these settings, and behaves.
fn opened(name: &str, what: &str, values: &'static [(u16, u32)]) -> BadH2 {
    row(
        name,
        what,
        play!(|peer|
            peer.open(values).await?;
            peer.behave().await?;
        ),
    )
}

/// Opens rightly, and sends this behind the request before its answer.
fn later(name: &str, what: &str, bytes: Vec<u8>) -> BadH2 {
    super::said(name, what, move |stream| [bytes.clone(), ok(stream)].concat())
}

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = right();
    all.extend(wrong());
    all.extend(streams());
    all
}

fn right() -> Vec<BadH2> {
    vec![
        row(
            "settings-ack-never",
            "never acknowledges the client's SETTINGS, nor its PINGs, and answers",
            play!(|peer|
                peer.polite = false;
                peer.serve().await?;
            ),
        ),
        opened(
            "settings-unknown",
            "sends settings nobody knows (6.5.2: ignored)",
            &[(0x0a0a, 7), (0xf000, u32::MAX), (0x99, 0)],
        ),
        opened(
            "settings-repeated",
            "sends one setting three times (6.5.3: the last counts)",
            &[
                (setting::MAX_FRAME_SIZE, 65_536),
                (setting::MAX_FRAME_SIZE, 20_000),
                (setting::MAX_FRAME_SIZE, 16_384),
            ],
        ),
        opened(
            "settings-table-zero",
            "allows no dynamic table (RFC 7541 4.2)",
            &[(setting::HEADER_TABLE_SIZE, 0)],
        )
        .ask(Ask::Second),
        opened(
            "settings-table-huge",
            "allows a dynamic table of 4 GiB, which nobody has to fill",
            &[(setting::HEADER_TABLE_SIZE, u32::MAX)],
        ),
        opened(
            "settings-header-list-tiny",
            "takes header lists of 1 byte only (6.5.2: advisory)",
            &[(setting::MAX_HEADER_LIST_SIZE, 1)],
        )
        .ends(&[Outcome::Answer, Outcome::Limit]),
        row(
            "settings-table-changes",
            "changes the table's size five times between two requests (RFC 7541 4.2)",
            play!(|peer|
                peer.open(&[]).await?;
                peer.answer().await?;
                for size in [0, 8192, 100, 0, 4096] {
                    peer.send(settings(&[(setting::HEADER_TABLE_SIZE, size)])).await?;
                }
                peer.behave().await?;
            ),
        )
        .ask(Ask::Second),
    ]
}

fn wrong() -> Vec<BadH2> {
    let protocol = [
        ("settings-push-2", "ENABLE_PUSH is 2 (6.5.2)", &[(setting::ENABLE_PUSH, 2)]),
        ("settings-push-1", "a server says ENABLE_PUSH 1 (6.5.2)", &[(setting::ENABLE_PUSH, 1)]),
        (
            "settings-frame-small",
            "MAX_FRAME_SIZE is 16 383 (6.5.2)",
            &[(setting::MAX_FRAME_SIZE, 16_383)],
        ),
        (
            "settings-frame-large",
            "MAX_FRAME_SIZE is 2^24 (6.5.2)",
            &[(setting::MAX_FRAME_SIZE, 1 << 24)],
        ),
        (
            "settings-connect-2",
            "ENABLE_CONNECT_PROTOCOL is 2 (RFC 8441 3)",
            &[(setting::ENABLE_CONNECT_PROTOCOL, 2)],
        ),
    ];
    let mut rows: Vec<BadH2> = protocol
        .into_iter()
        .map(|(name, what, values)| opened(name, what, values).breaks(code::PROTOCOL_ERROR))
        .collect();
    rows.extend([
        opened(
            "settings-window-large",
            "INITIAL_WINDOW_SIZE is 2^31 (6.5.2)",
            &[(setting::INITIAL_WINDOW_SIZE, 1 << 31)],
        )
        .breaks(code::FLOW_CONTROL_ERROR),
        later(
            "settings-length-5",
            "a SETTINGS frame of 5 bytes (6.5)",
            frame::frame(kind::SETTINGS, 0, 0, [0; 5]),
        )
        .breaks(code::FRAME_SIZE_ERROR),
        later(
            "settings-ack-with-payload",
            "an acknowledgement with 6 bytes (6.5)",
            frame::frame(kind::SETTINGS, flag::ACK, 0, [0; 6]),
        )
        .breaks(code::FRAME_SIZE_ERROR),
        super::said("settings-on-stream", "SETTINGS on the stream (6.5)", |stream| {
            [frame::frame(kind::SETTINGS, 0, stream, []), ok(stream)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        row(
            "settings-connect-withdrawn",
            "ENABLE_CONNECT_PROTOCOL goes from 1 to 0 (RFC 8441 3)",
            play!(|peer|
                peer.open(&[(setting::ENABLE_CONNECT_PROTOCOL, 1)]).await?;
                let stream = peer.request().await?;
                peer.send(settings(&[(setting::ENABLE_CONNECT_PROTOCOL, 0)])).await?;
                peer.send(ok(stream)).await?;
                peer.listen().await?;
            ),
        )
        .ends(&[Outcome::Protocol, Outcome::Answer])
        .with(&[code::PROTOCOL_ERROR]),
    ]);
    rows
}

fn streams() -> Vec<BadH2> {
    vec![
        opened(
            "streams-one",
            "allows one stream at a time",
            &[(setting::MAX_CONCURRENT_STREAMS, 1)],
        )
        .ask(Ask::Second),
        row(
            "streams-none",
            "allows no stream; one that comes anyway is refused",
            play!(|peer|
                peer.open(&[(setting::MAX_CONCURRENT_STREAMS, 0)]).await?;
                peer.refuse().await?;
            ),
        )
        .ends(&[Outcome::Timeout, Outcome::Closed, Outcome::Limit]),
        row(
            "streams-none-then-one",
            "allows no stream for 200 ms; one that comes anyway is refused",
            play!(|peer|
                peer.open(&[(setting::MAX_CONCURRENT_STREAMS, 0)]).await?;
                let soon = tokio::time::Duration::from_millis(200);
                if let Ok(early) = tokio::time::timeout(soon, peer.head()).await {
                    peer.send(reset(early?.0, code::REFUSED_STREAM)).await?;
                    peer.pause(200).await;
                }
                peer.send(settings(&[(setting::MAX_CONCURRENT_STREAMS, 1)])).await?;
                peer.behave().await?;
            ),
        ),
        row(
            "streams-none-later",
            "allows no further stream once one was answered (6.5.2)",
            play!(|peer|
                peer.open(&[]).await?;
                if peer.nth > 1 {
                    peer.behave().await?;
                }
                peer.answer().await?;
                peer.send(settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)])).await?;
                peer.refuse().await?;
            ),
        )
        .ask(Ask::Second)
        .ends(&[Outcome::Answer, Outcome::Timeout, Outcome::Limit]),
    ]
}
