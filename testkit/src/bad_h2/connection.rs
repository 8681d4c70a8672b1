//! Connections that are lost at every point of an answer.

use super::peer::{OK, ok, ok_head, open_head};
use super::{Ask, BadH2, Outcome, play, row};
use crate::conn::After;
use crate::h2::frame::{self, block, data, flag, kind};

/// What was said of the answer when the connection is lost.
type Said = fn(u32) -> Vec<u8>;

const POINTS: &[(&str, &str, Said)] = &[
    ("before-head", "before the head", |_| Vec::new()),
    ("in-frame-head", "within the nine bytes of a frame", |stream| ok_head(stream)[..5].to_vec()),
    ("in-head", "within HEADERS", |stream| {
        let head = ok_head(stream);
        head[..head.len() / 2].to_vec()
    }),
    ("in-block", "between HEADERS and CONTINUATION", |stream| {
        frame::frame(kind::HEADERS, 0, stream, block(&[(":status", "200")]))
    }),
    ("after-head", "after the head", ok_head),
    ("in-data", "within a DATA frame", |stream| {
        [open_head(stream), frame::head(100, kind::DATA, flag::END_STREAM, stream), OK.to_vec()]
            .concat()
    }),
    ("in-body", "between two DATA frames", |stream| {
        [ok_head(stream), data(stream, &OK[..1], false)].concat()
    }),
    ("before-end", "after a body of unknown length, before the end of the stream", |stream| {
        [open_head(stream), data(stream, OK, false)].concat()
    }),
    ("before-trailers", "within the trailers", |stream| {
        let trailers = frame::headers(stream, block(&[("x-sum", "1")]), true);
        [open_head(stream), data(stream, OK, false), trailers[..12].to_vec()].concat()
    }),
];

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = Vec::new();
    for (word, end) in [("fin", After::Close), ("rst", After::Reset)] {
        for &(point, place, said) in POINTS {
            let what = format!("{} {place}", word.to_uppercase());
            all.push(lost(format!("lost-{word}-{point}"), what, said, end));
        }
        all.push(before(word, end));
        all.push(idle(word, end));
    }
    all.push(row(
        "lost-without-a-word",
        "FIN after the whole answer and its end, without GOAWAY",
        play!(|peer|
            let stream = peer.first().await?;
            peer.send(ok(stream)).await?;
        ),
    ));
    all
}

fn lost(name: String, what: String, said: Said, end: After) -> BadH2 {
    row(name, what, move |peer| {
        Box::pin(async move {
            let stream = peer.first().await?;
            peer.send(said(stream)).await?;
            peer.settle().await;
            Ok(end)
        })
    })
    .ends(&[Outcome::Closed])
}

fn before(word: &str, end: After) -> BadH2 {
    let what = format!("{} behind the preface, before SETTINGS", word.to_uppercase());
    row(format!("lost-{word}-before-settings"), what, move |peer| {
        Box::pin(async move {
            peer.preface().await?;
            peer.settle().await;
            Ok(end)
        })
    })
    .ends(&[Outcome::Closed])
}

/// The connection is gone before the next request, or as it comes: that one goes elsewhere.
fn idle(word: &str, end: After) -> BadH2 {
    let what = format!("{} once a connection idles, without GOAWAY", word.to_uppercase());
    row(format!("lost-{word}-idle"), what, move |peer| {
        Box::pin(async move {
            peer.open(&[]).await?;
            peer.answer().await?;
            // A reset would take along what the client has not read yet.
            peer.settle().await;
            Ok(end)
        })
    })
    .ask(Ask::Second)
    .on(2)
}
