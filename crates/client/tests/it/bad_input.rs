//! What a hostile or broken server does ends in a typed error, in time, with nothing leaked, nothing
//! silently cut short, and the connection never used again.

use std::time::{Duration, Instant};

use mimus::{Kind, Phase};
use mimus_testkit::Port;

use crate::support::{Bench, dead_port, failure, on_every_runtime};

on_every_runtime!(
    broken_heads_are_refused,
    ambiguous_framing_is_refused,
    broken_chunks_are_refused,
    truncation_is_never_a_short_success,
    odd_but_right_answers_are_taken,
    what_follows_an_answer_spoils_its_connection,
    limits_hold_against_endless_heads,
    bombs_are_refused,
    broken_codings_are_errors,
    resets_are_errors_in_their_phase,
    connections_that_cannot_be_made_say_why,
    certificates_that_do_not_fit_say_why,
    a_server_that_speaks_first_is_not_believed,
    every_route_that_misbehaves_is_survived,
);

/// Everything must be over within this.
const SOON: Duration = Duration::from_secs(20);

/// GETs `path` to the end of its body.
async fn fetch(b: &Bench, client: &mimus::Client, path: &str) -> mimus::Result<Vec<u8>> {
    let response = client.get(b.http(path)).timeout(SOON).send().await?;
    response.bytes().await.map(Vec::from)
}

/// Each path fails with that kind in that phase, and its connection is not kept.
async fn all_fail(b: &Bench, kind: Kind, phase: Phase, paths: &[&str]) {
    let client = b.client();
    for path in paths {
        let error = failure(fetch(b, &client, path).await);
        assert_eq!((error.kind(), error.phase()), (kind, Some(phase)), "{path}: {error:#}");
        assert!(error.url().is_some_and(|url| b.http(path).starts_with(url.as_str())));
        assert_eq!(client.pool_stats().open(), 0, "{path} kept its connection");
    }
    b.all_closed().await;
}

async fn broken_heads_are_refused(b: Bench) {
    let paths = [
        "/bad/garbage-head",
        "/bad/status-word",
        "/bad/status-short",
        "/bad/version",
        "/bad/http09",
        "/bad/bare-lf",
        "/bad/bare-cr",
        "/bad/obs-fold",
        "/bad/space-before-colon",
        "/bad/space-before-name",
        "/bad/no-colon",
        "/bad/empty-name",
        "/bad/nul-in-value",
        "/bad/unasked-101",
    ];
    all_fail(&b, Kind::Protocol, Phase::Head, &paths).await;
}

async fn ambiguous_framing_is_refused(b: Bench) {
    let paths = [
        "/bad/conflicting-lengths",
        "/bad/repeated-length",
        "/bad/length-list",
        "/bad/negative-length",
        "/bad/plus-length",
        "/bad/hex-length",
        "/bad/empty-length",
        "/bad/overflow-length",
        "/bad/length-and-chunked",
        "/bad/te-gzip",
        "/bad/te-gzip-chunked",
        "/bad/te-chunked-gzip",
        "/bad/te-chunked-twice",
        "/bad/te-http10",
    ];
    all_fail(&b, Kind::Protocol, Phase::Head, &paths).await;
}

async fn broken_chunks_are_refused(b: Bench) {
    let paths = [
        "/bad/chunk-negative",
        "/bad/chunk-plus",
        "/bad/chunk-0x",
        "/bad/chunk-space",
        "/bad/chunk-no-size",
        "/bad/chunk-not-hex",
        "/bad/chunk-overflow",
        "/bad/chunk-bare-lf",
        "/bad/chunk-no-crlf",
        "/bad/chunk-longer",
        "/bad/chunk-bad-trailer",
    ];
    all_fail(&b, Kind::Protocol, Phase::Body, &paths).await;
    let paths = [
        "/bad/chunk-long-size",
        "/bad/chunk-long-extension",
        "/bad/chunk-endless-extension",
        "/bad/chunk-many-trailers",
        "/bad/chunk-endless-trailers",
    ];
    all_fail(&b, Kind::Limit, Phase::Body, &paths).await;
}

async fn truncation_is_never_a_short_success(b: Bench) {
    let paths = [
        "/bad/truncate",
        "/bad/truncate-empty",
        "/bad/truncate-chunked",
        "/bad/truncate-in-chunk",
        "/bad/truncate-in-size",
        "/bad/truncate-last-crlf",
        "/bad/huge-length",
        "/bad/reset-mid-body",
        "/bad/reset-in-chunk",
        "/bad/reset-until-close",
    ];
    all_fail(&b, Kind::Closed, Phase::Body, &paths).await;
    all_fail(&b, Kind::Closed, Phase::Head, &["/bad/close-before-head", "/bad/close-in-head"])
        .await;
    // Under TLS the end of the stream can be told from a cut (RFC 8446 section 6.1).
    let client = b.client();
    let cut = client.get(b.https("/bad/no-close-notify")).send().await.unwrap().bytes().await;
    let error = failure(cut);
    assert_eq!((error.kind(), error.phase()), (Kind::Closed, Some(Phase::Body)), "{error:#}");
    let whole = client.get(b.https("/until-close")).send().await.unwrap().bytes().await.unwrap();
    assert!(!whole.is_empty());
}

async fn odd_but_right_answers_are_taken(b: Bench) {
    let client = b.client();
    let expected = fetch(&b, &client, "/bad/chunk-one-byte").await.unwrap();
    assert_eq!(expected.len(), 1000);
    for path in [
        "/bad/chunk-split",
        "/bad/chunk-extensions",
        "/bad/chunk-leading-zeros",
        "/bad/drip-body",
        "/bad/drip-head?ms=1",
        "/until-close",
        "/http10",
    ] {
        assert!(!fetch(&b, &client, path).await.unwrap().is_empty(), "{path}");
    }
    for path in ["/bad/body-on-204", "/bad/body-on-304"] {
        assert!(fetch(&b, &client, path).await.unwrap().is_empty(), "{path}");
    }
}

async fn what_follows_an_answer_spoils_its_connection(b: Bench) {
    let client = b.client();
    for path in ["/bad/extra-bytes", "/bad/second-response", "/bad/body-on-204"] {
        fetch(&b, &client, path).await.unwrap();
        b.sleep(Duration::from_millis(20)).await;
        let next = client.get(b.http("/get")).send().await.unwrap();
        assert!(!next.reused(), "{path}");
        let text = next.text().await.unwrap();
        assert!(text.contains("/get"), "{path}: {text}");
        client.close_idle();
    }
}

async fn limits_hold_against_endless_heads(b: Bench) {
    let paths = [
        "/bad/many-headers",
        "/bad/big-header",
        "/bad/huge-header",
        "/bad/endless-head",
        "/bad/endless-status-line",
        "/bad/endless-1xx",
        "/bad/endless-100",
    ];
    all_fail(&b, Kind::Limit, Phase::Head, &paths).await;
    all_fail(&b, Kind::Protocol, Phase::Head, &["/bad/endless-empty-lines"]).await;
}

async fn bombs_are_refused(b: Bench) {
    let paths = ["/bad/bomb-gzip", "/bad/bomb-gzip-gzip", "/bad/bomb-brotli", "/bad/bomb-zstd"];
    all_fail(&b, Kind::Limit, Phase::Body, &paths).await;
    let client = b.client();
    let error = failure(fetch(&b, &client, "/bad/coding-chain").await);
    assert_eq!(error.kind(), Kind::Limit, "{error:#}");
    // A plain body is held to what its reader allows.
    let limited = client.get(b.http("/stream-bytes/100000")).body_limit(50_000);
    let error = failure(limited.send().await.unwrap().bytes().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Limit, Some(Phase::Body)));
}

async fn broken_codings_are_errors(b: Bench) {
    let client = b.client();
    for path in ["/bad/gzip-garbage", "/bad/gzip-truncated", "/bad/gzip-checksum"] {
        let error = failure(fetch(&b, &client, path).await);
        assert_eq!((error.kind(), error.phase()), (Kind::Decode, Some(Phase::Body)), "{path}");
    }
    // A coding nobody knows is handed over as it came.
    assert!(!fetch(&b, &client, "/bad/coding-unknown").await.unwrap().is_empty());
}

async fn resets_are_errors_in_their_phase(b: Bench) {
    all_fail(&b, Kind::Closed, Phase::Head, &["/bad/reset-before-head", "/bad/reset-in-head"])
        .await;
    all_fail(&b, Kind::Closed, Phase::Body, &["/bad/reset-after-head"]).await;
    let client = b.client();
    for port in [Port::ResetOnAccept, Port::CloseOnAccept] {
        let url = b.origin.url(port, "/").unwrap();
        let error = failure(client.get(url).timeout(SOON).send().await);
        assert!(matches!(error.kind(), Kind::Closed | Kind::Connect), "{port:?}: {error:#}");
    }
    for port in [Port::TlsReset, Port::TlsClose, Port::TlsGarbage] {
        let url = b.origin.url(port, "/").unwrap();
        let error = failure(client.get(url).timeout(SOON).send().await);
        assert_eq!(error.phase(), Some(Phase::Tls), "{port:?}: {error:#}");
        assert!(!error.was_sent() && !error.is_timeout(), "{port:?}: {error:#}");
    }
}

async fn connections_that_cannot_be_made_say_why(b: Bench) {
    let client = b.client();
    let error = failure(client.get(format!("http://{}/", dead_port())).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Connect, Some(Phase::Connect)));
    assert!(format!("{error:#}").contains("127.0.0.1"), "{error:#}");
    let error = failure(client.get("http://no-such-host.invalid/").send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Resolve, Some(Phase::Resolve)));
    let url = b.origin.url(Port::NoAccept, "/").unwrap();
    let started = Instant::now();
    let error = failure(client.get(url).connect_timeout(Duration::from_millis(200)).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Connect)));
    assert!(started.elapsed() < Duration::from_secs(1));
}

async fn certificates_that_do_not_fit_say_why(b: Bench) {
    let client = b.client();
    for (port, word) in [
        (Port::TlsWrongName, "wrong.test"),
        (Port::TlsExpired, "expired"),
        (Port::TlsNotYetValid, "not valid before"),
        (Port::TlsSelfSigned, "self-signed"),
    ] {
        let url = b.origin.url(port, "/get").unwrap();
        let error = failure(client.get(&url).send().await);
        assert_eq!((error.kind(), error.phase()), (Kind::Certificate, Some(Phase::Tls)));
        assert!(format!("{error:#}").contains(word), "{port:?}: {error:#}");
    }
    // A CA nobody knows.
    let stranger = b.builder().tls(mimus::TlsConfig::default()).build().unwrap();
    let error = failure(stranger.get(b.https("/get")).send().await);
    assert_eq!(error.kind(), Kind::Certificate, "{error:#}");
    // Only the unmistakable switch turns it off.
    let careless = mimus::TlsConfig::builder().danger_accept_any_certificate(true).build().unwrap();
    let url = b.origin.url(Port::TlsExpired, "/get").unwrap();
    assert_eq!(stranger.get(url).tls(careless).send().await.unwrap().status(), 200);
}

async fn a_server_that_speaks_first_is_not_believed(b: Bench) {
    let client = b.client();
    let url = b.origin.url(Port::SpeaksFirst, "/get").unwrap();
    match client.get(&url).timeout(SOON).send().await {
        // What came before the request is not its answer.
        Err(error) => assert_eq!(error.kind(), Kind::Protocol, "{error:#}"),
        // It may come a moment after the request as well, and then nothing tells it from one. Its
        // connection has more to say than was asked, and serves no other call.
        Ok(response) => {
            response.bytes().await.unwrap();
            b.sleep(Duration::from_millis(20)).await;
            if let Ok(next) = client.get(&url).timeout(SOON).send().await {
                assert!(!next.reused());
            }
        }
    }
}

/// Whatever the testkit learns to do wrong is survived here without a line being added: some end
/// comes in time, and nothing is left open.
async fn every_route_that_misbehaves_is_survived(b: Bench) {
    let limits = mimus::DecodeLimits::default();
    let client = b
        .builder()
        .head_timeout(Duration::from_millis(300))
        .idle_timeout(Duration::from_millis(300))
        .body_limit(1 << 20)
        .decode(limits)
        .build()
        .unwrap();
    for route in mimus_testkit::bad_routes() {
        // It notices that its client left only when it has waited long enough.
        let path = match route.pattern {
            "/bad/upload-stall" => "/bad/upload-stall?ms=500",
            pattern => pattern,
        };
        for url in [b.http(path), b.https(path)] {
            let started = Instant::now();
            let call = client.post(url).body("a body").timeout(Duration::from_secs(3));
            if let Ok(response) = call.send().await {
                let _ = response.bytes().await;
            }
            let took = started.elapsed();
            assert!(took < Duration::from_secs(5), "{} took {took:?}", route.pattern);
            assert_eq!(client.pool_stats().in_use, 0, "{}", route.pattern);
        }
    }
    client.close_idle();
    b.all_closed().await;
}
