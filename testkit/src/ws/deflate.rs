//! permessage-deflate (RFC 7692) on the side of a server.

use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::request::MAX_KEPT_BODY;

/// What a sync flush ends with, and a message leaves out (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// How much room the codec gets at a time.
const ROOM: usize = 16 * 1024;

/// Which contexts are forgotten behind each message, as it was agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) server_resets: bool,
    pub(crate) client_resets: bool,
}

impl Agreed {
    /// The field's value.
    pub(crate) fn answer(self) -> String {
        let mut answer = "permessage-deflate".to_owned();
        if self.server_resets {
            answer.push_str("; server_no_context_takeover");
        }
        if self.client_resets {
            answer.push_str("; client_no_context_takeover");
        }
        answer
    }
}

/// What to agree to of a client's offers; `reset` wishes for no context on either side. An offer that
/// wants a smaller window for what the server sends is passed over: a server may decline it
/// (RFC 7692 section 7.1.2.1).
pub(crate) fn agree<'a>(offers: impl Iterator<Item = &'a str>, reset: bool) -> Option<Agreed> {
    offers.flat_map(|line| line.split(',')).find_map(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        if parts.next() != Some("permessage-deflate") {
            return None;
        }
        let mut agreed = Agreed { server_resets: reset, client_resets: reset };
        for part in parts {
            match part.split('=').next().unwrap_or_default().trim() {
                "server_no_context_takeover" => agreed.server_resets = true,
                "client_no_context_takeover" => agreed.client_resets = true,
                "client_max_window_bits" => {}
                _ => return None,
            }
        }
        Some(agreed)
    })
}

/// Both contexts of a connection.
pub(crate) struct Deflate {
    agreed: Agreed,
    out: Compress,
    into: Decompress,
}

impl Deflate {
    pub(crate) fn new(agreed: Agreed) -> Self {
        let out = Compress::new(Compression::default(), false);
        Self { agreed, out, into: Decompress::new(false) }
    }

    /// A message's payload as it goes into frames.
    pub(crate) fn shrink(&mut self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let mut small = Vec::with_capacity(ROOM);
        let begin = self.out.total_in();
        loop {
            let done = (self.out.total_in() - begin) as usize;
            self.out.compress_vec(&payload[done..], &mut small, FlushCompress::Sync)?;
            // Room that is left says that the flush is complete.
            if small.len() < small.capacity() {
                break;
            }
            small.reserve(ROOM);
        }
        if self.agreed.server_resets {
            self.out.reset();
        }
        small.truncate(small.strip_suffix(&TAIL).map_or(small.len(), <[u8]>::len));
        // A flush behind another gives nothing: then it is the empty block of section 7.2.3.6.
        Ok(if small.is_empty() { vec![0] } else { small })
    }

    /// The message that these payloads stand for.
    pub(crate) fn grow(&mut self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let whole = [payload, &TAIL].concat();
        let mut big = Vec::with_capacity(ROOM);
        let begin = self.into.total_in();
        loop {
            let done = (self.into.total_in() - begin) as usize;
            let status =
                self.into.decompress_vec(&whole[done..], &mut big, FlushDecompress::Sync)?;
            if big.len() > MAX_KEPT_BODY {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let done = (self.into.total_in() - begin) as usize;
            if status == Status::StreamEnd || (done == whole.len() && big.len() < big.capacity()) {
                break;
            }
            if status == Status::BufError && big.len() < big.capacity() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            big.reserve(ROOM);
        }
        if self.agreed.client_resets {
            self.into.reset(false);
        }
        Ok(big)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_7692_section_7_2_3() {
        let mut deflate = Deflate::new(Agreed::default());
        let first = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(deflate.grow(&first).unwrap(), b"Hello");
        // With the context of the first.
        assert_eq!(deflate.grow(&[0xf2, 0x00, 0x11, 0x00, 0x00]).unwrap(), b"Hello");
        assert_eq!(deflate.grow(&[0x00]).unwrap(), b"");
    }

    #[test]
    fn what_one_side_shrinks_the_other_grows() {
        let long: Vec<u8> =
            (0..300_000_u32).flat_map(|n| n.wrapping_mul(n).to_be_bytes()).collect();
        for resets in [false, true] {
            let mut deflate = Deflate::new(Agreed { server_resets: resets, client_resets: resets });
            for payload in [&b"Hello"[..], b"Hello", b"", &long, b"Hello"] {
                let small = deflate.shrink(payload).unwrap();
                assert_eq!(deflate.grow(&small).unwrap(), payload);
            }
        }
    }

    #[test]
    fn an_offer_that_cannot_be_kept_is_passed_over() {
        let agree = |offer: &'static str| agree(std::iter::once(offer), false).map(Agreed::answer);
        let plain = Some("permessage-deflate".to_owned());
        assert_eq!(agree("permessage-deflate; client_max_window_bits"), plain);
        assert_eq!(
            agree("permessage-deflate; server_max_window_bits=10, permessage-deflate"),
            plain
        );
        assert_eq!(agree("x-webkit-deflate-frame"), None);
        let resets = agree("permessage-deflate; server_no_context_takeover");
        assert_eq!(resets.as_deref(), Some("permessage-deflate; server_no_context_takeover"));
    }
}
