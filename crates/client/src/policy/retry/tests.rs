use super::*;
use std::time::UNIX_EPOCH;

const NEVER_SENT: Attempted<'static> = Attempted {
    method: &Method::POST,
    sent: Sent::Nothing,
    reused: true,
    response_begun: false,
    ending: Ending::Failed(Failure::Closed),
    retry_after: None,
    replayable: true,
    history: History { free: 0, stale: false, version: false, paid: 0 },
};

const ANSWERED: Attempted<'static> = Attempted {
    method: &Method::GET,
    sent: Sent::Whole,
    reused: false,
    response_begun: true,
    ending: Ending::Status(StatusCode::SERVICE_UNAVAILABLE),
    ..NEVER_SENT
};

fn now() -> Now {
    Now { instant: Instant::now(), system: UNIX_EPOCH + Duration::from_secs(1_800_000_000) }
}

fn half() -> u64 {
    u64::MAX / 2 + 1
}

fn ask(policy: Option<&RetryPolicy>, attempted: &Attempted<'_>) -> Verdict {
    decide(policy, attempted, now, None, &mut half)
}

/// The delay of a paid retry.
fn delay(policy: &RetryPolicy, attempted: &Attempted<'_>) -> Option<Duration> {
    let now = now();
    match decide(Some(policy), attempted, || now, None, &mut half) {
        Verdict::RetryAt(at, history) => {
            assert_eq!(history.retries(), attempted.history.retries() + 1);
            Some(at - now.instant)
        }
        Verdict::Done => None,
        Verdict::RetryNow(_) => panic!("not for free"),
    }
}

#[test]
fn what_is_repeated_for_free() {
    use Failure::*;
    use Sent::*;
    let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
    // method, sent, reused, response begun, failure, then whether it is repeated.
    let table = [
        (&post, Nothing, true, false, Closed, true),
        (&post, Nothing, false, false, Closed, true),
        (&get, Nothing, true, false, Closed, true),
        (&get, Nothing, true, false, Connect, false),
        (&get, Whole, false, false, OtherVersion, true),
        (&get, Whole, false, true, OtherVersion, false),
        (&post, Nothing, false, false, OtherVersion, true),
        (&post, Whole, false, false, OtherVersion, false),
        (&get, Nothing, true, false, Timeout, false),
        (&get, Nothing, true, false, Other, false),
        (&get, HeadPartly, true, false, Closed, true),
        (&get, Head, true, false, Closed, true),
        (&get, Whole, true, false, Closed, true),
        (&post, Nothing, true, false, Refused, true),
        (&post, Nothing, false, false, Refused, true),
        (&post, Nothing, true, true, Refused, false),
        (&put, Whole, true, false, Closed, true),
        (&post, HeadPartly, true, false, Closed, false),
        (&post, Head, true, false, Closed, false),
        (&post, Whole, true, false, Closed, false),
        (&get, Whole, false, false, Closed, false),
        (&get, Head, false, false, Closed, false),
        (&get, Whole, true, true, Closed, false),
        (&get, Whole, true, false, Timeout, false),
        (&get, Whole, true, false, Other, false),
    ];
    for (method, sent, reused, response_begun, failure, expected) in table {
        let ending = Ending::Failed(failure);
        let attempted = Attempted { method, sent, reused, response_begun, ending, ..NEVER_SENT };
        let verdict = ask(None, &attempted);
        assert_eq!(matches!(verdict, Verdict::RetryNow(_)), expected, "{attempted:?}");
        let spent = Attempted { replayable: false, ..attempted };
        assert_eq!(ask(Some(&RetryPolicy::default()), &spent), Verdict::Done);
    }
}

#[test]
fn free_retries_are_bounded() {
    let mut attempted = NEVER_SENT;
    for _ in 0..FREE_RETRIES {
        let Verdict::RetryNow(history) = ask(None, &attempted) else { panic!("within bounds") };
        attempted.history = history;
    }
    assert_eq!(attempted.history.retries(), FREE_RETRIES);
    assert_eq!(ask(None, &attempted), Verdict::Done);
}

/// How long the `n`-th free retry of a call waits, each attempt having ended in `failure`.
fn free_pauses(failure: Failure) -> Vec<Duration> {
    let mut attempted = Attempted { ending: Ending::Failed(failure), ..NEVER_SENT };
    let mut pauses = Vec::new();
    let now = now();
    loop {
        let (pause, history) = match decide(None, &attempted, || now, None, &mut half) {
            Verdict::Done => return pauses,
            Verdict::RetryNow(history) => (Duration::ZERO, history),
            Verdict::RetryAt(at, history) => (at - now.instant, history),
        };
        assert_eq!(history.retries(), attempted.history.retries() + 1);
        attempted.history = history;
        pauses.push(pause);
    }
}

#[test]
fn a_server_that_keeps_refusing_is_given_time() {
    let pauses: Vec<u128> = free_pauses(Failure::Refused).iter().map(Duration::as_millis).collect();
    assert_eq!(pauses, [0, 0, 25, 50, 100, 200, 400, 800]);
    // A connection that had died in the pool says nothing about the server.
    assert_eq!(free_pauses(Failure::Closed), [Duration::ZERO; FREE_RETRIES as usize]);
}

#[test]
fn a_pause_ends_at_the_deadline() {
    let now = now();
    let history = History { free: REFUSALS_AT_ONCE, ..History::default() };
    let refused = Attempted { ending: Ending::Failed(Failure::Refused), history, ..NEVER_SENT };
    let ask = |left| {
        let deadline = Some(now.instant + left);
        decide(None, &refused, || now, deadline, &mut half)
    };
    assert_eq!(ask(REFUSAL_PAUSE), Verdict::Done);
    assert!(matches!(ask(REFUSAL_PAUSE * 2), Verdict::RetryAt(..)));
}

#[test]
fn a_refusal_is_worth_what_the_policy_has_left() {
    let policy = RetryPolicy::default();
    let history = History { free: FREE_RETRIES, ..History::default() };
    let refused = Attempted { ending: Ending::Failed(Failure::Refused), history, ..NEVER_SENT };
    assert_eq!(ask(None, &refused), Verdict::Done);
    assert!(delay(&policy, &refused).is_some(), "a POST too: it was not processed");
    assert!(delay(&policy.max_retries(0), &refused).is_none());
}

#[test]
fn a_stale_connection_is_excused_once() {
    let first = Attempted { method: &Method::GET, sent: Sent::Whole, ..NEVER_SENT };
    let Verdict::RetryNow(history) = ask(None, &first) else { panic!("once") };
    assert_eq!(ask(None, &Attempted { history, ..first }), Verdict::Done);
    assert!(delay(&RetryPolicy::default(), &Attempted { history, ..first }).is_some(), "opted in");
}

#[test]
fn what_the_default_policy_repeats() {
    let policy = RetryPolicy::default();
    for status in [408, 429, 502, 503, 504, 200, 301, 400, 404, 500, 501] {
        let worth = matches!(status, 408 | 429 | 502..=504);
        let ending = Ending::Status(StatusCode::from_u16(status).unwrap());
        let attempted = Attempted { ending, ..ANSWERED };
        assert_eq!(delay(&policy, &attempted).is_some(), worth, "{status}");
        assert_eq!(delay(&policy, &Attempted { method: &Method::POST, ..attempted }), None);
        assert_eq!(ask(None, &attempted), Verdict::Done);
    }
    let failed = |method, failure| Attempted {
        method,
        response_begun: false,
        ending: Ending::Failed(failure),
        ..ANSWERED
    };
    assert!(delay(&policy, &failed(&Method::GET, Failure::Closed)).is_some());
    assert!(delay(&policy, &failed(&Method::POST, Failure::Closed)).is_none());
    assert!(delay(&policy, &failed(&Method::GET, Failure::Timeout)).is_none());
    assert!(delay(&policy, &failed(&Method::GET, Failure::Other)).is_none());
    let connect = |failure| Attempted { sent: Sent::Nothing, ..failed(&Method::POST, failure) };
    assert!(delay(&policy, &connect(Failure::Connect)).is_some());
    assert!(delay(&policy, &connect(Failure::ConnectForGood)).is_none());
    assert!(delay(&policy.clone().on_connect(false), &connect(Failure::Connect)).is_none());
    let timeouts = policy.on_timeout(true);
    assert!(delay(&timeouts, &failed(&Method::GET, Failure::Timeout)).is_some());
    assert!(delay(&timeouts, &failed(&Method::POST, Failure::Timeout)).is_none());
}

#[test]
fn a_truncated_response_is_not_repeated() {
    let attempted = Attempted { ending: Ending::Failed(Failure::Closed), ..ANSWERED };
    assert_eq!(ask(Some(&RetryPolicy::default()), &attempted), Verdict::Done);
}

#[test]
fn delays_double_up_to_a_bound_with_full_jitter() {
    let policy = RetryPolicy::default().max_retries(u32::MAX);
    let after = |paid| {
        let history = History { paid, ..History::default() };
        delay(&policy, &Attempted { history, ..ANSWERED }).unwrap()
    };
    assert_eq!(after(0), Duration::from_millis(50));
    assert_eq!(after(1), Duration::from_millis(100));
    assert_eq!(after(4), Duration::from_millis(800));
    for paid in [7, 31, 32, 64, u32::MAX - 1] {
        assert_eq!(after(paid), Duration::from_secs(5));
    }
    let now = now();
    for (drawn, bound) in [(0, Duration::ZERO), (u64::MAX, Duration::from_millis(100))] {
        let verdict = decide(Some(&policy), &ANSWERED, || now, None, &mut || drawn);
        let Verdict::RetryAt(at, _) = verdict else { panic!("worth a retry") };
        assert!(at - now.instant <= bound);
    }
}

#[test]
fn retries_are_counted() {
    let history = History { paid: 2, ..History::default() };
    let attempted = Attempted { history, ..ANSWERED };
    assert!(delay(&RetryPolicy::default(), &attempted).is_some());
    assert!(delay(&RetryPolicy::default().max_retries(2), &attempted).is_none());
    assert!(delay(&RetryPolicy::default().max_retries(0), &ANSWERED).is_none());
}

#[test]
fn the_server_names_the_delay() {
    let policy = RetryPolicy::default();
    let asked = |value: &'static str| {
        delay(&policy, &Attempted { retry_after: Some(value.as_bytes()), ..ANSWERED })
    };
    let own = Some(Duration::from_millis(50));
    assert_eq!(asked("3"), Some(Duration::from_secs(3)));
    assert_eq!(asked("0"), own);
    assert_eq!(asked("60"), Some(Duration::from_secs(60)));
    assert_eq!(asked("61"), None, "more than we are ready to wait");
    assert_eq!(asked("99999999999999999999999"), None);
    assert_eq!(asked("soon"), own);
    assert_eq!(asked("-1"), own);
    assert_eq!(asked(""), own);
    assert_eq!(asked("Fri, 15 Jan 2027 08:00:30 GMT"), Some(Duration::from_secs(30)));
    assert_eq!(asked("Fri, 15 Jan 2027 07:00:00 GMT"), own);
    assert_eq!(asked("Sat, 15 Jan 2028 08:00:00 GMT"), None);
}

#[test]
fn no_retry_is_begun_past_the_deadline() {
    let now = now();
    let ask = |left| {
        let deadline = Some(now.instant + left);
        decide(Some(&RetryPolicy::default()), &ANSWERED, || now, deadline, &mut half)
    };
    assert_eq!(ask(Duration::from_millis(50)), Verdict::Done);
    assert!(matches!(ask(Duration::from_millis(51)), Verdict::RetryAt(..)));
}

#[test]
fn a_budget_is_shared_and_refills() {
    let policy = RetryPolicy::default().budget(2, 0.5);
    let start = now();
    let clone = policy.clone();
    let ask = |policy: &RetryPolicy, seconds| {
        let now = Now { instant: start.instant + Duration::from_secs(seconds), ..start };
        matches!(decide(Some(policy), &ANSWERED, || now, None, &mut half), Verdict::RetryAt(..))
    };
    assert!(ask(&policy, 0) && ask(&clone, 0));
    assert!(!ask(&policy, 0) && !ask(&policy, 1));
    assert!(ask(&clone, 2) && !ask(&policy, 2));
    assert!(ask(&policy, 1000) && ask(&policy, 1000) && !ask(&policy, 1000), "never above reserve");
}

#[test]
fn a_classifier_overrules() {
    let policy = RetryPolicy::default().classifier(|attempted| match attempted.ending {
        Ending::Status(StatusCode::IM_A_TEAPOT) => Class::Retry,
        Ending::Status(StatusCode::SERVICE_UNAVAILABLE) => Class::Final,
        _ => Class::Default,
    });
    let of = |method, status| {
        delay(&policy, &Attempted { method, ending: Ending::Status(status), ..ANSWERED }).is_some()
    };
    assert!(of(&Method::POST, StatusCode::IM_A_TEAPOT));
    assert!(!of(&Method::GET, StatusCode::SERVICE_UNAVAILABLE));
    assert!(of(&Method::GET, StatusCode::BAD_GATEWAY));
    assert!(!of(&Method::GET, StatusCode::OK));
}
