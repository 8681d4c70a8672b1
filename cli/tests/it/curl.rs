//! The same words to curl and to us: the same requests, the same output, the same files, the same
//! exit code. Left out is what differs on purpose: the order of the fields that neither was told to
//! send; `Expect`, which curl adds to uploads and we send only when told to; and `Proxy-Connection`,
//! which no standard knows.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use mimus_testkit::{Origin, Port};
use serde_json::Value;

use crate::rig::{command, run};

/// What one program did.
#[derive(Debug, PartialEq)]
struct Did {
    exit: Option<i32>,
    stdout: String,
    requests: Vec<Asked>,
    /// What it left in its directory.
    files: BTreeMap<String, Vec<u8>>,
}

/// One request.
#[derive(Debug, PartialEq)]
struct Asked {
    method: String,
    target: String,
    /// By lower-case name.
    fields: BTreeMap<String, Vec<String>>,
    body: u64,
}

/// Fields that each program has an opinion of its own about.
const OWN: [&str; 3] = ["user-agent", "expect", "proxy-connection"];

fn did(origin: &Origin, mut program: Command, args: &[&str]) -> Did {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("in"), "line 1\r\nline 2\n").unwrap();
    fs::write(dir.path().join("part"), "abcde").unwrap();
    origin.reset();
    let run = run(program.args(args).current_dir(dir.path()));
    let requests = origin.requests().into_iter().map(|seen| {
        let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in seen.headers() {
            let name = name.to_ascii_lowercase();
            if OWN.contains(&name.as_str()) {
                continue;
            }
            // The boundary of a form is random.
            let value = match name == "content-type" {
                true => value.split('=').next().unwrap().to_owned(),
                false => value,
            };
            fields.entry(name).or_default().push(value);
        }
        Asked { method: seen.method, target: seen.target, fields, body: seen.body_len }
    });
    Did {
        exit: run.code,
        stdout: text(&run.stdout),
        requests: requests.collect(),
        files: files(dir.path()),
    }
}

/// Output without what differs from one run to the next.
fn text(bytes: &[u8]) -> String {
    if let Ok(Value::Object(mut echo)) = serde_json::from_slice(bytes) {
        echo.retain(|name, _| !["headers", "connection"].contains(&name.as_str()));
        return Value::Object(echo).to_string();
    }
    let text = String::from_utf8_lossy(bytes);
    let kept = text.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    kept.collect::<Vec<_>>().join("\n")
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

fn curl() -> Option<Command> {
    let mut curl = Command::new("curl");
    if curl.arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl");
        return None;
    }
    let mut curl = Command::new("curl");
    curl.args(["-q", "-s"]).env_clear();
    Some(curl)
}

fn compare(origin: &Origin, line: &str) {
    let Some(curl) = curl() else { return };
    let http = origin.http_url("");
    let line = line.replace("{http}", &http).replace("{https}", &origin.https_url(""));
    let line = line.replace("{h2c}", &origin.url(Port::H2c, "").unwrap());
    let line = ["refused", "proxy"].iter().zip([Port::Refused, Port::Proxy]).fold(
        line,
        |line, (name, port)| {
            line.replace(&format!("{{{name}}}"), &origin.addr(port).unwrap().to_string())
        },
    );
    let args: Vec<&str> = line.split(' ').collect();
    let theirs = did(origin, curl, &args);
    let ours = did(origin, command(&["-s"]), &args);
    assert_eq!(ours, theirs, "mimus (left) and curl (right) differ on {line}");
}

/// Compares on each line of a table, on an origin of its own.
fn compare_all(lines: &[&str]) {
    let origin = Origin::start().unwrap();
    for line in lines {
        compare(&origin, line);
    }
}

#[test]
fn requests_are_what_they_are_from_curl() {
    compare_all(&[
        "{http}/get?a=b%20c",
        "-d a=1 -d b=2 {http}/post",
        "-d @in {http}/post",
        "--data-binary @in {http}/post",
        "--data-raw @in {http}/post",
        "--data-urlencode a=x&y= --data-urlencode b@in {http}/post",
        "--json {\"a\":1} {http}/post",
        "-G -d a=1 -d b=2 {http}/get?c=3",
        "-G -I -d a=1 {http}/get",
        "-X PURGE {http}/anything",
        "-X DELETE -d x {http}/anything",
        "-T in {http}/anything/",
        "-T in {http}/anything/x",
        "-H X-A:1 -H X-A:2 -H X-B; -H Accept: {http}/get",
        "-H Content-Type:text/x -d x {http}/post",
        "-H Content-Type: -d x {http}/post",
        "-e http://r/ -b a=1;b=2 {http}/get",
        "-u joe:s3cret {http}/basic-auth/joe/s3cret",
        "--oauth2-bearer t0ken {http}/bearer",
        "-r 0-9 {http}/range/100",
        "-r -9 {http}/range/100",
        "-H Host:other.test {http}/get",
        "{http}/xml {http}/json",
        "-x {proxy} {http}/json",
    ]);
}

#[test]
fn output_is_what_it_is_from_curl() {
    compare_all(&[
        "-i {http}/json",
        "-I {http}/json",
        "-o out {http}/json",
        "-O {http}/json",
        "-o a -o b {http}/json {http}/xml",
        "--create-dirs -o d/e {http}/json",
        "-D head -o out {http}/json",
        "-D - {http}/json",
        "-L {http}/redirect/2",
        "-iL {http}/redirect-to?url=/redirect-to?url=/json",
        "-L -d x {http}/redirect-to?url=/anything&status_code=303",
        "-L -d x {http}/redirect-to?url=/anything&status_code=307",
        "-L -d x {http}/redirect-to?url=/anything&status_code=302",
        "-w %{http_code}|%{num_redirects}|%{redirect_url}|%{content_type} {http}/redirect/1",
        "-L -w %{response_code}|%{num_redirects}|%{num_connects}|%{url_effective} {http}/redirect-to?url=/json",
        "-w %{size_download}|%{size_upload}|%{size_header}|%{http_version}|%{method} {http}/bytes/99",
        "-o out -w %{filename_effective}|%{exitcode}|%{urlnum}|%{remote_ip}|%{local_ip}\\n {http}/json",
        "-w %header{content-type}|%{num_headers} -o out {http}/stream-bytes/9",
        "-d 12345 -o /dev/null -w %{size_upload}|%{size_request} -A x {http}/upload",
        "-C - -o part {http}/range/26",
        "-C 5 -o part {http}/range/26",
        "--compressed -H Accept-Encoding:gzip {http}/gzip",
        "{http}/gzip -o out",
        "--compressed -o /dev/null -w %{size_download} {http}/gzip -H Accept-Encoding:gzip",
        "-f {http}/status/404",
        "--fail-with-body {http}/status/404",
        "-w %{http_code}|%{exitcode}|%{errormsg} -o out {http}/status/404",
    ]);
}

#[test]
fn exit_codes_are_what_they_are_from_curl() {
    compare_all(&[
        "nosuch://localhost:1/",
        "http://nosuch.invalid/",
        "-x nosuch.invalid:1 {http}/get",
        "http://{refused}/",
        "{https}/get",
        "-o out {http}/bad/truncate",
        "-o out {http}/bad/reset-mid-body",
        "{http}/bad/close-before-head",
        "{http}/bad/reset-before-head",
        "-m 0.3 {http}/delay/5",
        "-L --max-redirs 1 {http}/redirect/3 -o out",
        "-L {http}/redirect-loop --max-redirs 5 -o out",
        "--max-filesize 10 -o out {http}/bytes/99",
        "-C - -o part {http}/bytes/99",
        "-T nosuch {http}/put",
        "-F a=@nosuch {http}/post",
        "-o nosuch/out {http}/json",
        "--cacert nosuch {https}/get",
        "-E nosuch {https}/get",
    ]);
}

/// One transfer each: curl does not use a connection of prior knowledge twice. And one cookie: we send
/// each in a field of its own (RFC 9113 section 8.2.3).
#[test]
fn http2_is_what_it_is_from_curl() {
    compare_all(&[
        "--http2-prior-knowledge {h2c}/get?a=b%20c",
        "--http2-prior-knowledge -i {h2c}/json",
        "--http2-prior-knowledge -I {h2c}/json",
        "--http2-prior-knowledge -D head -o out {h2c}/json",
        "--http2-prior-knowledge -d a=1 -d b=2 {h2c}/post",
        "--http2-prior-knowledge -T in {h2c}/anything/x",
        "--http2-prior-knowledge -X DELETE -d x {h2c}/anything",
        "--http2-prior-knowledge -H X-A:1 -H X-B; -H Accept: {h2c}/get",
        "--http2-prior-knowledge -H Host:other.test {h2c}/get",
        "--http2-prior-knowledge -u joe:s3cret {h2c}/basic-auth/joe/s3cret",
        "--http2-prior-knowledge -b a=1 {h2c}/get",
        "--http2-prior-knowledge -C 5 -o part {h2c}/range/26",
        "--http2-prior-knowledge -f {h2c}/status/404",
        "--http2-prior-knowledge -m 0.3 {h2c}/delay/5",
        "--http2-prior-knowledge -w %{http_version}|%{http_code}|%{size_download}|%{size_upload}|%{method} {h2c}/bytes/99",
        "--http2-prior-knowledge -o out -w %{size_header}|%{num_headers} {h2c}/json",
        "--http1.1 -w %{http_version} {http}/json",
    ]);
}
