//! Small bodies that decode to large ones, made as they are sent.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::conn::After;
use crate::exchange::{Begun, Exchange};
use crate::response::Response;
use crate::routes::{ANY, Route, route};

pub(super) const ROUTES: &[Route] = &[
    route("/bad/bomb-gzip", ANY, "?mib= MiB of zeros (10240) as gzip", |ex| Box::pin(gzip(ex))),
    route("/bad/bomb-gzip-gzip", ANY, "the same, as gzip in gzip", |ex| Box::pin(gzip_twice(ex))),
    route("/bad/bomb-brotli", ANY, "?mib= MiB of zeros (10240) as br", |ex| Box::pin(brotli(ex))),
    route("/bad/bomb-zstd", ANY, "?mib= MiB of zeros (10240) as zstd", |ex| Box::pin(zstd(ex))),
    route("/bad/coding-chain", ANY, "two bytes under ?n= gzip codings (100)", |ex| {
        Box::pin(chain(ex))
    }),
    route("/bad/gzip-garbage", ANY, "Content-Encoding: gzip on bytes that are not", |ex| {
        let body = b"this is not gzip at all".to_vec();
        Box::pin(ex.reply(coded("gzip", body)))
    }),
    route("/bad/gzip-truncated", ANY, "half of a gzip stream, with the right length", |ex| {
        Box::pin(truncated(ex))
    }),
    route("/bad/gzip-checksum", ANY, "a gzip stream with a wrong CRC", |ex| Box::pin(checksum(ex))),
    route("/bad/gzip-trailing", ANY, "a gzip stream with bytes after it", |ex| {
        Box::pin(trailing(ex))
    }),
    route("/bad/coding-unknown", ANY, "Content-Encoding: x-unheard-of", |ex| {
        Box::pin(ex.reply(coded("x-unheard-of", b"who knows".to_vec())))
    }),
];

const MIB: usize = 1 << 20;
/// How much is collected before it is written.
const PIECE: usize = 32 * 1024;

fn coded(coding: &str, body: Vec<u8>) -> Response {
    Response::of("text/plain", body).header("content-encoding", coding)
}

fn mebibytes(ex: &Exchange) -> u32 {
    ex.query_or("mib", 10_240).clamp(1, 1 << 20)
}

async fn begin(ex: &mut Exchange, coding: &str) -> io::Result<Begun> {
    ex.begin(coded(coding, Vec::new())).await
}

/// Writes `unit` so many times, in larger pieces.
async fn repeat(ex: &mut Exchange, out: &mut Begun, unit: &[u8], times: u32) -> io::Result<()> {
    let mut left = times as usize;
    let per_piece = (PIECE / unit.len().max(1)).max(1);
    while left > 0 {
        let now = per_piece.min(left);
        out.chunk(ex, &unit.repeat(now)).await?;
        left -= now;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The parts of a gzip stream (RFC 1952) of zeros: its begin, one MiB of it, its end.
struct Gzip {
    begin: Vec<u8>,
    unit: Vec<u8>,
    end: Vec<u8>,
}

impl Gzip {
    fn of_zeros(mib: u32) -> io::Result<Self> {
        let zeros = vec![0; MIB];
        let mut unit = Vec::with_capacity(8 * 1024);
        // A full flush ends on a byte and forgets the window (RFC 1951 section 3.2.4), so the
        // same bytes stand for the same MiB wherever they are put.
        Compress::new(Compression::best(), false)
            .compress_vec(&zeros, &mut unit, FlushCompress::Full)
            .map_err(io::Error::other)?;
        let mut one = Crc::new();
        one.update(&zeros);
        let mut whole = Crc::new();
        for _ in 0..mib {
            whole.combine(&one);
        }
        // A last, empty block; CRC-32; the size modulo 2^32.
        let mut end = vec![0x03, 0x00];
        end.extend_from_slice(&whole.sum().to_le_bytes());
        end.extend_from_slice(&mib.wrapping_mul(MIB as u32).to_le_bytes());
        Ok(Self { begin: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255], unit, end })
    }
}

async fn gzip(ex: &mut Exchange) -> io::Result<After> {
    let mib = mebibytes(ex);
    let gzip = Gzip::of_zeros(mib)?;
    let mut out = begin(ex, "gzip").await?;
    out.chunk(ex, &gzip.begin).await?;
    repeat(ex, &mut out, &gzip.unit, mib).await?;
    out.chunk(ex, &gzip.end).await?;
    out.finish(ex, &[]).await
}

async fn gzip_twice(ex: &mut Exchange) -> io::Result<After> {
    let mib = mebibytes(ex);
    let inner = Gzip::of_zeros(mib)?;
    let mut out = begin(ex, "gzip, gzip").await?;
    let mut outer = GzEncoder::new(Vec::new(), Compression::best());
    outer.write_all(&inner.begin)?;
    for _ in 0..mib {
        outer.write_all(&inner.unit)?;
        let ready = std::mem::take(outer.get_mut());
        out.chunk(ex, &ready).await?;
        tokio::task::yield_now().await;
    }
    outer.write_all(&inner.end)?;
    let rest = outer.finish()?;
    out.chunk(ex, &rest).await?;
    out.finish(ex, &[]).await
}

async fn brotli(ex: &mut Exchange) -> io::Result<After> {
    let mib = mebibytes(ex);
    let (begin_bytes, unit, end) = brotli_of_zeros()?;
    let mut out = begin(ex, "br").await?;
    out.chunk(ex, &begin_bytes).await?;
    repeat(ex, &mut out, &unit, mib - 1).await?;
    out.chunk(ex, &end).await?;
    out.finish(ex, &[]).await
}

/// The first MiB, every further MiB, and the end of a brotli stream (RFC 7932) of zeros.
fn brotli_of_zeros() -> io::Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let zeros = vec![0; MIB];
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 64 * 1024, 9, 22);
    // A flush ends on a byte; from the second MiB on the encoder finds nothing new to say.
    let mut parts = Vec::new();
    let mut before = 0;
    for _ in 0..2 {
        encoder.write_all(&zeros)?;
        encoder.flush()?;
        parts.push(encoder.get_ref()[before..].to_vec());
        before = encoder.get_ref().len();
    }
    let whole = encoder.into_inner();
    let unit = parts.pop().unwrap_or_default();
    Ok((parts.pop().unwrap_or_default(), unit, whole[before..].to_vec()))
}

/// A Zstandard frame (RFC 8878 section 3.1.1) of RLE blocks, by hand: 4 bytes for 128 KiB.
async fn zstd(ex: &mut Exchange) -> io::Result<After> {
    const BLOCK: u32 = 128 * 1024;
    let blocks = mebibytes(ex) * (MIB as u32 / BLOCK);
    // Magic; no checksum, no content size; a window of 8 MiB.
    let begin_bytes = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3];
    // Last-block bit, type 1 (RLE), size; then the byte to repeat.
    let block = |last: u32| {
        let [a, b, c, _] = (last | 1 << 1 | BLOCK << 3).to_le_bytes();
        [a, b, c, 0]
    };
    let mut out = begin(ex, "zstd").await?;
    out.chunk(ex, &begin_bytes).await?;
    repeat(ex, &mut out, &block(0), blocks - 1).await?;
    out.chunk(ex, &block(1)).await?;
    out.finish(ex, &[]).await
}

fn gzip_once(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data)?;
    encoder.finish()
}

async fn chain(ex: &mut Exchange) -> io::Result<After> {
    let count = ex.query_or("n", 100usize).clamp(1, 10_000);
    let mut body = b"ok".to_vec();
    for _ in 0..count {
        body = gzip_once(&body)?;
    }
    ex.reply(coded(&vec!["gzip"; count].join(", "), body)).await
}

const SONG: &[u8] = b"the mockingbird sings what it has heard, and again";

async fn truncated(ex: &mut Exchange) -> io::Result<After> {
    let mut body = gzip_once(SONG)?;
    body.truncate(body.len() / 2);
    ex.reply(coded("gzip", body)).await
}

async fn checksum(ex: &mut Exchange) -> io::Result<After> {
    let mut body = gzip_once(SONG)?;
    // The last 8 bytes are CRC-32 and size (RFC 1952 section 2.3.1).
    let at = body.len() - 8;
    body[at] ^= 0xff;
    ex.reply(coded("gzip", body)).await
}

async fn trailing(ex: &mut Exchange) -> io::Result<After> {
    let mut body = gzip_once(SONG)?;
    body.extend_from_slice(b"and a rest");
    ex.reply(coded("gzip", body)).await
}
