//! WebSockets: opened, talked on, closed, over HTTP/1.1 and over HTTP/2.

use std::{
    future::poll_fn,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use futures_util::{SinkExt as _, StreamExt as _, future::join};
use mimus::{
    Client, Kind, Proxy, Version,
    ws::{Builder, CloseCode, DeflateOffer, Event, Message, MessageRef, WebSocket},
};
use mimus_testkit::{Port, SeenWs};

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    a_socket_says_back_what_it_is_told,
    the_handshake_says_what_it_is_told_to,
    a_refused_socket_keeps_its_response,
    redirects_and_credentials_hold,
    a_proxy_is_asked_for_a_tunnel,
    a_socket_closes_in_order_from_both_sides,
    a_server_that_never_answers_is_left_in_time,
    silence_ends_a_socket_that_minds_it,
    a_server_that_answers_pings_is_kept,
    pings_are_answered_and_given_out,
    a_dropped_socket_closes_its_connection,
    a_send_that_is_dropped_leaves_no_half_frame,
    a_reader_answers_pings_while_the_writer_is_stuck,
    a_stream_and_a_sink,
    what_was_read_is_had_without_a_wait,
    many_that_are_fed_go_out_together,
    compression_is_used_as_agreed,
    sockets_over_http2_share_a_connection,
    a_socket_shares_a_connection_that_is_open,
    a_lost_socket_is_made_anew,
);

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a server that does not answer is given.
const SHORT: Duration = Duration::from_millis(200);

fn socket(b: &Bench, client: &Client, port: Port, path: &str) -> Builder {
    let version = match port {
        Port::H2c | Port::H2 => Version::HTTP_2,
        _ => Version::HTTP_11,
    };
    let url = b.origin.url(port, path).unwrap();
    let builder = client.websocket(url).version(version).idle_timeout(PATIENCE);
    builder.request(|request| request.timeout(PATIENCE))
}

async fn open(b: &Bench, path: &str) -> WebSocket {
    socket(b, &b.client(), Port::Http, path).connect().await.unwrap()
}

/// What came over the last socket.
fn seen(b: &Bench) -> SeenWs {
    b.origin.requests().into_iter().rev().find_map(|seen| seen.ws).expect("a socket was opened")
}

/// Waits until the origin has read it all, and gives what it read.
async fn seen_to_the_end(b: &Bench) -> SeenWs {
    b.all_closed().await;
    seen(b)
}

async fn a_socket_says_back_what_it_is_told(b: Bench) {
    let client = b.client();
    for port in [Port::Http, Port::Https, Port::H2c, Port::H2] {
        let mut socket = socket(&b, &client, port, "/ws/echo").connect().await.unwrap();
        let handshake = socket.handshake();
        let http2 = handshake.version() == Version::HTTP_2;
        assert_eq!(http2, matches!(port, Port::H2c | Port::H2));
        assert_eq!(handshake.status().as_u16(), if http2 { 200 } else { 101 });
        assert_eq!(handshake.connection().tls.is_some(), matches!(port, Port::Https | Port::H2));
        for size in [0, 1, 125, 126, 65_535, 65_536, 1_000_003] {
            let text: String = "grün".chars().cycle().take(size).collect();
            socket.send_text(&text).await.unwrap();
            match socket.recv().await.unwrap() {
                Some(Message::Text(back)) => assert_eq!(*back, *text),
                other => panic!("{other:?}"),
            }
            let bytes: Vec<u8> = (0..size).map(|n| (n * 7) as u8).collect();
            socket.send_binary(&bytes).await.unwrap();
            match socket.recv_ref().await.unwrap() {
                Some(MessageRef::Binary(back)) => assert_eq!(back, bytes),
                other => panic!("{other:?}"),
            }
        }
        let close = socket.close(CloseCode::NORMAL, "done").await.unwrap().unwrap();
        assert_eq!((close.code, &*close.reason), (CloseCode::NORMAL, "done"));
        assert!(socket.recv().await.unwrap().is_none());
        let seen = seen(&b);
        assert_eq!((seen.messages, seen.broken), (14, vec![]), "{port:?}");
        assert_eq!(seen.close, Some((Some(1000), "done".to_owned())));
    }
}

async fn the_handshake_says_what_it_is_told_to(b: Bench) {
    for port in [Port::Http, Port::H2c] {
        let builder = socket(&b, &b.client(), port, "/ws/echo?headers=1&q=%20");
        let builder = builder.header("X-Bird", "wren").origin("https://page.test");
        let mut socket = builder.subprotocols(["mqtt", "chat"]).connect().await.unwrap();
        assert_eq!(socket.subprotocol(), Some("chat"));
        let Some(Message::Text(said)) = socket.recv().await.unwrap() else {
            panic!("no text");
        };
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["target"], "/ws/echo?headers=1&q=%20");
        let value = |name: &str| {
            let lines = said["headers"].as_array().unwrap().iter();
            let mut lines =
                lines.filter(|line| line[0].as_str().unwrap().eq_ignore_ascii_case(name));
            let value = lines.next().map(|line| line[1].as_str().unwrap().to_owned());
            assert!(lines.next().is_none(), "{name} twice");
            value
        };
        assert_eq!(value("x-bird").as_deref(), Some("wren"));
        assert_eq!(value("origin").as_deref(), Some("https://page.test"));
        assert_eq!(value("sec-websocket-version").as_deref(), Some("13"));
        assert_eq!(value("sec-websocket-protocol").unwrap().replace(' ', ""), "mqtt,chat");
        assert_eq!(value("sec-websocket-extensions"), None);
        // RFC 8441 section 5: the stream has no key, and no connection to upgrade.
        let upgrades = port == Port::Http;
        for name in ["upgrade", "connection", "sec-websocket-key"] {
            assert_eq!(value(name).is_some(), upgrades, "{name}");
        }
    }
}

async fn a_refused_socket_keeps_its_response(b: Bench) {
    let client = b.client();
    for (port, path, status) in [
        (Port::Http, "/ws/refuse?status=418", 418),
        (Port::H2c, "/ws/refuse?status=503", 503),
        // What is no socket at all.
        (Port::Http, "/json", 200),
    ] {
        let error = socket(&b, &client, port, path).connect().await.unwrap_err();
        assert!(matches!(error.error().kind(), Kind::Status(_)), "{error:#}");
        let response = error.into_http().unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert!(!response.text().await.unwrap().is_empty());
    }
    // The bodies were read: what they came on can be used again.
    assert_eq!((b.origin.accepted(Port::Http), client.pool_stats().in_use), (1, 0));
    let url = format!("ws://{}/", crate::support::dead_port());
    let error = client.websocket(url).connect().await.unwrap_err();
    assert_eq!((error.error().kind(), error.response().is_none()), (Kind::Connect, true));
}

async fn redirects_and_credentials_hold(b: Bench) {
    let mut moved = open(&b, "/ws/redirect?status=307").await;
    moved.send_text("here").await.unwrap();
    assert!(matches!(moved.recv().await.unwrap(), Some(Message::Text(_))));
    let builder = socket(&b, &b.client(), Port::Http, "/ws/redirect?status=302");
    let builder = builder.request(|request| request.redirect(mimus::redirect::Policy::none()));
    let error = builder.connect().await.unwrap_err();
    assert_eq!(error.error().kind(), Kind::Status(http::StatusCode::FOUND));
    for port in [Port::Http, Port::H2c] {
        let builder = socket(&b, &b.client(), port, "/ws/basic/joe/secret");
        let mut socket =
            builder.request(|request| request.basic_auth("joe", "secret")).connect().await.unwrap();
        socket.close(CloseCode::NORMAL, "").await.unwrap();
    }
}

/// RFC 6455 section 4.1: a proxy is asked to open a connection, not to forward the handshake.
async fn a_proxy_is_asked_for_a_tunnel(b: Bench) {
    let proxy = Proxy::parse(&b.origin.url(Port::Proxy, "").unwrap()).unwrap();
    for port in [Port::Http, Port::Https] {
        b.origin.reset();
        let builder = socket(&b, &b.client(), port, "/ws/echo");
        let builder = builder.request(|request| request.proxy(proxy.clone()));
        let mut socket = builder.connect().await.unwrap();
        socket.send_text("through").await.unwrap();
        assert!(matches!(socket.recv().await.unwrap(), Some(Message::Text(_))));
        let methods: Vec<_> = b.origin.requests().into_iter().map(|seen| seen.method).collect();
        assert_eq!(methods, ["CONNECT", "GET"], "{port:?}");
    }
}

async fn a_socket_closes_in_order_from_both_sides(b: Bench) {
    for port in [Port::Http, Port::H2c] {
        let path = "/ws/close?code=3001&reason=enough";
        let mut socket = socket(&b, &b.client(), port, path).connect().await.unwrap();
        match socket.recv().await.unwrap() {
            Some(Message::Close(Some(close))) => {
                assert_eq!((close.code, &*close.reason), (CloseCode(3001), "enough"));
            }
            other => panic!("{other:?}"),
        }
        assert!(socket.recv().await.unwrap().is_none());
        assert_eq!(socket.close_reason().unwrap().code, CloseCode(3001));
        assert_eq!(failure(socket.send_text("late").await).kind(), Kind::Closed);
    }
    let mut socket = open(&b, "/ws/drop").await;
    let error = failure(socket.recv().await);
    assert!(matches!(error.kind(), Kind::Closed | Kind::Io), "{error:#}");
    // A code that is not one to be sent is the caller's mistake.
    let mut socket = open(&b, "/ws/echo").await;
    assert_eq!(failure(socket.close(CloseCode(1006), "").await).kind(), Kind::Request);
}

async fn a_server_that_never_answers_is_left_in_time(b: Bench) {
    for port in [Port::Http, Port::H2c] {
        let builder = socket(&b, &b.client(), port, "/ws/silent").close_timeout(SHORT);
        let mut socket = builder.connect().await.unwrap();
        let started = Instant::now();
        let error = failure(socket.close(CloseCode::NORMAL, "").await);
        assert_eq!(error.kind(), Kind::Timeout, "{error:#}");
        assert!(started.elapsed() >= SHORT);
        drop(socket);
        assert_eq!(seen(&b).close, Some((Some(1000), String::new())));
    }
    b.all_closed().await;
}

async fn silence_ends_a_socket_that_minds_it(b: Bench) {
    let silent = || socket(&b, &b.client(), Port::Http, "/ws/silent");
    let mut idle = silent().idle_timeout(SHORT).connect().await.unwrap();
    assert_eq!(failure(idle.recv().await).kind(), Kind::Timeout);
    let mut asked = silent().ping_interval(SHORT / 4).pong_timeout(SHORT).connect().await.unwrap();
    assert_eq!(failure(asked.recv().await).kind(), Kind::Timeout);
    drop((idle, asked));
    assert_eq!(seen_to_the_end(&b).await.pings, 1);
}

async fn a_server_that_answers_pings_is_kept(b: Bench) {
    let builder = socket(&b, &b.client(), Port::Http, "/ws/echo");
    let mut socket = builder.ping_interval(SHORT / 10).connect().await.unwrap();
    for _ in 0..3 {
        assert!(matches!(socket.recv().await.unwrap(), Some(Message::Pong(_))));
    }
    socket.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(seen(&b).pings >= 3);
}

async fn pings_are_answered_and_given_out(b: Bench) {
    for port in [Port::Http, Port::H2c] {
        let mut socket = socket(&b, &b.client(), port, "/ws/ping?n=4").connect().await.unwrap();
        let mut came = Vec::new();
        while let Some(message) = socket.recv().await.unwrap() {
            match message {
                Message::Ping(payload) => came.push(String::from_utf8(payload.to_vec()).unwrap()),
                Message::Text(text) => came.push(text.to_string()),
                Message::Close(close) => assert_eq!(close.unwrap().code, CloseCode::NORMAL),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(came, ["0", "1", "2", "3", "4 pongs"]);
        assert_eq!(seen(&b).pongs, [b"0", b"1", b"2", b"3"]);
    }
}

async fn a_dropped_socket_closes_its_connection(b: Bench) {
    let client = b.client();
    let open = socket(&b, &client, Port::Http, "/ws/echo").connect().await.unwrap();
    assert_eq!(client.pool_stats().idle, 0);
    drop(open);
    b.all_closed().await;
    assert_eq!((client.pool_stats().idle, client.pool_stats().in_use), (0, 0));
}

/// A future that is given up in the middle of a large message.
async fn a_send_that_is_dropped_leaves_no_half_frame(b: Bench) {
    if !b.concurrent() {
        // There, a call that has begun is not given up.
        return;
    }
    for port in [Port::Http, Port::H2c] {
        let path = "/ws/stuck?n=0&ms=0&hold=300";
        let mut socket = socket(&b, &b.client(), port, path).connect().await.unwrap();
        let large = vec![7; 1 << 18];
        let mut begun = 0;
        loop {
            let mut send = pin!(socket.send_binary(&large));
            begun += 1;
            if poll_fn(|cx| Poll::Ready(send.as_mut().poll(cx))).await.is_pending() {
                break;
            }
        }
        socket.send_text("and after it").await.unwrap();
        socket.close(CloseCode::NORMAL, "").await.unwrap();
        let seen = seen(&b);
        assert_eq!((seen.cut, seen.broken), (false, vec![]), "{port:?}");
        // The one that was given up went out whole, or not at all.
        assert!([begun, begun + 1].contains(&seen.messages), "{} of {begun}", seen.messages);
    }
}

async fn a_reader_answers_pings_while_the_writer_is_stuck(b: Bench) {
    if !b.concurrent() {
        return;
    }
    for port in [Port::Http, Port::H2c] {
        let path = "/ws/stuck?n=3&ms=100&hold=200";
        let socket = socket(&b, &b.client(), port, path).connect().await.unwrap();
        let (mut receiver, mut sender) = socket.split();
        let large = vec![7; 1 << 18];
        let writer = async {
            // More than fits anywhere between the two.
            for _ in 0..64 {
                sender.send_binary(&large).await.unwrap();
            }
            sender.close(CloseCode::NORMAL, "").await.unwrap();
        };
        let reader = async {
            let mut pings = 0;
            while let Some(message) = receiver.recv().await.unwrap() {
                pings += u32::from(matches!(message, Message::Ping(_)));
            }
            pings
        };
        assert_eq!(join(writer, reader).await.1, 3);
        let seen = seen(&b);
        assert_eq!((seen.messages, seen.pongs.len(), seen.broken), (64, 3, vec![]), "{port:?}");
    }
}

async fn a_stream_and_a_sink(b: Bench) {
    let mut socket = open(&b, "/ws/echo").await;
    let words = ["one", "two", "three"].map(|word| Message::Text(word.into()));
    socket.send_all(&mut futures_util::stream::iter(words.clone().map(Ok))).await.unwrap();
    for word in words {
        assert_eq!(socket.next().await.unwrap().unwrap(), word);
    }
    futures_util::SinkExt::close(&mut socket).await.unwrap();
    assert!(socket.next().await.is_none());
    assert_eq!(seen(&b).close, Some((Some(1000), String::new())));
}

async fn what_was_read_is_had_without_a_wait(b: Bench) {
    for port in [Port::Http, Port::H2c] {
        let path = "/ws/count?n=1000&stay=1";
        let socket = socket(&b, &b.client(), port, path).connect().await.unwrap();
        let (mut receiver, mut sender) = socket.split();
        let mut waits = 0;
        for n in 0..1000 {
            let message = match receiver.try_recv().unwrap() {
                Some(message) => message,
                None => {
                    waits += 1;
                    receiver.recv().await.unwrap().unwrap()
                }
            };
            assert_eq!(message, Message::Text(n.to_string().into()));
        }
        assert!(waits < 500, "{waits} waits for what came in a few reads");
        assert_eq!(receiver.try_recv().unwrap(), None);
        sender.close(CloseCode::NORMAL, "").await.unwrap();
        while receiver.recv().await.unwrap().is_some() {}
        // It is over, and not an error.
        assert_eq!(receiver.try_recv().unwrap(), None);
    }
}

async fn many_that_are_fed_go_out_together(b: Bench) {
    for port in [Port::Http, Port::H2c] {
        let mut socket = socket(&b, &b.client(), port, "/ws/echo").connect().await.unwrap();
        for n in 0..1000 {
            socket.feed_text(&n.to_string()).await.unwrap();
        }
        socket.flush().await.unwrap();
        for n in 0..1000 {
            let back = socket.recv().await.unwrap();
            assert_eq!(back, Some(Message::Text(n.to_string().as_str().into())));
        }
    }
    let mut socket = open(&b, "/ws/count?n=10000").await;
    for n in 0..10_000 {
        match socket.recv_ref().await.unwrap() {
            Some(MessageRef::Text(text)) => assert_eq!(text, n.to_string()),
            other => panic!("{other:?}"),
        }
    }
}

async fn compression_is_used_as_agreed(b: Bench) {
    let offered = |path: &str| {
        let builder = socket(&b, &b.client(), Port::Http, path);
        builder.deflate(DeflateOffer::default()).connect()
    };
    let plain = offered("/ws/echo").await.unwrap();
    assert!(plain.handshake().deflate().is_none());
    for how in ["yes", "reset"] {
        let mut socket = offered(&format!("/ws/echo?deflate={how}")).await.unwrap();
        assert!(socket.handshake().deflate().is_some());
        let text = "the same again and ".repeat(500);
        for _ in 0..5 {
            socket.send_text(&text).await.unwrap();
            assert_eq!(socket.recv().await.unwrap(), Some(Message::Text(text.as_str().into())));
        }
        let seen = seen(&b);
        assert_eq!((seen.messages, seen.compressed, seen.broken), (5, 5, vec![]), "{how}");
        assert!(seen.bytes < text.len() as u64, "{how}: {}", seen.bytes);
    }
}

async fn sockets_over_http2_share_a_connection(b: Bench) {
    let client = b.client();
    let mut sockets = Vec::new();
    for _ in 0..10 {
        sockets.push(socket(&b, &client, Port::H2c, "/ws/echo").connect().await.unwrap());
    }
    for (n, socket) in sockets.iter_mut().enumerate() {
        socket.send_text(&n.to_string()).await.unwrap();
    }
    for (n, socket) in sockets.iter_mut().enumerate().rev() {
        let back = socket.recv().await.unwrap();
        assert_eq!(back, Some(Message::Text(n.to_string().as_str().into())));
    }
    let url = b.origin.url(Port::H2c, "/get").unwrap();
    client.get(url).version(Version::HTTP_2).send().await.unwrap();
    assert_eq!(b.origin.accepted(Port::H2c), 1);
}

async fn a_socket_shares_a_connection_that_is_open(b: Bench) {
    let client = b.client();
    let begin = || {
        let builder = client.websocket(b.origin.url(Port::H2OrHttp1, "/ws/echo").unwrap());
        builder.share_http2().connect()
    };
    let mut first = begin().await.unwrap();
    assert_eq!(first.handshake().version(), Version::HTTP_11);
    let url = b.origin.url(Port::H2OrHttp1, "/get").unwrap();
    client.get(url).send().await.unwrap().bytes().await.unwrap();
    let mut second = begin().await.unwrap();
    assert_eq!(second.handshake().version(), Version::HTTP_2);
    for socket in [&mut first, &mut second] {
        socket.send_text("both").await.unwrap();
        assert_eq!(socket.recv().await.unwrap(), Some(Message::Text("both".into())));
    }
    assert_eq!(b.origin.accepted(Port::H2OrHttp1), 2);
}

async fn a_lost_socket_is_made_anew(b: Bench) {
    let builder = socket(&b, &b.client(), Port::Http, "/ws/drop?after=1");
    let reconnecting = builder.reconnecting().unwrap();
    let mut socket = reconnecting.backoff(Duration::from_millis(1), Duration::from_millis(2));
    for _ in 0..3 {
        assert!(matches!(socket.next_event().await.unwrap(), Some(Event::Connected)));
        socket.send(Message::Text("again".into())).await.unwrap();
        assert!(matches!(socket.next_event().await.unwrap(), Some(Event::Message(_))));
        assert!(matches!(socket.next_event().await.unwrap(), Some(Event::Lost(Some(_)))));
    }
    assert_eq!(b.origin.accepted(Port::Http), 3);
}

/// The calls that block, and their halves on two threads.
#[test]
fn blocking_calls_say_the_same() {
    let origin = mimus_testkit::Origin::start().unwrap();
    let client = mimus::blocking::Client::builder().no_proxy().build().unwrap();
    let mut socket = client.websocket(origin.http_url("/ws/echo")).connect().unwrap();
    socket.send_text("one").unwrap();
    assert_eq!(socket.recv().unwrap(), Some(Message::Text("one".into())));
    let (receiver, mut sender) = socket.split();
    let reader = std::thread::spawn(move || {
        receiver.map(Result::unwrap).filter(|message| matches!(message, Message::Text(_))).count()
    });
    for n in 0..100 {
        sender.send_text(&n.to_string()).unwrap();
    }
    sender.close(CloseCode::NORMAL, "").unwrap();
    assert_eq!(reader.join().unwrap(), 100);
    let refused = client.websocket(origin.http_url("/ws/refuse")).connect().unwrap_err();
    assert_eq!(refused.into_http().unwrap().text().unwrap(), "no socket here\n");
}
