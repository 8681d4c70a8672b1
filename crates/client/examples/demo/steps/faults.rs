//! Servers that are slow, broken or hostile.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mimus::{Body, BoxError, Kind, Phase, Result as Outcome};
use mimus_testkit::Port;

use crate::setup::{Demo, Result, ensure, ms, refused, root};

const LIMIT: Duration = Duration::from_millis(250);

/// A busy machine may notice a timeout this much later.
const SLACK: Duration = Duration::from_millis(400);

/// Checks that a call which began at `started` ended by its timeout, in that phase and on time.
fn fired<T>(result: Outcome<T>, phase: Phase, started: Instant) -> Result {
    let took = started.elapsed();
    let error = refused(result, Kind::Timeout, phase)?;
    let on_time = (LIMIT..LIMIT + SLACK).contains(&(took + Duration::from_millis(2)));
    ensure!(on_time, "{error} after {}", ms(took));
    Ok(format!("of {}, fired after {} ({phase})", ms(LIMIT), ms(took)))
}

pub async fn head_timeout(demo: &Demo) -> Result {
    let client = demo.builder().head_timeout(LIMIT).build()?;
    let started = Instant::now();
    fired(client.get(demo.https("/delay/8")).send().await, Phase::Head, started)
}

pub async fn idle_timeout(demo: &Demo) -> Result {
    let client = demo.builder().idle_timeout(LIMIT).build()?;
    let response = client.get(demo.http("/bad/stall-mid-body")).send().await?;
    let started = Instant::now();
    fired(response.bytes().await, Phase::Body, started)
}

pub async fn total_timeout(demo: &Demo) -> Result {
    let started = Instant::now();
    // A byte every 20 ms for 8 s: never idle for long.
    let request = demo.client()?.get(demo.https("/bad/drip-body?n=400&ms=20")).timeout(LIMIT);
    let mut response = request.send().await?;
    let mut bytes = 0;
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => bytes += piece.len(),
            Ok(None) => return Err(format!("{bytes} bytes in all").into()),
            Err(error) => {
                let facts = fired::<()>(Err(error), Phase::Body, started)?;
                return Ok(format!("{facts}, {bytes} bytes in"));
            }
        }
    }
}

pub async fn connect_timeout(demo: &Demo) -> Result {
    let url = demo.at(Port::NoAccept, "/")?;
    let started = Instant::now();
    let call = demo.client()?.get(url).connect_timeout(LIMIT).send().await;
    fired(call, Phase::Connect, started)
}

pub async fn bomb(demo: &Demo) -> Result {
    let mut response = demo.client()?.get(demo.http("/bad/bomb-gzip")).send().await?;
    let mut decoded = 0;
    let error = loop {
        match response.chunk().await {
            Ok(Some(piece)) => decoded += piece.len(),
            Ok(None) => return Err(format!("{decoded} bytes were decoded").into()),
            Err(error) => break error,
        }
    };
    let error = refused::<()>(Err(error), Kind::Limit, Phase::Body)?;
    ensure!(decoded <= 32 << 20, "{decoded} bytes were decoded");
    Ok(format!("after {} MiB: {}", decoded >> 20, root(&error)))
}

pub async fn smuggling(demo: &Demo) -> Result {
    let client = demo.client()?;
    let call = client.get(demo.http("/bad/length-and-chunked")).send().await;
    let error = refused(call, Kind::Protocol, Phase::Head)?;
    ensure!(client.pool_stats().open() == 0, "its connection was kept");
    Ok(root(&error))
}

pub async fn second_response(demo: &Demo) -> Result {
    let client = demo.client()?;
    let first = client.get(demo.http("/bad/second-response")).send().await?.text().await?;
    ensure!(first == "hello", "{first:?}");
    let next = client.get(demo.http("/get")).send().await?;
    ensure!(!next.reused(), "its connection served the next call");
    let text = next.text().await?;
    ensure!(text.contains("/get"), "the next call got {text:?}");
    Ok("its connection was not used again".to_owned())
}

pub async fn truncation(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut reasons = Vec::new();
    for path in ["/bad/truncate", "/bad/truncate-chunked", "/bad/reset-mid-body"] {
        let body = client.get(demo.http(path)).send().await?.bytes().await;
        reasons.push(root(&refused(body, Kind::Closed, Phase::Body)?));
    }
    reasons.dedup();
    Ok(reasons.join("; "))
}

pub async fn endless_head(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut reasons = Vec::new();
    for (what, path) in
        [("lines without end", "/bad/endless-head"), ("a value of 1 GiB", "/bad/huge-header")]
    {
        let call = client.get(demo.http(path)).send().await;
        let reason = root(&refused(call, Kind::Limit, Phase::Head)?);
        reasons.push(format!("{what}: {reason}"));
    }
    Ok(reasons.join("; "))
}

pub async fn wrong_name(demo: &Demo) -> Result {
    certificate(demo, Port::TlsWrongName, "wrong.test").await
}

pub async fn expired(demo: &Demo) -> Result {
    certificate(demo, Port::TlsExpired, "expired").await
}

pub async fn self_signed(demo: &Demo) -> Result {
    certificate(demo, Port::TlsSelfSigned, "self-signed").await
}

/// The certificate that the port shows is refused, for a reason with this word.
async fn certificate(demo: &Demo, port: Port, word: &str) -> Result {
    let call = demo.client()?.get(demo.at(port, "/get")?).send().await;
    let reason = root(&refused(call, Kind::Certificate, Phase::Tls)?);
    ensure!(reason.contains(word), "{reason}");
    Ok(reason)
}

pub async fn stale_connection(demo: &Demo) -> Result {
    let client = demo.client()?;
    client.get(demo.http("/bad/keep-closed")).send().await?.bytes().await?;
    // Long enough for the FIN that contradicts its Keep-Alive.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let response = client.post(demo.http("/post")).body("song").send().await?;
    ensure!(response.status() == 200, "{}", response.status());
    ensure!(!response.reused(), "the dead connection answered");
    Ok(format!("{} to a POST, on a new connection", response.status()))
}

pub async fn dropped_calls(demo: &Demo) -> Result {
    let client = demo.client()?;
    let known = demo.connections();
    let half_sent = || {
        let begun = stream::iter([Ok::<_, BoxError>(Bytes::from_static(&[0; 4096]))]);
        client.post(demo.http("/upload")).body(Body::stream(begun.chain(stream::pending())))
    };
    let calls = [
        ("connecting", client.get(demo.at(Port::NoAccept, "/")?)),
        ("TLS", client.get(demo.at(Port::TlsStall, "/")?)),
        ("upload", half_sent()),
        ("head", client.get(demo.http("/delay/8"))),
        ("half a head", client.get(demo.https("/bad/stall-in-head"))),
        ("body", client.get(demo.http("/bad/stall-mid-body"))),
    ];
    let mut phases = Vec::new();
    for (phase, request) in calls {
        let call = async { request.send().await?.bytes().await };
        let ended = tokio::time::timeout(Duration::from_millis(30), call).await;
        ensure!(ended.is_err(), "{phase}: ended before it could be dropped");
        phases.push(phase);
    }
    let stats = client.pool_stats();
    ensure!(stats.open() + stats.waiting == 0, "{stats:?}");
    demo.all_closed_since(known).await?;
    Ok(format!("in {}: 0 connections left at either end", phases.join(", ")))
}
