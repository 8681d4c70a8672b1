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
    reply::{Framing, Inbox},
    request::{LAST_CHUNK, Request, chunk_size, joined},
};

pub struct Floor {
    tls: Option<SslConnector>,
    cold: bool,
    request: Option<Request>,
    connection: Option<Connection>,
}

struct Connection {
    wire: Wire,
    inbox: Inbox,
    joined: Vec<u8>,
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<SslStream<TcpStream>>),
}

impl Floor {
    pub fn new(tls: Option<SslConnector>, cold: bool) -> Self {
        Self { tls, cold, request: None, connection: None }
    }

    fn connect(&self, request: &Request) -> Result<Connection, PeerError> {
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
        Ok(Connection { wire, inbox: Inbox::new(), joined: Vec::new() })
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
        self.connection = (!self.cold).then_some(connection);
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
                return match joined(parts, &mut self.joined) {
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
        let room = self.inbox.room();
        let n = match &mut self.wire {
            Wire::Plain(tcp) => tcp.read(room)?,
            Wire::Tls(tls) => tls.read(room)?,
        };
        self.inbox.filled(n)
    }

    fn receive(&mut self, deliver: Deliver, seen: &mut Seen) -> Result<(), PeerError> {
        let (status, mut framing) = loop {
            if let Some(head) = self.inbox.head()? {
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
            let step = framing.step(self.inbox.here())?;
            take(&self.inbox.here()[step.data]);
            self.inbox.used(step.used);
            if step.used == 0 {
                self.fill()?;
            }
        }
        Ok(())
    }

    /// The body as one: from where it was read to if all of it came with the head, else in memory of
    /// its own, to which what is still to come is read.
    fn collect(&mut self, mut framing: Framing, seen: &mut Seen) -> Result<(), PeerError> {
        if let Some(length) = framing.all_of(self.inbox.here()) {
            seen.whole(&self.inbox.here()[..length]);
            self.inbox.used(length);
            return Ok(());
        }
        let mut all = Vec::with_capacity(framing.expected()?);
        match (framing, &self.wire) {
            (Framing::Length(length), Wire::Plain(tcp)) => {
                all.extend_from_slice(self.inbox.here());
                self.inbox.used(all.len());
                while (all.len() as u64) < length {
                    let spare = rustix::buffer::spare_capacity(&mut all);
                    if rustix::io::read(tcp, spare)? == 0 {
                        return Err("the server closed the connection within a body".into());
                    }
                }
            }
            _ => self.each(&mut framing, |piece| all.extend_from_slice(piece))?,
        }
        seen.whole(&all);
        Ok(())
    }
}
