//! The cheapest honest exchange, as a measured client: fixed bytes in one write, as little parsing as
//! makes the answer certain, reads of 64 KiB into a buffer that is used again. It has no pool, no
//! timeouts and no choice: what a client costs more than this is the price of being one.

mod awaited;
mod blocking;
mod http2;
mod reply;
mod request;
mod socket;
mod web_socket;

use std::process::ExitCode;

use boring::{
    ssl::{SslConnector, SslMethod, SslVersion},
    x509::{X509, store::X509StoreBuilder},
};
use mimus_bench_kit::{
    Ask, AsyncPeer, Binary, BlockingPeer, Cold, Config, Job, PeerError, Protocol, Seen, Setup,
};

const BLOCKING: &[Config] = &[Config {
    name: "blocking",
    about: "a std TcpStream and fixed bytes; TLS by the boring crate",
}];

const TOKIO: &[Config] = &[Config {
    name: "tokio",
    about: "a tokio TcpStream for each exchange under way (over HTTP/2 one for all), and fixed bytes; \
            TLS by tokio-boring",
}];

fn main() -> ExitCode {
    Binary::new("floor", env!("CARGO_PKG_VERSION"))
        .with_blocking(BLOCKING, |setup| {
            let tls = tls(setup)?;
            Ok(match setup.protocol {
                Protocol::Http1 => Blocking::Http1(Box::new(blocking::Floor::new(tls, setup.cold))),
                protocol if protocol.is_web_socket() => {
                    Blocking::WebSocket(web_socket::Blocking::new(tls, protocol))
                }
                protocol => Blocking::Http2(Box::new(http2::Blocking::new(tls, protocol))),
            })
        })
        .with_async(TOKIO, |setup| {
            let tls = tls(setup)?;
            Ok(match setup.protocol {
                Protocol::Http1 => Awaited::Http1(awaited::Floor::new(tls, setup.cold)),
                protocol if protocol.is_web_socket() => {
                    Awaited::WebSocket(web_socket::Awaited::new(tls, protocol))
                }
                protocol => Awaited::Http2(http2::Awaited::new(tls, protocol)),
            })
        })
        .run()
}

enum Blocking {
    Http1(Box<blocking::Floor>),
    Http2(Box<http2::Blocking>),
    WebSocket(web_socket::Blocking),
}

impl BlockingPeer for Blocking {
    const COLD: Cold = Cold::Configured;

    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        match self {
            Self::Http1(floor) => floor.exchange(ask, seen),
            Self::Http2(floor) => floor.exchange(ask, seen),
            Self::WebSocket(floor) => floor.exchange(ask, seen),
        }
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        match self {
            Self::Http1(floor) => floor.unsupported(job),
            Self::Http2(floor) => floor.unsupported(job),
            Self::WebSocket(floor) => floor.unsupported(job),
        }
    }
}

#[derive(Clone)]
enum Awaited {
    Http1(awaited::Floor),
    Http2(http2::Awaited),
    WebSocket(web_socket::Awaited),
}

impl AsyncPeer for Awaited {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        match self {
            Self::Http1(floor) => floor.exchange(ask, seen).await,
            Self::Http2(floor) => floor.exchange(ask, seen).await,
            Self::WebSocket(floor) => floor.exchange(ask, seen).await,
        }
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        match self {
            Self::Http1(floor) => floor.unsupported(job),
            Self::Http2(floor) => floor.unsupported(job),
            Self::WebSocket(floor) => floor.unsupported(job),
        }
    }
}

fn tls(setup: &Setup) -> Result<Option<SslConnector>, PeerError> {
    let Some(ca) = &setup.ca else { return Ok(None) };
    let mut trusted = X509StoreBuilder::new()?;
    for certificate in X509::stack_from_pem(ca)? {
        trusted.add_cert(certificate)?;
    }
    let mut builder = SslConnector::builder(SslMethod::tls())?;
    builder.set_cert_store(trusted.build());
    builder.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    builder.set_alpn_protos(match setup.protocol {
        Protocol::Http2 | Protocol::GrpcProst | Protocol::GrpcJson => b"\x02h2",
        _ => b"\x08http/1.1",
    })?;
    Ok(Some(builder.build()))
}
