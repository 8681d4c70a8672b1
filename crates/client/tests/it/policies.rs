//! Redirects, cookies, credentials, retries, hooks.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use mimus::{Hook, Kind, Method, Observation, Outgoing, redirect, retry::RetryPolicy};
use serde_json::Value;

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    redirects_are_followed_and_remembered,
    redirects_change_methods_as_the_rfc_says,
    credentials_stay_with_their_origin,
    a_body_follows_a_307_if_it_can,
    cookies_are_kept_and_sent,
    basic_bearer_and_digest,
    userinfo_becomes_credentials,
    statuses_are_retried_when_asked,
    hooks_see_and_change_and_refuse,
    what_one_call_says_is_not_said_by_the_next,
    netrc_supplies_credentials,
);

async fn redirects_are_followed_and_remembered(b: Bench) {
    let client = b.client();
    for path in ["/redirect/3", "/absolute-redirect/3"] {
        let response = client.get(b.http(path)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.url().path().ends_with("/get"));
        let history = response.history();
        assert_eq!(history.len(), 3);
        assert_eq!((history[0].url.path(), history[0].status.as_u16()), (path, 302));
        assert!(history[0].fields.contains("location"));
    }
    assert_eq!(b.origin.connections().len(), 1, "a redirect's connection serves the next");
    for path in ["/redirect/11", "/redirect-loop"] {
        let error = failure(client.get(b.http(path)).send().await);
        assert_eq!(error.kind(), Kind::Redirect, "{error:#}");
    }
    let unfollowed =
        client.get(b.http("/redirect/1")).redirect(redirect::Policy::none()).send().await.unwrap();
    assert_eq!(unfollowed.status(), 302);
    let error = failure(client.get(b.http("/redirect-to?url=ftp://x/")).send().await);
    assert_eq!(error.kind(), Kind::Redirect);
}

async fn redirects_change_methods_as_the_rfc_says(b: Bench) {
    let client = b.client();
    for (status, sent, becomes) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
        (302, "PUT", "PUT"),
    ] {
        let url = b.http(&format!("/redirect-to?url=/anything&status_code={status}"));
        let method = Method::from_bytes(sent.as_bytes()).unwrap();
        let response = client.request(method, url).body("abc").send().await.unwrap();
        let echo: Value = response.json().await.unwrap();
        assert_eq!(echo["method"], becomes, "{status} {sent}");
        let expected = if becomes == "GET" { "" } else { "abc" };
        assert_eq!(echo["data"].as_str().unwrap_or_default(), expected, "{status} {sent}");
    }
}

async fn credentials_stay_with_their_origin(b: Bench) {
    let elsewhere = b.https("/headers");
    let url = b.http(&format!("/redirect-to?url={elsewhere}"));
    let request = b
        .client()
        .get(url)
        .basic_auth("user", "secret")
        .header("Cookie", "a=b")
        .header("Authorization", "Bearer given-as-a-field")
        .header("X-Other", "kept");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let url = b.http(&format!("/redirect-to?url={elsewhere}"));
    b.client().get(url).basic_auth("user", "secret").send().await.unwrap();
    let seen = b.origin.requests();
    assert!(seen[0].header("authorization").is_some());
    for arrived in [&seen[1], &seen[3]] {
        assert_eq!(arrived.header("authorization"), None);
        assert_eq!(arrived.header("cookie"), None);
    }
    assert_eq!(seen[1].header("x-other").as_deref(), Some("kept"));
}

async fn a_body_follows_a_307_if_it_can(b: Bench) {
    let url = b.http("/redirect-to?url=/post&status_code=307");
    let stream = futures_util::stream::iter([Ok::<_, mimus::BoxError>(bytes::Bytes::from("x"))]);
    let request = b.client().post(url).body(mimus::Body::stream(stream));
    let error = failure(request.send().await);
    assert_eq!(error.kind(), Kind::Redirect);
    assert!(format!("{error:#}").contains("cannot be sent twice"), "{error:#}");
}

async fn cookies_are_kept_and_sent(b: Bench) {
    let client = b.builder().cookies(true).build().unwrap();
    // Set on a redirect, sent to where it leads.
    let response = client.get(b.http("/cookies/set?k=v")).send().await.unwrap();
    assert!(response.text().await.unwrap().contains("\"k\""));
    let request = client.get(b.http("/cookies")).header("Cookie", "own=1");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("own") && text.contains("\"k\""), "{text}");
    client.get(b.http("/cookies/delete?k=")).send().await.unwrap();
    let text = client.get(b.http("/cookies")).send().await.unwrap().text().await.unwrap();
    assert!(!text.contains("\"k\""), "{text}");
    // Another client knows nothing of it.
    let text = b.client().get(b.http("/cookies")).send().await.unwrap().text().await.unwrap();
    assert!(!text.contains("\"k\""));
}

async fn basic_bearer_and_digest(b: Bench) {
    let client = b.client();
    let right = client.get(b.http("/basic-auth/u/p")).basic_auth("u", "p");
    assert_eq!(right.send().await.unwrap().status(), 200);
    let wrong = client.get(b.http("/basic-auth/u/p")).basic_auth("u", "q");
    assert_eq!(wrong.send().await.unwrap().status(), 401);
    assert_eq!(client.get(b.http("/bearer")).bearer_auth("t").send().await.unwrap().status(), 200);
    for path in [
        "/digest-auth/auth/u/p",
        "/digest-auth/auth/u/p/SHA-256",
        "/digest-auth/auth/u/p/MD5-sess",
        "/digest-auth/auth-int/u/p",
    ] {
        let request = client.post(b.http(path)).digest_auth("u", "p").body("a body");
        assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
        let wrong = client.get(b.http(path)).digest_auth("u", "q").send().await.unwrap();
        assert_eq!(wrong.status(), 401, "{path}");
    }
}

async fn userinfo_becomes_credentials(b: Bench) {
    let url = b.http("/basic-auth/us%20er/p%40").replace("http://", "http://us%20er:p%40@");
    let response = b.client().get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.url().username(), "");
}

async fn statuses_are_retried_when_asked(b: Bench) {
    let client = b.client();
    let quick = std::time::Duration::from_millis(1);
    let policy = RetryPolicy::default().max_retries(2).backoff(quick, quick);
    let request = client.get(b.http("/status/503")).retry(policy.clone());
    assert_eq!(request.send().await.unwrap().status(), 503);
    assert_eq!(b.origin.requests().len(), 3);
    let request = client.post(b.http("/status/503")).retry(policy);
    assert_eq!(request.send().await.unwrap().status(), 503);
    assert_eq!(b.origin.requests().len(), 4, "a POST is not idempotent");
}

#[derive(Debug, Default, Clone)]
struct Recorder {
    log: Arc<Mutex<Vec<&'static str>>>,
    sent: Arc<AtomicU32>,
}

impl Hook for Recorder {
    fn before_send(&self, request: &mut Outgoing<'_>) -> Result<(), mimus::BoxError> {
        self.sent.fetch_add(1, SeqCst);
        request.fields.append("X-Hook", request.attempt.to_string())?;
        if request.url.path() == "/forbidden" {
            return Err("not there".into());
        }
        Ok(())
    }

    fn observe(&self, happened: &Observation<'_>) {
        self.log.lock().unwrap().push(match happened {
            Observation::Connected { .. } => "connected",
            Observation::Reused { .. } => "reused",
            Observation::Sending { .. } => "sending",
            Observation::Head { .. } => "head",
            Observation::Redirecting { .. } => "redirecting",
            Observation::Failed { .. } => "failed",
            _ => "other",
        });
    }
}

async fn hooks_see_and_change_and_refuse(b: Bench) {
    let recorder = Recorder::default();
    let client = b.builder().hook(recorder.clone()).build().unwrap();
    client.get(b.http("/redirect/1")).send().await.unwrap();
    let expected = ["connected", "sending", "head", "redirecting", "reused", "sending", "head"];
    assert_eq!(*recorder.log.lock().unwrap(), expected);
    let seen = b.origin.requests();
    assert_eq!(seen[1].header("x-hook").as_deref(), Some("1"));
    let error = failure(client.get(b.http("/forbidden")).send().await);
    assert_eq!(error.kind(), Kind::Hook);
    assert_eq!(b.origin.requests().len(), 2);
}

async fn what_one_call_says_is_not_said_by_the_next(b: Bench) {
    let default = |value| b.builder().default_header("X-Client", value);
    let first = default("first").build().unwrap();
    let second = default("second").hook(Recorder::default()).build().unwrap();
    let url = b.http("/get");
    for _ in 0..2 {
        first.get(&url).send().await.unwrap();
        second.get(&url).send().await.unwrap();
        first.get(&url).header("X-Own", "1").send().await.unwrap();
        first.get(&url).decode(None).send().await.unwrap();
        // Built by one client, sent by the other: the sender's defaults join.
        second.execute(first.get(&url).build().unwrap()).await.unwrap();
    }
    let lines: Vec<_> = (b.origin.requests().iter())
        .map(|seen| {
            let line = ["x-client", "x-own", "x-hook", "accept-encoding"].map(|n| seen.header(n));
            line.map(|value| value.map_or(String::new(), |v| v.chars().take(6).collect()))
        })
        .collect();
    let plain = ["first", "", "", "gzip, "].map(String::from);
    let hooked = ["second", "", "0", "gzip, "].map(String::from);
    let own = ["first", "1", "", "gzip, "].map(String::from);
    let raw = ["first", "", "", ""].map(String::from);
    let executed = ["second", "", "", "gzip, "].map(String::from);
    for round in lines.chunks(5) {
        assert_eq!(round, [&plain, &hooked, &own, &raw, &executed].map(Clone::clone));
    }
    assert_eq!(lines.len(), 10);
}

async fn netrc_supplies_credentials(b: Bench) {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "machine 127.0.0.1 login u password p").unwrap();
    let client = b.builder().netrc_file(file.path()).build().unwrap();
    assert_eq!(client.get(b.http("/basic-auth/u/p")).send().await.unwrap().status(), 200);
    let own = client.get(b.http("/basic-auth/u/p")).basic_auth("x", "y");
    assert_eq!(own.send().await.unwrap().status(), 401);
}
