//! HTTP/2: many exchanges on one connection.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use mimus::{Client, Kind, Method, Version};
use mimus_testkit::Port;

use crate::{
    h2_peer::{self as peer, serve},
    support::{Bench, on_every_runtime},
};

on_every_runtime!(
    a_get_by_prior_knowledge_and_by_alpn,
    calls_one_after_the_other_share_a_connection,
    a_body_goes_both_ways,
    a_server_without_http2_is_told_apart,
    a_body_larger_than_every_window_arrives,
    an_upload_waits_for_no_word_that_is_not_needed,
    a_response_that_nobody_reads_holds_up_no_other,
    cold_calls_share_one_dial,
    calls_that_are_dropped_anywhere_hold_up_no_other,
    a_total_timeout_fires_on_a_server_that_never_answers,
    trailers_and_interim_responses_arrive,
    what_belongs_to_a_connection_is_not_sent,
    a_refused_request_may_be_made_again_and_a_reset_one_may_not,
    an_origin_that_wants_http1_has_it,
    a_server_is_asked_about_as_a_whole,
    fields_beyond_what_the_server_takes_are_not_sent,
    a_waker_that_is_dropped_may_look_at_the_client,
    an_idle_connection_answers_and_leaves_with_its_server,
);

/// An executor of the user's drives what many share.
mod smol_on_an_executor {
    use crate::support::{Kind, run};

    #[test]
    fn a_connection_is_driven_for_those_who_wait() {
        run(Kind::SmolOn, async |b| {
            super::cold_calls_share_one_dial(b.another()).await;
            super::a_response_that_nobody_reads_holds_up_no_other(b.another()).await;
            super::calls_that_are_dropped_anywhere_hold_up_no_other(b).await;
        });
    }

    #[test]
    fn its_tasks_end_with_their_connections() {
        run(Kind::SmolOn, async |b| {
            let client = super::over_h2(&b);
            let calls =
                (0..5).map(|_| async { client.get(super::h2c(&b, "/delay/0.2")).send().await });
            futures_util::future::try_join_all(calls).await.unwrap();
            assert!(!b.executor.is_empty(), "no task drove");
            drop(client);
            b.all_closed().await;
            for _ in 0..1000 {
                if b.executor.is_empty() {
                    return;
                }
                b.sleep(std::time::Duration::from_millis(10)).await;
            }
            panic!("a task outlives its connection");
        });
    }
}

fn h2c(b: &Bench, path: &str) -> String {
    b.origin.url(Port::H2c, path).unwrap()
}

fn over_h2(b: &Bench) -> Client {
    b.builder().version(Version::HTTP_2).build().unwrap()
}

async fn a_get_by_prior_knowledge_and_by_alpn(b: Bench) {
    let response = over_h2(&b).get(h2c(&b, "/get")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
    assert!(response.text().await.unwrap().contains("/get"));
    for (port, version) in [
        (Port::H2, Version::HTTP_2),
        (Port::H2OrHttp1, Version::HTTP_2),
        (Port::Https, Version::HTTP_11),
    ] {
        let response = b.client().get(b.origin.url(port, "/get").unwrap()).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, version), "{port:?}");
    }
    let pinned =
        b.client().get(b.origin.url(Port::H2OrHttp1, "/get").unwrap()).version(Version::HTTP_11);
    assert_eq!(pinned.send().await.unwrap().version(), Version::HTTP_11);
}

async fn calls_one_after_the_other_share_a_connection(b: Bench) {
    let client = over_h2(&b);
    for _ in 0..20 {
        client.get(h2c(&b, "/bytes/1000")).send().await.unwrap().bytes().await.unwrap();
    }
    assert_eq!(b.origin.accepted(Port::H2c), 1);
}

async fn a_body_goes_both_ways(b: Bench) {
    let client = over_h2(&b);
    for size in [0, 1, 16_384, 65_535, 65_536, 3_000_000] {
        let sent: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let response = client.post(h2c(&b, "/upload")).body(sent).send().await.unwrap();
        let text = response.text().await.unwrap();
        assert!(text.contains(&size.to_string()), "{size}: {text}");
        let url = h2c(&b, &format!("/bytes/{size}"));
        let body = client.get(url).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(body.len(), size);
    }
}

async fn a_server_without_http2_is_told_apart(b: Bench) {
    let error = over_h2(&b).get(b.https("/get")).send().await.unwrap_err();
    assert!(matches!(error.kind(), Kind::Tls | Kind::Protocol), "{error:#}");
    let error = over_h2(&b).get(b.http("/get")).send().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Protocol, "{error:#}");
}

/// A body is as long as its head says, or an error: never a short success.
async fn a_body_larger_than_every_window_arrives(b: Bench) {
    use mimus::h2::{Opening, SettingId};
    let mut narrow = Opening::default();
    narrow.settings = vec![(SettingId::ENABLE_PUSH, 0), (SettingId::INITIAL_WINDOW_SIZE, 65_535)];
    narrow.window_increment = None;
    let client = b.builder().version(Version::HTTP_2).http2_opening(narrow).build().unwrap();
    let mut response = client.get(h2c(&b, "/bytes/30000000")).send().await.unwrap();
    let mut got = 0;
    while let Some(data) = response.chunk().await.unwrap() {
        got += data.len();
    }
    assert_eq!(got, 30_000_000);
    let sent = client.post(h2c(&b, "/upload")).body(vec![7; 20_000_000]).send().await.unwrap();
    assert!(sent.text().await.unwrap().contains("20000000"));
}

/// A server whose windows are wide has nothing to say until it has all of the body: what was written
/// makes room for more of it.
async fn an_upload_waits_for_no_word_that_is_not_needed(b: Bench) {
    let url = b.origin.bad_h2_url("window-wide", false).unwrap();
    let pieces = (0..500).map(|_| Ok::<_, std::io::Error>(vec![7_u8; 16 * 1024]));
    let body = mimus::Body::stream(futures_util::stream::iter(pieces));
    let call = over_h2(&b).post(url).body(body).timeout(std::time::Duration::from_secs(10));
    assert_eq!(call.send().await.unwrap().text().await.unwrap(), "ok");
}

async fn a_response_that_nobody_reads_holds_up_no_other(b: Bench) {
    let client = over_h2(&b);
    let asleep = client.get(h2c(&b, "/bytes/50000000")).send().await.unwrap();
    for _ in 0..20 {
        let body =
            client.get(h2c(&b, "/bytes/500000")).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(body.len(), 500_000);
    }
    drop(asleep);
    client.get(h2c(&b, "/get")).send().await.unwrap();
    assert_eq!(b.origin.accepted(Port::H2c), 1);
}

async fn cold_calls_share_one_dial(b: Bench) {
    if !b.concurrent() {
        return;
    }
    for port in [Port::H2c, Port::H2, Port::H2OrHttp1] {
        let builder = b.builder();
        let client = match port {
            Port::H2c => builder.version(Version::HTTP_2),
            _ => builder,
        };
        let client = client.build().unwrap();
        let url = b.origin.url(port, "/bytes/100").unwrap();
        let calls = (0..50)
            .map(|_| async { client.get(&url).send().await.unwrap().bytes().await.unwrap().len() });
        let lengths = futures_util::future::join_all(calls).await;
        assert_eq!(lengths, [100; 50]);
        assert_eq!(b.origin.accepted(port), 1, "{port:?}");
    }
}

/// Polls a future so often at most, once for each time that the task runs, and drops it.
async fn poll_up_to(times: u64, future: impl Future) {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        future.as_mut().poll(cx).map(drop)
    })
    .await;
}

/// Whoever drives may go at any time: nobody else may wait for ever because of it.
async fn calls_that_are_dropped_anywhere_hold_up_no_other(b: Bench) {
    if !b.concurrent() {
        return;
    }
    let client = over_h2(&b);
    client.get(h2c(&b, "/get")).send().await.unwrap();
    let calls = (0..1000_u64).map(|n| {
        let (client, url) = (client.clone(), h2c(&b, &format!("/bytes/{}", n * 37 % 40_000)));
        let given_up = n % 3 == 0;
        let polls = n % 7;
        async move {
            let call = async {
                let body = client.get(url).send().await?.bytes().await?;
                Ok::<_, mimus::Error>(body.len() as u64)
            };
            match given_up {
                true => poll_up_to(polls, call).await,
                false => assert_eq!(call.await.unwrap(), n * 37 % 40_000),
            }
        }
    });
    futures_util::future::join_all(calls).await;
    client.get(h2c(&b, "/get")).send().await.unwrap();
    assert_eq!(client.pool_stats().in_use, 0);
}

async fn a_total_timeout_fires_on_a_server_that_never_answers(b: Bench) {
    let client = over_h2(&b);
    client.get(h2c(&b, "/get")).send().await.unwrap();
    let started = std::time::Instant::now();
    let call = client.get(h2c(&b, "/delay/10")).timeout(std::time::Duration::from_millis(200));
    let error = call.send().await.unwrap_err();
    assert!(error.is_timeout(), "{error:#}");
    assert!(started.elapsed() < std::time::Duration::from_secs(2));
    // The connection lives on.
    client.get(h2c(&b, "/get")).send().await.unwrap();
}

async fn trailers_and_interim_responses_arrive(b: Bench) {
    let client = over_h2(&b);
    let mut response = client.get(h2c(&b, "/trailers")).send().await.unwrap();
    while response.chunk().await.unwrap().is_some() {}
    assert!(response.trailers().is_some_and(|trailers| !trailers.is_empty()));
    let response = client.get(h2c(&b, "/early-hints")).send().await.unwrap();
    assert_eq!(response.status(), 200);
}

async fn what_belongs_to_a_connection_is_not_sent(b: Bench) {
    let client = over_h2(&b);
    let call =
        client.get(h2c(&b, "/headers")).header("Connection", "keep-alive").header("TE", "gzip");
    let text = call.header("Keep-Alive", "5").send().await.unwrap().text().await.unwrap();
    let text = text.to_lowercase();
    for name in ["connection", "keep-alive", "\"te\"", "transfer-encoding"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
}

/// Tasks that are cut off anywhere, on threads that run side by side.
#[test]
fn a_thousand_streams_outlive_tasks_that_are_aborted() {
    crate::support::run(crate::support::Kind::TokioMulti, async |b: Bench| {
        let client = over_h2(&b);
        client.get(h2c(&b, "/get")).send().await.unwrap();
        let tasks: Vec<_> = (0..1000_u64)
            .map(|n| {
                let (client, url) =
                    (client.clone(), h2c(&b, &format!("/bytes/{}", n * 37 % 40_000)));
                tokio::spawn(async move {
                    client.get(url).send().await?.bytes().await.map(|body| body.len() as u64)
                })
            })
            .collect();
        for (n, task) in (0_u64..).zip(&tasks) {
            if n % 3 == 0 {
                tokio::task::yield_now().await;
                task.abort();
            }
        }
        for (n, task) in (0_u64..).zip(tasks) {
            match task.await {
                Ok(len) => assert_eq!(len.unwrap(), n * 37 % 40_000),
                Err(cut_off) => assert!(cut_off.is_cancelled() && n % 3 == 0, "{n}: {cut_off}"),
            }
        }
        client.get(h2c(&b, "/get")).send().await.unwrap();
        assert_eq!(client.pool_stats().in_use, 0);
    });
}

/// RFC 9113 section 8.7.
async fn a_refused_request_may_be_made_again_and_a_reset_one_may_not(b: Bench) {
    for (row, kind, sent) in [
        ("reset-before-head-refused", Kind::Closed, false),
        ("reset-before-head-internal", Kind::Reset, true),
        ("reset-in-body-refused", Kind::Reset, true),
    ] {
        let url = b.origin.bad_h2_url(row, false).unwrap();
        let call = over_h2(&b).post(url).body("chirp").send().await;
        let error = match call {
            Ok(response) => response.bytes().await.unwrap_err(),
            Err(error) => error,
        };
        let got = (error.was_sent(), error.is_retryable());
        assert_eq!(got, (sent, !sent), "{row}: {error:#}");
        assert_eq!(error.kind(), kind, "{row}: {error:#}");
    }
}

/// RFC 9113 section 7: HTTP_1_1_REQUIRED.
async fn an_origin_that_wants_http1_has_it(b: Bench) {
    // What it does is beyond HTTP/2.
    let url = b.origin.url(Port::H2OrHttp1, "/until-close").unwrap();
    let version = async |client: &Client| {
        let get = client.get(b.origin.url(Port::H2OrHttp1, "/get").unwrap());
        get.send().await.unwrap().version()
    };
    let client = b.client();
    assert_eq!(version(&client).await, Version::HTTP_2);
    let response = client.get(&url).send().await.unwrap();
    assert_eq!(response.version(), Version::HTTP_11);
    assert_eq!(response.text().await.unwrap(), "to the end\n");
    assert_eq!(version(&client).await, Version::HTTP_11, "it is remembered");
    // A request that may have been acted on is not made again, but the next goes right.
    let client = b.client();
    let error = client.post(&url).body("chirp").send().await.unwrap_err();
    assert_eq!((error.kind(), error.was_sent()), (Kind::Reset, true), "{error:#}");
    assert_eq!(client.post(&url).body("chirp").send().await.unwrap().version(), Version::HTTP_11);
    // Who insists on HTTP/2 gets no other.
    for _ in 0..2 {
        let error = over_h2(&b).get(&url).send().await.unwrap_err();
        assert_eq!(error.kind(), Kind::Reset, "{error:#}");
    }
}

/// RFC 9110 section 9.3.7.
async fn a_server_is_asked_about_as_a_whole(b: Bench) {
    let client = b.client();
    for port in [Port::Http, Port::Https, Port::H2] {
        let call = client.request(Method::OPTIONS, b.origin.url(port, "/get?x").unwrap());
        call.server_wide().send().await.unwrap();
    }
    let call = over_h2(&b).request(Method::OPTIONS, h2c(&b, "/"));
    call.server_wide().send().await.unwrap();
    let asked = b.origin.requests();
    assert_eq!(asked.len(), 4);
    for seen in asked {
        assert_eq!((&*seen.method, &*seen.target), ("OPTIONS", "*"), "{seen:?}");
    }
    let error = client.get(b.http("/get")).server_wide().send().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Request);
}

/// RFC 9113 section 6.5.2.
async fn fields_beyond_what_the_server_takes_are_not_sent(b: Bench) {
    let url = serve(|_, mut peer| {
        peer.greet(&[(6, 1000)]);
        while let Some(frame) = peer.hear() {
            if frame.kind == peer::HEADERS {
                let end = peer::END_HEADERS | peer::END_STREAM;
                peer.say(peer::HEADERS, end, frame.stream, peer::OK);
            }
        }
    });
    let client = over_h2(&b);
    client.get(&url).send().await.unwrap();
    let error = client.get(&url).header("x-song", "a".repeat(900)).send().await.unwrap_err();
    assert_eq!((error.kind(), error.was_sent()), (Kind::Request, false), "{error:#}");
    let text = error.to_string();
    assert!(text.contains("at most") && text.contains("1000"), "{text}");
    // One that fits still goes, on the same connection.
    let response = client.get(&url).header("x-song", "a".repeat(500)).send().await.unwrap();
    assert!(response.reused());
}

/// What the drop of a waker runs is not ours to know: no lock may be held.
struct Curious {
    client: Client,
    dropped: Arc<AtomicUsize>,
}

impl Wake for Curious {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Curious {
    fn drop(&mut self) {
        // Asks the connection whether it is idle.
        let _ = self.client.pool_stats();
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

async fn a_waker_that_is_dropped_may_look_at_the_client(b: Bench) {
    if !b.concurrent() {
        return;
    }
    let client = over_h2(&b);
    client.get(h2c(&b, "/get")).send().await.unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let waker =
        || Waker::from(Arc::new(Curious { client: client.clone(), dropped: Arc::clone(&dropped) }));
    // Alone, and beside another.
    let call = || Box::pin(client.get(h2c(&b, "/delay/600")).send());
    let mut calls = [call(), call()];
    let mut polls = 0;
    for together in 1..=2 {
        for _ in 0..3 {
            for call in &mut calls[..together] {
                assert!(call.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
                polls += 1;
                b.sleep(std::time::Duration::from_millis(1)).await;
            }
        }
    }
    drop(calls);
    client.get(h2c(&b, "/get")).send().await.unwrap();
    assert!(dropped.load(Ordering::SeqCst) >= polls - 2, "of {polls}: {dropped:?}");
}

/// Where the runtime drives tasks.
async fn an_idle_connection_answers_and_leaves_with_its_server(b: Bench) {
    if matches!(b.number(), 2 | 3) {
        return;
    }
    let (done, is_done) = std::sync::mpsc::channel();
    let url = serve(move |_, mut peer| {
        peer.greet(&[]);
        for _ in 0..2 {
            let head = peer.hear_a(peer::HEADERS);
            let end = peer::END_HEADERS | peer::END_STREAM;
            peer.say(peer::HEADERS, end, head.stream, peer::OK);
            peer.say(peer::PING, 0, 0, b"hello yo");
            while peer.hear_a(peer::PING).payload != b"hello yo" {}
            done.send("answered").unwrap();
        }
        peer.say(peer::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
        peer.hear_out();
        done.send("left").unwrap();
    });
    let client = over_h2(&b);
    for expected in ["answered", "answered", "left"] {
        if expected == "answered" {
            client.get(&url).send().await.unwrap();
        }
        let mut heard = None;
        for _ in 0..2000 {
            heard = is_done.try_recv().ok();
            if heard.is_some() {
                break;
            }
            b.sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(heard, Some(expected));
    }
    assert_eq!(client.pool_stats().idle, 0, "the pool has forgotten it");
}
