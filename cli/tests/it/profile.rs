//! `mimus profile`, and `--as`.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStderr, Stdio},
};

use mimus_testkit::Origin;

use crate::rig::{Run, command, ended, mimus, mimus_in};

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
fn a_field_that_contradicts_the_profile_is_sent_and_warned_about() {
    let origin = Origin::start().unwrap();
    let url = origin.http_url("/headers");
    let run = mimus(&["--as", "chrome", "-H", "User-Agent: mine", "-H", "Accept: text/css", &url]);
    assert!(run.text().contains("mine"), "{run:?}");
    assert_eq!(run.stderr, "mimus: warning: a field contradicts the profile: User-Agent\n");
    let run = mimus(&["--as", "chrome", "-H", "Sec-Fetch-Site: cross-site", &url]);
    assert_eq!(run.stderr, "mimus: warning: a field contradicts the profile: Sec-Fetch-Site\n");
    // What the browser says, too, is no contradiction.
    mimus(&["--as", "chrome", "-H", "sec-fetch-site: none", &url]).ok();
    mimus(&["-s", "--as", "chrome", "-H", "User-Agent: mine", &url]).ok();
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

/// `mimus profile capture` at work, and where it says to go with what trust.
struct Capturing {
    child: Child,
    stderr: BufReader<ChildStderr>,
    url: String,
    authority: String,
}

fn capturing(dir: &Path, args: &[&str]) -> Capturing {
    let mut command = command(&[&["profile", "capture"], args].concat());
    command.current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let line = |stderr: &mut BufReader<ChildStderr>| {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        line
    };
    let said = line(&mut stderr);
    let url = said.split_whitespace().find(|word| word.starts_with("https://")).unwrap().to_owned();
    let said = line(&mut stderr);
    let authority =
        said.split_whitespace().find(|word| word.ends_with("ca.pem")).unwrap().to_owned();
    assert!(line(&mut stderr).contains("--ignore-certificate-errors-spki-list="));
    Capturing { child, stderr, url, authority }
}

impl Capturing {
    /// Goes through the pages as a browser of this profile does.
    fn visit(&self, profile: &str) {
        let asks = |words: &[&str], path: &str| {
            let url = format!("{}{path}", self.url);
            let who = ["-s", "--as", profile, "--cacert", &self.authority, "-o", "/dev/null"];
            mimus(&[&who[..], words, &[&url]].concat()).ok();
        };
        for version in ["--http2", "--http1.1"] {
            asks(&[version], "");
            for (kind, path) in [("iframe", "frame"), ("fetch", "fetch"), ("xhr", "xhr")] {
                asks(&[version, "--kind", kind, "-e", &self.url], path);
            }
        }
        asks(&["--kind", "fetch", "-e", &self.url], "done");
    }

    /// What it came to, its report included.
    fn ended(mut self) -> Run {
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        let run = ended(self.child.wait_with_output().unwrap());
        Run { stderr, ..run }
    }
}

#[test]
fn a_browser_that_is_captured_is_the_one_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let capturing = capturing(dir.path(), &["--out", "own.toml", "--name", "mine"]);
    capturing.visit("chromium-156-linux");
    let run = capturing.ended();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("the nearest profile is chromium-156-linux\n"), "{run:?}");
    assert!(run.stderr.contains("it says the same as the nearest\n"), "{run:?}");
    assert!(run.stderr.ends_with("mimus: use it by mimus --as own.toml\n"), "{run:?}");
    let shown = mimus_in(dir.path(), &["profile", "show", "own.toml"]).ok();
    assert!(shown.text().contains("name = \"mine\"\n"), "{shown:?}");
    // It goes for a browser.
    let origin = Origin::start().unwrap();
    mimus_in(dir.path(), &["--as", "own.toml", &origin.http_url("/get")]).ok();
    assert_eq!(origin.requests()[0].header("sec-fetch-dest").as_deref(), Some("document"));
}

#[test]
fn what_is_another_s_is_in_the_file_that_is_captured() {
    let dir = tempfile::tempdir().unwrap();
    let other = "name = \"other\"\nextends = \"chromium-156-linux\"\n[kinds.xhr]\norder = [\"Host\", \
                 \"h1:Connection\", \"Accept\", \"User-Agent\", \"Referer\", \"*\"]\n";
    fs::write(dir.path().join("other.toml"), other).unwrap();
    let capturing = capturing(dir.path(), &[]);
    capturing.visit(dir.path().join("other.toml").to_str().unwrap());
    let run = capturing.ended();
    assert_eq!(run.code, Some(0), "{run:?}");
    let order = "+ kinds.xhr.order = [\"Host\", \"h1:Connection\", \"Proxy-Authorization\", ";
    assert!(run.stderr.contains(order), "{run:?}");
    // Without --out it is the output.
    fs::write(dir.path().join("own.toml"), run.text()).unwrap();
    let diff = mimus_in(dir.path(), &["profile", "diff", "other.toml", "own.toml"]).ok();
    assert!(!diff.text().contains(" http2."), "{diff:?}");
    assert!(!diff.text().contains(" kinds.fetch.order"), "{diff:?}");
}

#[test]
fn a_browser_that_is_not_there_is_told() {
    let run = mimus(&["profile", "capture", "--browser", "/nonexistent/firefox"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("/nonexistent/firefox"), "{run:?}");
    assert_eq!(mimus(&["profile", "capture", "--connections", "0"]).code, Some(2));
}

#[test]
fn fingerprints_as_texts_are_said_over_a_profile_or_alone() {
    let akamai = "1:4096;4:70000|98765|0|p,m,s,a";
    for who in [&["--as", "chrome"][..], &[]] {
        let words = ["fingerprint", "--jsonl", "--akamai", akamai, "https://bird.example/"];
        let shown = mimus(&[&words[..], who].concat()).ok().json();
        assert_eq!(shown["http2"]["akamai"], akamai, "{who:?}");
    }
    let url = "https://127.0.0.1:1/";
    let run = mimus(&["--ja3", "771,1-2,3", url]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("ClientHello: ja3: it is five parts"), "{run:?}");
    let run = mimus(&["--akamai", "1:x|0|0|m,a,s,p", url]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("the settings of an Akamai fingerprint: \"1:x\""), "{run:?}");
}
