//! When to connect, to wait, to go on, and to stop (HTML standard section 9.2.3).

use std::{
    borrow::Cow,
    fmt,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::StatusCode;

use super::{EventRef, Limits, Parser, TooLong, is_event_stream};

/// How a [`Source`] goes on when a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Whether it connects again at all. Default: yes.
    pub reconnect: bool,
    /// The reconnection time until the server names one. Default: 3 s.
    pub retry: Duration,
    /// The shortest reconnection time, whatever the server names: one that closes at once and asks for none
    /// would be asked without a pause. Default: 10 ms.
    pub min_retry: Duration,
    /// The longest reconnection time, whatever the server names. Default: 1 h.
    pub max_retry: Duration,
    /// The longest that repeated failures let it wait, where the reconnection time is not longer. Each
    /// failure after the first doubles what may be waited, and the wait is drawn evenly from between the
    /// reconnection time and that. Default: 60 s.
    pub max_backoff: Duration,
    /// How many attempts in a row may bring nothing before it stops. `None`, the default, is any number, as in
    /// browsers.
    pub max_failures: Option<u32>,
    /// Whether it connects again though no connection has ever brought a stream. Browsers do; a program
    /// mostly wants to be told. Default: no.
    pub from_start: bool,
    /// Whether a status of 429 or 5xx passes, where it once had a stream. By the standard, and by default,
    /// it does not.
    pub on_server_error: bool,
    /// What the server may make its client hold.
    pub limits: Limits,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            reconnect: true,
            retry: Duration::from_secs(3),
            min_retry: Duration::from_millis(10),
            max_retry: Duration::from_secs(60 * 60),
            max_backoff: Duration::from_secs(60),
            max_failures: None,
            from_start: false,
            on_server_error: false,
            limits: Limits::default(),
        }
    }
}

/// What a [`Source`] wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Send the request, with the [last event ID](Source::last_event_id); then say how it was answered.
    Connect,
    /// Wait until then, and ask again.
    Wait(Instant),
    /// Read more of the stream, or say that it ended.
    Read,
    /// Nothing: it is over.
    Stop,
}

/// What an answer's head means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its body is the stream.
    Open,
    /// 204: the server wants no more connections.
    Over,
    /// It is no stream, and never will be.
    Refused(Refused),
    /// It is no stream, but a later one may be.
    Again,
}

/// Why an answer is no event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Its status is not 200.
    Status(StatusCode),
    /// Its `Content-Type` is another, or missing.
    ContentType,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the server answered {status}"),
            Self::ContentType => f.write_str("the answer is not of the type text/event-stream"),
        }
    }
}

impl std::error::Error for Refused {}

/// How a connection ended, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The stream was whole, or the connection was lost: another may go on.
    Passing,
    /// For a reason that will not pass.
    Futile,
}

/// The machine of an `EventSource`. It is asked what is to be done, and told what came of it; time and
/// randomness come in as arguments.
#[derive(Debug)]
pub struct Source {
    policy: Policy,
    parser: Parser,
    state: State,
    /// Since a stream brought something.
    failures: u32,
    /// There was a stream.
    opened: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next thing to do is to connect.
    Due,
    /// It waits to do so.
    Waiting(Instant),
    /// An answer is awaited.
    Connecting,
    /// A stream is read.
    Open,
    /// It is over.
    Closed,
}

impl Source {
    /// A source that is to connect at once.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let parser = Parser::new(policy.limits);
        Source { policy, parser, state: State::Due, failures: 0, opened: false }
    }

    /// Sets the last event ID, to begin behind an event that was seen earlier.
    pub fn set_last_event_id(&mut self, id: &str) {
        self.parser.set_last_event_id(id);
    }

    /// The last event ID: what the request says in `Last-Event-ID`, unless it is empty.
    #[must_use]
    pub fn last_event_id(&self) -> Cow<'_, str> {
        self.parser.last_event_id()
    }

    /// The reconnection time that the server named last, if it named one.
    #[must_use]
    pub fn named_retry(&self) -> Option<Duration> {
        self.parser.retry()
    }

    /// What is to be done at `now`.
    pub fn action(&mut self, now: Instant) -> Action {
        match self.state {
            State::Waiting(at) if now < at => Action::Wait(at),
            State::Waiting(_) | State::Due => {
                self.state = State::Due;
                Action::Connect
            }
            State::Connecting | State::Open => Action::Read,
            State::Closed => Action::Stop,
        }
    }

    /// The request is on its way.
    pub fn connecting(&mut self) {
        if self.state == State::Due {
            self.state = State::Connecting;
        }
    }

    /// An answer came, with this status and `Content-Type`.
    pub fn answered(
        &mut self,
        status: StatusCode,
        content_type: Option<&str>,
        now: Instant,
        random: u64,
    ) -> Verdict {
        let refused = match status {
            StatusCode::NO_CONTENT => {
                self.state = State::Closed;
                return Verdict::Over;
            }
            StatusCode::OK if content_type.is_some_and(is_event_stream) => {
                self.state = State::Open;
                self.opened = true;
                self.parser.restart();
                return Verdict::Open;
            }
            StatusCode::OK => Refused::ContentType,
            _ => Refused::Status(status),
        };
        let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
        if busy && self.policy.on_server_error && self.go_on(Ending::Passing, now, random) {
            return Verdict::Again;
        }
        self.state = State::Closed;
        Verdict::Refused(refused)
    }

    /// A piece of the stream came.
    pub fn push(&mut self, piece: Bytes) {
        // A comment is a sign of life too.
        self.failures = 0;
        self.parser.push(piece);
    }

    /// The next event of what came, or `None` when there is none yet.
    ///
    /// # Errors
    /// A line or an event is longer than allowed: then it is over.
    pub fn next_event(&mut self) -> Result<Option<EventRef<'_>>, TooLong> {
        let event = self.parser.next_event();
        if event.is_err() {
            self.state = State::Closed;
        }
        event
    }

    /// The stream ended, or no answer came. Whether it will connect again.
    pub fn ended(&mut self, ending: Ending, now: Instant, random: u64) -> bool {
        self.go_on(ending, now, random)
    }

    /// Ends it: whatever comes, it does not connect again.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    fn go_on(&mut self, ending: Ending, now: Instant, random: u64) -> bool {
        let delay = self.delay(random);
        self.failures = self.failures.saturating_add(1);
        let policy = &self.policy;
        let willing = policy.reconnect
            && ending == Ending::Passing
            && (self.opened || policy.from_start)
            && policy.max_failures.is_none_or(|most| self.failures <= most);
        self.state = match now.checked_add(delay) {
            Some(at) if willing => State::Waiting(at),
            _ => State::Closed,
        };
        !self.is_closed()
    }

    /// The reconnection time, and "some more" where the last attempt failed too (step 5 of
    /// "reestablish the connection").
    fn delay(&self, random: u64) -> Duration {
        let policy = &self.policy;
        let named = self.parser.retry().unwrap_or(policy.retry);
        let base = named.min(policy.max_retry).max(policy.min_retry);
        let doubled = base.saturating_mul(1 << self.failures.min(30));
        let more = doubled.min(policy.max_backoff).saturating_sub(base);
        base + more.mul_f64(random as f64 / u64::MAX as f64)
    }
}
