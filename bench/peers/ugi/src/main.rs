//! ugi 0.2, which brings its own reactor, on async-tls.

use std::process::ExitCode;

use futures_util::{StreamExt, TryStreamExt};
use mimus_bench_grpc::{Codec, Echo};
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Outgoing, PeerError, Protocol, Seen, Setup, locked,
    run_async,
};
use ugi::{Client, CompressionMode, Error, ErrorKind, GrpcCodec, RootStore};

const CONFIGS: &[Config] = &[
    Config {
        name: "default",
        about: "Client::builder as it comes (8 idle connections), and the CA",
    },
    Config {
        name: "best",
        about: "one version only, no decoding, 1024 idle connections, TCP_NODELAY (always)",
    },
];

#[derive(Clone)]
struct Ugi {
    client: Client,
    protocol: Protocol,
}

impl Ugi {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut builder = Client::builder();
        if let Some(ca) = &setup.ca {
            builder = builder.root_store(RootStore::pem(str::from_utf8(ca)?));
        }
        let (best, http1) = (setup.config == "best", setup.protocol == Protocol::Http1);
        if !http1 {
            builder = builder.prior_knowledge_h2c(true).http2_only();
        }
        if best {
            builder = builder.compression_mode(CompressionMode::Manual).max_idle_per_host(1024);
        }
        if best && http1 {
            builder = builder.http1_only();
        }
        if setup.cold {
            builder = builder.max_idle_per_host(0);
        }
        Ok(Self { client: builder.build()?, protocol: setup.protocol })
    }

    async fn call(&self, ask: Ask<'_>, codec: Codec, seen: &mut Seen) -> Result<(), PeerError> {
        let Outgoing::Known(text) = ask.upload else { return Err("a call sends one text".into()) };
        let (message, call) = (Echo::of(&text)?, self.client.grpc(ask.url));
        let reply: Echo = match codec {
            Codec::Json => call.message(&message)?.await?.message().await?,
            // Of protobuf it knows that it is bytes.
            Codec::Prost => {
                let call = call.codec(GrpcCodec::Protobuf).message_bytes(codec.write(&message)?)?;
                codec.read(&call.await?.message_bytes().await?)?
            }
        };
        seen.status(200);
        seen.whole(reply.text.as_bytes());
        Ok(())
    }
}

impl AsyncPeer for Ugi {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        match self.protocol {
            Protocol::GrpcProst => return self.call(ask, Codec::Prost, seen).await,
            Protocol::GrpcJson => return self.call(ask, Codec::Json, seen).await,
            _ => {}
        }
        let request = match ask.upload {
            Outgoing::None => self.client.get(ask.url),
            Outgoing::Known(bytes) => self.client.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => {
                let pieces = pieces.map_err(|error| {
                    Error::with_source(ErrorKind::Transport, "the upload failed", error)
                });
                self.client.post(ask.url).body_stream(Box::pin(pieces))
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
