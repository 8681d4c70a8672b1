#![cfg(all(feature = "gzip", feature = "deflate", feature = "brotli", feature = "zstd"))]

use std::io::Write;

use flate2::{Compression, write};
use proptest::prelude::*;

use super::*;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut to = write::GzEncoder::new(Vec::new(), Compression::default());
    to.write_all(data).unwrap();
    to.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut to = write::ZlibEncoder::new(Vec::new(), Compression::default());
    to.write_all(data).unwrap();
    to.finish().unwrap()
}

fn bare_deflate(data: &[u8]) -> Vec<u8> {
    let mut to = write::DeflateEncoder::new(Vec::new(), Compression::default());
    to.write_all(data).unwrap();
    to.finish().unwrap()
}

fn brotli(data: &[u8]) -> Vec<u8> {
    let mut to = ::brotli::CompressorWriter::new(Vec::new(), 4 * KIB, 5, 22);
    to.write_all(data).unwrap();
    to.into_inner()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ::zstd::stream::encode_all(data, 3).unwrap()
}

/// Each coding with a sample of it.
fn samples(data: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("gzip", gzip(data)),
        ("deflate", zlib(data)),
        ("deflate", bare_deflate(data)),
        ("br", brotli(data)),
        ("zstd", zstd(data)),
        ("gzip, br", brotli(&gzip(data))),
        ("zstd, deflate, x-gzip", gzip(&zlib(&zstd(data)))),
    ]
}

fn text(len: usize) -> Vec<u8> {
    (0..)
        .flat_map(|n: u32| format!("line {n} of {}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
        .take(len)
        .collect()
}

fn decoder(codings: &str, limits: &DecodeLimits) -> Decoder {
    Decoder::for_codings([codings], limits).unwrap().unwrap()
}

/// Decodes `pieces`, checking that no output piece is empty or too large.
fn decode<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece)).unwrap();
        while let Some(piece) = decoder.poll()? {
            assert!((1..=PIECE).contains(&piece.len()));
            out.extend_from_slice(&piece);
        }
    }
    decoder.finish()?;
    Ok(out)
}

fn decode_whole(codings: &str, body: &[u8]) -> Result<Vec<u8>, DecodeErrorKind> {
    decode(&mut decoder(codings, &DecodeLimits::default()), [body]).map_err(|error| error.kind())
}

/// Feeds `encoded` over and over and counts what comes out before the error.
fn swell(decoder: &mut Decoder, encoded: impl Iterator<Item = Vec<u8>>) -> (u64, DecodeErrorKind) {
    let mut produced = 0;
    for piece in encoded {
        decoder.push(piece.into()).unwrap();
        loop {
            match decoder.poll() {
                Ok(Some(piece)) => produced += piece.len() as u64,
                Ok(None) => break,
                Err(error) => return (produced, error.kind()),
            }
        }
    }
    panic!("{produced} bytes came out without an error: {decoder:?}");
}

/// Zeros through a streaming gzip encoder, a piece of its output at a time.
fn gzipped_zeros(total: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut encoder = Some(write::GzEncoder::new(Vec::new(), Compression::best()));
    let mut left = total;
    std::iter::from_fn(move || {
        let mut to = encoder.take()?;
        if left == 0 {
            return Some(to.finish().unwrap());
        }
        let step = left.min(4 * MIB as u64);
        left -= step;
        to.write_all(&vec![0; step as usize]).unwrap();
        let piece = std::mem::take(to.get_mut());
        encoder = Some(to);
        Some(piece)
    })
}

#[test]
fn every_coding_gives_back_what_went_in() {
    for len in [0, 1, 17, 70 * KIB, 300 * KIB] {
        let data = text(len);
        for (codings, body) in samples(&data) {
            assert_eq!(decode_whole(codings, &body).as_ref(), Ok(&data), "{codings} {len}");
        }
    }
}

#[test]
fn a_bodys_pieces_may_be_single_bytes() {
    let data = text(3 * KIB);
    for (codings, body) in samples(&data) {
        let mut decoder = decoder(codings, &DecodeLimits::default());
        assert_eq!(decode(&mut decoder, body.chunks(1)).unwrap(), data, "{codings}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn decoding_is_independent_of_splits(
        seed in proptest::collection::vec(any::<u8>(), 0..2000),
        repeat in 1_usize..60,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let data = seed.repeat(repeat);
        for (codings, body) in samples(&data) {
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            at.extend([0, body.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &body[pair[0]..pair[1]]);
            let mut decoder = decoder(codings, &DecodeLimits::default());
            prop_assert_eq!(&decode(&mut decoder, pieces).unwrap(), &data, "{}", codings);
        }
    }

    #[test]
    fn garbage_never_panics_and_ends(
        body in proptest::collection::vec(any::<u8>(), 0..600),
        which in 0_usize..7,
        keep in any::<prop::sample::Index>(),
    ) {
        let (codings, sample) = samples(&text(500)).swap_remove(which);
        // A good beginning, then noise; and noise alone.
        let mut mixed = sample[..keep.index(sample.len())].to_vec();
        mixed.extend_from_slice(&body);
        for body in [mixed, body] {
            let _ = decode_whole(codings, &body);
        }
    }
}

#[test]
fn a_cut_at_any_byte_is_truncation() {
    let data = text(5 * KIB);
    for (codings, body) in samples(&data) {
        for cut in 1..body.len() {
            let result = decode_whole(codings, &body[..cut]);
            assert_eq!(result, Err(DecodeErrorKind::Truncated), "{codings} at {cut}");
        }
    }
}

#[test]
fn a_flipped_bit_does_not_pass_a_checksum() {
    let data = text(4 * KIB);
    let mut body = gzip(&data);
    let middle = body.len() / 2;
    body[middle] ^= 0x10;
    assert!(matches!(
        decode_whole("gzip", &body),
        Err(DecodeErrorKind::Corrupt | DecodeErrorKind::Truncated)
    ));
    let mut body = gzip(&data);
    let crc = body.len() - 8;
    body[crc] ^= 1;
    assert_eq!(decode_whole("gzip", &body), Err(DecodeErrorKind::Corrupt));
}

#[test]
fn plain_text_is_not_taken_for_an_encoded_body() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let result = decode_whole(coding, b"<!doctype html><title>no coding here</title>");
        assert_eq!(result, Err(DecodeErrorKind::Corrupt), "{coding}");
    }
}

#[test]
fn an_empty_body_is_complete() {
    for (codings, _) in samples(b"") {
        assert_eq!(decode_whole(codings, b""), Ok(Vec::new()), "{codings}");
    }
}

#[test]
fn further_members_and_frames_are_decoded() {
    let (one, two) = (text(KIB), text(90 * KIB));
    let both = [&one[..], &two[..]].concat();
    let gzips = [gzip(&one), gzip(&two)].concat();
    let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let zstds = [skippable.clone(), zstd(&one), skippable, zstd(&two)].concat();
    for (coding, body) in [("gzip", gzips), ("zstd", zstds)] {
        assert_eq!(decode_whole(coding, &body).as_ref(), Ok(&both), "{coding}");
        let mut split = decoder(coding, &DecodeLimits::default());
        assert_eq!(decode(&mut split, body.chunks(1)).unwrap(), both, "{coding}");
        // The start of a second stream is no garbage: it was cut off.
        let cut = &body[..body.len() - 5];
        assert_eq!(decode_whole(coding, cut), Err(DecodeErrorKind::Truncated), "{coding}");
    }
}

#[test]
fn a_started_member_is_truncation_even_after_one_byte() {
    let body = [gzip(b"whole"), vec![0x1f]].concat();
    assert_eq!(decode_whole("gzip", &body), Err(DecodeErrorKind::Truncated));
}

#[test]
fn garbage_after_the_end_is_discarded() {
    let data = text(2 * KIB);
    for (codings, body) in samples(&data) {
        for garbage in [&[0_u8; 600][..], b"\n", b"\x1f\x8c", b"<!-- proxied -->"] {
            let padded = [&body[..], garbage].concat();
            assert_eq!(decode_whole(codings, &padded).as_ref(), Ok(&data), "{codings}");
        }
    }
}

#[test]
fn ten_gibibytes_of_zeros_stop_at_the_ratio() {
    let limits = DecodeLimits::default();
    let mut decoder = decoder("gzip", &limits);
    let (produced, kind) = swell(&mut decoder, gzipped_zeros(10 << 30));
    assert_eq!(kind, DecodeErrorKind::RatioExceeded);
    assert!(produced <= limits.ratio_floor);
    let again = decoder.poll().unwrap_err();
    assert_eq!((again.kind(), again.coding()), (kind, Some(Coding::Gzip)));
}

#[test]
fn size_is_capped_where_the_ratio_is_not() {
    let limits =
        DecodeLimits { max_size: Some(3 * MIB as u64), max_ratio: None, ..DecodeLimits::default() };
    let (produced, kind) = swell(&mut decoder("gzip", &limits), gzipped_zeros(10 << 30));
    assert_eq!(kind, DecodeErrorKind::TooLarge);
    assert!(produced <= 3 * MIB as u64);
}

#[test]
fn exactly_the_largest_size_passes() {
    let data = text(100 * KIB);
    let limits = |max| DecodeLimits { max_size: Some(max), ..DecodeLimits::default() };
    let body = gzip(&data);
    let len = data.len() as u64;
    assert_eq!(decode(&mut decoder("gzip", &limits(len)), [&body[..]]).unwrap(), data);
    let error = decode(&mut decoder("gzip", &limits(len - 1)), [&body[..]]).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooLarge);
}

#[test]
fn dense_codings_and_chains_of_them_stop_at_the_ratio() {
    let zeros = vec![0; 100 * MIB];
    let (gzipped, brotlied, zstded) = (gzip(&zeros), brotli(&zeros), zstd(&zeros));
    drop(zeros);
    let bombs =
        [("gzip, gzip", gzip(&gzipped)), ("br", brotlied), ("zstd", zstded), ("gzip", gzipped)];
    for (codings, bomb) in bombs {
        let limits = DecodeLimits::default();
        let mut decoder = decoder(codings, &limits);
        let (produced, kind) = swell(&mut decoder, [bomb].into_iter());
        assert_eq!(kind, DecodeErrorKind::RatioExceeded, "{codings}");
        assert!(produced <= limits.ratio_floor, "{codings}");
    }
}

/// Issues of this shape: CVE-2025-66418 (chains), CVE-2022-32206 (many codings).
#[test]
fn a_bomb_whose_outer_layer_decodes_to_nothing_is_found() {
    // Half a million empty gzip members, gzipped: the inner layer never puts out a byte.
    let empty = gzip(b"").repeat(1 << 19);
    for codings in ["gzip, gzip", "gzip, zstd"] {
        let bomb = if codings.ends_with("zstd") { zstd(&empty) } else { gzip(&empty) };
        let limits = DecodeLimits {
            max_ratio: Some(100),
            ratio_floor: MIB as u64,
            ..DecodeLimits::default()
        };
        let (produced, kind) = swell(&mut decoder(codings, &limits), [bomb].into_iter());
        assert_eq!((produced, kind), (0, DecodeErrorKind::RatioExceeded), "{codings}");
    }
}

#[test]
fn a_window_over_eight_mebibytes_is_refused() {
    let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(24).unwrap();
    encoder.write_all(&text(KIB)).unwrap();
    let body = encoder.finish().unwrap();
    assert_eq!(decode_whole("zstd", &body), Err(DecodeErrorKind::Corrupt));
}

#[test]
fn a_large_window_brotli_stream_is_refused() {
    // RFC 7932 section 9.1 reserves what announces the windows of up to 1 GiB in this format.
    let params =
        ::brotli::enc::BrotliEncoderParams { large_window: true, lgwin: 28, ..Default::default() };
    let mut to = ::brotli::CompressorWriter::with_params(Vec::new(), 4 * KIB, &params);
    to.write_all(&text(KIB)).unwrap();
    let body = to.into_inner();
    assert_eq!(body[0] & 0x7f, 0x11);
    assert_eq!(decode_whole("br", &body), Err(DecodeErrorKind::Corrupt));
}

#[test]
fn flushed_data_comes_out_without_waiting_for_more() {
    fn check<W: Write>(coding: &str, mut to: W, take: impl Fn(&mut W) -> Vec<u8>) {
        let mut decoder = decoder(coding, &DecodeLimits::default());
        for event in ["data: one\n\n", "data: two\n\n"] {
            to.write_all(event.as_bytes()).unwrap();
            to.flush().unwrap();
            decoder.push(take(&mut to).into()).unwrap();
            let mut seen = Vec::new();
            while let Some(piece) = decoder.poll().unwrap() {
                seen.extend_from_slice(&piece);
            }
            assert_eq!(seen, event.as_bytes(), "{coding}");
        }
    }
    use std::mem::take;
    let level = Compression::default();
    check("gzip", write::GzEncoder::new(Vec::new(), level), |to| take(to.get_mut()));
    check("deflate", write::ZlibEncoder::new(Vec::new(), level), |to| take(to.get_mut()));
    check("deflate", write::DeflateEncoder::new(Vec::new(), level), |to| take(to.get_mut()));
    let brotli = ::brotli::CompressorWriter::new(Vec::new(), 4 * KIB, 5, 22);
    check("br", brotli, |to| take(to.get_mut()));
    let zstd = ::zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    check("zstd", zstd, |to| take(to.get_mut()));
}

#[test]
fn a_size_limit_is_not_held_against_an_inner_layers_framing() {
    let body = gzip(&gzip(b"tiny"));
    let mut limits = DecodeLimits { max_size: Some(4), ..DecodeLimits::default() };
    assert_eq!(decode(&mut decoder("gzip, gzip", &limits), [&body[..]]).unwrap(), b"tiny");
    // Yet an inner layer of nothing but framing is.
    limits.max_ratio = None;
    let bomb = gzip(&gzip(b"").repeat(1 << 17));
    let (produced, kind) = swell(&mut decoder("gzip, gzip", &limits), [bomb].into_iter());
    assert_eq!((produced, kind), (0, DecodeErrorKind::TooLarge));
}

#[test]
fn codings_are_counted_skipped_and_left_alone() {
    let limits = DecodeLimits::default();
    let make = |values: &[&'static str]| Decoder::for_codings(values.iter().copied(), &limits);
    for untouched in
        [&[][..], &["identity"], &["", " , none"], &["foo"], &["gzip, foo"], &["foo, gzip"]]
    {
        assert!(make(untouched).unwrap().is_none(), "{untouched:?}");
    }
    assert!(make(&["gzip", "IDENTITY, Br", "zstd"]).unwrap().is_some());
    let error = make(&["gzip, gzip", "gzip,gzip"]).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooManyCodings);
    let error = make(&[&"gzip,".repeat(100_000).leak()[..]]).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::TooManyCodings);
}

#[test]
fn a_second_push_is_handed_back() {
    let mut decoder = decoder("gzip", &DecodeLimits::default());
    let body = Bytes::from(gzip(b"first"));
    decoder.push(body.clone()).unwrap();
    assert_eq!(decoder.push(body.clone()).unwrap_err(), body);
    assert_eq!(decoder.finish().unwrap_err().kind(), DecodeErrorKind::Truncated);
}

#[test]
fn a_decoder_crosses_threads() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Decoder>();
    assert_send_sync::<DecodeError>();
}
