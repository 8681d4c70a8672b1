//! What a browser wrote, taken apart.

use std::path::Path;

use mimus::h2::hpack::{Decoder, Error};

/// A file among the captures.
pub fn load(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profiles/captures").join(name);
    std::fs::read(path).unwrap()
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;

pub const END_STREAM: u8 = 1;
pub const PRIORITY: u8 = 0x20;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame of HTTP/2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The header block of a HEADERS frame.
    pub fn block(&self) -> &[u8] {
        let priority = if self.flags & PRIORITY != 0 { 5 } else { 0 };
        &self.payload[priority..]
    }

    pub fn depends_on(&self) -> u32 {
        match self.flags & PRIORITY != 0 {
            true => u32::from_be_bytes(self.payload[..4].try_into().unwrap()) & 0x7fff_ffff,
            false => 0,
        }
    }
}

/// The next whole frame, taken off the front.
pub fn next_frame(bytes: &mut Vec<u8>) -> Option<Frame> {
    let head = bytes.get(..9)?;
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let (kind, flags) = (head[3], head[4]);
    let stream = u32::from_be_bytes(head[5..9].try_into().unwrap());
    let payload = bytes.get(9..9 + len)?.to_vec();
    bytes.drain(..9 + len);
    Some(Frame { kind, flags, stream, payload })
}

/// Takes the preface off the front, once it is there.
pub fn take_preface(bytes: &mut Vec<u8>) -> bool {
    if bytes.len() < PREFACE.len() {
        return false;
    }
    assert_eq!(&bytes[..PREFACE.len()], PREFACE);
    bytes.drain(..PREFACE.len());
    true
}

/// The frames of a connection. Not those whose place depends on when the server's bytes come.
pub fn frames(mut bytes: Vec<u8>) -> Vec<Frame> {
    assert!(take_preface(&mut bytes));
    let all = std::iter::from_fn(|| next_frame(&mut bytes));
    let ack = |frame: &Frame| frame.kind == SETTINGS && frame.flags & 1 == 1;
    all.filter(|frame| !ack(frame) && frame.kind != PING && frame.kind != GOAWAY).collect()
}

/// A request as it was captured.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub stream: u32,
    pub depends_on: u32,
    pub line: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// All of its bytes, over HTTP/1.1.
    pub wire: Vec<u8>,
}

impl Asked {
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(its, _)| its.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn method(&self) -> &str {
        self.get(":method").unwrap_or_else(|| self.line.split(' ').next().unwrap())
    }

    pub fn path(&self) -> &str {
        self.get(":path").unwrap_or_else(|| self.line.split(' ').nth(1).unwrap())
    }

    pub fn authority(&self) -> &str {
        self.get(":authority").or_else(|| self.get("host")).unwrap()
    }
}

/// The requests in the frames of a connection.
pub fn requests(frames: &[Frame]) -> Vec<Asked> {
    let mut decoder = Decoder::new(65_536);
    let mut all: Vec<Asked> = Vec::new();
    for frame in frames {
        match frame.kind {
            HEADERS => {
                let mut fields = Vec::new();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let each = |name: &[u8], value: &[u8]| {
                    fields.push((text(name), text(value)));
                    Ok::<(), Error>(())
                };
                decoder.decode(frame.block(), each).unwrap();
                let (stream, depends_on) = (frame.stream, frame.depends_on());
                all.push(Asked { stream, depends_on, fields, ..Asked::default() });
            }
            DATA => {
                let asked = all.iter_mut().find(|asked| asked.stream == frame.stream).unwrap();
                asked.body.extend_from_slice(&frame.payload);
            }
            _ => {}
        }
    }
    all
}

/// The next request of HTTP/1.1, taken off the front once it is whole.
pub fn next_request(bytes: &mut Vec<u8>) -> Option<Asked> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end - 4]).unwrap();
    let (line, rest) = head.split_once("\r\n").unwrap();
    let fields = rest.split("\r\n").map(|field| field.split_once(": ").unwrap());
    let mut asked = Asked {
        line: line.to_owned(),
        fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..Asked::default()
    };
    let body = asked.get("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body = bytes.get(end..end + body)?.to_vec();
    asked.wire = bytes.drain(..end + body).collect();
    Some(asked)
}
