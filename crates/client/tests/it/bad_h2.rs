//! What a hostile or broken server does in frames of HTTP/2: the testkit's table says how each row ends
//! with a right client, and every row is met over TCP and over TLS, on one of the four runtimes.

use std::time::{Duration, Instant};

use mimus::{Kind, Version};
use mimus_testkit::{Ask, BadH2, Outcome, Port, SeenH2, bad_h2};

use crate::support::{Bench, on_every_runtime};

on_every_runtime!(every_row_ends_as_the_table_has_it);

/// What a row may take that ends with the client's own timeout.
const PATIENCE: Duration = Duration::from_millis(700);
/// What any other row may take.
const SOON: Duration = Duration::from_secs(10);
/// However often a server refuses, a client does not try for ever.
const MOST_CONNECTIONS: u64 = 10;

/// How many rows a runtime meets at a time. Each lane has an origin of its own, which counts.
const LANES: usize = 4;

/// Every fourth row, beginning at the runtime's own number: all of them are met once.
async fn every_row_ends_as_the_table_has_it(b: Bench) {
    let rows: Vec<_> = bad_h2().iter().skip(b.number()).step_by(Bench::RUNTIMES).collect();
    let lane = |n: usize| walk(b.another(), rows.iter().copied().skip(n).step_by(LANES).collect());
    let surprises: Vec<String> = match b.concurrent() {
        true => futures_util::future::join_all((0..LANES).map(lane)).await.concat(),
        false => std::thread::scope(|threads| {
            let begin = |lane| threads.spawn(move || mimus::rt::Blocking::block_on(lane));
            let lanes: Vec<_> = (0..LANES).map(|n| begin(lane(n))).collect();
            lanes.into_iter().flat_map(|lane| lane.join().expect("a lane does not panic")).collect()
        }),
    };
    assert!(surprises.is_empty(), "{} surprises:\n{}", surprises.len(), surprises.join("\n"));
}

async fn walk(b: Bench, rows: Vec<&BadH2>) -> Vec<String> {
    let mut surprises = Vec::new();
    for row in rows {
        for tls in [false, true] {
            if let Err(what) = judge(&b, row, tls).await {
                let over = if tls { "TLS" } else { "TCP" };
                surprises.push(format!("{} over {over}: {what}", row.name));
            }
        }
    }
    surprises
}

async fn judge(b: &Bench, row: &BadH2, tls: bool) -> Result<(), String> {
    let url = b.origin.bad_h2_url(&row.name, tls).unwrap();
    b.origin.reset();
    let client = b.client();
    let limit = if row.right.contains(&Outcome::Timeout) { PATIENCE } else { SOON };
    let ask = async |upload: bool| {
        let call = match upload {
            true => client.post(&url).body(vec![7; 1 << 20]),
            false => client.get(&url),
        };
        let response = call.version(Version::HTTP_2).timeout(limit).send().await?;
        let status = response.status();
        response.bytes().await.map(|body| (status, body))
    };
    if row.ask == Ask::Second {
        let first = ask(false).await.map_err(|error| format!("the first of two: {error:#}"))?;
        assert_eq!(first.1.as_ref(), b"ok", "{}", row.name);
        b.sleep(Duration::from_millis(50)).await;
    }
    let started = Instant::now();
    let got = ask(row.ask == Ask::Upload).await;
    let took = started.elapsed();
    if took > limit + Duration::from_secs(2) {
        return Err(format!("took {took:?}"));
    }
    match &got {
        Ok((status, body)) => {
            if !row.right.contains(&Outcome::Answer) {
                return Err(format!("{status} and {} bytes, not {:?}", body.len(), row.right));
            }
            let prefix = body.len().min(2);
            if !status.is_success()
                || body.len() as u64 != row.body
                || body[..prefix] != b"ok"[..prefix]
            {
                return Err(format!("{status} and {} bytes, not {}", body.len(), row.body));
            }
            let opened = b.origin.accepted(Port::BadH2);
            if opened < row.connections {
                return Err(format!("{opened} connections, not {}", row.connections));
            }
        }
        Err(error) => {
            let ended = outcome(error.kind());
            if !ended.is_some_and(|ended| row.right.contains(&ended)) {
                return Err(format!("{:?} ({error:#}), not {:?}", error.kind(), row.right));
            }
            if matches!(ended, Some(Outcome::Protocol | Outcome::Limit)) {
                told(b, row).await?;
            }
        }
    }
    if client.pool_stats().in_use != 0 {
        return Err("a connection is still in use".to_owned());
    }
    client.close_idle();
    drop(client);
    b.all_closed().await;
    let opened = b.origin.accepted(Port::BadH2);
    if opened > MOST_CONNECTIONS {
        return Err(format!("{opened} connections"));
    }
    // RFC 9110 section 9.2.2: what was processed and is not idempotent is not sent again.
    let streams: u64 = seen(b).iter().map(|conn| conn.streams).sum();
    if row.name == "reset-upload-processed" && streams != 1 {
        return Err(format!("sent {streams} times"));
    }
    Ok(())
}

fn outcome(kind: Kind) -> Option<Outcome> {
    Some(match kind {
        Kind::Protocol => Outcome::Protocol,
        Kind::Limit => Outcome::Limit,
        Kind::Closed | Kind::Reset | Kind::Io | Kind::Connect => Outcome::Closed,
        Kind::Timeout => Outcome::Timeout,
        _ => return None,
    })
}

fn seen(b: &Bench) -> Vec<SeenH2> {
    b.origin.connections().into_iter().filter_map(|conn| conn.h2).collect()
}

/// Waits until the peer was told one of the row's codes.
async fn told(b: &Bench, row: &BadH2) -> Result<(), String> {
    if row.codes.is_empty() {
        return Ok(());
    }
    let mut codes = Vec::new();
    for _ in 0..100 {
        codes.clear();
        for conn in seen(b) {
            codes.extend(conn.resets.iter().map(|&(_, code)| code));
            codes.extend(conn.go_away);
        }
        if codes.iter().any(|code| row.codes.contains(code)) {
            return Ok(());
        }
        b.sleep(Duration::from_millis(10)).await;
    }
    Err(format!("said {codes:?}, not one of {:?}", row.codes))
}
