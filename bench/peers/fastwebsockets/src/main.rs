//! fastwebsockets 0.10: its handshake by hyper, TLS by tokio-rustls (ring).

use std::{process::ExitCode, sync::Arc};

use fastwebsockets::{FragmentCollector, Frame, OpCode, Payload, Role, WebSocket, handshake};
use http::{
    Request,
    header::{CONNECTION, HOST, UPGRADE},
};
use http_body_util::Empty;
use hyper::{body::Bytes, upgrade::Upgraded};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Job, Message, Own, PeerError, Protocol, Seen, Setup, locked, run_async,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufWriter},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "handshake::client as it comes, FragmentCollector" },
    Config {
        name: "best",
        about: "TCP_NODELAY; frames gathered in a BufWriter and flushed; read_frame without a collector",
    },
];

/// What is gathered at most.
const BUFFER: usize = 64 * 1024;

enum Socket {
    Default(FragmentCollector<TokioIo<Upgraded>>),
    Best(WebSocket<BufWriter<TokioIo<Upgraded>>>),
}

#[derive(Clone)]
struct Fast {
    best: bool,
    protocol: Protocol,
    tls: TlsConnector,
    socket: Own<Box<Socket>>,
}

impl Fast {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            best: setup.config == "best",
            protocol: setup.protocol,
            tls: TlsConnector::from(Arc::new(tls)),
            socket: Own::default(),
        })
    }

    async fn connect(&self, url: &str) -> Result<Box<Socket>, PeerError> {
        let (scheme, rest) = url.split_once("://").ok_or("not a URL")?;
        let (authority, path) = rest.split_at(rest.find('/').ok_or("the URL has no path")?);
        let stream = TcpStream::connect(authority).await?;
        if self.best {
            stream.set_nodelay(true)?;
        }
        if scheme == "ws" {
            return self.open(path, authority, stream).await;
        }
        let name = authority.split(':').next().unwrap_or(authority).to_owned();
        let stream = self.tls.connect(ServerName::try_from(name)?, stream).await?;
        self.open(path, authority, stream).await
    }

    async fn open<S>(&self, path: &str, host: &str, stream: S) -> Result<Box<Socket>, PeerError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let request = Request::get(path)
            .header(HOST, host)
            .header(UPGRADE, "websocket")
            .header(CONNECTION, "upgrade")
            .header("Sec-WebSocket-Key", handshake::generate_key())
            .header("Sec-WebSocket-Version", "13")
            .body(Empty::<Bytes>::new())?;
        let (socket, _) = handshake::client(&TokioExecutor::new(), request, stream).await?;
        if !self.best {
            return Ok(Box::new(Socket::Default(FragmentCollector::new(socket))));
        }
        let stream = BufWriter::with_capacity(BUFFER, socket.into_inner());
        Ok(Box::new(Socket::Best(WebSocket::after_handshake(stream, Role::Client))))
    }
}

fn frame(message: &Message) -> Frame<'_> {
    match message {
        Message::Text(text) => Frame::text(Payload::Borrowed(text.as_bytes())),
        Message::Binary(bytes) => Frame::binary(Payload::Borrowed(bytes)),
    }
}

fn tell(frame: &Frame<'_>, seen: &mut Seen) -> Result<(), PeerError> {
    match frame.opcode {
        OpCode::Text | OpCode::Binary if frame.fin => seen.message(&frame.payload),
        _ => return Err("not the echo of a message".into()),
    }
    Ok(())
}

impl AsyncPeer for Fast {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect(ask.url).await?,
        };
        match &mut *socket {
            Socket::Default(socket) => {
                for message in messages.iter() {
                    socket.write_frame(frame(message)).await?;
                }
                for _ in 0..messages.count() {
                    tell(&socket.read_frame().await?, seen)?;
                }
            }
            Socket::Best(socket) => {
                for message in messages.iter() {
                    socket.write_frame(frame(message)).await?;
                }
                socket.flush().await?;
                for _ in 0..messages.count() {
                    tell(&socket.read_frame().await?, seen)?;
                }
            }
        }
        self.socket.keep(socket);
        Ok(())
    }

    fn unsupported(&self, _: &Job) -> Option<String> {
        match self.protocol {
            Protocol::WebSocket => None,
            Protocol::WebSocketDeflate => Some("it has no permessage-deflate".to_owned()),
            _ => Some("it speaks WebSocket only".to_owned()),
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "fastwebsockets");
    run_async("fastwebsockets", &version, CONFIGS, Fast::new)
}
