//! The floor of a client on a runtime: one write, one wake-up, one read.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use boring::ssl::SslConnector;
use bytes::{BufMut, Bytes};
use futures_core::Stream;
use mimus_bench_kit::{Ask, AsyncPeer, Cold, Deliver, Outgoing, PeerError, Pieces, Seen};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_boring::SslStream;

use crate::{
    reply::{Buffers, Framing, READ},
    request::{LAST_CHUNK, Request, chunk_size, joined},
};

pub struct Floor {
    tls: Option<SslConnector>,
    cold: bool,
    kept: Mutex<Option<Box<Kept>>>,
}

impl Clone for Floor {
    /// With a connection of its own.
    fn clone(&self) -> Self {
        Self::new(self.tls.clone(), self.cold)
    }
}

/// What stays from one exchange to the next.
struct Kept {
    request: Request,
    connection: Option<Connection>,
    /// Of the last connection, when it is kept no longer.
    buffers: Option<Buffers>,
}

enum Connection {
    Plain(Wire<TcpStream>),
    Tls(Wire<SslStream<TcpStream>>),
}

struct Wire<S> {
    socket: S,
    buffers: Buffers,
}

impl Floor {
    pub fn new(tls: Option<SslConnector>, cold: bool) -> Self {
        Self { tls, cold, kept: Mutex::new(None) }
    }

    fn take(&self, ask: &Ask<'_>) -> Result<Box<Kept>, PeerError> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept.filter(|kept| kept.request.is_for(ask.url, &ask.upload)) {
            Some(kept) => Ok(kept),
            None => {
                let request = Request::new(ask.url, &ask.upload)?;
                Ok(Box::new(Kept { request, connection: None, buffers: None }))
            }
        }
    }

    fn keep(&self, mut kept: Box<Kept>) {
        if self.cold {
            kept.buffers = kept.connection.take().map(|connection| match connection {
                Connection::Plain(wire) => wire.buffers,
                Connection::Tls(wire) => wire.buffers,
            });
        }
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    async fn connect(
        &self,
        request: &Request,
        buffers: Option<Buffers>,
    ) -> Result<Connection, PeerError> {
        let buffers = buffers.map_or_else(Buffers::new, Buffers::emptied);
        let plain = TcpStream::connect(&request.addresses[..]).await?;
        plain.set_nodelay(true)?;
        match (request.tls, &self.tls) {
            (false, _) => Ok(Connection::Plain(Wire { socket: plain, buffers })),
            (true, Some(tls)) => {
                let socket = tokio_boring::connect(tls.configure()?, &request.host, plain);
                let socket = socket.await.map_err(|e| e.to_string())?;
                Ok(Connection::Tls(Wire { socket, buffers }))
            }
            (true, None) => Err("https without --ca".into()),
        }
    }
}

impl AsyncPeer for Floor {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let mut kept = self.take(&ask)?;
        let connection = match &mut kept.connection {
            Some(connection) => connection,
            none => none.insert(self.connect(&kept.request, kept.buffers.take()).await?),
        };
        let head = &kept.request.head;
        match connection {
            Connection::Plain(wire) => wire.exchange(head, ask.upload, ask.deliver, seen).await?,
            Connection::Tls(wire) => wire.exchange(head, ask.upload, ask.deliver, seen).await?,
        }
        self.keep(kept);
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    async fn exchange(
        &mut self,
        head: &[u8],
        upload: Outgoing,
        deliver: Deliver,
        seen: &mut Seen,
    ) -> Result<(), PeerError> {
        match upload {
            Outgoing::None => self.socket.write_all(head).await?,
            Outgoing::Known(body) => {
                self.write(&mut [IoSlice::new(head), IoSlice::new(&body)]).await?;
            }
            Outgoing::Stream(pieces) => self.send_chunks(head, pieces).await?,
        }
        self.receive(deliver, seen).await
    }

    async fn send_chunks(&mut self, mut head: &[u8], mut pieces: Pieces) -> Result<(), PeerError> {
        while let Some(piece) = next(&mut pieces).await {
            let piece = piece?;
            let (line, n) = chunk_size(piece.len());
            self.write(&mut [
                IoSlice::new(head),
                IoSlice::new(&line[..n]),
                IoSlice::new(&piece),
                IoSlice::new(b"\r\n"),
            ])
            .await?;
            head = &[];
        }
        Ok(self.write(&mut [IoSlice::new(head), IoSlice::new(LAST_CHUNK)]).await?)
    }

    /// All of the parts: as one where the socket or the size permits.
    async fn write(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        if !self.socket.is_write_vectored() {
            if let Some(all) = joined(parts, &mut self.buffers.joined) {
                return self.socket.write_all(all).await;
            }
            for part in parts {
                self.socket.write_all(part).await?;
            }
            return Ok(());
        }
        while !parts.is_empty() {
            let n = self.socket.write_vectored(parts).await?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut parts, n);
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), PeerError> {
        let n = self.socket.read(self.buffers.inbox.room()).await?;
        self.buffers.inbox.filled(n)
    }

    async fn receive(&mut self, deliver: Deliver, seen: &mut Seen) -> Result<(), PeerError> {
        let (status, mut framing) = loop {
            if let Some(head) = self.buffers.inbox.head()? {
                break head;
            }
            self.fill().await?;
        };
        seen.status(status);
        if deliver == Deliver::Bytes {
            return self.collect(framing, seen).await;
        }
        self.each(&mut framing, |piece| seen.piece(piece)).await
    }

    /// Hands on each piece of the body from where it was read to.
    async fn each(
        &mut self,
        framing: &mut Framing,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), PeerError> {
        while !framing.is_over() {
            let step = framing.step(self.buffers.inbox.here())?;
            take(&self.buffers.inbox.here()[step.data]);
            self.buffers.inbox.used(step.used);
            if step.used == 0 {
                self.fill().await?;
            }
        }
        Ok(())
    }

    /// The body as one: from where it was read to if all of it came with the head, else in memory of
    /// its own, to which what is still to come is read.
    async fn collect(&mut self, mut framing: Framing, seen: &mut Seen) -> Result<(), PeerError> {
        if let Some(length) = framing.all_of(self.buffers.inbox.here()) {
            seen.whole(&self.buffers.inbox.here()[..length]);
            self.buffers.inbox.used(length);
            return Ok(());
        }
        let mut all = Vec::with_capacity(framing.expected()?);
        let Framing::Length(length) = framing else {
            self.each(&mut framing, |piece| all.extend_from_slice(piece)).await?;
            seen.whole(&all);
            return Ok(());
        };
        all.extend_from_slice(self.buffers.inbox.here());
        self.buffers.inbox.used(all.len());
        while let left @ 1.. = length - all.len() as u64 {
            let room = usize::try_from(left)?.min(READ);
            if self.socket.read_buf(&mut (&mut all).limit(room)).await? == 0 {
                return Err("the server closed the connection within a body".into());
            }
        }
        seen.whole(&all);
        Ok(())
    }
}

async fn next(pieces: &mut Pieces) -> Option<io::Result<Bytes>> {
    poll_fn(|cx| Pin::new(&mut *pieces).poll_next(cx)).await
}
