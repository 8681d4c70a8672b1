//! Redirects, cookies, credentials, retries, hooks.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use mimus::{Hook, Kind, Method, Observation, Outgoing, retry::RetryPolicy};
use serde_json::Value;

use crate::setup::{Demo, Result, ensure, ms, refused, root};

pub async fn redirects(demo: &Demo) -> Result {
    let client = demo.client()?;
    let response = client.get(demo.http("/redirect/3")).send().await?;
    ensure!(response.status() == 200, "{}", response.status());
    let way: Vec<_> = response.history().iter().map(|hop| hop.url.path()).collect();
    ensure!(way.len() == 3 && way[0] == "/redirect/3", "{way:?}");
    let way = format!("{} → {}", way.join(" → "), response.url().path());
    // RFC 9110 section 15.4: 303 turns a POST into a GET, 307 does not.
    for (status, expected) in [(303, "GET"), (307, "POST")] {
        let url = demo.http(&format!("/redirect-to?url=/anything&status_code={status}"));
        let echo: Value = client.post(url).body("song").send().await?.json().await?;
        ensure!(echo["method"] == expected, "{status}: {}", echo["method"]);
    }
    let endless = client.get(demo.http("/redirect-loop")).send().await;
    let error = refused(endless, Kind::Redirect, None)?;
    Ok(format!("{way}; a loop: {}", root(&error)))
}

pub async fn credentials_stay(demo: &Demo) -> Result {
    let url = demo.http(&format!("/redirect-to?url={}", demo.https("/headers")));
    let request = demo.client()?.get(url).basic_auth("user", "secret").header("Cookie", "a=b");
    ensure!(request.header("X-Bird", "wren").send().await?.status() == 200, "not followed");
    let seen = demo.last_request()?;
    for name in ["authorization", "cookie"] {
        ensure!(seen.header(name).is_none(), "{name} went to another origin");
    }
    ensure!(seen.header("x-bird").is_some(), "other fields were lost");
    Ok("http to https: Authorization and Cookie left behind, X-Bird kept".to_owned())
}

pub async fn cookies(demo: &Demo) -> Result {
    let client = demo.builder().cookies(true).build()?;
    // Set by a redirect, and sent to where that leads.
    let url = demo.http("/cookies/set?song=wren&_attrs=Path=/;%20HttpOnly");
    let kept = client.get(url).send().await?.text().await?;
    ensure!(kept.contains("wren"), "the origin saw {kept}");
    let gone = client.get(demo.http("/cookies/delete?song=")).send().await?.text().await?;
    ensure!(!gone.contains("song"), "the origin saw {gone}");
    // A cookie for somebody else's domain is not taken.
    let url = demo.http("/cookies/set?evil=1&_attrs=Domain=example.com");
    let foreign = client.get(url).send().await?.text().await?;
    ensure!(!foreign.contains("evil"), "the origin saw {foreign}");
    Ok("set by a redirect, sent, deleted; one for another domain not taken".to_owned())
}

pub async fn auth(demo: &Demo) -> Result {
    let client = demo.client()?;
    let (basic, digest) = ("/basic-auth/u/p", "/digest-auth/auth/u/p/SHA-256");
    let right = client.get(demo.http(basic)).basic_auth("u", "p").send().await?.status();
    let wrong = client.get(demo.http(basic)).basic_auth("u", "q").send().await?.status();
    ensure!(right == 200 && wrong == 401, "Basic: {right}, and {wrong} for a wrong password");
    let right = client.get(demo.http(digest)).digest_auth("u", "p").send().await?.status();
    let wrong = client.get(demo.http(digest)).digest_auth("u", "q").send().await?.status();
    ensure!(right == 200 && wrong == 401, "Digest: {right}, and {wrong} for a wrong password");
    Ok("200 by Basic and by Digest with SHA-256; 401 to a wrong password".to_owned())
}

pub async fn retry(demo: &Demo) -> Result {
    let backoff = RetryPolicy::default()
        .max_retries(3)
        .backoff(Duration::from_millis(20), Duration::from_millis(80));
    let client = demo.builder().retry(backoff).build()?;
    let mut counts = Vec::new();
    let started = Instant::now();
    for method in [Method::GET, Method::POST] {
        let known = demo.origin.requests().len();
        let status = client.request(method, demo.http("/status/503")).send().await?.status();
        ensure!(status == 503, "{status}");
        counts.push(demo.origin.requests().len() - known);
    }
    ensure!(counts == [4, 1], "GET and POST were sent {counts:?} times");
    Ok(format!("GET sent 4 times in {}, POST once", ms(started.elapsed())))
}

/// Remembers what happens, and signs each request.
#[derive(Debug, Default, Clone)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Hook for Log {
    fn before_send(&self, request: &mut Outgoing<'_>) -> std::result::Result<(), mimus::BoxError> {
        request.fields.set("X-Attempt", request.attempt.to_string())?;
        Ok(())
    }

    fn observe(&self, happened: &Observation<'_>) {
        let name = match happened {
            Observation::Connected { .. } => "connected",
            Observation::Reused { .. } => "reused",
            Observation::Sending { .. } => "sending",
            Observation::Informational { .. } => "interim",
            Observation::Head { .. } => "head",
            Observation::Redirecting { .. } => "redirecting",
            _ => return,
        };
        // A panic in another hook leaves the list whole.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(name);
    }
}

pub async fn hooks(demo: &Demo) -> Result {
    let log = Log::default();
    let client = demo.builder().hook(log.clone()).build()?;
    client.get(demo.http("/redirect-to?url=/early-hints")).send().await?.bytes().await?;
    let attempt = demo.last_request()?.header("x-attempt");
    ensure!(attempt.as_deref() == Some("1"), "X-Attempt of the second exchange: {attempt:?}");
    let events = std::mem::take(&mut *log.0.lock().map_err(|_| "the hook panicked")?).join(" ");
    let expected = "connected sending head redirecting reused sending interim head";
    ensure!(events == expected, "{events}");
    Ok(events)
}
