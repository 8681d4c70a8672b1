//! Bodies both ways: streamed, large, coded, in parts.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mimus::{Body, BoxError, Response, multipart};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::setup::{Demo, Result, ensure, ms};

const MIB: usize = 1 << 20;
const BIG: usize = 64 * MIB;

/// Of the first 64 MiB that the origin generates from the seed 0; found without Mimus.
const SHA256_OF_BIG: &str = "f5e8680f74b9da6bb580ca3d65d63c6194e543ab3319d555ca4fad00b220dbfa";

pub async fn streaming(demo: &Demo) -> Result {
    let started = Instant::now();
    let response = demo.client()?.get(demo.http("/stream/8?ms=40")).send().await?;
    let mut arrivals = Vec::new();
    let mut body = response.into_body();
    while let Some(piece) = body.next().await {
        piece?;
        arrivals.push(started.elapsed());
    }
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
        return Err("an empty body".into());
    };
    let apart = last.saturating_sub(*first);
    ensure!(apart > Duration::from_millis(200), "first and last {} apart", ms(apart));
    Ok(format!("{} pieces, first after {}, last after {}", arrivals.len(), ms(*first), ms(*last)))
}

pub async fn download(demo: &Demo) -> Result {
    let started = Instant::now();
    let mut response = demo.client()?.get(demo.http(&format!("/bytes/{BIG}"))).send().await?;
    ensure!(response.content_length() == Some(BIG as u64), "{:?}", response.content_length());
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    while let Some(piece) = response.chunk().await? {
        bytes += piece.len();
        hash.update(&piece);
    }
    let digest = hex(&hash.finalize());
    ensure!(digest == SHA256_OF_BIG, "{bytes} bytes with SHA-256 {digest}");
    Ok(format!("{bytes} bytes, {digest:.16}…, {}", speed(bytes, started.elapsed())))
}

pub async fn upload(demo: &Demo) -> Result {
    let data: Bytes = (0..BIG / MIB).flat_map(block).collect::<Vec<u8>>().into();
    let expected = hex(&Sha256::digest(&data));
    let started = Instant::now();
    let response = demo.client()?.post(demo.https("/upload")).body(data).send().await?;
    let took = started.elapsed();
    arrived(response, BIG, &expected).await?;
    Ok(format!("{BIG} bytes, {expected:.16}…, {}", speed(BIG, took)))
}

pub async fn chunked_upload(demo: &Demo) -> Result {
    const BLOCKS: usize = 8;
    let mut hash = Sha256::new();
    (0..BLOCKS).for_each(|number| hash.update(block(number)));
    let blocks = stream::iter(0..BLOCKS).map(|number| Ok::<_, BoxError>(block(number)));
    let response =
        demo.client()?.post(demo.http("/upload")).body(Body::stream(blocks)).send().await?;
    arrived(response, BLOCKS * MIB, &hex(&hash.finalize())).await?;
    let seen = demo.last_request()?;
    let coding = seen.header("transfer-encoding").unwrap_or_default();
    ensure!(coding == "chunked", "Transfer-Encoding: {coding:?}");
    ensure!(seen.header("content-length").is_none(), "a Content-Length beside it");
    Ok(format!("{} bytes, Transfer-Encoding: {coding}", seen.body_len))
}

/// Checks what the origin says about an upload.
async fn arrived(response: Response, length: usize, sha256: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Receipt {
        length: usize,
        sha256: String,
    }
    let receipt: Receipt = response.error_for_status()?.json().await?;
    ensure!(receipt.length == length, "{} bytes arrived", receipt.length);
    ensure!(receipt.sha256 == sha256, "{} arrived, {sha256} was sent", receipt.sha256);
    Ok(())
}

pub async fn multipart(demo: &Demo) -> Result {
    let mut file = tempfile::Builder::new().prefix("song-").suffix(".txt").tempfile()?;
    file.write_all("tschik-tschik\n".as_bytes())?;
    let form = multipart::Form::new().text("bird", "Zaunkönig").file("song", file.path())?;
    let response = demo.client()?.post(demo.https("/post")).multipart(form).send().await?;
    let echo: Value = response.error_for_status()?.json().await?;
    ensure!(echo["form"]["bird"] == "Zaunkönig", "the origin saw {}", echo["form"]);
    let song = &echo["files"][0];
    ensure!(song["data"] == "tschik-tschik\n", "the origin saw {song}");
    ensure!(song["content_type"] == "text/plain", "the origin saw {song}");
    let announced = demo.last_request()?.header("content-length").ok_or("no Content-Length")?;
    Ok(format!("text and a {} file in {announced} bytes", song["content_type"]))
}

pub async fn codings(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut facts = Vec::new();
    for path in ["/gzip", "/deflate", "/deflate-raw", "/brotli", "/zstd", "/stacked"] {
        let response = client.get(demo.http(path)).send().await?;
        let coding = response.header("content-encoding").unwrap_or("none").to_owned();
        let value: Value = response.json().await.map_err(|error| format!("{path}: {error:#}"))?;
        ensure!(value.is_object(), "{path}: {value}");
        facts.push(match path {
            "/deflate-raw" => format!("{coding} (raw)"),
            "/stacked" => format!("[{coding}]"),
            _ => coding,
        });
    }
    Ok(facts.join(", "))
}

pub async fn expect_continue(demo: &Demo) -> Result {
    let client = demo.builder().expect_continue(Duration::from_secs(1)).build()?;
    let taken = client.post(demo.http("/continue")).body(vec![0; MIB]).send().await?;
    let (taken, took) = (taken.status(), demo.last_request()?.body_len);
    ensure!(taken == 200 && took == MIB as u64, "{taken} after {took} bytes");
    let refused = client.post(demo.http("/expect-refused")).body(vec![0; MIB]).send().await?;
    let (refused, sent) = (refused.status(), demo.last_request()?.body_len);
    ensure!(refused == 417 && sent == 0, "{refused} after {sent} bytes");
    Ok(format!("{taken} after 100 and {took} bytes; 417 after {sent} bytes"))
}

pub async fn early_413(demo: &Demo) -> Result {
    let client = demo.client()?;
    let paths = ["/bad/early-413", "/bad/early-413-close", "/bad/early-413-drop"];
    for path in paths {
        let response = client.post(demo.http(path)).body(vec![0; 16 * MIB]).send().await;
        let status = response.map_err(|error| format!("{path}: {error:#}"))?.status();
        ensure!(status == 413, "{path}: {status}");
    }
    ensure!(client.pool_stats().open() == 0, "a connection was kept: {:?}", client.pool_stats());
    Ok(format!("413 came through {} times of {0}", paths.len()))
}

/// One MiB, each different from the others and from itself shifted (xorshift64).
fn block(number: usize) -> Bytes {
    let mut state = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut block = Vec::with_capacity(MIB);
    while block.len() < MIB {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend_from_slice(&state.to_le_bytes());
    }
    block.into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn speed(bytes: usize, took: Duration) -> String {
    format!("{:.0} MB/s", bytes as f64 / took.as_secs_f64() / 1e6)
}
