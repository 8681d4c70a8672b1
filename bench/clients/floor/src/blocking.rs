//! The floor of a client that blocks: one write, one read.

use std::{
    io::{self, IoSlice, Read, Write},
    net::TcpStream,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use boring::ssl::{SslConnector, SslStream};
use futures_core::Stream;
use mimus_bench_kit::{Ask, BlockingPeer, Cold, Deliver, Outgoing, PeerError, Pieces, Seen};

use crate::{
    reply::{Buffers, Framing, READ},
    request::{LAST_CHUNK, Request, chunk_size, joined},
};

pub struct Floor {
    tls: Option<SslConnector>,
    cold: bool,
    request: Option<Request>,
    connection: Option<Connection>,
    /// Of the last connection, when it is kept no longer.
    buffers: Option<Buffers>,
}

struct Connection {
    wire: Wire,
    buffers: Buffers,
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<SslStream<TcpStream>>),
}

impl Floor {
    pub fn new(tls: Option<SslConnector>, cold: bool) -> Self {
        Self { tls, cold, request: None, connection: None, buffers: None }
    }

    fn connect(&mut self, request: &Request) -> Result<Connection, PeerError> {
        let plain = TcpStream::connect(&request.addresses[..])?;
        plain.set_nodelay(true)?;
        let wire = match (request.tls, &self.tls) {
            (false, _) => Wire::Plain(plain),
            (true, Some(tls)) => {
                let wire = tls.connect(&request.host, plain).map_err(|e| e.to_string())?;
                Wire::Tls(Box::new(wire))
            }
            (true, None) => return Err("https without --ca".into()),
        };
        let buffers = self.buffers.take().map_or_else(Buffers::new, Buffers::emptied);
        Ok(Connection { wire, buffers })
    }
}

impl BlockingPeer for Floor {
    const COLD: Cold = Cold::Configured;

    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let kept = self.request.take().filter(|request| request.is_for(ask.url, &ask.upload));
        let connection = if kept.is_some() { self.connection.take() } else { None };
        let request = match kept {
            Some(request) => request,
            None => Request::new(ask.url, &ask.upload)?,
        };
        let mut connection = match connection {
            Some(connection) => connection,
            None => self.connect(&request)?,
        };
        connection.send(&request.head, ask.upload)?;
        connection.receive(ask.deliver, seen)?;
        self.request = Some(request);
        match self.cold {
            true => self.buffers = Some(connection.buffers),
            false => self.connection = Some(connection),
        }
        Ok(())
    }
}

impl Connection {
    fn send(&mut self, head: &[u8], upload: Outgoing) -> Result<(), PeerError> {
        match upload {
            Outgoing::None => self.write(&mut [IoSlice::new(head)])?,
            Outgoing::Known(body) => {
                self.write(&mut [IoSlice::new(head), IoSlice::new(&body)])?;
            }
            Outgoing::Stream(pieces) => self.send_chunks(head, pieces)?,
        }
        Ok(())
    }

    fn send_chunks(&mut self, mut head: &[u8], mut pieces: Pieces) -> Result<(), PeerError> {
        // Without a runtime the pieces never pend: they block.
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(piece)) = Pin::new(&mut pieces).poll_next(&mut cx) {
            let piece = piece?;
            let (line, n) = chunk_size(piece.len());
            self.write(&mut [
                IoSlice::new(head),
                IoSlice::new(&line[..n]),
                IoSlice::new(&piece),
                IoSlice::new(b"\r\n"),
            ])?;
            head = &[];
        }
        Ok(self.write(&mut [IoSlice::new(head), IoSlice::new(LAST_CHUNK)])?)
    }

    /// All of the parts: as one where the kernel or the size permits.
    fn write(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let tcp = match &mut self.wire {
            Wire::Plain(tcp) => tcp,
            Wire::Tls(tls) => {
                return match joined(parts, &mut self.buffers.joined) {
                    Some(all) => tls.write_all(all),
                    None => parts.iter().try_for_each(|part| tls.write_all(part)),
                };
            }
        };
        while !parts.is_empty() {
            let n = tcp.write_vectored(parts)?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut parts, n);
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), PeerError> {
        let room = self.buffers.inbox.room();
        let n = match &mut self.wire {
            Wire::Plain(tcp) => tcp.read(room)?,
            Wire::Tls(tls) => tls.read(room)?,
        };
        self.buffers.inbox.filled(n)
    }

    fn receive(&mut self, deliver: Deliver, seen: &mut Seen) -> Result<(), PeerError> {
        let (status, mut framing) = loop {
            if let Some(head) = self.buffers.inbox.head()? {
                break head;
            }
            self.fill()?;
        };
        seen.status(status);
        if deliver == Deliver::Bytes {
            return self.collect(framing, seen);
        }
        self.each(&mut framing, |piece| seen.piece(piece))
    }

    /// Hands on each piece of the body from where it was read to.
    fn each(
        &mut self,
        framing: &mut Framing,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), PeerError> {
        while !framing.is_over() {
            let step = framing.step(self.buffers.inbox.here())?;
            take(&self.buffers.inbox.here()[step.data]);
            self.buffers.inbox.used(step.used);
            if step.used == 0 {
                self.fill()?;
            }
        }
        Ok(())
    }

    /// The body as one: from where it was read to if all of it came with the head, else in memory of
    /// its own, to which what is still to come is read.
    fn collect(&mut self, mut framing: Framing, seen: &mut Seen) -> Result<(), PeerError> {
        if let Some(length) = framing.all_of(self.buffers.inbox.here()) {
            seen.whole(&self.buffers.inbox.here()[..length]);
            self.buffers.inbox.used(length);
            return Ok(());
        }
        let mut all = Vec::with_capacity(framing.expected()?);
        match (framing, &self.wire) {
            (Framing::Length(length), Wire::Plain(tcp)) => {
                all.extend_from_slice(self.buffers.inbox.here());
                self.buffers.inbox.used(all.len());
                while (all.len() as u64) < length {
                    read_more(tcp, &mut all)?;
                }
            }
            _ => self.each(&mut framing, |piece| all.extend_from_slice(piece))?,
        }
        seen.whole(&all);
        Ok(())
    }
}

/// Reads once to the room that `all` has left.
fn read_more(tcp: &TcpStream, all: &mut Vec<u8>) -> Result<(), PeerError> {
    let room = all.spare_capacity_mut();
    let most = room.len().min(READ);
    let n = rustix::io::read(tcp, &mut room[..most])?.0.len();
    if n == 0 {
        return Err("the server closed the connection within a body".into());
    }
    // SAFETY: the read initialized `n` bytes from the present length on, within the capacity.
    unsafe { all.set_len(all.len() + n) };
    Ok(())
}
