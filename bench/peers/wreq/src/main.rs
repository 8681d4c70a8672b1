//! wreq 6, on its own BoringSSL, without the emulation of a browser.

use std::process::ExitCode;

use futures_util::StreamExt;
use mimus_bench_kit::{
    Ask, AsyncPeer, Cold, Config, Deliver, Outgoing, PeerError, Protocol, Seen, Setup, locked,
    run_async,
};
use wreq::{Body, Client, http2::Http2Options, tls::trust::CertStore};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "Client::builder as it comes, and the CA" },
    Config {
        name: "best",
        about: "one version only, no proxy lookup, no Referer; over HTTP/2 frames of 64 KiB; \
                TCP_NODELAY and an unbounded pool (as by default)",
    },
];

/// What `best` lets the server send in one frame over HTTP/2.
const FRAME: u32 = 64 << 10;

#[derive(Clone)]
struct Wreq(Client);

impl Wreq {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut builder = Client::builder();
        if let Some(ca) = &setup.ca {
            builder = builder.tls_cert_store(CertStore::from_pem_stack(ca)?);
        }
        let (best, http2) = (setup.config == "best", setup.protocol == Protocol::Http2);
        if http2 {
            builder = builder.http2_only();
        }
        if best {
            builder = builder.no_proxy().referer(false).tcp_nodelay(true);
        }
        if best && http2 {
            let options = Http2Options::builder().max_frame_size(FRAME).build();
            builder = builder.http2_options(options);
        } else if best {
            builder = builder.http1_only();
        }
        if setup.cold {
            builder = builder.pool_max_idle_per_host(0);
        }
        Ok(Self(builder.build()?))
    }
}

impl AsyncPeer for Wreq {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let request = match ask.upload {
            Outgoing::None => self.0.get(ask.url),
            Outgoing::Known(bytes) => self.0.post(ask.url).body(bytes),
            Outgoing::Stream(pieces) => self.0.post(ask.url).body(Body::wrap_stream(pieces)),
        };
        let response = request.send().await?;
        seen.status(response.status().as_u16());
        if ask.deliver == Deliver::Bytes {
            seen.whole(&response.bytes().await?);
            return Ok(());
        }
        let mut pieces = std::pin::pin!(response.bytes_stream());
        while let Some(piece) = pieces.next().await {
            seen.piece(&piece?);
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "wreq");
    run_async("wreq", &version, CONFIGS, Wreq::new)
}
