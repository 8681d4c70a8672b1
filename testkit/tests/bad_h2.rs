//! Misbehaviour over HTTP/2, met by the crate `h2`: a client that nobody here wrote agrees with the
//! table, but where this file names how it differs.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use common::two::*;
use common::{PATIENCE, eventually, origin};
use mimus_testkit::{Ask, BadH2, Origin, Outcome, Port, bad_h2};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a client waits for an answer.
const WAIT: Duration = Duration::from_millis(1500);

/// How the crate `h2` ends where a right client, or this table, would have it otherwise.
const OTHERWISE: &[(&str, Outcome)] = &[
    // It takes any first frame for a server's preface, and a server's word on push.
    ("preface-no-settings", Outcome::Answer),
    ("preface-ping-first", Outcome::Answer),
    ("preface-ack-first", Outcome::Answer),
    ("settings-push-1", Outcome::Answer),
    // It does not look at pseudo-fields that belong elsewhere.
    ("head-request-pseudo", Outcome::Answer),
    ("trailers-status", Outcome::Answer),
    ("trailers-path", Outcome::Answer),
    // It leaves it to its user to try again.
    ("streams-none-then-one", Outcome::Closed),
    ("reset-refused-once", Outcome::Closed),
    // It answers as fast as it is asked, and counts nothing.
    ("flood-settings", Outcome::Timeout),
    ("flood-settings-empty", Outcome::Timeout),
    ("flood-ping", Outcome::Timeout),
    ("flood-1xx", Outcome::Timeout),
    // It gives the body of a 204 to its user.
    ("body-on-204", Outcome::Answer),
];

/// What it says of frames of a wrong size and of broken compression too, where the RFC names other codes.
const PROTOCOL_ERROR: u32 = 1;

/// The largest list of fields that it takes.
const LIST: u32 = 64 * 1024;

fn outcome(error: &h2::Error) -> Outcome {
    if error.is_io() || error.is_remote() {
        return Outcome::Closed;
    }
    match error.reason() {
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Outcome::Limit,
        _ => Outcome::Protocol,
    }
}

/// One exchange; it gives up on the stream when it takes too long.
async fn one(send: &mut h2::client::SendRequest<Bytes>, ask: Ask) -> Result<Whole, Outcome> {
    let refused = |error: h2::Error| outcome(&error);
    let exchange = async {
        poll_fn(|cx| send.poll_ready(cx)).await.map_err(refused)?;
        let method = if ask == Ask::Upload { "POST" } else { "GET" };
        let (response, mut out) =
            send.send_request(request(method, "/"), ask != Ask::Upload).map_err(refused)?;
        let upload = async {
            let mut rest = Bytes::from(vec![7; 1 << 20]);
            while !rest.is_empty() {
                out.reserve_capacity(rest.len());
                // An upload that is cut off is told by its answer.
                let Some(Ok(room)) = poll_fn(|cx| out.poll_capacity(cx)).await else {
                    break;
                };
                let piece = rest.split_to(room.min(rest.len()));
                if out.send_data(piece, rest.is_empty()).is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await;
        };
        let answer = async { collect(response.await?).await };
        tokio::select! {
            answer = answer => answer.map_err(refused),
            () = upload, if ask == Ask::Upload => unreachable!("an upload never says its end"),
        }
    };
    timeout(WAIT, exchange).await.unwrap_or(Err(Outcome::Timeout))
}

/// Asks as the row wants it; a client of one connection tries again where nothing was processed.
async fn meet(origin: &Origin, row: &BadH2) -> Result<Whole, Outcome> {
    let addr = origin.bad_h2(&row.name, false).unwrap();
    let mut asked = row.ask != Ask::Second;
    let mut last = Err(Outcome::Closed);
    for _ in 0..2 {
        let stream = TcpStream::connect(addr).await.unwrap();
        let mut client = h2::client::Builder::new();
        client.enable_push(false).max_header_list_size(LIST);
        let Ok((mut send, connection)) = client.handshake(stream).await else {
            last = Err(Outcome::Closed);
            continue;
        };
        let driver = tokio::spawn(connection);
        if !asked {
            let first = one(&mut send, Ask::Get).await;
            assert!(first.is_ok(), "{}: the first of two: {first:?}", row.name);
            asked = true;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        last = one(&mut send, row.ask).await;
        // Let it say what it has to say before it is dropped.
        let _ = timeout(WAIT, heard(origin, row, &last)).await;
        driver.abort();
        if last.is_ok() || row.connections == 1 {
            break;
        }
    }
    last
}

async fn judge(origin: &Origin, row: &BadH2) -> Option<String> {
    origin.reset();
    let met = timeout(PATIENCE, meet(origin, row)).await.expect("in time");
    let ended = met.as_ref().map_or_else(|outcome| *outcome, |_| Outcome::Answer);
    if let Some(&(_, known)) = OTHERWISE.iter().find(|(name, _)| *name == row.name) {
        return (known != ended).then(|| format!("{}: {ended:?}, not {known:?}", row.name));
    }
    if !row.right.contains(&ended) {
        return Some(format!("{}: {ended:?}, not {:?}", row.name, row.right));
    }
    match met {
        Ok(whole) => {
            let right = whole.body.len() as u64 == row.body && whole.head.status().is_success();
            (!right)
                .then(|| format!("{}: {} bytes, {}", row.name, whole.body.len(), whole.status()))
        }
        Err(Outcome::Protocol | Outcome::Limit) if !row.codes.is_empty() => {
            let codes = said(origin);
            (!rightly(row, &codes))
                .then(|| format!("{}: said {codes:?}, not one of {:?}", row.name, row.codes))
        }
        Err(_) => None,
    }
}

/// Whether one of these codes is right for the row.
fn rightly(row: &BadH2, codes: &[u32]) -> bool {
    codes.iter().any(|code| row.codes.contains(code) || *code == PROTOCOL_ERROR)
}

/// Waits until the origin has read the right code of a client that ended so, where it owes one.
async fn heard(origin: &Origin, row: &BadH2, met: &Result<Whole, Outcome>) {
    let owed = matches!(met, Err(Outcome::Protocol | Outcome::Limit)) && !row.codes.is_empty();
    while owed && !rightly(row, &said(origin)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The error codes that the client has said on all its connections.
fn said(origin: &Origin) -> Vec<u32> {
    let seen: Vec<_> = origin.connections().into_iter().filter_map(|conn| conn.h2).collect();
    let resets = seen.iter().flat_map(|conn| conn.resets.iter().map(|&(_, code)| code));
    resets.chain(seen.iter().filter_map(|conn| conn.go_away)).collect()
}

#[test]
fn a_client_that_nobody_here_wrote_agrees_with_the_table() {
    let rows = bad_h2();
    assert!(rows.len() > 200, "{}", rows.len());
    let surprises: Vec<String> = std::thread::scope(|scope| {
        let shares: Vec<_> = rows
            .chunks(rows.len().div_ceil(16))
            .map(|share| {
                scope.spawn(move || {
                    let origin = origin();
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let mut surprises = Vec::new();
                    for row in share {
                        surprises.extend(runtime.block_on(judge(&origin, row)));
                    }
                    surprises
                })
            })
            .collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn rows_listen_with_tls_too_and_end_with_their_clients() {
    let origin = origin();
    assert!(origin.bad_h2("nothing-of-the-kind", false).is_err());
    let (plain, tls) = ("goaway-first", "lost-fin-in-body");
    assert!(origin.bad_h2_url(plain, false).unwrap().starts_with("http://127.0.0.1:"));
    assert!(origin.bad_h2_url(tls, true).unwrap().starts_with("https://localhost:"));
    let addr = origin.bad_h2("flood-ping", false).unwrap();
    assert_eq!(origin.bad_h2("flood-ping", false).unwrap(), addr);
    assert_ne!(origin.bad_h2("flood-ping", true).unwrap(), addr);
    block_on(async {
        let row = bad_h2().iter().find(|row| row.name == "data-after-end").unwrap();
        let got = meet(&origin, row).await;
        assert!(got.is_ok() || row.right.contains(&Outcome::Protocol));
    });
    eventually("it is gone", || origin.open_connections() == 0);
    assert_eq!(origin.accepted(Port::BadH2), 1);
    let seen = origin.connections()[0].h2.clone().unwrap();
    assert_eq!(seen.streams, 1);
}
