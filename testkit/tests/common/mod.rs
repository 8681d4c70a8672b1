//! A raw client: what it sends is what the test wrote, what it returns is what came.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod socket;
pub(crate) mod two;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use mimus_testkit::{Origin, Port};

/// Longer than anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn origin() -> Origin {
    Origin::start().expect("the origin starts")
}

pub(crate) fn connect(origin: &Origin, port: Port) -> TcpStream {
    let addr = origin.addr(port).expect("the port opens");
    let stream = TcpStream::connect(addr).expect("the port accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends `bytes` on a new connection, reads to the end.
pub(crate) fn talk(origin: &Origin, bytes: impl AsRef<[u8]>) -> (Vec<u8>, io::Result<()>) {
    let mut stream = connect(origin, Port::Http);
    stream.write_all(bytes.as_ref()).expect("the request goes out");
    read_all(&mut stream)
}

/// Everything up to the end, and how it ended.
pub(crate) fn read_all(stream: &mut impl Read) -> (Vec<u8>, io::Result<()>) {
    let mut all = Vec::new();
    let end = stream.read_to_end(&mut all).map(drop);
    (all, end)
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: origin.test\r\n\r\n")
}

pub(crate) fn get_close(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n")
}

/// A whole answer, its framing undone.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).first().copied()
    }

    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim()).collect()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Reads exactly one head, nothing after it.
pub(crate) fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap_or_else(|error| {
            panic!("a whole head: {error} after {:?}", String::from_utf8_lossy(&head))
        });
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("a head in UTF-8")
}

fn line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole line");
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("UTF-8").trim_end().to_owned()
}

/// Reads one well-behaved answer to a GET by its framing, so that the next can follow.
pub(crate) fn read_answer(stream: &mut impl Read) -> Answer {
    let head = read_head(stream);
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    let mut answer = Answer { status, head, body: Vec::new() };
    if status < 200 || status == 204 || status == 304 {
        return answer;
    }
    if let Some(len) = answer.header("content-length") {
        let mut body = vec![0; len.parse().expect("a length")];
        stream.read_exact(&mut body).expect("the whole body");
        answer.body = body;
    } else if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let line_of_size = line(stream);
            let digits = line_of_size.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(digits, 16).expect("a chunk size");
            let mut chunk = vec![0; size];
            stream.read_exact(&mut chunk).expect("a chunk");
            answer.body.extend(chunk);
            if size == 0 {
                while !line(stream).is_empty() {}
                return answer;
            }
            assert_eq!(line(stream), "");
        }
    } else {
        stream.read_to_end(&mut answer.body).expect("a body to the end");
    }
    answer
}

/// One GET on a connection of its own.
pub(crate) fn fetch(origin: &Origin, path: &str) -> Answer {
    send(origin, get(path))
}

/// One request on a connection of its own.
pub(crate) fn send(origin: &Origin, bytes: impl AsRef<[u8]>) -> Answer {
    let mut stream = connect(origin, Port::Http);
    stream.write_all(bytes.as_ref()).expect("the request goes out");
    read_answer(&mut stream)
}

/// Waits until `done`, or fails.
pub(crate) fn eventually(what: &str, done: impl Fn() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
