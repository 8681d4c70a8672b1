//! ORIGIN (RFC 8336), which says whom a connection is for. None of it hurts a request to its own origin.

use super::{BadH2, row};
use crate::h2::frame;

/// Frame type of RFC 8336 section 2.1.
const ORIGIN: u8 = 0x0c;

/// Says this in an ORIGIN frame behind its SETTINGS, and behaves.
fn names(name: &str, what: &str, stream: u32, flags: u8, payload: Vec<u8>) -> BadH2 {
    let said = frame::frame(ORIGIN, flags, stream, &payload);
    row(name, what, move |peer| {
        let said = said.clone();
        Box::pin(async move {
            peer.open(&[]).await?;
            peer.send(said).await?;
            peer.behave().await?;
            Ok(crate::conn::After::Close)
        })
    })
}

fn entries(origins: &[&str]) -> Vec<u8> {
    let entry = |origin: &&str| [&(origin.len() as u16).to_be_bytes(), origin.as_bytes()].concat();
    origins.iter().flat_map(entry).collect()
}

pub(super) fn rows() -> Vec<BadH2> {
    let other = entries(&["https://other.test"]);
    vec![
        names("origin-other", "is there for https://other.test besides", 0, 0, other.clone()),
        names(
            "origin-both",
            "is there for https://origin.test and https://localhost",
            0,
            0,
            entries(&["https://other.test", "https://origin.test", "https://localhost"]),
        ),
        names("origin-empty", "is there for nobody besides", 0, 0, Vec::new()),
        names(
            "origin-flagged",
            "sets a reserved flag (RFC 8336 2.1: ignored)",
            0,
            1,
            other.clone(),
        ),
        names("origin-on-a-stream", "names origins on stream 1 (ignored)", 1, 0, other),
        names("origin-cut-off", "names more than the frame holds", 0, 0, vec![0xff, 0xff, b'h']),
    ]
}
