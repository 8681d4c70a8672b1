//! WebSocket: every message comes back as it came, frame by frame. With `permessage-deflate` too: what the
//! client compressed is what it has to decompress, so that the server does neither.

mod handshake;

use std::io;

use crate::connection::{Shared, Wait};
use crate::input::Input;
use crate::pages::Pages;
use crate::transport::{Came, Transport, Unsent};

pub(crate) use handshake::{Fields, Handshake};

/// The largest frame that is taken, in bytes.
const MAX_FRAME: u64 = 64 * 1024 * 1024;
/// So much may wait to be sent. A client may send all it has before it reads, so that what comes is read
/// even if nothing can be sent; one that never reads is cut off.
const MAX_UNSENT: usize = 256 * 1024 * 1024;

/// RFC 6455 section 5.2.
mod opcode {
    pub(super) const CLOSE: u8 = 0x8;
    pub(super) const PING: u8 = 0x9;
    pub(super) const PONG: u8 = 0xa;
}

/// The server's end of a connection that speaks WebSocket.
#[derive(Debug, Default)]
pub(crate) struct WebSocket {
    echo: Echo,
    frame: Option<Frame>,
    /// A Close came: when all is sent, this is over.
    closing: bool,
}

/// A frame of which the payload is to come.
#[derive(Debug)]
struct Frame {
    left: u64,
    /// The mask of its next byte first.
    mask: [u8; 4],
    fate: Fate,
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is sent back; a Ping as a Pong.
    Echoed,
    /// It is sent back, and nothing after it.
    Last,
    Forgotten,
}

/// What is sent back. A frame that is not there yet is not begun: then a client that sends a large message
/// before it reads gets in nobody's way.
#[derive(Debug, Default)]
struct Echo {
    bytes: Vec<u8>,
    sent: usize,
    /// Up to here there are whole frames.
    whole: usize,
}

impl WebSocket {
    /// Goes on as far as it can. `None` when the connection is over.
    pub(crate) fn drive(
        &mut self,
        transport: &mut Transport,
        shared: &mut Shared,
    ) -> io::Result<Option<Wait>> {
        loop {
            self.take(&mut shared.buffers.input)?;
            let sent = transport.send(&mut self.echo, &shared.pages, &mut shared.buffers)?;
            if self.closing {
                return Ok((!sent).then_some(Wait::Writable));
            }
            match transport.read(&mut shared.buffers.input)? {
                Came::Bytes => {}
                Came::End => return Ok(None),
                Came::Nothing => {
                    // What TLS had to say to what it read may have to go out.
                    let sent =
                        transport.send(&mut self.echo, &shared.pages, &mut shared.buffers)?;
                    return Ok(Some(if sent { Wait::Readable } else { Wait::Either }));
                }
            }
        }
    }

    /// Takes all the frames that are there, and the beginning of one that is not.
    fn take(&mut self, input: &mut Input) -> io::Result<()> {
        while !self.closing {
            let frame = match &mut self.frame {
                Some(frame) => frame,
                none => match self.echo.head(input.bytes())? {
                    Some((frame, length)) => {
                        input.consume(length);
                        none.insert(frame)
                    }
                    None => return Ok(()),
                },
            };
            let here = input.bytes().len();
            let taken = usize::try_from(frame.left).map_or(here, |left| here.min(left));
            if frame.fate != Fate::Forgotten {
                self.echo.payload(&input.bytes()[..taken], frame.mask);
            }
            input.consume(taken);
            frame.mask.rotate_left(taken % 4);
            frame.left -= taken as u64;
            if frame.left > 0 {
                return Ok(());
            }
            self.closing = frame.fate == Fate::Last;
            self.frame = None;
            self.echo.whole = self.echo.bytes.len();
        }
        Ok(())
    }
}

impl Echo {
    /// Begins what is sent back for the frame that `input` begins with: gives the frame, and the length of
    /// its head. `None` if the head is not all there.
    fn head(&mut self, input: &[u8]) -> io::Result<Option<(Frame, usize)>> {
        let [first, second, rest @ ..] = input else { return Ok(None) };
        // RFC 6455 section 5.1: what a client sends is masked.
        if second & 0x80 == 0 {
            return Err(broken("a frame without a mask"));
        }
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some((length, rest)) = rest.split_at_checked(extended) else { return Ok(None) };
        let Some((&mask, _)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let left = match length {
            [] => u64::from(second & 0x7f),
            length => length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        if left > MAX_FRAME || self.bytes.len() - self.sent > MAX_UNSENT {
            return Err(broken("more than is kept"));
        }
        let fate = match first & 0x0f {
            opcode::PONG => Fate::Forgotten,
            opcode::CLOSE => Fate::Last,
            _ => Fate::Echoed,
        };
        if fate != Fate::Forgotten {
            // FIN and RSV1 as they came, the length in as many bytes, and no mask.
            let is_ping = first & 0x0f == opcode::PING;
            self.bytes.push(if is_ping { first & 0xf0 | opcode::PONG } else { *first });
            self.bytes.push(second & 0x7f);
            self.bytes.extend_from_slice(length);
        }
        Ok(Some((Frame { left, mask, fate }, 2 + extended + 4)))
    }

    fn payload(&mut self, masked: &[u8], mask: [u8; 4]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(masked);
        let (words, rest) = self.bytes[start..].as_chunks_mut::<8>();
        let [a, b, c, d] = mask;
        let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        for word in words {
            *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
        }
        rest.iter_mut().zip(mask.into_iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

impl Unsent for Echo {
    fn is_empty(&self) -> bool {
        self.sent == self.whole
    }

    fn pieces<'a>(&'a self, _: &'a Pages) -> impl Iterator<Item = &'a [u8]> {
        std::iter::once(&self.bytes[self.sent..self.whole]).filter(|piece| !piece.is_empty())
    }

    fn advance(&mut self, _: &Pages, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            (self.sent, self.whole) = (0, 0);
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
