//! Extended CONNECT (RFC 8441): a stream as a byte stream.

use std::{
    future::{Future, poll_fn},
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::Poll,
    time::{Duration, Instant},
};

use futures_util::{
    future::join,
    io::{AsyncReadExt as _, AsyncWriteExt as _},
};
use mimus::{
    Client, Kind, Method, Protocol, RequestBuilder, SocketOptions, Upgraded, Version,
    h2::StreamError,
};
use mimus_testkit::Port;

use crate::{
    h2_peer::{self as peer, Peer, serve},
    support::{Bench, failure, on_every_runtime},
};

on_every_runtime!(
    a_tunnel_says_back_what_is_said,
    a_tunnel_shares_its_connection,
    a_tunnel_may_be_refused,
    what_no_tunnel_can_be_is_said_before_anything_is_sent,
    a_server_without_http2_offers_no_tunnel,
    a_server_that_gives_no_leave_offers_no_tunnel,
    the_servers_settings_are_waited_for,
    a_call_that_nobody_polls_holds_up_no_tunnel,
    a_connection_that_ends_before_its_settings_is_an_error,
    both_directions_move_at_once,
    a_dropped_tunnel_is_reset,
    an_ended_tunnel_is_not_reset,
    a_server_that_resets_is_a_reset_connection,
    what_the_server_does_not_take_waits,
    what_is_flushed_is_written_though_the_server_is_silent,
    an_extension_of_a_request_names_the_protocol,
);

/// SETTINGS_ENABLE_CONNECT_PROTOCOL and SETTINGS_INITIAL_WINDOW_SIZE.
const TUNNELS: (u16, u32) = (8, 1);
const WIDE: (u16, u32) = (4, 0x7fff_ffff);

fn ask(client: &Client, url: &str) -> RequestBuilder {
    client.request(Method::CONNECT, url).protocol("websocket").timeout(Duration::from_secs(20))
}

fn url(b: &Bench, port: Port, path: &str) -> String {
    b.origin.url(port, path).unwrap()
}

async fn open(b: &Bench, url: &str) -> Upgraded {
    ask(&b.client(), url).send().await.unwrap().upgrade().unwrap()
}

async fn echo(stream: &mut Upgraded, text: &[u8]) {
    stream.write_all(text).await.unwrap();
    stream.flush().await.unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(back, text);
}

async fn a_tunnel_says_back_what_is_said(b: Bench) {
    for port in [Port::H2c, Port::H2, Port::H2OrHttp1] {
        let response = ask(&b.client(), &url(&b, port, "/echo-tunnel")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
        assert_eq!(response.header("x-protocol"), Some("websocket"));
        let mut stream = response.upgrade().unwrap();
        assert_eq!(stream.connection().tls.is_some(), port != Port::H2c);
        echo(&mut stream, b"one").await;
        echo(&mut stream, &[7; 10_000]).await;
        // Half-closed: it is still listened to.
        stream.write_all(b"last").await.unwrap();
        stream.close().await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"last");
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end stays the end");
        let error = stream.write(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

async fn a_tunnel_shares_its_connection(b: Bench) {
    let client = b.client();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let opened = ask(&client, &url(&b, Port::H2, "/echo-tunnel")).send().await.unwrap();
        streams.push(opened.upgrade().unwrap());
        let body = client.get(url(&b, Port::H2, "/bytes/100000")).send().await.unwrap();
        assert_eq!(body.bytes().await.unwrap().len(), 100_000);
        for stream in &mut streams {
            echo(stream, b"still there").await;
        }
    }
    assert_eq!(b.origin.accepted(Port::H2), 1);
    assert_eq!(client.pool_stats().in_use, 1);
    drop(streams);
    assert_eq!(client.pool_stats().in_use, 0, "it is idle");
}

async fn a_tunnel_may_be_refused(b: Bench) {
    let client = b.client();
    let response = ask(&client, &url(&b, Port::H2c, "/refused-tunnel")).send().await.unwrap();
    assert_eq!(response.status(), 403);
    assert_eq!(response.text().await.unwrap(), "no tunnel\n");
    let response = ask(&client, &url(&b, Port::H2c, "/refused-tunnel")).send().await.unwrap();
    assert_eq!(failure(response.upgrade()).kind(), Kind::Protocol);
    assert_eq!(b.origin.accepted(Port::H2c), 1);
}

async fn what_no_tunnel_can_be_is_said_before_anything_is_sent(b: Bench) {
    let (client, url) = (b.client(), url(&b, Port::H2, "/echo-tunnel"));
    for wrong in [
        client.get(&url).protocol("websocket"),
        ask(&client, &url).version(Version::HTTP_11),
        ask(&client, &url).body("chirp"),
        ask(&client, &url).protocol("not a token"),
        ask(&client, &url).protocol(""),
    ] {
        let error = failure(wrong.send().await);
        assert_eq!((error.kind(), error.was_sent()), (Kind::Request, false), "{error:#}");
    }
    assert!(b.origin.requests().is_empty());
}

/// What is left of the attempt serves whoever does without.
async fn a_server_without_http2_offers_no_tunnel(b: Bench) {
    let client = b.client();
    let error = failure(ask(&client, &b.https("/echo-tunnel")).send().await);
    assert_eq!((error.kind(), error.was_sent()), (Kind::NotOffered, false), "{error:#}");
    client.get(b.https("/get")).send().await.unwrap();
    assert_eq!(b.origin.accepted(Port::Https), 1);
    let error = failure(ask(&client, &b.https("/")).version(Version::HTTP_2).send().await);
    assert!(matches!(error.kind(), Kind::Tls | Kind::Protocol), "{error:#}");
}

async fn a_server_that_gives_no_leave_offers_no_tunnel(b: Bench) {
    let url = serve(|_, mut peer| {
        peer.greet(&[]);
        let head = peer.hear_a(peer::HEADERS);
        peer.say(peer::HEADERS, peer::END_HEADERS | peer::END_STREAM, head.stream, peer::OK);
        peer.hear_out();
    });
    let client = b.client();
    let error = failure(ask(&client, &url).send().await);
    assert_eq!((error.kind(), error.was_sent()), (Kind::NotOffered, false), "{error:#}");
    // The first stream of the same connection: nothing was opened before.
    let response = client.get(&url).version(Version::HTTP_2).send().await.unwrap();
    assert!(response.reused() || response.status() == 200);
    let error = failure(ask(&client, &url).send().await);
    assert_eq!(error.kind(), Kind::NotOffered, "{error:#}");
}

/// Answers a tunnel, and says back what comes.
fn say_back(peer: &mut Peer) {
    let head = peer.hear_a(peer::HEADERS);
    assert_eq!(head.flags & peer::END_STREAM, 0, "a tunnel begins open");
    peer.say(peer::HEADERS, peer::END_HEADERS, head.stream, peer::OK);
    while let Some(frame) = peer.hear() {
        if frame.kind == peer::DATA {
            peer.say(peer::DATA, frame.flags, frame.stream, &frame.payload);
        }
    }
}

async fn the_servers_settings_are_waited_for(b: Bench) {
    let url = serve(|_, mut peer| {
        // What the client has to say before it hears anything, and then nothing for a while.
        peer.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while let Some(frame) = peer.hear() {
            assert!(matches!(frame.kind, peer::SETTINGS | peer::WINDOW_UPDATE), "{frame:?}");
        }
        peer.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        peer.greet(&[TUNNELS]);
        say_back(&mut peer);
    });
    echo(&mut open(&b, &url).await, b"patience").await;
}

/// The connection is another call's, whose owner does not come back to it.
async fn a_call_that_nobody_polls_holds_up_no_tunnel(b: Bench) {
    let seen = Arc::new(AtomicBool::new(false));
    let is_seen = Arc::clone(&seen);
    let url = serve(move |_, mut peer| {
        peer.hear_a(peer::HEADERS);
        seen.store(true, Ordering::SeqCst);
        // Mostly the tunnel waits, too, by then.
        std::thread::sleep(Duration::from_millis(100));
        peer.greet(&[TUNNELS]);
        say_back(&mut peer);
    });
    let client = b.client();
    let mut parked = pin!(client.get(&url).version(Version::HTTP_2).send());
    poll_fn(|cx| {
        let _ = parked.as_mut().poll(cx);
        if is_seen.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    let mut stream = ask(&client, &url).send().await.unwrap().upgrade().unwrap();
    echo(&mut stream, b"here").await;
}

async fn a_connection_that_ends_before_its_settings_is_an_error(b: Bench) {
    let url = serve(|_, mut peer| {
        peer.hear_a(peer::SETTINGS);
    });
    let error = failure(ask(&b.client(), &url).send().await);
    assert_eq!((error.kind(), error.was_sent()), (Kind::Closed, false), "{error:#}");
    let url = serve(|_, peer| {
        let mut peer = peer;
        peer.say(peer::DATA, 0, 1, b"HTTP/1.1 400 Bad Request");
        peer.hear_out();
    });
    let error = failure(ask(&b.client(), &url).send().await);
    assert_eq!((error.kind(), error.was_sent()), (Kind::Protocol, false), "{error:#}");
    // One that says nothing at all.
    let url = serve(|_, mut peer| peer.hear_out());
    let call = ask(&b.client(), &url).head_timeout(Duration::from_millis(100));
    let error = failure(call.send().await);
    assert!(error.is_timeout() && !error.was_sent(), "{error:#}");
}

async fn both_directions_move_at_once(b: Bench) {
    const LEN: usize = 3_000_000;
    let stream = open(&b, &url(&b, Port::H2, "/echo-tunnel")).await;
    let (mut from, mut to) = stream.split();
    let sent: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
    let mut back = Vec::new();
    let write = async {
        to.write_all(&sent).await.unwrap();
        to.close().await.unwrap();
    };
    let (read, ()) = join(from.read_to_end(&mut back), write).await;
    assert_eq!(read.unwrap(), LEN);
    assert!(back == sent);
}

/// Two tasks, on threads that run side by side.
#[test]
fn reader_and_writer_may_be_two_tasks() {
    crate::support::run(crate::support::Kind::TokioMulti, async |b: Bench| {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let client = b.client();
        let tunnels = (0..20).map(|_| {
            let opened = ask(&client, &url(&b, Port::H2, "/echo-tunnel")).send();
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(opened.await.unwrap().upgrade().unwrap());
                let writer = tokio::spawn(async move {
                    for n in 0..200_u32 {
                        to.write_all(&n.to_be_bytes().repeat(500)).await.unwrap();
                    }
                    to.shutdown().await.unwrap();
                });
                let mut back = Vec::new();
                from.read_to_end(&mut back).await.unwrap();
                writer.await.unwrap();
                assert_eq!(back.len(), 200 * 2000);
            })
        });
        for tunnel in tunnels.collect::<Vec<_>>() {
            tunnel.await.unwrap();
        }
        assert_eq!(b.origin.accepted(Port::H2), 1);
    });
}

/// Waits until the origin has seen these resets on its only connection.
async fn resets(b: &Bench, expected: &[(u32, u32)]) {
    for _ in 0..1000 {
        let seen = b.origin.connections().into_iter().find_map(|conn| conn.h2).unwrap_or_default();
        if seen.resets == expected {
            return;
        }
        b.sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", b.origin.connections());
}

async fn a_dropped_tunnel_is_reset(b: Bench) {
    let client = b.client();
    let path = url(&b, Port::H2c, "/echo-tunnel");
    let mut stream = ask(&client, &path).send().await.unwrap().upgrade().unwrap();
    echo(&mut stream, b"hello").await;
    drop(stream);
    // RFC 8441 section 5: CANCEL is what a TCP connection's RST is.
    resets(&b, &[(1, 8)]).await;
    // One that was never taken out of its response.
    drop(ask(&client, &path).send().await.unwrap());
    resets(&b, &[(1, 8), (3, 8)]).await;
}

async fn an_ended_tunnel_is_not_reset(b: Bench) {
    let client = b.client();
    let path = url(&b, Port::H2c, "/echo-tunnel");
    let mut stream = ask(&client, &path).send().await.unwrap().upgrade().unwrap();
    stream.close().await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    drop(stream);
    drop(ask(&client, &path).send().await.unwrap());
    resets(&b, &[(3, 8)]).await;
}

async fn a_server_that_resets_is_a_reset_connection(b: Bench) {
    let url = serve(|_, mut peer| {
        peer.greet(&[TUNNELS]);
        let head = peer.hear_a(peer::HEADERS);
        peer.say(peer::HEADERS, peer::END_HEADERS, head.stream, peer::OK);
        peer.say(peer::DATA, 0, head.stream, b"so far");
        peer.say(peer::RST_STREAM, 0, head.stream, &[0, 0, 0, 8]);
        peer.hear_out();
    });
    let mut stream = open(&b, &url).await;
    let mut text = Vec::new();
    let error = stream.read_to_end(&mut text).await.unwrap_err();
    assert_eq!((&text[..], error.kind()), (&b"so far"[..], io::ErrorKind::ConnectionReset));
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    assert!(matches!(cause, Some(StreamError::Reset(_))), "{error:?}");
    assert_eq!(stream.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

/// No more is taken than the server's window and a bounded queue, until it opens again; a deadline
/// that passes meanwhile costs nothing.
async fn what_the_server_does_not_take_waits(b: Bench) {
    const MOST: usize = 65_535 + 128 * 1024;
    let (open_window, may_open) = mpsc::channel();
    let url = serve(move |_, mut peer| {
        peer.greet(&[TUNNELS]);
        let head = peer.hear_a(peer::HEADERS);
        peer.say(peer::HEADERS, peer::END_HEADERS, head.stream, peer::OK);
        let total: usize = may_open.recv().unwrap();
        for stream in [0, head.stream] {
            peer.say(peer::WINDOW_UPDATE, 0, stream, &(total as u32).to_be_bytes());
        }
        let mut heard = 0;
        while heard < total {
            heard += peer.hear_a(peer::DATA).payload.len();
        }
        peer.say(peer::DATA, peer::END_STREAM, head.stream, b"all");
        peer.hear_out();
    });
    let mut stream = open(&b, &url).await;
    let mut sent = 0;
    stream.set_deadline(Some(Instant::now() + Duration::from_millis(300)));
    let error = loop {
        match stream.write(&[7; 10_000]).await {
            Ok(n) => sent += n,
            Err(error) => break error,
        }
        assert!(sent <= MOST, "{sent} bytes were taken");
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(sent >= 65_535, "{sent}");
    let error = stream.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "for both directions");
    stream.set_deadline(None);
    open_window.send(sent + 50_000).unwrap();
    stream.write_all(&[7; 50_000]).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "all");
}

async fn what_is_flushed_is_written_though_the_server_is_silent(b: Bench) {
    const LEN: usize = 300_000;
    let url = serve(|_, mut peer| {
        peer.greet(&[TUNNELS, WIDE]);
        peer.say(peer::WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes());
        let head = peer.hear_a(peer::HEADERS);
        peer.say(peer::HEADERS, peer::END_HEADERS, head.stream, peer::OK);
        peer.hear_out();
    });
    // Frames that are made leave in many writes.
    let mut options = SocketOptions::default();
    options.send_buffer = Some(4096);
    let response = ask(&b.client(), &url).socket_options(options).send().await.unwrap();
    let mut stream = response.upgrade().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    stream.set_deadline(Some(deadline));
    stream.write_all(&vec![7; LEN]).await.unwrap();
    stream.flush().await.unwrap();
    stream.close().await.unwrap();
    assert!(Instant::now() < deadline, "it waited for nothing");
}

async fn an_extension_of_a_request_names_the_protocol(b: Bench) {
    let request = http::Request::connect(url(&b, Port::H2c, "/echo-tunnel"))
        .extension(Protocol::new("chirp"))
        .body(())
        .unwrap();
    let (parts, ()) = request.into_parts();
    let response = b.client().call(http::Request::from_parts(parts, "")).await.unwrap();
    assert_eq!(response.headers()["x-protocol"], "chirp");
}
