//! How streams and connections end: RST_STREAM, GOAWAY, the end of the bytes, time.

use std::time::Duration;

use http::Method;
use mimus_proto::h2::{Busy, Code, Limits, Opening, Sent, StreamError};
use mimus_proto::{ApiMisuse, Error, LimitExceeded, PeerMisbehaved, UnexpectedEof};

use crate::rig::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_reset_by_the_server_comes_behind_what_it_said() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&[status(1, 0, "200"), data(1, 0, b"part"), rst(1, 2)].concat());
    let error = Seen::Error(StreamError::Reset(Code::INTERNAL_ERROR));
    assert_eq!(rig.events(stream), [head(200), Seen::Data(b"part".into()), error]);
    assert_eq!(rig.client.open_streams(), 0);
    rig.client.reset(stream, Code::CANCEL);
    assert!(rig.frames().is_empty(), "a stream that was reset is not reset again");
}

#[test]
fn a_refused_stream_was_not_processed() {
    let mut rig = Rig::ready();
    let (stream, answered) = (rig.get(), rig.get());
    rig.ok(&rst(1, 7));
    let refused = StreamError::NotProcessed(Code::REFUSED_STREAM);
    assert_eq!(rig.events(stream), [Seen::Error(refused)]);
    // RFC 9113 section 8.7: only if no processing occurred, which a head disproves.
    rig.ok(&[status(3, 0, "200"), rst(3, 7)].concat());
    let reset = Seen::Error(StreamError::Reset(Code::REFUSED_STREAM));
    assert_eq!(rig.events(answered), [head(200), reset]);
}

#[test]
fn an_early_response_is_whole_though_the_upload_is_stopped() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    rig.send(stream, 100_000);
    rig.frames();
    let response = [status(1, 0, "413"), data(1, END_STREAM, b"too much"), rst(1, 0)].concat();
    rig.ok(&response);
    assert_eq!(rig.client.send_data(stream, "x".into()), Err(ApiMisuse::BodyWithdrawn));
    assert!(!rig.client.wants_body(stream));
    rig.ok(&window_update(0, 1 << 20));
    assert!(rig.frames().is_empty(), "what was queued is not sent any more");
    let log = rig.events(stream);
    assert_eq!(log, [head(413), Seen::Data(b"too much".into()), Seen::End]);
    assert_eq!((rig.client.open_streams(), rig.client.sent(stream)), (0, Sent::Part));
}

#[test]
fn a_reset_without_an_error_is_one_before_the_response_is_whole() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    rig.ok(&[status(1, 0, "200"), data(1, 0, b"x"), rst(1, 0)].concat());
    let log = rig.events(stream);
    assert_eq!(log.last(), Some(&Seen::Error(StreamError::Reset(Code::NO_ERROR))));
}

#[test]
fn a_response_may_begin_and_end_before_the_request_does() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    rig.ok(&[status(1, 0, "200"), data(1, END_STREAM, b"early")].concat());
    assert_eq!(rig.events(stream), [head(200), Seen::Data(b"early".into()), Seen::End]);
    assert_eq!(rig.client.open_streams(), 1);
    rig.send(stream, 5);
    rig.client.send_end(stream, None).expect("an open body");
    assert_eq!(rig.frames()[0].flags, END_STREAM);
    assert_eq!((rig.client.open_streams(), rig.client.sent(stream)), (0, Sent::Whole));
}

#[test]
fn giving_a_stream_up_resets_it_once() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    rig.send(stream, 1 << 20);
    rig.client.reset(stream, Code::CANCEL);
    assert_eq!(rig.client.open_streams(), 0);
    rig.client.reset(stream, Code::CANCEL);
    assert_eq!(rig.kinds(), [(RST_STREAM, 1)], "and nothing of the body");
    assert!(rig.client.is_idle());
}

#[test]
fn a_graceful_going_away_delivers_what_it_promised() {
    let mut rig = Rig::ready();
    let (first, second) = (rig.get(), rig.get());
    rig.ok(&[status(1, 0, "200"), data(1, 0, b"half")].concat());
    // RFC 9113 section 6.8: first a warning, then the last stream.
    rig.ok(&go_away(0x7fff_ffff, 0));
    assert_eq!(rig.client.can_open(), Err(Busy::Going));
    assert_eq!(rig.events(second), []);
    rig.ok(&go_away(1, 0));
    let unprocessed = Seen::Error(StreamError::NotProcessed(Code::NO_ERROR));
    assert_eq!(rig.events(second), [unprocessed]);
    rig.ok(&data(1, END_STREAM, b" and half"));
    rig.client.recv_eof();
    assert_eq!(rig.client.process(rig.now), Ok(()), "nothing was lost");
    let log = rig.events(first);
    assert_eq!(log, [head(200), Seen::Data(b"half and half".into()), Seen::End]);
    assert_eq!(rig.client.gone_away(), Some(Code::NO_ERROR));
}

#[test]
fn going_away_in_the_middle_of_a_body_is_never_a_short_success() {
    for (code, expected) in [
        (0, StreamError::Connection(UnexpectedEof::InBody.into())),
        (2, StreamError::GoneAway(Code::INTERNAL_ERROR)),
    ] {
        let mut rig = Rig::ready();
        let stream = rig.get();
        rig.ok(&[status(1, 0, "200"), data(1, 0, b"half"), go_away(1, code)].concat());
        rig.client.recv_eof();
        assert_eq!(rig.client.process(rig.now), Err(UnexpectedEof::InBody.into()));
        let log = rig.events(stream);
        assert_eq!(log[1..], [Seen::Data(b"half".into()), Seen::Error(expected)]);
    }
    // Left behind although its response had begun: it was processed.
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&[status(1, 0, "200"), go_away(0, 2)].concat());
    let error = Seen::Error(StreamError::GoneAway(Code::INTERNAL_ERROR));
    assert_eq!(rig.events(stream), [head(200), error]);
}

#[test]
fn a_going_away_takes_no_promise_back_but_may_narrow_it() {
    let mut rig = Rig::ready();
    rig.ok(&[go_away(9, 0), go_away(5, 0), go_away(5, 1)].concat());
    let expected = (PeerMisbehaved::GoAwayRaised.into(), Code::PROTOCOL_ERROR.0);
    assert_eq!(rig.fails(&go_away(7, 0)), expected);
}

#[test]
fn what_a_going_away_explains_is_skipped() {
    let mut rig = Rig::ready();
    let payload = [&[0; 4][..], &11_u32.to_be_bytes(), &[b'x'; 9000]].concat();
    let stream = rig.get();
    let frame = frame(GOAWAY, 0, 0, &payload);
    for piece in frame.chunks(100) {
        rig.ok(piece);
        assert!(rig.client.recv_buf().len() < 100);
    }
    let unprocessed = StreamError::NotProcessed(Code::ENHANCE_YOUR_CALM);
    assert_eq!(rig.events(stream), [Seen::Error(unprocessed)]);
}

#[test]
fn going_away_ourselves_lets_open_streams_end() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.client.go_away(Code::NO_ERROR);
    assert_eq!(rig.client.can_open(), Err(Busy::Going));
    assert_eq!(rig.kinds(), [(GOAWAY, 0)]);
    rig.ok(&status(1, END_STREAM, "204"));
    assert_eq!(rig.events(stream), [head(204), Seen::End]);
    assert!(rig.client.is_idle());
}

#[test]
fn the_end_of_the_bytes_is_an_error_for_what_is_open() {
    let mut rig = Rig::ready();
    let (waiting, reading, done) = (rig.get(), rig.get(), rig.get());
    rig.ok(&[status(3, 0, "200"), data(3, 0, b"x"), status(5, END_STREAM, "204")].concat());
    rig.client.recv_eof();
    assert!(!rig.client.wants_read());
    assert_eq!(rig.client.process(rig.now), Err(UnexpectedEof::InBody.into()));
    let lost = |place: UnexpectedEof| Seen::Error(StreamError::Connection(place.into()));
    assert_eq!(rig.events(waiting), [lost(UnexpectedEof::BeforeHead)]);
    assert_eq!(rig.events(reading)[2..], [lost(UnexpectedEof::InBody)]);
    assert_eq!(rig.events(done), [head(204), Seen::End], "a whole response stays whole");
    assert_eq!(rig.client.can_open(), Err(Busy::Going));
    let mut idle = Rig::ready();
    idle.client.recv_eof();
    assert_eq!(idle.client.process(idle.now), Ok(()));
    assert_eq!(idle.client.can_open(), Err(Busy::Going));
}

#[test]
fn the_end_of_the_bytes_inside_a_frame_is_an_error() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&status(1, END_STREAM, "204"));
    rig.client.recv(&data(1, 0, b"xyz")[..5]);
    rig.client.recv_eof();
    assert_eq!(rig.client.process(rig.now), Err(UnexpectedEof::InFrame.into()));
    assert_eq!(rig.events(stream), [head(204), Seen::End]);
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&[status(1, 0, "200"), data(1, END_STREAM, b"xyz")[..10].to_vec()].concat());
    rig.client.recv_eof();
    assert_eq!(rig.client.process(rig.now), Err(UnexpectedEof::InBody.into()));
    let log = rig.events(stream);
    let lost = StreamError::Connection(UnexpectedEof::InBody.into());
    assert_eq!(log[1..], [Seen::Data(b"x".into()), Seen::Error(lost)]);
}

#[test]
fn a_failed_connection_fails_every_stream_that_is_not_whole() {
    let mut rig = Rig::ready();
    let (waiting, whole, sending) = (rig.get(), rig.get(), rig.post());
    rig.send(sending, 10);
    rig.ok(&status(3, END_STREAM, "204"));
    let (error, _) =
        rig.fails(&ping(&[0; 8]).iter().chain(&rst(0, 0)).copied().collect::<Vec<_>>());
    let failed = Seen::Error(StreamError::Connection(error));
    assert_eq!(rig.events(waiting), std::slice::from_ref(&failed));
    assert_eq!(rig.events(whole), [head(204), Seen::End]);
    assert_eq!(rig.events(sending), [failed]);
    assert_eq!(rig.client.send_data(sending, "x".into()), Err(ApiMisuse::BodyWithdrawn));
    assert_eq!((rig.client.error(), rig.client.can_open()), (Some(error), Err(Busy::Going)));
    let stirred: Vec<_> = std::iter::from_fn(|| rig.client.next_stirred()).collect();
    assert!([waiting, whole, sending].iter().all(|stream| stirred.contains(stream)));
    assert_eq!(rig.feed(&ping(&[0; 8])), Err(error));
    for stream in [waiting, whole, sending] {
        rig.client.reset(stream, Code::CANCEL);
    }
    assert!(rig.frames().is_empty());
}

#[test]
fn how_much_of_a_request_left_is_known_to_the_byte() {
    let mut rig = Rig::ready();
    let (first, second) = (rig.ask(&Method::POST, false), rig.ask(&Method::GET, true));
    rig.send(first, 10);
    assert_eq!(rig.client.sent(first), Sent::Nothing);
    let mut slices = [std::io::IoSlice::new(&[]); 1];
    rig.client.poll_transmit(&mut slices);
    rig.client.transmitted(1);
    assert_eq!((rig.client.sent(first), rig.client.sent(second)), (Sent::Part, Sent::Nothing));
    rig.client.send_end(first, None).expect("an open body");
    let mut wire = vec![0];
    wire.extend_from_slice(&written(&mut rig.client, 2));
    assert_eq!((rig.client.sent(first), rig.client.sent(second)), (Sent::Whole, Sent::Whole));
    assert_eq!(parse(&mut wire).len(), 4);
}

#[test]
fn as_many_streams_are_open_as_the_server_allows() {
    let mut rig = Rig::settings(&[(3, 2)]);
    let (first, _second) = (rig.get(), rig.get());
    assert_eq!(rig.client.can_open(), Err(Busy::Full));
    let none = Default::default();
    assert_eq!(rig.try_open(&line(&Method::GET, &none, true)), Err(ApiMisuse::CannotOpen));
    rig.ok(&status(1, END_STREAM, "204"));
    assert_eq!(rig.client.can_open(), Ok(()), "whether or not the first was read");
    assert_eq!(rig.events(first).len(), 2);
    rig.ok(&settings(&[(3, 0)]));
    assert_eq!(rig.client.can_open(), Err(Busy::Full));
    rig.ok(&settings(&[(3, 100)]));
    assert_eq!((rig.client.can_open(), rig.client.max_streams()), (Ok(()), 100));
}

#[test]
fn settings_that_are_not_acknowledged_in_time_end_the_connection() {
    let mut rig = Rig::with(&Opening::default(), Limits::default());
    rig.ok(&settings(&[]));
    rig.frames();
    assert_eq!(rig.client.poll_timeout(rig.now), Some(rig.now + 30 * SECOND));
    rig.wait(29 * SECOND);
    assert_eq!(rig.client.error(), None);
    rig.wait(SECOND);
    assert_eq!(rig.client.error(), Some(LimitExceeded::SettingsWait.into()));
    let frames = rig.frames();
    assert_eq!((frames[0].kind, Code(frames[0].number())), (GOAWAY, Code::SETTINGS_TIMEOUT));
    assert_eq!(rig.client.poll_timeout(rig.now), None);

    let mut rig = Rig::ready();
    assert_eq!(rig.client.poll_timeout(rig.now), None, "they were acknowledged");
}

#[test]
fn a_silent_connection_is_asked_whether_it_lives() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    assert_eq!(rig.client.poll_timeout(rig.now), Some(rig.now + 30 * SECOND));
    rig.wait(20 * SECOND);
    rig.ok(&status(1, 0, "200"));
    assert_eq!(rig.client.poll_timeout(rig.now), Some(rig.now + 30 * SECOND), "it spoke");
    rig.wait(30 * SECOND);
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (PING, 0));
    assert!(rig.client.awaits_pong());
    rig.ok(&frame(PING, ACK, 0, &frames[0].payload));
    assert!(!rig.client.awaits_pong());

    rig.wait(30 * SECOND);
    assert_eq!(rig.kinds(), [(PING, 0)]);
    assert_eq!(rig.client.poll_timeout(rig.now), Some(rig.now + 20 * SECOND));
    rig.wait(19 * SECOND);
    assert_eq!(rig.client.error(), None);
    rig.wait(SECOND);
    let dead = Error::from(LimitExceeded::PingWait);
    assert_eq!(rig.client.error(), Some(dead));
    let log = rig.events(stream);
    assert_eq!(log, [head(200), Seen::Error(StreamError::Connection(dead))]);
}

#[test]
fn an_idle_connection_is_left_alone() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&status(1, END_STREAM, "204"));
    assert_eq!(rig.client.poll_timeout(rig.now), None);
    rig.wait(1000 * SECOND);
    assert!(rig.frames().is_empty());
    rig.client.reset(stream, Code::NO_ERROR);
    rig.get();
    let due = rig.client.poll_timeout(rig.now);
    assert_eq!(due, Some(rig.now + 30 * SECOND), "the silence before does not count");
}

#[test]
fn a_ping_of_ones_own_has_a_deadline() {
    let mut rig = Rig::ready();
    rig.client.ping(rig.now);
    rig.client.ping(rig.now);
    assert_eq!(rig.kinds(), [(PING, 0)], "one at a time");
    assert_eq!(rig.client.poll_timeout(rig.now), Some(rig.now + 20 * SECOND));
    rig.wait(20 * SECOND);
    assert_eq!(rig.client.error(), Some(LimitExceeded::PingWait.into()));
}

#[test]
fn a_connection_that_idles_keeps_little() {
    let mut rig = Rig::settings(&[(3, 1000)]);
    let streams: Vec<_> = (0..500).map(|_| rig.get()).collect();
    for &stream in &streams {
        rig.ok(&status(stream.id(), END_STREAM, "204"));
        rig.events(stream);
        rig.client.reset(stream, Code::NO_ERROR);
    }
    rig.client.shrink(0);
    assert_eq!(rig.client.recv_buf().capacity(), 0);
    let stream = rig.get();
    rig.ok(&status(stream.id(), END_STREAM, "204"));
    assert_eq!(rig.client.next_stirred(), Some(stream));
    assert_eq!(rig.events(stream), [head(204), Seen::End]);
    assert!(matches!(rig.client.poll_event(streams[0]), Err(StreamError::Misuse(_))));
}
