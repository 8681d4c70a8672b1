//! warpsock 4 (formerly Specter), on BoringSSL.

mod websocket;

use std::process::ExitCode;

use futures_util::TryStreamExt;
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Job, Outgoing, PeerError, Protocol, Seen, Setup, Upload,
    locked, run_async,
};
use warpsock::{Client, Error, HttpVersion};

const CONFIGS: &[Config] = &[
    Config {
        name: "default",
        about: "Client::builder as it comes (6 connections an origin, no timeouts), certificates \
                checked",
    },
    Config {
        name: "best",
        about: "one version only, no upgrade to HTTP/3, certificates checked; over HTTP/1.1 any number \
                of connections of which 1024 are kept",
    },
];

#[derive(Clone)]
struct Warpsock {
    client: Client,
    best: bool,
    protocol: Protocol,
    echo: websocket::Echo,
}

impl Warpsock {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        // For localhost it checks no certificate, which no other client is spared.
        let mut builder = Client::builder().localhost_allows_invalid_certs(false);
        if let Some(ca) = &setup.ca {
            builder = builder.add_root_certificate(ca.clone());
        }
        let (best, http2) = (setup.config == "best", setup.protocol == Protocol::Http2);
        if http2 {
            builder = builder.http2_prior_knowledge(true);
        }
        if best {
            builder = builder.h3_upgrade(false);
        }
        if best && !http2 {
            builder = builder.prefer_http2(false);
            builder = builder.h1_max_connections_per_origin(0).pool_max_idle_per_host(1024);
        }
        if setup.cold {
            builder = builder.pool_max_idle_per_host(0);
        }
        Ok(Self {
            client: builder.build()?,
            best,
            protocol: setup.protocol,
            echo: websocket::Echo::default(),
        })
    }
}

impl AsyncPeer for Warpsock {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        if self.protocol.is_web_socket() {
            return Box::pin(self.echo.exchange(&self.client, self.protocol, ask, seen)).await;
        }
        let streams = matches!(ask.upload, Outgoing::Stream(_)) || ask.deliver != Deliver::Bytes;
        let mut request = match ask.upload {
            Outgoing::None => self.client.get(ask.url),
            Outgoing::Known(bytes) => self.client.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => {
                self.client.post(ask.url).body_stream(pieces.map_err(Error::Io))
            }
        };
        match self.protocol {
            Protocol::Http2 => request = request.version(HttpVersion::Http2),
            _ if self.best => request = request.version(HttpVersion::Http1_1),
            _ => {}
        }
        if !streams {
            let response = request.send().await?;
            seen.status(response.status_code());
            seen.whole(&response.bytes()?);
            return Ok(());
        }
        let mut response = request.send_streaming().await?;
        seen.status(response.status_code());
        let body = response.body_mut();
        if ask.deliver == Deliver::Bytes {
            seen.whole(&body.collect_to_bytes().await?);
            return Ok(());
        }
        while let Some(piece) = body.chunk().await {
            seen.piece(&piece?);
        }
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        let streams = matches!(job.upload, Upload::Chunked(_) | Upload::Paced { .. })
            || job.deliver != Deliver::Bytes;
        match self.protocol {
            Protocol::Http1 if self.best => None,
            Protocol::Http1 if streams => Some("by default it streams over HTTP/2 only".to_owned()),
            Protocol::Http2 if streams && job.url.starts_with("http:") => {
                Some("over h2c it does not stream: it looks for what ALPN said".to_owned())
            }
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "warpsock");
    run_async("warpsock", &version, CONFIGS, Warpsock::new)
}
