use std::io;

use flate2::Decompress;

use super::{Codec, Ran, inflate};

/// RFC 1952 section 2.3.1: ID1 and ID2.
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Windows of up to 32 KiB, the most deflate has.
const WINDOW_BITS: u8 = 15;

pub(super) struct Gzip {
    member: Decompress,
    state: State,
}

enum State {
    /// Header, data or trailer of a member; zlib checks CRC and length.
    Member,
    /// After a member, with so many bytes of the next one's magic seen.
    Between(usize),
    /// After the last member.
    Discarding,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self { member: Decompress::new_gzip(WINDOW_BITS), state: State::Member }
    }

    /// Looks whether another member follows (RFC 1952 section 2.2).
    fn sniff(&mut self, seen: usize, input: &[u8], output: &mut [u8]) -> io::Result<Ran> {
        match input.first() {
            None => return Ok(Ran::discard(input)),
            Some(&byte) if byte == MAGIC[seen] => {}
            Some(_) => {
                self.state = State::Discarding;
                return Ok(Ran::discard(input));
            }
        }
        if seen + 1 < MAGIC.len() {
            self.state = State::Between(seen + 1);
        } else {
            self.member = Decompress::new_gzip(WINDOW_BITS);
            inflate(&mut self.member, &MAGIC, output)?;
            self.state = State::Member;
        }
        Ok(Ran { consumed: 1, produced: 0 })
    }
}

impl Codec for Gzip {
    fn run(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Ran> {
        match self.state {
            State::Member => {
                let (ran, ended) = inflate(&mut self.member, input, output)?;
                if ended {
                    self.state = State::Between(0);
                }
                Ok(ran)
            }
            State::Between(seen) => self.sniff(seen, input, output),
            State::Discarding => Ok(Ran::discard(input)),
        }
    }

    fn is_complete(&self) -> bool {
        match self.state {
            State::Member => self.member.total_in() == 0,
            State::Between(seen) => seen == 0,
            State::Discarding => true,
        }
    }
}
