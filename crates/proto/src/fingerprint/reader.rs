//! A ClientHello off the bytes of a TCP connection (RFC 8446 section 5.1).

use bytes::Bytes;

use super::hello::{CLIENT_HELLO, ClientHello, HelloError, MESSAGE_HEADER};

/// The longest ClientHello that is read, in bytes: many times that of any browser, post-quantum key
/// shares and padding included.
pub const MAX_HELLO: usize = 64 * 1024;

/// RFC 8446 section 5.1.
const HANDSHAKE: u8 = 22;
/// RFC 8446 section 5.1.
const RECORD_HEADER: usize = 5;
/// RFC 8446 section 5.1: of a record's plaintext.
const MAX_RECORD: u16 = 1 << 14;

/// The header of a record that carried a part of the ClientHello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// 0x0301 in a first ClientHello of most clients (RFC 8446 section 5.1).
    pub version: u16,
    /// Bytes behind the header.
    pub len: u16,
}

/// Takes one ClientHello off what a TCP connection begins with, however it is cut into reads and
/// records. What follows the ClientHello is left alone.
#[derive(Debug, Default)]
pub struct HelloReader {
    /// The header of a record, as far as it came.
    header: Vec<u8>,
    /// Bytes of the record at hand that have not come.
    left: usize,
    message: Vec<u8>,
    records: Vec<Record>,
    outcome: Outcome,
}

#[derive(Debug, Default, Clone, Copy)]
enum Outcome {
    #[default]
    Open,
    Given,
    Failed(HelloError),
}

impl HelloReader {
    /// A reader for a connection of which nothing was read.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes that came. Gives the ClientHello once, when it is whole.
    ///
    /// # Errors
    /// [`HelloError`], and the same again on every later call.
    pub fn recv(&mut self, bytes: &[u8]) -> Result<Option<ClientHello>, HelloError> {
        match self.outcome {
            Outcome::Open => {}
            Outcome::Given => return Ok(None),
            Outcome::Failed(error) => return Err(error),
        }
        match self.take(bytes) {
            Ok(hello) => {
                if hello.is_some() {
                    self.outcome = Outcome::Given;
                }
                Ok(hello)
            }
            Err(error) => {
                self.outcome = Outcome::Failed(error);
                Err(error)
            }
        }
    }

    /// The records that the ClientHello came in, so far.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<Option<ClientHello>, HelloError> {
        while !bytes.is_empty() {
            if self.left == 0 {
                bytes = self.record_header(bytes)?;
                continue;
            }
            // The header first: it says how much of the record is the message's.
            let wanted = self.wanted()?.min(self.left).min(bytes.len());
            let (taken, rest) = bytes.split_at(wanted);
            self.message.extend_from_slice(taken);
            self.left -= wanted;
            bytes = rest;
            if self.wanted()? == 0 {
                let message = Bytes::from(std::mem::take(&mut self.message));
                return ClientHello::parse(message).map(Some);
            }
        }
        Ok(None)
    }

    fn record_header<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], HelloError> {
        let missing = (RECORD_HEADER - self.header.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(missing);
        self.header.extend_from_slice(taken);
        if self.header.first().is_some_and(|&kind| kind != HANDSHAKE) {
            return Err(HelloError::NotTls);
        }
        if let &[_, major, minor, a, b] = &self.header[..] {
            let record = Record {
                version: u16::from_be_bytes([major, minor]),
                len: u16::from_be_bytes([a, b]),
            };
            if major != 3 {
                return Err(HelloError::NotTls);
            }
            // RFC 8446 section 5.1: a handshake record is never empty either.
            if record.len == 0 || record.len > MAX_RECORD {
                return Err(HelloError::RecordLength);
            }
            self.left = record.len.into();
            self.records.push(record);
            self.header.clear();
        }
        Ok(rest)
    }

    /// How many bytes the message lacks, as far as that is known.
    fn wanted(&self) -> Result<usize, HelloError> {
        if self.message.first().is_some_and(|&kind| kind != CLIENT_HELLO) {
            return Err(HelloError::NotClientHello);
        }
        let Some(&[_, a, b, c]) = self.message.first_chunk::<MESSAGE_HEADER>() else {
            return Ok(MESSAGE_HEADER - self.message.len());
        };
        let len = MESSAGE_HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
        if len > MAX_HELLO {
            return Err(HelloError::TooLong);
        }
        Ok(len - self.message.len())
    }
}
