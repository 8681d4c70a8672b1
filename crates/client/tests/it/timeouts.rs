//! Each timeout fires on time, in its phase, also on a peer that drips.

use std::time::{Duration, Instant};

use mimus::{Kind, Phase};
use mimus_testkit::Port;

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    the_head_timeout_fires_on_a_silent_and_on_a_dripping_server,
    the_wait_for_a_connection_is_not_the_servers,
    a_timer_armed_for_an_earlier_call_serves_a_later_one,
    the_idle_timeout_fires_in_a_body_that_stalls,
    a_dripping_body_does_not_outlive_the_total,
    the_total_spans_redirects,
    the_tls_timeout_fires_in_a_stalled_handshake,
    a_resolver_that_hangs_is_given_up,
    an_upload_nobody_reads_times_out,
    a_timeout_of_one_call_leaves_the_client_as_it_was,
    a_flood_does_not_outlive_the_total,
);

const LIMIT: Duration = Duration::from_millis(200);

/// On time: not before the limit, and not long after (the machine may be busy).
fn on_time(started: Instant, error: &mimus::Error, phase: Phase) {
    let took = started.elapsed();
    assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(phase)), "{error:#}");
    assert!(took >= LIMIT - Duration::from_millis(5), "{took:?}");
    assert!(took < LIMIT + Duration::from_millis(800), "{took:?}");
}

async fn the_head_timeout_fires_on_a_silent_and_on_a_dripping_server(b: Bench) {
    let client = b.builder().head_timeout(LIMIT).build().unwrap();
    for url in [b.http("/delay/5"), b.https("/delay/5"), b.http("/bad/drip-head?ms=20")] {
        let started = Instant::now();
        let error = failure(client.get(url).send().await);
        on_time(started, &error, Phase::Head);
    }
    assert_eq!(client.pool_stats().open(), 0);
    b.all_closed().await;
}

async fn a_timer_armed_for_an_earlier_call_serves_a_later_one(b: Bench) {
    let client = b.builder().head_timeout(LIMIT).build().unwrap();
    client.get(b.http("/delay/0.05")).send().await.unwrap().bytes().await.unwrap();
    b.sleep(LIMIT / 2).await;
    let started = Instant::now();
    let call = client.get(b.http("/delay/3")).timeout(Duration::from_secs(2)).send();
    on_time(started, &failure(call.await), Phase::Head);
}

async fn the_wait_for_a_connection_is_not_the_servers(b: Bench) {
    if !b.concurrent() {
        return;
    }
    let limit = Duration::from_millis(600);
    let client = b.builder().max_connections(1).head_timeout(limit).build().unwrap();
    let calls = (0..3).map(|_| client.get(b.http("/delay/0.4")).send());
    for response in futures_util::future::join_all(calls).await {
        assert_eq!(response.unwrap().status(), 200);
    }
}

async fn the_idle_timeout_fires_in_a_body_that_stalls(b: Bench) {
    let client = b.builder().idle_timeout(LIMIT).build().unwrap();
    let response = client.get(b.http("/bad/stall-mid-body")).send().await.unwrap();
    let started = Instant::now();
    let error = failure(response.bytes().await);
    on_time(started, &error, Phase::Body);
    // A body that keeps moving is not idle, however long it takes.
    let response = client.get(b.http("/drip?numbytes=10&duration=0.6&delay=0")).send().await;
    assert_eq!(response.unwrap().bytes().await.unwrap().len(), 10);
}

async fn a_dripping_body_does_not_outlive_the_total(b: Bench) {
    let client = b.client();
    for url in [b.http("/bad/drip-body?ms=20"), b.https("/bad/drip-body?ms=20")] {
        let started = Instant::now();
        let response = client.get(url).timeout(LIMIT).send().await.unwrap();
        let error = failure(response.bytes().await);
        on_time(started, &error, Phase::Body);
    }
}

async fn the_total_spans_redirects(b: Bench) {
    let target = b.http("/redirect-to?url=/delay/5");
    let started = Instant::now();
    let error = failure(b.client().get(target).timeout(LIMIT).send().await);
    on_time(started, &error, Phase::Head);
}

async fn the_tls_timeout_fires_in_a_stalled_handshake(b: Bench) {
    let url = b.origin.url(Port::TlsStall, "/").unwrap();
    let client = b.builder().tls_timeout(LIMIT).build().unwrap();
    let started = Instant::now();
    let error = failure(client.get(url).send().await);
    on_time(started, &error, Phase::Tls);
    assert!(error.is_connect() && error.is_retryable());
}

async fn a_resolver_that_hangs_is_given_up(b: Bench) {
    #[derive(Debug)]
    struct Hangs;
    impl mimus::Resolve for Hangs {
        fn resolve<'a>(
            &'a self,
            _: &'a str,
            _: &'a dyn mimus::rt::Runtime,
        ) -> mimus::rt::BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
            Box::pin(std::future::pending())
        }
    }
    let client = b.builder().resolver(Hangs).resolve_timeout(LIMIT).build().unwrap();
    let started = Instant::now();
    let error = failure(client.get("http://never.test/").send().await);
    on_time(started, &error, Phase::Resolve);
}

async fn an_upload_nobody_reads_times_out(b: Bench) {
    let url = b.origin.url(Port::NeverRead, "/").unwrap();
    let client = b.builder().idle_timeout(LIMIT).build().unwrap();
    let started = Instant::now();
    let error = failure(client.post(url).body(vec![0; 64 << 20]).send().await);
    on_time(started, &error, Phase::Send);
}

async fn a_timeout_of_one_call_leaves_the_client_as_it_was(b: Bench) {
    let client = b.client();
    let error = failure(client.get(b.http("/delay/5")).timeout(LIMIT).send().await);
    assert!(error.is_timeout());
    assert_eq!(client.get(b.http("/get")).send().await.unwrap().status(), 200);
}

/// Sends a body for ever, as fast as it is read.
fn endless() -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        let _ = stream.read(&mut head);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 64 * 1024]).is_ok() {}
    });
    addr
}

async fn a_flood_does_not_outlive_the_total(b: Bench) {
    let started = Instant::now();
    let url = format!("http://{}/", endless());
    let mut response = b.client().get(url).timeout(LIMIT).send().await.unwrap();
    let error = loop {
        match response.chunk().await {
            Ok(piece) => assert!(piece.is_some(), "the flood has no end"),
            Err(error) => break error,
        }
    };
    on_time(started, &error, Phase::Body);
}
