//! Requests out, responses in.

use std::time::Instant;

use futures_util::future::try_join_all;
use http_body_util::BodyExt;
use mimus::Timings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::setup::{Demo, Result, ensure, ms};

pub async fn get(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut facts = Vec::new();
    for url in [demo.http("/get?bird=wren"), demo.https("/get?bird=wren")] {
        let response = client.get(&url).send().await?;
        let status = response.status();
        ensure!(status == 200, "{status}");
        facts.push(match response.tls() {
            Some(tls) => format!("{status} over {}", tls.version),
            None => format!("{status} over TCP"),
        });
        let echo: Value = response.json().await?;
        ensure!(echo["args"]["bird"] == "wren", "the origin saw {}", echo["args"]);
    }
    Ok(facts.join(", "))
}

pub async fn keep_alive(demo: &Demo) -> Result {
    const ROUNDS: u32 = 1000;
    let client = demo.client()?;
    let url = demo.http("/bytes/16");
    let (known, started) = (demo.connections(), Instant::now());
    for round in 0..ROUNDS {
        let response = client.get(&url).send().await?;
        ensure!(response.reused() == (round > 0), "call {round}: reused is {}", response.reused());
        let bytes = response.bytes().await?.len();
        ensure!(bytes == 16, "call {round}: {bytes} bytes");
    }
    let each = started.elapsed() / ROUNDS;
    let opened = demo.connections() - known;
    ensure!(opened == 1, "{opened} connections");
    Ok(format!("1 connection, {} us a call", each.as_micros()))
}

pub async fn concurrency(demo: &Demo) -> Result {
    let client = demo.builder().max_connections_per_host(6).build()?;
    let url = demo.http("/bytes/1000");
    let known = demo.connections();
    let calls = (0..500).map(|_| async { client.get(&url).send().await?.bytes().await });
    let bodies = try_join_all(calls).await?;
    let opened = demo.connections() - known;
    ensure!(opened <= 6, "{opened} connections");
    ensure!(bodies.iter().all(|body| body.len() == 1000), "a body has another length");
    let stats = client.pool_stats();
    ensure!(stats.in_use + stats.waiting == 0, "{stats:?}");
    Ok(format!("{} bodies, {opened} connections", bodies.len()))
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bird {
    name: String,
    songs: Vec<String>,
    weight_g: f64,
}

pub async fn json(demo: &Demo) -> Result {
    #[derive(Deserialize)]
    struct Echo {
        json: Bird,
    }
    let bird = Bird {
        name: "Mimus polyglottos".to_owned(),
        songs: vec!["wren".to_owned(), "jäger".to_owned()],
        weight_g: 49.5,
    };
    let response = demo.client()?.post(demo.https("/post")).json(&bird).send().await?;
    let echo: Echo = response.error_for_status()?.json().await?;
    ensure!(echo.json == bird, "came back as {:?}", echo.json);
    let seen = demo.last_request()?;
    let kind = seen.header("content-type").unwrap_or_default();
    ensure!(kind == "application/json", "sent as {kind:?}");
    Ok(format!("{} bytes as {kind}, back equal", seen.body_len))
}

pub async fn query_and_form(demo: &Demo) -> Result {
    let request = demo.client()?.post(demo.http("/post?page=1"));
    let request = request.query(&[("q", "a b&c=ü")]).form(&[("name", "Ünal"), ("tag", "1+1")]);
    let echo: Value = request.send().await?.error_for_status()?.json().await?;
    let (args, form) = (&echo["args"], &echo["form"]);
    ensure!(args["q"] == "a b&c=ü" && args["page"] == "1", "the origin saw {args}");
    ensure!(form["name"] == "Ünal" && form["tag"] == "1+1", "the origin saw {form}");
    Ok(demo.last_request()?.target)
}

pub async fn charsets(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut facts = Vec::new();
    for (charset, expected) in [
        ("utf8", "naïve café, 日本語"),
        ("utf16", "naïve café, 日本語"),
        ("latin1", "naïve café"),
        ("shift_jis", "日本語"),
    ] {
        let url = demo.http(&format!("/encoding/{charset}"));
        let text = client.get(url).send().await?.text().await?;
        ensure!(text.contains(expected), "{charset}: {text:?}");
        facts.push(format!("{charset} {expected}"));
    }
    Ok(facts.join(", "))
}

pub async fn trailers(demo: &Demo) -> Result {
    let mut response = demo.client()?.get(demo.http("/trailers")).send().await?;
    while response.chunk().await?.is_some() {}
    let trailers = response.trailers().ok_or("no trailers")?;
    let names: Vec<_> = trailers.iter().map(|(name, _)| name).collect();
    ensure!(names.len() == 2, "{names:?}");
    Ok(names.join(", "))
}

pub async fn http_types(demo: &Demo) -> Result {
    let request = http::Request::put(demo.http("/put")).header("x-bird", "wren").body("song")?;
    let response = demo.client()?.call(request).await?;
    ensure!(response.status() == 200, "{}", response.status());
    let timings = response.extensions().get::<Timings>().ok_or("no timings in the extensions")?;
    let facts = format!("{}, first byte after {}", response.status(), ms(timings.first_byte));
    let body = response.into_body().collect().await?.to_bytes();
    let echo: Value = serde_json::from_slice(&body)?;
    ensure!(echo["data"] == "song", "the origin saw {}", echo["data"]);
    Ok(facts)
}
