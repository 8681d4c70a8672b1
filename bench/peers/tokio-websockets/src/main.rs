//! tokio-websockets 0.13, on rustls (ring), with the fast source of mask keys that its README tells of.

use std::{process::ExitCode, sync::Arc};

use futures_util::{SinkExt, StreamExt};
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Job, Own, PeerError, Protocol, Seen, Setup, locked, run_async,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
    },
};
use tokio_websockets::{ClientBuilder, Connector, MaybeTlsStream, Message, WebSocketStream};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "ClientBuilder as it comes" },
    Config { name: "best", about: "TCP_NODELAY" },
];

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

#[derive(Clone)]
struct TokioWebsockets {
    best: bool,
    protocol: Protocol,
    tls: Arc<Connector>,
    socket: Own<Box<Socket>>,
}

impl TokioWebsockets {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            best: setup.config == "best",
            protocol: setup.protocol,
            tls: Arc::new(Connector::Rustls(TlsConnector::from(Arc::new(tls)))),
            socket: Own::default(),
        })
    }

    async fn connect(&self, url: &str) -> Result<Box<Socket>, PeerError> {
        let builder = ClientBuilder::new().uri(url)?.connector(&self.tls);
        let (mut socket, _) = builder.connect().await?;
        if self.best {
            match socket.get_mut() {
                MaybeTlsStream::Plain(tcp) => tcp.set_nodelay(true)?,
                MaybeTlsStream::Rustls(tls) => tls.get_ref().0.set_nodelay(true)?,
            }
        }
        Ok(Box::new(socket))
    }
}

impl AsyncPeer for TokioWebsockets {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect(ask.url).await?,
        };
        for message in messages.iter() {
            let message = match message {
                mimus_bench_kit::Message::Text(text) => Message::text(text.clone()),
                mimus_bench_kit::Message::Binary(bytes) => Message::binary(bytes.clone()),
            };
            socket.feed(message).await?;
        }
        socket.flush().await?;
        for _ in 0..messages.count() {
            let message = socket.next().await.ok_or("the connection is closed")??;
            if !message.is_text() && !message.is_binary() {
                return Err("not the echo of a message".into());
            }
            seen.message(message.as_payload());
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
    let version = locked(include_str!("../Cargo.lock"), "tokio-websockets");
    run_async("tokio-websockets", &version, CONFIGS, TokioWebsockets::new)
}
