//! The server's end of a WebSocket: it reads what the client says strictly, and notes it.

use std::io;

use bytes::{Buf, Bytes, BytesMut};

use super::deflate::{Agreed, Deflate};
use super::frame::{self, FIN, MAX_CONTROL, RSV1, RSV2, RSV3, op};
use crate::conn::After;
use crate::exchange::{Exchange, Wire};
use crate::record::SeenWs;
use crate::request::MAX_KEPT_BODY;

/// The most payloads of PONG that are kept.
const MAX_PONGS: usize = 10_000;

/// What a client has broken, and with which close code it is told so.
pub(crate) type Fault = (&'static str, u16);

/// What came.
#[derive(Debug)]
pub(crate) enum Got {
    /// A whole message, not compressed any more, and its opcode.
    Message(u8, Vec<u8>),
    Ping(Bytes),
    Pong,
    /// The payload of the client's first Close.
    Close(Bytes),
    /// The client broke a rule; this is the code to tell it so.
    Broken(u16),
    /// The client has ended its side.
    Gone,
}

struct Frame {
    first: u8,
    payload: Bytes,
}

/// A message whose end has not come.
struct Part {
    opcode: u8,
    compressed: bool,
    payload: Vec<u8>,
}

/// One open WebSocket, over HTTP/1.1 or HTTP/2.
pub(crate) struct Socket<'e> {
    pub(crate) ex: &'e mut Exchange,
    inbox: BytesMut,
    deflate: Option<Deflate>,
    part: Option<Part>,
    closed: bool,
}

impl<'e> Socket<'e> {
    /// Over an exchange whose handshake is, or will be, answered.
    pub(crate) fn new(ex: &'e mut Exchange) -> Self {
        let socket = Self { ex, inbox: BytesMut::new(), deflate: None, part: None, closed: false };
        socket.note(|_| {});
        socket
    }

    /// Compresses what it sends, and takes what is compressed.
    pub(crate) fn compress(&mut self, agreed: Agreed) {
        self.deflate = Some(Deflate::new(agreed));
    }

    fn note(&self, change: impl FnOnce(&mut SeenWs)) {
        self.ex.about.shared.recorder.ws(self.ex.mark(), change);
    }

    /// Writes these bytes as they are.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        match &mut self.ex.wire {
            Wire::One(one) => one.conn.write(bytes.as_ref()).await,
            Wire::Two(stream) => stream.send(Bytes::copy_from_slice(bytes.as_ref()), false).await,
        }
    }

    /// Sends a message as it was agreed.
    pub(crate) async fn send(&mut self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        let bytes = match &mut self.deflate {
            Some(deflate) => frame::frame(FIN | RSV1 | opcode, deflate.shrink(payload)?),
            None => frame::frame(FIN | opcode, payload),
        };
        self.write(bytes).await
    }

    /// Reads more; `false` when the client has ended its side.
    async fn fill(&mut self) -> io::Result<bool> {
        let piece = match &mut self.ex.wire {
            Wire::One(one) => match one.conn.take_some(u64::MAX).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                piece => piece.map(Some),
            },
            Wire::Two(stream) => stream.next_piece().await,
        };
        match piece {
            Ok(Some(piece)) => {
                self.inbox.extend_from_slice(&piece);
                Ok(true)
            }
            ended => {
                let cut = !self.inbox.is_empty();
                self.note(|seen| (seen.gone, seen.cut) = (true, cut));
                ended.map(|_| false)
            }
        }
    }

    /// The next frame of the inbox, unmasked; `None` when it is not whole.
    fn parse(&mut self) -> Option<Result<Frame, Fault>> {
        let &[first, second, ref rest @ ..] = &self.inbox[..] else {
            return None;
        };
        if second & 0x80 == 0 {
            return Some(Err(("a frame that is not masked", 1002)));
        }
        let (extended, least) = match second & 0x7f {
            126 => (2, 126),
            127 => (8, 65_536),
            _ => (0, 0),
        };
        let len = match extended {
            0 => u64::from(second & 0x7f),
            _ => rest.get(..extended)?.iter().fold(0, |len, &byte| len << 8 | u64::from(byte)),
        };
        if len < least {
            return Some(Err(("a length in more bytes than it needs", 1002)));
        }
        if len > MAX_KEPT_BODY as u64 {
            return Some(Err(("a frame larger than is kept", 1009)));
        }
        if rest.len() < extended + 4 + len as usize {
            return None;
        }
        self.inbox.advance(2 + extended);
        let key = self.inbox.get_u32().to_be_bytes();
        let mut payload = self.inbox.split_to(len as usize);
        payload.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
        Some(Ok(Frame { first, payload: payload.freeze() }))
    }

    /// What the inbox holds whole, if anything.
    fn take(&mut self) -> Option<Got> {
        while let Some(read) = self.parse() {
            match read.and_then(|frame| self.judge(frame)) {
                Ok(Some(got)) => return Some(got),
                Ok(None) => {}
                Err((what, code)) => {
                    self.note(|seen| seen.broken.push(what));
                    return Some(Got::Broken(code));
                }
            }
        }
        None
    }

    /// What comes next; nothing is answered.
    pub(crate) async fn next(&mut self) -> io::Result<Got> {
        loop {
            if let Some(got) = self.take() {
                return Ok(got);
            }
            if !self.fill().await? {
                return Ok(Got::Gone);
            }
        }
    }

    /// Writes `piece` again and again, and reads meanwhile, until the client closes, breaks a rule, or
    /// leaves.
    pub(crate) async fn flood(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut at = 0;
        loop {
            let came = match &mut self.ex.wire {
                Wire::One(one) => one.conn.flood(piece, &mut at).await,
                Wire::Two(stream) => stream.flood(piece, &mut at).await,
            };
            // A client that has closed and left cannot be written to; what it said is still to be read.
            let Ok(Some(came)) = came else {
                return self.listen().await;
            };
            self.inbox.extend_from_slice(&came);
            while let Some(got) = self.take() {
                if matches!(got, Got::Close(_) | Got::Broken(_)) {
                    return Ok(());
                }
            }
        }
    }

    /// What a frame means; `None` when the message goes on.
    fn judge(&mut self, frame: Frame) -> Result<Option<Got>, Fault> {
        let (opcode, fin) = (frame.first & 0x0f, frame.first & FIN != 0);
        let compressed = frame.first & RSV1 != 0;
        if self.closed {
            return Err(("a frame behind Close", 1002));
        }
        if frame.first & (RSV2 | RSV3) != 0 || (compressed && self.deflate.is_none()) {
            return Err(("a reserved bit", 1002));
        }
        match opcode {
            op::TEXT | op::BINARY if self.part.is_some() => {
                Err(("a new message inside of another", 1002))
            }
            op::TEXT | op::BINARY => {
                self.part = Some(Part { opcode, compressed, payload: Vec::new() });
                self.more(&frame.payload, fin)
            }
            op::MORE if self.part.is_none() => Err(("a continuation of nothing", 1002)),
            op::MORE if compressed => Err(("RSV1 on a continuation", 1002)),
            op::MORE => self.more(&frame.payload, fin),
            op::CLOSE | op::PING | op::PONG => self.control(opcode, frame, fin).map(Some),
            _ => Err(("an unknown opcode", 1002)),
        }
    }

    fn more(&mut self, payload: &[u8], fin: bool) -> Result<Option<Got>, Fault> {
        let Some(mut part) = self.part.take() else {
            return Ok(None);
        };
        if part.payload.len() + payload.len() > MAX_KEPT_BODY {
            return Err(("a message larger than is kept", 1009));
        }
        part.payload.extend_from_slice(payload);
        self.note(|seen| {
            seen.frames += 1;
            seen.bytes += payload.len() as u64;
        });
        if !fin {
            self.part = Some(part);
            return Ok(None);
        }
        let whole = match &mut self.deflate {
            Some(deflate) if part.compressed => {
                deflate.grow(&part.payload).map_err(|_| ("compression that does not read", 1007))?
            }
            _ => part.payload,
        };
        if part.opcode == op::TEXT && std::str::from_utf8(&whole).is_err() {
            return Err(("text that is not UTF-8", 1007));
        }
        self.note(|seen| {
            seen.messages += 1;
            seen.compressed += u64::from(part.compressed);
        });
        Ok(Some(Got::Message(part.opcode, whole)))
    }

    fn control(&mut self, opcode: u8, frame: Frame, fin: bool) -> Result<Got, Fault> {
        let payload = frame.payload;
        if !fin {
            return Err(("a control frame in fragments", 1002));
        }
        if payload.len() > MAX_CONTROL {
            return Err(("a control frame over 125 bytes", 1002));
        }
        if frame.first & RSV1 != 0 {
            return Err(("a compressed control frame", 1002));
        }
        match opcode {
            op::PING => {
                self.note(|seen| seen.pings += 1);
                Ok(Got::Ping(payload))
            }
            op::PONG => {
                self.note(|seen| {
                    if seen.pongs.len() < MAX_PONGS {
                        seen.pongs.push(payload.to_vec());
                    }
                });
                Ok(Got::Pong)
            }
            _ => {
                let (code, reason) = close_of(&payload)?;
                self.closed = true;
                self.note(|seen| seen.close = Some((code, reason)));
                Ok(Got::Close(payload))
            }
        }
    }

    /// The next message, with pings answered; `None` once the socket is closed, which is answered too.
    pub(crate) async fn message(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        loop {
            match self.next().await? {
                Got::Message(opcode, payload) => return Ok(Some((opcode, payload))),
                Got::Ping(payload) => self.write(frame::pong(payload)).await?,
                Got::Pong => {}
                Got::Close(payload) => {
                    self.write(frame::frame(FIN | op::CLOSE, payload)).await?;
                    return Ok(None);
                }
                Got::Broken(code) => {
                    self.write(frame::close(code, "")).await?;
                    return Ok(None);
                }
                Got::Gone => return Ok(None),
            }
        }
    }

    /// Reads on, answering nothing, until the client closes, breaks a rule, or leaves.
    pub(crate) async fn listen(&mut self) -> io::Result<()> {
        while let Got::Message(..) | Got::Ping(_) | Got::Pong = self.next().await? {}
        Ok(())
    }

    /// Closes with this code, and waits for the client's Close.
    pub(crate) async fn close(&mut self, code: u16, reason: &str) -> io::Result<()> {
        self.write(frame::close(code, reason)).await?;
        self.listen().await
    }

    /// Ends the stream under the socket. Over HTTP/2, [`After::Close`] ends this stream alone.
    pub(crate) fn end(self, how: After) -> io::Result<After> {
        match &mut self.ex.wire {
            Wire::Two(stream) if how == After::Close => {
                stream.finish(&[])?;
                Ok(After::Keep)
            }
            _ => Ok(how),
        }
    }
}

/// The code and the reason of a client's Close (RFC 6455 sections 5.5.1 and 7.4).
fn close_of(payload: &[u8]) -> Result<(Option<u16>, String), Fault> {
    let (code, reason) = match payload {
        [] => return Ok((None, String::new())),
        [a, b, reason @ ..] => (u16::from_be_bytes([*a, *b]), reason),
        _ => return Err(("a Close of one byte", 1002)),
    };
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(("a Close with a code that may not be sent", 1002));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| ("a reason that is not UTF-8", 1007))?;
    Ok((Some(code), reason.to_owned()))
}
