//! A server of one's own, and a client that sends what it is told to.

#![expect(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use boring::ssl::{SslConnector, SslMethod, SslStream, SslVersion};

/// Longer than anything here takes; a test that hangs ends with an error.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server. It ends with this.
pub struct Server {
    child: Child,
    plain: SocketAddr,
    tls: SocketAddr,
    pub h2c: SocketAddr,
    h2: SocketAddr,
    connector: SslConnector,
}

impl Server {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ca = dir.path().join("ca.pem");
        let mut child = Command::new(env!("CARGO_BIN_EXE_bench-server"))
            .arg("--ca-out")
            .arg(&ca)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let urls: serde_json::Value = serde_json::from_str(&line).unwrap();
        let plain = |key| {
            let url: &str = serde_json::Value::as_str(&urls[key]).unwrap();
            url.strip_prefix("http://").unwrap().parse().unwrap()
        };
        let secure = |key| {
            let url: &str = serde_json::Value::as_str(&urls[key]).unwrap();
            let port = url.strip_prefix("https://localhost:").unwrap();
            format!("127.0.0.1:{port}").parse().unwrap()
        };
        let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
        connector.set_ca_file(&ca).unwrap();
        connector.set_alpn_protos(b"\x02h2\x08http/1.1").unwrap();
        Self {
            child,
            plain: plain("http"),
            tls: secure("https"),
            h2c: plain("h2c"),
            h2: secure("h2"),
            connector: connector.build(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn tcp(&self) -> TcpStream {
        connect(self.plain)
    }

    pub fn tls_socket(&self) -> TcpStream {
        connect(self.tls)
    }

    pub fn ssl(&self) -> SslStream<TcpStream> {
        self.connector.connect("localhost", connect(self.tls)).unwrap()
    }

    pub fn h2(&self) -> SslStream<TcpStream> {
        self.connector.connect("localhost", connect(self.h2)).unwrap()
    }

    pub fn connect(&self, to: SocketAddr) -> TcpStream {
        connect(to)
    }

    pub fn plain(&self) -> Client {
        Client::new(self.tcp())
    }

    pub fn tls(&self) -> Client {
        let stream = self.ssl();
        assert_eq!(stream.ssl().version2(), Some(SslVersion::TLS1_3));
        assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"http/1.1"[..]));
        Client::new(stream)
    }

    /// One of each.
    pub fn both(&self) -> [Client; 2] {
        [self.plain(), self.tls()]
    }

    /// Ends its input, and waits for its end.
    pub fn end(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A connection.
pub struct Client(BufReader<Box<dyn Stream>>);

/// An answer.
pub struct Answer {
    pub status: u16,
    /// Lower case, a line each.
    pub fields: String,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self(BufReader::new(Box::new(stream)))
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
        self.0.get_mut().flush().unwrap();
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        self.answer()
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "{line:?}");
        line.truncate(line.len() - 2);
        line
    }

    /// The status and the fields.
    pub fn head(&mut self) -> (u16, String) {
        let status = self.line()["HTTP/1.1 ".len()..][..3].parse().unwrap();
        let mut fields = String::new();
        loop {
            match self.line() {
                line if line.is_empty() => return (status, fields),
                line => fields += &(line.to_lowercase() + "\n"),
            }
        }
    }

    /// One chunk; the last is empty.
    pub fn chunk(&mut self) -> Vec<u8> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        let data = self.read(size);
        assert_eq!(self.line(), "");
        data
    }

    pub fn answer(&mut self) -> Answer {
        let (status, fields) = self.head();
        let body = match fields.lines().find_map(|field| field.strip_prefix("content-length: ")) {
            Some(length) => self.read(length.parse().unwrap()),
            None => {
                assert!(fields.contains("transfer-encoding: chunked\n"), "{fields}");
                std::iter::from_fn(|| Some(self.chunk()).filter(|chunk| !chunk.is_empty()))
                    .flatten()
                    .collect()
            }
        };
        Answer { status, fields, body }
    }

    pub fn read(&mut self, size: usize) -> Vec<u8> {
        let mut data = vec![0; size];
        self.0.read_exact(&mut data).unwrap();
        data
    }

    /// Nothing more comes, and the server said so in order.
    pub fn is_closed(&mut self) -> bool {
        self.0.read(&mut [0]).unwrap() == 0
    }
}

/// Nanoseconds of the clock that stamps are made with.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
