//! What is told: heads, phases, facts, archives, help.

use std::{fs, process::Command};

use mimus_testkit::Origin;
use serde_json::Value;

use crate::rig::{Run, mimus, mimus_in, run};

fn origin() -> Origin {
    Origin::start().unwrap()
}

#[test]
fn heads_are_shown_as_they_came() {
    let origin = origin();
    let run = mimus(&["-i", &origin.http_url("/response-headers?X-A=1&X-A=2")]).ok();
    let (head, _) = run.text().split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(head.to_lowercase().matches("\r\nx-a: ").count(), 2, "{head}");
    let run = mimus(&["-I", &origin.http_url("/json")]).ok();
    assert!(run.text().starts_with("HTTP/1.1 200 OK\r\n") && run.text().ends_with("\r\n\r\n"));
    assert_eq!(origin.requests()[1].method, "HEAD");
    let run = mimus(&["-iL", &origin.http_url("/redirect/2")]).ok();
    assert_eq!(run.text().matches("HTTP/1.1 302 Found\r\n").count(), 2);
    let run = mimus(&["-i", &origin.http_url("/early-hints")]).ok();
    assert!(run.text().starts_with("HTTP/1.1 103 "), "{run:?}");
}

#[test]
fn heads_are_dumped_to_a_file() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.http_url("/redirect/1");
    let run = mimus_in(dir.path(), &["-L", "-D", "h", &url]).ok();
    let heads = fs::read_to_string(dir.path().join("h")).unwrap();
    assert_eq!(heads.matches("HTTP/1.1 ").count(), 2);
    assert!(run.json().is_object());
    let run = mimus(&["-D", "-", "-o", "/dev/null", &url]).ok();
    assert!(run.text().starts_with("HTTP/1.1 302"));
}

#[test]
fn what_happens_is_told_without_secrets() {
    let origin = origin();
    let url = origin.https_url("/cookies/set?k=s3cret").replace("//", "//joe:hunter2@");
    let args = ["-vkL", "-b", "c=swordfish", &url];
    let told = mimus(&args);
    assert_eq!(told.code, Some(0));
    let expected = [
        "* connection to ",
        "TLS in ",
        "TLSv1.3, ",
        "> GET /cookies/set?k=s3cret HTTP/1.1\n",
        "> Authorization: Basic [hidden]\n",
        "> Cookie: c=[hidden]",
        "< HTTP/1.1 302 Found\n",
        "k=[hidden]; ",
        "* the redirect to ",
        "is used again",
        " bytes of body, ",
    ];
    for text in expected {
        assert!(told.stderr.contains(text), "{text:?} is not in {}", told.stderr);
    }
    let phases = told.stderr.split("k=s3cret").collect::<String>();
    for secret in ["s3cret", "hunter2", "swordfish", "am9lOmh1bnRlcjI="] {
        assert!(!phases.contains(secret), "{secret} is in {phases}");
    }
    let shown = mimus(&[&args[..], &["--show-secrets"]].concat());
    assert!(
        shown.stderr.contains("Basic am9lOmh1bnRlcjI=") && shown.stderr.contains("c=swordfish")
    );
}

#[test]
fn facts_are_written_after_each_transfer() {
    let origin = origin();
    let url = origin.http_url("/bytes/1234");
    let format = "%{http_code} %{http_version} %{num_connects} %{size_download} %{urlnum}\\n";
    let run = mimus(&["-o", "/dev/null", "-o", "/dev/null", "-w", format, &url, &url]).ok();
    assert_eq!(run.text(), "200 1.1 1 1234 0\n200 1.1 0 1234 1\n");
    let times = "%{time_namelookup} %{time_connect} %{time_pretransfer} %{time_starttransfer} %{time_total}";
    let run = mimus(&["-o", "/dev/null", "-w", times, &origin.http_url("/delay/0.2")]).ok();
    let times: Vec<f64> = run.text().split(' ').map(|t| t.parse().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times[3] >= 0.2 && times[2] < 0.2, "{times:?}");
    let run = mimus(&[
        "-w",
        "%{stderr}%{size_upload} %header{content-type}",
        "-d",
        "12345",
        &origin.http_url("/post"),
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), "5 application/json"));
    let run = mimus(&["-s", "-w", "%{json}", "http://nosuch.invalid/"]);
    assert_eq!(run.json()["exitcode"], 6);
    assert_eq!(run.json()["http_code"], 0);
}

#[test]
fn exchanges_are_archived_without_secrets() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let har = dir.path().join("x.har");
    let args = |extra: &[&str]| -> Value {
        let base = ["-sL", "--har", "x.har", "-o", "/dev/null"];
        mimus_in(dir.path(), &[&base[..], extra].concat()).ok();
        serde_json::from_str(&fs::read_to_string(&har).unwrap()).unwrap()
    };
    let url = origin.http_url("/cookies/set?k=s3cret").replace("//", "//joe:hunter2@");
    let log = &args(&["-b", "", &url])["log"];
    assert_eq!(log["version"], "1.2");
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{log}");
    assert_eq!(entries[0]["response"]["status"], 302);
    assert!(entries[0]["response"]["redirectURL"].as_str().unwrap().ends_with("/cookies"));
    assert_eq!(entries[0]["response"]["cookies"][0]["name"], "k");
    assert_eq!(entries[1]["request"]["cookies"][0]["name"], "k");
    let text = entries.iter().map(|e| e["request"].to_string()).collect::<String>();
    assert!(!text.contains("hunter2") && !text.contains("am9lOmh1bnRlcjI="), "{text}");
    assert!(!entries[1]["request"].to_string().contains("s3cret"), "{log}");
    assert!(args(&["--show-secrets", &url]).to_string().contains("am9lOmh1bnRlcjI="));

    let log = &args(&["-d", "a=1&b=x%20y", &origin.http_url("/post")])["log"];
    let post = &log["entries"][0];
    assert_eq!(post["request"]["postData"]["text"], "a=1&b=x%20y");
    assert_eq!(post["request"]["postData"]["params"][1]["value"], "x y");
    assert!(post["response"]["content"]["text"].as_str().unwrap().contains("\"method\": \"POST\""));
    assert!(post["timings"]["wait"].as_f64().unwrap() > 0.0);
    assert!(post["time"].as_f64().unwrap() >= post["timings"]["wait"].as_f64().unwrap());
    assert_eq!(post["request"]["bodySize"], 11);
}

#[test]
fn failures_are_archived_too() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let args = ["-s", "--har", "x.har", "-o", "f", &origin.http_url("/bad/truncate")];
    assert_eq!(mimus_in(dir.path(), &args).code, Some(18));
    let log: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("x.har")).unwrap()).unwrap();
    assert!(log["log"]["entries"][0]["response"]["_error"].as_str().unwrap().contains("closed"));
}

#[test]
fn json_is_formatted_into_a_pipe_only_on_request() {
    let origin = origin();
    let url = origin.http_url("/response-headers?a=1");
    let plain = mimus(&[&url]).ok();
    let pretty = mimus(&["--pretty", &url]).ok();
    assert_eq!(plain.json(), pretty.json());
    assert!(pretty.text().contains("\n    \""), "{pretty:?}");
    let coloured = mimus(&["--pretty", "--color", "always", "-i", &url]).ok();
    assert!(coloured.text().contains("\u{1b}["), "{coloured:?}");
}

/// Runs the program on a terminal of its own, if this machine has util-linux's `script`.
fn on_a_terminal(line: &str, environment: &[(&str, &str)]) -> Option<Run> {
    let line = format!("{} {line}", env!("CARGO_BIN_EXE_mimus"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
    command.envs(environment.iter().copied()).stdin(std::process::Stdio::null());
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no script");
        return None;
    }
    Some(run(&mut command))
}

#[test]
fn a_terminal_is_treated_as_one() {
    let origin = origin();
    let json = origin.http_url("/json");
    let Some(shown) = on_a_terminal(&format!("-i {json}"), &[("PAGER", "")]) else { return };
    assert!(shown.text().contains("\u{1b}["), "{shown:?}");
    let plain = on_a_terminal(&json, &[("PAGER", ""), ("NO_COLOR", "1")]).unwrap();
    assert!(!plain.text().contains("\u{1b}["), "{plain:?}");
    let binary = on_a_terminal(&origin.http_url("/bytes/5000"), &[]).unwrap();
    assert_eq!(binary.code, Some(23));
    assert!(binary.text().contains("-o FILE") && !binary.stdout.contains(&0), "{binary:?}");
    let paged = on_a_terminal(&format!("--pager {json}"), &[("PAGER", "sed s/^/paged:/")]).unwrap();
    assert!(paged.text().contains("paged:"), "{paged:?}");
    let bar = on_a_terminal(&format!("-o /dev/null {}", origin.http_url("/bytes/9000")), &[]);
    let bar = bar.unwrap();
    assert!(bar.text().contains("down") && bar.text().contains("/s"), "{bar:?}");
}

#[test]
fn help_needs_nothing_else() {
    let short = mimus(&["--help"]).ok();
    let all = mimus(&["--help", "all"]).ok();
    assert!(all.stdout.len() > 2 * short.stdout.len());
    assert!(mimus(&["-V"]).ok().text().starts_with("mimus "));
    assert!(mimus(&["--man"]).ok().text().contains(".TH mimus 1"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = mimus(&["--completions", shell]).ok();
        assert!(script.text().contains("--write-out") || script.text().contains("write-out"));
    }
}
