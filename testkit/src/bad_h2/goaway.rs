//! GOAWAY in every state (RFC 9113 section 6.8).

use super::peer::{OK, ok, ok_head};
use super::{Ask, BadH2, Outcome, play, row, said};
use crate::conn::After;
use crate::h2::frame::{self, code, data, go_away, kind, settings};

/// Says nothing of the last stream yet: the first of two steps.
const ALL: u32 = 0x7fff_ffff;

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = before();
    all.extend(below());
    all.extend(during());
    all.extend(cuts());
    all.extend(between());
    all.extend(wrong());
    all
}

fn before() -> Vec<BadH2> {
    use Outcome::{Closed, Protocol};
    vec![
        row(
            "goaway-first",
            "GOAWAY instead of SETTINGS, and FIN (3.4)",
            play!(|peer|
                peer.preface().await?;
                peer.send(go_away(0, code::NO_ERROR, b"")).await?;
            ),
        )
        .ends(&[Protocol, Closed]),
        row(
            "goaway-before-request",
            "GOAWAY with last stream 0 behind SETTINGS, and FIN; connections after it behave",
            play!(|peer|
                if peer.nth > 1 {
                    peer.serve().await?;
                }
                peer.preface().await?;
                peer.send([settings(&[]), go_away(0, code::NO_ERROR, b"")].concat()).await?;
            ),
        )
        .on(2),
        row(
            "goaway-always",
            "every connection is sent away before its first request",
            play!(|peer|
                peer.preface().await?;
                peer.send([settings(&[]), go_away(0, code::NO_ERROR, b"")].concat()).await?;
            ),
        )
        .ends(&[Closed]),
    ]
}

fn below() -> Vec<BadH2> {
    use Outcome::{Answer, Closed};
    vec![
        row(
            "goaway-below-request",
            "GOAWAY with last stream 0 behind the request, which was not processed; connections after \
             it behave",
            play!(|peer|
                if peer.nth > 1 {
                    peer.serve().await?;
                }
                peer.first().await?;
                peer.send(go_away(0, code::NO_ERROR, b"")).await?;
                peer.listen().await?;
            ),
        )
        .on(2),
        row(
            "goaway-below-upload",
            "the same in the middle of an upload",
            play!(|peer|
                if peer.nth > 1 {
                    peer.serve().await?;
                }
                peer.open(&[]).await?;
                peer.head().await?;
                peer.take(10_000).await?;
                peer.send(go_away(0, code::NO_ERROR, b"")).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
        .on(2),
        row(
            "goaway-calm-below-request",
            "the same with ENHANCE_YOUR_CALM",
            play!(|peer|
                if peer.nth > 1 {
                    peer.serve().await?;
                }
                peer.first().await?;
                peer.send(go_away(0, code::ENHANCE_YOUR_CALM, b"too_many_pings")).await?;
            ),
        )
        .ends(&[Answer, Closed]),
    ]
}

fn during() -> Vec<BadH2> {
    use Outcome::Closed;
    vec![
        said("goaway-before-head", "GOAWAY that includes the request, then its answer", |stream| {
            [go_away(stream, code::NO_ERROR, b""), ok(stream)].concat()
        }),
        said("goaway-after-head", "the head, GOAWAY, the body", |stream| {
            [ok_head(stream), go_away(stream, code::NO_ERROR, b""), data(stream, OK, true)].concat()
        }),
        said("goaway-in-body", "half of the body, GOAWAY, the rest", |stream| {
            let (one, two) = (data(stream, &OK[..1], false), data(stream, &OK[1..], true));
            [ok_head(stream), one, go_away(stream, code::NO_ERROR, b""), two].concat()
        }),
        said("goaway-after-answer", "a whole answer, then GOAWAY with INTERNAL_ERROR", |stream| {
            [ok(stream), go_away(stream, code::INTERNAL_ERROR, b"")].concat()
        }),
        row(
            "goaway-two-steps",
            "GOAWAY with last stream 2^31-1, the answer, 50 ms, GOAWAY with the true last, FIN (6.8)",
            play!(|peer|
                let stream = peer.first().await?;
                peer.send([go_away(ALL, code::NO_ERROR, b""), frame::ping(1)].concat()).await?;
                peer.send(ok_head(stream)).await?;
                peer.pause(50).await;
                let last = [data(stream, OK, true), go_away(stream, code::NO_ERROR, b"")];
                peer.send(last.concat()).await?;
            ),
        ),
        said("goaway-debug", "GOAWAY with 16 KiB of debug data, then the answer", |stream| {
            [go_away(stream, code::NO_ERROR, &[b'x'; 16_000]), ok(stream)].concat()
        }),
        said(
            "goaway-unknown-code",
            "GOAWAY with a code nobody knows, then the answer (7)",
            |stream| [go_away(stream, 0xdead_beef, b""), ok(stream)].concat(),
        )
        .ends(&[Outcome::Answer, Closed]),
    ]
}

fn cuts() -> Vec<BadH2> {
    use Outcome::Closed;
    vec![
        cut(
            "goaway-in-body-fin",
            "half of the body, GOAWAY that includes it, FIN",
            code::NO_ERROR,
            After::Close,
        ),
        cut(
            "goaway-in-body-reset",
            "half of the body, GOAWAY that includes it, RST",
            code::NO_ERROR,
            After::Reset,
        ),
        cut(
            "goaway-error-in-body",
            "half of the body, GOAWAY with INTERNAL_ERROR, FIN",
            code::INTERNAL_ERROR,
            After::Close,
        ),
        row(
            "goaway-included-fin",
            "GOAWAY that includes the request, FIN, no answer: it may have been processed",
            play!(|peer|
                let stream = peer.first().await?;
                peer.send(go_away(stream, code::NO_ERROR, b"")).await?;
            ),
        )
        .ends(&[Closed]),
        said(
            "goaway-below-answered",
            "half of an answer, then GOAWAY with last stream 0, which denies it; then nothing",
            |stream| {
                let half = [ok_head(stream), data(stream, &OK[..1], false)].concat();
                [half, go_away(0, code::NO_ERROR, b"")].concat()
            },
        )
        .ends(&[Closed, Outcome::Protocol]),
    ]
}

/// Half an answer, GOAWAY that includes its stream, and the end.
fn cut(name: &str, what: &str, code: u32, end: After) -> BadH2 {
    row(name, what, move |peer| {
        Box::pin(async move {
            let stream = peer.first().await?;
            let half = [ok_head(stream), data(stream, &OK[..1], false)].concat();
            peer.send([half, go_away(stream, code, b"")].concat()).await?;
            peer.settle().await;
            Ok(end)
        })
    })
    .ends(&[Outcome::Closed])
}

fn between() -> Vec<BadH2> {
    vec![
        row(
            "goaway-idle",
            "GOAWAY and FIN once a connection idles",
            play!(|peer|
                peer.open(&[]).await?;
                let stream = peer.answer().await?;
                peer.send(go_away(stream, code::NO_ERROR, b"")).await?;
            ),
        )
        .ask(Ask::Second)
        .on(2),
        row(
            "goaway-idle-kept",
            "GOAWAY once a connection idles, which stays open and answers nothing more",
            play!(|peer|
                peer.open(&[]).await?;
                let stream = peer.answer().await?;
                peer.send(go_away(stream, code::NO_ERROR, b"")).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Second)
        .on(2),
        row(
            "goaway-on-next",
            "the second request on a connection gets GOAWAY with the first as last stream",
            play!(|peer|
                peer.open(&[]).await?;
                let stream = peer.answer().await?;
                peer.request().await?;
                peer.send(go_away(stream, code::NO_ERROR, b"")).await?;
            ),
        )
        .ask(Ask::Second)
        .on(2),
    ]
}

fn wrong() -> Vec<BadH2> {
    use Outcome::{Answer, Protocol};
    vec![
        said("goaway-grows", "a second GOAWAY raises the last stream (6.8)", |stream| {
            let two =
                [go_away(stream, code::NO_ERROR, b""), go_away(stream + 6, code::NO_ERROR, b"")];
            [two.concat(), ok(stream)].concat()
        })
        .ends(&[Answer, Protocol])
        .with(&[code::PROTOCOL_ERROR]),
        said("goaway-on-stream", "GOAWAY on the stream (6.8)", |stream| {
            [frame::frame(kind::GOAWAY, 0, stream, [0; 8]), ok(stream)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said("goaway-short", "GOAWAY of 7 bytes (6.8)", |stream| {
            [frame::frame(kind::GOAWAY, 0, 0, [0; 7]), ok(stream)].concat()
        })
        .breaks(code::FRAME_SIZE_ERROR),
    ]
}
