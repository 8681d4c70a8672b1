//! Compressed certificates (RFC 8879). We only decompress: ours go as they are.
//!
//! They come before anybody is authenticated. What comes out is written to a buffer of the length that
//! the peer announced, which is limited, and has to fill it to the byte. Nothing else grows with what
//! the peer says but brotli's window, which has at most 16 MiB for the time of the call.

use std::{ffi::c_int, panic};

use boring::{error::ErrorStack, ssl::SslContextBuilder};
use boring_sys as ffi;
use brotli_decompressor::BrotliResult;
use flate2::{Decompress, FlushDecompress, Status};

use super::client_hello::CertificateCompression;

/// The longest message that is decompressed. BoringSSL takes no longer chain in plain either.
const MAX_MESSAGE: usize = 100 * 1024;

/// Takes certificates compressed by `algorithms`, and says so in this order.
pub(super) fn register(
    context: &mut SslContextBuilder,
    algorithms: &[CertificateCompression],
) -> Result<(), ErrorStack> {
    for algorithm in algorithms {
        let decompress: ffi::ssl_cert_decompression_func_t = Some(match algorithm {
            CertificateCompression::Zlib => callback::<Zlib>,
            CertificateCompression::Brotli => callback::<Brotli>,
            CertificateCompression::Zstd => callback::<Zstd>,
        });
        // SAFETY: `context` is a live SSL_CTX that we hold exclusively, and the function is one for as
        // long as the program runs.
        let added = unsafe {
            ffi::SSL_CTX_add_cert_compression_alg(
                context.as_ptr(),
                algorithm.code(),
                None,
                decompress,
            )
        };
        if added != 1 {
            return Err(ErrorStack::get());
        }
    }
    Ok(())
}

/// What BoringSSL calls with a compressed message.
unsafe extern "C" fn callback<A: Algorithm>(
    _ssl: *mut ffi::SSL,
    out: *mut *mut ffi::CRYPTO_BUFFER,
    len: usize,
    input: *const u8,
    input_len: usize,
) -> c_int {
    if input.is_null() {
        return 0;
    }
    // SAFETY: BoringSSL passes that many bytes, which live through the call.
    let input = unsafe { std::slice::from_raw_parts(input, input_len) };
    // A panic must not reach C, which could only abort.
    let Ok(Some(message)) = panic::catch_unwind(|| decompress::<A>(input, len)) else { return 0 };
    // SAFETY: the bytes live through the call, which copies them; null is no pool.
    let buffer =
        unsafe { ffi::CRYPTO_BUFFER_new(message.as_ptr(), message.len(), std::ptr::null_mut()) };
    if buffer.is_null() {
        return 0;
    }
    // SAFETY: BoringSSL passes a place for the buffer, which it owns from now on.
    unsafe { *out = buffer };
    1
}

/// The `len` bytes that `input` is when decompressed, and nothing else.
fn decompress<A: Algorithm>(input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > MAX_MESSAGE {
        return None;
    }
    let mut message = vec![0; len];
    A::fill(&mut message, input).then_some(message)
}

trait Algorithm {
    /// Decompresses `input`; whether it is whole, and fills `out`.
    fn fill(out: &mut [u8], input: &[u8]) -> bool;
}

struct Zlib;
struct Brotli;
struct Zstd;

impl Algorithm for Zlib {
    fn fill(out: &mut [u8], input: &[u8]) -> bool {
        let mut zlib = Decompress::new(true);
        let end = zlib.decompress(input, out, FlushDecompress::Finish);
        let written = usize::try_from(zlib.total_out());
        matches!(end, Ok(Status::StreamEnd)) && written == Ok(out.len())
    }
}

impl Algorithm for Brotli {
    fn fill(out: &mut [u8], input: &[u8]) -> bool {
        let end = brotli_decompressor::brotli_decode(input, out);
        matches!(end.result, BrotliResult::ResultSuccess) && end.decoded_size == out.len()
    }
}

impl Algorithm for Zstd {
    fn fill(out: &mut [u8], input: &[u8]) -> bool {
        // In one call its window is what it has written.
        let written = zstd::bulk::decompress_to_buffer(input, out);
        written.is_ok_and(|written| written == out.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn zlib(message: &[u8]) -> Vec<u8> {
        let mut to = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        to.write_all(message).unwrap();
        to.finish().unwrap()
    }

    fn brotli(message: &[u8]) -> Vec<u8> {
        let mut to = Vec::new();
        let settings = brotli::enc::BrotliEncoderParams::default();
        brotli::BrotliCompress(&mut &*message, &mut to, &settings).unwrap();
        to
    }

    fn zstd(message: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(message, 19).unwrap()
    }

    /// What all algorithms have to do, with something compressed by a hand of this one.
    fn judge<A: Algorithm>(compress: impl Fn(&[u8]) -> Vec<u8>) {
        let message: Vec<u8> = (0..3000_u32).map(|n| ((n * n) >> 5) as u8).collect();
        let whole = compress(&message);
        assert_eq!(decompress::<A>(&whole, message.len()).as_deref(), Some(&*message));
        for len in [0, 1, message.len() - 1, message.len() + 1, MAX_MESSAGE] {
            assert_eq!(decompress::<A>(&whole, len), None, "announced {len}");
        }
        for cut in [0, 1, 5, whole.len() / 2, whole.len() - 1] {
            assert_eq!(decompress::<A>(&whole[..cut], message.len()), None, "cut to {cut}");
        }
        let largest = vec![7; MAX_MESSAGE];
        assert_eq!(decompress::<A>(&compress(&largest), largest.len()), Some(largest));
        let bomb = vec![0; 10 * MAX_MESSAGE];
        let bomb_len = bomb.len();
        let bomb = compress(&bomb);
        assert_eq!(decompress::<A>(&bomb, bomb_len), None, "longer than is taken");
        assert_eq!(decompress::<A>(&bomb, MAX_MESSAGE), None, "longer than was announced");
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x55;
            // Not all of it is noticed here; it must end.
            let _ = decompress::<A>(&broken, message.len());
        }
    }

    #[test]
    fn zlib_fills_what_was_announced_or_fails() {
        judge::<Zlib>(zlib);
    }

    #[test]
    fn brotli_fills_what_was_announced_or_fails() {
        judge::<Brotli>(brotli);
    }

    #[test]
    fn zstd_fills_what_was_announced_or_fails() {
        judge::<Zstd>(zstd);
    }
}
