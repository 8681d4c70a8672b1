//! What a second pair of eyes found: each was wrong once.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use mimus::{Body, Kind, Timeouts, auth::Credentials};

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    endless_timeouts_are_no_timeouts,
    default_credentials_stay_with_their_origin,
    a_default_field_is_sent_once,
    an_answer_in_place_of_100_continue_is_read_whole,
    an_upload_that_moves_is_not_idle,
    an_upload_that_stalls_under_a_whole_answer_ends_in_time,
    a_field_of_ones_own_is_not_overruled_by_a_challenge,
    the_total_holds_against_a_peer_that_never_pauses,
    a_redirect_without_the_body_frees_the_call_of_it,
    a_call_overrides_limits_and_addresses_of_its_client,
    connect_names_an_authority,
    an_early_answer_survives_the_reset_behind_it_under_tls,
    the_wait_for_100_continue_is_not_idle,
    no_debug_shows_a_secret,
    the_jar_adds_to_every_cookie_of_ones_own,
    a_redirect_cannot_ask_for_any_netrc_entry,
    trailers_go_with_a_body_of_any_kind,
);

/// Everything must be over within this.
const SOON: Duration = Duration::from_secs(10);

/// A server of one's own: `talk` has each connection in turn, with its number.
fn serve(talk: impl Fn(usize, &mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            talk(number, &mut stream.unwrap());
        }
    });
    addr
}

/// Reads up to the end of a head; empty when the client has closed.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return String::new(),
        }
    }
    String::from_utf8(head).unwrap()
}

fn say(stream: &mut TcpStream, text: &str) {
    // A client that hangs up is the test's to notice.
    let _ = stream.write_all(text.as_bytes());
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that answers every request on every connection with `answer`, and keeps the heads.
fn recorder(answer: impl Fn(&str) -> String + Send + 'static) -> (SocketAddr, Heads) {
    let heads = Heads::default();
    let kept = heads.clone();
    let addr = serve(move |_, stream| {
        loop {
            let head = head(stream);
            if head.is_empty() {
                return;
            }
            let answer = answer(&head);
            kept.0.lock().unwrap().push(head);
            say(stream, &answer);
        }
    });
    (addr, heads)
}

#[derive(Clone, Default)]
struct Heads(Arc<Mutex<Vec<String>>>);

impl Heads {
    fn last(&self) -> String {
        self.0.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

fn occurrences(head: &str, name: &str) -> usize {
    let field = format!("{name}:");
    head.lines().filter(|line| line.to_ascii_lowercase().starts_with(&field)).count()
}

async fn endless_timeouts_are_no_timeouts(b: Bench) {
    for long in [Duration::MAX, Duration::from_secs(1 << 40)] {
        let mut timeouts = Timeouts::NONE;
        for field in [
            &mut timeouts.pool,
            &mut timeouts.resolve,
            &mut timeouts.connect,
            &mut timeouts.tls,
            &mut timeouts.head,
            &mut timeouts.idle,
            &mut timeouts.total,
        ] {
            *field = Some(long);
        }
        let client = b
            .builder()
            .timeouts(timeouts)
            .expect_continue(long)
            .pool_idle_timeout(long)
            .pool_max_lifetime(long)
            .build()
            .unwrap();
        for _ in 0..2 {
            let response = client.post(b.https("/post")).body("chirp").send().await.unwrap();
            assert!(response.text().await.unwrap().contains("chirp"));
        }
    }
}

async fn default_credentials_stay_with_their_origin(b: Bench) {
    let (elsewhere, heads) = recorder(|_| OK.into());
    let (first, _) = recorder(move |_| {
        format!("HTTP/1.1 302 Found\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\n\r\n")
    });
    let client = b
        .builder()
        .default_header("Authorization", "Bearer secret")
        .default_header("Cookie", "session=secret")
        .default_header("X-Plain", "kept")
        .build()
        .unwrap();
    let response = client.get(format!("http://{first}/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "ok");
    let seen = heads.last();
    assert!(!seen.contains("secret"), "{seen}");
    assert!(seen.contains("X-Plain: kept"), "{seen}");
}

async fn a_default_field_is_sent_once(b: Bench) {
    let (addr, heads) = recorder(|_| OK.into());
    let client = b
        .builder()
        .default_header("Host", "nest.example")
        .default_header("Accept-Encoding", "identity")
        .default_header("Authorization", "Bearer own")
        .basic_auth("user", "password")
        .build()
        .unwrap();
    client.get(format!("http://{addr}/")).send().await.unwrap().text().await.unwrap();
    let seen = heads.last();
    for name in ["host", "accept-encoding", "authorization"] {
        assert_eq!(occurrences(&seen, name), 1, "{name} in {seen}");
    }
    assert!(seen.starts_with("GET / HTTP/1.1\r\nHost: nest.example\r\n"), "{seen}");
    assert!(seen.contains("Authorization: Basic "), "credentials are of the call: {seen}");
}

async fn an_answer_in_place_of_100_continue_is_read_whole(b: Bench) {
    let addr = serve(|_, stream| {
        head(stream);
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nearly");
        thread::sleep(Duration::from_millis(100));
        say(stream, "-late");
        // Until the client is done: the body must not come any more.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    });
    let client = b.client();
    let call = client.post(format!("http://{addr}/")).body("chirp").expect_continue(SOON);
    let response = call.timeout(SOON).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "early-late");
    assert_eq!(client.pool_stats().open(), 0, "the peer may wait for the body still");
}

async fn an_upload_that_moves_is_not_idle(b: Bench) {
    // All of it fits the queue of the connection, and little the buffers of the system.
    const SIZE: usize = 240 << 10;
    let addr = serve(|_, stream| {
        head(stream);
        let mut got = 0;
        let mut piece = vec![0; 8 << 10];
        while got < SIZE {
            got += stream.read(&mut piece).unwrap();
            thread::sleep(Duration::from_millis(80));
        }
        say(stream, OK);
    });
    let mut options = mimus::SocketOptions::default();
    options.send_buffer = Some(4 << 10);
    let builder = b.builder().idle_timeout(Duration::from_millis(1200)).socket_options(options);
    let client = builder.build().unwrap();
    let start = Instant::now();
    let call = client.post(format!("http://{addr}/")).body(vec![7; SIZE]);
    let response = call.timeout(Duration::from_secs(60)).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "ok");
    assert!(start.elapsed() > Duration::from_millis(1600), "{:?}", start.elapsed());
}

async fn an_upload_that_stalls_under_a_whole_answer_ends_in_time(b: Bench) {
    let addr = serve(|number, stream| {
        head(stream);
        say(stream, OK);
        // The first waits for a body that never comes; the others are done with it all.
        if number == 0 {
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let client = b.client();
    type Nothing = std::io::Result<&'static str>;
    let stalled = || Body::stream(futures_util::stream::pending::<Nothing>());
    let url = format!("http://{addr}/");
    let start = Instant::now();
    let call = client.post(&url).body(stalled()).timeout(Duration::from_millis(300));
    let error = failure(call.send().await.unwrap().text().await);
    assert_eq!(error.kind(), Kind::Timeout, "{error:#}");
    let call = client.post(&url).body(stalled()).timeout(SOON);
    assert_eq!(call.send().await.unwrap().text().await.unwrap(), "ok");
    assert!(start.elapsed() < SOON / 2);
}

async fn a_field_of_ones_own_is_not_overruled_by_a_challenge(b: Bench) {
    let (addr, heads) = recorder(|_| {
        let challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";
        format!("HTTP/1.1 401 Unauthorized\r\n{challenge}\r\nContent-Length: 0\r\n\r\n")
    });
    let client = b.builder().auth(Credentials::digest("user", "password")).build().unwrap();
    let call = client.get(format!("http://{addr}/")).header("Authorization", "Own token");
    let response = call.timeout(SOON).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(heads.0.lock().unwrap().len(), 1);
}

async fn the_total_holds_against_a_peer_that_never_pauses(b: Bench) {
    let addr = serve(|_, stream| {
        head(stream);
        say(stream, "HTTP/1.1 200 OK\r\n\r\n");
        let piece = vec![b'x'; 1 << 20];
        while stream.write_all(&piece).is_ok() {}
    });
    let client = b.client();
    let start = Instant::now();
    let call = client.get(format!("http://{addr}/")).timeout(Duration::from_millis(300));
    let mut response = call.send().await.unwrap();
    let error = loop {
        match response.chunk().await {
            // Slower than the peer, so that there is always more.
            Ok(Some(_)) => thread::sleep(Duration::from_millis(2)),
            Ok(None) => panic!("it has no end"),
            Err(error) => break error,
        }
        assert!(start.elapsed() < SOON);
    };
    assert_eq!(error.kind(), Kind::Timeout, "{error:#}");
}

async fn a_redirect_without_the_body_frees_the_call_of_it(b: Bench) {
    // The second request on a connection finds it closed, once.
    let addr = serve(|number, stream| {
        let seen = head(stream);
        if seen.starts_with("POST") {
            let mut rest = [0; 64];
            while !rest.windows(5).any(|w| w == b"0\r\n\r\n") {
                let n = stream.read(&mut rest).unwrap();
                rest[n..].fill(0);
            }
            say(stream, "HTTP/1.1 303 See Other\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
            head(stream);
        } else {
            assert_eq!(number, 1);
            say(stream, OK);
        }
    });
    let client = b.client();
    let pieces = futures_util::stream::iter([Ok::<_, std::io::Error>("chirp")]);
    let call = client.post(format!("http://{addr}/")).body(Body::stream(pieces));
    let response = call.timeout(SOON).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "ok");
}

async fn a_call_overrides_limits_and_addresses_of_its_client(b: Bench) {
    let (addr, _) =
        recorder(|_| format!("HTTP/1.1 200 OK\r\nX: {:0>500}\r\nContent-Length: 0\r\n\r\n", 1));
    let client = b
        .builder()
        .resolve("nest.example", None, ["127.0.0.1:1".parse().unwrap()])
        .build()
        .unwrap();
    let url = format!("http://nest.example:{}/", addr.port());
    let call = || client.get(&url).resolve("nest.example", None, [addr]).timeout(SOON);
    call().send().await.unwrap().bytes().await.unwrap();
    let mut small = mimus::Http1Limits::default();
    small.head_bytes = 200;
    let error = failure(call().http1_limits(small).send().await);
    assert_eq!(error.kind(), Kind::Limit, "{error:#}");
    assert_eq!(client.pool_stats().open(), 0);
    call().send().await.unwrap().bytes().await.unwrap();
}

async fn connect_names_an_authority(b: Bench) {
    let addr = serve(|_, stream| {
        let seen = head(stream);
        say(stream, "HTTP/1.1 200 OK\r\n\r\n");
        say(stream, seen.lines().next().unwrap());
    });
    let client = b.client();
    let url = "http://nest.example/ignored?x";
    let call = client
        .request(http::Method::CONNECT, url)
        .resolve("nest.example", None, [addr])
        .timeout(SOON);
    let mut tunnel = call.send().await.unwrap().upgrade().unwrap();
    let mut said = String::new();
    futures_util::AsyncReadExt::read_to_string(&mut tunnel, &mut said).await.unwrap();
    assert_eq!(said, "CONNECT nest.example:80 HTTP/1.1");
}

async fn an_early_answer_survives_the_reset_behind_it_under_tls(b: Bench) {
    let client = b.client();
    for url in [b.http("/bad/early-413-drop?ms=20"), b.https("/bad/early-413-drop?ms=20")] {
        // The answer and the reset come between two pieces of the upload.
        let pieces = futures_util::stream::iter(0..4).map(|number| {
            thread::sleep(Duration::from_millis(number * 80));
            Ok::<_, std::io::Error>(vec![7; 100_000])
        });
        let call = client.post(&url).body(Body::stream(pieces)).timeout(SOON);
        assert_eq!(call.send().await.unwrap().status(), 413, "{url}");
    }
}

async fn the_wait_for_100_continue_is_not_idle(b: Bench) {
    let addr = serve(|_, stream| {
        head(stream);
        stream.read_exact(&mut [0; 5]).unwrap();
        say(stream, OK);
    });
    let client = b.builder().idle_timeout(Duration::from_millis(300)).build().unwrap();
    let call = client.post(format!("http://{addr}/")).body("chirp").timeout(SOON);
    let response = call.expect_continue(Duration::from_millis(600)).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "ok");
}

async fn no_debug_shows_a_secret(b: Bench) {
    let builder = b
        .builder()
        .default_header("Authorization", "Bearer hunter2")
        .base_url("http://user:hunter2@nest.example/")
        .basic_auth("user", "hunter2")
        .proxy("http://user:hunter2@proxy.example".parse().unwrap());
    let shown = format!("{builder:?}");
    let bytes = format!("{:?}", b"hunter2");
    let bytes = bytes.trim_matches(['[', ']']);
    assert!(!shown.contains("hunter2") && !shown.contains(bytes), "{shown}");
    let client = builder.build().unwrap();
    let call = client.get("/path").header("Cookie", "hunter2");
    let shown = format!("{client:?} {call:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

async fn the_jar_adds_to_every_cookie_of_ones_own(b: Bench) {
    let (addr, heads) = recorder(|_| OK.replace("\r\n\r\n", "\r\nSet-Cookie: kept=1\r\n\r\n"));
    let client = b.builder().cookies(true).default_header("Cookie", "usual=2").build().unwrap();
    let url = format!("http://{addr}/");
    client.get(&url).send().await.unwrap().bytes().await.unwrap();
    client.get(&url).send().await.unwrap().bytes().await.unwrap();
    assert!(heads.last().contains("\r\nCookie: usual=2; kept=1\r\n"), "{}", heads.last());
    let call = client.get(&url).header("Cookie", "own=3").header("cookie", "more=4");
    call.send().await.unwrap().bytes().await.unwrap();
    let seen = heads.last();
    assert!(seen.contains("Cookie: own=3; more=4; kept=1\r\n"), "{seen}");
    assert_eq!(occurrences(&seen, "cookie"), 1, "{seen}");
}

async fn a_redirect_cannot_ask_for_any_netrc_entry(b: Bench) {
    let (elsewhere, heads) = recorder(|_| OK.into());
    let there = format!("http://localhost:{}/", elsewhere.port());
    let (first, firsts) = recorder({
        let there = there.clone();
        move |_| format!("HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n")
    });
    let here = format!("http://{first}/");
    let secure = b.https(&format!("/redirect-to?url={there}"));
    let default = "default login user password secret";
    let named = "machine localhost login user password secret";
    // The default is for whom the user asks; an entry is for its host, and not in the clear after TLS.
    for (netrc, url, sent) in [(default, &here, 0), (named, &here, 1), (named, &secure, 0)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), netrc).unwrap();
        let client = b.builder().netrc_file(file.path()).build().unwrap();
        let response = client.get(url).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), "ok");
        assert_eq!(occurrences(&heads.last(), "authorization"), sent, "{url} {netrc}");
        if netrc == default {
            assert_eq!(occurrences(&firsts.last(), "authorization"), 1);
        }
    }
}

async fn trailers_go_with_a_body_of_any_kind(b: Bench) {
    let mut trailers = http::HeaderMap::new();
    trailers.insert("X-Sum", http::HeaderValue::from_static("1"));
    let streamed = Body::stream(futures_util::stream::iter([Ok::<_, std::io::Error>("chirp")]));
    for body in [Body::from("chirp"), streamed] {
        let addr = serve(|_, stream| {
            assert!(head(stream).contains("Transfer-Encoding: chunked\r\n"));
            let mut rest = [0; 25];
            stream.read_exact(&mut rest).unwrap();
            assert_eq!(rest, *b"5\r\nchirp\r\n0\r\nx-sum: 1\r\n\r\n");
            say(stream, OK);
        });
        let call =
            b.client().post(format!("http://{addr}/")).body(body.with_trailers(trailers.clone()));
        assert_eq!(call.timeout(SOON).send().await.unwrap().text().await.unwrap(), "ok");
    }
    // Those that show only behind a body of announced length have no place.
    let full = http_body_util::Full::new(bytes::Bytes::from("chirp"));
    let late = http_body_util::BodyExt::with_trailers(full, async { Some(Ok(trailers)) });
    let call = b.client().post(b.http("/post")).body(Body::wrap(late));
    assert!(call.timeout(SOON).send().await.unwrap().text().await.unwrap().contains("chirp"));
}
