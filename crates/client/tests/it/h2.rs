//! HTTP/2: many exchanges on one connection.

use mimus::{Client, Kind, Version};
use mimus_testkit::Port;

use crate::support::{Bench, on_every_runtime};

on_every_runtime!(
    a_get_by_prior_knowledge_and_by_alpn,
    calls_one_after_the_other_share_a_connection,
    a_body_goes_both_ways,
    a_server_without_http2_is_told_apart,
);

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
    for (port, version) in
        [(Port::H2, Version::HTTP_2), (Port::H2OrHttp1, Version::HTTP_2), (Port::Https, Version::HTTP_11)]
    {
        let response = b.client().get(b.origin.url(port, "/get").unwrap()).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, version), "{port:?}");
    }
    let pinned = b.client().get(b.origin.url(Port::H2OrHttp1, "/get").unwrap()).version(Version::HTTP_11);
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
