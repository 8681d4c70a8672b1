//! A responder in the place of the server: what is above the connection does not know.

use std::{
    future::{self, Future as _},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mimus::{
    Body, BoxError, Error, Kind, Method, Phase, StatusCode, Url, Version,
    auth::Credentials,
    responder::{Request, Responder, Response},
    retry::RetryPolicy,
    rt::BoxFuture,
};

use crate::support::{Bench, failure, on_every_runtime};

on_every_runtime!(
    a_request_comes_as_it_would_be_sent,
    redirects_are_followed_and_cookies_kept,
    a_mocked_failure_to_connect_is_retried,
    failures_are_what_they_are_said_to_be,
    an_upload_is_read_as_it_is_sent,
    a_failing_upload_is_the_calls_error,
    a_body_comes_in_pieces_and_with_trailers,
    a_body_that_breaks_off_is_noticed,
    a_coded_body_is_decoded_and_limits_hold,
    a_digest_challenge_is_answered,
    timeouts_fire_on_a_responder_that_never_answers,
    a_body_that_stalls_is_idle,
    a_dropped_call_drops_the_responders_future,
    a_browsers_spare_connections_stay_away,
    what_it_leaves_goes_to_the_server,
    one_call_may_have_its_own,
    what_cannot_be_an_answer_is_refused,
    hooks_and_timings_are_as_ever,
);

const URL: &str = "https://example.com/";
const LIMIT: Duration = Duration::from_millis(100);

fn builder(b: &Bench, responder: impl Responder) -> mimus::ClientBuilder {
    b.builder().answer_with(responder)
}

fn client(b: &Bench, responder: impl Responder) -> mimus::Client {
    builder(b, responder).build().unwrap()
}

async fn a_request_comes_as_it_would_be_sent(b: Bench) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let client = client(&b, move |request: Request| {
        let fields: Vec<(String, String)> = (request.fields().iter())
            .map(|(name, value)| (name.into(), String::from_utf8_lossy(value).into_owned()))
            .collect();
        let said = (request.method().clone(), request.target().to_owned(), request.version());
        keep.lock().unwrap().push((said, fields));
        async { Response::new(200).body("there") }
    });
    let url = "http://example.com:81/a?b=c#d";
    let response = client.put(url).header("X-Own", "1").body("body").send().await.unwrap();
    assert_eq!((response.status(), response.content_length()), (StatusCode::OK, Some(5)));
    assert_eq!((response.version(), response.reused()), (Version::HTTP_11, false));
    assert_eq!((response.remote_addr(), response.header("content-length")), (None, Some("5")));
    assert_eq!(response.text().await.unwrap(), "there");
    let h2 = client.get(URL).version(Version::HTTP_2).send().await.unwrap();
    assert_eq!(h2.version(), Version::HTTP_2);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].0, (Method::PUT, "/a?b=c".into(), Version::HTTP_11));
    let names: Vec<&str> = seen[0].1.iter().map(|(name, _)| &name[..]).collect();
    let expected = ["Host", "User-Agent", "Accept", "Accept-Encoding", "X-Own", "Content-Length"];
    assert_eq!(names, expected);
    assert_eq!((&seen[0].1[0].1[..], &seen[0].1[5].1[..]), ("example.com:81", "4"));
    assert_eq!(seen[1].0, (Method::GET, "/".into(), Version::HTTP_2));
    // Nothing went over the network, nor anything to the pool.
    assert_eq!((client.pool_stats().open(), b.origin.open_connections()), (0, 0));
}

async fn redirects_are_followed_and_cookies_kept(b: Bench) {
    let responder = |mut request: Request| async move {
        let body = request.body_mut().collect().await?;
        let cookie = request.header("cookie").unwrap_or_default().to_owned();
        Ok::<_, Error>(match request.url().path() {
            "/start" => Response::new(307).header("Location", "/end").header("Set-Cookie", "a=b"),
            _ => Response::new(StatusCode::OK).body([cookie.as_bytes(), b" ", &body].concat()),
        })
    };
    let client = builder(&b, responder).cookies(true).build().unwrap();
    let response = client.post("https://example.com/start").body("again").send().await.unwrap();
    assert_eq!(response.history().len(), 1);
    assert_eq!(response.url().as_str(), "https://example.com/end");
    assert_eq!(response.text().await.unwrap(), "a=b again");
}

async fn a_mocked_failure_to_connect_is_retried(b: Bench) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let responder = move |_: Request| {
        let turn = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match turn {
                0 => Err(Error::simulated(Kind::Connect, Phase::Connect)),
                _ => Ok(Response::new(204)),
            }
        }
    };
    let policy = RetryPolicy::default().fixed_delay(Duration::from_millis(1));
    let client = builder(&b, responder).retry(policy).build().unwrap();
    // Nothing was sent, so a POST is as good as a GET.
    let response = client.post(URL).body("once").send().await.unwrap();
    assert_eq!((response.status().as_u16(), asked.load(Ordering::Relaxed)), (204, 2));
}

async fn failures_are_what_they_are_said_to_be(b: Bench) {
    let client = client(&b, |request: Request| async move {
        let io = |kind: std::io::ErrorKind| BoxError::from(std::io::Error::from(kind));
        Err::<Response, BoxError>(match request.url().path() {
            "/timeout" => Error::simulated(Kind::Timeout, Phase::Head).into(),
            "/resolve" => Error::simulated(Kind::Resolve, Phase::Resolve).into(),
            "/refused" => io(std::io::ErrorKind::ConnectionRefused),
            "/reset" => io(std::io::ErrorKind::ConnectionReset),
            _ => "of my own".into(),
        })
    });
    let cases = [
        ("/timeout", Kind::Timeout, Phase::Head, true, false),
        ("/resolve", Kind::Resolve, Phase::Resolve, false, true),
        ("/refused", Kind::Connect, Phase::Connect, false, true),
        ("/reset", Kind::Closed, Phase::Head, true, false),
        ("/own", Kind::Hook, Phase::Head, true, false),
    ];
    for (path, kind, phase, sent, retryable) in cases {
        let url = format!("https://example.com{path}");
        let error = failure(client.get(&url).send().await);
        assert_eq!((error.kind(), error.phase()), (kind, Some(phase)), "{path}: {error:#}");
        assert_eq!((error.was_sent(), error.is_retryable()), (sent, retryable), "{path}");
        assert_eq!(error.url().map(Url::as_str), Some(&url[..]));
    }
    let error = failure(client.get(URL).send().await);
    assert!(format!("{error:#}").ends_with("of my own"), "{error:#}");
}

async fn an_upload_is_read_as_it_is_sent(b: Bench) {
    let client = client(&b, |request: Request| async move {
        assert_eq!(request.header("transfer-encoding"), Some("chunked"));
        // Sent back while it is read.
        Response::new(200).body(Body::stream(request.into_body()))
    });
    let pieces = stream::iter(["one ", "two ", "three"].map(Ok::<_, BoxError>));
    let response = client.post(URL).body(Body::stream(pieces)).send().await.unwrap();
    assert_eq!(response.content_length(), None);
    assert_eq!(response.text().await.unwrap(), "one two three");
}

async fn a_failing_upload_is_the_calls_error(b: Bench) {
    let client = client(&b, |mut request: Request| async move {
        let body = request.body_mut().collect().await?;
        Ok::<_, Error>(Response::new(200).body(body))
    });
    let pieces = stream::iter([Ok("piece"), Err(BoxError::from("no more"))]);
    let error = failure(client.post(URL).body(Body::stream(pieces)).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Upload, Some(Phase::Send)));
    assert!(format!("{error:#}").ends_with("no more"), "{error:#}");
}

async fn a_body_comes_in_pieces_and_with_trailers(b: Bench) {
    let client = client(&b, |_: Request| async {
        let pieces = stream::iter(["a", "b"].map(Ok::<_, BoxError>));
        let trailers = [(http::header::ETAG, "\"1\"".parse().unwrap())].into_iter().collect();
        Response::new(200).body(Body::stream(pieces).with_trailers(trailers))
    });
    let mut response = client.get(URL).send().await.unwrap();
    let body = response.body_mut();
    assert_eq!(body.data().await.unwrap().as_deref(), Some(&b"a"[..]));
    assert_eq!(body.data().await.unwrap().as_deref(), Some(&b"b"[..]));
    assert_eq!(body.data().await.unwrap(), None);
    assert_eq!(body.trailers().unwrap().get_str("etag"), Some("\"1\""));
}

async fn a_body_that_breaks_off_is_noticed(b: Bench) {
    let client = client(&b, |request: Request| async move {
        let response = Response::new(200);
        let pieces = [Ok(Bytes::from("some")), Err(std::io::ErrorKind::ConnectionReset.into())];
        match request.url().path() {
            "/short" => response.header("Content-Length", "9").body("some"),
            "/long" => response.header("Content-Length", "2").body("some"),
            "/reset" => response.body(Body::stream::<_, _, std::io::Error>(stream::iter(pieces))),
            _ => response.body("not for HEAD"),
        }
    });
    for path in ["short", "reset"] {
        let response = client.get(format!("{URL}{path}")).send().await.unwrap();
        let error = failure(response.bytes().await);
        assert_eq!((error.kind(), error.phase()), (Kind::Closed, Some(Phase::Body)), "{path}");
    }
    let long = client.get(format!("{URL}long")).send().await.unwrap();
    assert_eq!(long.text().await.unwrap(), "so");
    let head = client.head(URL).send().await.unwrap();
    assert!(head.timings().total.is_some());
    assert_eq!(head.text().await.unwrap(), "");
}

async fn a_coded_body_is_decoded_and_limits_hold(b: Bench) {
    let client = client(&b, |_: Request| async {
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut coder, &[b'x'; 1000]).unwrap();
        Response::new(200).header("Content-Encoding", "gzip").body(coder.finish().unwrap())
    });
    let response = client.get(URL).send().await.unwrap();
    assert_eq!(response.bytes().await.unwrap().len(), 1000);
    let response = client.get(URL).body_limit(999).send().await.unwrap();
    assert_eq!(failure(response.bytes().await).kind(), Kind::Limit);
}

async fn a_digest_challenge_is_answered(b: Bench) {
    let client = client(&b, |request: Request| async move {
        match request.header("authorization") {
            Some(said) if said.starts_with("Digest username=\"me\"") => Response::new(200),
            _ => Response::new(401)
                .header("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""),
        }
    });
    let call = client.get(URL).auth(Credentials::digest("me", "secret"));
    assert_eq!(call.send().await.unwrap().status(), 200);
}

async fn timeouts_fire_on_a_responder_that_never_answers(b: Bench) {
    let client = client(&b, |_: Request| future::pending::<Response>());
    let head = client.get(URL).head_timeout(LIMIT).send().await;
    let total = client.post(URL).body("in memory").timeout(LIMIT).send().await;
    for error in [failure(head), failure(total)] {
        assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Head)));
    }
    // A stream that nobody takes is still being sent.
    let body = Body::stream(stream::pending::<Result<Bytes, BoxError>>());
    let error = failure(client.post(URL).body(body).idle_timeout(LIMIT).send().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Send)));
}

async fn a_body_that_stalls_is_idle(b: Bench) {
    let client = client(&b, |request: Request| async move {
        let first = stream::iter([Ok::<_, BoxError>("first")]);
        match request.url().path() {
            "/stall" => Response::new(200).body(Body::stream(first.chain(stream::pending()))),
            // It never has to wait, and never ends.
            _ => Response::new(200)
                .body(Body::stream(stream::repeat_with(|| Ok::<_, BoxError>("more")))),
        }
    });
    let mut response = client.get(format!("{URL}stall")).idle_timeout(LIMIT).send().await.unwrap();
    assert_eq!(response.body_mut().data().await.unwrap().as_deref(), Some(&b"first"[..]));
    let error = failure(response.body_mut().data().await);
    assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Body)));
    let mut response = client.get(URL).timeout(LIMIT).send().await.unwrap();
    let error = loop {
        match response.body_mut().data().await {
            Ok(piece) => assert!(piece.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.phase()), (Kind::Timeout, Some(Phase::Body)));
}

/// Says when it is dropped.
struct Guard(Arc<AtomicU32>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn a_dropped_call_drops_the_responders_future(b: Bench) {
    let dropped = Arc::new(AtomicU32::new(0));
    let count = dropped.clone();
    let client = client(&b, move |_: Request| {
        let guard = Guard(count.clone());
        async move {
            future::pending::<()>().await;
            drop(guard);
            Response::new(200)
        }
    });
    let mut call = Box::pin(client.get(URL).send());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(call);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

/// Answers for one host alone.
struct Only(&'static str);

impl Responder for Only {
    fn respond(&self, _: Request) -> BoxFuture<'static, Result<Response, BoxError>> {
        Box::pin(async { Ok(Response::new(200).body("of the responder")) })
    }

    fn answers(&self, _: &Method, url: &Url) -> bool {
        url.host_str() == Some(self.0)
    }
}

async fn a_browsers_spare_connections_stay_away(b: Bench) {
    let client = builder(&b, |_: Request| async { Response::new(204) });
    let client = client.profile("chrome").build().unwrap();
    assert_eq!(client.get(b.http("/get")).send().await.unwrap().status(), 204);
    let stats = client.pool_stats();
    assert_eq!((stats.open(), stats.misses, b.origin.open_connections()), (0, 0, 0));
}

async fn what_it_leaves_goes_to_the_server(b: Bench) {
    let client = client(&b, Only("example.com"));
    let text = async |url: &str| client.get(url).send().await.unwrap().text().await.unwrap();
    assert_eq!(text(URL).await, "of the responder");
    assert!(text(&b.http("/get")).await.contains("\"method\""));
    // A redirect leads from one to the other.
    let redirect = b.http("/redirect-to?url=https%3A%2F%2Fexample.com%2F");
    assert_eq!(text(&redirect).await, "of the responder");
    assert_eq!(client.pool_stats().open(), 1);
}

async fn one_call_may_have_its_own(b: Bench) {
    let client = b.client();
    let call = client.get(b.http("/get")).answer_with(Only("127.0.0.1"));
    assert_eq!(call.send().await.unwrap().text().await.unwrap(), "of the responder");
    let response = client.get(b.http("/get")).send().await.unwrap();
    assert!(response.text().await.unwrap().contains("\"method\""));
}

async fn what_cannot_be_an_answer_is_refused(b: Bench) {
    let client = client(&b, |request: Request| async move {
        match request.url().path() {
            "/switch" => Response::new(101),
            "/early" => Response::new(103),
            "/status" => Response::new(99),
            "/field" => Response::new(200).header("bad name", "1"),
            _ => Response::new(200).header("Content-Length", "1").header("Content-Length", "2"),
        }
    });
    let cases = [
        ("switch", Kind::Hook),
        ("early", Kind::Hook),
        ("status", Kind::Request),
        ("field", Kind::Request),
        ("length", Kind::Protocol),
    ];
    for (path, kind) in cases {
        let error = failure(client.get(format!("{URL}{path}")).send().await);
        assert_eq!(error.kind(), kind, "{path}: {error:#}");
    }
    let tunnel = client.request(Method::CONNECT, URL).protocol("websocket").send().await;
    assert_eq!(failure(tunnel).kind(), Kind::NotOffered);
    // What could not be written is refused before the responder is asked.
    let error = failure(client.post(URL).header("Content-Length", "3").body("four").send().await);
    assert_eq!(error.kind(), Kind::Request);
    #[cfg(feature = "ws")]
    assert!(client.websocket("ws://example.com/length").connect().await.is_err());
}

#[derive(Debug)]
struct Sign;

impl mimus::Hook for Sign {
    fn before_send(&self, request: &mut mimus::Outgoing<'_>) -> Result<(), BoxError> {
        Ok(request.fields.set("X-Signed", "yes")?)
    }
}

async fn hooks_and_timings_are_as_ever(b: Bench) {
    let responder = |request: Request| async move {
        Response::new(200).header("X-Signed", request.header("x-signed").unwrap_or_default())
    };
    let client = builder(&b, responder).hook(Sign).build().unwrap();
    let mut response = client.get(URL).send().await.unwrap();
    assert_eq!(response.header("x-signed"), Some("yes"));
    assert!(response.body_mut().collect().await.unwrap().is_empty());
    assert!(response.timings().total >= Some(response.timings().first_byte));
    assert_eq!(response.timings().connect, None);
}

/// A server's router, called without a server.
#[cfg(feature = "tower")]
#[test]
fn a_service_of_tower_answers() {
    use mimus::responder::{Service, Upload};
    let router = tower::service_fn(|request: http::Request<Upload>| async move {
        assert_eq!(request.uri().path(), "/echo");
        Ok::<_, BoxError>(http::Response::builder().status(201).body(request.into_body())?)
    });
    let client = mimus::blocking::Client::builder().answer_with(Service::new(router));
    let client = client.build().unwrap();
    let response = client.post("https://example.com/echo").body("text").send().unwrap();
    assert_eq!((response.status().as_u16(), response.text().unwrap()), (201, "text".to_owned()));
}
