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
    wire::{Event, HEAD, READ, Wire},
};
use crate::socket::{FRAMES_MAX, Socket};

/// A connection.
pub struct Alone<S> {
    socket: S,
    wire: Wire,
    /// The body as one, where it is wanted so: used again.
    all: Vec<u8>,
}

/// Where the answer's body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    Pieces,
    All,
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
                self.receive(Into::All, seen).await?;
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
                self.receive(Into::All, seen).await?;
                seen.whole(&self.all);
                // Who collects a body keeps it, so that the next has memory of its own.
                if self.all.capacity() >= READ {
                    self.all = Vec::new();
                }
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
            let mut heads = [([0; HEAD], 0); FRAMES_MAX];
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
            let mut parts = [IoSlice::new(&[]); 2 * FRAMES_MAX + 1];
            parts[0] = IoSlice::new(&self.wire.out);
            for (pair, (head, length)) in parts[1..].chunks_exact_mut(2).zip(&heads[..used]) {
                let (data, rest) = body.split_at(*length);
                pair.copy_from_slice(&[IoSlice::new(head), IoSlice::new(data)]);
                body = rest;
            }
            self.socket.write(&mut parts[..2 * used + 1]).await?;
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

    async fn receive(&mut self, into: Into, seen: &mut Seen) -> Result<(), PeerError> {
        self.all.clear();
        loop {
            match self.wire.event()? {
                Event::Head { length, end, .. } => {
                    seen.status(200);
                    let length = usize::try_from(length.unwrap_or(0))?;
                    if into == Into::All && length >= READ {
                        self.all = Vec::with_capacity(length);
                    }
                    if end {
                        return Ok(());
                    }
                }
                Event::Data { at, end, .. } => {
                    let piece = self.wire.bytes(at);
                    match into {
                        Into::Pieces => seen.piece(piece),
                        Into::All => self.all.extend_from_slice(piece),
                    }
                    if end {
                        return Ok(());
                    }
                }
                Event::Trailers { .. } => return Ok(()),
                Event::Other => {}
                Event::More => {
                    if self.read_on(into).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads more: of a long body that is wanted as one, to where it belongs. True if it ended so.
    async fn read_on(&mut self, into: Into) -> Result<bool, PeerError> {
        let to_come = self.wire.to_come().min(READ);
        // A few bytes are not worth a read of their own.
        if into == Into::Pieces || to_come < READ / 2 {
            self.fill().await?;
            return Ok(false);
        }
        if !self.wire.out.is_empty() {
            self.flush().await?;
        }
        match self.socket.read_to(&mut self.all, to_come).await? {
            0 => Err("the server closed the connection within a body".into()),
            n => Ok(self.wire.took(n)),
        }
    }
}

async fn next(pieces: &mut Pieces) -> Option<io::Result<Bytes>> {
    poll_fn(|cx| Pin::new(&mut *pieces).poll_next(cx)).await
}
