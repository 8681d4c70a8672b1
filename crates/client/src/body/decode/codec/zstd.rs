use std::io;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{Codec, Ran};

/// RFC 9659: a content-encoding's window is at most 8 MiB.
const WINDOW_LOG: u32 = 23;

pub(super) struct Zstd {
    decoder: Decoder<'static>,
    state: State,
    /// Whether a whole frame came: what follows may then be anything.
    any_frame: bool,
}

enum State {
    /// Before a frame, with so many bytes of its magic number seen.
    Boundary {
        magic: [u8; 4],
        seen: usize,
    },
    Frame,
    /// After the last frame.
    Discarding,
}

const BOUNDARY: State = State::Boundary { magic: [0; 4], seen: 0 };

impl Zstd {
    pub(super) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        Ok(Self { decoder, state: BOUNDARY, any_frame: false })
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Ran> {
        let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
        let wanted = self.decoder.run(&mut from, &mut to)?;
        // Zero means: this frame is decoded and handed out in full.
        if wanted == 0 {
            self.any_frame = true;
            self.state = BOUNDARY;
        } else {
            self.state = State::Frame;
        }
        Ok(Ran { consumed: from.pos(), produced: to.pos() })
    }
}

/// RFC 8878 sections 3.1.1 and 3.1.2: whether these bytes can begin a frame or a skippable frame.
fn starts_frame(seen: &[u8]) -> bool {
    let skippable = [0x50, 0x2a, 0x4d, 0x18];
    let same = |magic: [u8; 4], mask: u8| {
        seen.iter()
            .zip(magic)
            .enumerate()
            .all(|(at, (&byte, want))| if at == 0 { byte & mask == want } else { byte == want })
    };
    same([0x28, 0xb5, 0x2f, 0xfd], 0xff) || same(skippable, 0xf0)
}

impl Codec for Zstd {
    fn run(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Ran> {
        let State::Boundary { magic, seen } = &mut self.state else {
            return match self.state {
                State::Discarding => Ok(Ran::discard(input)),
                _ => self.decode(input, output),
            };
        };
        let Some(&byte) = input.first() else {
            return Ok(Ran::discard(input));
        };
        magic[*seen] = byte;
        *seen += 1;
        if !starts_frame(&magic[..*seen]) {
            if !self.any_frame {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a Zstandard frame"));
            }
            self.state = State::Discarding;
            return Ok(Ran::discard(input));
        }
        if *seen == magic.len() {
            let magic = *magic;
            self.decode(&magic, output)?;
        }
        Ok(Ran { consumed: 1, produced: 0 })
    }

    fn is_complete(&self) -> bool {
        match self.state {
            State::Boundary { seen, .. } => seen == 0,
            State::Frame => false,
            State::Discarding => true,
        }
    }
}
