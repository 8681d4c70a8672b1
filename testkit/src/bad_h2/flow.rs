//! Flow control (RFC 9113 sections 5.2 and 6.9), and peers that stall.

use super::peer::{OK, ok, ok_head, open_head};
use super::{Ask, BadH2, Outcome, play, row, said};
use crate::h2::frame::{self, code, data, flag, kind, setting, settings, window_update};

/// The largest window.
const MOST: u32 = 0x7fff_ffff;
/// How much is sent without a look at the windows.
const BEYOND: u64 = 24 << 20;
/// A DATA frame as large as any client must take.
const PIECE: usize = 16_384;
/// How many frames a padded body has, and how much of each is its own.
const PADDED: (u64, usize) = (400, 1000);

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = stalls();
    all.extend(openings());
    all.extend(updates());
    all.extend(downloads());
    all.extend(silences());
    all
}

fn stalls() -> Vec<BadH2> {
    use Outcome::Timeout;
    vec![
        row(
            "window-zero",
            "an initial window of 0 that never opens",
            play!(|peer|
                peer.open(&[(setting::INITIAL_WINDOW_SIZE, 0)]).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
        .ends(&[Timeout]),
        row(
            "window-stalled",
            "windows of 65 535 bytes that never grow",
            play!(|peer|
                peer.open(&[]).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
        .ends(&[Timeout]),
        row(
            "window-connection-stalled",
            "the stream's window grows, the connection's does not",
            play!(|peer|
                peer.open(&[]).await?;
                let (stream, _) = peer.head().await?;
                peer.send(window_update(stream, 1 << 24)).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
        .ends(&[Timeout]),
    ]
}

fn openings() -> Vec<BadH2> {
    vec![
        row(
            "window-opens-late",
            "an initial window of 0 that SETTINGS open after 100 ms (6.9.2)",
            play!(|peer|
                peer.open(&[(setting::INITIAL_WINDOW_SIZE, 0)]).await?;
                let (stream, _) = peer.head().await?;
                peer.pause(100).await;
                peer.send(settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 22)])).await?;
                peer.send(window_update(0, 1 << 22)).await?;
                peer.rest(stream).await?;
                peer.send(ok(stream)).await?;
                peer.behave().await?;
            ),
        )
        .ask(Ask::Upload),
        row(
            "window-small",
            "a window of 1 000 bytes that opens again byte for byte",
            play!(|peer|
                peer.open(&[(setting::INITIAL_WINDOW_SIZE, 1000)]).await?;
                peer.behave().await?;
            ),
        )
        .ask(Ask::Upload),
        row(
            "window-wide",
            "windows of 1 GiB from the start, and not a word until the upload is whole",
            play!(|peer|
                peer.open(&[(setting::INITIAL_WINDOW_SIZE, 1 << 30)]).await?;
                peer.send(window_update(0, 1 << 30)).await?;
                let (stream, _) = peer.head().await?;
                peer.whole(stream).await?;
                peer.send(ok(stream)).await?;
                peer.behave().await?;
            ),
        )
        .ask(Ask::Upload),
        row(
            "window-negative",
            "SETTINGS make a used window negative; it is opened again later (6.9.2)",
            play!(|peer|
                peer.open(&[]).await?;
                let (stream, _) = peer.head().await?;
                peer.take(65_535).await?;
                peer.send(settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])).await?;
                peer.credit(stream, 65_535).await?;
                peer.pause(50).await;
                peer.send(settings(&[(setting::INITIAL_WINDOW_SIZE, 100_000)])).await?;
                peer.rest(stream).await?;
                peer.send(ok(stream)).await?;
                peer.behave().await?;
            ),
        )
        .ask(Ask::Upload),
        row(
            "upload-answered-early",
            "a whole answer before the upload, of which no more than the window is read",
            play!(|peer|
                peer.open(&[]).await?;
                let (stream, _) = peer.head().await?;
                peer.send(ok(stream)).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
        // 8.1 lets the server do so without RST_STREAM, and does not say when the client stops.
        .ends(&[Outcome::Answer, Outcome::Timeout]),
    ]
}

/// Reads the head of an upload, and says this.
fn told(name: &str, what: &str, bytes: fn(u32) -> Vec<u8>) -> BadH2 {
    row(
        name,
        what,
        play!(|peer|
            peer.open(&[]).await?;
            let (stream, _) = peer.head().await?;
            peer.send(bytes(stream)).await?;
            peer.listen().await?;
        ),
    )
    .ask(Ask::Upload)
}

fn updates() -> Vec<BadH2> {
    let rows = [
        told("update-zero-stream", "WINDOW_UPDATE of 0 on the stream (6.9)", |stream| {
            window_update(stream, 0)
        })
        .breaks(code::PROTOCOL_ERROR),
        told("update-zero-connection", "WINDOW_UPDATE of 0 on the connection (6.9)", |_| {
            window_update(0, 0)
        })
        .breaks(code::PROTOCOL_ERROR),
        told("update-overflow-stream", "the stream's window goes over 2^31-1 (6.9.1)", |stream| {
            [window_update(stream, MOST), window_update(stream, MOST)].concat()
        })
        .breaks(code::FLOW_CONTROL_ERROR),
        told(
            "update-overflow-connection",
            "the connection's window goes over 2^31-1 (6.9.1)",
            |_| [window_update(0, MOST), window_update(0, MOST)].concat(),
        )
        .breaks(code::FLOW_CONTROL_ERROR),
        told("update-overflow-settings", "SETTINGS lift a window over 2^31-1 (6.9.2)", |stream| {
            // Whatever was sent already, the second step is more than that.
            let full = window_update(stream, MOST - 65_535);
            [full, settings(&[(setting::INITIAL_WINDOW_SIZE, MOST)])].concat()
        })
        .breaks(code::FLOW_CONTROL_ERROR),
        told("update-short", "WINDOW_UPDATE of 3 bytes (6.9)", |stream| {
            frame::frame(kind::WINDOW_UPDATE, 0, stream, [0, 0, 1])
        })
        .breaks(code::FRAME_SIZE_ERROR),
        said("update-idle", "WINDOW_UPDATE on a stream nobody opened (5.1)", |stream| {
            [window_update(stream + 100, 1), ok(stream)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said(
            "update-closed",
            "WINDOW_UPDATE behind the end of the stream (5.1: ignored)",
            |stream| [ok(stream), window_update(stream, 1)].concat(),
        ),
    ];
    rows.into()
}

fn downloads() -> Vec<BadH2> {
    vec![
        row(
            "data-beyond-windows",
            "24 MiB at once, whatever the client's windows are (6.9.1)",
            play!(|peer|
                let stream = peer.first().await?;
                let mut first = vec![0; PIECE];
                first[..OK.len()].copy_from_slice(OK);
                peer.send([open_head(stream), data(stream, &first, false)].concat()).await?;
                let piece = data(stream, vec![0; PIECE], false);
                peer.repeat(&piece, BEYOND / PIECE as u64 - 1).await?;
                peer.send(data(stream, [], true)).await?;
            ),
        )
        // A reader that keeps pace may have given the credit already.
        .ends(&[Outcome::Protocol, Outcome::Answer])
        .with(&[code::FLOW_CONTROL_ERROR])
        .body(BEYOND),
        row(
            "data-padded-body",
            "400 DATA frames of 1 000 bytes and 255 of padding, within the windows (6.9.1: padding counts)",
            play!(|peer|
                let stream = peer.first().await?;
                peer.send(open_head(stream)).await?;
                for _ in 0..PADDED.0 {
                    let mut payload = vec![0; 1 + PADDED.1 + 255];
                    payload[0] = 255;
                    payload[1..=OK.len()].copy_from_slice(OK);
                    let bytes = frame::frame(kind::DATA, flag::PADDED, stream, &payload);
                    peer.within(stream, &bytes, payload.len()).await?;
                }
                peer.send(data(stream, [], true)).await?;
                peer.behave().await?;
            ),
        )
        .body(PADDED.0 * PADDED.1 as u64),
        row(
            "data-dripped",
            "an answer whose every byte is a DATA frame, 5 ms apart",
            play!(|peer|
                let stream = peer.first().await?;
                peer.send(open_head(stream)).await?;
                for at in 0..100 {
                    peer.send(data(stream, [OK[at % OK.len()]], false)).await?;
                    peer.pause(5).await;
                }
                peer.send(data(stream, [], true)).await?;
                peer.behave().await?;
            ),
        )
        .body(100),
    ]
}

fn silences() -> Vec<BadH2> {
    use Outcome::Timeout;
    vec![
        said("silence-before-head", "reads the request, and never answers", |_| Vec::new())
            .ends(&[Timeout]),
        said("silence-after-head", "a head, and nothing behind it", ok_head).ends(&[Timeout]),
        said("silence-in-body", "half a body, and nothing behind it", |stream| {
            [ok_head(stream), data(stream, &OK[..1], false)].concat()
        })
        .ends(&[Timeout]),
        said("silence-in-head", "HEADERS, and no CONTINUATION", |stream| {
            frame::frame(kind::HEADERS, 0, stream, frame::block(&[(":status", "200")]))
        })
        .ends(&[Timeout]),
        said("silence-in-frame", "half a DATA frame, and nothing behind it", |stream| {
            let half = [frame::head(100, kind::DATA, 0, stream), OK.to_vec()];
            [open_head(stream), half.concat()].concat()
        })
        .ends(&[Timeout]),
        row(
            "silence-black-hole",
            "one answer; then nothing is read, not even PING, and nothing said (connections after it behave)",
            play!(|peer|
                if peer.nth > 1 {
                    peer.serve().await?;
                }
                peer.open(&[]).await?;
                peer.answer().await?;
                // No longer: it does not notice that the client leaves.
                peer.pause(2_000).await;
            ),
        )
        .ask(Ask::Second)
        // A client whose PING goes unanswered in time may try again elsewhere.
        .ends(&[Timeout, Outcome::Closed, Outcome::Answer]),
        row(
            "silence-no-pong",
            "answers no PING and acknowledges nothing, after one answer",
            play!(|peer|
                peer.polite = false;
                peer.open(&[]).await?;
                peer.answer().await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Second)
        .ends(&[Timeout, Outcome::Closed]),
    ]
}
