//! `mimus ws`, against the origin, with its input piped.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
};

use mimus_testkit::{Origin, Port, SeenWs};
use serde_json::Value;

use crate::rig::{Run, command, ended, mimus_fed};

/// The URL that a person would type.
fn url(origin: &Origin, path: &str) -> String {
    origin.http_url(path).replace("http://", "ws://")
}

fn ws(origin: &Origin, path: &str, input: &str, flags: &[&str]) -> Run {
    let url = url(origin, path);
    mimus_fed(input.as_bytes(), &[&["ws"], flags, &[url.as_str()]].concat())
}

fn seen(origin: &Origin) -> SeenWs {
    origin.requests().into_iter().rev().find_map(|seen| seen.ws).expect("a socket was opened")
}

#[test]
fn lines_are_messages_and_messages_lines() {
    let origin = Origin::start().unwrap();
    let run = ws(&origin, "/ws/echo", "one\ntwo\r\n\ngrün", &[]).ok();
    assert_eq!(run.text(), "one\ntwo\n\ngrün\n");
    let seen = seen(&origin);
    assert_eq!((seen.messages, seen.close), (4, Some((Some(1000), String::new()))));
    // Without a scheme it is one too.
    let typed = origin.http_url("/ws/echo").replace("http://", "");
    let run = mimus_fed(b"bare", &["ws", &typed]).ok();
    assert_eq!(run.text(), "bare\n");
}

#[test]
fn bytes_are_sent_and_shown_as_asked() {
    let origin = Origin::start().unwrap();
    let run = ws(&origin, "/ws/echo", "a\nb", &["--binary"]).ok();
    assert_eq!(run.text(), "ab");
    let run = ws(&origin, "/ws/echo", "00 ff\n7A\n", &["--hex"]).ok();
    assert_eq!(run.text(), "00ff\n7a\n");
    ws(&origin, "/ws/echo", "a\n0g\n", &["--hex"]).failed(2);
    let url = url(&origin, "/ws/echo");
    let run = mimus_fed(b"fine\n\xff\n", &["ws", &url]).failed(2);
    assert!(run.stderr.contains("line 2 is not UTF-8"), "{run:?}");
}

#[test]
fn one_message_is_sent_and_one_is_shown() {
    let origin = Origin::start().unwrap();
    let run = ws(&origin, "/ws/echo", "one\ntwo\nthree\n", &["-1"]).ok();
    assert_eq!(run.text(), "one\n");
    assert_eq!(seen(&origin).messages, 1);
    let run = ws(&origin, "/ws/count?n=5&stay=1", "", &["-1"]).ok();
    assert_eq!(run.text(), "0\n");
}

#[test]
fn the_end_of_the_input_is_the_end_or_not() {
    let origin = Origin::start().unwrap();
    let run = ws(&origin, "/ws/fragments", "", &["--no-close"]).ok();
    assert_eq!(run.text(), "aaaaabbbbbccccc\n");
    // The server never closes, and is not waited for.
    let run = ws(&origin, "/ws/silent", "word\n", &["--exit-on-eof"]).ok();
    assert_eq!(run.text(), "");
    let run = ws(&origin, "/ws/silent", "word\n", &["--close-timeout", "0.2"]).failed(28);
    assert_eq!(run.text(), "");
}

#[test]
fn the_handshake_says_what_the_flags_say() {
    let origin = Origin::start().unwrap();
    let flags = [
        ["-H", "X-Bird: wren"],
        ["-A", "me"],
        ["-b", "a=1"],
        ["-u", "joe:secret"],
        ["--origin", "https://page.test"],
        ["--subprotocol", "mqtt"],
        ["--subprotocol", "chat"],
    ];
    let run = ws(&origin, "/ws/basic/joe/secret?headers=1", "", flags.as_flattened()).ok();
    let said: Value = serde_json::from_str(run.text()).unwrap();
    let lines = said["headers"].as_array().unwrap();
    for (name, value) in [
        ("x-bird", "wren"),
        ("user-agent", "me"),
        ("cookie", "a=1"),
        ("origin", "https://page.test"),
    ] {
        let found: Vec<_> = lines
            .iter()
            .filter(|line| line[0].as_str().unwrap().eq_ignore_ascii_case(name))
            .map(|line| line[1].as_str().unwrap())
            .collect();
        assert_eq!(found, [value], "{name}");
    }
    let run = ws(&origin, "/ws/basic/joe/secret", "", &["-u", "joe:wrong"]);
    assert_eq!(run.code, Some(22), "{run:?}");
    // What the server says of it is told too.
    assert!(run.stderr.starts_with("who are you?\nmimus: (22) "), "{run:?}");
}

#[test]
fn compression_timing_and_what_happens_are_told() {
    let origin = Origin::start().unwrap();
    let line = "again and ".repeat(100);
    let run = ws(&origin, "/ws/echo?deflate=yes", &line, &["--deflate"]).ok();
    assert_eq!(run.text(), line + "\n");
    assert_eq!(seen(&origin).compressed, 1);
    let run = ws(&origin, "/ws/echo", "word", &["--timing"]);
    let (time, word) = run.text().trim_end().split_once(' ').unwrap();
    assert!(time.parse::<f64>().is_ok() && word == "word", "{run:?}");
    assert!(run.stderr.starts_with("open after "), "{run:?}");
    let run = ws(&origin, "/ws/ping?n=2", "", &["-v", "--no-close"]);
    for part in ["> GET /ws/ping?n=2", "< HTTP/1.1 101", "* ping 1", "closed with 1000"] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    assert_eq!((run.code, run.text()), (Some(0), "2 pongs\n"));
}

#[test]
fn the_exit_code_says_how_it_went() {
    let origin = Origin::start().unwrap();
    let stay = ["--no-close"];
    let run = ws(&origin, "/ws/close?code=1011&reason=tired", "", &stay).failed(98);
    assert!(run.stderr.contains("1011") && run.stderr.contains("tired"), "{run:?}");
    let run = ws(&origin, "/ws/close?code=1001&reason=bye", "", &stay);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("1001") && run.stderr.contains("bye"), "{run:?}");
    ws(&origin, "/ws/drop", "", &stay).failed(18);
    ws(&origin, "/bad-ws/text-surrogate", "", &stay).failed(56);
    ws(&origin, "/ws/count?n=1&size=5000", "", &["--max-message", "1k", "--no-close"]).failed(63);
    let flags = ["--no-close", "--ping-interval", "0.05", "--pong-timeout", "0.1"];
    ws(&origin, "/ws/silent", "", &flags).failed(28);
    ws(&origin, "/ws/silent", "", &["--no-close", "-m", "0.1", "--close-timeout", "0.1"])
        .failed(28);
    assert_eq!(ws(&origin, "/ws/echo", "", &["--no-such-flag"]).code, Some(2));
    mimus_fed(b"", &["ws", "ftp://localhost/"]).failed(1);
}

#[test]
fn it_is_opened_over_http_2_and_over_tls() {
    let origin = Origin::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.to_str().unwrap();
    for (port, flag) in [
        (Port::H2c, "--http2-prior-knowledge"),
        (Port::H2OrHttp1, "--http2"),
        (Port::Https, "--http2"),
        (Port::Https, "--http1.1"),
    ] {
        let url = origin.url(port, "/ws/echo").unwrap().replace("http", "ws");
        let run = mimus_fed(b"there", &["ws", flag, "--cacert", ca, &url]).ok();
        assert_eq!(run.text(), "there\n");
        let http2 = matches!(port, Port::H2c | Port::H2OrHttp1);
        let last = origin.requests().pop().unwrap();
        assert_eq!(last.version == "HTTP/2", http2, "{port:?}");
    }
}

/// A run whose input stays open.
fn begun(origin: &Origin, path: &str) -> Child {
    let mut begun = command(&["ws", url(origin, path).as_str()]);
    begun.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    begun.spawn().unwrap()
}

#[test]
fn messages_are_shown_when_they_come() {
    let origin = Origin::start().unwrap();
    let mut child = begun(&origin, "/ws/echo");
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for word in ["one\n", "two\n"] {
        input.write_all(word.as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, word);
    }
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("", Some(0)));
}

#[test]
fn ctrl_c_closes_in_order() {
    let origin = Origin::start().unwrap();
    let mut child = begun(&origin, "/ws/echo");
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"here\n").unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(130), ""), "{run:?}");
    assert_eq!(seen(&origin).close, Some((Some(1000), String::new())));
    drop(input);
}
