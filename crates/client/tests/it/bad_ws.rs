//! What a hostile or broken server does with a WebSocket: the testkit's table says how each row ends with a
//! right client, and every row is met over HTTP/1.1 and, where it can be, over HTTP/2, on one of the four
//! runtimes.

use std::time::{Duration, Instant};

use mimus::{
    Client, Error, Kind, Version,
    ws::{CloseCode, DeflateOffer, Message},
};
use mimus_testkit::{BadWs, Port, SeenWs, WsAsk, WsOutcome, bad_ws};

use crate::support::{Bench, on_every_runtime};

on_every_runtime!(every_row_ends_as_the_table_has_it);

/// What a row may take that ends with the client's own timeout.
const PATIENCE: Duration = Duration::from_millis(700);
/// What any other row may take.
const SOON: Duration = Duration::from_secs(10);
/// What a message may have, as the table has it.
const LIMIT: usize = 1 << 20;
/// How many rows a runtime meets at a time. Each lane has an origin of its own, which tells what it saw.
const LANES: usize = 4;

/// Every fourth row, beginning at the runtime's own number: all of them are met once.
async fn every_row_ends_as_the_table_has_it(b: Bench) {
    let rows: Vec<_> = bad_ws().iter().skip(b.number()).step_by(Bench::RUNTIMES).collect();
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

async fn walk(b: Bench, rows: Vec<&BadWs>) -> Vec<String> {
    let mut surprises = Vec::new();
    for row in rows {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            if version == Version::HTTP_2 && !row.http2 {
                continue;
            }
            if let Err(what) = judge(&b, row, version).await {
                surprises.push(format!("{} over {version:?}: {what}", row.name));
            }
        }
    }
    surprises
}

async fn judge(b: &Bench, row: &BadWs, version: Version) -> Result<(), String> {
    b.origin.reset();
    let client = b.client();
    let started = Instant::now();
    let (messages, ended) = meet(b, &client, row, version).await;
    if started.elapsed() > SOON + Duration::from_secs(2) {
        return Err(format!("took {:?}", started.elapsed()));
    }
    let outcome = match &ended {
        Ok(outcome) => Some(*outcome),
        Err(error) => outcome(error.kind()),
    };
    let Some(outcome) = outcome.filter(|outcome| row.right.contains(outcome)) else {
        return Err(format!("{ended:?} after {messages} messages, not {:?}", row.right));
    };
    // Of what comes behind its own Close, a client gives as much as it likes.
    if outcome == WsOutcome::Closed && row.ask != WsAsk::Close && messages != row.messages {
        return Err(format!("{messages} messages, not {}", row.messages));
    }
    if matches!(outcome, WsOutcome::Closed | WsOutcome::Protocol | WsOutcome::Limit) {
        told(b, row).await?;
    }
    let seen = seen(b).unwrap_or_default();
    if !seen.broken.is_empty() || seen.cut {
        return Err(format!("the client breaks rules itself: {seen:?}"));
    }
    if client.pool_stats().in_use != 0 {
        return Err("a connection is still in use".to_owned());
    }
    client.close_idle();
    drop(client);
    b.all_closed().await;
    Ok(())
}

fn outcome(kind: Kind) -> Option<WsOutcome> {
    Some(match kind {
        Kind::Status(_) => WsOutcome::Refused,
        Kind::Protocol => WsOutcome::Protocol,
        Kind::Limit => WsOutcome::Limit,
        Kind::Closed | Kind::Reset | Kind::Io => WsOutcome::Lost,
        Kind::Timeout => WsOutcome::Timeout,
        _ => return None,
    })
}

/// What came over the row's socket, if it was opened.
fn seen(b: &Bench) -> Option<SeenWs> {
    b.origin.requests().into_iter().find_map(|seen| seen.ws)
}

/// Waits until the server was told one of the row's codes.
async fn told(b: &Bench, row: &BadWs) -> Result<(), String> {
    let right = |seen: &SeenWs| {
        let said = seen.close.as_ref().and_then(|(code, _)| *code);
        said.is_some_and(|code| row.codes.contains(&code))
    };
    let mut last = None;
    for _ in 0..if row.codes.is_empty() { 0 } else { 500 } {
        last = seen(b);
        if last.as_ref().is_some_and(right) {
            return Ok(());
        }
        b.sleep(Duration::from_millis(10)).await;
    }
    match row.codes.is_empty() {
        true => Ok(()),
        false => Err(format!("said {last:?}, not one of {:?}", row.codes)),
    }
}

/// Does what the row asks for: how many messages there were, and how it ended, by itself or by patience.
async fn meet(
    b: &Bench,
    client: &Client,
    row: &BadWs,
    version: Version,
) -> (u64, Result<WsOutcome, Error>) {
    let limit = if row.right.contains(&WsOutcome::Timeout) { PATIENCE } else { SOON };
    let port = if version == Version::HTTP_2 { Port::H2c } else { Port::Http };
    let url = b.origin.url(port, &format!("/bad-ws/{}", row.name)).unwrap();
    let mut builder = client
        .websocket(url)
        .version(version)
        .max_message(LIMIT)
        .max_frame(LIMIT)
        .idle_timeout(limit)
        .close_timeout(PATIENCE)
        .request(|request| request.timeout(limit));
    match row.ask {
        WsAsk::Chat => builder = builder.subprotocols(["chat", "superchat"]),
        WsAsk::Deflate => builder = builder.deflate(DeflateOffer::default()),
        WsAsk::Receive | WsAsk::Close => {}
    }
    let mut socket = match builder.connect().await {
        Ok(socket) => socket,
        Err(error) => return (0, Err(error.into_error())),
    };
    if row.ask == WsAsk::Close {
        return (0, socket.close(CloseCode::NORMAL, "").await.map(|_| WsOutcome::Closed));
    }
    let (mut messages, until) = (0, Instant::now() + limit);
    loop {
        match socket.recv().await {
            Ok(Some(Message::Text(_) | Message::Binary(_))) => messages += 1,
            Ok(Some(_)) if Instant::now() < until => {}
            // Who is asked without end stops listening at some time.
            Ok(Some(_)) => return (messages, Ok(WsOutcome::Timeout)),
            Ok(None) => return (messages, Ok(WsOutcome::Closed)),
            Err(error) => return (messages, Err(error)),
        }
    }
}
