//! Mimus as a measured client, as its user gets it: the default client, to which only the authority
//! of the bench's server is added when TLS is measured. For cold connections it keeps none idle.

use std::process::ExitCode;

use mimus::{Body, ClientBuilder, TlsConfig, blocking};
use mimus_bench_kit::{
    Ask, AsyncPeer, Binary, BlockingPeer, Cold, Config, Deliver, Outgoing, PeerError, Seen, Setup,
};

const ASYNC: &[Config] =
    &[Config { name: "async", about: "mimus::Client with its default settings, on tokio" }];

const BLOCKING: &[Config] =
    &[Config { name: "blocking", about: "mimus::blocking::Client with its default settings" }];

fn main() -> ExitCode {
    Binary::new("mimus", env!("CARGO_PKG_VERSION"))
        .with_async(ASYNC, |setup| Ok(Async(set_up(mimus::Client::builder(), setup)?.build()?)))
        .with_blocking(BLOCKING, |setup| {
            Ok(Blocking(set_up(blocking::Client::builder(), setup)?.build()?))
        })
        .run()
}

fn set_up<M>(mut builder: ClientBuilder<M>, setup: &Setup) -> Result<ClientBuilder<M>, PeerError> {
    if setup.cold {
        builder = builder.max_idle_per_host(0);
    }
    if let Some(ca) = &setup.ca {
        builder = builder.tls(TlsConfig::builder().add_ca(ca).build()?);
    }
    Ok(builder)
}

#[derive(Clone)]
struct Async(mimus::Client);

impl AsyncPeer for Async {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let request = match ask.upload {
            Outgoing::None => self.0.get(ask.url),
            Outgoing::Known(bytes) => self.0.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => self.0.post(ask.url).body(Body::stream(pieces)),
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

struct Blocking(blocking::Client);

impl BlockingPeer for Blocking {
    const COLD: Cold = Cold::Configured;

    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let request = match ask.upload {
            Outgoing::None => self.0.get(ask.url),
            Outgoing::Known(bytes) => self.0.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => self.0.post(ask.url).body(Body::reader(pieces)),
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
}
