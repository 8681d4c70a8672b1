//! The floor of WebSocket: frames that were made and masked beforehand in one write, and reads until all of
//! their echo is there.

use std::io::IoSlice;

use boring::ssl::{SslConnector, SslStream};
use mimus_bench_kit::{
    Ask, AsyncPeer, BlockingPeer, Job, Message, Messages, Own, PeerError, Protocol, Seen,
};
use tokio::net::TcpStream;

use crate::{
    reply::READ,
    request::Request,
    socket::{Socket, Tls, at_once},
};

/// What everything is masked with.
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A connection that blocks.
pub struct Blocking {
    tls: Option<SslConnector>,
    protocol: Protocol,
    open: Option<BlockingConnection>,
}

enum BlockingConnection {
    Plain(Open<std::net::TcpStream>),
    Tls(Open<Tls<SslStream<std::net::TcpStream>>>),
}

impl Blocking {
    pub fn new(tls: Option<SslConnector>, protocol: Protocol) -> Self {
        Self { tls, protocol, open: None }
    }

    fn connect(&self, url: &str) -> Result<BlockingConnection, PeerError> {
        let request = Request::web_socket(url)?;
        let plain = std::net::TcpStream::connect(&request.addresses[..])?;
        plain.set_nodelay(true)?;
        match (request.tls, &self.tls) {
            (false, _) => Ok(BlockingConnection::Plain(at_once(Open::new(plain, &request))?)),
            (true, Some(tls)) => {
                let socket = tls.connect(&request.host, plain).map_err(|e| e.to_string())?;
                Ok(BlockingConnection::Tls(at_once(Open::new(Tls::new(socket), &request))?))
            }
            (true, None) => Err("wss without --ca".into()),
        }
    }
}

impl BlockingPeer for Blocking {
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect(ask.url)?,
        };
        match &mut open {
            BlockingConnection::Plain(open) => at_once(open.exchange(messages, seen))?,
            BlockingConnection::Tls(open) => at_once(open.exchange(messages, seen))?,
        }
        self.open = Some(open);
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        unsupported(self.protocol, job)
    }
}

/// On tokio: a connection for each exchange under way.
#[derive(Clone)]
pub struct Awaited {
    tls: Option<SslConnector>,
    protocol: Protocol,
    open: Own<Connection>,
}

enum Connection {
    Plain(Open<TcpStream>),
    Tls(Box<Open<Tls<tokio_boring::SslStream<TcpStream>>>>),
}

impl Awaited {
    pub fn new(tls: Option<SslConnector>, protocol: Protocol) -> Self {
        Self { tls, protocol, open: Own::default() }
    }

    async fn connect(&self, url: &str) -> Result<Connection, PeerError> {
        let request = Request::web_socket(url)?;
        let plain = TcpStream::connect(&request.addresses[..]).await?;
        plain.set_nodelay(true)?;
        match (request.tls, &self.tls) {
            (false, _) => Ok(Connection::Plain(Open::new(plain, &request).await?)),
            (true, Some(tls)) => {
                let socket = tokio_boring::connect(tls.configure()?, &request.host, plain);
                let socket = Tls::new(socket.await.map_err(|e| e.to_string())?);
                Ok(Connection::Tls(Box::new(Open::new(socket, &request).await?)))
            }
            (true, None) => Err("wss without --ca".into()),
        }
    }
}

impl AsyncPeer for Awaited {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect(ask.url).await?,
        };
        match &mut open {
            Connection::Plain(open) => open.exchange(messages, seen).await?,
            Connection::Tls(open) => open.exchange(messages, seen).await?,
        }
        self.open.keep(open);
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        unsupported(self.protocol, job)
    }
}

fn unsupported(protocol: Protocol, job: &Job) -> Option<String> {
    match (protocol, job.cold) {
        (Protocol::WebSocketDeflate, _) => Some("it compresses nothing".to_owned()),
        (_, true) => Some("its connections are open".to_owned()),
        _ => None,
    }
}

/// A WebSocket.
struct Open<S> {
    socket: S,
    /// What was made for the messages of an exchange, by where they begin among those that differ.
    made: Vec<Option<Made>>,
    /// Where the echo is read to.
    room: Vec<u8>,
}

/// The frames of an exchange.
struct Made {
    wire: Vec<u8>,
    /// Of each frame that comes back, the length of its head, and its payload's.
    back: Vec<(Head, usize)>,
    /// Bytes that come back.
    length: usize,
}

/// The head of a frame that is not masked.
struct Head {
    bytes: [u8; 10],
    length: usize,
}

impl Head {
    /// RFC 6455 section 5.2.
    fn of(message: &Message) -> Self {
        let first = match message {
            Message::Text(_) => 0x81,
            Message::Binary(_) => 0x82,
        };
        let size = message.as_bytes().len();
        let mut bytes = [0; 10];
        bytes[0] = first;
        let length = match size {
            ..126 => {
                bytes[1] = size as u8;
                2
            }
            126..65_536 => {
                bytes[1] = 126;
                bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
                4
            }
            _ => {
                bytes[1] = 127;
                bytes[2..].copy_from_slice(&(size as u64).to_be_bytes());
                10
            }
        };
        Self { bytes, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Made {
    fn new(messages: &Messages) -> Self {
        let mut made = Self { wire: Vec::new(), back: Vec::new(), length: 0 };
        for message in messages.iter() {
            let (head, payload) = (Head::of(message), message.as_bytes());
            made.wire.extend_from_slice(head.as_bytes());
            let second = made.wire.len() - head.length + 1;
            made.wire[second] |= 0x80;
            made.wire.extend_from_slice(&KEY);
            made.wire.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
            made.length += head.length + payload.len();
            made.back.push((head, payload.len()));
        }
        made
    }
}

impl<S: Socket> Open<S> {
    async fn new(mut socket: S, request: &Request) -> Result<Self, PeerError> {
        socket.write(&mut [IoSlice::new(&request.head)]).await?;
        let mut head = Vec::with_capacity(READ);
        while !head.ends_with(b"\r\n\r\n") {
            if socket.read_to(&mut head, READ).await? == 0 {
                return Err("the server closed the connection within its head".into());
            }
        }
        match head.starts_with(b"HTTP/1.1 101 ") {
            true => Ok(Self { socket, made: Vec::new(), room: Vec::new() }),
            false => Err("the server does not speak WebSocket here".into()),
        }
    }

    async fn exchange(&mut self, messages: &Messages, seen: &mut Seen) -> Result<(), PeerError> {
        let place = messages.place();
        if self.made.len() <= place {
            self.made.resize_with(place + 1, || None);
        }
        let made = self.made[place].get_or_insert_with(|| Made::new(messages));
        self.socket.write(&mut [IoSlice::new(&made.wire)]).await?;
        // One byte more than comes, so that a read takes all there is.
        self.room.resize(self.room.len().max(made.length + 1), 0);
        let mut came = 0;
        while came < made.length {
            let end = self.room.len().min(came + READ);
            match self.socket.read(&mut self.room[came..end]).await? {
                0 => return Err("the server closed the connection".into()),
                read => came += read,
            }
        }
        let mut rest = &self.room[..came];
        for (head, length) in &made.back {
            let frame = rest.split_at_checked(head.length + length);
            let (frame, after) = frame.ok_or("a frame is not as long as its message")?;
            let payload = frame.strip_prefix(head.as_bytes()).ok_or("a frame has another head")?;
            seen.message(payload);
            rest = after;
        }
        if rest.is_empty() { Ok(()) } else { Err("more came than was sent".into()) }
    }
}
