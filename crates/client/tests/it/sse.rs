//! Event streams and lines of JSON.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use mimus::{
    Client, Kind, StatusCode, Version,
    sse::{Events, Limits, NotEvents, Refusal, Refused},
};
use mimus_testkit::Port;
use serde_json::{Value, json};

use crate::support::{Bench, dead_port, failure, on_every_runtime};

on_every_runtime!(
    a_stream_is_read_however_it_is_split,
    a_source_goes_on_behind_its_last_event,
    a_source_that_begins_behind_an_event_says_so,
    no_content_ends_a_source,
    who_stops_early_gives_the_connection_back,
    an_end_that_is_on_its_way_saves_the_connection,
    what_is_no_stream_keeps_its_body,
    comments_are_signs_of_life,
    silence_ends_a_stream,
    a_post_is_not_sent_again_unless_told,
    a_source_that_cannot_be_reached_is_an_error,
    a_limit_ends_a_stream,
    a_bad_request_is_told_once,
    lines_of_json_are_values,
);

const FAST: Duration = Duration::from_millis(1);

/// A client for each version of HTTP, and the port that it talks to.
fn versions(b: &Bench) -> [(Client, Port); 2] {
    [(Version::HTTP_11, Port::Http), (Version::HTTP_2, Port::H2c)].map(|(version, port)| {
        (b.builder().version(version).build().expect("the settings are valid"), port)
    })
}

async fn open(client: &Client, url: String) -> Events {
    client.get(url).send().await.unwrap().into_events().unwrap()
}

async fn a_stream_is_read_however_it_is_split(b: Bench) {
    for (client, port) in versions(&b) {
        let url = |path: &str| b.origin.url(port, path).expect("the origin listens");
        for how in
            ["split=0", "split=1", "split=7&ends=crlf", "split=1&ends=crlf", "split=5&ends=cr"]
        {
            let path = format!("/sse?count=3&ms=0&{how}");
            let events: Vec<_> = open(&client, url(&path)).await.try_collect().await.unwrap();
            let seen: Vec<_> = events.iter().map(|e| (&*e.event, &*e.id, &*e.data)).collect();
            let wanted =
                ["0", "1", "2"].map(|n| ("tick", n, format!("{{\"n\": {n}}}\nsecond line")));
            assert_eq!(
                seen,
                wanted.each_ref().map(|(kind, id, data)| (*kind, *id, &**data)),
                "{how}"
            );
        }
    }
    let mut secure = open(&b.client(), b.https("/sse?count=1&split=3&ms=0")).await;
    assert_eq!(secure.next_event().await.unwrap().unwrap().id, "0");
    assert_eq!(secure.next_event().await.unwrap(), None);
    assert_eq!((&*secure.last_event_id(), secure.retry()), ("0", Some(Duration::from_millis(50))));
}

async fn a_source_goes_on_behind_its_last_event(b: Bench) {
    for (client, port) in versions(&b) {
        let url = |path: &str| b.origin.url(port, path).expect("the origin listens");
        b.origin.reset();
        let mut source = client.event_source(url("/sse?total=7&cut=3&ms=0&retry=1&split=2"));
        let mut ids = Vec::new();
        while let Some(event) = source.next_event().await.unwrap() {
            ids.push(event.id.to_string());
        }
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(source.next_event().await.unwrap(), None, "it is over for good");
        assert_eq!(source.named_retry(), Some(Duration::from_millis(1)));
        assert!(source.connections() >= 3 && !source.is_open());
        if port == Port::H2c {
            // A reset may overtake the events before it, which then come by another stream.
            continue;
        }
        assert_eq!(source.connections(), 3);
        let asked = b.origin.requests();
        let behind: Vec<_> = asked.iter().map(|r| r.header("last-event-id")).collect();
        let behind: Vec<_> = behind.iter().map(Option::as_deref).collect();
        assert_eq!(behind, [None, Some("2"), Some("5"), Some("6")]);
        for request in &asked {
            assert_eq!(request.header("accept").as_deref(), Some("text/event-stream"));
            assert_eq!(request.header("cache-control").as_deref(), Some("no-cache"));
        }
    }
}

async fn a_source_that_begins_behind_an_event_says_so(b: Bench) {
    let source = b.client().get(b.http("/sse?total=5&ms=0&retry=1")).header("accept", "a/b");
    let source = source.event_source().last_event_id_seen(" 3 ");
    let events: Vec<_> = source.try_collect().await.unwrap();
    assert_eq!(events.iter().map(|e| &*e.id).collect::<Vec<_>>(), ["4"]);
    let asked = &b.origin.requests()[0];
    assert_eq!(asked.header("last-event-id").as_deref(), Some("3"));
    assert_eq!(asked.header("accept").as_deref(), Some("a/b"));
}

async fn no_content_ends_a_source(b: Bench) {
    let mut source = b.client().event_source(b.http("/sse?total=0"));
    assert_eq!(source.next_event().await.unwrap(), None);
    assert_eq!((source.connections(), b.origin.requests().len()), (0, 1));
}

/// Reads up to the event that says that it was the last, and leaves.
async fn until_done(mut events: Events) {
    while let Some(event) = events.next_event().await.unwrap() {
        if event.data == "[DONE]" {
            return;
        }
    }
    panic!("the stream ended without [DONE]");
}

async fn who_stops_early_gives_the_connection_back(b: Bench) {
    for (client, port) in versions(&b) {
        let url = |path: &str| b.origin.url(port, path).expect("the origin listens");
        b.origin.reset();
        for _ in 0..5 {
            until_done(open(&client, url("/sse?count=3&ms=0&done=1")).await).await;
        }
        assert_eq!(b.origin.accepted(port), 1, "one connection for five streams");
        let prompt = json!({ "stream": true, "messages": [{ "content": "one two three" }] });
        let response = client.post(url("/v1/chat/completions")).json(&prompt).send().await;
        until_done(response.unwrap().into_events().unwrap()).await;
        let mut source = client.event_source(url("/sse?count=1&ms=0&done=1"));
        while source.next_event().await.unwrap().unwrap().data != "[DONE]" {}
        drop(source);
        assert_eq!(client.get(url("/get")).send().await.unwrap().status(), 200);
        assert_eq!(b.origin.accepted(port), 1);
    }
    // Of one that goes on, the connection is closed.
    let client = b.client();
    let mut events = open(&client, b.http("/sse/every/1")).await;
    assert!(events.next_event().await.unwrap().is_some());
    drop(events);
    drop(client);
    b.all_closed().await;
}

async fn an_end_that_is_on_its_way_saves_the_connection(b: Bench) {
    if !b.has_tasks() {
        return;
    }
    // A machine that stops for a fifth of a second loses a connection, but not every time.
    for _ in 0..50 {
        let client = b.client();
        // The end follows the last event after 20 ms.
        let mut events = open(&client, b.http("/sse?count=2&ms=20")).await;
        while &*events.next_event().await.unwrap().unwrap().id != "1" {}
        drop(events);
        let until = Instant::now() + Duration::from_secs(20);
        while client.pool_stats().in_use > 0 && Instant::now() < until {
            b.sleep(FAST).await;
        }
        if client.pool_stats().idle == 1 {
            let response = client.get(b.http("/get")).send().await.unwrap();
            assert!(response.reused());
            return;
        }
    }
    panic!("no connection was saved");
}

async fn what_is_no_stream_keeps_its_body(b: Bench) {
    let client = b.client();
    for (path, why) in [
        ("/sse?status=503", Refused::Status(StatusCode::SERVICE_UNAVAILABLE)),
        (
            "/sse?status=503&type=text/event-stream",
            Refused::Status(StatusCode::SERVICE_UNAVAILABLE),
        ),
        ("/sse?type=text/plain", Refused::ContentType),
    ] {
        let response = client.get(b.http(path)).send().await.unwrap();
        let refused: NotEvents = response.into_events().unwrap_err();
        assert_eq!(refused.why(), why);
        let says: Value = refused.into_response().json().await.unwrap();
        assert_eq!(says["error"]["message"], "no stream here");

        let error = failure(client.event_source(b.http(path)).next_event().await);
        let refusal = Refusal::of(&error).expect("what was answered");
        assert!(refusal.text().contains("no stream here"), "{refusal:?}");
        assert!(format!("{error:#}").contains("no stream here"), "{error:#}");
        match why {
            Refused::Status(status) => assert_eq!(error.status(), Some(status)),
            _ => assert_eq!(error.kind(), Kind::Protocol),
        }
    }
    let response = client.get(b.http("/sse?status=404")).send().await.unwrap();
    let error = mimus::Error::from(response.into_events().unwrap_err());
    assert_eq!(error.status(), Some(StatusCode::NOT_FOUND));
    assert_eq!(error.url().map(|url| url.path()), Some("/sse"));
}

async fn comments_are_signs_of_life(b: Bench) {
    // Longer than the timeout, with a comment far more often.
    let request = b.client().get(b.http("/sse/comments?count=60&ms=40"));
    let response = request.idle_timeout(Duration::from_millis(1500)).send().await.unwrap();
    let events: Vec<_> = response.into_events().unwrap().try_collect().await.unwrap();
    assert_eq!(events[0].data, "\"after the comments\"");
}

async fn silence_ends_a_stream(b: Bench) {
    let request = b.client().get(b.http("/sse?count=2&ms=60000"));
    let mut events = request
        .idle_timeout(Duration::from_millis(500))
        .send()
        .await
        .unwrap()
        .into_events()
        .unwrap();
    assert!(events.next_event().await.unwrap().is_some());
    let error = failure(events.next_event().await);
    assert!(error.is_timeout() && error.url().is_some(), "{error:#}");
    assert_eq!(events.next_event().await.unwrap(), None, "after an error there is nothing more");
    // A source goes on.
    let request = b.client().get(b.http("/sse?count=2&ms=60000&retry=1"));
    let mut source = request.idle_timeout(Duration::from_millis(500)).event_source();
    for id in ["0", "1", "2"] {
        assert_eq!(source.next_event().await.unwrap().unwrap().id, id);
    }
    assert!(source.connections() >= 3);
}

async fn a_post_is_not_sent_again_unless_told(b: Bench) {
    let client = b.client();
    let prompt = json!({ "stream": true, "messages": [{ "content": "hello" }] });
    let ask = || client.post(b.http("/v1/messages")).json(&prompt).event_source();
    let events: Vec<_> = ask().try_collect().await.unwrap();
    assert_eq!(events.last().map(|event| &*event.event), Some("message_stop"));
    assert_eq!(b.origin.requests().len(), 1);
    let mut told = ask().reconnect(true).retry(FAST);
    while told.connections() < 3 {
        assert!(told.next_event().await.unwrap().is_some());
    }
    assert_eq!(b.origin.requests().len(), 4);
}

async fn a_source_that_cannot_be_reached_is_an_error(b: Bench) {
    let client = b.client();
    let url = format!("http://{}/", dead_port());
    let mut source = client.event_source(&url);
    assert_eq!(failure(source.next_event().await).kind(), Kind::Connect);
    assert_eq!(source.next_event().await.unwrap(), None);
    let patient = client.event_source(&url).reconnect_from_start(true).retry(FAST).max_failures(3);
    let mut patient = patient.max_backoff(FAST);
    assert_eq!(failure(patient.next_event().await).kind(), Kind::Connect);
    assert_eq!(patient.connections(), 0);
}

async fn a_limit_ends_a_stream(b: Bench) {
    let client = b.client();
    let mut events =
        open(&client, b.http("/sse?count=2&ms=0")).await.limits(Limits::default().line(8));
    assert_eq!(failure(events.next_event().await).kind(), Kind::Limit);
    assert_eq!(events.next_event().await.unwrap(), None);
    let source = client.event_source(b.http("/sse?count=2&ms=0&retry=1"));
    let mut source = source.limits(Limits::default().event(10));
    assert_eq!(failure(source.next_event().await).kind(), Kind::Limit);
    assert_eq!(b.origin.requests().len(), 2, "it would be no better a second time");
}

async fn a_bad_request_is_told_once(b: Bench) {
    let mut source = b.client().event_source("ftp://h/");
    assert_eq!(failure(source.next_event().await).kind(), Kind::Request);
    assert_eq!(source.next_event().await.unwrap(), None);
}

#[derive(serde::Deserialize)]
struct Line {
    id: u32,
}

async fn lines_of_json_are_values(b: Bench) {
    let client = b.client();
    let lines = client.get(b.http("/stream/5")).send().await.unwrap().into_json_lines::<Line>();
    let ids: Vec<_> = lines.map_ok(|line| line.id).try_collect().await.unwrap();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    // A line that is no such value is an error, and the next is read all the same.
    let response = client.post(b.http("/anything")).body("x").send().await.unwrap();
    let mut lines = response.into_json_lines::<Line>();
    let error = failure(lines.next_value().await);
    assert!(error.kind() == Kind::Decode && error.url().is_some(), "{error:#}");
    let response = client.get(b.http("/stream/1")).send().await.unwrap();
    let mut lines = response.into_json_lines::<Line>().line_limit(5);
    assert_eq!(failure(lines.next_value().await).kind(), Kind::Limit);
    assert!(lines.next_value().await.unwrap().is_none());
}

#[test]
fn blocking_streams_are_iterators() {
    let origin = mimus_testkit::Origin::start().expect("the origin starts");
    let client = mimus::blocking::Client::builder().no_proxy().build().unwrap();
    let source = client.event_source(origin.http_url("/sse?total=5&cut=2&ms=0&retry=1"));
    let ids: Vec<_> = source.map(|event| event.unwrap().id.to_string()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
    for _ in 0..3 {
        let response = client.get(origin.http_url("/sse?count=1&ms=0&done=1")).send().unwrap();
        let mut events = response.into_events().unwrap();
        assert!(events.any(|event| event.unwrap().data == "[DONE]"));
    }
    let lines = client.get(origin.http_url("/stream/3")).send().unwrap().into_json_lines::<Line>();
    assert_eq!(lines.map(|line| line.unwrap().id).sum::<u32>(), 3);
    let response = client.get(origin.http_url("/sse?status=500")).send().unwrap();
    let refused = response.into_events().unwrap_err();
    assert!(refused.into_response().text().unwrap().contains("no stream here"));
}
