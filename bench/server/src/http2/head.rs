//! What a request's header block asks for.

use fluke_hpack::Decoder;

use super::frame::Code;
use crate::request::{self, Refusal, Route};

/// The one method of gRPC there is.
const UNARY: &[u8] = b"/bench.Echo/Unary";

/// What a stream asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// As over HTTP/1.1.
    Route(Route),
    /// A unary call by gRPC, with messages of JSON or of protobuf.
    Unary { json: bool },
    /// Something that is not answered.
    Refused(Refusal),
}

/// Reads the header blocks of one connection.
pub(crate) struct Heads {
    decoder: Decoder<'static>,
    /// The last block, and what it asked for, as long as the dynamic table is as it was: measured
    /// clients ask for the same again and again.
    last: Option<(Vec<u8>, Asked)>,
}

impl Heads {
    pub(crate) fn new() -> Self {
        Self { decoder: Decoder::new(), last: None }
    }

    /// The next block: its order matters, so that trailers have to be read here, too.
    pub(crate) fn read(&mut self, block: &[u8]) -> Result<Asked, Code> {
        if let Some((last, asked)) = &self.last
            && last == block
        {
            return Ok(*asked);
        }
        let keeps_table = keeps_table(block);
        let asked = self.decode(block)?;
        match &mut self.last {
            _ if !keeps_table => self.last = None,
            Some((last, known)) => {
                last.clear();
                last.extend_from_slice(block);
                *known = asked;
            }
            none => *none = Some((block.to_vec(), asked)),
        }
        Ok(asked)
    }

    fn decode(&mut self, block: &[u8]) -> Result<Asked, Code> {
        let (mut method, mut path, mut json) = (Vec::new(), Vec::new(), false);
        let decoded = self.decoder.decode_with_cb(block, |name, value| match &*name {
            b":method" => method = value.into_owned(),
            b":path" => path = value.into_owned(),
            b"content-type" => json = value.ends_with(b"+json"),
            _ => {}
        });
        decoded.map_err(|_| Code::Compression)?;
        if method == b"POST" && path == UNARY {
            return Ok(Asked::Unary { json });
        }
        let route = match (str::from_utf8(&method), str::from_utf8(&path)) {
            (Ok(method), Ok(path)) => request::route(method, path),
            _ => Err(Refusal::BadRequest),
        };
        Ok(route.map_or_else(Asked::Refused, Asked::Route))
    }
}

/// Whether `block` leaves the dynamic table as it is: it has neither literals with incremental indexing
/// nor size updates (RFC 7541 section 6). One that is cut off may say either.
fn keeps_table(mut block: &[u8]) -> bool {
    while let Some(&first) = block.first() {
        let kept = match first {
            0x80.. => integer(&mut block, 0x7f).is_some(),
            0x20..=0x7f => false,
            ..0x20 => literal(&mut block).is_some(),
        };
        if !kept {
            return false;
        }
    }
    true
}

fn literal(block: &mut &[u8]) -> Option<()> {
    if integer(block, 0x0f)? == 0 {
        string(block)?;
    }
    string(block)
}

fn string(block: &mut &[u8]) -> Option<()> {
    let length = integer(block, 0x7f)?;
    *block = block.get(length..)?;
    Some(())
}

/// An integer whose first byte has it in the bits of `mask` (RFC 7541 section 5.1).
fn integer(block: &mut &[u8], mask: u8) -> Option<usize> {
    let (first, mut rest) = block.split_first()?;
    let mut number = usize::from(first & mask);
    if number == usize::from(mask) {
        for shift in (0..28).step_by(7) {
            let (next, after) = rest.split_first()?;
            rest = after;
            number += usize::from(next & 0x7f) << shift;
            if next & 0x80 == 0 {
                *block = rest;
                return Some(number);
            }
        }
        return None;
    }
    *block = rest;
    Some(number)
}

#[cfg(test)]
mod tests {
    use fluke_hpack::Encoder;

    use super::*;

    /// The literals of RFC 7541 appendix C.4.1, with Huffman, then C.4.2's, which refer to them.
    const FIRST: &[u8] = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
    const SECOND: &[u8] = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";

    #[test]
    fn what_changes_the_table_is_seen() {
        assert!(!keeps_table(FIRST) && !keeps_table(SECOND));
        assert!(keeps_table(b"\x82\x86\x84\xbe"));
        // Without indexing, never indexed, of an indexed and of a new name, of a long value.
        let long = [b"\x0f\x0d\x7f\x01".as_slice(), &[b'x'; 128]].concat();
        for kept in [&b"\x04\x02/a"[..], b"\x14\x02/a", b"\x00\x01a\x01b", b"\x10\x01a\x00", &long]
        {
            assert!(keeps_table(kept), "{kept:?}");
            assert!(!keeps_table(&kept[..kept.len() - 1]), "{kept:?}");
        }
        assert!(!keeps_table(b"\x82\x3f\xe1\x1f"));
    }

    #[test]
    fn the_same_bytes_mean_what_the_table_says() {
        let mut heads = Heads::new();
        let insert = |path: &[u8]| [b"\x82\x44", &[path.len() as u8][..], path].concat();
        let bytes = |n| Ok(Asked::Route(Route::Bytes(n)));
        assert_eq!(heads.read(&insert(b"/b/1")), bytes(1));
        for _ in 0..3 {
            assert_eq!(heads.read(b"\x82\xbe"), bytes(1));
        }
        // The newest entry is another one now, under the same index.
        assert_eq!(heads.read(&insert(b"/b/2")), bytes(2));
        assert_eq!(heads.read(b"\x82\xbe"), bytes(2));
        assert_eq!(heads.read(b"\x82\xbf"), bytes(1));
    }

    #[test]
    fn any_encoder_is_understood() {
        let (mut heads, mut encoder) = (Heads::new(), Encoder::new());
        for _ in 0..3 {
            let fields: [(&[u8], &[u8]); 4] = [
                (b":method", b"POST"),
                (b":path", UNARY),
                (b"content-type", b"application/grpc+json"),
                (b"te", b"trailers"),
            ];
            let block = encoder.encode(fields);
            assert_eq!(heads.read(&block), Ok(Asked::Unary { json: true }));
        }
        assert_eq!(heads.read(FIRST), Ok(Asked::Refused(Refusal::NotFound)));
        assert_eq!(heads.read(b"\xff\xff\xff\xff\x7f"), Err(Code::Compression));
    }
}
