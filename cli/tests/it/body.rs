//! What is sent.

use std::fs;

use mimus_testkit::Origin;

use crate::rig::{echoed, mimus, mimus_fed, mimus_in};

fn origin() -> Origin {
    Origin::start().unwrap()
}

#[test]
fn a_url_is_fetched_and_nothing_else_is_said() {
    let origin = origin();
    let run = mimus(&[&origin.http_url("/get?a=1")]).ok();
    let echo = run.json();
    assert_eq!(echo["method"], "GET");
    assert_eq!(echo["args"]["a"], "1");
    assert_eq!(echoed(&echo, "accept"), ["*/*"]);
    assert!(echoed(&echo, "user-agent")[0].starts_with("mimus/"));
    assert_eq!(echoed(&echo, "accept-encoding"), [""; 0]);
}

#[test]
fn several_urls_share_a_connection() {
    let origin = origin();
    let url = origin.http_url("/get");
    mimus(&[&url, &url, &url]).ok();
    assert_eq!(origin.connections().len(), 1);
    assert_eq!(origin.requests().len(), 3);
}

#[test]
fn words_and_flags_name_the_method() {
    let origin = origin();
    let url = origin.http_url("/anything");
    let table: [(&[&str], &str); 7] = [
        (&["put"], "PUT"),
        (&["patch", "-d", "x"], "PATCH"),
        (&["delete"], "DELETE"),
        (&["options"], "OPTIONS"),
        (&["request", "PURGE"], "PURGE"),
        (&["-X", "REPORT"], "REPORT"),
        (&["-d", "x"], "POST"),
    ];
    for (words, method) in table {
        let echo = mimus(&[words, &[&url]].concat()).ok().json();
        assert_eq!(echo["method"], method, "{words:?}");
    }
}

#[test]
fn data_is_a_form() {
    let origin = origin();
    let url = origin.http_url("/post");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "c=3\r\n&d=4\n\0").unwrap();
    let run = mimus_in(dir.path(), &["-d", "a=1", "-d", "@f", "--data-urlencode", "e=x y", &url]);
    let echo = run.ok().json();
    assert_eq!(echo["data"], "a=1&c=3&d=4&e=x+y");
    assert_eq!(echo["form"]["d"], "4");
    assert_eq!(echoed(&echo, "content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(echoed(&echo, "content-length"), ["17"]);

    let run = mimus_in(dir.path(), &["--data-binary", "@f", &url]).ok();
    assert_eq!(run.json()["body_length"], 11);
    let run = mimus_fed(b"from\nstdin", &["--data-binary", "@-", &url]).ok();
    assert_eq!(run.json()["data"], "from\nstdin");
}

#[test]
fn json_is_sent_and_asked_for() {
    let origin = origin();
    let echo = mimus(&["--json", "{\"a\":", "--json", "1}", &origin.http_url("/post")]).ok().json();
    assert_eq!(echo["json"]["a"], 1);
    assert_eq!(echoed(&echo, "content-type"), ["application/json"]);
    assert_eq!(echoed(&echo, "accept"), ["application/json"]);
}

#[test]
fn data_can_be_the_query() {
    let origin = origin();
    let url = origin.http_url("/anything?a=1");
    let echo = mimus(&["-G", "-d", "b=2", "--data-urlencode", "c=ä", &url]).ok().json();
    assert_eq!(echo["method"], "GET");
    assert_eq!(echo["args"], serde_json::json!({"a": "1", "b": "2", "c": "ä"}));
    assert_eq!(echo["body_length"], 0);
    assert_eq!(echoed(&echo, "content-type"), [""; 0]);
}

#[test]
fn a_multipart_form_has_values_and_files() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f.txt"), "file").unwrap();
    let parts = ["-F", "a=1;2", "-F", "b=<f.txt", "-F", "c=@f.txt;type=text/x;filename=g"];
    let url = origin.http_url("/post");
    let echo = mimus_in(dir.path(), &[&parts[..], &[&url]].concat()).ok().json();
    assert_eq!(echo["form"]["a"], "1;2");
    assert_eq!(echo["form"]["b"], "file");
    assert!(echo["files"].to_string().contains("file"), "{}", echo["files"]);
    assert!(echoed(&echo, "content-type")[0].starts_with("multipart/form-data; boundary="));
    let seen = &origin.requests()[0];
    assert!(seen.header("content-length").is_some(), "the length of files is known");
}

#[test]
fn a_file_is_uploaded_with_put() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("u p"), vec![b'x'; 300_000]).unwrap();
    let run = mimus_in(dir.path(), &["-T", "u p", &origin.http_url("/anything/")]).ok();
    let echo = run.json();
    assert_eq!(echo["method"], "PUT");
    assert_eq!(echo["target"], "/anything/u%20p");
    assert_eq!(echo["body_length"], 300_000);
    let echo = mimus_fed(b"streamed", &["-T", "-", &origin.http_url("/put")]).ok().json();
    assert_eq!(echoed(&echo, "transfer-encoding"), ["chunked"]);
    assert_eq!(echo["data"], "streamed");
}

#[test]
fn fields_are_added_emptied_and_removed_in_order_and_case() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("h"), "X-File: 1\n\nX-file: 2\n").unwrap();
    let fields = ["-H", "x-lower: a", "-H", "X-Empty;", "-H", "Accept:", "-H", "@h", "-A", ""];
    let url = origin.http_url("/get");
    mimus_in(dir.path(), &[&fields[..], &[&url, "-e", "http://r/"]].concat()).ok();
    let echo = mimus_in(dir.path(), &[&fields[..], &[&url]].concat()).ok().json();
    let names: Vec<&str> =
        echo["headers"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    let ours: Vec<&&str> =
        names.iter().filter(|n| n.to_ascii_lowercase().starts_with("x-")).collect();
    assert_eq!(ours, [&"x-lower", &"X-Empty", &"X-File", &"X-file"]);
    assert!(!names.iter().any(|n| ["accept", "user-agent"].contains(&n.to_lowercase().as_str())));
    assert_eq!(echoed(&echo, "x-empty"), [""]);
    assert_eq!(origin.requests()[0].header("referer").as_deref(), Some("http://r/"));
}

#[test]
fn a_body_is_held_until_the_server_wants_it() {
    let origin = origin();
    let url = origin.http_url("/post");
    let echo = mimus(&["--expect100-timeout", "5", "-d", "x", &url]).ok().json();
    assert_eq!(echoed(&echo, "expect"), ["100-continue"]);
    assert_eq!(echo["data"], "x");
}
