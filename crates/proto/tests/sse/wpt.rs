//! The expectations of the Web Platform Tests, from `conformance/areas/sse/wpt.json`.

use bytes::Bytes;
use mimus_proto::sse::{Limits, is_event_stream};
use serde_json::Value;

use crate::rig::{Plain, by_the_letter, read};

fn cases(what: &str) -> Vec<Value> {
    let text = include_str!("../../../../conformance/areas/sse/wpt.json");
    let all: Value = serde_json::from_str(text).expect("it is JSON");
    let cases = all[what].as_array().expect("a list").clone();
    assert!(cases.len() > 10);
    cases
}

fn body(case: &Value) -> Bytes {
    let parts = case["body"].as_array().expect("a list");
    let part = |part: &Value| match part {
        Value::String(text) => text.clone(),
        part => part["text"]
            .as_str()
            .unwrap_or_default()
            .repeat(part["times"].as_u64().unwrap_or(0) as usize),
    };
    parts.iter().map(part).collect::<String>().into()
}

fn events(case: &Value) -> Vec<Plain> {
    let text = |event: &Value, name: &str, default: &str| {
        event[name].as_str().unwrap_or(default).to_owned()
    };
    let plain = |event: &Value| {
        (text(event, "event", "message"), text(event, "data", "?"), text(event, "id", ""))
    };
    case["events"].as_array().expect("a list").iter().map(plain).collect()
}

#[test]
fn streams_mean_what_the_web_platform_tests_say() {
    for case in cases("streams") {
        let (name, body) = (&case["name"], body(&case));
        let ones = vec![1; body.len()];
        for cuts in [&[][..], &ones, &[3, 1, 7, 1, 1, 2, 5]] {
            let said = read(Limits::default(), &body, cuts);
            assert_eq!(said.events, events(&case), "{name}");
            if let Some(id) = case.get("last_event_id") {
                assert_eq!(said.last_event_id, id.as_str().expect("text"), "{name}");
            }
            if let Some(retry) = case.get("retry_ms") {
                assert_eq!(said.retry_ms, retry.as_u64().map(Into::into), "{name}");
            }
            assert_eq!(said, by_the_letter(&body), "{name}");
        }
    }
}

#[test]
fn answers_are_streams_where_the_web_platform_tests_say_so() {
    for case in cases("answers") {
        let kind = case["content_type"].as_str().expect("text");
        let stream = case["status"] == 200 && is_event_stream(kind);
        assert_eq!(stream, case["stream"], "{}", case["name"]);
    }
}
