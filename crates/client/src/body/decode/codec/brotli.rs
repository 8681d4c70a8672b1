use std::io;

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, enc::StandardAlloc};

use super::{Codec, Ran};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

pub(super) enum Brotli {
    /// No byte yet.
    Fresh,
    Decoding(Box<State>),
    /// After the stream.
    Discarding,
}

impl Brotli {
    pub(super) fn new() -> Self {
        Self::Fresh
    }
}

impl Codec for Brotli {
    fn run(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Ran> {
        let state = match self {
            Self::Fresh if input.is_empty() => return Ok(Ran::discard(input)),
            Self::Fresh => {
                // Strict: windows of RFC 7932 only (16 MiB), not the "large window" format's 1 GiB.
                let alloc = StandardAlloc::default;
                *self = Self::Decoding(Box::new(State::new_strict(alloc(), alloc(), alloc())));
                return self.run(input, output);
            }
            Self::Decoding(state) => state,
            Self::Discarding => return Ok(Ran::discard(input)),
        };
        let (mut available_in, mut available_out) = (input.len(), output.len());
        let (mut consumed, mut produced, mut total) = (0, 0, 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut consumed,
            input,
            &mut available_out,
            &mut produced,
            output,
            &mut total,
            state,
        );
        match result {
            BrotliResult::ResultFailure => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "not a valid Brotli stream",
                ));
            }
            BrotliResult::ResultSuccess => *self = Self::Discarding,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(Ran { consumed, produced })
    }

    fn is_complete(&self) -> bool {
        matches!(self, Self::Fresh | Self::Discarding)
    }
}
