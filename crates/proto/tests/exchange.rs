//! Whole exchanges between the two machines.

#![allow(clippy::unwrap_used)] // A refused call fails the test.

mod rig;

use std::io::IoSlice;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use mimus_proto::h1::{NoReuse, Reuse, Upload};
use mimus_proto::{ApiMisuse, BodyLength, Fields};
use rig::{Pair, Seen, body, fields, written};

fn get(pair: &mut Pair, target: &str) {
    pair.client
        .send_head(&Method::GET, target, &fields([("Host", "h")]), BodyLength::None)
        .expect("the connection is free");
    pair.settle();
}

fn answer(pair: &mut Pair, fields: &Fields, text: &'static str) {
    let length = BodyLength::Known(text.len() as u64);
    pair.server.send_head(StatusCode::OK, fields, length).expect("one answer");
    pair.server.send_data(Bytes::from_static(text.as_bytes())).expect("in length");
    pair.settle();
}

#[test]
fn many_exchanges_share_a_connection() {
    let mut pair = Pair::connect();
    for round in 0..50 {
        get(&mut pair, &format!("/{round}"));
        assert_eq!(pair.client.reuse(), Reuse::No(NoReuse::Unfinished));
        answer(&mut pair, &Fields::new(), "song");
        assert!(pair.client.is_done());
        assert_eq!(pair.client.reuse(), Reuse::Yes);
        assert_eq!(pair.server.reuse(), Reuse::Yes);
    }
    assert_eq!(body(&pair.at_client), b"song".repeat(50));
    assert_eq!(pair.at_server.iter().filter(|seen| **seen == Seen::End).count(), 50);
}

#[test]
fn a_second_request_must_wait_for_the_first() {
    let mut pair = Pair::connect();
    get(&mut pair, "/");
    let again = pair.client.send_head(&Method::GET, "/", &Fields::new(), BodyLength::None);
    assert_eq!(again, Err(ApiMisuse::ExchangeOpen));
}

#[test]
fn a_chunked_upload_arrives_with_its_trailers() {
    let mut pair = Pair::connect();
    let host = fields([("Host", "h")]);
    pair.client.send_head(&Method::POST, "/", &host, BodyLength::Chunked).unwrap();
    let large = Bytes::from(vec![b'x'; 100_000]);
    for piece in [Bytes::from_static(b"one"), Bytes::new(), large.clone(), Bytes::from_static(b"2")]
    {
        pair.client.send_data(piece).unwrap();
    }
    pair.client.send_end(Some(&fields([("Checksum", "7")]))).unwrap();
    pair.settle();
    assert_eq!(body(&pair.at_server), [b"one", &large[..], b"2"].concat());
    let trailers = Seen::Trailers(vec![("Checksum".to_owned(), b"7".to_vec())]);
    assert_eq!(pair.at_server[pair.at_server.len() - 2..], [trailers, Seen::End]);
    answer(&mut pair, &Fields::new(), "");
    assert_eq!(pair.client.reuse(), Reuse::Yes);
}

#[test]
fn a_small_body_shares_the_slice_of_its_head_and_a_large_one_is_not_copied() {
    let host = fields([("Host", "h")]);
    let mut pair = Pair::connect();
    pair.client.send_head(&Method::PUT, "/", &host, BodyLength::Known(5)).unwrap();
    pair.client.send_data(Bytes::from_static(b"small")).unwrap();
    let mut slices = [IoSlice::new(&[]); 4];
    assert_eq!(pair.client.poll_transmit(&mut slices), 1);
    assert!(slices[0].ends_with(b"\r\n\r\nsmall"));

    let mut pair = Pair::connect();
    let large = Bytes::from(vec![1; 1 << 20]);
    pair.client.send_head(&Method::PUT, "/", &host, BodyLength::Known(1 << 20)).unwrap();
    pair.client.send_data(large.clone()).unwrap();
    let mut slices = [IoSlice::new(&[]); 4];
    assert_eq!(pair.client.poll_transmit(&mut slices), 2);
    assert_eq!(slices[1].as_ptr(), large.as_ptr());
}

#[test]
fn bytes_written_one_at_a_time_are_the_same_bytes() {
    let host = fields([("Host", "h")]);
    let mut machines = [Pair::connect().client, Pair::connect().client];
    for client in &mut machines {
        client.send_head(&Method::POST, "/", &host, BodyLength::Chunked).unwrap();
        for size in [1, 5000, 3, 9000] {
            client.send_data(Bytes::from(vec![b'y'; size])).unwrap();
        }
        client.send_end(None).unwrap();
    }
    let [mut whole, mut dripped] = machines;
    let expected = written(&mut whole, 64);
    let mut wire = Vec::new();
    while dripped.has_output() {
        let mut slice = [IoSlice::new(&[])];
        assert_eq!(dripped.poll_transmit(&mut slice), 1);
        wire.push(slice[0][0]);
        dripped.transmitted(1);
    }
    assert!(dripped.send_done());
    assert_eq!(wire, expected);
}

#[test]
fn a_queue_that_is_never_empty_neither_grows_nor_garbles() {
    let host = fields([("Host", "h")]);
    let mut client = Pair::connect().client;
    let total = 3000 * 1000;
    client.send_head(&Method::POST, "/", &host, BodyLength::Known(total)).unwrap();
    let (mut wire, mut expected) = (Vec::new(), Vec::new());
    for round in 0..3000_u32 {
        let piece: Vec<u8> = (0..1000_u32).map(|at| (round.wrapping_mul(31) + at) as u8).collect();
        expected.extend_from_slice(&piece);
        client.send_data(Bytes::from(piece)).unwrap();
        let mut slices = [IoSlice::new(&[]); 4];
        let filled = client.poll_transmit(&mut slices);
        let ready = slices[..filled].iter().map(|slice| slice.len()).sum::<usize>();
        let ready: usize = ready.min(1100).min(ready - 1);
        wire.extend(slices[..filled].iter().flat_map(|slice| slice.iter()).take(ready));
        client.transmitted(ready);
        assert!(client.pending_bytes() < 2000);
    }
    wire.extend(written(&mut client, 4));
    assert!(client.send_done());
    assert!(wire.ends_with(&expected), "the body is what was queued");
}

#[test]
fn an_idle_connection_may_give_up_its_buffers() {
    let mut pair = Pair::connect();
    get(&mut pair, "/");
    answer(&mut pair, &Fields::new(), "one");
    pair.client.shrink(0);
    assert_eq!(pair.client.recv_buf().capacity(), 0);
    get(&mut pair, "/");
    answer(&mut pair, &Fields::new(), "two");
    assert_eq!(body(&pair.at_client), b"onetwo");
}

#[test]
fn a_response_body_is_handed_out_without_a_copy() {
    let mut client = rig::asked(&Method::GET);
    client.recv(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
    let place = client.recv_buf().last_chunk::<4>().expect("the body is there").as_ptr();
    assert!(matches!(client.poll_event(), Ok(Some(mimus_proto::Event::Head(_)))));
    match client.poll_event() {
        Ok(Some(mimus_proto::Event::Data(data))) => assert_eq!(data.as_ptr(), place),
        other => panic!("expected data: {other:?}"),
    }
}

#[test]
fn an_early_answer_is_delivered_and_the_upload_may_still_end() {
    let mut pair = Pair::connect();
    let host = fields([("Host", "h")]);
    pair.client.send_head(&Method::POST, "/", &host, BodyLength::Known(6)).unwrap();
    pair.client.send_data(Bytes::from_static(b"abc")).unwrap();
    pair.settle();
    pair.server.send_head(StatusCode::PAYLOAD_TOO_LARGE, &Fields::new(), BodyLength::None).unwrap();
    pair.settle();
    assert!(pair.client.recv_done());
    assert_eq!(pair.client.upload(), Upload::Open);
    assert_eq!(pair.client.reuse(), Reuse::No(NoReuse::UploadUnfinished));
    pair.client.send_data(Bytes::from_static(b"def")).unwrap();
    pair.settle();
    assert_eq!(pair.client.reuse(), Reuse::Yes);
    assert_eq!(body(&pair.at_server), b"abcdef");
}

#[test]
fn a_stopped_upload_ends_the_connection() {
    let mut pair = Pair::connect();
    let host = fields([("Host", "h")]);
    pair.client.send_head(&Method::POST, "/", &host, BodyLength::Known(6)).unwrap();
    pair.client.send_data(Bytes::from_static(b"abc")).unwrap();
    pair.client.stop_body();
    assert_eq!(pair.client.send_data(Bytes::from_static(b"def")), Err(ApiMisuse::BodyWithdrawn));
    pair.settle();
    assert_eq!(body(&pair.at_server), b"");
    answer(&mut pair, &Fields::new(), "");
    assert_eq!(pair.client.reuse(), Reuse::No(NoReuse::UploadUnfinished));
    let next = pair.client.send_head(&Method::GET, "/", &host, BodyLength::None);
    assert_eq!(next, Err(ApiMisuse::NotReusable));
}

#[test]
fn stopping_the_body_of_a_request_without_one_changes_nothing() {
    let mut pair = Pair::connect();
    let host = fields([("Host", "h")]);
    pair.client.send_head(&Method::GET, "/", &host, BodyLength::None).unwrap();
    pair.client.stop_body();
    pair.settle();
    answer(&mut pair, &Fields::new(), "x");
    assert_eq!(pair.client.reuse(), Reuse::Yes);
}

fn expecting(pair: &mut Pair) {
    let wanted = fields([("Host", "h"), ("Expect", "100-continue")]);
    pair.client.send_head(&Method::POST, "/", &wanted, BodyLength::Known(4)).unwrap();
    pair.client.send_data(Bytes::from_static(b"body")).unwrap();
    pair.settle();
    assert_eq!(pair.client.upload(), Upload::Held);
    assert!(!pair.client.body_allowed_now());
    assert!(!pair.client.has_output());
    assert!(pair.server.expects_continue());
    assert_eq!(pair.at_server.len(), 1, "only the head arrived");
}

#[test]
fn an_expectant_body_waits_for_100_continue() {
    let mut pair = Pair::connect();
    expecting(&mut pair);
    pair.server.send_informational(StatusCode::CONTINUE, &Fields::new()).unwrap();
    pair.settle();
    assert_eq!(body(&pair.at_server), b"body");
    assert_eq!(pair.at_client, [Seen::Informational(100)]);
    answer(&mut pair, &Fields::new(), "ok");
    assert_eq!(pair.client.reuse(), Reuse::Yes);
}

#[test]
fn another_interim_response_does_not_let_the_body_go() {
    let mut pair = Pair::connect();
    expecting(&mut pair);
    let hints = fields([("Link", "</a.css>; rel=preload")]);
    pair.server.send_informational(StatusCode::EARLY_HINTS, &hints).unwrap();
    pair.settle();
    assert_eq!(pair.at_client, [Seen::Informational(103)]);
    assert_eq!(pair.client.upload(), Upload::Held);
}

#[test]
fn an_expectant_body_goes_when_the_wait_is_over() {
    let mut pair = Pair::connect();
    pair.client.set_expect_wait(Duration::from_millis(300));
    expecting(&mut pair);
    let deadline = pair.client.poll_timeout(pair.now).expect("a wait is running");
    assert_eq!(deadline - pair.now, Duration::from_millis(300));
    pair.wait(Duration::from_millis(299));
    assert_eq!(body(&pair.at_server), b"");
    pair.wait(Duration::from_millis(1));
    assert_eq!(body(&pair.at_server), b"body");
    assert_eq!(pair.client.poll_timeout(pair.now), None);
}

#[test]
fn the_wait_starts_when_the_head_is_written() {
    let mut pair = Pair::connect();
    let wanted = fields([("Host", "h"), ("Expect", "100-Continue")]);
    pair.client.send_head(&Method::POST, "/", &wanted, BodyLength::Known(4)).unwrap();
    assert_eq!(pair.client.poll_timeout(pair.now), None);
    pair.settle();
    assert!(pair.client.poll_timeout(pair.now).is_some());
}

#[test]
fn a_refused_expectation_withdraws_the_body() {
    let mut pair = Pair::connect();
    expecting(&mut pair);
    let refusal = StatusCode::EXPECTATION_FAILED;
    pair.server.send_head(refusal, &Fields::new(), BodyLength::None).unwrap();
    pair.settle();
    assert_eq!(pair.client.upload(), Upload::Withdrawn);
    assert_eq!(body(&pair.at_server), b"");
    assert_eq!(pair.at_client.last(), Some(&Seen::End));
    assert_eq!(pair.client.poll_timeout(pair.now), None);
    assert_eq!(pair.client.reuse(), Reuse::No(NoReuse::UploadUnfinished));
}

#[test]
fn an_upgrade_hands_over_what_came_with_the_head() {
    let mut pair = Pair::connect();
    let offer = fields([("Host", "h"), ("Connection", "Upgrade"), ("Upgrade", "websocket")]);
    pair.client.send_head(&Method::GET, "/chat", &offer, BodyLength::None).unwrap();
    pair.settle();
    let switch = fields([("Connection", "Upgrade"), ("Upgrade", "websocket")]);
    pair.server.send_head(StatusCode::SWITCHING_PROTOCOLS, &switch, BodyLength::None).unwrap();
    let mut wire = written(&mut pair.server, 4);
    wire.extend_from_slice(b"\x81\x02hi");
    pair.client.recv(&wire);
    rig::drain(&mut pair.client, &mut pair.at_client);
    let tail = [Seen::Upgraded, Seen::Rest(b"\x81\x02hi".to_vec())];
    assert!(pair.at_client.ends_with(&tail), "{:?}", pair.at_client);
    assert_eq!(pair.client.reuse(), Reuse::No(NoReuse::Upgraded));
    rig::drain(&mut pair.server, &mut pair.at_server);
    assert_eq!(pair.server.reuse(), Reuse::No(NoReuse::Upgraded));
}

#[test]
fn a_connect_becomes_a_tunnel_only_on_success() {
    for (status, tunnel) in [(StatusCode::OK, true), (StatusCode::FORBIDDEN, false)] {
        let mut pair = Pair::connect();
        let host = fields([("Host", "h:443")]);
        pair.client.send_head(&Method::CONNECT, "h:443", &host, BodyLength::None).unwrap();
        pair.settle();
        pair.server.send_head(status, &Fields::new(), BodyLength::None).unwrap();
        pair.settle();
        assert_eq!(pair.at_client.contains(&Seen::Upgraded), tunnel, "{status}");
        assert_eq!(pair.client.reuse() == Reuse::Yes, !tunnel, "{status}");
    }
}

#[test]
fn pipelined_requests_are_read_one_after_the_other() {
    let mut pair = Pair::connect();
    pair.server.recv(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n");
    pair.settle();
    assert_eq!(pair.at_server.len(), 2, "{:?}", pair.at_server);
    pair.server.send_head(StatusCode::OK, &Fields::new(), BodyLength::None).unwrap();
    rig::drain(&mut pair.server, &mut pair.at_server);
    assert_eq!(pair.at_server.len(), 4, "{:?}", pair.at_server);
}

#[test]
fn a_chunked_answer_to_http_1_0_ends_with_the_connection() {
    let mut pair = Pair::connect();
    pair.server.recv(b"GET / HTTP/1.0\r\n\r\n");
    rig::drain(&mut pair.server, &mut pair.at_server);
    pair.server.send_head(StatusCode::OK, &Fields::new(), BodyLength::Chunked).unwrap();
    pair.server.send_data(Bytes::from_static(b"old")).unwrap();
    pair.server.send_end(None).unwrap();
    assert_eq!(written(&mut pair.server, 4), b"HTTP/1.1 200 OK\r\n\r\nold");
    assert_eq!(pair.server.reuse(), Reuse::No(NoReuse::Http10));
}

#[test]
fn the_rest_of_a_body_is_taken_whole_or_not_at_all() {
    let mut client = rig::asked(&Method::GET);
    client.recv(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
    assert_eq!(client.take_rest(), None, "the head comes first");
    let _head = client.poll_event();
    assert_eq!((client.remaining_body(), client.take_rest()), (Some(6), None));
    client.recv(b"def");
    assert_eq!(client.take_rest().as_deref(), Some(&b"abcdef"[..]));
    assert!(client.recv_done());
    assert!(client.poll_event().unwrap().is_none());
    assert_eq!(client.reuse(), Reuse::Yes);
    assert_eq!(client.take_rest(), None, "there is no message any more");
}

#[test]
fn what_follows_a_body_taken_whole_bars_reuse() {
    let mut client = rig::asked(&Method::GET);
    client.recv(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n");
    let _head = client.poll_event();
    assert_eq!(client.take_rest().as_deref(), Some(&b"ok"[..]));
    assert_eq!(client.reuse(), Reuse::No(NoReuse::ExtraBytes));
}

#[test]
fn a_body_without_a_known_length_is_not_taken_whole() {
    for head in ["Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "\r\nabc"] {
        let mut client = rig::asked(&Method::GET);
        client.recv(format!("HTTP/1.1 200 OK\r\n{head}").as_bytes());
        let _head = client.poll_event();
        assert_eq!(client.take_rest(), None);
        assert!(
            matches!(client.poll_event(), Ok(Some(mimus_proto::Event::Data(data))) if data == "abc")
        );
    }
    let mut client = rig::asked(&Method::HEAD);
    client.recv(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
    let _head = client.poll_event();
    assert_eq!(client.take_rest().as_deref(), Some(&b""[..]), "there is none, so it is here");
}
