//! A connection's socket, plain or below TLS.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};

use boring::ssl::{ErrorCode, Ssl, SslContext, SslStream};
use rustix::net::RecvFlags;

use crate::input::Input;
use crate::pages::Pages;

/// Plain bytes in one TLS record.
pub(crate) const RECORD: usize = 16 * 1024;
/// Encrypted bytes that gather before they are sent.
const GATHERED: usize = 128 * 1024;
/// Bytes asked of the kernel at a time, as long as they are copied: more falls out of the cache.
const READ: usize = 64 * 1024;

/// Slices in one write.
const SLICES: usize = 32;

/// What a protocol has to send, in slices of its own bytes and of the pages.
pub(crate) trait Unsent {
    fn is_empty(&self) -> bool;

    /// What comes next, none of it empty.
    fn pieces<'a>(&'a self, pages: &'a Pages) -> impl Iterator<Item = &'a [u8]>;

    /// So many bytes of what came next are sent.
    fn advance(&mut self, pages: &Pages, bytes: usize);

    /// What comes next, in as many slices as there are for it.
    fn slices<'a>(&'a self, pages: &'a Pages) -> ([IoSlice<'a>; SLICES], usize) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        for slice in self.pieces(pages).take(SLICES) {
            slices[used] = IoSlice::new(slice);
            used += 1;
        }
        (slices, used)
    }

    /// What comes next in one slice: up to `buffer`'s length, copied there unless it is in one piece.
    fn record<'a>(&'a self, pages: &'a Pages, buffer: &'a mut [u8]) -> &'a [u8] {
        let mut used = 0;
        for slice in self.pieces(pages) {
            if used == 0 && slice.len() >= buffer.len() {
                return &slice[..buffer.len()];
            }
            let taken = slice.len().min(buffer.len() - used);
            buffer[used..used + taken].copy_from_slice(&slice[..taken]);
            used += taken;
            if used == buffer.len() {
                break;
            }
        }
        &buffer[..used]
    }
}

/// Buffers that the loop lends to the connection at hand.
pub(crate) struct Buffers {
    /// What was read and not yet used, decrypted.
    pub(crate) input: Input,
    encrypted: Input,
    record: Box<[u8]>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self {
            input: Input::with_capacity(256 * 1024),
            encrypted: Input::with_capacity(READ + 2 * RECORD),
            record: vec![0; RECORD].into_boxed_slice(),
        }
    }
}

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Bytes,
    /// Nothing: wait for the socket.
    Nothing,
    /// The peer's end of the stream.
    End,
}

/// A connection's socket, plain or below TLS.
pub(crate) enum Transport {
    Plain(Socket),
    Tls(Box<Tls>),
}

impl Transport {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self::Plain(Socket { stream, drained: true })
    }

    pub(crate) fn tls(stream: TcpStream, context: &SslContext) -> io::Result<Self> {
        let wire = Wire {
            socket: Socket { stream, drained: true },
            input: Input::default(),
            rest: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
        };
        let mut stream = SslStream::new(Ssl::new(context)?, wire)?;
        // Says which side this is. Nothing came yet, so that it cannot do more.
        let _ = stream.accept();
        Ok(Self::Tls(Box::new(Tls { stream })))
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => &socket.stream,
            Self::Tls(tls) => &tls.stream.get_ref().socket.stream,
        }
    }

    /// The kernel says that the socket has something to read.
    pub(crate) fn is_readable(&mut self) {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &mut tls.stream.get_mut().socket,
        };
        socket.drained = false;
    }

    /// Takes what it needs of the loop's buffers. [`Self::give_back`] is owed.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if let Self::Tls(tls) = self {
            let wire = tls.stream.get_mut();
            std::mem::swap(&mut wire.input, &mut buffers.encrypted);
            wire.input.load(&mut wire.rest);
        }
    }

    /// Gives the loop's buffers back and keeps what is left over.
    pub(crate) fn give_back(&mut self, buffers: &mut Buffers) {
        if let Self::Tls(tls) = self {
            let wire = tls.stream.get_mut();
            wire.input.save(&mut wire.rest);
            std::mem::swap(&mut wire.input, &mut buffers.encrypted);
        }
    }

    /// Reads more.
    pub(crate) fn read(&mut self, input: &mut Input) -> io::Result<Came> {
        match self {
            Self::Plain(socket) => came(socket.read_into(input)),
            Self::Tls(tls) => tls.read(input),
        }
    }

    /// Drops up to `bytes` of what comes next, without copying it out of the kernel if possible; `None`
    /// where it is not.
    pub(crate) fn forget(
        &mut self,
        bytes: u64,
        buffers: &mut Buffers,
    ) -> Option<io::Result<usize>> {
        let Self::Plain(socket) = self else { return None };
        Some(socket.forget(bytes, buffers.input.room()))
    }

    /// Sends `output`. True once all of it is with the kernel.
    pub(crate) fn send(
        &mut self,
        output: &mut impl Unsent,
        pages: &Pages,
        buffers: &mut Buffers,
    ) -> io::Result<bool> {
        match self {
            Self::Plain(socket) => socket.send(output, pages),
            Self::Tls(tls) => tls.send(output, pages, &mut buffers.record),
        }
    }

    /// Says that nothing more comes, and nothing else: what the peer still sends can be read.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self {
            // The socket's own end follows, so that an alert that cannot be made is no loss.
            let _ = tls.stream.shutdown();
            tls.stream.get_mut().flush_unsent()?;
        }
        self.stream().shutdown(Shutdown::Write)
    }
}

pub(crate) fn came(read: io::Result<usize>) -> io::Result<Came> {
    match read {
        Ok(0) => Ok(Came::End),
        Ok(_) => Ok(Came::Bytes),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Came::Nothing),
        Err(error) => Err(error),
    }
}

/// A socket that does not block.
pub(crate) struct Socket {
    stream: TcpStream,
    /// The last read took all there was: the next is not worth a system call until the kernel says so.
    drained: bool,
}

impl Socket {
    fn read_into(&mut self, input: &mut Input) -> io::Result<usize> {
        if self.drained {
            return Err(ErrorKind::WouldBlock.into());
        }
        let room = input.room();
        if room.is_empty() {
            return Err(ErrorKind::OutOfMemory.into());
        }
        let asked = room.len().min(READ);
        let read = self.stream.read(&mut room[..asked])?;
        self.drained = read < asked;
        input.filled(read);
        Ok(read)
    }

    fn forget(&mut self, bytes: u64, room: &mut [u8]) -> io::Result<usize> {
        if self.drained {
            return Err(ErrorKind::WouldBlock.into());
        }
        let asked = usize::try_from(bytes).map_or(room.len(), |bytes| bytes.min(room.len()));
        // On TCP this leaves `room` alone and drops the bytes.
        let (_, read) = rustix::net::recv(&self.stream, &mut room[..asked], RecvFlags::TRUNC)?;
        self.drained = read < asked;
        Ok(read)
    }

    fn send(&mut self, output: &mut impl Unsent, pages: &Pages) -> io::Result<bool> {
        while !output.is_empty() {
            let (slices, used) = output.slices(pages);
            let sent = match &slices[..used] {
                [only] => self.stream.write(only),
                slices => self.stream.write_vectored(slices),
            };
            match sent {
                Ok(sent) => output.advance(pages, sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// TLS whose records are read and written many at a time.
pub(crate) struct Tls {
    stream: SslStream<Wire>,
}

impl Tls {
    fn read(&mut self, input: &mut Input) -> io::Result<Came> {
        let room = input.room();
        if room.is_empty() {
            return Err(ErrorKind::OutOfMemory.into());
        }
        match self.stream.ssl_read(room) {
            Ok(read) => {
                input.filled(read);
                Ok(Came::Bytes)
            }
            Err(error) => match error.code() {
                ErrorCode::WANT_READ => Ok(Came::Nothing),
                ErrorCode::ZERO_RETURN => Ok(Came::End),
                _ => {
                    // Whatever alert there is tells the peer why.
                    let _ = self.stream.get_mut().flush_unsent();
                    Err(io::Error::other(error))
                }
            },
        }
    }

    fn send(
        &mut self,
        output: &mut impl Unsent,
        pages: &Pages,
        record: &mut [u8],
    ) -> io::Result<bool> {
        while !output.is_empty() {
            if self.stream.get_ref().unsent.len() >= GATHERED
                && !self.stream.get_mut().flush_unsent()?
            {
                return Ok(false);
            }
            let written = match self.stream.ssl_write(output.record(pages, record)) {
                Ok(written) => written,
                // In a handshake that cannot go on without the peer, after what it has to say.
                Err(error) if error.code() == ErrorCode::WANT_READ => break,
                Err(error) => return Err(io::Error::other(error)),
            };
            output.advance(pages, written);
        }
        Ok(self.stream.get_mut().flush_unsent()? && output.is_empty())
    }
}

/// Encrypted bytes on their way. TLS reads a record's five bytes of head before the rest, and writes
/// records one by one: the kernel is not to see that.
struct Wire {
    socket: Socket,
    /// The loop's buffer, while this connection is at hand.
    input: Input,
    /// What was left in it.
    rest: Vec<u8>,
    unsent: Vec<u8>,
    sent: usize,
}

impl Wire {
    /// True once all is with the kernel.
    fn flush_unsent(&mut self) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            match self.socket.stream.write(&self.unsent[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(true)
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.input.is_empty() && self.socket.read_into(&mut self.input)? == 0 {
            return Ok(0);
        }
        let taken = into.len().min(self.input.bytes().len());
        into[..taken].copy_from_slice(&self.input.bytes()[..taken]);
        self.input.consume(taken);
        Ok(taken)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unsent.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
