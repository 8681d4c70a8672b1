//! Its WebSocket, over HTTP/1.1, of the same client.

use mimus_bench_kit::{Ask, Message, Own, PeerError, Protocol, Seen};
use warpsock::{Client, PreparedMessage, WebSocket};

/// A connection for each exchange under way.
#[derive(Clone, Default)]
pub struct Echo {
    socket: Own<Box<WebSocket>>,
}

impl Echo {
    pub async fn exchange(
        &self,
        client: &Client,
        protocol: Protocol,
        ask: Ask<'_>,
        seen: &mut Seen,
    ) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let mut builder = client.websocket(ask.url);
                if protocol == Protocol::WebSocketDeflate {
                    builder = builder.permessage_deflate();
                }
                Box::new(builder.connect().await?)
            }
        };
        if messages.count() > 1 {
            let batch: Vec<PreparedMessage> = messages.iter().map(prepared).collect();
            socket.send_prepared_batch(&batch).await?;
        } else {
            for message in messages.iter() {
                match message {
                    Message::Text(text) => socket.send_text(text.as_str()).await?,
                    Message::Binary(bytes) => socket.send_binary(bytes.clone()).await?,
                }
            }
        }
        for _ in 0..messages.count() {
            match socket.next().await?.ok_or("the connection is closed")? {
                warpsock::Message::Text(text) => seen.message(text.as_bytes()),
                warpsock::Message::Binary(bytes) => seen.message(&bytes),
                _ => return Err("not the echo of a message".into()),
            }
        }
        self.socket.keep(socket);
        Ok(())
    }
}

fn prepared(message: &Message) -> PreparedMessage {
    match message {
        Message::Text(text) => PreparedMessage::text(text.as_str()),
        Message::Binary(bytes) => PreparedMessage::binary(bytes.clone()),
    }
}
