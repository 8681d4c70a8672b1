//! Mimus as a measured client, as its user gets it: the default client, to which only the authority
//! of the bench's server is added when TLS is measured. For cold connections it keeps none idle. What a
//! browser's profile costs is measured beside it ([`profile`]).

mod grpc;
mod profile;
mod websocket;

use std::process::ExitCode;

use grpc::Calls;
use mimus::{Body, ClientBuilder, TlsConfig, Version, blocking};
use mimus_bench_kit::{
    Ask, AsyncPeer, Binary, BlockingPeer, Cold, Config, Deliver, Job, Outgoing, PeerError,
    Protocol, Seen, Setup,
};

const ASYNC: &[Config] =
    &[Config { name: "async", about: "mimus::Client with its default settings, on tokio" }];

const BLOCKING: &[Config] =
    &[Config { name: "blocking", about: "mimus::blocking::Client with its default settings" }];

fn main() -> ExitCode {
    Binary::new("mimus", env!("CARGO_PKG_VERSION"))
        .with_async(ASYNC, |setup| {
            let client = set_up(mimus::Client::builder(), setup)?.build()?;
            Ok(Async { client, protocol: setup.protocol, calls: Calls::default() })
        })
        .with_blocking(BLOCKING, |setup| {
            let client = set_up(blocking::Client::builder(), setup)?.build()?;
            Ok(Blocking { client, protocol: setup.protocol })
        })
        .with_async(profile::CONFIGS, |setup| {
            let client = profile::set_up(set_up(mimus::Client::builder(), setup)?, setup)?;
            Ok(Async { client: client.build()?, protocol: setup.protocol, calls: Calls::default() })
        })
        .with_async(profile::NEW, profile::New::of)
        .with_async(ASYNC, websocket::Awaited::new)
        .only_for(ASYNC, Protocol::is_web_socket)
        .with_blocking(BLOCKING, websocket::Blocking::new)
        .only_for(BLOCKING, Protocol::is_web_socket)
        .run()
}

fn set_up<M>(mut builder: ClientBuilder<M>, setup: &Setup) -> Result<ClientBuilder<M>, PeerError> {
    if setup.cold {
        builder = builder.max_idle_per_host(0);
    }
    if setup.protocol == Protocol::Http2 {
        builder = builder.version(Version::HTTP_2);
    }
    if let Some(ca) = &setup.ca {
        builder = builder.tls(TlsConfig::builder().add_ca(ca).build()?);
    }
    Ok(builder)
}

#[derive(Clone)]
struct Async {
    client: mimus::Client,
    protocol: Protocol,
    calls: Calls,
}

impl AsyncPeer for Async {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        if self.protocol.is_grpc() {
            // Boxed, so that it takes no room in the futures of the other protocols.
            return Box::pin(self.calls.unary(&self.client, self.protocol, ask, seen)).await;
        }
        let request = match ask.upload {
            Outgoing::None => self.client.get(ask.url),
            Outgoing::Known(bytes) => self.client.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => self.client.post(ask.url).body(Body::stream(pieces)),
        };
        let mut response = request.send().await?;
        seen.status(response.status().as_u16());
        if ask.deliver == Deliver::Bytes {
            seen.whole(&response.bytes().await?);
            return Ok(());
        }
        while let Some(piece) = response.chunk().await? {
            seen.piece(&piece);
        }
        Ok(())
    }
}

struct Blocking {
    client: blocking::Client,
    protocol: Protocol,
}

impl BlockingPeer for Blocking {
    const COLD: Cold = Cold::Configured;

    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let request = match ask.upload {
            Outgoing::None => self.client.get(ask.url),
            Outgoing::Known(bytes) => self.client.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => self.client.post(ask.url).body(Body::reader(pieces)),
        };
        let mut response = request.send()?;
        seen.status(response.status().as_u16());
        if ask.deliver == Deliver::Bytes {
            seen.whole(&response.bytes()?);
            return Ok(());
        }
        while let Some(piece) = response.chunk()? {
            seen.piece(&piece);
        }
        Ok(())
    }

    fn unsupported(&self, _: &Job) -> Option<String> {
        self.protocol.is_grpc().then(|| "its calls of gRPC are awaited".to_owned())
    }
}
