//! hyper 1 without a pool: its client connections, each driven by a task of its own, as hyper's
//! documentation shows. Over HTTP/1.1 there is one for each exchange under way, over HTTP/2 one for all.

mod http1;
mod http2;

use std::{process::ExitCode, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{Uri, body::Incoming, http::uri::Scheme};
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Job, PeerError, Pieces, Protocol, Seen, Setup, locked,
    run_async,
};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "tokio's TcpStream and hyper's handshakes as they come" },
    Config { name: "best", about: "TCP_NODELAY; over HTTP/2 windows of 16 MiB, frames of 1 MiB" },
];

type Upload = Either<Full<Bytes>, Pieces>;

#[derive(Clone)]
enum Hyper {
    Http1(http1::Http1),
    Http2(http2::Http2),
}

/// Opens sockets.
#[derive(Clone)]
struct Dialer {
    best: bool,
    tls: TlsConnector,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Hyper {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let mut tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let http2 = setup.protocol == Protocol::Http2;
        if http2 {
            tls.alpn_protocols = vec![b"h2".to_vec()];
        }
        let dialer = Dialer { best: setup.config == "best", tls: Arc::new(tls).into() };
        Ok(match http2 {
            false => Self::Http1(http1::Http1::new(dialer, setup.cold)),
            true => Self::Http2(http2::Http2::new(dialer)),
        })
    }
}

impl Dialer {
    async fn connect(&self, uri: &Uri) -> Result<Socket, PeerError> {
        let authority = uri.authority().ok_or("the URL has no authority")?;
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tcp = TcpStream::connect((authority.host(), port)).await?;
        if self.best {
            tcp.set_nodelay(true)?;
        }
        if !secure {
            return Ok(Socket::Plain(tcp));
        }
        let name = ServerName::try_from(authority.host().to_owned())?;
        Ok(Socket::Tls(Box::new(self.tls.connect(name, tcp).await?)))
    }
}

impl AsyncPeer for Hyper {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        match self {
            Self::Http1(client) => client.exchange(ask, seen).await,
            Self::Http2(client) => client.exchange(ask, seen).await,
        }
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        let cold = job.cold && matches!(self, Self::Http2(_));
        cold.then(|| "over HTTP/2 it is one connection".to_owned())
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
