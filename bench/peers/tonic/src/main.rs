//! tonic: its generic client over its channel, as the code that it generates uses them.

mod json;

use std::{process::ExitCode, sync::Arc};

use http::uri::PathAndQuery;
use json::JsonCodec;
use mimus_bench_grpc::Echo;
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Job, Outgoing, PeerError, Protocol, Seen, Setup, locked, run_async,
};
use tokio::sync::OnceCell;
use tonic::{
    Request,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "Endpoint as it comes (TCP_NODELAY), one channel" },
    Config {
        name: "best",
        about: "windows of 16 MiB on stream and connection, TCP_NODELAY (as by default), one channel",
    },
];

/// What `best` lets the server send unasked.
const WINDOW: u32 = 16 << 20;

#[derive(Clone)]
struct Tonic {
    protocol: Protocol,
    best: bool,
    channel: Arc<OnceCell<(Channel, PathAndQuery)>>,
}

impl Tonic {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let best = setup.config == "best";
        Ok(Self { protocol: setup.protocol, best, channel: Arc::default() })
    }

    /// The channel, and the method to call by it, as generated code has them beforehand.
    async fn connect(&self, url: &str) -> Result<(Channel, PathAndQuery), PeerError> {
        let endpoint = Endpoint::from_shared(url.to_owned())?;
        let path = endpoint.uri().path_and_query().ok_or("the URL has no path")?.clone();
        let endpoint = match self.best {
            true => endpoint
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .tcp_nodelay(true),
            false => endpoint,
        };
        // The endpoint's own path would come before the method's.
        let origin = endpoint.uri().authority().ok_or("the URL has no authority")?;
        let origin = format!("http://{origin}").parse()?;
        Ok((endpoint.origin(origin).connect().await?, path))
    }
}

impl AsyncPeer for Tonic {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let Outgoing::Known(text) = ask.upload else { return Err("a call sends one text".into()) };
        let connect = || self.connect(ask.url);
        let (channel, path) = self.channel.get_or_try_init(connect).await?.clone();
        let mut client = Grpc::new(channel);
        client.ready().await?;
        let request = Request::new(Echo::of(&text)?);
        let reply: Echo = match self.protocol {
            Protocol::GrpcJson => client.unary(request, path, JsonCodec).await?.into_inner(),
            _ => client.unary(request, path, ProstCodec::default()).await?.into_inner(),
        };
        seen.status(200);
        seen.whole(reply.text.as_bytes());
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        match self.protocol.is_grpc() {
            false => Some("it speaks gRPC only".to_owned()),
            true => job.cold.then(|| "it is one channel".to_owned()),
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "tonic");
    run_async("tonic", &version, CONFIGS, Tonic::new)
}
