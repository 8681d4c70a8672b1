//! The server that measured clients talk to: one thread, fixed answers, as few instructions and system
//! calls as there can be, so that the client is what is measured.
//!
//! | route | answer |
//! |---|---|
//! | `GET /b/<n>` | `n` bytes with Content-Length |
//! | `GET /c/<n>` | `n` bytes in chunks of 16 KiB |
//! | `POST /up` | `ok`, once all of the body came |
//! | `GET /paced/<pieces>/<size>/<ns>` | a chunk of `size` bytes every `ns`, the first at once; each begins with the time of its write |
//! | `POST /paced?size=<bytes>` | of each stamped piece of the body, how long it took: `{"delay":[ns,..]}` |
//! | `GET /ws` | a WebSocket whose messages come back, without extensions |
//! | `GET /ws-deflate` | the same with `permessage-deflate`, which the client has to offer |
//!
//! Over HTTP/2 each stream is asked the same, but for WebSocket; a chunked answer is one without Content-Length, of DATA frames
//! as large as the client takes them. There is gRPC, too:
//!
//! | method | answer |
//! |---|---|
//! | `/bench.Echo/Unary` | the message that came |
//!
//! Stamps are 8 bytes, little endian: nanoseconds of CLOCK_MONOTONIC.

mod body;
mod clock;
mod connection;
mod http1;
mod http2;
mod identity;
mod input;
mod output;
mod pages;
mod request;
mod server;
mod transport;
mod websocket;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::connection::Protocol;
use crate::identity::Identity;
use crate::server::{Port, Server};

/// Descriptors for the largest workload, twice over.
const DESCRIPTORS: u64 = 65_536;

/// Serves fixed answers on 127.0.0.1 until standard input ends. Prints one line of JSON that says
/// where.
#[derive(Parser)]
struct Args {
    /// Port for plain HTTP; 0 takes one that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Port for HTTPS; 0 takes one that is free.
    #[arg(long, default_value_t = 0)]
    tls_port: u16,
    /// Port for HTTP/2 without TLS, by prior knowledge; 0 takes one that is free.
    #[arg(long, default_value_t = 0)]
    h2c_port: u16,
    /// Port for HTTP/2 over TLS; 0 takes one that is free.
    #[arg(long, default_value_t = 0)]
    h2_port: u16,
    /// Where to write the certificate of the authority to trust, as PEM.
    #[arg(long)]
    ca_out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "bench-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    raise_limit();
    let identity = Identity::new()?;
    if let Some(path) = &args.ca_out {
        std::fs::write(path, identity.ca_pem)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let ports = [
        Port { number: args.port, tls: None, protocol: Protocol::Http1 },
        Port { number: args.tls_port, tls: Some(identity.http1), protocol: Protocol::Http1 },
        Port { number: args.h2c_port, tls: None, protocol: Protocol::Http2 },
        Port { number: args.h2_port, tls: Some(identity.http2), protocol: Protocol::Http2 },
    ];
    let mut server = Server::bind(ports)?;
    let [plain, tls, h2c, h2] = server.addresses()?[..] else {
        return Err("there are not four ports".into());
    };
    let urls = serde_json::json!({
        "http": format!("http://{plain}"),
        "https": format!("https://localhost:{}", tls.port()),
        "h2c": format!("http://{h2c}"),
        "h2": format!("https://localhost:{}", h2.port()),
    });
    writeln!(std::io::stdout(), "{urls}")?;
    Ok(server.run(std::io::stdin())?)
}

/// As many descriptors as we may have: above the hard limit only root may.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= DESCRIPTORS) {
        return;
    }
    let wanted = Rlimit {
        current: Some(DESCRIPTORS),
        maximum: limit.maximum.map(|most| most.max(DESCRIPTORS)),
    };
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // With less than this the server still runs, and stops accepting when it has none left.
    let _ = setrlimit(Resource::Nofile, wanted).or_else(|_| setrlimit(Resource::Nofile, most));
}
