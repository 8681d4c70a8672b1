//! ureq 3, which blocks, on rustls.

use std::{io::Read, process::ExitCode};

use mimus_bench_kit::{
    Ask, BlockingPeer, Cold, Config, Deliver, Outgoing, PeerError, Seen, Setup, locked,
    run_blocking,
};
use ureq::{
    Agent, Body, SendBody,
    tls::{Certificate, RootCerts, TlsConfig},
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "Agent::config_builder as it comes, and the CA" },
    Config {
        name: "best",
        about: "no automatic headers, no proxy, TCP_NODELAY and 128 KiB buffers (as by default)",
    },
];

/// What is read at a time from a body that is not collected.
const READ: usize = 64 * 1024;

struct Ureq {
    agent: Agent,
    buffer: Vec<u8>,
}

impl Ureq {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut builder = Agent::config_builder();
        if let Some(ca) = &setup.ca {
            let roots = RootCerts::new_with_certs(&[Certificate::from_pem(ca)?]);
            builder = builder.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        if setup.config == "best" {
            builder = builder.user_agent("").accept("").accept_encoding("").proxy(None);
        }
        if setup.cold {
            builder = builder.max_idle_connections(0);
        }
        Ok(Self { agent: builder.build().into(), buffer: vec![0; READ] })
    }

    fn receive(
        &mut self,
        body: &mut Body,
        deliver: Deliver,
        seen: &mut Seen,
    ) -> Result<(), PeerError> {
        if deliver == Deliver::Bytes {
            // By default it refuses to collect more than 10 MiB.
            seen.whole(&body.with_config().limit(u64::MAX).read_to_vec()?);
            return Ok(());
        }
        let mut reader = body.as_reader();
        loop {
            match reader.read(&mut self.buffer)? {
                0 => return Ok(()),
                n => seen.piece(&self.buffer[..n]),
            }
        }
    }
}

impl BlockingPeer for Ureq {
    const COLD: Cold = Cold::Configured;

    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let mut response = match ask.upload {
            Outgoing::None => self.agent.get(ask.url).call()?,
            Outgoing::Known(bytes) => self.agent.post(ask.url).send(&bytes[..])?,
            Outgoing::Stream(pieces) => {
                self.agent.post(ask.url).send(SendBody::from_owned_reader(pieces))?
            }
        };
        seen.status(response.status().as_u16());
        self.receive(response.body_mut(), ask.deliver, seen)
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "ureq");
    run_blocking("ureq", &version, CONFIGS, Ureq::new)
}
