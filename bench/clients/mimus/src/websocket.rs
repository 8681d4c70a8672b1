//! WebSocket as Mimus's user has it: messages are sent as they are, or fed and flushed when there are several,
//! and lent when they come.

use mimus::{
    Client, blocking,
    ws::{Builder, ConnectError, DeflateOffer, MessageRef, WebSocket},
};
use mimus_bench_kit::{
    Ask, AsyncPeer, BlockingPeer, Message, Own, PeerError, Protocol, Seen, Setup,
};

/// A connection for each exchange under way.
#[derive(Clone)]
pub(crate) struct Awaited {
    client: Client,
    protocol: Protocol,
    socket: Own<WebSocket>,
}

impl Awaited {
    pub(crate) fn new(setup: &Setup) -> Result<Self, PeerError> {
        let client = crate::set_up(Client::builder(), setup)?.build()?;
        Ok(Self { client, protocol: setup.protocol, socket: Own::default() })
    }
}

impl AsyncPeer for Awaited {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let builder = offering(self.client.websocket(ask.url), self.protocol);
                builder.connect().await.map_err(ConnectError::into_error)?
            }
        };
        if messages.count() > 1 {
            for message in messages.iter() {
                match message {
                    Message::Text(text) => socket.feed_text(text).await?,
                    Message::Binary(bytes) => socket.feed_binary(bytes).await?,
                }
            }
            socket.flush().await?;
        } else {
            for message in messages.iter() {
                match message {
                    Message::Text(text) => socket.send_text(text).await?,
                    Message::Binary(bytes) => socket.send_binary(bytes).await?,
                }
            }
        }
        for _ in 0..messages.count() {
            tell(socket.recv_ref().await?, seen)?;
        }
        self.socket.keep(socket);
        Ok(())
    }
}

/// A client that blocks, and its connection.
pub(crate) struct Blocking {
    client: blocking::Client,
    protocol: Protocol,
    socket: Option<WebSocket<mimus::Blocking>>,
}

impl Blocking {
    pub(crate) fn new(setup: &Setup) -> Result<Self, PeerError> {
        let client = crate::set_up(blocking::Client::builder(), setup)?.build()?;
        Ok(Self { client, protocol: setup.protocol, socket: None })
    }
}

impl BlockingPeer for Blocking {
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let builder = offering(self.client.websocket(ask.url), self.protocol);
                builder.connect().map_err(ConnectError::into_error)?
            }
        };
        if messages.count() > 1 {
            for message in messages.iter() {
                match message {
                    Message::Text(text) => socket.feed_text(text)?,
                    Message::Binary(bytes) => socket.feed_binary(bytes)?,
                }
            }
            socket.flush()?;
        } else {
            for message in messages.iter() {
                match message {
                    Message::Text(text) => socket.send_text(text)?,
                    Message::Binary(bytes) => socket.send_binary(bytes)?,
                }
            }
        }
        for _ in 0..messages.count() {
            tell(socket.recv_ref()?, seen)?;
        }
        self.socket = Some(socket);
        Ok(())
    }
}

fn offering<M>(builder: Builder<M>, protocol: Protocol) -> Builder<M> {
    match protocol {
        Protocol::WebSocketDeflate => builder.deflate(DeflateOffer::default()),
        _ => builder,
    }
}

fn tell(message: Option<MessageRef<'_>>, seen: &mut Seen) -> Result<(), PeerError> {
    match message {
        Some(MessageRef::Text(text)) => seen.message(text.as_bytes()),
        Some(MessageRef::Binary(bytes)) => seen.message(bytes),
        Some(_) => return Err("not the echo of a message".into()),
        None => return Err("the connection is closed".into()),
    }
    Ok(())
}
