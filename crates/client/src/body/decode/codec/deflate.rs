use std::io;

use flate2::Decompress;

use super::{Codec, Ran, inflate};

/// `deflate` means zlib (RFC 9110 section 8.4.1.2), but servers have sent bare deflate under that
/// name for so long that every browser accepts both.
pub(super) enum Deflate {
    /// Waiting for the two bytes that tell which it is.
    Sniffing(Option<u8>),
    Inflating(Decompress),
    /// After the stream.
    Discarding,
}

impl Deflate {
    pub(super) fn new() -> Self {
        Self::Sniffing(None)
    }
}

/// RFC 1950 section 2.2: compression method 8, a window of at most 32 KiB, and a header that is a
/// multiple of 31. Bare deflate that starts so would be a stored block with set padding bits, which
/// no encoder writes.
fn is_zlib_header(cmf: u8, flg: u8) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7 && u16::from_be_bytes([cmf, flg]).is_multiple_of(31)
}

impl Codec for Deflate {
    fn run(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Ran> {
        let (ran, ended) = match self {
            Self::Sniffing(first) => {
                let Some(&byte) = input.first() else {
                    return Ok(Ran::discard(input));
                };
                let consumed = 1;
                let Some(cmf) = *first else {
                    *first = Some(byte);
                    return Ok(Ran { consumed, produced: 0 });
                };
                let mut machine = Decompress::new(is_zlib_header(cmf, byte));
                let (Ran { produced, .. }, ended) = inflate(&mut machine, &[cmf, byte], output)?;
                *self = Self::Inflating(machine);
                (Ran { consumed, produced }, ended)
            }
            Self::Inflating(machine) => inflate(machine, input, output)?,
            Self::Discarding => return Ok(Ran::discard(input)),
        };
        if ended {
            *self = Self::Discarding;
        }
        Ok(ran)
    }

    fn is_complete(&self) -> bool {
        matches!(self, Self::Sniffing(None) | Self::Discarding)
    }
}
