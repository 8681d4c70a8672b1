//! Connections: kept, shared, limited, found dead, never leaked.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::future::join_all;

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    sequential_calls_share_one_connection,
    an_unread_small_body_gives_its_connection_back,
    an_unread_large_body_closes_its_connection,
    connection_close_is_believed,
    a_connection_that_died_idle_is_replaced,
    an_idempotent_call_on_a_dying_connection_is_repeated_once,
    a_post_that_was_sent_is_not_sent_again,
    ten_thousand_calls_over_six_connections,
    a_limit_makes_calls_wait_and_time_out,
    idle_connections_expire,
    a_call_dropped_in_any_phase_leaks_nothing,
    different_routes_do_not_share,
);

async fn sequential_calls_share_one_connection(b: Bench) {
    let client = b.client();
    for url in [b.http("/get"), b.https("/get")] {
        for round in 0..5 {
            let response = client.get(&url).send().await.unwrap();
            assert_eq!(response.reused(), round > 0);
            response.bytes().await.unwrap();
        }
    }
    assert_eq!(b.origin.connections().len(), 2);
    let stats = client.pool_stats();
    assert_eq!((stats.idle, stats.in_use), (2, 0));
}

async fn an_unread_small_body_gives_its_connection_back(b: Bench) {
    let client = b.client();
    for path in ["/bytes/100", "/stream-bytes/3000?chunk_size=1000", "/gzip"] {
        drop(client.get(b.http(path)).send().await.unwrap());
        // A piece of it may still be on its way when the response is dropped.
        b.sleep(Duration::from_millis(20)).await;
    }
    let response = client.get(b.http("/bytes/100")).send().await.unwrap();
    drop(response);
    assert!(client.get(b.http("/get")).send().await.unwrap().reused());
}

async fn an_unread_large_body_closes_its_connection(b: Bench) {
    let client = b.client();
    drop(client.get(b.http("/bytes/50000000")).send().await.unwrap());
    assert!(!client.get(b.http("/get")).send().await.unwrap().reused());
    assert_eq!(client.pool_stats().in_use, 0);
}

async fn connection_close_is_believed(b: Bench) {
    let client = b.client();
    for path in ["/close", "/bad/close-kept", "/http10"] {
        let response = client.get(b.http(path)).send().await.unwrap();
        response.bytes().await.unwrap();
        assert_eq!(client.pool_stats().idle, 0, "{path}");
    }
}

async fn a_connection_that_died_idle_is_replaced(b: Bench) {
    let client = b.client();
    for method in [mimus::Method::GET, mimus::Method::POST] {
        let first = client.get(b.http("/bad/keep-closed")).send().await.unwrap();
        first.bytes().await.unwrap();
        b.sleep(Duration::from_millis(150)).await;
        let second = client.request(method, b.http("/anything")).send().await.unwrap();
        assert_eq!(second.status(), 200);
        assert!(!second.reused());
        second.bytes().await.unwrap();
        client.close_idle();
    }
}

async fn an_idempotent_call_on_a_dying_connection_is_repeated_once(b: Bench) {
    let client = b.client();
    client.get(b.http("/get")).send().await.unwrap().bytes().await.unwrap();
    // Reads the request, then closes without a word, every time.
    let error = failure(client.get(b.http("/bad/reset-before-head")).send().await);
    assert_eq!(error.kind(), mimus::Kind::Closed, "{error:#}");
    let asked = b.origin.requests().iter().filter(|r| r.target.starts_with("/bad/")).count();
    assert_eq!(asked, 2, "once on the reused connection, once on a fresh one");
}

async fn a_post_that_was_sent_is_not_sent_again(b: Bench) {
    let client = b.client();
    client.get(b.http("/get")).send().await.unwrap().bytes().await.unwrap();
    let error = failure(client.post(b.http("/bad/reset-before-head")).body("pay").send().await);
    assert_eq!(error.kind(), mimus::Kind::Closed, "{error:#}");
    assert!(error.was_sent());
    assert!(!error.is_retryable());
    let asked = b.origin.requests().iter().filter(|r| r.target.starts_with("/bad/")).count();
    assert_eq!(asked, 1);
}

async fn ten_thousand_calls_over_six_connections(b: Bench) {
    let client = b.builder().max_connections_per_host(6).build().unwrap();
    let url = b.http("/bytes/10");
    let calls = (0..10_000).map(|_| async {
        let response = client.get(&url).send().await?;
        response.bytes().await.map(|body| body.len())
    });
    let lengths = join_all(calls).await;
    assert!(lengths.into_iter().all(|n| n.unwrap() == 10));
    assert!(b.origin.connections().len() <= 6);
    let stats = client.pool_stats();
    assert_eq!((stats.in_use, stats.waiting), (0, 0));
}

async fn a_limit_makes_calls_wait_and_time_out(b: Bench) {
    let client = b.builder().max_connections(1).build().unwrap();
    let held = client.get(b.http("/bytes/50000000")).send().await.unwrap();
    let second = client.get(b.https("/get")).pool_timeout(Duration::from_millis(50));
    let error = failure(second.send().await);
    assert_eq!((error.kind(), error.phase()), (mimus::Kind::Timeout, Some(mimus::Phase::Pool)));
    assert!(error.is_retryable());
    drop(held);
    assert_eq!(client.get(b.https("/get")).send().await.unwrap().status(), 200);
}

async fn idle_connections_expire(b: Bench) {
    let client = b.builder().pool_idle_timeout(Duration::from_millis(30)).build().unwrap();
    client.get(b.http("/get")).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(client.pool_stats().idle, 1);
    b.sleep(Duration::from_millis(60)).await;
    assert!(!client.get(b.http("/get")).send().await.unwrap().reused());
}

async fn a_call_dropped_in_any_phase_leaks_nothing(b: Bench) {
    // A blocking socket is never seen pending, so there is nothing to drop half-way.
    if !b.concurrent() {
        return;
    }
    let client = b.client();
    for url in [
        b.http("/get"),
        b.https("/get"),
        b.http("/delay/5"),
        b.http("/bad/stall-in-head"),
        b.https("/delay/5"),
    ] {
        for polls in 0..6 {
            let call = async {
                let response = client.post(&url).body("x".repeat(1_000_000)).send().await?;
                response.bytes().await
            };
            poll_some(call, polls, &b).await;
        }
    }
    let stats = client.pool_stats();
    assert_eq!((stats.in_use, stats.dialling, stats.waiting), (0, 0, 0));
    drop(client);
    b.all_closed().await;
}

/// Polls a few times with pauses, then drops.
async fn poll_some<T>(future: impl Future<Output = T>, polls: usize, b: &Bench) {
    let mut future = pin!(future);
    for _ in 0..polls {
        let mut done = false;
        let step = std::future::poll_fn(|cx: &mut Context<'_>| {
            done = future.as_mut().poll(cx).is_ready();
            Poll::Ready(())
        });
        step.await;
        if done {
            return;
        }
        b.sleep(Duration::from_millis(3)).await;
    }
    // The last look is by nobody: its waker must not be needed for anything.
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

async fn different_routes_do_not_share(b: Bench) {
    let client = b.client();
    let url = b.http("/get");
    client.get(&url).send().await.unwrap().bytes().await.unwrap();
    let mut options = mimus::SocketOptions::default();
    options.nodelay = false;
    let other = client.get(&url).socket_options(options.clone()).send().await.unwrap();
    assert!(!other.reused());
    other.bytes().await.unwrap();
    assert!(client.get(&url).socket_options(options).send().await.unwrap().reused());
    assert!(client.get(&url).send().await.unwrap().reused());
}

/// A client that outlives a runtime, as a static one does from test to test, does not wait for a
/// reactor that nobody drives.
#[test]
fn a_client_moves_from_runtime_to_runtime() {
    let origin = mimus_testkit::Origin::start().unwrap();
    let client = mimus::Client::builder().no_proxy().build().unwrap();
    let url = origin.http_url("/get");
    let runtimes: Vec<_> = (0..2)
        .map(|_| tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
        .collect();
    for (runtime, reused) in [(0, false), (0, true), (1, false), (1, true), (0, true)] {
        let limit = Duration::from_secs(5);
        runtimes[runtime].block_on(async {
            let response = client.get(&url).timeout(limit).send().await.unwrap();
            assert_eq!(response.reused(), reused, "on runtime {runtime}");
            response.bytes().await.unwrap();
        });
    }
}
