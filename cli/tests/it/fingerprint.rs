//! `mimus fingerprint`: ourselves, and others that connect.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::rig::{command, ended, mimus};

#[test]
fn our_own_prints_are_those_of_what_was_sent() {
    let run = mimus(&["fingerprint", "bird.example/wren", "-H", "X-Bird: 1"]).ok();
    let line = |name: &str| {
        let found = run.text().lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {run:?}")).trim().to_owned()
    };
    assert!(line("JA4 ").starts_with("t13d"), "{run:?}");
    assert_eq!(line("JA4 ").split('_').next(), line("JA4_r ").split('_').next());
    assert_eq!((line("JA3 ").len(), line("peetprint ").len()), (32, 32));
    assert_eq!(line("ALPN "), "h2");
    assert!(run.text().contains("2:0;4:1048576;6:65536|4128769|0|m,s,a,p"), "{run:?}");
    assert!(line("fields ").starts_with(":method :scheme :authority :path"), "{run:?}");
    assert!(line("fields ").ends_with("x-bird"), "{run:?}");
}

#[test]
fn json_has_the_request_as_it_was_sent() {
    let shown = mimus(&["fingerprint", "--jsonl", "https://bird.example:444/wren"]).ok().json();
    let headers = &shown["http2"]["frames"];
    let headers = headers.as_array().unwrap().iter().find(|frame| frame["frame"] == "HEADERS");
    let headers = headers.unwrap();
    let value = |name: &str| {
        let all = headers["headers"].as_array().unwrap();
        all.iter().find(|field| field[0] == name).map(|field| field[1].clone())
    };
    // It goes by the name and the port that were given.
    assert_eq!(value(":authority"), Some("bird.example:444".into()));
    assert_eq!(
        headers["hpack"].as_array().unwrap().len(),
        headers["headers"].as_array().unwrap().len()
    );
    let extensions = shown["tls"]["hello"]["extensions"].as_array().unwrap();
    let name = extensions.iter().find(|e| e["name"] == "server_name").unwrap();
    assert_eq!(name["host"], "bird.example");

    let address = mimus(&["fingerprint", "--jsonl", "https://192.0.2.1/"]).ok().json();
    assert!(address["tls"]["ja4"].as_str().unwrap().starts_with("t13i"));
    let plain = mimus(&["fingerprint", "--jsonl", "http://bird.example/", "-d", "x"]).ok().json();
    assert_eq!(plain["http1"][0]["headers"][0], serde_json::json!(["Host", "bird.example"]));
    assert!(plain.get("tls").is_none());
}

#[test]
fn whoever_connects_is_shown_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    let args = ["fingerprint", "--listen", "--jsonl", "--count", "1", "--ca-file"];
    let mut server = command(&args);
    server.arg(&ca).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let url = said.split_whitespace().find(|word| word.starts_with("https://")).unwrap();

    let told = mimus(&["--cacert", ca.to_str().unwrap(), url]).ok().json();
    let run = ended(server.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    let shown: Value = run.json();
    assert_eq!(shown["tls"]["ja3n"], told["tls"]["ja3n"]);
    assert_eq!(shown["http2"], told["http2"]);
}

#[test]
fn an_address_that_cannot_be_had_is_told() {
    mimus(&["fingerprint", "--listen", "192.0.2.1:1"]).failed(7);
    assert_eq!(mimus(&["fingerprint"]).code, Some(2));
}
