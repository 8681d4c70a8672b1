//! RST_STREAM at every point, with every code (RFC 9113 sections 6.4, 7, 8.1).

use super::peer::{OK, ok, ok_head};
use super::{Ask, BadH2, Outcome, play, row, said};
use crate::h2::frame::{self, code, data, kind, reset};

/// Every code of RFC 9113 section 7, and one that is none.
const CODES: &[(u32, &str)] = &[
    (0x0, "no-error"),
    (0x1, "protocol"),
    (0x2, "internal"),
    (0x3, "flow-control"),
    (0x4, "settings-timeout"),
    (0x5, "stream-closed"),
    (0x6, "frame-size"),
    (0x7, "refused"),
    (0x8, "cancel"),
    (0x9, "compression"),
    (0xa, "connect"),
    (0xb, "calm"),
    (0xc, "security"),
    (0xd, "http11"),
    (0xfade, "unknown"),
];

/// Where in an answer the reset comes.
#[derive(Clone, Copy)]
enum Point {
    BeforeHead,
    AfterHead,
    InBody,
}

impl Point {
    fn name(self) -> &'static str {
        match self {
            Point::BeforeHead => "before-head",
            Point::AfterHead => "after-head",
            Point::InBody => "in-body",
        }
    }

    fn said(self, stream: u32) -> Vec<u8> {
        match self {
            Point::BeforeHead => Vec::new(),
            Point::AfterHead => ok_head(stream),
            Point::InBody => [ok_head(stream), data(stream, &OK[..1], false)].concat(),
        }
    }
}

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = Vec::new();
    for point in [Point::BeforeHead, Point::AfterHead, Point::InBody] {
        for &(code, name) in CODES {
            all.push(at(point, code, name));
        }
    }
    all.extend(special());
    all.extend(late());
    all.extend(wrong());
    all
}

fn at(point: Point, code: u32, name: &str) -> BadH2 {
    let what = format!("RST_STREAM with {code:#x} {}", point.name().replace('-', " "));
    let row = said(format!("reset-{}-{name}", point.name()), what, move |stream| {
        [point.said(stream), reset(stream, code)].concat()
    });
    match (point, code) {
        // 8.7: it was not processed; a client tries again, and not for ever.
        (Point::BeforeHead, code::REFUSED_STREAM) => row.ends(&[Outcome::Closed, Outcome::Limit]),
        // The client may do what it is told, and then there is nobody who speaks HTTP/1.1.
        (Point::BeforeHead, 0xd) => row.ends(&[Outcome::Closed, Outcome::Protocol]),
        _ => row.ends(&[Outcome::Closed]),
    }
}

fn special() -> Vec<BadH2> {
    use Outcome::{Answer, Closed};
    let refused = |ask: Ask, name: &str, what: &str| {
        row(
            name,
            what,
            play!(|peer|
                peer.open(&[]).await?;
                if peer.nth == 1 {
                    let (stream, _) = peer.head().await?;
                    peer.send(reset(stream, code::REFUSED_STREAM)).await?;
                }
                peer.behave().await?;
            ),
        )
        .ask(ask)
    };
    let answered = |name: &str, what: &str, code: u32| {
        row(
            name,
            what,
            play!(|peer|
                peer.open(&[]).await?;
                let (stream, _) = peer.head().await?;
                peer.take(1000).await?;
                peer.send([ok(stream), reset(stream, code)].concat()).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
    };
    vec![
        refused(
            Ask::Get,
            "reset-refused-once",
            "REFUSED_STREAM to the first request, then answers (8.7)",
        ),
        refused(
            Ask::Upload,
            "reset-refused-upload",
            "REFUSED_STREAM to the first upload, whose body has hardly left; then answers (8.7)",
        )
        // A body that cannot be sent again is an error; one in memory can.
        .ends(&[Answer, Closed]),
        answered(
            "reset-answered-early",
            "a whole answer, then RST_STREAM with NO_ERROR while the upload goes on (8.1)",
            code::NO_ERROR,
        ),
        answered(
            "reset-answered-cancel",
            "a whole answer, then RST_STREAM with CANCEL while the upload goes on",
            code::CANCEL,
        )
        .ends(&[Answer, Closed]),
    ]
}

fn late() -> Vec<BadH2> {
    use Outcome::Closed;
    vec![
        row(
            "reset-upload-processed",
            "reads the whole upload, then RST_STREAM with INTERNAL_ERROR: it must not be sent again",
            play!(|peer|
                let stream = peer.first().await?;
                peer.send(reset(stream, code::INTERNAL_ERROR)).await?;
                peer.listen().await?;
            ),
        )
        .ask(Ask::Upload)
        .ends(&[Closed]),
        said("reset-after-answer", "a whole answer, then RST_STREAM on its closed stream", |stream| {
            [ok(stream), reset(stream, code::INTERNAL_ERROR)].concat()
        }),
        said("reset-twice", "RST_STREAM twice before the head", |stream| {
            [reset(stream, code::CANCEL), reset(stream, code::CANCEL)].concat()
        })
        .ends(&[Closed]),
        said("reset-then-answer", "RST_STREAM before the head, then the answer it took back", |stream| {
            [reset(stream, code::CANCEL), ok(stream)].concat()
        })
        .ends(&[Closed, Outcome::Protocol]),
    ]
}

fn wrong() -> Vec<BadH2> {
    vec![
        said("reset-connection", "RST_STREAM on stream 0 (6.4)", |stream| {
            [reset(0, code::CANCEL), ok(stream)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said("reset-idle", "RST_STREAM on a stream nobody opened (6.4)", |stream| {
            [reset(stream + 100, code::CANCEL), ok(stream)].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said("reset-short", "RST_STREAM of 3 bytes (6.4)", |stream| {
            [frame::frame(kind::RST_STREAM, 0, stream, [0; 3]), ok(stream)].concat()
        })
        .breaks(code::FRAME_SIZE_ERROR),
    ]
}
