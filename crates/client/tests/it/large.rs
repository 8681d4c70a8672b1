//! Bodies of a gibibyte over HTTP/2 whose windows are 64 KiB and stay so: sixteen thousand times that
//! credit is owed, and nothing may be lost.
//!
//! What is written over the network is checked byte by byte by who reads it, or by its SHA-256.

use std::{io, sync::Mutex};

use bytes::Bytes;
use mimus::{
    Body, Client, Response, Version,
    h2::{Limits, Opening, SettingId},
};
use mimus_testkit::{Port, generated};
use sha2::{Digest, Sha256};

use crate::support::{Bench, Kind, on_every_runtime, run};

on_every_runtime!(a_download_streamed, an_upload_streamed);

const SIZE: usize = 1 << 30;
const WINDOW: u32 = 65_535;
const PIECE: usize = 64 * 1024;

/// Held by whoever keeps a whole body: one of them at a time is enough for the memory of a small machine.
static MEMORY: Mutex<()> = Mutex::new(());

#[test]
fn a_download_buffered() {
    for runtime in [Kind::TokioMulti, Kind::Blocking] {
        let _alone = MEMORY.lock();
        run(runtime, download_buffered);
    }
}

#[test]
fn an_upload_buffered() {
    for runtime in [Kind::TokioMulti, Kind::Blocking] {
        let _alone = MEMORY.lock();
        run(runtime, upload_buffered);
    }
}

/// A client whose windows are as small as the server's, and do not grow.
fn narrow(b: &Bench) -> Client {
    let mut opening = Opening::default();
    opening.settings = vec![(SettingId::ENABLE_PUSH, 0), (SettingId::INITIAL_WINDOW_SIZE, WINDOW)];
    opening.window_increment = None;
    let mut limits = Limits::default();
    (limits.stream_window, limits.connection_window) = (WINDOW, WINDOW);
    let builder = b.builder().version(Version::HTTP_2).http2_opening(opening);
    builder.http2_limits(limits).build().unwrap()
}

fn url(b: &Bench, path: &str) -> String {
    b.origin.url(Port::H2c, path).unwrap()
}

async fn download(b: &Bench) -> Response {
    let url = url(b, &format!("/bytes/{SIZE}?seed=7"));
    narrow(b).get(url).send().await.unwrap()
}

async fn a_download_streamed(b: Bench) {
    let mut response = download(&b).await;
    let mut at = 0;
    while let Some(data) = response.chunk().await.unwrap() {
        assert!(data == generated(7, at, data.len()), "wrong bytes behind {at}");
        at += data.len() as u64;
    }
    assert_eq!(at, SIZE as u64);
}

async fn download_buffered(b: Bench) {
    let body = download(&b).await.bytes().await.unwrap();
    assert_eq!(body.len(), SIZE);
    for (number, piece) in (0..).zip(body.chunks(PIECE)) {
        let at = number * PIECE as u64;
        assert!(piece == generated(7, at, piece.len()), "wrong bytes behind {at}");
    }
}

/// What is sent: one piece after the other.
fn pieces() -> impl Iterator<Item = Bytes> {
    (0..SIZE / PIECE).map(|number| generated(7, (number * PIECE) as u64, PIECE).into())
}

async fn upload(b: &Bench, body: impl Into<Body>) {
    let mut hash = Sha256::new();
    pieces().for_each(|piece| hash.update(piece));
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let sent = narrow(b).post(url(b, "/upload")).body(body).send();
    let answer: serde_json::Value = sent.await.unwrap().json().await.unwrap();
    assert_eq!(answer["length"], SIZE);
    assert_eq!(answer["sha256"], hash);
}

async fn an_upload_streamed(b: Bench) {
    upload(&b, Body::stream(futures_util::stream::iter(pieces().map(Ok::<_, io::Error>)))).await;
}

async fn upload_buffered(b: Bench) {
    let mut body = Vec::with_capacity(SIZE);
    pieces().for_each(|piece| body.extend_from_slice(&piece));
    upload(&b, body).await;
}
