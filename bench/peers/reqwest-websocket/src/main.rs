//! reqwest-websocket 0.6: the upgraded connections of reqwest 0.13, spoken by async-tungstenite.

use std::process::ExitCode;

use futures_util::{SinkExt, StreamExt};
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Job, Own, PeerError, Protocol, Seen, Setup, locked, run_async,
};
use reqwest::{Certificate, Client};
use reqwest_websocket::{Message, Upgrade, WebSocket};

const CONFIGS: &[Config] =
    &[Config { name: "default", about: "Client::builder as it comes, and the CA" }];

#[derive(Clone)]
struct Reqwest {
    client: Client,
    protocol: Protocol,
    socket: Own<Box<WebSocket>>,
}

impl Reqwest {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        // HTTP/2 has no upgrade, which it does not know by itself.
        let mut builder = Client::builder().http1_only();
        if let Some(ca) = &setup.ca {
            builder = builder.tls_certs_only([Certificate::from_pem(ca)?]);
        }
        Ok(Self { client: builder.build()?, protocol: setup.protocol, socket: Own::default() })
    }
}

impl AsyncPeer for Reqwest {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let response = self.client.get(ask.url).upgrade().send().await?;
                Box::new(response.into_websocket().await?)
            }
        };
        for message in messages.iter() {
            let message = match message {
                mimus_bench_kit::Message::Text(text) => Message::Text(text.clone()),
                mimus_bench_kit::Message::Binary(bytes) => Message::Binary(bytes.clone()),
            };
            socket.feed(message).await?;
        }
        socket.flush().await?;
        for _ in 0..messages.count() {
            match socket.next().await.ok_or("the connection is closed")?? {
                Message::Text(text) => seen.message(text.as_bytes()),
                Message::Binary(bytes) => seen.message(&bytes),
                _ => return Err("not the echo of a message".into()),
            }
        }
        self.socket.keep(socket);
        Ok(())
    }

    fn unsupported(&self, _: &Job) -> Option<String> {
        match self.protocol {
            Protocol::WebSocket => None,
            Protocol::WebSocketDeflate => Some("it has no permessage-deflate".to_owned()),
            _ => Some("it speaks WebSocket only".to_owned()),
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "reqwest-websocket");
    run_async("reqwest-websocket", &version, CONFIGS, Reqwest::new)
}
