//! The server's side, frame by frame, and a clock that moves only when told.

#![allow(dead_code, unreachable_pub)] // Every test file uses a part; the fuzz targets, another crate, too.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use mimus_proto::h2::{Client, Code, Limits, Opening, RequestLine, Stream, StreamError, hpack};
use mimus_proto::{ApiMisuse, Error, Event, Fields};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 16;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIO: u8 = 0x20;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Fields as plain data.
pub type Pairs = Vec<(String, Vec<u8>)>;

/// Any frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let id = stream.to_be_bytes();
    let mut frame = vec![len[1], len[2], len[3], kind, flags, id[0], id[1], id[2], id[3]];
    frame.extend_from_slice(payload);
    frame
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

pub fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// A header block of literals that enter no table and are not compressed.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// RFC 7541 section 5.1, seven bits.
fn length(out: &mut Vec<u8>, len: usize) {
    if len < 127 {
        return out.push(len as u8);
    }
    out.push(127);
    let mut rest = len - 127;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    out.push(rest as u8);
}

pub fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &block(fields))
}

/// A head of nothing but a status.
pub fn status(stream: u32, flags: u8, status: &str) -> Vec<u8> {
    headers(stream, flags, &[(":status", status)])
}

pub fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, flags, stream, bytes)
}

pub fn padded(stream: u32, flags: u8, bytes: &[u8], padding: u8) -> Vec<u8> {
    let payload = [&[padding][..], bytes, &vec![0; padding.into()]].concat();
    frame(DATA, flags | PADDED, stream, &payload)
}

pub fn rst(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn ping(payload: &[u8; 8]) -> Vec<u8> {
    frame(PING, 0, 0, payload)
}

pub fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// A frame as the client wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload[self.payload.len() - 4..].try_into().expect("four"))
    }
}

/// Takes the whole frames off the front of `wire`.
pub fn parse(wire: &mut Vec<u8>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while wire.len() >= 9 {
        let len = u32::from_be_bytes([0, wire[0], wire[1], wire[2]]) as usize;
        if wire.len() < 9 + len {
            break;
        }
        let rest = wire.split_off(9 + len);
        let frame = std::mem::replace(wire, rest);
        frames.push(Frame {
            kind: frame[3],
            flags: frame[4],
            stream: u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]),
            payload: frame[9..].to_vec(),
        });
    }
    frames
}

/// What the client reported, flattened so that two runs can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Informational(u16, Pairs),
    Head(u16, Pairs),
    /// Neighbouring pieces are joined: where they were cut means nothing.
    Data(Vec<u8>),
    Trailers(Pairs),
    Upgraded,
    End,
    Error(StreamError),
}

pub fn pairs(fields: &Fields) -> Pairs {
    fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Everything that waits on a stream.
pub fn drain(client: &mut Client, stream: Stream, log: &mut Vec<Seen>) {
    loop {
        match client.poll_event(stream) {
            Ok(None) => return,
            Ok(Some(Event::Data(data))) => {
                assert!(!data.is_empty(), "data is never empty");
                match log.last_mut() {
                    Some(Seen::Data(before)) => before.extend_from_slice(&data),
                    _ => log.push(Seen::Data(data.to_vec())),
                }
            }
            Ok(Some(Event::Informational(head))) => {
                log.push(Seen::Informational(head.status.as_u16(), pairs(&head.fields)));
            }
            Ok(Some(Event::Head(head))) => {
                log.push(Seen::Head(head.status.as_u16(), pairs(&head.fields)));
            }
            Ok(Some(Event::Trailers(trailers))) => log.push(Seen::Trailers(pairs(&trailers))),
            Ok(Some(Event::End)) => log.push(Seen::End),
            Ok(Some(Event::Upgraded(ahead))) => {
                assert!(ahead.is_empty());
                log.push(Seen::Upgraded);
            }
            Ok(Some(other)) => panic!("an event that the rig does not know: {other:?}"),
            Err(error) => {
                assert!(matches!(client.poll_event(stream), Err(again) if again == error));
                if log.last() != Some(&Seen::Error(error)) {
                    log.push(Seen::Error(error));
                }
                return;
            }
        }
    }
}

/// Takes everything that the client wants written, at most `slices` slices a time.
pub fn written(client: &mut Client, slices: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    loop {
        let expected = client.has_output();
        let mut filled = vec![IoSlice::new(&[]); slices];
        let count = client.poll_transmit(&mut filled);
        assert_eq!(count > 0, expected, "has_output says whether there is output");
        if count == 0 {
            return wire;
        }
        let before = wire.len();
        filled[..count].iter().for_each(|slice| wire.extend_from_slice(slice));
        assert!(wire.len() > before, "a filled slice has bytes");
        let count = wire.len() - before;
        client.transmitted(count);
    }
}

/// A client, what it wrote, and the clock.
pub struct Rig {
    pub client: Client,
    pub now: Instant,
    pub decoder: hpack::Decoder,
    pub wire: Vec<u8>,
}

impl Rig {
    /// A client that has written its preface.
    pub fn with(opening: &Opening, limits: Limits) -> Self {
        let now = Instant::now();
        let mut client = Client::new(opening, limits, now);
        let wire = written(&mut client, 4);
        assert_eq!(&wire[..24], PREFACE);
        let wire = wire[24..].to_vec();
        Self { client, now, decoder: hpack::Decoder::new(4096), wire }
    }

    /// A client with these limits whose connection is made.
    pub fn limited(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        change(&mut limits);
        let mut rig = Self::with(&Opening::default(), limits);
        rig.greet(&[]);
        rig
    }

    /// A client whose connection is made.
    pub fn ready() -> Self {
        Self::limited(|_| ())
    }

    /// A client whose server announced these settings.
    pub fn settings(values: &[(u16, u32)]) -> Self {
        let mut rig = Self::with(&Opening::default(), Limits::default());
        rig.greet(values);
        rig
    }

    fn greet(&mut self, values: &[(u16, u32)]) {
        self.ok(&[settings(values), settings_ack()].concat());
        self.frames();
    }

    /// Feeds bytes that the client must like.
    pub fn ok(&mut self, bytes: &[u8]) {
        self.feed(bytes).expect("the connection goes on");
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.client.recv(bytes);
        self.client.process(self.now)
    }

    /// Feeds bytes that end the connection: gives the error and the code of the GOAWAY.
    pub fn fails(&mut self, bytes: &[u8]) -> (Error, u32) {
        let error = self.feed(bytes).expect_err("the connection fails");
        assert_eq!(self.client.process(self.now), Err(error), "errors stay");
        assert!(!self.client.wants_read());
        let last = self.frames().pop().expect("a GOAWAY");
        assert_eq!((last.kind, last.stream, last.payload.len()), (GOAWAY, 0, 8));
        (error, last.number())
    }

    /// Feeds bytes that reset one stream: gives the code of the RST_STREAM.
    pub fn resets(&mut self, stream: Stream, bytes: &[u8]) -> (Seen, u32) {
        self.ok(bytes);
        let frames = self.frames();
        let resets: Vec<_> = frames.iter().filter(|frame| frame.kind == RST_STREAM).collect();
        assert_eq!((resets.len(), resets[0].stream), (1, stream.id()), "{frames:?}");
        let code = resets[0].number();
        (self.events(stream).pop().expect("an error"), code)
    }

    /// The frames written since the last call.
    pub fn frames(&mut self) -> Vec<Frame> {
        let wire = written(&mut self.client, 5);
        self.wire.extend_from_slice(&wire);
        let frames = parse(&mut self.wire);
        assert!(self.wire.is_empty(), "frames are whole");
        frames
    }

    /// The kinds and streams of the frames written since the last call.
    pub fn kinds(&mut self) -> Vec<(u8, u32)> {
        self.frames().iter().map(|frame| (frame.kind, frame.stream)).collect()
    }

    pub fn events(&mut self, stream: Stream) -> Vec<Seen> {
        let mut log = Vec::new();
        drain(&mut self.client, stream, &mut log);
        log
    }

    pub fn try_open(&mut self, line: &RequestLine<'_>) -> Result<Stream, ApiMisuse> {
        self.client.open(line)
    }

    /// Opens a stream with a request of no fields.
    pub fn ask(&mut self, method: &Method, end: bool) -> Stream {
        let fields = Fields::new();
        self.try_open(&line(method, &fields, end)).expect("a stream")
    }

    /// Opens a stream with a GET, and writes it.
    pub fn get(&mut self) -> Stream {
        let stream = self.ask(&Method::GET, true);
        self.frames();
        stream
    }

    /// Opens a stream with a POST whose body is to come, and writes it.
    pub fn post(&mut self) -> Stream {
        let stream = self.ask(&Method::POST, false);
        self.frames();
        stream
    }

    pub fn send(&mut self, stream: Stream, len: usize) {
        self.client.send_data(stream, Bytes::from(vec![b'x'; len])).expect("an open body");
    }

    /// Lets time pass, and tells the client.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.client.handle_timeout(self.now);
    }

    /// The fields of a header block that the client wrote.
    pub fn decode(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let decoded = self.decoder.decode(block, |name, value| {
            fields.push((text(name), text(value)));
            Ok::<(), hpack::Error>(())
        });
        decoded.expect("a header block");
        fields
    }
}

pub fn line<'a>(method: &'a Method, fields: &'a Fields, end: bool) -> RequestLine<'a> {
    RequestLine {
        method,
        scheme: "https",
        authority: "example.com",
        path: "/",
        protocol: None,
        fields,
        end,
        weight: None,
    }
}

pub fn fields<const LEN: usize>(pairs: [(&str, &str); LEN]) -> Fields {
    Fields::try_from(pairs).expect("valid fields")
}

/// A head without fields.
pub fn head(status: u16) -> Seen {
    Seen::Head(status, Vec::new())
}

/// The length of the data in a log.
pub fn data_len(log: &[Seen]) -> usize {
    let len = |seen: &Seen| if let Seen::Data(data) = seen { data.len() } else { 0 };
    log.iter().map(len).sum()
}

/// Streams that are asked for before the server speaks: two GETs, a HEAD, an open POST.
pub fn asked() -> (Rig, Vec<Stream>) {
    let mut rig = Rig::ready();
    let streams = vec![rig.get(), rig.get(), rig.ask(&Method::HEAD, true), rig.post()];
    rig.frames();
    (rig, streams)
}

/// What is seen of `input` when it comes in pieces that end at `cuts`.
pub fn feed(input: &[u8], cuts: &[usize]) -> (Vec<Vec<Seen>>, Option<Error>) {
    let (mut rig, streams) = asked();
    let mut logs = vec![Vec::new(); streams.len()];
    let mut rest = input;
    let mut error = None;
    let ends = cuts.iter().map(|cut| Some(*cut)).chain([None]);
    for end in ends {
        let at = end.map_or(rest.len(), |cut| cut % (rest.len() + 1));
        let (piece, after) = rest.split_at(at);
        rest = after;
        error = rig.feed(piece).err().or(error);
        for (stream, log) in streams.iter().zip(&mut logs) {
            drain(&mut rig.client, *stream, log);
        }
        rig.frames();
    }
    rig.client.recv_eof();
    let ended = rig.client.process(rig.now).err();
    for (stream, log) in streams.iter().zip(&mut logs) {
        drain(&mut rig.client, *stream, log);
        rig.client.reset(*stream, Code::CANCEL);
    }
    rig.frames();
    assert_eq!(rig.client.open_streams(), 0);
    (logs, error.or(ended))
}
