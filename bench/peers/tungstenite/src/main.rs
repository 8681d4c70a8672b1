//! tungstenite 0.30, blocking, on rustls (ring).

use std::{io, net::TcpStream, process::ExitCode, sync::Arc};

use mimus_bench_kit::{
    Ask, BlockingPeer, Config, Job, Message, PeerError, Protocol, Seen, Setup, locked, run_blocking,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tungstenite::{
    Connector, WebSocket, client_tls_with_config, protocol::WebSocketConfig, stream::MaybeTlsStream,
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "its settings as they come, TCP_NODELAY" },
    Config {
        name: "best",
        about: "TCP_NODELAY, a read buffer of 4 KiB where that holds all that comes",
    },
];

/// What its documentation gives the read buffer of a connection with little to read; otherwise it is 128 KiB,
/// all of which is set to zero before each read.
const SMALL: usize = 4 * 1024;

type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

struct Tungstenite {
    best: bool,
    protocol: Protocol,
    tls: Arc<ClientConfig>,
    socket: Option<Socket>,
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
            socket: None,
        })
    }

    fn connect(&self, url: &str, comes: usize) -> Result<Socket, PeerError> {
        let address = url.split('/').nth(2).ok_or("the URL names no host")?;
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut config = WebSocketConfig::default();
        if self.best && comes < SMALL {
            config = config.read_buffer_size(SMALL);
        }
        let connector = Connector::Rustls(self.tls.clone());
        let (socket, _) = client_tls_with_config(url, stream, Some(config), Some(connector))
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(socket)
    }
}

impl BlockingPeer for Tungstenite {
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let comes = messages.iter().map(|message| message.as_bytes().len()).sum();
                self.connect(ask.url, comes)?
            }
        };
        for message in messages.iter() {
            socket.write(match message {
                Message::Text(text) => tungstenite::Message::text(text.as_str()),
                Message::Binary(bytes) => tungstenite::Message::Binary(bytes.clone()),
            })?;
        }
        socket.flush()?;
        for _ in 0..messages.count() {
            match socket.read()? {
                tungstenite::Message::Text(text) => seen.message(text.as_bytes()),
                tungstenite::Message::Binary(bytes) => seen.message(&bytes),
                _ => return Err("not the echo of a message".into()),
            }
        }
        self.socket = Some(socket);
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
    let version = locked(include_str!("../Cargo.lock"), "tungstenite");
    run_blocking("tungstenite", &version, CONFIGS, Tungstenite::new)
}
