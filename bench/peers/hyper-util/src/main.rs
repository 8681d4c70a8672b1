//! hyper-util's legacy client: hyper with a connection pool.

use std::process::ExitCode;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{Method, Request, body::Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Outgoing, PeerError, Pieces, Protocol, Seen, Setup,
    locked, run_async,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "HttpConnector and Client::builder as they come" },
    Config { name: "best", about: "TCP_NODELAY; over HTTP/2 frames of 64 KiB" },
];

/// What `best` lets the server send in one frame over HTTP/2.
const FRAME: u32 = 64 << 10;

#[derive(Clone)]
struct HyperUtil(Client<HttpsConnector<HttpConnector>, Either<Full<Bytes>, Pieces>>);

impl HyperUtil {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        let mut builder = Client::builder(TokioExecutor::new());
        let http2 = setup.protocol == Protocol::Http2;
        builder.http2_only(http2);
        if setup.config == "best" {
            http.set_nodelay(true);
            builder.http2_max_frame_size(FRAME);
        }
        if setup.cold {
            builder.pool_max_idle_per_host(0);
        }
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = match http2 {
            false => connector.enable_http1().wrap_connector(http),
            true => connector.enable_http2().wrap_connector(http),
        };
        Ok(Self(builder.build(connector)))
    }
}

impl AsyncPeer for HyperUtil {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let (method, body) = match ask.upload {
            Outgoing::None => (Method::GET, Either::Left(Full::default())),
            Outgoing::Known(bytes) => (Method::POST, Either::Left(Full::new(bytes))),
            Outgoing::Stream(pieces) => (Method::POST, Either::Right(pieces)),
        };
        let request = Request::builder().method(method).uri(ask.url).body(body)?;
        let response = self.0.request(request).await?;
        seen.status(response.status().as_u16());
        receive(response.into_body(), ask.deliver, seen).await
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
    let version = locked(include_str!("../Cargo.lock"), "hyper-util");
    run_async("hyper-util", &version, CONFIGS, HyperUtil::new)
}
