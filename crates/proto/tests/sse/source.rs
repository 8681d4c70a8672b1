//! The machine of an `EventSource`, on a virtual clock.

use std::time::{Duration, Instant};

use http::StatusCode;
use mimus_proto::sse::{Action, Ending, Policy, Refused, Source, Verdict};

const TYPE: Option<&str> = Some("text/event-stream; charset=utf-8");

/// A source, and the time at it.
struct Bench {
    source: Source,
    now: Instant,
    random: u64,
}

impl Bench {
    fn new(policy: Policy) -> Self {
        Bench { source: Source::new(policy), now: Instant::now(), random: 0 }
    }

    /// Connects as soon as it wants to, after how long.
    fn connect(&mut self) -> Duration {
        let before = self.now;
        if let Action::Wait(at) = self.source.action(self.now) {
            assert_eq!(self.source.action(at - Duration::from_nanos(1)), Action::Wait(at));
            self.now = at;
        }
        assert_eq!(self.source.action(self.now), Action::Connect);
        self.source.connecting();
        assert_eq!(self.source.action(self.now), Action::Read);
        self.now - before
    }

    fn answered(&mut self, status: u16, content_type: Option<&str>) -> Verdict {
        let status = StatusCode::from_u16(status).expect("a status");
        self.source.answered(status, content_type, self.now, self.random)
    }

    /// Connects, is answered with this stream, and reads its data.
    fn stream(&mut self, stream: &'static str) -> Vec<String> {
        self.connect();
        assert_eq!(self.answered(200, TYPE), Verdict::Open);
        self.source.push(stream.into());
        let mut data = Vec::new();
        while let Some(event) = self.source.next_event().expect("short events") {
            data.push(event.data().into_owned());
        }
        data
    }

    fn end(&mut self) -> bool {
        self.source.ended(Ending::Passing, self.now, self.random)
    }
}

fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::default();
    change(&mut policy);
    policy
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_stream_that_ends_is_gone_on_with_behind_its_last_event() {
    let mut b = Bench::new(Policy::default());
    assert_eq!(b.stream("retry: 50\nid: 1\ndata: a\n\nid: 2\ndata: b"), ["a"]);
    assert_eq!(b.source.last_event_id(), "1");
    assert!(b.end());
    assert_eq!(b.connect(), ms(50));
    assert_eq!(b.source.last_event_id(), "1", "not that of an event that was not whole");
    assert_eq!(b.answered(200, TYPE), Verdict::Open);
    b.source.push("data: b\n\n".into());
    assert_eq!(b.source.next_event().unwrap().expect("an event").data(), "b");
}

#[test]
fn the_reconnection_time_is_the_policys_until_the_server_names_one() {
    let mut b = Bench::new(policy(|p| p.retry = ms(700)));
    b.stream(":\n");
    b.end();
    assert_eq!(b.connect(), ms(700));
    assert_eq!(b.answered(200, TYPE), Verdict::Open);
    b.source.push("retry: 900\n".into());
    assert!(b.source.next_event().unwrap().is_none());
    b.end();
    assert_eq!(b.connect(), ms(900));
    // It stays the source's in the next stream.
    assert_eq!(b.answered(200, TYPE), Verdict::Open);
    b.source.push(":\n".into());
    b.end();
    assert_eq!(b.connect(), ms(900));
}

#[test]
fn what_the_server_names_is_kept_within_bounds() {
    let mut b = Bench::new(policy(|p| (p.min_retry, p.max_retry) = (ms(20), ms(5000))));
    b.stream("retry: 0\n");
    b.end();
    assert_eq!(b.connect(), ms(20));
    assert_eq!(b.answered(200, TYPE), Verdict::Open);
    b.source.push("retry: 99999999999999999999\n".into());
    assert!(b.source.next_event().unwrap().is_none());
    b.end();
    assert_eq!(b.connect(), ms(5000));
}

#[test]
fn failures_in_a_row_double_what_may_be_waited_up_to_a_cap() {
    let mut b = Bench::new(policy(|p| (p.retry, p.max_backoff) = (ms(100), ms(1000))));
    b.stream(":\n");
    for (random, wanted) in
        [(0, 100), (u64::MAX, 200), (u64::MAX, 400), (0, 100), (u64::MAX, 1000), (u64::MAX, 1000)]
    {
        b.random = random;
        assert!(b.end());
        assert_eq!(b.connect(), ms(wanted));
    }
    // Any sign of life begins anew.
    assert_eq!(b.answered(200, TYPE), Verdict::Open);
    b.source.push(":\n".into());
    assert!(b.end());
    assert_eq!(b.connect(), ms(100));
    // A cap below the reconnection time does not shorten it.
    let mut b = Bench::new(policy(|p| (p.retry, p.max_backoff) = (ms(100), ms(10))));
    b.random = u64::MAX;
    b.stream(":\n");
    for _ in 0..40 {
        assert!(b.end());
        assert_eq!(b.connect(), ms(100));
    }
}

#[test]
fn no_content_stops_it() {
    let mut b = Bench::new(Policy::default());
    b.stream("data: a\n\n");
    b.end();
    b.connect();
    assert_eq!(b.answered(204, None), Verdict::Over);
    assert_eq!(b.source.action(b.now), Action::Stop);
    assert!(b.source.is_closed());
}

#[test]
fn another_status_or_type_fails_it_for_good() {
    for (status, content_type) in
        [(200, None), (200, Some("text/html")), (200, Some("text/event-streams"))]
    {
        let mut b = Bench::new(Policy::default());
        b.connect();
        assert_eq!(b.answered(status, content_type), Verdict::Refused(Refused::ContentType));
        assert_eq!(b.source.action(b.now), Action::Stop);
    }
    for status in [201, 205, 210, 301, 404, 429, 500, 503] {
        let mut b = Bench::new(Policy::default());
        b.stream("data: a\n\n");
        b.end();
        b.connect();
        let status_code = StatusCode::from_u16(status).expect("a status");
        assert_eq!(b.answered(status, TYPE), Verdict::Refused(Refused::Status(status_code)));
        assert_eq!(b.source.action(b.now), Action::Stop);
    }
}

#[test]
fn a_server_error_passes_where_that_is_asked_for() {
    let on = || policy(|p| p.on_server_error = true);
    for status in [429, 500, 503] {
        let mut b = Bench::new(on());
        b.stream("retry: 10\n");
        b.end();
        b.connect();
        assert_eq!(b.answered(status, None), Verdict::Again);
        assert_eq!(b.stream("data: a\n\n"), ["a"]);
    }
    // Not where there never was a stream, nor for what the client did wrong.
    let mut b = Bench::new(on());
    b.connect();
    assert!(matches!(b.answered(503, None), Verdict::Refused(_)));
    let mut b = Bench::new(on());
    b.stream(":\n");
    b.end();
    b.connect();
    assert!(matches!(b.answered(404, None), Verdict::Refused(_)));
}

#[test]
fn the_first_connection_is_tried_once_unless_told_otherwise() {
    let mut b = Bench::new(Policy::default());
    b.connect();
    assert!(!b.end());
    assert_eq!(b.source.action(b.now), Action::Stop);
    let mut b = Bench::new(policy(|p| p.from_start = true));
    b.connect();
    assert!(b.end());
    assert_eq!(b.connect(), ms(3000));
}

#[test]
fn what_will_not_pass_is_not_tried_again() {
    let mut b = Bench::new(Policy::default());
    b.stream(":\n");
    assert!(!b.source.ended(Ending::Futile, b.now, 0));
    assert!(b.source.is_closed());
}

#[test]
fn it_stops_when_it_may_not_reconnect_or_has_failed_too_often() {
    let mut b = Bench::new(policy(|p| p.reconnect = false));
    assert_eq!(b.stream("data: a\n\n"), ["a"]);
    assert!(!b.end());
    let mut b = Bench::new(policy(|p| p.max_failures = Some(2)));
    b.stream(":\n");
    for _ in 0..2 {
        assert!(b.end());
        b.connect();
    }
    assert!(!b.end(), "the stream's own end and two attempts");
    let mut b = Bench::new(Policy::default());
    b.stream(":\n");
    b.source.close();
    assert_eq!(b.source.action(b.now), Action::Stop);
}

#[test]
fn an_event_over_the_limit_ends_it() {
    let mut b = Bench::new(policy(|p| p.limits = p.limits.event(3)));
    b.connect();
    assert_eq!(b.answered(200, TYPE), Verdict::Open);
    b.source.push("data: abcd\n\n".into());
    assert!(b.source.next_event().is_err());
    assert!(b.source.is_closed());
}

#[test]
fn an_id_that_was_seen_earlier_is_where_it_begins() {
    let mut b = Bench::new(Policy::default());
    b.source.set_last_event_id("41");
    assert_eq!(b.source.last_event_id(), "41");
    assert_eq!(b.stream("data: a\n\n"), ["a"]);
    assert_eq!(b.source.last_event_id(), "41");
}
