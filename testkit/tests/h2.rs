//! The routes over HTTP/2, seen with the crate `h2`.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::two::*;
use common::{eventually, fetch, origin};
use h2::Reason;
use mimus_testkit::{Origin, Port, bad_routes, routes};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[test]
fn every_route_answers_as_over_http_1_or_says_that_it_needs_it() {
    let origin = origin();
    block_on(async {
        for route in routes() {
            let plain = route.methods.is_empty() || route.methods.contains(&"GET");
            // Over HTTP/1 the reader below takes a 1xx for the answer.
            let early = ["/early-hints", "/continue"].contains(&route.pattern);
            if route.pattern.contains(['{', '*']) || !plain || early {
                continue;
            }
            let mut send = connect(&origin).await;
            let path = format!("{}?count=1&duration=0", route.pattern);
            let got = get(&mut send, &path).await;
            if ["/http10", "/until-close"].contains(&route.pattern) {
                let error = got.unwrap_err();
                assert_eq!(reason(&error), Some(Reason::HTTP_1_1_REQUIRED), "{path}");
                continue;
            }
            let (got, one) = (got.unwrap(), fetch(&origin, &path));
            assert_eq!(got.status(), one.status, "{path}");
            let names = |name: &str| got.head.headers().get_all(name).iter().count();
            assert_eq!(names("content-type"), one.headers("content-type").len(), "{path}");
            // What says back the request or the version differs in more than its bytes.
            let told = one.header("content-type") == Some("application/json");
            assert!(told || got.body == one.body, "{path}");
        }
    });
}

#[test]
fn rows_about_the_bytes_of_http_1_are_refused_and_leave_the_origin_well() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        for path in ["/bad/bare-lf", "/bad/chunk-plus", "/bad/truncate", "/bad/close-after"] {
            assert!(bad_routes().any(|route| route.pattern == path), "{path}");
            let error = get(&mut send, path).await.unwrap_err();
            assert_eq!(reason(&error), Some(Reason::HTTP_1_1_REQUIRED), "{path}");
        }
        let bomb = get(&mut send, "/bad/bomb-zstd?mib=9").await.unwrap();
        assert_eq!(bomb.header("content-encoding"), Some("zstd"));
        assert!(bomb.body.len() < 400, "{}", bomb.body.len());
    });
    let connections = origin.connections();
    assert_eq!(connections.len(), 1);
    assert_eq!(connections[0].h2.as_ref().unwrap().streams, 5);
}

#[test]
fn requests_are_seen_with_their_streams_and_said_back() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        let echo = ask(&mut send, request("POST", "/post?a=b"), b"{\"x\":1}").await.unwrap();
        let said = echo.json();
        assert_eq!((said["version"].as_str(), &said["json"]["x"]), (Some("HTTP/2"), &1.into()));
        assert_eq!(said["url"], "http://origin.test/post?a=b");
        get(&mut send, "/get").await.unwrap();
    });
    let seen = origin.requests();
    assert_eq!(seen.iter().map(|one| (one.seq, one.stream)).collect::<Vec<_>>(), [(1, 1), (2, 3)]);
    assert_eq!(seen[0].authority.as_deref(), Some("origin.test"));
    assert_eq!((seen[0].version, seen[0].body_len, seen[0].body_complete), ("HTTP/2", 7, true));
}

#[test]
fn trailers_go_both_ways_and_1xx_comes_first() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        let got = get(&mut send, "/trailers").await.unwrap();
        assert_eq!((got.trailer("x-count"), got.body.as_slice()), (Some("2"), &b"one, two\n"[..]));

        let (response, mut out) = send.send_request(request("POST", "/upload"), false).unwrap();
        out.send_data(Bytes::from_static(b"abc"), false).unwrap();
        out.send_trailers([("x-sum".parse().unwrap(), "9".parse().unwrap())].into_iter().collect())
            .unwrap();
        let got = collect(response.await.unwrap()).await.unwrap();
        assert_eq!(got.json()["trailers"][0], "x-sum: 9");

        let (mut response, _) = send.send_request(request("GET", "/early-hints"), true).unwrap();
        let hint = poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
        assert_eq!(hint.status(), 103);
        assert_eq!(collect(response.await.unwrap()).await.unwrap().status(), 200);
    });
}

#[test]
fn a_body_waits_for_the_window_and_an_upload_for_its_reader() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        let (response, _) = send.send_request(request("GET", "/bytes/1000000"), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let mut held = 0;
        while held < 65_535 {
            held += body.data().await.unwrap().unwrap().len();
        }
        let more = tokio::time::timeout(Duration::from_millis(100), body.data()).await;
        assert!(more.is_err(), "beyond the window");
        body.flow_control().release_capacity(held).unwrap();
        assert!(body.data().await.unwrap().is_ok());
        drop(body);
        // Credit of the connection that the other stream holds does not stop this one for ever.
        assert_eq!(get(&mut send, "/bytes/200000").await.unwrap().body.len(), 200_000);

        let (_response, mut out) =
            send.send_request(request("POST", "/bad/upload-stall?ms=60000"), false).unwrap();
        let mut sent = 0;
        loop {
            out.reserve_capacity(1 << 20);
            let room = poll_fn(|cx| out.poll_capacity(cx));
            let Ok(room) = tokio::time::timeout(Duration::from_millis(100), room).await else {
                break;
            };
            let piece = vec![0; room.unwrap().unwrap()];
            sent += piece.len();
            out.send_data(piece.into(), false).unwrap();
        }
        assert_eq!(sent, 65_535);
    });
}

#[test]
fn a_tunnel_says_back_each_piece_and_can_be_refused() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        // The server's settings allow it, once they are here.
        get(&mut send, "/get").await.unwrap();
        assert!(send.is_extended_connect_protocol_enabled());
        let with = |path: &str| {
            let mut request = request("CONNECT", path);
            request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
            request
        };
        let (response, mut out) = send.send_request(with("/echo-tunnel"), false).unwrap();
        let mut back = response.await.unwrap();
        assert_eq!(back.headers()["x-protocol"], "websocket");
        for piece in ["one", "two"] {
            out.send_data(piece.into(), false).unwrap();
            assert_eq!(back.body_mut().data().await.unwrap().unwrap(), piece);
        }
        out.send_data(Bytes::new(), true).unwrap();
        let end = back.body_mut().data().await;
        assert!(end.is_none_or(|piece| piece.unwrap().is_empty()));
        let (response, _out) = send.send_request(with("/refused-tunnel"), false).unwrap();
        assert_eq!(response.await.unwrap().status(), 403);
    });
}

#[test]
fn resets_are_counted_and_streams_by_the_hundred_share_a_connection() {
    let origin = origin();
    block_on(async {
        let mut send = connect(&origin).await;
        let mut waiting = Vec::new();
        for _ in 0..500 {
            poll_fn(|cx| send.poll_ready(cx)).await.unwrap();
            waiting.push(send.send_request(request("GET", "/delay/0.2"), true).unwrap());
        }
        for (_, out) in waiting.iter_mut().step_by(5) {
            out.send_reset(Reason::CANCEL);
        }
        for (at, (response, _out)) in waiting.into_iter().enumerate() {
            if at % 5 != 0 {
                let got = collect(response.await.unwrap()).await.unwrap();
                assert_eq!(got.status(), 200);
            }
        }
        get(&mut send, "/get").await.unwrap();
    });
    let seen = origin.connections()[0].h2.clone().unwrap();
    assert_eq!((seen.streams, seen.last_stream, seen.resets.len()), (501, 1001, 100));
    assert!(seen.resets.iter().all(|&(_, code)| code == u32::from(Reason::CANCEL)));
    assert_eq!(origin.accepted(Port::H2c), 1);
}

#[test]
fn close_is_a_go_away_and_a_client_that_leaves_is_noticed() {
    let origin = origin();
    block_on(async {
        let stream = TcpStream::connect(origin.addr(Port::H2c).unwrap()).await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        let ended = tokio::spawn(connection);
        let mut send = send.ready().await.unwrap();
        assert_eq!(get(&mut send, "/close").await.unwrap().body, b"bye\n");
        ended.await.unwrap().unwrap();

        let mut send = connect(&origin).await;
        let (response, _) = send.send_request(request("GET", "/delay/60"), true).unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(100), response).await;
        assert!(waiting.is_err());
    });
    eventually("both are gone", || origin.open_connections() == 0);
}

async fn tls(origin: &Origin, port: Port, offer: &[&str]) -> std::io::Result<Option<Vec<u8>>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(origin.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offer.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(origin.addr(port)?).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    if chosen.as_deref() == Some(b"h2") {
        let got = get(&mut over(stream).await, "/get").await.unwrap();
        assert_eq!(got.json()["sni"], "localhost");
    }
    Ok(chosen)
}

#[test]
fn alpn_chooses_as_the_port_has_it() {
    let origin = origin();
    let (two, one) = (Some(b"h2".to_vec()), Some(b"http/1.1".to_vec()));
    block_on(async {
        assert_eq!(tls(&origin, Port::H2, &["h2", "http/1.1"]).await.unwrap(), two);
        assert!(tls(&origin, Port::H2, &["http/1.1"]).await.is_err());
        assert_eq!(tls(&origin, Port::H2OrHttp1, &["http/1.1", "h2"]).await.unwrap(), two);
        assert_eq!(tls(&origin, Port::H2OrHttp1, &["http/1.1"]).await.unwrap(), one);
        assert_eq!(tls(&origin, Port::H2OrHttp1, &[]).await.unwrap(), None);
        assert_eq!(tls(&origin, Port::Https, &["h2", "http/1.1"]).await.unwrap(), one);
    });
}
