//! The cheapest honest exchange, as a measured client: fixed bytes in one write, as little parsing as
//! makes the answer certain, reads of 64 KiB into a buffer that is used again. It has no pool, no
//! timeouts and no choice: what a client costs more than this is the price of being one.

mod awaited;
mod blocking;
mod reply;
mod request;

use std::process::ExitCode;

use boring::{
    ssl::{SslConnector, SslMethod, SslVersion},
    x509::{X509, store::X509StoreBuilder},
};
use mimus_bench_kit::{Binary, Config, PeerError, Setup};

const BLOCKING: &[Config] = &[Config {
    name: "blocking",
    about: "a std TcpStream and fixed bytes; TLS by the boring crate",
}];

const TOKIO: &[Config] = &[Config {
    name: "tokio",
    about: "a tokio TcpStream for each exchange under way, and fixed bytes; TLS by tokio-boring",
}];

fn main() -> ExitCode {
    Binary::new("floor", env!("CARGO_PKG_VERSION"))
        .with_blocking(BLOCKING, |setup| Ok(blocking::Floor::new(tls(setup)?, setup.cold)))
        .with_async(TOKIO, |setup| Ok(awaited::Floor::new(tls(setup)?, setup.cold)))
        .run()
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
    builder.set_alpn_protos(b"\x08http/1.1")?;
    Ok(Some(builder.build()))
}
