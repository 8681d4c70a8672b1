//! Many exchanges on one connection, and gRPC over it.

use std::time::{Duration, Instant};

use futures_util::{future::try_join_all, stream};
use mimus::{
    Version,
    grpc::{Code, Method, Prost},
};
use mimus_testkit::Port;

use crate::setup::{Demo, Result, ensure, ms};

pub async fn prior_knowledge(demo: &Demo) -> Result {
    let url = demo.at(Port::H2c, "/bytes/100000")?;
    let response = demo.client()?.get(url).version(Version::HTTP_2).send().await?;
    let (status, version) = (response.status(), response.version());
    ensure!(version == Version::HTTP_2, "{version:?}");
    ensure!(response.tls().is_none(), "it was over TLS");
    let bytes = response.bytes().await?.len();
    ensure!(bytes == 100_000, "{bytes} bytes");
    Ok(format!("{status} by {version:?}, {bytes} bytes"))
}

pub async fn alpn(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut facts = Vec::new();
    for (port, expected) in [(Port::H2OrHttp1, Version::HTTP_2), (Port::Https, Version::HTTP_11)] {
        let response = client.get(demo.at(port, "/get")?).send().await?;
        let version = response.version();
        ensure!(version == expected, "{version:?} from {}", port.name());
        let tls = response.tls().ok_or("it was not over TLS")?.version;
        facts.push(format!("{version:?} over {tls} from {}", port.name()));
        response.bytes().await?;
    }
    Ok(facts.join(", "))
}

pub async fn multiplexed(demo: &Demo) -> Result {
    const CALLS: usize = 50;
    let client = demo.client()?;
    let url = demo.at(Port::H2, "/delay/0.1")?;
    let (known, started) = (demo.connections(), Instant::now());
    let calls = (0..CALLS).map(|_| async { client.get(&url).send().await?.bytes().await });
    try_join_all(calls).await?;
    let took = started.elapsed();
    let opened = demo.connections() - known;
    ensure!(opened == 1, "{opened} connections");
    ensure!(took < Duration::from_millis(100) * 25, "they waited for each other: {}", ms(took));
    Ok(format!("{CALLS} answers of 100 ms each in {}, {opened} connection", ms(took)))
}

/// As much of the echo service's messages as the demo needs.
#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint32, tag = "4")]
    delay_ms: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Told {
    #[prost(message, optional, tag = "1")]
    request: Option<Ask>,
    #[prost(uint32, tag = "3")]
    received: u32,
}

fn ask(text: &str) -> Ask {
    Ask { text: text.to_owned(), delay_ms: 0 }
}

fn method(demo: &Demo, port: Port, name: &str) -> Result<Method<Prost<Ask, Told>>> {
    let channel = demo.client()?.grpc(demo.at(port, "/")?)?;
    Ok(channel.method(&format!("mimus.test.v1.Echo/{name}"), Prost::new()))
}

pub async fn unary(demo: &Demo) -> Result {
    let method = method(demo, Port::H2, "Unary")?.metadata("echo-bird", "wren");
    let reply = method.unary(ask("naïve café")).await?;
    let bird = reply.metadata().get("echo-bird").unwrap_or_default().to_owned();
    ensure!(bird == "wren", "the metadata came back as {bird:?}");
    let told = reply.into_message().request.ok_or("no message came back")?;
    ensure!(told == ask("naïve café"), "{told:?}");
    let seen = demo.last_request()?;
    Ok(format!("{} {}, echo-bird: {bird}", seen.version, seen.target))
}

pub async fn conversation(demo: &Demo) -> Result {
    const ROUNDS: u32 = 100;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let requests = stream::unfold(receiver, |mut r| async move { Some((r.recv().await?, r)) });
    let mut replies = method(demo, Port::H2c, "BidiStream")?.bidi(requests);
    let started = Instant::now();
    for round in 1..=ROUNDS {
        sender.send(ask("song")).await?;
        let told = replies.message().await?.ok_or("the stream ended early")?;
        ensure!(told.received == round, "{} for {round} messages", told.received);
    }
    drop(sender);
    ensure!(replies.message().await?.is_none(), "one message too many");
    let each = started.elapsed() / ROUNDS;
    Ok(format!("{ROUNDS} there and back, {} us each", each.as_micros()))
}

pub async fn deadline(demo: &Demo) -> Result {
    let limit = Duration::from_millis(150);
    let method = method(demo, Port::H2c, "Unary")?.timeout(limit);
    let started = Instant::now();
    let outcome = method.unary(Ask { delay_ms: 60_000, ..ask("") }).await;
    let status = outcome.err().ok_or("the call succeeded")?;
    ensure!(status.code() == Code::DeadlineExceeded, "{status:#}");
    let told = demo.last_request()?.header("grpc-timeout").unwrap_or_default();
    Ok(format!("{} after {}, grpc-timeout: {told}", status.code(), ms(started.elapsed())))
}
