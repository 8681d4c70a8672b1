//! What one coding does to bytes, behind one face; a file for each.

use std::io;

use crate::body::coding::Coding;

#[cfg(feature = "brotli")]
mod brotli;
#[cfg(feature = "deflate")]
mod deflate;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "zstd")]
mod zstd;

/// How far one [`Codec::run`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) consumed: usize,
    pub(super) produced: usize,
}

impl Ran {
    /// The input is of no interest: take all of it, make nothing of it.
    #[cfg(any(feature = "gzip", feature = "deflate", feature = "brotli", feature = "zstd"))]
    fn discard(input: &[u8]) -> Self {
        Self { consumed: input.len(), produced: 0 }
    }
}

/// A streaming decoder.
pub(super) trait Codec: Send + Sync {
    /// Decodes some of `input` into `output`, which is never empty. It may hold decoded bytes back
    /// only when it filled `output`. With input it consumes or produces at least one byte.
    fn run(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Ran>;

    /// Whether the input may end here: before the first byte, or after a whole stream.
    fn is_complete(&self) -> bool;
}

/// A decoder for `coding`.
///
/// # Errors
/// The coding is not compiled in, or its library has no memory for it.
pub(super) fn open(coding: Coding) -> io::Result<Box<dyn Codec>> {
    match coding {
        #[cfg(feature = "gzip")]
        Coding::Gzip => Ok(Box::new(gzip::Gzip::new())),
        #[cfg(feature = "deflate")]
        Coding::Deflate => Ok(Box::new(deflate::Deflate::new())),
        #[cfg(feature = "brotli")]
        Coding::Brotli => Ok(Box::new(brotli::Brotli::new())),
        #[cfg(feature = "zstd")]
        Coding::Zstd => Ok(Box::new(zstd::Zstd::new()?)),
        #[allow(unreachable_patterns, reason = "reached when a feature is off")]
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Runs zlib's machine once; `true` when the stream ended.
#[cfg(any(feature = "gzip", feature = "deflate"))]
fn inflate(
    machine: &mut flate2::Decompress,
    input: &[u8],
    output: &mut [u8],
) -> io::Result<(Ran, bool)> {
    let (read, written) = (machine.total_in(), machine.total_out());
    let status = machine
        .decompress(input, output, flate2::FlushDecompress::None)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    // Both differences are bounded by the slices' lengths.
    let ran = Ran {
        consumed: (machine.total_in() - read) as usize,
        produced: (machine.total_out() - written) as usize,
    };
    Ok((ran, status == flate2::Status::StreamEnd))
}
