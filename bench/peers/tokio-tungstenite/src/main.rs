//! tokio-tungstenite 0.30, on rustls (ring).

use std::{process::ExitCode, sync::Arc};

use futures_util::{SinkExt, StreamExt};
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Job, Message, Messages, Own, PeerError, Protocol, Seen, Setup, locked,
    run_async,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config, tungstenite,
    tungstenite::protocol::WebSocketConfig,
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "connect_async as it comes" },
    Config {
        name: "best",
        about: "TCP_NODELAY, a read buffer of 4 KiB where that holds all that comes",
    },
];

/// What its documentation gives the read buffer of a connection with little to read; otherwise it is 128 KiB,
/// all of which is set to zero before each read.
const SMALL: usize = 4 * 1024;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

#[derive(Clone)]
struct Tungstenite {
    best: bool,
    protocol: Protocol,
    tls: Arc<ClientConfig>,
    socket: Own<Box<Socket>>,
}

impl Tungstenite {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            best: setup.config == "best",
            protocol: setup.protocol,
            tls: Arc::new(tls),
            socket: Own::default(),
        })
    }

    async fn connect(&self, url: &str, messages: &Messages) -> Result<Box<Socket>, PeerError> {
        let comes: usize = messages.iter().map(|message| message.as_bytes().len()).sum();
        let mut config = WebSocketConfig::default();
        if self.best && comes < SMALL {
            config = config.read_buffer_size(SMALL);
        }
        let tls = Connector::Rustls(self.tls.clone());
        let (socket, _) =
            connect_async_tls_with_config(url, Some(config), self.best, Some(tls)).await?;
        Ok(Box::new(socket))
    }
}

impl AsyncPeer for Tungstenite {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect(ask.url, messages).await?,
        };
        for message in messages.iter() {
            let message = match message {
                Message::Text(text) => tungstenite::Message::text(text.as_str()),
                Message::Binary(bytes) => tungstenite::Message::Binary(bytes.clone()),
            };
            socket.feed(message).await?;
        }
        socket.flush().await?;
        for _ in 0..messages.count() {
            match socket.next().await.ok_or("the connection is closed")?? {
                tungstenite::Message::Text(text) => seen.message(text.as_bytes()),
                tungstenite::Message::Binary(bytes) => seen.message(&bytes),
                _ => return Err("not the echo of a message".into()),
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
    let version = locked(include_str!("../Cargo.lock"), "tokio-tungstenite");
    run_async("tokio-tungstenite", &version, CONFIGS, Tungstenite::new)
}
