//! `mimus sse`, against the origin.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use mimus_testkit::{Origin, Port};
use serde_json::{Value, json};

use crate::rig::{Run, command, ended, mimus};

fn sse(origin: &Origin, path: &str, flags: &[&str]) -> Run {
    mimus(&[&["sse"], flags, &[&origin.http_url(path)]].concat())
}

fn lines(run: &Run) -> Vec<Value> {
    run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn data_is_shown_as_it_came_and_a_broken_stream_gone_on_with() {
    let origin = Origin::start().unwrap();
    let run = sse(&origin, "/sse?total=4&cut=3&ms=0&retry=1&ends=crlf&split=3", &[]).ok();
    let wanted: String = (0..4).map(|n| format!("{{\"n\": {n}}}\nsecond line\n")).collect();
    assert_eq!(run.text(), wanted);
    let behind: Vec<_> = origin.requests().iter().map(|r| r.header("last-event-id")).collect();
    assert_eq!(behind, [None, Some("2".to_owned()), Some("3".to_owned())]);
    let asked = &origin.requests()[0];
    assert_eq!(asked.header("accept").as_deref(), Some("text/event-stream"));
    assert_eq!(asked.header("cache-control").as_deref(), Some("no-cache"));
}

#[test]
fn json_has_all_of_an_event_on_a_line() {
    let origin = Origin::start().unwrap();
    let run = sse(&origin, "/sse?total=2&ms=0&retry=1", &["--jsonl", "--timing"]).ok();
    let events = lines(&run);
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["data"], "{\"n\": 1}\nsecond line");
    assert_eq!((&events[1]["event"], &events[1]["id"]), (&json!("tick"), &json!("1")));
    assert!(events[0]["time"].as_f64() <= events[1]["time"].as_f64());
    let run = sse(&origin, "/sse?total=1&ms=0&retry=1", &["--timing"]).ok();
    let (time, data) = run.text().lines().next().unwrap().split_once(' ').unwrap();
    assert!(time.parse::<f64>().is_ok() && data == "{\"n\": 0}", "{run:?}");
}

#[test]
fn events_are_chosen_by_type_and_counted() {
    let origin = Origin::start().unwrap();
    let path = "/sse?count=3&ms=0&retry=1&done=1";
    let run = sse(&origin, path, &["--event", "message", "--count", "2"]).ok();
    assert_eq!(run.text(), "[DONE]\n[DONE]\n");
    assert_eq!(origin.requests().len(), 2);
    let run = sse(&origin, path, &["--no-reconnect", "--jsonl"]).ok();
    assert_eq!(lines(&run).len(), 4);
    let run = sse(&origin, path, &["--last-event-id", "41", "--count", "1", "--jsonl"]).ok();
    assert_eq!(lines(&run)[0]["id"], "42");
}

#[test]
fn data_is_posted_and_its_answer_read_once() {
    let origin = Origin::start().unwrap();
    let prompt = r#"{"stream": true, "messages": [{"content": "hello there"}]}"#;
    let run = sse(&origin, "/v1/chat/completions", &["--json", prompt]).ok();
    assert!(run.text().contains("hello") && run.text().ends_with("[DONE]\n"), "{run:?}");
    let asked = origin.requests();
    assert_eq!((asked.len(), &*asked[0].method), (1, "POST"));
    assert_eq!(asked[0].header("accept").as_deref(), Some("text/event-stream"));
    let flags = ["--json", prompt, "--reconnect", "--count", "9", "--event", "message_stop"];
    // Its stream names no reconnection time, and nobody waits for the default in a test.
    let run = sse(&origin, "/v1/messages", &[&flags[..], &["-m", "2.5"]].concat()).failed(28);
    assert_eq!(run.text().lines().count(), 1);
}

#[test]
fn what_is_no_stream_is_told_with_what_it_says() {
    let origin = Origin::start().unwrap();
    let run = sse(&origin, "/sse?status=503", &[]).failed(22);
    assert!(run.stderr.contains("503") && run.stderr.contains("no stream here"), "{run:?}");
    let run = sse(&origin, "/sse?type=text/plain", &[]).failed(56);
    assert!(run.stderr.contains("text/event-stream"), "{run:?}");
    sse(&origin, "/sse?total=0", &[]).ok();
    mimus(&["sse", "http://127.0.0.1:1/"]).failed(7);
    assert_eq!(mimus(&["sse"]).code, Some(2));
}

#[test]
fn silence_is_no_end_but_a_reason_to_connect_again() {
    let origin = Origin::start().unwrap();
    let run = sse(
        &origin,
        "/sse?ms=60000&retry=1",
        &["--idle-timeout", "0.5", "--count", "2", "--jsonl"],
    )
    .ok();
    let ids: Vec<Value> = lines(&run).into_iter().map(|event| event["id"].clone()).collect();
    assert_eq!(ids, ["0", "1"]);
    assert!(origin.accepted(Port::Http) >= 2);
}

fn endless(origin: &Origin) -> Child {
    let mut command = command(&["sse", &origin.http_url("/sse/every/10")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn ctrl_c_ends_it_in_order() {
    let origin = Origin::start().unwrap();
    let mut child = endless(&origin);
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "{\"n\":0}\n", "it is shown at once");
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!((run.code, &*run.stderr), (Some(130), ""));
    let until = Instant::now() + Duration::from_secs(20);
    while origin.open_connections() > 0 {
        assert!(Instant::now() < until, "the connection is still open");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_reader_that_leaves_ends_it_without_a_word() {
    let origin = Origin::start().unwrap();
    let mut child = endless(&origin);
    drop(child.stdout.take());
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!((run.code, &*run.stderr), (Some(23), ""));
}

#[test]
fn help_and_the_man_page_are_its_own() {
    let help = mimus(&["sse", "--help"]).ok();
    assert!(help.text().contains("mimus sse [OPTIONS] URL") && help.text().contains("--jsonl"));
    assert!(mimus(&["sse", "--man"]).ok().text().contains("mimus\\-sse"));
    let script = mimus(&["--completions", "bash"]).ok();
    assert!(script.text().contains("--last-event-id"));
}
