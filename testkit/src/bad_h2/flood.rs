//! Floods: frames that cost their sender little and their reader much, until the client leaves.
//!
//! CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2023-45288, CVE-2024-28182, CVE-2025-8671.

use super::peer::open_head;
use super::{BadH2, Outcome, play, row};
use crate::h2::frame::{self, block, code, flag, kind};

/// Floods with what `piece` makes for the first request's stream, behind what `begin` makes.
fn flood(name: &str, what: &str, begin: fn(u32) -> Vec<u8>, piece: fn(u32) -> Vec<u8>) -> BadH2 {
    let calm = [code::ENHANCE_YOUR_CALM, code::PROTOCOL_ERROR];
    row(
        name,
        what,
        play!(|peer|
            let stream = peer.first().await?;
            peer.send(begin(stream)).await?;
            peer.flood(&piece(stream)).await?;
        ),
    )
    .ends(&[Outcome::Limit, Outcome::Protocol])
    .with(&calm)
}

fn nothing(_: u32) -> Vec<u8> {
    Vec::new()
}

/// HEADERS that END_HEADERS has not ended.
fn begun(stream: u32) -> Vec<u8> {
    frame::frame(kind::HEADERS, 0, stream, block(&[(":status", "200")]))
}

/// What costs a client no more than the reading: it may also read on until its own time is up.
fn cheap(row: BadH2) -> BadH2 {
    row.ends(&[Outcome::Limit, Outcome::Protocol, Outcome::Timeout])
}

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = control();
    all.extend(streams());
    all
}

fn control() -> Vec<BadH2> {
    vec![
        flood("flood-settings", "SETTINGS for ever (CVE-2019-9515)", nothing, |_| {
            frame::settings(&[(4, 65_535)])
        }),
        flood("flood-settings-empty", "SETTINGS without a value for ever", nothing, |_| {
            frame::settings(&[])
        }),
        flood("flood-settings-ack", "acknowledgements nobody waits for, for ever", nothing, |_| {
            frame::settings_ack()
        }),
        flood("flood-ping", "PING for ever (CVE-2019-9512)", nothing, |_| frame::ping(7)),
        cheap(flood("flood-pong", "answers to PINGs nobody sent, for ever", nothing, |_| {
            frame::frame(kind::PING, flag::ACK, 0, [0; 8])
        })),
    ]
}

fn streams() -> Vec<BadH2> {
    vec![
        flood("flood-data-empty", "empty DATA for ever (CVE-2019-9518)", open_head, |stream| {
            frame::data(stream, [], false)
        }),
        flood("flood-data-padding", "DATA of nothing but padding for ever", open_head, |stream| {
            frame::frame(kind::DATA, flag::PADDED, stream, [7, 0, 0, 0, 0, 0, 0, 0])
        }),
        flood(
            "flood-continuation",
            "CONTINUATION with fields for ever (CVE-2023-45288)",
            begun,
            |stream| frame::frame(kind::CONTINUATION, 0, stream, block(&[("x-more", "and more")])),
        ),
        flood(
            "flood-continuation-empty",
            "empty CONTINUATION for ever (CVE-2024-28182)",
            begun,
            |stream| frame::frame(kind::CONTINUATION, 0, stream, []),
        ),
        flood("flood-1xx", "103 for ever", nothing, |stream| {
            frame::headers(stream, block(&[(":status", "103"), ("link", "</a>")]), false)
        }),
        flood("flood-headers-empty", "HEADERS without a field for ever", nothing, |stream| {
            frame::headers(stream, [], false)
        }),
        flood(
            "flood-reset",
            "RST_STREAM on the same stream for ever (CVE-2019-9514)",
            nothing,
            |stream| frame::reset(stream, code::CANCEL),
        )
        // The first one ends the request.
        .ends(&[Outcome::Closed, Outcome::Limit, Outcome::Protocol])
        .with(&[]),
        cheap(flood("flood-priority", "PRIORITY for ever (CVE-2019-9513)", nothing, |stream| {
            frame::frame(kind::PRIORITY, 0, stream, [0, 0, 0, 0, 16])
        })),
        cheap(flood(
            "flood-window",
            "WINDOW_UPDATE of 1 on the connection for ever",
            nothing,
            |_| frame::window_update(0, 1),
        )),
        cheap(flood("flood-unknown", "frames of an unknown type for ever (5.5)", nothing, |_| {
            frame::frame(0xfa, 0, 0, [])
        })),
        cheap(flood("flood-goaway", "GOAWAY for ever", nothing, |stream| {
            frame::go_away(stream, code::NO_ERROR, b"")
        })),
        flood("flood-push", "PUSH_PROMISE for ever", nothing, |stream| {
            frame::frame(kind::PUSH_PROMISE, flag::END_HEADERS, stream, [0, 0, 0, 2])
        }),
        row(
            "flood-refused",
            "REFUSED_STREAM to every request on every connection (CVE-2023-44487)",
            play!(|peer|
                peer.open(&[]).await?;
                peer.refuse().await?;
            ),
        )
        .ends(&[Outcome::Closed, Outcome::Limit]),
    ]
}
