//! Compressing a request body that is in memory.

use std::io;

use bytes::Bytes;

use super::coding::Coding;

type Encode = fn(&[u8]) -> io::Result<Bytes>;

/// Encodes `body` with `coding`, at the level its own tool has by default (Brotli: 5, for its
/// default of 11 is meant for files compressed once and served for years). Few servers take encoded
/// requests: RFC 9110 section 12.5.3 has them say so with `Accept-Encoding`.
///
/// # Errors
/// `Unsupported` when the coding is not compiled in; `OutOfMemory` and the like from its library.
pub fn encode(coding: Coding, body: &[u8]) -> io::Result<Bytes> {
    encoder(coding).ok_or(io::ErrorKind::Unsupported)?(body)
}

fn encoder(coding: Coding) -> Option<Encode> {
    match coding {
        #[cfg(feature = "gzip")]
        Coding::Gzip => Some(gzip),
        #[cfg(feature = "deflate")]
        Coding::Deflate => Some(deflate),
        #[cfg(feature = "brotli")]
        Coding::Brotli => Some(brotli),
        #[cfg(feature = "zstd")]
        Coding::Zstd => Some(zstd),
        #[allow(unreachable_patterns, reason = "reached when a feature is off")]
        _ => None,
    }
}

#[cfg(feature = "gzip")]
fn gzip(body: &[u8]) -> io::Result<Bytes> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    io::Write::write_all(&mut to, body)?;
    to.finish().map(Into::into)
}

/// The name means zlib, not bare deflate (RFC 9110 section 8.4.1.2).
#[cfg(feature = "deflate")]
fn deflate(body: &[u8]) -> io::Result<Bytes> {
    let mut to = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    io::Write::write_all(&mut to, body)?;
    to.finish().map(Into::into)
}

#[cfg(feature = "brotli")]
fn brotli(body: &[u8]) -> io::Result<Bytes> {
    const BUFFER: usize = 4096;
    const QUALITY: u32 = 5;
    const WINDOW_LOG: u32 = 22;
    let mut to = ::brotli::CompressorWriter::new(Vec::new(), BUFFER, QUALITY, WINDOW_LOG);
    io::Write::write_all(&mut to, body)?;
    Ok(to.into_inner().into())
}

#[cfg(feature = "zstd")]
fn zstd(body: &[u8]) -> io::Result<Bytes> {
    ::zstd::bulk::compress(body, ::zstd::DEFAULT_COMPRESSION_LEVEL).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::decode::{DecodeLimits, Decoder};

    #[test]
    fn what_is_encoded_decodes() {
        for body in [&b""[..], b"x", &b"a line of some text\n".repeat(20_000)] {
            for coding in Coding::ALL.into_iter().filter(|coding| coding.is_supported()) {
                let encoded = encode(coding, body).unwrap();
                assert!(body.len() < 100 || encoded.len() * 20 < body.len(), "{coding}");
                let limits = DecodeLimits { max_ratio: None, ..DecodeLimits::default() };
                let mut decoder = Decoder::for_codings([coding.token()], &limits).unwrap().unwrap();
                decoder.push(encoded).unwrap();
                let mut decoded = Vec::new();
                while let Some(piece) = decoder.poll().unwrap() {
                    decoded.extend_from_slice(&piece);
                }
                decoder.finish().unwrap();
                assert_eq!(decoded, body, "{coding}");
            }
        }
    }

    #[test]
    fn what_is_not_compiled_in_is_unsupported() {
        for coding in Coding::ALL.into_iter().filter(|coding| !coding.is_supported()) {
            let error = encode(coding, b"x").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        }
    }
}
