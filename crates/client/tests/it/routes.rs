//! Ways to an origin: addresses, names, Unix sockets, proxies, TLS in its variants.

use mimus::{Kind, Phase, Proxies, Proxy, TlsConfig};
use mimus_testkit::Port;

use crate::support::{Bench, dead_port, failure, on_every_runtime};

on_every_runtime!(
    a_name_can_be_pinned_to_an_address,
    a_resolver_of_ones_own_is_asked,
    a_unix_socket_takes_the_place_of_the_host,
    ipv6_literals_connect,
    a_dead_address_is_passed_over,
    http_proxies_forward_and_tunnel,
    proxies_want_credentials,
    socks_proxies_of_every_kind,
    no_proxy_and_overrides_per_call,
    proxies_that_fail_say_so,
    tls_versions_and_client_certificates,
    tls_sessions_are_resumed,
);

async fn a_name_can_be_pinned_to_an_address(b: Bench) {
    let http = b.origin.addr(Port::Http).unwrap();
    let https = b.origin.addr(Port::Https).unwrap();
    let client = b
        .builder()
        .resolve("pinned.test", Some(80), [http])
        .resolve("origin.test", None, [https])
        .build()
        .unwrap();
    assert_eq!(client.get("http://Pinned.test/get").send().await.unwrap().status(), 200);
    let secure = client.get("https://origin.test/get").send().await.unwrap();
    assert_eq!(secure.status(), 200);
    assert_eq!(b.origin.requests()[0].header("host").as_deref(), Some("pinned.test"));
    let seen = b.origin.connections();
    assert!(
        seen.iter()
            .any(|c| c.tls.as_ref().is_some_and(|t| t.sni.as_deref() == Some("origin.test")))
    );
}

async fn a_resolver_of_ones_own_is_asked(b: Bench) {
    let resolver =
        mimus::dial::StaticResolver::new().with("one.test", ["127.0.0.1".parse().unwrap()]);
    let client = b.builder().resolver(resolver).build().unwrap();
    let port = b.origin.addr(Port::Http).unwrap().port();
    let url = format!("http://one.test:{port}/get");
    assert_eq!(client.get(url).send().await.unwrap().status(), 200);
    let error = failure(client.get("http://two.test/").send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Resolve, Some(Phase::Resolve)));
}

async fn a_unix_socket_takes_the_place_of_the_host(b: Bench) {
    let client = b.builder().unix_socket(b.origin.unix_path()).build().unwrap();
    let response = client.get("http://anything.test/get").send().await.unwrap();
    assert_eq!(response.remote_addr(), None);
    assert!(response.text().await.unwrap().contains("anything.test"));
}

async fn ipv6_literals_connect(b: Bench) {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no ::1");
        return;
    }
    let origin = mimus_testkit::Origin::builder().http("[::1]:0".parse().unwrap()).start().unwrap();
    let port = origin.addr(Port::Http).unwrap().port();
    for host in ["[::1]", "[::1%25lo]"] {
        let response = b.client().get(format!("http://{host}:{port}/get")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.remote_addr().unwrap().port(), port);
    }
    assert_eq!(origin.requests()[0].header("host"), Some(format!("[::1]:{port}")));
}

async fn a_dead_address_is_passed_over(b: Bench) {
    let live = b.origin.addr(Port::Http).unwrap();
    let client = b.builder().resolve("two.test", None, [dead_port(), live]).build().unwrap();
    assert_eq!(client.get("http://two.test/get").send().await.unwrap().status(), 200);
}

fn proxy(b: &Bench, port: Port, scheme: &str, user: &str) -> Proxy {
    let addr = b.origin.addr(port).unwrap();
    Proxy::parse(&format!("{scheme}://{user}{addr}")).unwrap()
}

async fn http_proxies_forward_and_tunnel(b: Bench) {
    for (port, scheme) in [(Port::Proxy, "http"), (Port::ProxyTls, "https")] {
        let client = b.builder().proxy(proxy(&b, port, scheme, "")).build().unwrap();
        for url in [b.http("/get"), b.https("/get")] {
            for round in 0..2 {
                let response = client.get(&url).send().await.unwrap();
                assert_eq!((response.status().as_u16(), response.reused()), (200, round == 1));
                response.bytes().await.unwrap();
            }
        }
        let tunnelled = client.get(b.http("/get")).proxy_tunnel(true).send().await.unwrap();
        assert!(!tunnelled.reused());
        assert_eq!(tunnelled.status(), 200);
    }
}

async fn proxies_want_credentials(b: Bench) {
    let client = b.client();
    let without = proxy(&b, Port::ProxyAuth, "http", "");
    let refused = client.get(b.http("/get")).proxy(without.clone()).send().await.unwrap();
    assert_eq!(refused.status(), 407);
    let error = failure(client.get(b.https("/get")).proxy(without).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Proxy, Some(Phase::Proxy)), "{error:#}");
    let with = proxy(&b, Port::ProxyAuth, "http", "user:secret@");
    for url in [b.http("/get"), b.https("/get")] {
        let response = client.get(url).proxy(with.clone()).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }
    // What is for the proxy is not for the origin.
    let at_the_origin = |r: &&mimus_testkit::Seen| matches!(r.port, Port::Http | Port::Https);
    let requests = b.origin.requests();
    let mut arrived = requests.iter().filter(at_the_origin);
    assert!(arrived.all(|r| r.header("proxy-authorization").is_none()));
    assert!(!format!("{with:?}").contains("secret"));
}

async fn socks_proxies_of_every_kind(b: Bench) {
    let port = b.origin.addr(Port::Http).unwrap().port();
    for scheme in ["socks4", "socks4a", "socks5", "socks5h"] {
        let client = b.builder().proxy(proxy(&b, Port::Socks, scheme, "")).build().unwrap();
        for url in [b.http("/get"), b.https("/get"), format!("http://localhost:{port}/get")] {
            let response = client.get(&url).send().await;
            let response = response.unwrap_or_else(|e| panic!("{scheme} {url}: {e:#}"));
            assert_eq!(response.status(), 200);
        }
    }
    let with = proxy(&b, Port::SocksAuth, "socks5h", "user:secret@");
    assert_eq!(b.client().get(b.https("/get")).proxy(with).send().await.unwrap().status(), 200);
    let without = proxy(&b, Port::SocksAuth, "socks5h", "");
    let error = failure(b.client().get(b.http("/get")).proxy(without).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Proxy, Some(Phase::Proxy)), "{error:#}");
}

async fn no_proxy_and_overrides_per_call(b: Bench) {
    let dead = Proxy::parse(&format!("http://{}", dead_port())).unwrap();
    let rules = Proxies::all(dead.clone()).no_proxy("localhost,127.0.0.0/8");
    let client = b.builder().proxies(rules).build().unwrap();
    assert_eq!(client.get(b.http("/get")).send().await.unwrap().status(), 200);
    let error = failure(client.get(b.http("/get")).proxy(dead).send().await);
    assert_eq!(error.kind(), Kind::Connect, "{error:#}");
}

async fn proxies_that_fail_say_so(b: Bench) {
    let client = b.client();
    let broken = proxy(&b, Port::ProxyBroken, "http", "");
    let error = failure(client.get(b.https("/get")).proxy(broken).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Proxy, Some(Phase::Proxy)));
    assert!(format!("{error:#}").contains("502"), "{error:#}");
    let limit = std::time::Duration::from_millis(200);
    for (port, scheme) in [(Port::ProxyStall, "http"), (Port::SocksStall, "socks5")] {
        let stalled = proxy(&b, port, scheme, "");
        let call = client.get(b.https("/get")).proxy(stalled).tls_timeout(limit);
        let error = failure(call.send().await);
        assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Proxy)), "{error:#}");
    }
}

async fn tls_versions_and_client_certificates(b: Bench) {
    let client = b.client();
    for (port, version) in [(Port::Tls12, "TLSv1.2"), (Port::Tls13, "TLSv1.3")] {
        let url = b.origin.url(port, "/get").unwrap();
        let response = client.get(url).send().await.unwrap();
        assert_eq!(response.tls().unwrap().version, version);
    }
    let only13 = TlsConfig::builder()
        .add_ca(b.origin.ca_pem().as_bytes())
        .min_version(mimus::tls::TlsVersion::Tls13)
        .build()
        .unwrap();
    let url = b.origin.url(Port::Tls12, "/get").unwrap();
    let error = failure(client.get(url).tls(only13).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Tls, Some(Phase::Tls)), "{error:#}");

    let url = b.origin.url(Port::TlsClientCert, "/get").unwrap();
    let error = failure(client.get(&url).send().await);
    assert!(matches!(error.kind(), Kind::Tls | Kind::Closed | Kind::Io), "{error:#}");
    let identity = b.origin.client_identity();
    let known = TlsConfig::builder()
        .add_ca(b.origin.ca_pem().as_bytes())
        .identity(identity.cert_pem.as_bytes(), identity.key_pem.as_bytes())
        .build()
        .unwrap();
    assert_eq!(client.get(&url).tls(known).send().await.unwrap().status(), 200);
}

async fn tls_sessions_are_resumed(b: Bench) {
    let client = b.client();
    for resumed in [false, true] {
        let response = client.get(b.https("/get")).send().await.unwrap();
        assert_eq!(response.tls().unwrap().resumed, resumed);
        response.bytes().await.unwrap();
        client.close_idle();
    }
    let url = b.origin.url(Port::TlsEarlyData, "/get").unwrap();
    let early = b.builder().early_data(true).build().unwrap();
    for sent_early in [false, true] {
        let response = early.get(&url).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let accepted = response.connection().tls.as_ref().unwrap().early_data;
        assert_eq!(accepted, sent_early);
        response.bytes().await.unwrap();
        early.close_idle();
    }
    // A request that changes something is never sent early.
    let response = early.post(url.replace("/get", "/post")).body("x").send().await.unwrap();
    assert!(!response.connection().tls.as_ref().unwrap().early_data);
}
