//! Heads of answers as HPACK has them, fixed but for a number: literals without indexing and without
//! Huffman, so that they mean the same on every connection (RFC 7541 section 6.2.2).

use std::io::Write;

use super::frame::{DATA, END_HEADERS, END_STREAM, HEADERS, Head};

/// Places in the static table (RFC 7541 appendix A).
const STATUS_200: u8 = 8;
const STATUS_400: u8 = 12;
const STATUS_404: u8 = 13;
const CONTENT_LENGTH: u8 = 28;
const CONTENT_TYPE: u8 = 31;
const DATE: u8 = 33;
const SERVER: u8 = 54;

/// The largest index that a literal's first byte holds.
const PREFIX_MAX: u8 = 15;

/// What answers begin and end with.
pub(crate) struct Answers {
    ok: Vec<u8>,
    bad_request: Vec<u8>,
    not_found: Vec<u8>,
    /// Of gRPC with protobuf, and with JSON.
    message: [Vec<u8>; 2],
    trailers: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    /// Of gRPC.
    Message {
        json: bool,
    },
}

impl Answers {
    pub(crate) fn new(date: &str) -> Self {
        let with_status = |status: u8| {
            let mut block = vec![0x80 | status];
            literal(SERVER, b"bench", &mut block);
            literal(DATE, date.as_bytes(), &mut block);
            block
        };
        let of_type = |kind: &[u8]| {
            let mut block = with_status(STATUS_200);
            literal(CONTENT_TYPE, kind, &mut block);
            block
        };
        let mut trailers = vec![0];
        string(b"grpc-status", &mut trailers);
        string(b"0", &mut trailers);
        Self {
            ok: of_type(b"application/octet-stream"),
            bad_request: with_status(STATUS_400),
            not_found: with_status(STATUS_404),
            message: [of_type(b"application/grpc"), of_type(b"application/grpc+json")],
            trailers,
        }
    }

    /// The HEADERS frame of an answer, whose body has `length` if that is told.
    pub(crate) fn head(
        &self,
        stream: u32,
        status: Status,
        length: Option<u64>,
        end: bool,
        out: &mut Vec<u8>,
    ) {
        let block = match status {
            Status::Ok => &self.ok,
            Status::BadRequest => &self.bad_request,
            Status::NotFound => &self.not_found,
            Status::Message { json } => &self.message[usize::from(json)],
        };
        let mut digits = [0; 20];
        let digits = length.map_or(&[][..], |length| decimal(length, &mut digits));
        let told = if digits.is_empty() { 0 } else { 3 + digits.len() };
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        Head { length: block.len() + told, kind: HEADERS, flags, stream }.write(out);
        out.extend_from_slice(block);
        if told > 0 {
            literal(CONTENT_LENGTH, digits, out);
        }
    }

    /// The trailers of a call that went well.
    pub(crate) fn trailers(&self, stream: u32, out: &mut Vec<u8>) {
        let flags = END_HEADERS | END_STREAM;
        Head { length: self.trailers.len(), kind: HEADERS, flags, stream }.write(out);
        out.extend_from_slice(&self.trailers);
    }
}

/// The head of a DATA frame.
pub(crate) fn data(stream: u32, length: usize, end: bool, out: &mut Vec<u8>) {
    let flags = if end { END_STREAM } else { 0 };
    Head { length, kind: DATA, flags, stream }.write(out);
}

fn decimal(number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut rest = &mut room[..];
    // 20 digits hold every number.
    let _ = write!(rest, "{number}");
    let left = rest.len();
    &room[..20 - left]
}

/// A field whose name is in the static table.
fn literal(name: u8, value: &[u8], out: &mut Vec<u8>) {
    match name.checked_sub(PREFIX_MAX) {
        Some(over) => out.extend_from_slice(&[PREFIX_MAX, over]),
        None => out.push(name),
    }
    string(value, out);
}

/// A string of fewer than 127 bytes, as it is (RFC 7541 section 5.2).
fn string(text: &[u8], out: &mut Vec<u8>) {
    debug_assert!(text.len() < 127);
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use fluke_hpack::Decoder;

    use super::*;

    #[test]
    fn a_decoder_reads_what_is_meant() {
        let answers = Answers::new("Sun, 06 Nov 1994 08:49:37 GMT");
        let mut out = Vec::new();
        answers.head(5, Status::Ok, Some(u64::MAX), true, &mut out);
        let head = Head::read(&out).unwrap();
        assert_eq!((head.length, head.stream), (out.len() - 9, 5));
        assert_eq!(head.flags, END_HEADERS | END_STREAM);
        let fields = Decoder::new().decode(&out[9..]).unwrap();
        let due: [(&[u8], &[u8]); 5] = [
            (b":status", b"200"),
            (b"server", b"bench"),
            (b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
            (b"content-type", b"application/octet-stream"),
            (b"content-length", b"18446744073709551615"),
        ];
        assert!(fields.iter().map(|(name, value)| (&name[..], &value[..])).eq(due), "{fields:?}");
    }

    #[test]
    fn trailers_tell_that_a_call_went_well() {
        let mut out = Vec::new();
        Answers::new("").trailers(1, &mut out);
        let fields = Decoder::new().decode(&out[9..]).unwrap();
        assert_eq!(fields, [(b"grpc-status".to_vec(), b"0".to_vec())]);
    }
}
