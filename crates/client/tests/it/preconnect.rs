//! Connections that are open before a request needs them.

use std::{pin::pin, time::Duration};

use futures_util::future::{join, join_all};
use mimus::{
    Client, Kind, Phase, Proxy, Version,
    profile::{self, Credentials, Mode},
};
use mimus_testkit::Port;

use crate::support::{self, Bench, failure, on_every_runtime};

on_every_runtime!(
    the_next_calls_find_them,
    one_of_http2_is_enough,
    limits_bind,
    what_cannot_be_opened_is_an_error,
    a_proxy_is_gone_through,
    dropped_half_way_it_leaks_nothing,
    a_call_waits_for_what_may_serve_it,
    unused_ones_expire,
    a_navigation_of_chromium_leaves_a_spare_one,
    of_http2_there_is_no_spare_one,
    who_opens_none_opens_none,
    a_spare_one_delays_nobody,
    a_browser_has_six_to_a_host,
    requests_without_credentials_have_their_own,
    a_web_socket_has_its_own,
);

/// Waits for what comes sooner or later.
async fn until(b: &Bench, what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        b.sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: it did not come to that");
}

async fn get(client: &Client, url: &str) -> mimus::Response {
    let mut response = client.get(url).send().await.unwrap();
    while response.chunk().await.unwrap().is_some() {}
    response
}

async fn the_next_calls_find_them(b: Bench) {
    let client = b.client();
    for (at, url) in [b.http("/get"), b.https("/get")].into_iter().enumerate() {
        assert_eq!(client.preconnect(&url, 3).await.unwrap(), 3);
        assert_eq!(client.preconnect(&url, 3).await.unwrap(), 0, "they are there");
        until(&b, "three connections", || b.origin.connections().len() == 4 * at + 3).await;
        assert_eq!(b.origin.requests().len(), at);
        assert!(get(&client, &url).await.reused());
        assert_eq!(client.preconnect(&url, 4).await.unwrap(), 1, "one more");
    }
    until(&b, "four of TLS", || {
        b.origin.connections().iter().filter(|seen| seen.tls.is_some()).count() == 4
    })
    .await;
    assert_eq!(client.pool_stats().idle, 8);
}

async fn one_of_http2_is_enough(b: Bench) {
    let url = b.origin.url(Port::H2OrHttp1, "/get").unwrap();
    let client = b.client();
    assert_eq!(client.preconnect(&url, 3).await.unwrap(), 1);
    assert_eq!(client.preconnect(&url, 3).await.unwrap(), 0);
    until(&b, "the others close", || b.origin.open_connections() == 1).await;
    // RFC 9113 section 3.4: the preface need not wait for a request, and a server need not wait for it.
    let opened =
        |seen: &mimus_testkit::SeenConnection| seen.h2.as_ref().is_some_and(|h2| h2.count(4) > 0);
    until(&b, "SETTINGS come", || b.origin.connections().iter().any(opened)).await;
    let response = get(&client, &url).await;
    assert_eq!((response.version(), response.reused()), (Version::HTTP_2, true));
    assert_eq!(b.origin.open_connections(), 1);

    let old = b.builder().version(Version::HTTP_11).build().unwrap();
    assert_eq!(
        old.preconnect(&url, 3).await.unwrap(),
        3,
        "where HTTP/1.1 is wanted, there are more"
    );
}

async fn limits_bind(b: Bench) {
    let limited = [
        (b.builder().max_connections_per_host(2), 2),
        (b.builder().max_connections(1), 1),
        (b.builder().max_idle_per_host(2), 2),
        (b.builder().max_idle_per_host(0), 0),
    ];
    for (builder, most) in limited {
        let client = builder.build().unwrap();
        assert_eq!(client.preconnect(b.http("/get"), 5).await.unwrap(), most);
        assert_eq!(client.pool_stats().idle, most);
    }
    let client = b.builder().max_connections(1).build().unwrap();
    get(&client, &b.http("/get")).await;
    assert_eq!(client.preconnect(b.https("/get"), 1).await.unwrap(), 0, "none closes for it");
    assert!(get(&client, &b.http("/get")).await.reused());
}

async fn what_cannot_be_opened_is_an_error(b: Bench) {
    let client = b.builder().tls_timeout(Duration::from_millis(200)).build().unwrap();
    let refused = format!("http://{}/", support::dead_port());
    let error = failure(client.preconnect(&refused, 2).await);
    assert_eq!((error.kind(), error.phase()), (Kind::Connect, Some(Phase::Connect)), "{error:#}");
    let stalls = b.origin.url(Port::TlsStall, "/").unwrap();
    let error = failure(client.preconnect(&stalls, 2).await);
    assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Tls)), "{error:#}");
    let error = failure(client.preconnect("ftp://localhost/", 1).await);
    assert_eq!(error.kind(), Kind::Request);
    assert_eq!(client.pool_stats().open(), 0);
    b.all_closed().await;
}

async fn a_proxy_is_gone_through(b: Bench) {
    let proxy = Proxy::parse(&b.origin.url(Port::Proxy, "").unwrap()).unwrap();
    let client = b.builder().proxy(proxy).build().unwrap();
    assert_eq!(client.preconnect(b.https("/get"), 2).await.unwrap(), 2);
    let tunnels = || {
        let all = b.origin.requests();
        all.iter().filter(|seen| seen.port == Port::Proxy && seen.method == "CONNECT").count()
    };
    assert_eq!(tunnels(), 2);
    assert!(get(&client, &b.https("/get")).await.reused());
    assert_eq!(tunnels(), 2);
}

async fn dropped_half_way_it_leaks_nothing(b: Bench) {
    if !b.concurrent() {
        return;
    }
    let client = b.client();
    for url in [b.https("/get"), b.origin.url(Port::TlsStall, "/").unwrap()] {
        for polls in 0..5 {
            let mut opening = pin!(client.preconnect(&url, 3));
            for _ in 0..polls {
                let polled = futures_util::poll!(opening.as_mut());
                if polled.is_ready() {
                    break;
                }
                b.sleep(Duration::from_millis(2)).await;
            }
        }
    }
    assert_eq!(client.pool_stats().dialling, 0);
    drop(client);
    b.all_closed().await;
}

async fn a_call_waits_for_what_may_serve_it(b: Bench) {
    for port in [Port::H2OrHttp1, Port::Https] {
        let url = b.origin.url(port, "/get").unwrap();
        let client = b.client();
        let before = b.origin.connections().len();
        let (opened, response) = join(client.preconnect(&url, 1), get(&client, &url)).await;
        assert_eq!(opened.unwrap(), 1);
        assert!(response.reused());
        assert_eq!(b.origin.connections().len(), before + 1);
    }
}

async fn unused_ones_expire(b: Bench) {
    let client = b.builder().pool_idle_timeout(Duration::from_millis(30)).build().unwrap();
    assert_eq!(client.preconnect(b.http("/get"), 2).await.unwrap(), 2);
    until(&b, "they are closed", || client.pool_stats().idle == 0).await;
    b.all_closed().await;
}

fn browser(b: &Bench, name: &str) -> mimus::ClientBuilder {
    b.builder().profile(name).profile_client_hello(false)
}

async fn a_navigation_of_chromium_leaves_a_spare_one(b: Bench) {
    for url in [b.http("/get"), b.https("/get")] {
        b.origin.reset();
        let client = browser(&b, "chromium-156-linux").build().unwrap();
        assert!(!get(&client, &url).await.reused());
        until(&b, "no dial is left", || client.pool_stats().dialling == 0).await;
        if !b.has_tasks() {
            // It is given up if it is not there when the answer begins.
            assert!((1..=2).contains(&client.pool_stats().idle));
            continue;
        }
        assert_eq!(client.pool_stats().idle, 2);
        assert_eq!(b.origin.requests().len(), 1);
        let held = client.get(url.replace("/get", "/bytes/50000000")).send().await.unwrap();
        let fetched = client.get(&url).kind(profile::Kind::FETCH).send().await.unwrap();
        assert!(held.reused() && fetched.reused());
        let conns: std::collections::BTreeSet<u64> =
            b.origin.requests().iter().map(|seen| seen.conn).collect();
        assert_eq!(conns.len(), 2, "the spare one serves");
        assert_eq!(b.origin.connections().len(), 2);
        // One of two is left: the next navigation has a second one again.
        fetched.bytes().await.unwrap();
        drop(held);
        assert!(get(&client, &url).await.reused());
        until(&b, "there are two again", || client.pool_stats().idle == 2).await;
        until(&b, "the server has the third", || b.origin.connections().len() == 3).await;
    }
}

async fn of_http2_there_is_no_spare_one(b: Bench) {
    let url = b.origin.url(Port::H2OrHttp1, "/get").unwrap();
    let client = browser(&b, "chromium-156-linux").build().unwrap();
    get(&client, &url).await;
    until(&b, "the spare one is closed", || {
        client.pool_stats().open() == 1 && b.origin.open_connections() == 1
    })
    .await;
    let seen = b.origin.connections().len();
    assert!((1..=2).contains(&seen), "{seen} connections");
    assert!(get(&client, &url).await.reused());
    client.close_idle();
    b.all_closed().await;
    get(&client, &url).await;
    assert_eq!(b.origin.connections().len(), seen + 1, "it is known to speak HTTP/2");
}

async fn who_opens_none_opens_none(b: Bench) {
    let url = b.http("/get");
    let no_profile = b.client();
    get(&no_profile, &url).await;
    let firefox = browser(&b, "firefox-153-linux").build().unwrap();
    get(&firefox, &url).await;
    let limited = browser(&b, "chromium-156-linux").max_connections_per_host(1).build().unwrap();
    get(&limited, &url).await;
    let fetches = browser(&b, "chromium-156-linux").build().unwrap();
    fetches.get(&url).kind(profile::Kind::FETCH).send().await.unwrap().bytes().await.unwrap();
    for client in [no_profile, firefox, limited, fetches] {
        let stats = client.pool_stats();
        assert_eq!((stats.idle, stats.dialling), (1, 0));
    }
    assert_eq!(b.origin.connections().len(), 4);
    // Nor where a redirect leads.
    let client = browser(&b, "chromium-156-linux").build().unwrap();
    let to = b.https("/get");
    get(&client, &b.http(&format!("/redirect-to?url={to}"))).await;
    assert!(b.origin.requests().last().is_some_and(|last| last.port == Port::Https));
    until(&b, "no dial is left", || client.pool_stats().dialling == 0).await;
    assert_eq!(b.origin.connections().iter().filter(|seen| seen.port == Port::Https).count(), 1);
}

async fn a_spare_one_delays_nobody(b: Bench) {
    let client = browser(&b, "chromium-156-linux").build().unwrap();
    // A server that answers no second handshake is as good as one that was not asked: the error is of the call's.
    let refused = format!("http://{}/", support::dead_port());
    assert_eq!(failure(client.get(&refused).send().await).kind(), Kind::Connect);
    until(&b, "no dial is left", || client.pool_stats().open() == 0).await;
    let stalls = b.origin.url(Port::TlsStall, "/").unwrap();
    let short = client.get(&stalls).tls_timeout(Duration::from_millis(100));
    assert_eq!(failure(short.send().await).kind(), Kind::Timeout);
    until(&b, "no dial is left", || client.pool_stats().open() == 0).await;
    b.all_closed().await;
}

async fn a_browser_has_six_to_a_host(b: Bench) {
    for name in ["chromium-156-linux", "firefox-153-linux"] {
        b.origin.reset();
        let client = browser(&b, name).build().unwrap();
        let url = b.http("/bytes/10");
        join_all((0..40).map(|_| get(&client, &url))).await;
        let most = b.origin.connections().len();
        assert!(most <= 6, "{most} connections");
    }
    let client = browser(&b, "firefox-153-linux").max_connections_per_host(None).build().unwrap();
    assert_eq!(client.preconnect(b.http("/"), 9).await.unwrap(), 9, "the user's word goes");
}

fn omit() -> profile::Kind {
    profile::Kind::Fetch { mode: Mode::Cors, credentials: Credentials::Omit }
}

/// On which connections a page, a fetch of its own, two without credentials, and one more of its own come.
async fn places(b: &Bench, name: &str, port: Port) -> Vec<u64> {
    b.origin.reset();
    let url = b.origin.url(port, "/get").unwrap();
    let client = browser(b, name).build().unwrap();
    get(&client, &url).await;
    until(b, "no dial is left", || client.pool_stats().dialling == 0).await;
    for kind in [profile::Kind::FETCH, omit(), omit(), profile::Kind::FETCH] {
        client.get(&url).kind(kind).send().await.unwrap().bytes().await.unwrap();
    }
    b.origin.requests().iter().map(|seen| seen.conn).collect()
}

async fn requests_without_credentials_have_their_own(b: Bench) {
    for port in [Port::Http, Port::Https, Port::H2OrHttp1] {
        for name in ["chromium-156-linux", "firefox-153-linux"] {
            let places = places(&b, name, port).await;
            let shared = port == Port::H2OrHttp1 && name.starts_with("firefox");
            assert_eq!(places[2], places[3], "{name}: those without share");
            assert_eq!(places[1] == places[2], shared, "{name} {port:?}: {places:?}");
            if port == Port::H2OrHttp1 {
                assert_eq!([places[0], places[1]], [places[1], places[4]]);
            }
        }
    }
    // Another origin's, without its credentials.
    let client = browser(&b, "chromium-156-linux").build().unwrap();
    b.origin.reset();
    for page in ["http://other.test/", &*b.http("/")] {
        let fetch = client.get(b.http("/get")).kind(profile::Kind::FETCH).initiator(page);
        fetch.send().await.unwrap().bytes().await.unwrap();
    }
    let conns: Vec<u64> = b.origin.requests().iter().map(|seen| seen.conn).collect();
    assert_ne!(conns[0], conns[1]);
}

async fn a_web_socket_has_its_own(b: Bench) {
    for name in ["chromium-156-linux", "firefox-153-linux"] {
        for port in [Port::Http, Port::Https] {
            b.origin.reset();
            let client = browser(&b, name).build().unwrap();
            let url = b.origin.url(port, "/ws/echo").unwrap();
            get(&client, &b.origin.url(port, "/get").unwrap()).await;
            let before = client.pool_stats().idle;
            let socket = client.websocket(&url).connect().await.unwrap();
            let conns: Vec<u64> = b.origin.requests().iter().map(|seen| seen.conn).collect();
            assert_ne!(conns[0], conns[1], "{name}");
            assert!(client.pool_stats().idle >= before);
            drop(socket);
        }
    }
}

#[test]
fn a_spare_one_is_driven_by_an_executor_of_smols() {
    support::run(support::Kind::SmolOn, |b| async move {
        let client = browser(&b, "chromium-156-linux").build().unwrap();
        get(&client, &b.https("/get")).await;
        until(&b, "there are two", || client.pool_stats().idle == 2).await;
    });
}

#[test]
fn a_blocking_client_opens_them_side_by_side() {
    let origin = mimus_testkit::Origin::start().unwrap();
    let tls = mimus::TlsConfig::builder().add_ca(origin.ca_pem().as_bytes()).build().unwrap();
    let client = mimus::blocking::Client::builder().no_proxy().tls(tls).build().unwrap();
    let url = origin.https_url("/get");
    assert_eq!(client.preconnect(&url, 4).unwrap(), 4);
    assert!(client.get(&url).send().unwrap().reused());
    assert_eq!(origin.connections().len(), 4);
}
