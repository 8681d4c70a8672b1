//! A connection with one stream at a time.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
};

use bytes::Bytes;
use futures_core::Stream;
use mimus_bench_kit::{Deliver, Outgoing, PeerError, Pieces, Seen};

use super::{
    request::Request,
    socket::Socket,
    wire::{Event, HEAD, READ, Wire},
};

/// A connection.
pub struct Alone<S> {
    socket: S,
    wire: Wire,
    /// The body as one, where it is wanted so: used again.
    all: Vec<u8>,
}

/// Where the answer's body goes.
#[derive(Debug, Clone, Copy)]
enum Into {
    Pieces,
    /// To `all`, of which so much came.
    All(usize),
}

impl<S: Socket> Alone<S> {
    pub fn new(socket: S) -> Self {
        Self { socket, wire: Wire::new(), all: Vec::new() }
    }

    pub async fn exchange(
        &mut self,
        request: &Request,
        upload: Outgoing,
        deliver: Deliver,
        seen: &mut Seen,
    ) -> Result<(), PeerError> {
        let end = matches!(upload, Outgoing::None);
        let stream = self.wire.open(&request.block, end);
        match (&request.message, upload) {
            (Some(message), Outgoing::Known(text)) => {
                self.send(stream, message, true).await?;
                self.receive(Into::All(0), seen).await?;
                if self.all != *message {
                    return Err("the message came back as another".into());
                }
                seen.whole(&text);
                return Ok(());
            }
            (_, Outgoing::None) => self.flush().await?,
            (_, Outgoing::Known(body)) => self.send(stream, &body, true).await?,
            (_, Outgoing::Stream(mut pieces)) => {
                while let Some(piece) = next(&mut pieces).await {
                    self.send(stream, &piece?, false).await?;
                }
                self.send(stream, &[], true).await?;
            }
        }
        match deliver {
            Deliver::Bytes => {
                self.receive(Into::All(0), seen).await?;
                seen.whole(&self.all);
            }
            _ => self.receive(Into::Pieces, seen).await?,
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), PeerError> {
        self.socket.write(&mut [IoSlice::new(&self.wire.out)]).await?;
        self.wire.out.clear();
        Ok(())
    }

    /// Sends a part of a body, and what was to be sent before it.
    async fn send(&mut self, stream: u32, mut body: &[u8], end: bool) -> Result<(), PeerError> {
        loop {
            let mut heads = [([0; HEAD], 0); 32];
            let (mut used, mut left) = (0, body.len());
            for slot in &mut heads[..S::FRAMES] {
                let Some(frame) = self.wire.frame(stream, left, end) else { break };
                *slot = frame;
                used += 1;
                left -= frame.1;
                if left == 0 {
                    break;
                }
            }
            if used == 0 {
                self.wait_for_window().await?;
                continue;
            }
            let mut parts = Vec::with_capacity(2 * used + 1);
            parts.push(IoSlice::new(&self.wire.out));
            for (head, length) in &heads[..used] {
                let (data, rest) = body.split_at(*length);
                parts.extend([IoSlice::new(head), IoSlice::new(data)]);
                body = rest;
            }
            self.socket.write(&mut parts).await?;
            self.wire.out.clear();
            if body.is_empty() {
                return Ok(());
            }
        }
    }

    async fn wait_for_window(&mut self) -> Result<(), PeerError> {
        loop {
            match self.wire.event()? {
                Event::Other => return Ok(()),
                Event::More => self.fill().await?,
                _ => return Err("an answer before the end of the request".into()),
            }
        }
    }

    async fn fill(&mut self) -> Result<(), PeerError> {
        if !self.wire.out.is_empty() {
            self.flush().await?;
        }
        let n = self.socket.read(self.wire.room()).await?;
        self.wire.filled(n)
    }

    async fn receive(&mut self, mut into: Into, seen: &mut Seen) -> Result<(), PeerError> {
        self.all.clear();
        loop {
            match self.wire.event()? {
                Event::Head { length, end, .. } => {
                    seen.status(200);
                    let length = usize::try_from(length.unwrap_or(0))?;
                    if matches!(into, Into::All(_)) && length >= READ {
                        // Fresh memory where much is wanted: who collects a body keeps it.
                        self.all = vec![0; length];
                    }
                    if end {
                        return self.cut(into);
                    }
                }
                Event::Data { at, end, .. } => {
                    let piece = self.wire.bytes(at);
                    match &mut into {
                        Into::Pieces => seen.piece(piece),
                        Into::All(came) => {
                            if self.all.len() < *came + piece.len() {
                                self.all.resize(*came + piece.len(), 0);
                            }
                            self.all[*came..*came + piece.len()].copy_from_slice(piece);
                            *came += piece.len();
                        }
                    }
                    if end {
                        return self.cut(into);
                    }
                }
                Event::Trailers { .. } => return self.cut(into),
                Event::Other => {}
                Event::More => {
                    if self.read_on(&mut into).await? {
                        return self.cut(into);
                    }
                }
            }
        }
    }

    /// What came is all there is.
    fn cut(&mut self, into: Into) -> Result<(), PeerError> {
        if let Into::All(came) = into {
            self.all.truncate(came);
        }
        Ok(())
    }

    /// Reads more: of a long body that is wanted as one, to where it belongs. True if it ended so.
    async fn read_on(&mut self, into: &mut Into) -> Result<bool, PeerError> {
        let to_come = self.wire.to_come().min(READ);
        if let Into::All(came) = into
            && to_come > 0
            && let Some(room) = self.all.get_mut(*came..*came + to_come)
        {
            let n = self.socket.read(room).await?;
            if n == 0 {
                return Err("the server closed the connection within a body".into());
            }
            *came += n;
            return Ok(self.wire.took(n));
        }
        self.fill().await?;
        Ok(false)
    }
}

async fn next(pieces: &mut Pieces) -> Option<io::Result<Bytes>> {
    poll_fn(|cx| Pin::new(&mut *pieces).poll_next(cx)).await
}
