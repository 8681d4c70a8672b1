//! Messages, deflated and inflated (RFC 7692 section 7.2).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{BITS, Direction, Tuning, pack::Packer};
use crate::{Error, LimitExceeded, PeerMisbehaved};

/// zlib cannot write for a window of 2^8 bytes. With 2^9 it refers back by at most
/// 2^9 - 262 = 250 bytes, which a reader with 2^8 can follow.
const LEAST_BITS: u8 = 9;

/// What a flush ends with; it is not sent (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// By so many bytes at least, and at most, the room for what is inflated grows at first.
const STEP_MIN: usize = 512;
const STEP_MAX: usize = 16 * 1024;

/// With less room than this left, zlib goes on byte by byte.
const SLOW_BELOW: usize = 260;

/// The peer's messages, inflated.
#[derive(Debug)]
pub(in crate::ws) struct Inflate {
    /// None before the first message.
    inflate: Option<Decompress>,
    direction: Direction,
}

impl Inflate {
    pub(super) fn new(direction: Direction) -> Self {
        Self { inflate: None, direction }
    }

    /// Inflates a piece of a message to the end of `out`, which may come to `limit` bytes. `ends`: it
    /// is the last piece.
    pub(in crate::ws) fn take(
        &mut self,
        input: &[u8],
        ends: bool,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), Error> {
        // The same window of the peer is read with a larger one too, and zlib is at home from 9 on.
        let bits = self.direction.window_bits.clamp(LEAST_BITS, *BITS.end());
        let inflate =
            self.inflate.get_or_insert_with(|| Decompress::new_with_window_bits(false, bits));
        run(inflate, input, out, limit)?;
        if ends {
            // RFC 7692 section 7.2.2: what the sender left out.
            run(inflate, &TAIL, out, limit)?;
            if self.direction.no_context_takeover {
                inflate.reset(false);
            }
        }
        Ok(())
    }
}

fn run(
    inflate: &mut Decompress,
    mut input: &[u8],
    out: &mut Vec<u8>,
    limit: usize,
) -> Result<(), Error> {
    loop {
        // Room grows with what came out, so it is at most twice what the limit allows.
        if out.capacity() - out.len() < SLOW_BELOW {
            out.reserve(input.len().saturating_mul(4).clamp(STEP_MIN, STEP_MAX));
        }
        let before = inflate.total_in();
        let start = out.len();
        let status = inflate.decompress_vec(input, out, FlushDecompress::Sync);
        let taken = (inflate.total_in() - before) as usize;
        input = &input[taken..];
        if out.len() > limit {
            return Err(LimitExceeded::MessageBytes.into());
        }
        let stuck = taken == 0 && out.len() == start;
        match status {
            // Section 7.2.3.4: a sender may end a block for good, and go on with a new one.
            Ok(Status::StreamEnd) => inflate.reset(false),
            Ok(_) if input.is_empty() => {}
            Ok(Status::Ok | Status::BufError) if !stuck => {}
            _ => return Err(PeerMisbehaved::BadCompression.into()),
        }
        // Without room left there may be more to come out.
        if input.is_empty() && out.len() < out.capacity() {
            return Ok(());
        }
    }
}

/// Our messages, deflated.
#[derive(Debug)]
pub(in crate::ws) struct Deflate {
    coder: Coder,
    forgets: bool,
    threshold: usize,
    /// The last message.
    out: Vec<u8>,
}

/// What deflates.
#[derive(Debug)]
enum Coder {
    /// Level 1.
    Fast(Packer),
    /// The levels above; none before the first message.
    Small { zlib: Option<Compress>, level: u32, bits: u8 },
}

impl Deflate {
    pub(super) fn new(direction: Direction, tuning: Tuning) -> Self {
        let bits = direction.window_bits;
        let coder = match tuning.level {
            0 | 1 => Coder::Fast(Packer::new(bits.clamp(*BITS.start(), *BITS.end()))),
            level => Coder::Small {
                zlib: None,
                level: level.min(9),
                bits: bits.clamp(LEAST_BITS, *BITS.end()),
            },
        };
        Self {
            coder,
            forgets: direction.no_context_takeover,
            threshold: if tuning.level == 0 { usize::MAX } else { tuning.threshold },
            out: Vec::new(),
        }
    }

    /// Whether what is sent in pieces is compressed: how long it will be nobody knows.
    pub(in crate::ws) fn is_on(&self) -> bool {
        self.threshold < usize::MAX
    }

    /// A message, unless it is too short to be worth it, or does not become shorter.
    pub(in crate::ws) fn whole(&mut self, message: &[u8]) -> Option<&[u8]> {
        if message.len() < self.threshold {
            return None;
        }
        if let Coder::Fast(packer) = &mut self.coder {
            self.out.clear();
            if !packer.whole(message, &mut self.out) {
                return None;
            }
            if self.forgets {
                packer.forget();
            }
            return Some(&self.out);
        }
        Some(self.piece(message, true))
    }

    /// A piece of a message; `last` when it ends it (RFC 7692 section 7.2.1).
    pub(in crate::ws) fn piece(&mut self, piece: &[u8], last: bool) -> &[u8] {
        let Self { coder, forgets, out, .. } = self;
        out.clear();
        match coder {
            Coder::Fast(packer) => {
                packer.piece(piece, out);
                if !last {
                    out.extend_from_slice(&TAIL);
                } else if *forgets {
                    packer.forget();
                }
            }
            Coder::Small { zlib, level, bits } => {
                let zlib = zlib.get_or_insert_with(|| {
                    Compress::new_with_window_bits(Compression::new(*level), false, *bits)
                });
                deflate(zlib, piece, out);
                if last {
                    cut_tail(out);
                    if *forgets {
                        zlib.reset();
                    }
                }
            }
        }
        out
    }

    /// Gives up room that the next message can do without.
    pub(in crate::ws) fn shrink(&mut self) {
        self.out = Vec::new();
        if let Coder::Fast(packer) = &mut self.coder {
            packer.shrink();
        }
    }
}

fn deflate(zlib: &mut Compress, mut piece: &[u8], out: &mut Vec<u8>) {
    loop {
        out.reserve((piece.len() / 2).max(64));
        let before = zlib.total_in();
        let status = zlib.compress_vec(piece, out, FlushCompress::Sync);
        let taken = (zlib.total_in() - before) as usize;
        piece = &piece[taken..];
        // A flush is complete when it left room. Nothing to do is one that was complete before.
        let full = out.len() == out.capacity();
        if piece.is_empty() && !full || !matches!(status, Ok(Status::Ok)) {
            return;
        }
    }
}

fn cut_tail(out: &mut Vec<u8>) {
    if let Some(sent) = out.strip_suffix(&TAIL) {
        let len = sent.len();
        out.truncate(len);
    }
    if out.is_empty() {
        // Section 7.2.3.6: an empty message is a block with nothing in it.
        out.push(0);
    }
}
