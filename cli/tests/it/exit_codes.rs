//! Each way to fail has its exit code and its line.

use mimus_testkit::{Origin, Port};

use crate::rig::{command, mimus, run};

fn origin() -> Origin {
    Origin::start().unwrap()
}

#[test]
fn the_command_line_can_be_wrong() {
    for args in [&["--nosuch", "u"][..], &[], &["-X", "A B", "u"], &["-m", "soon", "u"]] {
        let run = mimus(args);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(!run.stderr.is_empty());
    }
    mimus(&["ftp://localhost/"]).failed(1);
    mimus(&["http://a b/"]).failed(3);
    mimus(&["http://:0/"]).failed(3);
    mimus(&["-H", "Host:", "http://localhost/"]).failed(2);
    mimus(&["-x", "gopher://p", "http://localhost/"]).failed(3);
    mimus(&["-d", "@no/such/file", "http://localhost/"]).failed(26);
    mimus(&["-T", "no/such/file", "http://localhost/"]).failed(26);
    mimus(&["-F", "f=@no/such/file", "http://localhost/"]).failed(26);
    mimus(&["--cacert", "no/such/file", "http://localhost/"]).failed(77);
    mimus(&["-E", "no/such/file", "http://localhost/"]).failed(58);
}

#[test]
fn no_connection_has_many_reasons() {
    let origin = origin();
    let at = |port| origin.url(port, "/get").unwrap();
    mimus(&["http://nosuch.invalid/"]).failed(6);
    mimus(&["-x", "nosuch.invalid:1", "http://localhost/"]).failed(5);
    mimus(&[&at(Port::Refused)]).failed(7);
    mimus(&["--unix-socket", "/nonexistent/socket", "http://localhost/"]).failed(7);
    mimus(&[&at(Port::TlsGarbage)]).failed(35);
    mimus(&[&at(Port::TlsReset)]).failed(35);
    mimus(&["--connect-timeout", "0.3", &at(Port::TlsStall)]).failed(28);
    for port in [Port::TlsWrongName, Port::TlsExpired, Port::TlsSelfSigned, Port::Https] {
        mimus(&[&at(port)]).failed(60);
    }
    let proxy = origin.addr(Port::ProxyAuth).unwrap().to_string();
    mimus(&["-x", &proxy, "-p", &origin.http_url("/")]).failed(97);
}

#[test]
fn an_answer_can_be_missing_late_or_wrong() {
    let origin = origin();
    let at = |path: &str| origin.http_url(path);
    mimus(&["-m", "0.3", &at("/delay/10")]).failed(28);
    mimus(&["--head-timeout", "0.3", &at("/delay/10")]).failed(28);
    mimus(&["--idle-timeout", "0.3", &at("/bad/stall-mid-body"), "-o", "/dev/null"]).failed(28);
    mimus(&[&at("/bad/close-before-head")]).failed(52);
    mimus(&[&at("/bad/reset-before-head")]).failed(56);
    mimus(&["-o", "/dev/null", &at("/bad/truncate")]).failed(18);
    mimus(&["-o", "/dev/null", &at("/bad/truncate-chunked")]).failed(18);
    mimus(&["-o", "/dev/null", &at("/bad/reset-mid-body")]).failed(56);
    mimus(&["-o", "/dev/null", &at("/bad/chunk-negative")]).failed(56);
    mimus(&[&at("/bad/conflicting-lengths")]).failed(8);
    mimus(&["-L", &at("/redirect-loop")]).failed(47);
    mimus(&["-L", "--max-redirs", "2", &at("/redirect/3")]).failed(47);
    mimus(&["--compressed", &at("/bad/gzip-garbage")]).failed(61);
    mimus(&["--compressed", "-o", "/dev/null", &at("/bad/bomb-gzip")]).failed(63);
    mimus(&["--max-filesize", "1k", &at("/bytes/2000")]).failed(63);
    mimus(&["--max-filesize", "1k", "-o", "/dev/null", &at("/stream-bytes/2000")]).failed(63);
    mimus(&["-o", "/nonexistent/f", &at("/get")]).failed(23);
    mimus(&["-o", "/dev/full", &at("/get")]).failed(23);
}

#[test]
fn a_status_fails_only_on_request() {
    let origin = origin();
    let url = origin.http_url("/response-headers?x=1");
    let missing = origin.http_url("/status/404");
    mimus(&[&missing]).ok();
    mimus(&["-f", &url]).ok();
    let run = mimus(&["-f", "-i", &missing]).failed(22);
    assert!(run.text().starts_with("HTTP/1.1 404 Not Found\r\n"), "{run:?}");
    mimus(&["--fail-with-body", &missing]).failed(22);
}

#[test]
fn the_first_failure_counts_and_the_rest_is_fetched() {
    let origin = origin();
    let (good, bad) = (origin.http_url("/json"), origin.url(Port::Refused, "/").unwrap());
    let run = mimus(&[&good, &bad, "http://nosuch.invalid/", &good]);
    assert_eq!(run.code, Some(7));
    assert_eq!(run.stderr.lines().count(), 2);
    assert_eq!(run.text().matches("polyglottos").count(), 2);
}

#[test]
fn silence_can_be_had_and_broken() {
    let origin = origin();
    let url = origin.url(Port::Refused, "/").unwrap();
    let silent = mimus(&["-s", &url]);
    assert_eq!((silent.code, silent.stderr.as_str()), (Some(7), ""));
    mimus(&["-sS", &url]).failed(7);
}

#[test]
fn passing_failures_are_retried() {
    let origin = origin();
    let url = origin.http_url("/status/503");
    let facts = ["-w", "%{http_code} %{num_retries}"];
    let run = mimus(&[&facts[..], &["--retry", "2", "--retry-delay", "0.01", &url]].concat()).ok();
    assert_eq!(run.text().lines().last(), Some("503 2"));
    assert_eq!(origin.requests().len(), 3);
    origin.reset();
    let late = ["--retry", "9", "--retry-delay", "0.2", "--retry-max-time", "0.01"];
    mimus(&[&late[..], &[&url]].concat()).ok();
    assert!(origin.requests().len() <= 2, "{}", origin.requests().len());
    origin.reset();
    let post = ["-d", "x", "--retry", "1", "--retry-delay", "0.01", &url];
    mimus(&post).ok();
    assert_eq!(origin.requests().len(), 1, "a POST may have been carried out");
    mimus(&[&post[..], &["--retry-all-errors"]].concat()).ok();
    assert_eq!(origin.requests().len(), 3);
}

#[test]
fn the_environment_names_the_proxy() {
    let origin = origin();
    let proxy = format!("http://{}", origin.addr(Port::Proxy).unwrap());
    let url = origin.http_url("/get");
    let accepted = || origin.accepted(Port::Proxy);
    run(command(&[&url]).env("http_proxy", &proxy)).ok();
    assert_eq!(accepted(), 1);
    run(command(&[&url]).env("http_proxy", &proxy).env("NO_PROXY", "127.0.0.1")).ok();
    run(command(&["--noproxy", "*", &url]).env("http_proxy", &proxy)).ok();
    run(command(&["-x", "", &url]).env("http_proxy", &proxy)).ok();
    assert_eq!(accepted(), 1);
}
