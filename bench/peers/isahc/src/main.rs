//! isahc 1: libcurl with OpenSSL, driven by a thread of isahc's.

use std::{io::Write, process::ExitCode, sync::Arc};

use futures_util::{AsyncReadExt, TryStreamExt, io::Cursor};
use isahc::{
    AsyncBody, AsyncReadResponseExt, HttpClient, Request,
    config::{CaCertificate, Configurable, VersionNegotiation},
};
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Outgoing, PeerError, Seen, Setup, locked, run_async,
};
use tempfile::NamedTempFile;

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "HttpClient::builder as it comes, and the CA" },
    Config {
        name: "best",
        about: "HTTP/1.1 only, no Expect: 100-continue, no decoding, 1024 kept connections, \
                TCP_NODELAY",
    },
];

/// What is read at a time from a body that is not collected.
const READ: usize = 64 * 1024;

#[derive(Clone)]
struct Isahc {
    client: HttpClient,
    /// It takes a CA only by its path, and opens it for each connection.
    _ca: Option<Arc<NamedTempFile>>,
}

impl Isahc {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut builder = HttpClient::builder();
        let ca = setup.ca.as_deref().map(file).transpose()?;
        if let Some(ca) = &ca {
            builder = builder.ssl_ca_certificate(CaCertificate::file(ca.path()));
        }
        if setup.config == "best" {
            builder = builder.version_negotiation(VersionNegotiation::http11());
            builder = builder.expect_continue(false).automatic_decompression(false);
            builder = builder.connection_cache_size(1024).tcp_nodelay();
        }
        if setup.cold {
            builder = builder.connection_cache_size(0);
        }
        Ok(Self { client: builder.build()?, _ca: ca.map(Arc::new) })
    }
}

fn file(ca: &[u8]) -> Result<NamedTempFile, std::io::Error> {
    let mut file = NamedTempFile::new()?;
    file.write_all(ca)?;
    Ok(file)
}

impl AsyncPeer for Isahc {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let request = match ask.upload {
            Outgoing::None => Request::get(ask.url).body(AsyncBody::empty()),
            Outgoing::Known(bytes) => {
                let len = bytes.len() as u64;
                Request::post(ask.url).body(AsyncBody::from_reader_sized(Cursor::new(bytes), len))
            }
            Outgoing::Stream(pieces) => {
                Request::post(ask.url).body(AsyncBody::from_reader(pieces.into_async_read()))
            }
        };
        let mut response = self.client.send_async(request?).await?;
        seen.status(response.status().as_u16());
        if ask.deliver == Deliver::Bytes {
            seen.whole(&response.bytes().await?);
            return Ok(());
        }
        let mut buffer = vec![0; READ];
        loop {
            match response.body_mut().read(&mut buffer).await? {
                0 => return Ok(()),
                n => seen.piece(&buffer[..n]),
            }
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "isahc");
    run_async("isahc", &version, CONFIGS, Isahc::new)
}
