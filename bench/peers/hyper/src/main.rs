//! hyper 1 without a pool: `client::conn::http1` on a connection for each exchange under way, each
//! connection driven by a task of its own, as hyper's documentation shows.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Method, Request, Uri,
    body::Incoming,
    client::conn::http1::{Builder, SendRequest},
    header::HOST,
    http::uri::{Authority, Scheme},
};
use hyper_util::rt::TokioIo;
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Outgoing, PeerError, Pieces, Seen, Setup, locked,
    run_async,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
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
    Config { name: "default", about: "tokio's TcpStream and http1::handshake as they come" },
    Config { name: "best", about: "TCP_NODELAY, read buffer that may grow to 1 MiB" },
];

type Upload = Either<Full<Bytes>, Pieces>;

#[derive(Clone)]
struct Hyper {
    best: bool,
    cold: bool,
    tls: TlsConnector,
    idle: Arc<Mutex<Vec<Lane>>>,
}

/// A connection, and where it leads.
struct Lane {
    secure: bool,
    authority: Authority,
    sender: SendRequest<Upload>,
}

impl Hyper {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            best: setup.config == "best",
            cold: setup.cold,
            tls: Arc::new(tls).into(),
            idle: Arc::default(),
        })
    }

    fn take(&self, uri: &Uri) -> Option<Lane> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(lane) = idle.pop() {
            if lane.leads_to(uri) && !lane.sender.is_closed() {
                return Some(lane);
            }
        }
        None
    }

    fn keep(&self, lane: Lane) {
        if !self.cold {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Lane, PeerError> {
        let authority = uri.authority().ok_or("the URL has no authority")?.clone();
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tcp = TcpStream::connect((authority.host(), port)).await?;
        if self.best {
            tcp.set_nodelay(true)?;
        }
        let sender = if secure {
            let name = ServerName::try_from(authority.host().to_owned())?;
            self.handshake(self.tls.connect(name, tcp).await?).await?
        } else {
            self.handshake(tcp).await?
        };
        Ok(Lane { secure, authority, sender })
    }

    async fn handshake<S>(&self, socket: S) -> Result<SendRequest<Upload>, PeerError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new();
        if self.best {
            builder.max_buf_size(1024 * 1024);
        }
        let (sender, connection) = builder.handshake(TokioIo::new(socket)).await?;
        // What goes wrong in the task, the exchange gets to know as an error of its own.
        tokio::spawn(async move { connection.await.unwrap_or_default() });
        Ok(sender)
    }
}

impl Lane {
    fn leads_to(&self, uri: &Uri) -> bool {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        self.secure == secure && uri.authority() == Some(&self.authority)
    }
}

impl AsyncPeer for Hyper {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let uri: Uri = ask.url.parse()?;
        let mut lane = match self.take(&uri) {
            Some(lane) => lane,
            None => self.connect(&uri).await?,
        };
        let (method, body) = match ask.upload {
            Outgoing::None => (Method::GET, Either::Left(Full::default())),
            Outgoing::Known(bytes) => (Method::POST, Either::Left(Full::new(bytes))),
            Outgoing::Stream(pieces) => (Method::POST, Either::Right(pieces)),
        };
        let request = Request::builder()
            .method(method)
            .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, lane.authority.as_str())
            .body(body)?;
        lane.sender.ready().await?;
        let response = lane.sender.send_request(request).await?;
        seen.status(response.status().as_u16());
        receive(response.into_body(), ask.deliver, seen).await?;
        self.keep(lane);
        Ok(())
    }
}

async fn receive(mut body: Incoming, deliver: Deliver, seen: &mut Seen) -> Result<(), PeerError> {
    if deliver == Deliver::Bytes {
        seen.whole(&body.collect().await?.to_bytes());
        return Ok(());
    }
    while let Some(frame) = body.frame().await {
        if let Some(piece) = frame?.data_ref() {
            seen.piece(piece);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "hyper");
    run_async("hyper", &version, CONFIGS, Hyper::new)
}
