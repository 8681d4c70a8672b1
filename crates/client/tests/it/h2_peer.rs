//! A server of HTTP/2 that says what a test tells it to, frame by frame.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// RFC 7541 appendix A: `:status: 200`.
pub const OK: &[u8] = &[0x88];

/// Everything must be over within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// A frame that came.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The server's end of one connection, its client's preface read.
pub struct Peer(pub TcpStream);

impl Peer {
    /// Reads the preface, without which it is not HTTP/2.
    pub fn new(mut stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        Peer(stream)
    }

    pub fn say(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        // The client may be gone: what that means is for the test to say.
        let _ = self.0.write_all(&frame);
    }

    /// SETTINGS with these, and the acknowledgement of the client's.
    pub fn greet(&mut self, settings: &[(u16, u32)]) {
        let setting =
            |&(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        self.say(SETTINGS, 0, 0, &settings.iter().flat_map(setting).collect::<Vec<_>>());
        self.say(SETTINGS, ACK, 0, &[]);
    }

    /// The next frame; `None` when the client has left.
    pub fn hear(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame of this kind.
    pub fn hear_a(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.hear().expect("the client is there");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads until the client leaves.
    pub fn hear_out(&mut self) {
        while self.hear().is_some() {}
    }
}

/// Has `talk` talk on each connection, with its number; gives the URL.
pub fn serve(talk: impl Fn(usize, Peer) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            talk(number, Peer::new(stream.unwrap()));
        }
    });
    format!("http://{addr}/")
}
