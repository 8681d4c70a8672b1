//! Its WebSocket: over a std socket that blocks, and over tokio by its adapter.

use std::io::Write;

use mimus_bench_kit::{
    Ask, AsyncPeer, BlockingPeer, Config, Job, Messages, Own, PeerError, Protocol, Seen, Setup,
};
use nexus_async_web::{
    TlsConfig,
    rest::MaybeTls,
    ws::{WsReader, WsStreamBuilder, WsWriter},
};
use nexus_web::ws::{Client, ClientBuilder, FrameWriter, Message, Role};
use tokio::io::AsyncWriteExt;

pub const BLOCKING: &[Config] = &[
    Config { name: "blocking", about: "ws::ClientBuilder as it comes, for WebSocket" },
    Config {
        name: "blocking-best",
        about: "TCP_NODELAY; several messages encoded into one buffer by FrameWriter",
    },
];

/// Its buffers hold a whole message, or all that comes at a time, and do not grow: 1 MiB to read and 64 KiB to
/// write by default.
const READ: usize = 1 << 20;
const WRITE: usize = 64 << 10;
/// More than any head of a frame, twice.
const HEADS: usize = 64;

/// Bytes of the largest message.
fn largest(messages: &Messages) -> usize {
    messages.iter().map(|message| message.as_bytes().len()).max().unwrap_or(0)
}

/// Several messages, as its users batch them: encoded into one buffer.
#[derive(Default)]
struct Batch(Vec<u8>);

impl Batch {
    fn encode(&mut self, messages: &Messages) -> &[u8] {
        let mut writer = FrameWriter::new(Role::Client);
        let mut used = 0;
        for message in messages.iter() {
            let payload = message.as_bytes();
            let end = used + writer.max_encoded_len(payload.len());
            if self.0.len() < end {
                self.0.resize(end, 0);
            }
            let room = &mut self.0[used..end];
            used += match message {
                mimus_bench_kit::Message::Text(_) => writer.encode_text(payload, room),
                mimus_bench_kit::Message::Binary(_) => writer.encode_binary(payload, room),
            };
        }
        &self.0[..used]
    }
}

fn tell(message: Option<Message<'_>>, seen: &mut Seen) -> Result<(), PeerError> {
    match message {
        Some(Message::Text(text)) => seen.message(text.as_bytes()),
        Some(Message::Binary(bytes)) => seen.message(bytes),
        Some(_) => return Err("not the echo of a message".into()),
        None => return Err("the connection is closed".into()),
    }
    Ok(())
}

fn unsupported(protocol: Protocol) -> Option<String> {
    match protocol {
        Protocol::WebSocket => None,
        Protocol::WebSocketDeflate => Some("it has no permessage-deflate".to_owned()),
        _ => Some("this configuration is for WebSocket".to_owned()),
    }
}

/// Over a socket that blocks.
pub struct Blocking {
    best: bool,
    protocol: Protocol,
    tls: TlsConfig,
    client: Option<Client<nexus_web::MaybeTls<std::net::TcpStream>>>,
    batch: Batch,
}

impl Blocking {
    pub fn new(setup: &Setup) -> Result<Self, PeerError> {
        Ok(Self {
            best: setup.config == "blocking-best",
            protocol: setup.protocol,
            tls: crate::tls(setup)?,
            client: None,
            batch: Batch::default(),
        })
    }

    fn connect(
        &self,
        url: &str,
        largest: usize,
    ) -> Result<Client<nexus_web::MaybeTls<std::net::TcpStream>>, PeerError> {
        let mut builder = ClientBuilder::new()
            .tls(&self.tls)
            .buffer_capacity(READ + 2 * largest)
            .max_frame_size((READ + largest) as u64)
            .max_message_size(READ + largest)
            .write_buffer_capacity(WRITE + largest + HEADS);
        if self.best {
            builder = builder.disable_nagle();
        }
        Ok(builder.connect(url)?)
    }
}

impl BlockingPeer for Blocking {
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect(ask.url, largest(messages))?,
        };
        if self.best && messages.count() > 1 {
            client.stream_mut().write_all(self.batch.encode(messages))?;
        } else {
            for message in messages.iter() {
                match message {
                    mimus_bench_kit::Message::Text(text) => client.send_text(text)?,
                    mimus_bench_kit::Message::Binary(bytes) => client.send_binary(bytes)?,
                }
            }
        }
        for _ in 0..messages.count() {
            tell(client.recv()?, seen)?;
        }
        self.client = Some(client);
        Ok(())
    }

    fn unsupported(&self, _: &Job) -> Option<String> {
        unsupported(self.protocol)
    }
}

/// Over tokio.
#[derive(Clone)]
pub struct Awaited {
    best: bool,
    protocol: Protocol,
    tls: TlsConfig,
    open: Own<Box<Open>>,
}

struct Open {
    reader: WsReader,
    writer: WsWriter,
    connection: MaybeTls,
    batch: Batch,
}

impl Awaited {
    pub fn new(setup: &Setup) -> Result<Self, PeerError> {
        Ok(Self {
            best: setup.config == "best",
            protocol: setup.protocol,
            tls: crate::tls(setup)?,
            open: Own::default(),
        })
    }

    async fn connect(&self, url: &str, largest: usize) -> Result<Box<Open>, PeerError> {
        let mut builder = WsStreamBuilder::new()
            .tls(&self.tls)
            .buffer_capacity(READ + 2 * largest)
            .max_frame_size((READ + largest) as u64)
            .max_message_size(READ + largest)
            .write_buffer_capacity(WRITE + largest + HEADS);
        if self.best {
            builder = builder.disable_nagle();
        }
        let (reader, writer, connection) = builder.connect(url).await?;
        Ok(Box::new(Open { reader, writer, connection, batch: Batch::default() }))
    }
}

impl AsyncPeer for Awaited {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let messages = ask.messages()?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect(ask.url, largest(messages)).await?,
        };
        let Open { reader, writer, connection, batch } = &mut *open;
        if self.best && messages.count() > 1 {
            connection.write_all(batch.encode(messages)).await?;
        } else {
            for message in messages.iter() {
                match message {
                    mimus_bench_kit::Message::Text(text) => {
                        writer.send_text(connection, text).await?;
                    }
                    mimus_bench_kit::Message::Binary(bytes) => {
                        writer.send_binary(connection, bytes).await?;
                    }
                }
            }
        }
        for _ in 0..messages.count() {
            tell(reader.recv(connection).await?, seen)?;
        }
        self.open.keep(open);
        Ok(())
    }

    fn unsupported(&self, _: &Job) -> Option<String> {
        unsupported(self.protocol)
    }
}
