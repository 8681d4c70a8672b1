//! A server that says back what it is told, made of the crate `tungstenite`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use clap::Args;
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

/// Where it listens.
#[derive(Args)]
pub(crate) struct Serve {
    /// Without TLS.
    #[arg(long)]
    plain: SocketAddr,
    /// With TLS.
    #[arg(long)]
    tls: SocketAddr,
    /// The certificate, PEM.
    #[arg(long)]
    cert: PathBuf,
    /// Its key, PEM.
    #[arg(long)]
    key: PathBuf,
}

pub(crate) async fn run(serve: &Serve) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(&serve.cert)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&serve.key)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let plain = TcpListener::bind(serve.plain).await.context("cannot listen")?;
    let secure = TcpListener::bind(serve.tls).await.context("cannot listen")?;
    loop {
        tokio::select! {
            taken = plain.accept() => {
                let stream = taken?.0;
                tokio::spawn(async move { told(answer(stream).await) });
            }
            taken = secure.accept() => {
                let (stream, acceptor) = (taken?.0, acceptor.clone());
                tokio::spawn(async move {
                    told(async { answer(acceptor.accept(stream).await?).await }.await);
                });
            }
        }
    }
}

/// A client's mistake is for the log.
fn told(done: Result<()>) {
    if let Err(error) = done {
        eprintln!("{error:#}");
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> Result<()> {
    let mut socket = accept_hdr_async(stream, choose).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

/// Takes the last subprotocol that is offered.
#[expect(clippy::result_large_err, reason = "it is the crate's own signature")]
fn choose(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let offered = request.headers().get("sec-websocket-protocol").and_then(|all| all.to_str().ok());
    let last =
        offered.and_then(|all| all.rsplit(',').next()).and_then(|one| one.trim().parse().ok());
    if let Some(last) = last {
        response.headers_mut().insert("sec-websocket-protocol", last);
    }
    Ok(response)
}
