//! Opens the WebSockets that others' conformance tests ask for, through Mimus.
//!
//! `autobahn` takes every case of an Autobahn fuzzing server, as its client; `echo` talks to a server that
//! says back what it is told; `tungstenite` is such a server, made of the crate of that name.

#![expect(clippy::print_stdout, reason = "it is what a driver is for")]

mod autobahn;
mod echo;
mod tungstenite;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Parser};
use mimus::{
    Client, Proxies, TlsConfig, Version,
    tls::Roots,
    ws::{self, DeflateOffer},
};

/// Opens the WebSockets that others' conformance tests ask for.
#[derive(Parser)]
enum Command {
    /// Take the cases of an Autobahn fuzzing server.
    Autobahn(autobahn::Cases),
    /// Talk to a server that says back what it is told.
    Echo(echo::Talk),
    /// Be such a server.
    Tungstenite(tungstenite::Serve),
}

/// How a socket is opened.
#[derive(Args)]
struct Way {
    /// Over HTTP/2 (RFC 8441), without TLS by prior knowledge.
    #[arg(long)]
    http2: bool,
    /// Offer permessage-deflate (RFC 7692).
    #[arg(long)]
    deflate: bool,
    /// Trust the certificates in this PEM file.
    #[arg(long)]
    cacert: Option<PathBuf>,
}

impl Way {
    fn client(&self) -> Result<Client> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = &self.cacert {
            tls = tls.roots(Roots::None).add_ca(&std::fs::read(path)?);
        }
        Ok(Client::builder().proxies(Proxies::none()).tls(tls.build()?).build()?)
    }

    fn socket(&self, client: &Client, url: &str) -> ws::Builder {
        let version = if self.http2 { Version::HTTP_2 } else { Version::HTTP_11 };
        let deflate = self.deflate.then(DeflateOffer::default);
        client.websocket(url).version(version).deflate(deflate)
    }
}

/// What a server refuses is told without its response.
async fn open(socket: ws::Builder) -> mimus::Result<ws::WebSocket> {
    socket.connect().await.map_err(ws::ConnectError::into_error)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Autobahn(cases) => autobahn::run(&cases).await,
        Command::Echo(talk) => echo::run(&talk).await,
        Command::Tungstenite(serve) => tungstenite::run(&serve).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
