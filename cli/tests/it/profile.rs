//! `mimus profile`, and `--as`.

use std::fs;

use mimus_testkit::Origin;

use crate::rig::{mimus, mimus_in};

#[test]
fn profiles_are_listed_with_their_other_names() {
    let run = mimus(&["profile", "list"]).ok();
    let chrome = run.text().lines().find(|line| line.starts_with("chrome-156-linux ")).unwrap();
    assert!(chrome.contains("Google Chrome 156 on Linux") && chrome.contains("also: chrome"));
    let firefox = run.text().lines().find(|line| line.starts_with("firefox-153-linux ")).unwrap();
    assert!(firefox.contains(" verified "), "{firefox}");
    assert_eq!(run.text(), mimus(&["profile"]).ok().text());
}

#[test]
fn what_a_profile_shows_is_a_profile() {
    let shown = mimus(&["profile", "show", "chrome"]).ok();
    assert!(shown.text().contains("HeadlessChrome") || shown.text().contains("Chrome/156.0.0.0"));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("own.toml"), shown.text()).unwrap();
    let again = mimus_in(dir.path(), &["profile", "show", "own.toml"]).ok();
    assert_eq!(again.text(), shown.text());
    let same = mimus_in(dir.path(), &["profile", "diff", "own.toml", "chrome-156-linux"]).ok();
    assert_eq!(same.text(), "");
}

#[test]
fn two_profiles_differ_where_they_do() {
    let run = mimus(&["profile", "diff", "firefox-140", "firefox-153"]).ok();
    assert!(run.text().contains("- values.accept-language = \"en-US,en;q=0.5\"\n"), "{run:?}");
    assert!(run.text().contains("+ values.accept-language = \"en-US,en;q=0.9\"\n"), "{run:?}");
    assert!(!run.text().contains("http2."), "{run:?}");
}

#[test]
fn a_name_that_is_none_is_a_mistake_that_tells_those_near() {
    for args in [&["profile", "show", "crome"][..], &["--as", "crome", "http://127.0.0.1:1/"]] {
        let run = mimus(args);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("near to it: chrome"), "{run:?}");
    }
    let file = mimus(&["--as", "./none.toml", "http://127.0.0.1:1/"]);
    assert!(file.stderr.contains("none.toml cannot be read: "), "{file:?}");
}

#[test]
fn the_head_that_is_shown_is_the_head_that_is_sent() {
    let origin = Origin::start().unwrap();
    let url = origin.http_url("/gzip");
    let run = mimus(&["--as", "chrome", "-v", "-H", "X-Own: 1", &url]);
    assert_eq!(run.code, Some(0), "{run:?}");
    // Compressed bodies were asked for, and are decoded.
    assert_eq!(run.json()["coded"], "gzip");
    let shown: Vec<&str> = run.stderr.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    let sent = &origin.requests()[0];
    let sent = sent.headers().into_iter().map(|(name, value)| format!("{name}: {value}"));
    assert_eq!(shown[1..], sent.collect::<Vec<_>>());
    assert!(shown[2].starts_with("Connection: ") && shown[3] == "X-Own: 1", "{shown:?}");
    assert!(run.stderr.contains("> sec-ch-ua-platform: \"Linux\"\n"), "{run:?}");
}

#[test]
fn a_client_that_looks_like_chrome_has_chromes_prints() {
    let shown = mimus(&["fingerprint", "--as", "chrome", "--jsonl", "https://bird.example/"]).ok();
    let shown = shown.json();
    assert_eq!(shown["tls"]["ja4"], "t13d1517h2_8daaf6152771_cb7bf5808d99");
    let text = shown.to_string();
    assert!(text.contains("1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p"), "{text}");
}

#[test]
fn what_a_request_is_to_the_browser_can_be_said() {
    let origin = Origin::start().unwrap();
    let url = origin.http_url("/get");
    // Loopback is a secure place to a browser, so it says what it wants.
    for (kind, wanted) in [("navigate", "document"), ("fetch", "empty"), ("image", "image")] {
        mimus(&["--as", "chrome", "--kind", kind, &url]).ok();
        let sent = origin.requests().pop().unwrap().headers();
        let told = sent.iter().find(|(name, _)| name.eq_ignore_ascii_case("sec-fetch-dest"));
        assert_eq!(told.map(|(_, value)| &**value), Some(wanted), "{kind}");
    }
    let wrong = mimus(&["--as", "chrome", "--kind", "pages", &url]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("async-script"), "{wrong:?}");
}
