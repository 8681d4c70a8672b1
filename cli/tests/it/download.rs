//! Where bodies go, and how they are gone on with.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use mimus_testkit::{Origin, Port};

use crate::rig::{command, ended, mimus, mimus_in};

fn origin() -> Origin {
    Origin::start().unwrap()
}

#[test]
fn bodies_go_to_the_files_named() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let (json, bytes) = (origin.http_url("/json"), origin.http_url("/bytes/5000?seed=1"));
    mimus_in(dir.path(), &["-o", "a", &json, "-O", &bytes]).ok();
    assert!(fs::read_to_string(dir.path().join("a")).unwrap().contains("polyglottos"));
    assert_eq!(fs::read(dir.path().join("5000")).unwrap().len(), 5000);
    mimus_in(dir.path(), &["--output-dir", "d/e", "--create-dirs", "-O", &json]).ok();
    assert!(dir.path().join("d/e/json").exists());
    mimus_in(dir.path(), &["--output-dir", "none", "-O", &json]).failed(23);
    mimus_in(dir.path(), &["-O", &origin.http_url("/")]).failed(23);
}

#[test]
fn an_older_file_survives_a_failure_to_connect() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "older").unwrap();
    let refused = origin.url(Port::Refused, "/").unwrap();
    mimus_in(dir.path(), &["-o", "f", &refused]).failed(7);
    mimus_in(dir.path(), &["-f", "-o", "f", &origin.http_url("/status/404")]).failed(22);
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"older");
    mimus_in(dir.path(), &["-o", "f", &origin.http_url("/bytes/0")]).ok();
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"");
}

#[test]
fn a_download_is_resumed_where_it_ended() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.http_url("/range/1000");
    let whole = mimus(&[&url]).ok().stdout;
    let file = dir.path().join("f");
    fs::write(&file, &whole[..300]).unwrap();
    let resume = ["-C", "-", "-o", "f", "-w", "%{http_code}", &url];
    assert_eq!(mimus_in(dir.path(), &resume).ok().text(), "206");
    assert_eq!(fs::read(&file).unwrap(), whole);
    assert_eq!(mimus_in(dir.path(), &resume).ok().text(), "416", "there is nothing left");
    assert_eq!(fs::read(&file).unwrap(), whole);
    mimus_in(dir.path(), &["-C", "500", "-o", "f", &url]).ok();
    assert_eq!(fs::read(&file).unwrap(), whole);
    fs::write(&file, vec![0; 1500]).unwrap();
    mimus_in(dir.path(), &["-C", "-", "-o", "f", &url]).failed(33);
    assert_eq!(fs::read(&file).unwrap().len(), 1500);
}

#[test]
fn a_server_that_does_not_resume_costs_nothing() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "part").unwrap();
    for path in ["/bytes/1000", "/status/404", "/redirect/1"] {
        mimus_in(dir.path(), &["-C", "-", "-o", "f", &origin.http_url(path)]).failed(33);
    }
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"part");
    mimus_in(dir.path(), &["-C", "9", "-o", "f", &origin.http_url("/range/99")]).failed(33);
    mimus(&["-C", "-", &origin.http_url("/range/99")]).failed(2);
}

#[test]
fn what_came_of_a_broken_download_is_kept() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    mimus_in(dir.path(), &["-o", "f", &origin.http_url("/bad/truncate")]).failed(18);
    assert!(!fs::read(dir.path().join("f")).unwrap().is_empty());
}

/// Answers one connection after the other, each with the next answer, and closes it. Gives back the
/// heads that it was asked.
fn answering(answers: &'static [&'static str]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/f", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let serve = |answer: &&str| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(head).unwrap().to_lowercase()
        };
        answers.iter().map(serve).collect()
    });
    (url, served)
}

#[test]
fn a_download_that_breaks_is_gone_on_with_in_the_same_run() {
    let dir = tempfile::tempdir().unwrap();
    let (url, served) = answering(&[
        "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n0123",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n45",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 6-9/10\r\nContent-Length: 4\r\n\r\n6789",
    ]);
    let flags =
        ["-C", "-", "-o", "f", "--retry", "5", "--retry-delay", "0", "-w", "%{num_retries}"];
    assert_eq!(mimus_in(dir.path(), &[&flags[..], &[&url]].concat()).ok().text(), "2");
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"0123456789");
    let heads = served.join().unwrap();
    assert!(!heads[0].contains("\r\nrange:"));
    assert!(
        heads[1].contains("\r\nrange: bytes=4-\r\n") && heads[1].contains("\r\nif-range: \"v1\"")
    );
    assert!(
        heads[2].contains("\r\nrange: bytes=6-\r\n") && heads[2].contains("\r\nif-range: \"v1\"")
    );
}

#[test]
fn a_download_that_changed_meanwhile_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let (url, served) = answering(&[
        "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n0123",
        "HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: 10\r\n\r\nabcdefghij",
    ]);
    let flags = ["-C", "-", "-o", "f", "--retry", "5", "--retry-delay", "0"];
    mimus_in(dir.path(), &[&flags[..], &[&url]].concat()).failed(33);
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"0123");
    served.join().unwrap();
}

#[test]
fn a_part_is_asked_for() {
    let origin = origin();
    let url = origin.http_url("/range/1000");
    let whole = mimus(&[&url]).ok().stdout;
    assert_eq!(mimus(&["-r", "10-19", &url]).ok().stdout, whole[10..20]);
    assert_eq!(mimus(&["-r", "-5", &url]).ok().stdout, whole[995..]);
}

#[test]
fn compression_is_asked_for_and_undone_only_on_request() {
    let origin = origin();
    let url = origin.http_url("/gzip");
    assert_eq!(mimus(&[&url]).ok().stdout[..2], [0x1f, 0x8b]);
    let run = mimus(&["--compressed", &url]).ok();
    assert!(run.json().is_object());
    let asked = origin.requests()[1].header("accept-encoding").unwrap();
    assert!(asked.contains("gzip") && asked.contains("br") && asked.contains("zstd"), "{asked}");
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let origin = origin();
    let url = origin.http_url("/stream-bytes/50000000");
    let mut child = command(&[&url]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 1000];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(23), ""));
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_what_came() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.http_url("/drip?numbytes=1000&duration=100");
    let mut child = command(&["-o", "f", &url]).current_dir(dir.path()).spawn().unwrap();
    let file = dir.path().join("f");
    let begun = Instant::now();
    while fs::metadata(&file).map_or(0, |meta| meta.len()) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing came");
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(fs::metadata(&file).unwrap().len() >= 2);
}
