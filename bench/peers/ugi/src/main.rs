//! ugi 0.2, which brings its own reactor, on async-tls.

use std::process::ExitCode;

use futures_util::{StreamExt, TryStreamExt};
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Outgoing, PeerError, Seen, Setup, locked, run_async,
};
use ugi::{Client, CompressionMode, Error, ErrorKind, RootStore};

const CONFIGS: &[Config] = &[
    Config {
        name: "default",
        about: "Client::builder as it comes (8 idle connections), and the CA",
    },
    Config {
        name: "best",
        about: "HTTP/1.1 only, no decoding, 1024 idle connections, TCP_NODELAY (always)",
    },
];

#[derive(Clone)]
struct Ugi(Client);

impl Ugi {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut builder = Client::builder();
        if let Some(ca) = &setup.ca {
            builder = builder.root_store(RootStore::pem(str::from_utf8(ca)?));
        }
        if setup.config == "best" {
            builder = builder.http1_only().compression_mode(CompressionMode::Manual);
            builder = builder.max_idle_per_host(1024);
        }
        if setup.cold {
            builder = builder.max_idle_per_host(0);
        }
        Ok(Self(builder.build()?))
    }
}

impl AsyncPeer for Ugi {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let request = match ask.upload {
            Outgoing::None => self.0.get(ask.url),
            Outgoing::Known(bytes) => self.0.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => {
                let pieces = pieces.map_err(|error| {
                    Error::with_source(ErrorKind::Transport, "the upload failed", error)
                });
                self.0.post(ask.url).body_stream(Box::pin(pieces))
            }
        };
        let response = request.await?;
        seen.status(response.status().as_u16());
        if ask.deliver == Deliver::Bytes {
            seen.whole(&response.bytes().await?);
            return Ok(());
        }
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            seen.piece(&piece?);
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "ugi");
    run_async("ugi", &version, CONFIGS, Ugi::new)
}
