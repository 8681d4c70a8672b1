//! Requests to one host over a connection that was made for another.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, future::join_all, stream};
use mimus::{
    Body, Client, ClientBuilder, Hook, Kind, Observation, Proxy, SocketOptions, TlsConfig, Version,
};
use mimus_testkit::Port;

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    two_hosts_of_one_certificate_and_address_share_a_connection,
    it_is_off_unless_asked_for,
    a_browser_does_it,
    an_address_is_a_host_as_well,
    one_common_address_is_enough,
    another_address_or_port_is_another_connection,
    a_certificate_for_others_only_is_not_made_do,
    http1_is_never_shared,
    who_verifies_less_or_says_who_he_is_shares_nothing,
    what_a_connection_is_made_with_must_be_the_same,
    a_proxy_knows_the_addresses_and_we_do_not,
    a_misdirected_request_is_made_again_on_a_connection_of_its_own,
    a_server_may_misdirect_on_its_own_connection_too,
    a_body_that_cannot_be_sent_again_is_not,
    a_server_says_whom_it_is_there_for,
    a_web_socket_joins_too,
    calls_that_come_together_join_together,
    cold_calls_to_both_are_served,
    a_lost_connection_is_lost_for_both,
    hooks_are_told,
);

const ONE: &str = "localhost";
const OTHER: &str = "origin.test";

fn url(b: &Bench, port: Port, host: &str, path: &str) -> String {
    format!("https://{host}:{}{path}", b.origin.addr(port).unwrap().port())
}

/// Both names of the origin's certificate lead to its address.
fn deaf(b: &Bench) -> ClientBuilder {
    let home = SocketAddr::from(([127, 0, 0, 1], 0));
    b.builder().resolve(ONE, None, [home]).resolve(OTHER, None, [home])
}

fn builder(b: &Bench) -> ClientBuilder {
    deaf(b).coalesce(true)
}

async fn get(client: &Client, url: String) -> u16 {
    let response = client.get(url).send().await.unwrap();
    let status = response.status().as_u16();
    response.bytes().await.unwrap();
    status
}

/// Asks one host, then the other, and gives the number of connections.
async fn connections(b: &Bench, client: &Client, port: Port) -> u64 {
    let before = b.origin.accepted(port);
    assert_eq!(get(client, url(b, port, ONE, "/get")).await, 200);
    assert_eq!(get(client, url(b, port, OTHER, "/get")).await, 200);
    b.origin.accepted(port) - before
}

/// The same, of those that a request came on: a browser may have a spare one.
async fn busy_connections(b: &Bench, client: &Client, port: Port) -> usize {
    b.origin.reset();
    connections(b, client, port).await;
    let conns: BTreeSet<u64> = b.origin.requests().iter().map(|seen| seen.conn).collect();
    conns.len()
}

/// The server name, host and path of each request.
fn seen(b: &Bench) -> Vec<(String, String, String)> {
    let host = |authority: String| authority.split(':').next().unwrap().to_owned();
    let requests = b.origin.requests().into_iter();
    requests
        .map(|seen| (seen.tls.unwrap().sni.unwrap(), host(seen.authority.unwrap()), seen.target))
        .collect()
}

fn row(sni: &str, host: &str, path: &str) -> (String, String, String) {
    (sni.to_owned(), host.to_owned(), path.to_owned())
}

async fn two_hosts_of_one_certificate_and_address_share_a_connection(b: Bench) {
    let client = builder(&b).cookies(true).build().unwrap();
    for port in [Port::H2, Port::H2OrHttp1] {
        b.origin.reset();
        assert_eq!(get(&client, url(&b, port, ONE, "/cookies/set?a=b")).await, 200);
        for _ in 0..3 {
            assert_eq!(get(&client, url(&b, port, OTHER, "/get")).await, 200);
        }
        assert_eq!(get(&client, url(&b, port, ONE, "/get")).await, 200);
        assert_eq!(b.origin.accepted(port), 1);
        let hosts: Vec<_> = seen(&b).into_iter().map(|(sni, host, _)| (sni, host)).collect();
        let at = |host: &str| (ONE.to_owned(), host.to_owned());
        assert_eq!(hosts[hosts.len() - 4..], [at(OTHER), at(OTHER), at(OTHER), at(ONE)]);
        // Each host has its own cookies.
        let cookies: Vec<_> =
            b.origin.requests().iter().rev().take(4).map(|seen| seen.header("cookie")).collect();
        assert_eq!(cookies, [Some("a=b".to_owned()), None, None, None]);
    }
    let stats = client.pool_stats();
    assert_eq!((stats.coalesced, stats.idle, stats.in_use), (2, 2, 0));
}

async fn a_browser_does_it(b: Bench) {
    for name in ["chrome", "firefox"] {
        let like = deaf(&b).profile(name).profile_client_hello(false);
        assert_eq!(busy_connections(&b, &like.build().unwrap(), Port::H2).await, 1);
    }
    let not = deaf(&b).profile("chrome").profile_client_hello(false).coalesce(false);
    assert_eq!(busy_connections(&b, &not.build().unwrap(), Port::H2).await, 2);
}

async fn it_is_off_unless_asked_for(b: Bench) {
    let client = deaf(&b).build().unwrap();
    assert_eq!(connections(&b, &client, Port::H2).await, 2);
    assert_eq!(client.pool_stats().coalesced, 0);
    // For one call it makes other connections.
    let client = builder(&b).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    let call = client.get(url(&b, Port::H2, OTHER, "/get")).coalesce(false);
    call.send().await.unwrap();
    assert_eq!(b.origin.accepted(Port::H2), 4);
}

async fn an_address_is_a_host_as_well(b: Bench) {
    let client = builder(&b).build().unwrap();
    for host in ["127.0.0.1", ONE] {
        assert_eq!(get(&client, url(&b, Port::H2, host, "/get")).await, 200);
    }
    assert_eq!(b.origin.accepted(Port::H2), 1);
    let client = builder(&b).build().unwrap();
    for host in [ONE, "127.0.0.1"] {
        assert_eq!(get(&client, url(&b, Port::H2, host, "/get")).await, 200);
    }
    assert_eq!(b.origin.accepted(Port::H2), 2);
}

async fn one_common_address_is_enough(b: Bench) {
    // RFC 5737: nobody is there, and nobody is asked.
    let (nowhere, home) = (([192, 0, 2, 1], 0).into(), ([127, 0, 0, 1], 0).into());
    let client = b.builder().coalesce(true).resolve(ONE, None, [home]);
    let client = client.resolve(OTHER, None, [nowhere, home]).build().unwrap();
    assert_eq!(connections(&b, &client, Port::H2).await, 1);
}

async fn another_address_or_port_is_another_connection(b: Bench) {
    let (here, there) = (b.origin.addr(Port::H2).unwrap(), b.origin.addr(Port::H2OrHttp1).unwrap());
    let client = deaf(&b).coalesce(true).resolve(OTHER, Some(here.port()), [there]);
    let client = client.build().unwrap();
    assert_eq!(connections(&b, &client, Port::H2).await, 1, "one of two");
    assert_eq!(b.origin.accepted(Port::H2OrHttp1), 1);
    // The same address under another port of the URL.
    let client = builder(&b).resolve(OTHER, Some(there.port()), [here]).build().unwrap();
    b.origin.reset();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    get(&client, url(&b, Port::H2OrHttp1, OTHER, "/get")).await;
    assert_eq!(b.origin.accepted(Port::H2), 2);
}

async fn a_certificate_for_others_only_is_not_made_do(b: Bench) {
    let home = SocketAddr::from(([127, 0, 0, 1], 0));
    let client = builder(&b).resolve("foreign.test", None, [home]).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    let error = failure(client.get(url(&b, Port::H2, "foreign.test", "/get")).send().await);
    assert_eq!(error.kind(), Kind::Certificate, "{error:#}");
    assert_eq!((b.origin.accepted(Port::H2), b.origin.requests().len()), (2, 1));
}

async fn http1_is_never_shared(b: Bench) {
    let client = builder(&b).build().unwrap();
    assert_eq!(connections(&b, &client, Port::Https).await, 2);
    get(&client, url(&b, Port::H2OrHttp1, ONE, "/get")).await;
    let call = client.get(url(&b, Port::H2OrHttp1, OTHER, "/get")).version(Version::HTTP_11);
    assert_eq!(call.send().await.unwrap().version(), Version::HTTP_11);
    assert_eq!(b.origin.accepted(Port::H2OrHttp1), 2);
}

async fn who_verifies_less_or_says_who_he_is_shares_nothing(b: Bench) {
    let me = b.origin.client_identity();
    let tls = || TlsConfig::builder().add_ca(b.origin.ca_pem().as_bytes());
    for tls in [
        tls().danger_accept_any_certificate(true),
        tls().danger_ignore_hostname(true),
        tls().identity(me.cert_pem.as_bytes(), me.key_pem.as_bytes()),
    ] {
        let client = builder(&b).tls(tls.build().unwrap()).build().unwrap();
        assert_eq!(connections(&b, &client, Port::H2).await, 2);
    }
}

async fn what_a_connection_is_made_with_must_be_the_same(b: Bench) {
    let client = builder(&b).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    let mut options = SocketOptions::default();
    options.nodelay = false;
    let call = || client.get(url(&b, Port::H2, OTHER, "/get"));
    call().socket_options(options).send().await.unwrap();
    assert_eq!(b.origin.accepted(Port::H2), 2);
    call().tls(b.trust()).send().await.unwrap();
    assert_eq!(b.origin.accepted(Port::H2), 3);
}

async fn a_proxy_knows_the_addresses_and_we_do_not(b: Bench) {
    for (port, scheme) in [(Port::Proxy, "http"), (Port::Socks, "socks5")] {
        let at = b.origin.addr(port).unwrap();
        let proxy = Proxy::parse(&format!("{scheme}://{at}")).unwrap();
        let client = builder(&b).proxy(proxy).build().unwrap();
        b.origin.reset();
        for host in [ONE, "127.0.0.1"] {
            assert_eq!(get(&client, url(&b, Port::H2, host, "/get")).await, 200);
        }
        assert_eq!(b.origin.accepted(Port::H2), 2, "{scheme}");
    }
}

/// RFC 9110 section 15.5.20: whatever the method.
async fn a_misdirected_request_is_made_again_on_a_connection_of_its_own(b: Bench) {
    let client = builder(&b).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    let post = client.post(url(&b, Port::H2, OTHER, "/misdirected")).body("abc");
    let response = post.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.text().await.unwrap(), "3 bytes\n");
    assert_eq!(b.origin.accepted(Port::H2), 2);
    // The two stay apart, and the first serves its own host still.
    get(&client, url(&b, Port::H2, OTHER, "/get")).await;
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    let expected = [
        row(ONE, ONE, "/get"),
        row(ONE, OTHER, "/misdirected"),
        row(OTHER, OTHER, "/misdirected"),
        row(OTHER, OTHER, "/get"),
        row(ONE, ONE, "/get"),
    ];
    assert_eq!(seen(&b), expected);
    // Even when it has no connection any more.
    client.close_idle();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    get(&client, url(&b, Port::H2, OTHER, "/get")).await;
    assert_eq!(b.origin.accepted(Port::H2), 4);
    assert_eq!(client.pool_stats().coalesced, 1);
}

async fn a_server_may_misdirect_on_its_own_connection_too(b: Bench) {
    let client = builder(&b).build().unwrap();
    assert_eq!(get(&client, url(&b, Port::H2, ONE, "/status/421")).await, 421);
    assert_eq!(b.origin.requests().len(), 1, "it was its own");
    assert_eq!(get(&client, url(&b, Port::H2, OTHER, "/status/421")).await, 421);
    assert_eq!(b.origin.requests().len(), 3, "once more, and no more");
    assert_eq!(b.origin.accepted(Port::H2), 2);
}

async fn a_body_that_cannot_be_sent_again_is_not(b: Bench) {
    let client = builder(&b).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    for status in [421, 200] {
        let body = Body::stream(stream::iter(["abc"]).map(Ok::<_, std::io::Error>));
        let post = client.post(url(&b, Port::H2, OTHER, "/misdirected")).body(body);
        assert_eq!(post.send().await.unwrap().status().as_u16(), status);
    }
    assert_eq!(b.origin.accepted(Port::H2), 2);
}

/// RFC 8336.
async fn a_server_says_whom_it_is_there_for(b: Bench) {
    for (row, expected) in [
        ("origin-other", 2),
        ("origin-empty", 2),
        ("origin-cut-off", 2),
        ("origin-both", 1),
        ("origin-flagged", 1),
        ("origin-on-a-stream", 1),
    ] {
        let at = b.origin.bad_h2(row, true).unwrap();
        // The rows name origins without a port.
        let client = b.builder().coalesce(true).resolve(ONE, None, [at]).resolve(OTHER, None, [at]);
        let client = client.build().unwrap();
        b.origin.reset();
        for host in [ONE, OTHER, OTHER, ONE] {
            assert_eq!(get(&client, format!("https://{host}/")).await, 200, "{row}");
        }
        assert_eq!(b.origin.accepted(Port::BadH2), expected, "{row}");
    }
}

async fn a_web_socket_joins_too(b: Bench) {
    let client = builder(&b).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    let echo = url(&b, Port::H2, OTHER, "/ws/echo").replace("https", "wss");
    let socket = client.websocket(&echo).version(Version::HTTP_2).connect().await.unwrap();
    assert_eq!(socket.handshake().version(), Version::HTTP_2);
    assert_eq!((b.origin.accepted(Port::H2), client.pool_stats().coalesced), (1, 1));
    // A connection that was never asked for a tunnel may not take one: this one says so first.
    let at = b.origin.bad_h2("settings-unknown", true).unwrap();
    let client = b.builder().coalesce(true).resolve(ONE, None, [at]).resolve(OTHER, None, [at]);
    let client = client.build().unwrap();
    get(&client, format!("https://{ONE}/")).await;
    let refused = client.websocket(format!("wss://{OTHER}/")).version(Version::HTTP_2);
    let error = refused.connect().await.unwrap_err();
    assert_eq!(error.error().kind(), Kind::NotOffered);
    assert_eq!(b.origin.accepted(Port::BadH2), 2, "it asked on a connection of its own");
}

async fn calls_that_come_together_join_together(b: Bench) {
    let client = builder(&b).build().unwrap();
    get(&client, url(&b, Port::H2, ONE, "/get")).await;
    if b.concurrent() {
        let calls = (0..30).map(|_| get(&client, url(&b, Port::H2, OTHER, "/bytes/1000")));
        assert_eq!(join_all(calls).await, [200; 30]);
        assert_eq!(b.origin.accepted(Port::H2), 1);
    }
}

async fn cold_calls_to_both_are_served(b: Bench) {
    if !b.concurrent() {
        return;
    }
    let client = builder(&b).build().unwrap();
    let calls = (0..40).map(|n| {
        let host = if n % 2 == 0 { ONE } else { OTHER };
        get(&client, url(&b, Port::H2, host, "/bytes/1000"))
    });
    assert_eq!(join_all(calls).await, [200; 40]);
    // Nobody waits for a dial of another host's, which may bring anything.
    assert!(b.origin.accepted(Port::H2) <= 2);
}

async fn a_lost_connection_is_lost_for_both(b: Bench) {
    let client = builder(&b).build().unwrap();
    assert_eq!(connections(&b, &client, Port::H2).await, 1);
    // It says GOAWAY, to either.
    for (number, host) in [(1, ONE), (2, OTHER), (3, ONE)] {
        get(&client, url(&b, Port::H2, host, "/close")).await;
        for host in [OTHER, ONE] {
            assert_eq!(get(&client, url(&b, Port::H2, host, "/get")).await, 200);
        }
        assert_eq!(b.origin.accepted(Port::H2), number + 1);
    }
    client.close_idle();
    assert!(client.pool_stats_by_route().is_empty());
    b.all_closed().await;
}

#[derive(Debug, Default, Clone)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Hook for Log {
    fn observe(&self, happened: &Observation<'_>) {
        self.0.lock().unwrap().push(match happened {
            Observation::Connected { .. } => "connected",
            Observation::Coalesced { .. } => "coalesced",
            Observation::Reused { .. } => "reused",
            Observation::Sending { .. } => "sending",
            Observation::Head { .. } => "head",
            _ => "other",
        });
    }
}

async fn hooks_are_told(b: Bench) {
    let log = Log::default();
    let client = builder(&b).hook(log.clone()).build().unwrap();
    connections(&b, &client, Port::H2).await;
    get(&client, url(&b, Port::H2, OTHER, "/get")).await;
    let (first, joined, later) = (
        ["connected", "sending", "head"].as_slice(),
        ["coalesced", "reused", "sending", "head"].as_slice(),
        ["reused", "sending", "head"].as_slice(),
    );
    assert_eq!(*log.0.lock().unwrap(), [first, joined, later].concat());
}
