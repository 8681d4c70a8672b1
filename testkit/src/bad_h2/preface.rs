//! The begin of a connection (RFC 9113 section 3.4).

use super::peer::ok;
use super::{BadH2, Outcome, play, row};
use crate::h2::frame::{self, code};

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = foreign();
    all.extend(first_frames());
    all
}

/// What is no HTTP/2 at all.
fn foreign() -> Vec<BadH2> {
    use Outcome::{Closed, Protocol};
    let answered = |name: &str, what: &str, bytes: &'static [u8]| {
        row(
            name,
            what,
            play!(|peer|
                peer.preface().await?;
                peer.send(bytes).await?;
            ),
        )
        .ends(&[Protocol, Closed])
    };
    vec![
        answered(
            "preface-http1-400",
            "answers the preface with an HTTP/1.1 400, and FIN",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )
        .ends(&[Protocol]),
        answered(
            "preface-http1-200",
            "answers the preface with a whole HTTP/1.1 200 and its body `ok`, and FIN",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        )
        .ends(&[Protocol]),
        answered(
            "preface-garbage",
            "answers the preface with bytes that are no frame, and FIN",
            b"\xff\xfe\xfd\xfc this is not a frame of anything \x00\x01\x02",
        )
        .ends(&[Protocol]),
        answered(
            "preface-tls-alert",
            "answers the preface with a TLS alert, and FIN",
            b"\x15\x03\x03\0\x02\x02\x46",
        ),
    ]
}

fn first_frames() -> Vec<BadH2> {
    vec![
        row(
            "preface-silence",
            "reads, and never says a byte",
            play!(|peer|
                peer.preface().await?;
                peer.polite = false;
                peer.listen().await?;
            ),
        )
        .ends(&[Outcome::Timeout]),
        row(
            "preface-no-settings",
            "answers without SETTINGS first (3.4)",
            play!(|peer|
                peer.preface().await?;
                peer.polite = false;
                let stream = peer.request().await?;
                peer.send(ok(stream)).await?;
                peer.listen().await?;
            ),
        )
        .breaks(code::PROTOCOL_ERROR),
        row(
            "preface-ping-first",
            "sends PING before SETTINGS (3.4)",
            play!(|peer|
                peer.preface().await?;
                peer.send(frame::ping(1)).await?;
                peer.send(frame::settings(&[])).await?;
                peer.behave().await?;
            ),
        )
        .breaks(code::PROTOCOL_ERROR),
        row(
            "preface-ack-first",
            "acknowledges SETTINGS before it sends its own (3.4)",
            play!(|peer|
                peer.preface().await?;
                peer.send(frame::settings_ack()).await?;
                peer.polite = false;
                peer.send(frame::settings(&[])).await?;
                peer.behave().await?;
            ),
        )
        .breaks(code::PROTOCOL_ERROR),
        row(
            "preface-settings-late",
            "sends its SETTINGS 300 ms after the preface, and behaves",
            play!(|peer|
                peer.preface().await?;
                peer.pause(300).await;
                peer.send(frame::settings(&[])).await?;
                peer.behave().await?;
            ),
        ),
        row(
            "preface-in-bytes",
            "sends its SETTINGS and its first answer byte by byte",
            play!(|peer|
                peer.preface().await?;
                peer.drip(&frame::settings(&[(3, 100)])).await?;
                let stream = peer.request().await?;
                peer.drip(&ok(stream)).await?;
                peer.behave().await?;
            ),
        ),
    ]
}
