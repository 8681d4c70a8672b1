//! One connection, whatever is spoken on it.

use std::io;
use std::net::TcpStream;

use boring::ssl::SslContext;

use crate::http1::Http1;
use crate::http2::Http2;
use crate::pages::Pages;
use crate::transport::{Buffers, Transport};
use crate::websocket::WebSocket;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) buffers: Buffers,
    pub(crate) pages: Pages,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Readable,
    Writable,
    /// Whichever comes first.
    Either,
    /// The time, in nanoseconds of [`crate::clock::now`].
    Until(u64),
    /// Likewise, or something to read.
    ReadableUntil(u64),
}

impl Wait {
    /// The time that is waited for.
    pub(crate) fn due(self) -> Option<u64> {
        match self {
            Self::Until(due) | Self::ReadableUntil(due) => Some(due),
            Self::Readable | Self::Writable | Self::Either => None,
        }
    }
}

/// What a port speaks. No port speaks both: a client that falls back would be measured at something
/// else than it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

enum Speaker {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
    WebSocket(Box<WebSocket>),
}

impl Speaker {
    fn drive(
        &mut self,
        transport: &mut Transport,
        shared: &mut Shared,
    ) -> io::Result<Option<Wait>> {
        match self {
            Self::Http1(speaker) => speaker.drive(transport, shared),
            Self::Http2(speaker) => speaker.drive(transport, shared),
            Self::WebSocket(speaker) => speaker.drive(transport, shared),
        }
    }
}

/// One connection.
pub(crate) struct Connection {
    transport: Transport,
    rest: Vec<u8>,
    speaker: Speaker,
}

impl Connection {
    pub(crate) fn new(
        stream: TcpStream,
        tls: Option<&SslContext>,
        protocol: Protocol,
    ) -> io::Result<Self> {
        let transport = match tls {
            None => Transport::plain(stream),
            Some(context) => Transport::tls(stream, context)?,
        };
        let speaker = match protocol {
            Protocol::Http1 => Speaker::Http1(Box::new(Http1::new())),
            Protocol::Http2 => Speaker::Http2(Box::new(Http2::new())),
        };
        Ok(Self { transport, rest: Vec::new(), speaker })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.transport.stream()
    }

    /// The socket can be read from, or shows an error when it is.
    pub(crate) fn is_readable(&mut self) {
        self.transport.is_readable();
    }

    /// Goes on as far as it can. `None` when the connection is over.
    pub(crate) fn advance(&mut self, shared: &mut Shared) -> io::Result<Option<Wait>> {
        shared.buffers.input.load(&mut self.rest);
        self.transport.borrow(&mut shared.buffers);
        let mut wait = self.speaker.drive(&mut self.transport, shared);
        if matches!(&self.speaker, Speaker::Http1(speaker) if speaker.is_upgraded()) {
            self.speaker = Speaker::WebSocket(Box::default());
            wait = self.speaker.drive(&mut self.transport, shared);
        }
        self.transport.give_back(&mut shared.buffers);
        shared.buffers.input.save(&mut self.rest);
        wait
    }
}
