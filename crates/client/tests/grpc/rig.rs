//! A peer that speaks gRPC over chunked HTTP/1.1, byte by byte as a test wants, and shares no code with
//! what it judges.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use mimus::{
    Client, Version,
    grpc::{Channel, Prost},
};

/// Longer than any test takes that does not hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message with a text and a number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Note {
    #[prost(string, tag = "1")]
    pub text: String,
    #[prost(uint32, tag = "2")]
    pub number: u32,
}

pub fn note(text: &str, number: u32) -> Note {
    Note { text: text.to_owned(), number }
}

/// The codec of notes both ways.
pub const NOTES: Prost<Note, Note> = Prost::new();

/// A request that came, and the connection it came by.
pub struct Peer {
    stream: BufReader<TcpStream>,
    /// The request line and the fields, as they came.
    pub head: String,
    body: Body,
    /// How many bytes each write has at most.
    pub drip: usize,
}

enum Body {
    Length(usize),
    /// So much is left of a chunk.
    Chunk(usize),
    Over,
}

impl Peer {
    fn accept(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut peer = Peer {
            stream: BufReader::new(stream),
            head: String::new(),
            body: Body::Over,
            drip: usize::MAX,
        };
        while !peer.head.ends_with("\r\n\r\n") {
            if peer.stream.read_line(&mut peer.head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        peer.body = match peer.field("content-length") {
            Some(length) => Body::Length(length.parse().expect("a number")),
            None => Body::Chunk(0),
        };
        Ok(peer)
    }

    /// The value of a field of the request.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        pairs.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn fill(&mut self, mut to: &mut [u8]) -> io::Result<bool> {
        while !to.is_empty() {
            let room = match self.body {
                Body::Over | Body::Length(0) => return Ok(false),
                Body::Length(left) => left.min(to.len()),
                Body::Chunk(0) => {
                    let mut line = String::new();
                    while line.trim().is_empty() {
                        line.clear();
                        if self.stream.read_line(&mut line)? == 0 {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                    let size = usize::from_str_radix(line.trim(), 16).expect("a chunk size");
                    self.body = if size == 0 { Body::Over } else { Body::Chunk(size) };
                    continue;
                }
                Body::Chunk(left) => left.min(to.len()),
            };
            self.stream.read_exact(&mut to[..room])?;
            to = &mut to[room..];
            match &mut self.body {
                Body::Length(left) | Body::Chunk(left) => *left -= room,
                Body::Over => {}
            }
        }
        Ok(true)
    }

    /// The next message of the request with its flag; `None` at its end, or when the client went away.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut prefix = [0; 5];
        if !self.fill(&mut prefix).ok()? {
            return None;
        }
        let length = u32::from_be_bytes(prefix[1..].try_into().expect("four bytes"));
        let mut message = vec![0; length as usize];
        self.fill(&mut message).ok()?;
        Some((prefix[0], message))
    }

    /// The next message as a note.
    pub fn note(&mut self) -> Option<Note> {
        let (flag, bytes) = self.receive()?;
        assert_eq!(flag, 0);
        Some(prost::Message::decode(&bytes[..]).expect("a note"))
    }

    /// Whether the client closes the connection, whatever it sends before.
    pub fn hears_the_end(&mut self) -> bool {
        match io::copy(&mut self.stream, &mut io::sink()) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Whether the client has closed the connection, without waiting for that.
    pub fn closed(&mut self) -> bool {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true).expect("a socket");
        let closed = matches!(stream.peek(&mut [0]), Ok(0))
            || stream.peek(&mut [0]).is_err_and(|e| e.kind() != io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).expect("a socket");
        closed
    }

    /// Writes, in pieces if they are asked for. A client that went away is the test's business.
    pub fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.drip.min(bytes.len().max(1))) {
            let _ = self.stream.get_mut().write_all(piece);
        }
    }

    /// A head of these fields, with a chunked body behind it.
    pub fn head(&mut self, status: u16, fields: &[(&str, &str)]) {
        let mut head =
            format!("HTTP/1.1 {status} x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n");
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(format!("{head}\r\n").as_bytes());
    }

    /// The usual head.
    pub fn ok(&mut self) {
        self.head(200, &[("content-type", "application/grpc+proto")]);
    }

    /// A chunk of the body.
    pub fn chunk(&mut self, bytes: &[u8]) {
        let size = format!("{:x}\r\n", bytes.len());
        self.write(&[size.as_bytes(), bytes, b"\r\n"].concat());
    }

    /// A message, in a chunk of its own.
    pub fn message(&mut self, flag: u8, bytes: &[u8]) {
        self.chunk(&framed(flag, bytes));
    }

    pub fn send(&mut self, note: &Note) {
        self.message(0, &prost::Message::encode_to_vec(note));
    }

    /// The end, with these trailers.
    pub fn end(&mut self, trailers: &[(&str, &str)]) {
        let lines: String =
            trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.write(format!("0\r\n{lines}\r\n").as_bytes());
    }

    /// Success.
    pub fn done(&mut self) {
        self.end(&[("grpc-status", "0")]);
    }
}

pub fn framed(flag: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a short message").to_be_bytes();
    [&[flag][..], &length, bytes].concat()
}

/// Starts a peer that does `serve` for each request, and tells where it is.
pub fn peer(serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || {
                if let Ok(mut peer) = Peer::accept(stream) {
                    serve(&mut peer);
                }
            });
        }
    });
    format!("http://{address}")
}

/// A client of no proxies.
pub fn client() -> Client {
    Client::builder().no_proxy().build().expect("the settings are valid")
}

/// A channel to such a peer.
pub fn channel(serve: impl Fn(&mut Peer) + Send + Sync + 'static) -> Channel {
    channel_to(&client(), &peer(serve))
}

/// A channel of `client` to such a peer.
pub fn channel_to(client: &Client, peer: &str) -> Channel {
    client.grpc(peer).expect("a URL").version(Version::HTTP_11)
}

/// `future`'s output, or a failed test when it hangs.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not hang")
}
