//! Request bodies: their frames, and what becomes of them.

use crate::clock;
use crate::input::Input;
use crate::request::Framing;

/// A body that breaks its framing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Where the reading of a body stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// So many bytes are to come.
    Length(u64),
    /// The line with a chunk's size.
    ChunkSize,
    /// So many bytes of the chunk are to come.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// Behind the last chunk.
    Trailers,
    /// All came.
    Ended,
}

impl From<Framing> for Reader {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::Length(0) => Self::Ended,
            Framing::Length(bytes) => Self::Length(bytes),
            Framing::Chunked => Self::ChunkSize,
        }
    }
}

impl Reader {
    /// Takes from `input` what is there of the body. True once all of it came.
    pub(crate) fn take(
        &mut self,
        input: &mut Input,
        sink: &mut Sink,
        read_at: u64,
    ) -> Result<bool, Malformed> {
        loop {
            match self {
                Self::Ended => return Ok(true),
                _ if input.is_empty() => return Ok(false),
                Self::Length(left) | Self::Chunk(left) => {
                    let here = input.bytes().len();
                    let taken = usize::try_from(*left).map_or(here, |left| here.min(left));
                    sink.take(&input.bytes()[..taken], read_at);
                    input.consume(taken);
                    *left -= taken as u64;
                    match self {
                        Self::Length(0) => *self = Self::Ended,
                        Self::Chunk(0) => *self = Self::ChunkEnd,
                        _ => {}
                    }
                }
                Self::ChunkSize => match httparse::parse_chunk_size(input.bytes()) {
                    Ok(httparse::Status::Complete((line, size))) => {
                        input.consume(line);
                        *self = if size == 0 { Self::Trailers } else { Self::Chunk(size) };
                    }
                    Ok(httparse::Status::Partial) => return Ok(false),
                    Err(_) => return Err(Malformed),
                },
                Self::ChunkEnd => match input.bytes() {
                    [b'\r', b'\n', ..] => {
                        input.consume(2);
                        *self = Self::ChunkSize;
                    }
                    [b'\r'] => return Ok(false),
                    _ => return Err(Malformed),
                },
                Self::Trailers => {
                    let mut fields = [httparse::EMPTY_HEADER; 16];
                    match httparse::parse_headers(input.bytes(), &mut fields) {
                        Ok(httparse::Status::Complete((length, _))) => {
                            input.consume(length);
                            *self = Self::Ended;
                        }
                        Ok(httparse::Status::Partial) => return Ok(false),
                        Err(_) => return Err(Malformed),
                    }
                }
            }
        }
    }

    /// How many bytes come next that `sink` only forgets: they need not be copied out of the kernel.
    pub(crate) fn forgettable(&self, sink: &Sink) -> u64 {
        match (self, sink) {
            (Self::Length(left), Sink::Forget) => *left,
            _ => 0,
        }
    }

    /// So many of the forgettable bytes are gone.
    pub(crate) fn forgot(&mut self, bytes: u64) {
        if let Self::Length(left) = self {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                *self = Self::Ended;
            }
        }
    }
}

/// What becomes of a body.
#[derive(Debug)]
pub(crate) enum Sink {
    Forget,
    Time(Stamps),
}

impl Sink {
    /// Takes a part of a body, all of which was there at `read_at`.
    pub(crate) fn take(&mut self, data: &[u8], read_at: u64) {
        if let Self::Time(stamps) = self {
            stamps.take(data, read_at);
        }
    }
}

/// How late each piece of a paced upload is.
#[derive(Debug)]
pub(crate) struct Stamps {
    size: u64,
    /// Bytes of the piece under way.
    at: u64,
    stamp: [u8; clock::STAMP],
    delays: Vec<u64>,
}

impl Stamps {
    /// For pieces of `size` bytes, at least as long as a stamp.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, at: 0, stamp: [0; clock::STAMP], delays: Vec::new() }
    }

    /// Notes every piece that ends in `data`: all of it was there at `read_at`.
    fn take(&mut self, mut data: &[u8], read_at: u64) {
        while !data.is_empty() {
            let left = self.size - self.at;
            let taken = usize::try_from(left).map_or(data.len(), |left| data.len().min(left));
            if let Some(missing) =
                usize::try_from(self.at).ok().and_then(|at| self.stamp.get_mut(at..))
            {
                let known = missing.len().min(taken);
                missing[..known].copy_from_slice(&data[..known]);
            }
            self.at += taken as u64;
            data = &data[taken..];
            if self.at == self.size {
                self.delays.push(read_at.saturating_sub(u64::from_le_bytes(self.stamp)));
                self.at = 0;
            }
        }
    }

    /// Of each piece, from its stamp until the read that completed it, in nanoseconds; `None` if the
    /// body ended inside a piece.
    pub(crate) fn delays(&self) -> Option<&[u64]> {
        (self.at == 0).then_some(&self.delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `wire` split in pieces of `step` bytes; the time of each read is its number, from 1000.
    fn read(
        framing: Framing,
        wire: &[u8],
        step: usize,
        mut sink: Sink,
    ) -> (Result<bool, Malformed>, Sink) {
        let (mut reader, mut input) = (Reader::from(framing), Input::with_capacity(4096));
        let mut end = Ok(false);
        for (number, piece) in wire.chunks(step).enumerate() {
            input.room()[..piece.len()].copy_from_slice(piece);
            input.filled(piece.len());
            end = reader.take(&mut input, &mut sink, 1000 + number as u64);
            if end.is_err() {
                break;
            }
        }
        (end, sink)
    }

    fn pieces() -> Vec<u8> {
        [100u64, 200, 300]
            .iter()
            .flat_map(|stamp| [&stamp.to_le_bytes()[..], b"rest"].concat())
            .collect()
    }

    #[test]
    fn pieces_in_one_read_share_its_time() {
        let sink = Sink::Time(Stamps::new(12));
        let (end, sink) = read(Framing::Length(36), &pieces(), 36, sink);
        assert_eq!(end, Ok(true));
        let Sink::Time(stamps) = sink else { unreachable!() };
        assert_eq!(stamps.delays(), Some(&[900, 800, 700][..]));
    }

    #[test]
    fn a_split_piece_has_the_time_of_its_last_byte() {
        // Chunks of 5 bytes, so that chunk and piece never agree.
        let mut wire = Vec::new();
        for chunk in pieces().chunks(5) {
            wire.extend_from_slice(format!("{:x};e=1\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        let ends: Vec<usize> =
            [12usize, 24, 36].iter().map(|end| end + (end - 1) / 5 * 9 + 7).collect();
        wire.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
        for step in 1..wire.len() {
            let (end, sink) = read(Framing::Chunked, &wire, step, Sink::Time(Stamps::new(12)));
            assert_eq!(end, Ok(true), "{step}");
            let Sink::Time(stamps) = sink else { unreachable!() };
            let due: Vec<u64> = [100, 200, 300]
                .iter()
                .zip(&ends)
                .map(|(stamp, end)| 1000 + ((end - 1) / step) as u64 - stamp)
                .collect();
            assert_eq!(stamps.delays(), Some(&due[..]), "{step}");
        }
    }

    #[test]
    fn a_body_that_ends_inside_a_piece_has_no_delays() {
        let (end, sink) =
            read(Framing::Length(35), &pieces()[..35], 7, Sink::Time(Stamps::new(12)));
        assert_eq!(end, Ok(true));
        let Sink::Time(stamps) = sink else { unreachable!() };
        assert_eq!(stamps.delays(), None);
    }

    #[test]
    fn broken_chunks_are_malformed_at_any_split() {
        for wire in [&b"x\r\n"[..], b"3\r\nabcd\r\n", b"3\r\nabc\rd", b"fffffffffffffffff\r\n"] {
            for step in 1..=wire.len() {
                assert_eq!(
                    read(Framing::Chunked, wire, step, Sink::Forget).0,
                    Err(Malformed),
                    "{wire:?}"
                );
            }
        }
    }

    #[test]
    fn only_a_forgotten_length_is_forgettable() {
        let mut reader = Reader::Length(5);
        assert_eq!(reader.forgettable(&Sink::Time(Stamps::new(8))), 0);
        assert_eq!(Reader::ChunkSize.forgettable(&Sink::Forget), 0);
        assert_eq!(reader.forgettable(&Sink::Forget), 5);
        reader.forgot(5);
        assert_eq!(reader, Reader::Ended);
    }
}
