//! Content codings (RFC 9110 section 8.4) and character encodings.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use serde_json::json;

use super::{GET, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;

pub(super) const ROUTES: &[Route] = &[
    route("/gzip", GET, "JSON as gzip; ?stacked=1 as gzip, then br", |ex| {
        Box::pin(coded(ex, &[Coding::Gzip]))
    }),
    route("/deflate", GET, "JSON as deflate: zlib, as RFC 9110 has it; ?stacked=1 then br", |ex| {
        Box::pin(coded(ex, &[Coding::Zlib]))
    }),
    route("/deflate-raw", GET, "JSON as deflate without zlib's frame, as some servers do", |ex| {
        Box::pin(coded(ex, &[Coding::RawDeflate]))
    }),
    route("/brotli", GET, "JSON as br; ?stacked=1 then br again", |ex| {
        Box::pin(coded(ex, &[Coding::Brotli]))
    }),
    route("/zstd", GET, "JSON as zstd; ?stacked=1 then br", |ex| {
        Box::pin(coded(ex, &[Coding::Zstd]))
    }),
    route("/stacked", GET, "JSON as gzip, then br: Content-Encoding: gzip, br", |ex| {
        Box::pin(coded(ex, &[Coding::Gzip, Coding::Brotli]))
    }),
    route("/encoding/{charset}", GET, "text in utf8, utf16, latin1 or shift_jis", |ex| {
        Box::pin(charset(ex))
    }),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Zlib,
    RawDeflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Zlib | Coding::RawDeflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    fn encode(self, data: &[u8]) -> io::Result<Vec<u8>> {
        let level = Compression::default();
        match self {
            Coding::Gzip => finish(GzEncoder::new(Vec::new(), level), data, GzEncoder::finish),
            Coding::Zlib => finish(ZlibEncoder::new(Vec::new(), level), data, ZlibEncoder::finish),
            Coding::RawDeflate => {
                finish(DeflateEncoder::new(Vec::new(), level), data, DeflateEncoder::finish)
            }
            Coding::Brotli => {
                let encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
                finish(encoder, data, |encoder| Ok(encoder.into_inner()))
            }
            Coding::Zstd => zstd::stream::encode_all(data, 3),
        }
    }
}

fn finish<W: Write>(
    mut encoder: W,
    data: &[u8],
    end: impl FnOnce(W) -> io::Result<Vec<u8>>,
) -> io::Result<Vec<u8>> {
    encoder.write_all(data)?;
    end(encoder)
}

async fn coded(ex: &mut Exchange, codings: &[Coding]) -> io::Result<After> {
    let mut codings = codings.to_vec();
    if ex.query("stacked").is_some() {
        codings.push(Coding::Brotli);
    }
    let names: Vec<&str> = codings.iter().map(|coding| coding.name()).collect();
    let names = names.join(", ");
    let value = json!({
        "coded": names,
        "method": ex.request.method,
        "accept-encoding": ex.request.header("accept-encoding"),
        "text": "the mockingbird sings what it has heard. ".repeat(20),
    });
    let mut body = value.to_string().into_bytes();
    for coding in &codings {
        body = coding.encode(&body)?;
    }
    let response = Response::of("application/json", body).header("content-encoding", names);
    ex.reply(response.header("vary", "accept-encoding")).await
}

async fn charset(ex: &mut Exchange) -> io::Result<After> {
    let (label, body): (&str, Vec<u8>) = match ex.param("charset") {
        "utf8" | "utf-8" => ("utf-8", "naïve café, 日本語, ελληνικά, 🐦\n".into()),
        "utf16" | "utf-16" => {
            let text = "\u{feff}naïve café, 日本語\n".encode_utf16();
            ("utf-16", text.flat_map(u16::to_le_bytes).collect())
        }
        // é is one byte, E9.
        "latin1" | "iso-8859-1" => ("iso-8859-1", b"na\xefve caf\xe9\n".to_vec()),
        // 日本語 in Shift_JIS.
        "shift_jis" => ("shift_jis", b"\x93\xfa\x96\x7b\x8c\xea\n".to_vec()),
        _ => {
            return ex.reply(Response::text(404, "no such character encoding\n")).await;
        }
    };
    ex.reply(Response::of(&format!("text/plain; charset={label}"), body)).await
}
