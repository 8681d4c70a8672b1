//! Makes the calls that others' conformance tests ask for, through Mimus.
//!
//! Without arguments it is a client of the connect conformance runner, which writes
//! `ClientCompatRequest`s to the standard input, each behind four bytes of length, and reads
//! `ClientCompatResponse`s of the same form from the standard output, in any order. With the flags of
//! grpc-go's interop client it makes one case against gRPC's interop server.

mod call;
mod interop;
mod wire;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use mimus::{Client, TlsConfig};
use prost::Message;
use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinSet,
};

use crate::wire::{Outcome, Request, Response, Trouble};

/// Longer than any request of the runner's.
const LONGEST: usize = 64 * 1024 * 1024;

#[tokio::main]
async fn main() -> Result<()> {
    match std::env::args().len() {
        0 | 1 => serve_runner().await,
        _ => interop::run(std::env::args().skip(1)).await,
    }
}

/// Does what the runner asks for until it has no more to ask.
async fn serve_runner() -> Result<()> {
    let (done, mut results) = mpsc::unbounded_channel::<Response>();
    let writer = tokio::spawn(async move {
        let mut out = io::stdout();
        while let Some(response) = results.recv().await {
            let bytes = response.encode_to_vec();
            out.write_all(&u32::try_from(bytes.len())?.to_be_bytes()).await?;
            out.write_all(&bytes).await?;
            out.flush().await?;
        }
        anyhow::Ok(())
    });
    let clients = Arc::new(Clients::default());
    let (mut calls, mut input) = (JoinSet::new(), io::stdin());
    while let Some(request) = next(&mut input).await? {
        let (done, clients) = (done.clone(), clients.clone());
        calls.spawn(async move {
            let test_name = request.test_name.clone();
            let outcome = match make(&clients, request).await {
                Ok(answer) => Outcome::Response(answer),
                Err(error) => Outcome::Error(Trouble { message: format!("{error:#}") }),
            };
            // The writer outlives the calls.
            let _ = done.send(Response { test_name, outcome: Some(outcome) });
        });
    }
    calls.join_all().await;
    drop(done);
    writer.await?
}

async fn next(input: &mut io::Stdin) -> Result<Option<Request>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let length = usize::try_from(u32::from_be_bytes(length))?;
    anyhow::ensure!(length <= LONGEST, "a request of {length} bytes");
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes).await?;
    Ok(Some(Request::decode(&bytes[..]).context("a request")?))
}

async fn make(clients: &Clients, request: Request) -> Result<wire::Answer> {
    let client = clients.get(&request)?;
    call::make(&client, request).await
}

/// Clients by what they trust and who they are, so that calls share connections where they can.
#[derive(Default)]
struct Clients(Mutex<HashMap<Vec<Vec<u8>>, Client>>);

impl Clients {
    fn get(&self, request: &Request) -> Result<Client> {
        let mut key = vec![request.server_tls_cert.clone()];
        if let Some(own) = &request.client_tls_creds {
            key.extend([own.cert.clone(), own.key.clone()]);
        }
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let mut tls = TlsConfig::builder();
        if !request.server_tls_cert.is_empty() {
            tls = tls.add_ca(&request.server_tls_cert);
        }
        if let Some(own) = &request.client_tls_creds {
            tls = tls.identity(&own.cert, &own.key);
        }
        let client = Client::builder().tls(tls.build()?).build()?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}
