//! Bodies both ways: whole, streamed, coded, in parts.

use std::{
    io::{Read, Write},
    net::TcpListener,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mimus::{Body, BoxError, Kind, multipart};
use serde_json::Value;

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    large_downloads_by_length_and_by_chunks,
    a_body_streams_while_it_comes,
    codings_are_undone_and_can_be_left,
    uploads_of_every_kind_arrive_whole,
    an_upload_that_fails_fails_the_call,
    multipart_carries_files_and_text,
    what_is_wrong_behind_a_head_fails_the_body,
    an_early_answer_is_not_lost,
    an_early_success_lets_the_upload_go_on,
    expect_continue_waits_and_gives_up_waiting,
    an_empty_post_says_so,
    a_body_reads_like_any_byte_stream,
);

const BIG: usize = 20_000_000;

async fn large_downloads_by_length_and_by_chunks(b: Bench) {
    let client = b.client();
    for url in [b.http("/bytes/20000000"), b.https("/bytes/20000000")] {
        let response = client.get(url).send().await.unwrap();
        assert_eq!(response.content_length(), Some(BIG as u64));
        let by_length = response.bytes().await.unwrap();
        let chunked = client.get(b.http("/stream-bytes/20000000?chunk_size=70000")).send().await;
        let chunked = chunked.unwrap();
        assert_eq!(chunked.content_length(), None);
        let chunked = chunked.bytes().await.unwrap();
        assert_eq!(by_length.len(), BIG);
        assert!(by_length == chunked);
    }
}

async fn a_body_streams_while_it_comes(b: Bench) {
    let started = std::time::Instant::now();
    let response = b.client().get(b.http("/stream/5?ms=300")).send().await.unwrap();
    let mut body = response.into_body();
    let first = body.next().await.unwrap().unwrap();
    assert!(!first.is_empty());
    let first_at = started.elapsed();
    let mut pieces = 1;
    while let Some(piece) = body.next().await {
        piece.unwrap();
        pieces += 1;
    }
    let waited = started.elapsed() - first_at;
    assert!(
        pieces > 1 && waited > Duration::from_millis(300),
        "the first piece waited for the last"
    );
}

async fn what_is_wrong_behind_a_head_fails_the_body(b: Bench) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut conn, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(conn.read(&mut request).unwrap() > 0);
        // All in one piece.
        let answer =
            b"HTTP/1.1 203 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno length\r\n";
        conn.write_all(answer).unwrap();
        while conn.read(&mut request).is_ok_and(|n| n > 0) {}
    });
    let response = b.client().get(url).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 203);
    let mut body = response.into_body();
    assert_eq!(body.data().await.unwrap().as_deref(), Some(&b"abc"[..]));
    assert_eq!(body.data().await.unwrap_err().kind(), Kind::Protocol);
    drop(body);
    server.join().unwrap();
}

async fn codings_are_undone_and_can_be_left(b: Bench) {
    let client = b.client();
    for path in ["/gzip", "/deflate", "/deflate-raw", "/brotli", "/zstd", "/stacked"] {
        let response = client.get(b.http(path)).send().await.unwrap();
        let value: Value = response.json().await.unwrap_or_else(|e| panic!("{path}: {e:#}"));
        assert!(value.is_object(), "{path}");
    }
    let raw = client.get(b.http("/gzip")).decode(None).send().await.unwrap();
    assert_eq!(raw.header("content-encoding"), Some("gzip"));
    assert_eq!(raw.bytes().await.unwrap()[..2], [0x1f, 0x8b]);
    let seen = b.origin.requests();
    assert!(seen[0].header("accept-encoding").unwrap().contains("br"));
    assert_eq!(seen.last().unwrap().header("accept-encoding"), None);
}

async fn uploads_of_every_kind_arrive_whole(b: Bench) {
    let client = b.client();
    let data: Bytes = (0..3_000_000u32).map(|i| (i * 7 + i / 255) as u8).collect::<Vec<_>>().into();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&data).unwrap();
    let pieces = |n: usize| {
        let data = data.clone();
        let ends = (0..data.len()).step_by(n);
        stream::iter(ends.map(move |at| Ok::<_, BoxError>(data.slice(at..data.len().min(at + n)))))
    };
    let digest = client.post(b.http("/upload")).body(data.clone()).send().await.unwrap();
    let expected: Value = digest.json().await.unwrap();
    assert_eq!(expected["length"], 3_000_000);
    let bodies: [(&str, Body); 5] = [
        ("stream", Body::stream(pieces(50_000))),
        ("small pieces", Body::stream(pieces(999))),
        ("file", std::fs::File::open(file.path()).unwrap().into()),
        ("path", Body::file(file.path()).unwrap()),
        ("reader", Body::reader(std::io::Cursor::new(data.clone()))),
    ];
    for (what, body) in bodies {
        let sent = client.post(b.https("/upload")).body(body).send().await;
        let value: Value = sent.unwrap_or_else(|e| panic!("{what}: {e:#}")).json().await.unwrap();
        assert_eq!(value["sha256"], expected["sha256"], "{what}");
    }
}

async fn an_upload_that_fails_fails_the_call(b: Bench) {
    let pieces = stream::iter([Ok(Bytes::from_static(b"some")), Err(BoxError::from("disk gone"))]);
    let client = b.client();
    let error = failure(client.post(b.http("/upload")).body(Body::stream(pieces)).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Upload, Some(mimus::Phase::Send)));
    assert!(format!("{error:#}").contains("disk gone"));
    assert_eq!(client.pool_stats().open(), 0);
    // A length that is announced is kept to.
    for n in [3, 5] {
        let pieces = stream::iter([Ok::<_, BoxError>(Bytes::from_static(b"four"))]);
        let body = Body::sized_stream(pieces, n);
        let error = failure(client.post(b.http("/upload")).body(body).send().await);
        assert!(matches!(error.kind(), Kind::Upload | Kind::Request), "{error:#}");
        assert_eq!(client.pool_stats().open(), 0);
    }
}

async fn multipart_carries_files_and_text(b: Bench) {
    let mut file = tempfile::Builder::new().suffix(".png").tempfile().unwrap();
    file.write_all(b"not really").unwrap();
    let form = multipart::Form::new()
        .text("note", "grüße")
        .part("data", multipart::Part::bytes("1,2").file_name("a \"b\".csv"))
        .part("image", multipart::Part::file(file.path()).unwrap());
    let sent = b.client().post(b.http("/post")).multipart(form).send().await.unwrap();
    let echo: Value = sent.json().await.unwrap();
    assert_eq!(echo["form"]["note"], "grüße");
    assert!(echo["files"].to_string().contains("not really"), "{echo}");
    let seen = b.origin.requests();
    assert!(seen[0].header("content-length").is_some(), "all lengths are known");
}

async fn an_early_answer_is_not_lost(b: Bench) {
    let client = b.client();
    for path in ["/bad/early-413", "/bad/early-413-close", "/bad/early-413-drop"] {
        let request = client.post(b.http(path)).body(vec![0; 8 << 20]);
        let response = request.send().await.unwrap_or_else(|e| panic!("{path}: {e:#}"));
        assert_eq!(response.status(), 413, "{path}");
        drop(response);
        // Where the server read on, the upload may have ended in order after all.
        if path != "/bad/early-413" {
            assert_eq!(client.pool_stats().open(), 0, "{path}");
        }
    }
}

async fn an_early_success_lets_the_upload_go_on(b: Bench) {
    let client = b.client();
    let request = client.post(b.http("/bad/early-200")).body(vec![7; 4 << 20]);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap();
}

async fn expect_continue_waits_and_gives_up_waiting(b: Bench) {
    let client = b.builder().expect_continue(Duration::from_millis(100)).build().unwrap();
    let response = client.post(b.http("/continue")).body("x").send().await.unwrap();
    assert_eq!(response.status(), 200);
    let refused = client.post(b.http("/expect-refused")).body(vec![0; 1 << 20]).send().await;
    assert_eq!(refused.unwrap().status(), 417);
    let started = std::time::Instant::now();
    let ignored = client.post(b.http("/bad/expect-ignored")).body("x").send().await.unwrap();
    assert_eq!(ignored.status(), 200);
    assert!(started.elapsed() >= Duration::from_millis(100));
    let none = client.get(b.http("/get")).send().await.unwrap();
    assert!(!none.text().await.unwrap().to_ascii_lowercase().contains("100-continue"));
}

async fn an_empty_post_says_so(b: Bench) {
    b.client().post(b.http("/post")).send().await.unwrap().bytes().await.unwrap();
    b.client().delete(b.http("/delete")).send().await.unwrap().bytes().await.unwrap();
    let seen = b.origin.requests();
    assert_eq!(seen[0].header("content-length").as_deref(), Some("0"));
    assert_eq!(seen[1].header("content-length"), None);
}

async fn a_body_reads_like_any_byte_stream(b: Bench) {
    use futures_util::io::{AsyncBufReadExt, AsyncReadExt};
    let client = b.client();
    let response = client.get(b.http("/stream/3")).send().await.unwrap();
    let lines: Vec<_> = response.into_body().into_async_read().lines().collect().await;
    assert_eq!(lines.len(), 3);
    let response = client.get(b.http("/gzip")).send().await.unwrap();
    let mut text = String::new();
    response.into_body().into_async_read().read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with('{'));
    let response = client.get(b.http("/bad/truncate")).send().await.unwrap();
    let mut reader = response.into_body().into_async_read();
    let error = reader.read_to_string(&mut text).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(error.get_ref().is_some_and(|e| e.is::<mimus::Error>()));
}
