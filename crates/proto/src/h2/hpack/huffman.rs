//! The Huffman code of strings (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: sorted by length and then by symbol, codes count up. So the lengths are all
//! there is to know, and every table here is computed from them at compile time.

use super::Error;

/// Bits of each symbol's code (RFC 7541 appendix B). The last is EOS.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const SYMBOLS: usize = 257;
const SHORTEST: usize = 5;
const LONGEST: u32 = 30;

/// Codes of up to this many bits are decoded with one look: all but rare punctuation.
const PEEK: u32 = 10;

/// How many lengths beyond that there are.
const RUNS_LEN: usize = 16;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Run {
    /// In bits.
    len: u32,
    /// The first code, in the high bits of a word.
    first: u32,
    /// The last code, in the high bits of a word, ones behind it.
    last: u32,
    /// Where the symbols begin in [`SORTED`].
    symbols: usize,
}

/// All symbols by length of code, then value.
static SORTED: [u16; SYMBOLS] = TABLES.sorted;
/// The codes longer than [`PEEK`], shortest first.
static RUNS: [Run; RUNS_LEN] = TABLES.runs;
/// Code and its length in bits, together in a word: `code << 8 | length`.
static CODES: [u64; 256] = TABLES.codes;
/// `length << 8 | symbol` for the code that the index begins with; 0 when that is a longer one.
static SHORT: [u16; 1 << PEEK] = TABLES.short;

const TABLES: Tables = Tables::new();

struct Tables {
    sorted: [u16; SYMBOLS],
    runs: [Run; RUNS_LEN],
    codes: [u64; 256],
    short: [u16; 1 << PEEK],
}

impl Tables {
    const fn new() -> Self {
        let none = Run { len: LONGEST, first: 0, last: 0, symbols: 0 };
        let mut tables = Self {
            sorted: [0; SYMBOLS],
            runs: [none; RUNS_LEN],
            codes: [0; 256],
            short: [0; 1 << PEEK],
        };
        let (mut code, mut symbols, mut runs) = (0_u32, 0, 0);
        let mut len = SHORTEST as u32;
        while len <= LONGEST {
            let (first, start) = (code, symbols);
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if LENGTHS[symbol] as u32 == len {
                    tables.add(symbol, code, len);
                    tables.sorted[symbols] = symbol as u16;
                    (code, symbols) = (code + 1, symbols + 1);
                }
                symbol += 1;
            }
            if len > PEEK && symbols > start {
                let space = 32 - len;
                let last = ((code - 1) << space) | ((1 << space) - 1);
                tables.runs[runs] = Run { len, first: first << space, last, symbols: start };
                runs += 1;
            }
            // The next length's codes begin where this length's end, one bit further down.
            code <<= 1;
            len += 1;
        }
        tables
    }

    const fn add(&mut self, symbol: usize, code: u32, len: u32) {
        if symbol < 256 {
            self.codes[symbol] = (code as u64) << 8 | len as u64;
        }
        if len <= PEEK {
            let mut index = (code << (PEEK - len)) as usize;
            let end = ((code + 1) << (PEEK - len)) as usize;
            while index < end {
                self.short[index] = (len << 8) as u16 | symbol as u16;
                index += 1;
            }
        }
    }
}

/// How many bytes `text` takes when coded.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends `text`, coded and padded, to `out`. `len` is its [`encoded_len`].
pub(super) fn encode(text: &[u8], len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len, 0);
    let mut room = &mut out[start..];
    // The low `held` bits of `bits` wait to be written; there are fewer than 32 when a code is added.
    let (mut bits, mut held) = (0_u64, 0);
    for &byte in text {
        let entry = CODES[usize::from(byte)];
        let len = (entry & 0xff) as u32;
        bits = bits << len | entry >> 8;
        held += len;
        if held >= 32
            && let Some((word, rest)) = std::mem::take(&mut room).split_first_chunk_mut()
        {
            held -= 32;
            *word = ((bits >> held) as u32).to_be_bytes();
            room = rest;
        }
    }
    // What is left, and the first bits of EOS, which are ones, to fill the last byte.
    let tail = (bits << 32 | u64::from(u32::MAX)) >> held;
    for (place, byte) in room.iter_mut().zip((tail as u32).to_be_bytes()) {
        *place = byte;
    }
}

/// The most bytes that `len` coded bytes can mean.
pub(super) fn decoded_max(len: usize) -> usize {
    len * 8 / SHORTEST
}

/// Decodes all of `input` into the front of `room`, and says how much of it was filled.
/// `room` holds at least [`decoded_max`] bytes.
pub(super) fn decode(mut input: &[u8], room: &mut [u8]) -> Result<usize, Error> {
    // The high `held` bits of `bits` are those read ahead; the rest are zeros, or bits that are read
    // once more with the same outcome.
    let (mut bits, mut held, mut filled) = (0_u64, 0_u32, 0);
    loop {
        if let Some(word) = input.first_chunk() {
            bits |= u64::from_be_bytes(*word) >> held;
            let whole = (63 - held) / 8;
            input = &input[whole as usize..];
            held += whole * 8;
        } else {
            while held <= 56
                && let [byte, rest @ ..] = input
            {
                bits |= u64::from(*byte) << (56 - held);
                held += 8;
                input = rest;
            }
            if input.is_empty() {
                return decode_end(bits, held, room, filled);
            }
        }
        while held >= LONGEST {
            let (symbol, len) = next(bits)?;
            bits <<= len;
            held -= len;
            place(symbol, room, &mut filled)?;
        }
    }
}

/// Decodes the last `held` bits, and checks the padding.
fn decode_end(bits: u64, held: u32, room: &mut [u8], filled: usize) -> Result<usize, Error> {
    let (mut bits, mut held, mut filled) = (bits, held, filled);
    loop {
        // With ones behind the end, a padding of ones looks like the front of EOS.
        let ones = u64::MAX.checked_shr(held).unwrap_or(0);
        if bits | ones == u64::MAX {
            return match held {
                ..8 => Ok(filled),
                LONGEST.. => Err(Error::EosInString),
                _ => Err(Error::BadPadding),
            };
        }
        let (symbol, len) = next(bits | ones)?;
        if len > held {
            return Err(Error::BadPadding);
        }
        bits <<= len;
        held -= len;
        place(symbol, room, &mut filled)?;
    }
}

#[inline]
fn place(symbol: u8, room: &mut [u8], filled: &mut usize) -> Result<(), Error> {
    // There is room for as many symbols as the shortest code allows.
    *room.get_mut(*filled).ok_or(Error::Truncated)? = symbol;
    *filled += 1;
    Ok(())
}

/// The first symbol of `bits`, and the length of its code.
#[inline]
fn next(bits: u64) -> Result<(u8, u32), Error> {
    match SHORT[(bits >> (64 - PEEK)) as usize] {
        0 => next_long((bits >> 32) as u32),
        entry => Ok((entry as u8, u32::from(entry >> 8))),
    }
}

#[cold]
fn next_long(bits: u32) -> Result<(u8, u32), Error> {
    let run = RUNS.iter().find(|run| bits <= run.last).unwrap_or(&RUNS[RUNS_LEN - 1]);
    let symbol = SORTED[run.symbols + ((bits - run.first) >> (32 - run.len)) as usize];
    // Only EOS is beyond a byte.
    let symbol = u8::try_from(symbol).map_err(|_| Error::EosInString)?;
    Ok((symbol, run.len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(text: &[u8]) -> Vec<u8> {
        let mut out = b"x".to_vec();
        encode(text, encoded_len(text), &mut out);
        out.split_off(1)
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, Error> {
        let mut room = vec![0; decoded_max(input.len())];
        let filled = decode(input, &mut room)?;
        room.truncate(filled);
        Ok(room)
    }

    /// Some rows of RFC 7541 appendix B, short and long, first and last.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let rows = [
            (b'0', 0x0, 5),
            (b' ', 0x14, 6),
            (b'a', 0x3, 5),
            (b'z', 0x7b, 7),
            (b'&', 0xf8, 8),
            (b'?', 0x3fc, 10),
            (b'~', 0x1ffd, 13),
            (0, 0x1ff8, 13),
            (b'\n', 0x3fff_fffc, 30),
            (22, 0x3fff_fffe, 30),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
        ];
        for (symbol, code, len) in rows {
            assert_eq!(CODES[usize::from(symbol)], code << 8 | len, "{symbol}");
        }
        assert_eq!(SORTED[SYMBOLS - 1], 256);
    }

    #[test]
    fn every_pair_of_bytes_comes_back() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = [first, second];
                assert_eq!(decoded(&coded(&text)), Ok(text.to_vec()));
            }
        }
        assert_eq!(decoded(&coded(b"")), Ok(Vec::new()));
    }

    /// Every number of bits left in the word, with long and short codes.
    #[test]
    fn every_length_comes_back() {
        for filler in [b'0', b'a' - 1, b'"', 0, b'\n'] {
            for len in 0..64 {
                let text = [&vec![filler; len][..], b"z"].concat();
                assert_eq!(decoded(&coded(&text)), Ok(text));
            }
        }
    }

    #[test]
    fn padding_is_up_to_seven_ones() {
        let zero = 0b0000_0111;
        assert_eq!(decoded(&[zero]), Ok(b"0".to_vec()));
        for bit in 0..3 {
            assert_eq!(decoded(&[zero & !(1 << bit)]), Err(Error::BadPadding), "bit {bit}");
        }
        // Eight ones behind a whole byte, and behind seven more.
        assert_eq!(decoded(&[0xff]), Err(Error::BadPadding));
        assert_eq!(decoded(&[zero, 0xff]), Err(Error::BadPadding));
        // "&" takes the whole byte.
        assert_eq!(decoded(&[0xf8]), Ok(b"&".to_vec()));
        assert_eq!(decoded(&[0xf8, 0xff]), Err(Error::BadPadding));
    }

    #[test]
    fn eos_is_an_error_wherever_it_stands() {
        assert_eq!(decoded(&[0xff; 4]), Err(Error::EosInString));
        assert_eq!(decoded(&[0xff; 40]), Err(Error::EosInString));
        let behind = [&[0b0000_0111][..], &[0xff; 4]].concat();
        assert_eq!(decoded(&behind), Err(Error::EosInString));
    }
}
