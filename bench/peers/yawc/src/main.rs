//! yawc 0.5, on rustls (ring), with simdutf8 and zlib-rs.

use std::{process::ExitCode, sync::Arc};

use futures_util::SinkExt;
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Job, Message, Own, PeerError, Protocol, Seen, Setup, locked, run_async,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
    },
};
use yawc::{Frame, OpCode, Options, TcpWebSocket, WebSocket};

const CONFIGS: &[Config] = &[
    Config {
        name: "default",
        about: "Options::default, text checked; with deflate its balanced compression",
    },
    Config {
        name: "best",
        about: "TCP_NODELAY, text checked; with deflate its low-latency compression",
    },
];

/// The largest message that is read: 1 MiB by default, of which the frame's head is a part.
const LARGEST: usize = 16 << 20;

#[derive(Clone)]
struct Yawc {
    options: Options,
    protocol: Protocol,
    tls: TlsConnector,
    socket: Own<Box<TcpWebSocket>>,
}

impl Yawc {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        // By default it hands out text that nobody looked at, which no other client does.
        let mut options = Options::default().with_utf8().with_limits(LARGEST, 2 * LARGEST);
        let best = setup.config == "best";
        if best {
            options = options.with_no_delay();
        }
        options = match (setup.protocol == Protocol::WebSocketDeflate, best) {
            (false, _) => options.without_compression(),
            (true, true) => options.with_low_latency_compression(),
            (true, false) => options.with_balanced_compression(),
        };
        Ok(Self {
            options,
            protocol: setup.protocol,
            tls: TlsConnector::from(Arc::new(tls)),
            socket: Own::default(),
        })
    }

    async fn connect(&self, url: &str) -> Result<Box<TcpWebSocket>, PeerError> {
        let builder = WebSocket::connect(url.parse()?)
            .with_options(self.options.clone())
            .with_connector(self.tls.clone());
        Ok(Box::new(builder.await?))
    }
}

impl AsyncPeer for Yawc {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.connect(ask.url).await?,
        };
        for message in messages.iter() {
            let frame = match message {
                Message::Text(text) => Frame::text(text.clone()),
                Message::Binary(bytes) => Frame::binary(bytes.clone()),
            };
            socket.feed(frame).await?;
        }
        socket.flush().await?;
        for _ in 0..messages.count() {
            let frame = socket.next_frame().await?;
            match frame.opcode() {
                OpCode::Text | OpCode::Binary => seen.message(frame.payload()),
                _ => return Err("not the echo of a message".into()),
            }
        }
        self.socket.keep(socket);
        Ok(())
    }

    fn unsupported(&self, _: &Job) -> Option<String> {
        (!self.protocol.is_web_socket()).then(|| "it speaks WebSocket only".to_owned())
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "yawc");
    run_async("yawc", &version, CONFIGS, Yawc::new)
}
