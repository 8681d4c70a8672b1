//! What costs a server little and a client much.

use super::{BadWs, WsOutcome, play, row};
use crate::ws::frame::{self, FIN, op, ping};

/// More than the client takes.
const ANNOUNCED: u64 = 100 << 20;

pub(super) fn rows() -> Vec<BadWs> {
    let mut all = announced();
    all.extend(floods());
    all
}

fn announced() -> Vec<BadWs> {
    vec![
        row(
            "announced-100-mb",
            "a message of 100 MiB, whose bytes come",
            play!(|socket|
                socket.write(frame::head_64(FIN | op::BINARY, ANNOUNCED)).await?;
                socket.flood(&[7; 1 << 16]).await?;
            ),
        )
        .exceeds(),
        row(
            "announced-100-mb-silent",
            "a message of 100 MiB is announced, and does not come",
            play!(|socket|
                socket.write(frame::head_64(FIN | op::TEXT, ANNOUNCED)).await?;
                socket.listen().await?;
            ),
        )
        .exceeds(),
        row(
            "announced-later",
            "a continuation of 100 MiB behind a small fragment",
            play!(|socket|
                socket.write(frame::frame(op::BINARY, "small")).await?;
                socket.write(frame::head_64(FIN, ANNOUNCED)).await?;
                socket.listen().await?;
            ),
        )
        .exceeds(),
    ]
}

fn floods() -> Vec<BadWs> {
    use WsOutcome::{Limit, Lost, Protocol, Timeout};
    vec![
        row(
            "fragments-for-ever",
            "fragments of 16 KiB for ever, each within any limit (CVE-2026-9675)",
            play!(|socket|
                socket.write(frame::frame(op::BINARY, [7; 16_384])).await?;
                socket.flood(&frame::frame(op::MORE, [7; 16_384])).await?;
            ),
        )
        .exceeds(),
        row(
            "fragments-tiny-for-ever",
            "fragments of a byte for ever (CVE-2026-48779)",
            play!(|socket|
                socket.write(frame::frame(op::BINARY, "x")).await?;
                socket.flood(&frame::frame(op::MORE, "x").repeat(10_000)).await?;
            ),
        )
        .exceeds(),
        row(
            "fragments-empty-for-ever",
            "empty fragments for ever",
            play!(|socket|
                socket.write(frame::frame(op::TEXT, "x")).await?;
                socket.flood(&frame::frame(op::MORE, "").repeat(10_000)).await?;
            ),
        )
        // They cost a client no more than the reading.
        .ends(&[Limit, Protocol, Timeout]),
        row(
            "pings-for-ever",
            "pings for ever, whose answers nobody reads",
            play!(|socket|
                socket.flood(&ping([7; 125]).repeat(100)).await?;
            ),
        )
        // Over HTTP/2 it may be the server that has enough of the answers.
        .ends(&[Limit, Protocol, Timeout, Lost]),
    ]
}
