//! HTTP/2: who chooses it, and how it is told.

use std::fs;

use mimus_testkit::{Origin, Port};
use serde_json::Value;

use crate::rig::{mimus, mimus_in};

const FACTS: [&str; 4] = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"];

fn origin() -> Origin {
    Origin::start().unwrap()
}

/// What is said of one transfer, from the standard output.
fn facts(flags: &[&str], url: &str) -> String {
    mimus(&[&FACTS[..], flags, &[url]].concat()).ok().text().to_owned()
}

#[test]
fn the_server_chooses_in_the_handshake() {
    let origin = origin();
    let at = |port| origin.url(port, "/get").unwrap();
    for flags in [&["-k"][..], &["-k", "--http2"]] {
        assert_eq!(facts(flags, &at(Port::H2OrHttp1)), "2 200");
        assert_eq!(facts(flags, &at(Port::H2)), "2 200");
        assert_eq!(facts(flags, &at(Port::Https)), "1.1 200");
    }
}

#[test]
fn the_user_chooses_by_a_flag() {
    let origin = origin();
    let at = |port| origin.url(port, "/get").unwrap();
    assert_eq!(facts(&["-k", "--http1.1"], &at(Port::H2OrHttp1)), "1.1 200");
    assert_eq!(facts(&["--http2-prior-knowledge"], &at(Port::H2c)), "2 200");
    assert_eq!(facts(&["-k", "--http2-prior-knowledge"], &at(Port::H2)), "2 200");
    // There is nobody to ask in plain text, and no upgrade (RFC 9113 section 3.1).
    assert_eq!(facts(&["--http2"], &at(Port::Http)), "1.1 200");
    let seen = origin.requests().pop().unwrap();
    assert!(seen.header("upgrade").is_none() && seen.header("http2-settings").is_none());
    // The last of them counts, as in curl.
    assert_eq!(facts(&["--http2-prior-knowledge", "--http1.1"], &at(Port::Http)), "1.1 200");
    assert_eq!(facts(&["--http1.1", "--http2-prior-knowledge"], &at(Port::H2c)), "2 200");
    mimus(&["--http2-prior-knowledge", &at(Port::Http)]).failed(8);
}

#[test]
fn its_heads_and_its_connection_are_told() {
    let origin = origin();
    let url = origin.url(Port::H2OrHttp1, "/get?a=1").unwrap();
    let told = mimus(&["-vk", &url, &url]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for text in ["ALPN h2", "> GET /get?a=1 HTTP/2\n", "< HTTP/2 200", "is used again"] {
        assert!(told.stderr.contains(text), "{text:?} is not in {}", told.stderr);
    }
    assert!(!told.stderr.contains("HTTP/1.1"), "{}", told.stderr);
    assert_eq!(origin.accepted(Port::H2OrHttp1), 1);
    let shown = mimus(&["-ik", &url]).ok();
    assert!(shown.text().starts_with("HTTP/2 200"), "{shown:?}");
}

#[test]
fn a_head_is_told_as_it_is_sent() {
    let origin = origin();
    let url = origin.url(Port::H2OrHttp1, "/get?a=1").unwrap();
    let authority = url.split('/').nth(2).unwrap();
    let scheme = "> :scheme: https".to_owned();
    let (method, path) = ("> :method: GET".to_owned(), "> :path: /get?a=1".to_owned());
    let host = format!("> :authority: {authority}");
    for (profile, order, next) in [
        ("chrome", [&method, &host, &scheme, &path], "> sec-ch-ua: "),
        ("firefox", [&method, &path, &host, &scheme], "> user-agent: "),
    ] {
        let told = mimus(&["-vk", "--as", profile, &url]);
        let head = told.stderr.split_once("> GET /get?a=1 HTTP/2\n").expect("a head").1;
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(&lines[..4], &order, "{profile}");
        assert!(lines[4].starts_with(next), "{profile}: {}", lines[4]);
    }
}

#[test]
fn an_archive_names_the_version() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let versions = |flags: &[&str], url: String| {
        let args = [&["-s", "--har", "x.har", "-o", "/dev/null"][..], flags, &[&url]].concat();
        mimus_in(dir.path(), &args);
        let har = fs::read_to_string(dir.path().join("x.har")).unwrap();
        let har: Value = serde_json::from_str(&har).unwrap();
        let entry = &har["log"]["entries"][0];
        ["request", "response"].map(|part| entry[part]["httpVersion"].as_str().unwrap().to_owned())
    };
    let prior = ["--http2-prior-knowledge"];
    assert_eq!(versions(&prior, origin.url(Port::H2c, "/get").unwrap()), ["HTTP/2"; 2]);
    assert_eq!(versions(&[], origin.http_url("/get")), ["HTTP/1.1"; 2]);
    let reset = origin.bad_h2_url("reset-before-head-internal", false).unwrap();
    assert_eq!(versions(&prior, reset), ["HTTP/2", ""], "a request that was not answered");
}

#[test]
fn a_stream_that_is_reset_has_its_exit_code() {
    let origin = origin();
    for row in ["reset-before-head-internal", "reset-in-body-cancel"] {
        let url = origin.bad_h2_url(row, false).unwrap();
        mimus(&["--http2-prior-knowledge", "-o", "/dev/null", &url]).failed(92);
    }
}

#[test]
fn the_version_names_the_protocols() {
    let version = mimus(&["--version"]).ok();
    for protocol in ["HTTP/1.1", "HTTP/2", "gRPC"] {
        assert!(version.text().contains(protocol), "{version:?}");
    }
    let help = mimus(&["--help"]).ok();
    assert!(help.text().contains("--http2-prior-knowledge") && help.text().contains("grpc"));
}

#[test]
fn hosts_share_a_connection_on_request() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ca.pem"), origin.ca_pem()).unwrap();
    let port = origin.addr(Port::H2).unwrap().port();
    let (one, two) =
        (format!("https://localhost:{port}/get"), format!("https://origin.test:{port}/get"));
    let rules = ["localhost", "origin.test"].map(|host| format!("{host}:{port}:127.0.0.1"));
    let args = ["-v", "--cacert", "ca.pem", "--resolve", &rules[0], "--resolve", &rules[1]];
    for (flags, connections) in [(&["--coalesce"][..], 1), (&[], 2)] {
        origin.reset();
        let run = mimus_in(dir.path(), &[&args[..], flags, &[&one, &two]].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(origin.accepted(Port::H2), connections);
        assert_eq!(run.stderr.contains("serves this host as well"), connections == 1, "{run:?}");
    }
}
