//! Retries: whether an attempt that came to nothing may be made again, and when.
//!
//! Four things are repeated without asking, because the server cannot have acted on them twice: an
//! attempt of which nothing was sent, one that the server says it did not process (RFC 9113 section
//! 8.7), an idempotent one on a reused connection that turned out closed, and an idempotent one in
//! HTTP/2 that the server wants in HTTP/1.1 (section 7). All else is the choice of a [`RetryPolicy`].

use http::{Method, StatusCode};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

#[cfg(test)]
mod tests;

/// How many attempts of which nothing was sent are repeated for free in one call: enough to get
/// past connections that died in the pool together, too few to spin.
const FREE_RETRIES: u32 = 8;

/// After how many refusals in a row the server is given time, and how much at first.
const REFUSALS_AT_ONCE: u32 = 2;
const REFUSAL_PAUSE: Duration = Duration::from_millis(25);

/// How much of the request had left when the attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sent {
    /// Nothing, or nothing the peer will act on: a refused stream, one beyond a GOAWAY.
    Nothing,
    /// A part of the head.
    HeadPartly,
    /// The head, and perhaps a part of the body.
    Head,
    /// All of it.
    Whole,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With a response of this status.
    Status(StatusCode),
    /// In this failure.
    Failed(Failure),
}

/// A kind of failure, as far as retries tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// No connection came about: name, address, proxy, or handshake.
    Connect,
    /// No connection came about for a reason that will not pass: a certificate that is not
    /// accepted, a plan that cannot be carried out.
    ConnectForGood,
    /// The connection ended: closed or reset.
    Closed,
    /// The server said that it did not process the request.
    Refused,
    /// The server wants another version of HTTP, in which the next attempt is made (RFC 9113 section 7).
    OtherVersion,
    /// A timeout of one attempt fired (not that of the whole call).
    Timeout,
    /// Anything else; a protocol error, a body that failed: never repeated.
    Other,
}

/// One attempt that is over.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// How much of the request had left.
    pub sent: Sent,
    /// Whether the connection had served an exchange before.
    pub reused: bool,
    /// Whether any byte of a response arrived.
    pub response_begun: bool,
    /// How it ended.
    pub ending: Ending,
    /// The value of the response's `Retry-After`, raw.
    pub retry_after: Option<&'a [u8]>,
    /// Whether the request can be sent again: it has no body, or one that can be produced again,
    /// or nothing of its stream was consumed.
    pub replayable: bool,
    /// What was retried in this call so far.
    pub history: History,
}

/// The retries of one call so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct History {
    free: u32,
    stale: bool,
    version: bool,
    paid: u32,
}

impl History {
    /// How many times the call was attempted again, for whatever reason.
    pub fn retries(&self) -> u32 {
        self.free + u32::from(self.stale) + u32::from(self.version) + self.paid
    }
}

/// What to do after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its ending is the call's.
    Done,
    /// Attempt again at once, with this history.
    RetryNow(History),
    /// Attempt again at this time, with this history.
    RetryAt(Instant, History),
}

/// The time of a decision, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For delays.
    pub instant: Instant,
    /// For a `Retry-After` that is a date.
    pub system: SystemTime,
}

/// Decides what follows `attempted`. `policy` is what the user opted into; `random` yields
/// uniformly random numbers; `deadline` is the call's own, past which no retry is begun.
pub fn decide(
    policy: Option<&RetryPolicy>,
    attempted: &Attempted<'_>,
    now: impl FnOnce() -> Now,
    deadline: Option<Instant>,
    random: &mut dyn FnMut() -> u64,
) -> Verdict {
    if !attempted.replayable {
        return Verdict::Done;
    }
    if let Some(history) = free_of_charge(attempted) {
        let Some(pause) = refusal_pause(attempted, history) else {
            return Verdict::RetryNow(history);
        };
        let at = now().instant + pause;
        return match deadline {
            Some(deadline) if at >= deadline => Verdict::Done,
            _ => Verdict::RetryAt(at, history),
        };
    }
    match policy {
        Some(policy) => policy.decide(attempted, now(), deadline, random),
        None => Verdict::Done,
    }
}

/// The retries that need no policy.
fn free_of_charge(attempted: &Attempted<'_>) -> Option<History> {
    let history = attempted.history;
    let Ending::Failed(failure) = attempted.ending else { return None };
    let ended = matches!(failure, Failure::Closed | Failure::Refused | Failure::OtherVersion);
    if !ended || attempted.response_begun {
        return None;
    }
    if attempted.sent == Sent::Nothing {
        let free = history.free + 1;
        return (free <= FREE_RETRIES).then_some(History { free, ..history });
    }
    if failure == Failure::OtherVersion {
        // Once: there is no third version to ask for.
        return (attempted.method.is_idempotent() && !history.version)
            .then_some(History { version: true, ..history });
    }
    // RFC 9112, 9.3.1: a reused connection that closes asynchronously, under an idempotent
    // request; once, or a server that always closes would be asked for ever.
    (attempted.reused && attempted.method.is_idempotent() && !history.stale)
        .then_some(History { stale: true, ..history })
}

/// How long a server that keeps refusing is left alone: not at all at first, then twice as long each
/// time, and about a second and a half in all.
fn refusal_pause(attempted: &Attempted<'_>, history: History) -> Option<Duration> {
    let refused = attempted.ending == Ending::Failed(Failure::Refused);
    let doublings = history.free.checked_sub(REFUSALS_AT_ONCE + 1)?;
    refused.then(|| REFUSAL_PAUSE * 2_u32.pow(doublings))
}

/// What a custom classifier says of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Worth another attempt, if the policy has one left.
    Retry,
    /// Final.
    Final,
    /// As the policy's own rules have it.
    Default,
}

type Classifier = dyn Fn(&Attempted<'_>) -> Class + Send + Sync;

/// Retries that a user opts into. A clone shares the budget.
#[derive(Clone)]
pub struct RetryPolicy {
    max_retries: u32,
    statuses: Vec<StatusCode>,
    methods: Option<Vec<Method>>,
    on_connect: bool,
    on_timeout: bool,
    base: Duration,
    max_delay: Duration,
    jitter: bool,
    max_retry_after: Duration,
    budget: Option<Arc<Budget>>,
    classifier: Option<Arc<Classifier>>,
}

impl Default for RetryPolicy {
    /// Up to 3 retries of idempotent requests, on connect errors, lost connections and the
    /// statuses 408, 429, 502, 503 and 504, after up to 0.1 s, 0.2 s, 0.4 s ... and at most 10 s,
    /// or what `Retry-After` says up to 60 s.
    fn default() -> Self {
        RetryPolicy {
            max_retries: 3,
            statuses: vec![
                StatusCode::REQUEST_TIMEOUT,
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::BAD_GATEWAY,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ],
            methods: None,
            on_connect: true,
            on_timeout: false,
            base: Duration::from_millis(100),
            max_delay: Duration::from_secs(10),
            jitter: true,
            max_retry_after: Duration::from_secs(60),
            budget: None,
            classifier: None,
        }
    }
}

impl RetryPolicy {
    /// How many times a call may be attempted again, besides the retries that are always free.
    pub fn max_retries(self, max_retries: u32) -> Self {
        RetryPolicy { max_retries, ..self }
    }

    /// Which response statuses are worth another attempt.
    pub fn statuses(self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        RetryPolicy { statuses: statuses.into_iter().collect(), ..self }
    }

    /// Which methods may be attempted again after something was sent. Default: the idempotent
    /// ones (RFC 9110, section 9.2.2).
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        RetryPolicy { methods: Some(methods.into_iter().collect()), ..self }
    }

    /// Whether a failure to connect is worth another attempt. Default: yes.
    pub fn on_connect(self, on_connect: bool) -> Self {
        RetryPolicy { on_connect, ..self }
    }

    /// Whether a timeout of an attempt is worth another. Default: no.
    pub fn on_timeout(self, on_timeout: bool) -> Self {
        RetryPolicy { on_timeout, ..self }
    }

    /// The longest first delay, and the longest of all: each retry doubles the bound until `max`,
    /// and the delay is drawn evenly from nothing to the bound ("full jitter").
    pub fn backoff(self, base: Duration, max: Duration) -> Self {
        RetryPolicy { base, max_delay: max, jitter: true, ..self }
    }

    /// The same delay before each retry, to the millisecond: for scripts and tests. A crowd of clients
    /// that retries in step is what [`backoff`](Self::backoff) spreads.
    pub fn fixed_delay(self, delay: Duration) -> Self {
        RetryPolicy { base: delay, max_delay: delay, jitter: false, ..self }
    }

    /// The longest `Retry-After` that is waited for; a server that asks for more gets no retry.
    pub fn max_retry_after(self, max_retry_after: Duration) -> Self {
        RetryPolicy { max_retry_after, ..self }
    }

    /// Lets all calls under this policy and its clones make `reserve` retries at once, refilled by
    /// `per_second`: when a server fails for everybody, retries do not multiply the load.
    pub fn budget(self, reserve: u32, per_second: f64) -> Self {
        RetryPolicy { budget: Some(Arc::new(Budget::new(reserve, per_second))), ..self }
    }

    /// Asks `classify` about each attempt first. It can make an attempt final or worth a retry,
    /// whatever the method; only what cannot be sent again is beyond it.
    pub fn classifier(
        self,
        classify: impl Fn(&Attempted<'_>) -> Class + Send + Sync + 'static,
    ) -> Self {
        RetryPolicy { classifier: Some(Arc::new(classify)), ..self }
    }

    fn decide(
        &self,
        attempted: &Attempted<'_>,
        now: Now,
        deadline: Option<Instant>,
        random: &mut dyn FnMut() -> u64,
    ) -> Verdict {
        let history = attempted.history;
        if history.paid >= self.max_retries || !self.is_worth_it(attempted) {
            return Verdict::Done;
        }
        let asked = match attempted.retry_after.map(|value| retry_after(value, now.system)) {
            Some(Some(asked)) if asked > self.max_retry_after => return Verdict::Done,
            Some(Some(asked)) => asked,
            Some(None) | None => Duration::ZERO,
        };
        let delay = self.backoff_delay(history.paid, random).max(asked);
        let Some(at) = now.instant.checked_add(delay) else {
            return Verdict::Done;
        };
        if deadline.is_some_and(|deadline| at >= deadline) {
            return Verdict::Done;
        }
        if self.budget.as_ref().is_some_and(|budget| !budget.spend(now.instant)) {
            return Verdict::Done;
        }
        Verdict::RetryAt(at, History { paid: history.paid + 1, ..history })
    }

    fn is_worth_it(&self, attempted: &Attempted<'_>) -> bool {
        match self.classifier.as_ref().map_or(Class::Default, |classify| classify(attempted)) {
            Class::Retry => return true,
            Class::Final => return false,
            Class::Default => {}
        }
        match attempted.ending {
            Ending::Failed(Failure::Connect) => self.on_connect,
            Ending::Failed(Failure::Timeout) => {
                self.on_timeout && (attempted.sent == Sent::Nothing || self.may_repeat(attempted))
            }
            Ending::Failed(Failure::Closed | Failure::Refused | Failure::OtherVersion) => {
                !attempted.response_begun
                    && (attempted.sent == Sent::Nothing || self.may_repeat(attempted))
            }
            Ending::Failed(Failure::ConnectForGood | Failure::Other) => false,
            Ending::Status(status) => self.statuses.contains(&status) && self.may_repeat(attempted),
        }
    }

    fn may_repeat(&self, attempted: &Attempted<'_>) -> bool {
        match &self.methods {
            Some(methods) => methods.contains(attempted.method),
            None => attempted.method.is_idempotent(),
        }
    }

    /// A delay for the retry after `made` of them.
    fn backoff_delay(&self, made: u32, random: &mut dyn FnMut() -> u64) -> Duration {
        let bound = backoff_bound(self.base, self.max_delay, made);
        if self.jitter { somewhere_within(bound, random()) } else { bound }
    }
}

/// The longest delay after `made` failures: it doubles with each.
pub(crate) fn backoff_bound(base: Duration, max: Duration, made: u32) -> Duration {
    let factor = 1u32.checked_shl(made).unwrap_or(u32::MAX);
    base.saturating_mul(factor).min(max)
}

/// A part of `bound`, so that many who failed together do not come back together.
pub(crate) fn somewhere_within(bound: Duration, random: u64) -> Duration {
    // 53 bits: what a float holds exactly.
    bound.mul_f64((random >> 11) as f64 / (1u64 << 53) as f64)
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("max_retries", &self.max_retries)
            .field("statuses", &self.statuses)
            .field("methods", &self.methods)
            .field("on_connect", &self.on_connect)
            .field("on_timeout", &self.on_timeout)
            .field("base", &self.base)
            .field("max_delay", &self.max_delay)
            .field("max_retry_after", &self.max_retry_after)
            .field("budget", &self.budget.is_some())
            .field("classifier", &self.classifier.is_some())
            .finish()
    }
}

/// A token bucket.
struct Budget {
    reserve: f64,
    per_second: f64,
    /// Tokens, and when they were counted.
    level: Mutex<(f64, Option<Instant>)>,
}

impl Budget {
    fn new(reserve: u32, per_second: f64) -> Self {
        let (reserve, per_second) = (f64::from(reserve), per_second.max(0.0));
        Budget { reserve, per_second, level: Mutex::new((reserve, None)) }
    }

    /// Takes a token, if there is one.
    fn spend(&self, now: Instant) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, counted) = *level;
        let passed = counted.map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
        let tokens = (tokens + passed.as_secs_f64() * self.per_second).min(self.reserve);
        let spent = tokens >= 1.0;
        *level = (if spent { tokens - 1.0 } else { tokens }, Some(now));
        spent
    }
}

/// How long a `Retry-After` asks to wait, in seconds or until a date (RFC 9110, section 10.2.3).
/// `None`: it says neither.
pub fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim_ascii();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit ask for longer than anybody waits.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}
