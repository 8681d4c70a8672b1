//! BoringSSL as a machine: bytes in, bytes out, no socket and no clock.

use std::{
    cell::Cell,
    io::{self, IoSlice, Read, Write},
};

use boring::{
    error::ErrorStack,
    ssl::{Error, ErrorCode, Ssl, SslRef, SslStream},
};
use bytes::{Buf as _, BytesMut};

use super::early;

/// The plaintext of one full record (RFC 8446 section 5.1).
const RECORD: usize = 16 * 1024;
/// How much plaintext one call of [`TlsMachine::write`] takes: what one system call then sends.
const MAX_WRITE: usize = 4 * RECORD;
/// The least room for a read: one full record with its overhead (RFC 8446 section 5.2: 5 + 256 bytes).
const READ: usize = RECORD + 1024;
/// The room of an empty buffer: four of them.
const BLOCK: usize = 4 * READ;
/// A block for output that grew beyond this is not kept: what [`MAX_WRITE`] becomes, with room to spare.
const KEEP: usize = MAX_WRITE + 4096;

thread_local! {
    /// The block that the thread reads into: an empty one is no connection's, so that those which wait
    /// keep none.
    static SPARE: Cell<BytesMut> = Cell::default();
    /// The block that it writes from.
    static SPARE_OUT: Cell<Vec<u8>> = Cell::default();
}

/// What BoringSSL takes for its transport.
#[derive(Debug, Default)]
struct Wire {
    incoming: BytesMut,
    outgoing: Vec<u8>,
    sent: usize,
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.incoming.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = buf.len().min(self.incoming.len());
        self.incoming.copy_to_slice(&mut buf[..n]);
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.outgoing.capacity() == 0 {
            self.outgoing = SPARE_OUT.try_with(Cell::take).unwrap_or_default();
        }
        self.outgoing.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a handshake stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Done, or far enough for early data to be written ([`early::in_progress`]).
    Ready,
    /// The peer's bytes are needed.
    WantRead,
    /// The server refused the early data: see [`TlsMachine::restart_after_rejection`].
    EarlyDataRejected,
}

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plaintext {
    /// So many bytes were appended; never 0.
    Data(usize),
    /// The peer's bytes are needed.
    WantRead,
    /// The peer said `close_notify`: this is the end of what it had to say.
    Closed,
}

/// One client connection.
pub(super) struct TlsMachine {
    stream: SslStream<Wire>,
    /// There may be something to be sent. To look at what BoringSSL holds takes two calls into it, and this is
    /// asked before and after each exchange.
    has_output: bool,
    /// The peer said its last, or failed: every further read says so again.
    over: bool,
}

impl TlsMachine {
    pub(super) fn new(ssl: Ssl) -> Result<Self, ErrorStack> {
        let stream = SslStream::new(ssl, Wire::default())?;
        Ok(TlsMachine { stream, has_output: false, over: false })
    }

    pub(super) fn ssl(&self) -> &SslRef {
        self.stream.ssl()
    }

    /// Takes the handshake as far as the bytes at hand allow.
    pub(super) fn handshake(&mut self) -> Result<Handshake, Error> {
        self.has_output = true;
        match self.stream.connect() {
            Ok(()) => Ok(Handshake::Ready),
            Err(error) if error.code() == ErrorCode::WANT_READ => Ok(Handshake::WantRead),
            Err(error) if error.code().as_raw() == boring_sys::SSL_ERROR_EARLY_DATA_REJECTED => {
                Ok(Handshake::EarlyDataRejected)
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets the early data; the handshake goes on without. Only after
    /// [`Handshake::EarlyDataRejected`].
    pub(super) fn restart_after_rejection(&mut self) {
        early::reset_rejected(self.stream.ssl_mut());
    }

    /// Where the peer's bytes go: a buffer with room for as much as is worth reading at once. After the
    /// read, [`read`](Self::read) them, or say [`release`](Self::release) when none came.
    pub(super) fn feed(&mut self) -> &mut BytesMut {
        let incoming = &mut self.stream.get_mut().incoming;
        if incoming.capacity() == 0 {
            *incoming = SPARE.try_with(Cell::take).unwrap_or_default();
        }
        // A record in part goes to the front when that is cheap.
        if !incoming.try_reclaim(BLOCK.saturating_sub(incoming.len())) {
            incoming.reserve(if incoming.is_empty() { BLOCK } else { READ });
        }
        incoming
    }

    /// Gives an empty buffer back to the thread.
    pub(super) fn release(&mut self) {
        let incoming = &mut self.stream.get_mut().incoming;
        if incoming.is_empty() && incoming.capacity() > 0 {
            let block = std::mem::take(incoming);
            // A thread that ends needs none.
            let _ = SPARE.try_with(|spare| spare.set(block));
        }
    }

    /// Whether bytes of the peer wait to be decrypted.
    pub(super) fn has_input(&self) -> bool {
        !self.stream.get_ref().incoming.is_empty() || self.stream.ssl().pending() > 0
    }

    /// Decrypts into the spare capacity of `buf` until that is full or no whole record is left.
    /// Tickets and key updates are processed on the way.
    pub(super) fn read(&mut self, buf: &mut BytesMut) -> Result<Plaintext, Error> {
        let mut total = 0;
        let end = loop {
            let spare = buf.spare_capacity_mut();
            // A call that can only learn that there is nothing costs as much as one that decrypts.
            if spare.is_empty() || !(self.has_input() || self.over) {
                break Ok(Plaintext::WantRead);
            }
            let read = self.stream.ssl_read_uninit(spare);
            self.has_output |= !self.stream.get_ref().outgoing.is_empty();
            self.release();
            match read {
                Ok(n) => {
                    let len = buf.len() + n;
                    // SAFETY: `ssl_read_uninit` initialised the first `n` bytes of the spare capacity.
                    unsafe { buf.set_len(len) };
                    total += n;
                }
                Err(error) if error.code() == ErrorCode::WANT_READ => {
                    break Ok(Plaintext::WantRead);
                }
                Err(error) if error.code() == ErrorCode::ZERO_RETURN => {
                    break Ok(Plaintext::Closed);
                }
                Err(error) => break Err(error),
            }
        };
        self.over |= !matches!(end, Ok(Plaintext::WantRead));
        // What came before an end is delivered first; BoringSSL repeats the end at the next call.
        if total > 0 { Ok(Plaintext::Data(total)) } else { end }
    }

    /// Encrypts from the front of `bufs`, small slices together in one record, large ones in full
    /// records, and returns how many bytes it took: all of them, or at least 64 KiB, or, while they
    /// travel as early data, at most `limit`. 0 means that the handshake has to be finished first.
    pub(super) fn write(&mut self, bufs: &[IoSlice<'_>], limit: usize) -> Result<usize, Error> {
        let mut rest = Slices { bufs, offset: 0 };
        let mut gathered = Vec::new();
        let mut total = 0;
        let limit = limit.min(MAX_WRITE);
        self.has_output = true;
        while total < limit {
            let room = RECORD.min(limit - total);
            let record = rest.record(room, &mut gathered);
            if record.is_empty() {
                break;
            }
            match self.stream.ssl_write(record) {
                Ok(n) => {
                    rest.advance(n);
                    total += n;
                }
                Err(error) if error.code() == ErrorCode::WANT_READ => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    /// Says `close_notify` (RFC 8446 section 6.1).
    pub(super) fn close_notify(&mut self) -> Result<(), Error> {
        self.has_output = true;
        self.stream.shutdown().map(drop)
    }

    /// Whether there may be something to be sent: then [`transmit`](Self::transmit) has it.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.has_output
    }

    /// What has to be sent to the peer.
    pub(super) fn transmit(&self) -> &[u8] {
        let wire = self.stream.get_ref();
        &wire.outgoing[wire.sent..]
    }

    /// `n` bytes of [`transmit`](Self::transmit) are on their way.
    pub(super) fn transmitted(&mut self, n: usize) {
        let wire = self.stream.get_mut();
        wire.sent += n;
        if wire.sent >= wire.outgoing.len() {
            wire.sent = 0;
            self.has_output = false;
            let mut block = std::mem::take(&mut wire.outgoing);
            if (1..=KEEP).contains(&block.capacity()) {
                block.clear();
                // A thread that ends needs none.
                let _ = SPARE_OUT.try_with(|spare| spare.set(block));
            }
        }
    }
}

/// A position in a list of slices.
struct Slices<'a> {
    bufs: &'a [IoSlice<'a>],
    offset: usize,
}

impl<'a> Slices<'a> {
    /// Up to `room` bytes for one record: borrowed when the next slice fills it or is the last one,
    /// gathered in `scratch` otherwise.
    fn record<'s>(&self, room: usize, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'a: 's,
    {
        let mut bufs = self.bufs;
        let mut offset = self.offset;
        while let [first, others @ ..] = bufs {
            let first = &first[offset..];
            if first.len() >= room || others.iter().all(|buf| buf.is_empty()) {
                return &first[..first.len().min(room)];
            }
            if !first.is_empty() {
                break;
            }
            (bufs, offset) = (others, 0);
        }
        scratch.clear();
        for buf in bufs {
            let buf = &buf[offset..];
            offset = 0;
            scratch.extend_from_slice(&buf[..buf.len().min(room - scratch.len())]);
            if scratch.len() == room {
                break;
            }
        }
        scratch
    }

    fn advance(&mut self, mut n: usize) {
        while let [first, others @ ..] = self.bufs {
            let left = first.len() - self.offset;
            if n < left {
                self.offset += n;
                return;
            }
            n -= left;
            self.offset = 0;
            self.bufs = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(parts: &[usize], room: usize) -> Vec<usize> {
        let bytes: Vec<Vec<u8>> = parts.iter().map(|n| vec![7; *n]).collect();
        let slices: Vec<IoSlice<'_>> = bytes.iter().map(|b| IoSlice::new(b)).collect();
        let mut rest = Slices { bufs: &slices, offset: 0 };
        let mut scratch = Vec::new();
        let mut records = Vec::new();
        loop {
            let record = rest.record(room, &mut scratch).len();
            if record == 0 {
                return records;
            }
            records.push(record);
            rest.advance(record);
        }
    }

    #[test]
    fn small_slices_share_a_record() {
        assert_eq!(split(&[3, 0, 4], 100), [7]);
        assert!(split(&[], 100).is_empty());
        assert!(split(&[0, 0], 100).is_empty());
        assert_eq!(split(&[5], 100), [5]);
    }

    #[test]
    fn a_head_is_filled_up_with_the_body_behind_it() {
        assert_eq!(split(&[30, 250], 100), [100, 100, 80]);
        assert_eq!(split(&[250, 30], 100), [100, 100, 80]);
        assert_eq!(split(&[100, 0, 1], 100), [100, 1]);
    }
}
