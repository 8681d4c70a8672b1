//! Happy eyeballs (RFC 8305) as a machine without I/O, and the future that drives it.

use std::{
    fmt,
    future::poll_fn,
    io,
    net::SocketAddr,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::SocketOptions;
use crate::{BoxFuture, Runtime, Socket, rt::Endpoint};

/// The Connection Attempt Delay (RFC 8305 section 8: 250 ms recommended).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The First Address Family Count (RFC 8305 section 8).
pub const FIRST_FAMILY_COUNT: usize = 1;

/// How many addresses one race takes; a name with more is cut short. A hostile zone can list
/// thousands, and no honest one is reached only through its sixty-fifth.
pub const MAX_ADDRS: usize = 64;

/// Names one attempt of one race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptId(usize);

/// What the driver of a [`Race`] does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begin this attempt, and poll again.
    Connect(AttemptId, SocketAddr),
    /// Poll again at this instant, or when an attempt has ended.
    WaitUntil(Instant),
    /// Poll again when an attempt has ended: all addresses are being tried.
    Wait,
    /// Every attempt has failed. Addresses that still come ([`Race::add`]) go on from here.
    Failed,
}

#[derive(Debug)]
enum State<E> {
    Waiting,
    Running,
    Failed(E),
}

/// A race for the first connection among several addresses: staggered attempts, families
/// interleaved, the next one begun at once when one fails. The first success ends it: whoever drives
/// it drops it, and every other attempt with it.
#[derive(Debug)]
pub struct Race<E> {
    addrs: Vec<(SocketAddr, State<E>)>,
    delay: Duration,
    /// Attempts that the first family has left before families alternate.
    first_family: usize,
    /// The family of the attempt that was begun last.
    last_is_v6: Option<bool>,
    next_at: Instant,
}

impl<E> Race<E> {
    /// A race among `addrs`, in the resolver's order of preference: the first one's family goes
    /// first.
    pub fn new(addrs: impl IntoIterator<Item = SocketAddr>, now: Instant) -> Self {
        let mut race = Race {
            addrs: Vec::new(),
            delay: ATTEMPT_DELAY,
            first_family: FIRST_FAMILY_COUNT,
            last_is_v6: None,
            next_at: now,
        };
        race.add(addrs);
        race
    }

    /// Another [`ATTEMPT_DELAY`], between 10 ms and 2 s (RFC 8305 section 8).
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay.clamp(Duration::from_millis(10), Duration::from_secs(2));
        self
    }

    /// Another [`FIRST_FAMILY_COUNT`].
    #[must_use]
    pub fn with_first_family_count(mut self, count: usize) -> Self {
        self.first_family = count;
        self
    }

    /// More addresses, known only now (RFC 8305 section 3: a late AAAA answer). Those known already
    /// and those beyond [`MAX_ADDRS`] are passed over.
    pub fn add(&mut self, addrs: impl IntoIterator<Item = SocketAddr>) {
        for addr in addrs {
            if self.addrs.len() < MAX_ADDRS && self.addrs.iter().all(|(known, _)| *known != addr) {
                self.addrs.push((addr, State::Waiting));
            }
        }
    }

    /// What to do at `now`.
    pub fn poll(&mut self, now: Instant) -> Step {
        let running = self.addrs.iter().any(|(_, state)| matches!(state, State::Running));
        let Some(next) = self.next() else {
            return if running { Step::Wait } else { Step::Failed };
        };
        if running && now < self.next_at {
            return Step::WaitUntil(self.next_at);
        }
        let (addr, state) = &mut self.addrs[next];
        *state = State::Running;
        self.last_is_v6 = Some(addr.is_ipv6());
        self.first_family = self.first_family.saturating_sub(1);
        self.next_at = now + self.delay;
        Step::Connect(AttemptId(next), *addr)
    }

    /// The address that is next in turn (RFC 8305 section 4).
    fn next(&self) -> Option<usize> {
        let (first, _) = self.addrs.first()?;
        let turn = match self.last_is_v6 {
            Some(last) if self.first_family == 0 => !last,
            _ => first.is_ipv6(),
        };
        let waiting = |(_, state): &(_, State<E>)| matches!(state, State::Waiting);
        let in_turn = self.addrs.iter().position(|a| waiting(a) && a.0.is_ipv6() == turn);
        in_turn.or_else(|| self.addrs.iter().position(waiting))
    }

    /// The attempt has failed: the next may begin at once (RFC 8305 section 5).
    pub fn failed(&mut self, id: AttemptId, error: E, now: Instant) {
        if let Some((_, state @ State::Running)) = self.addrs.get_mut(id.0) {
            *state = State::Failed(error);
            self.next_at = now;
        }
    }

    /// The addresses being tried.
    pub fn running(&self) -> impl Iterator<Item = SocketAddr> {
        self.addrs.iter().filter(|(_, s)| matches!(s, State::Running)).map(|(addr, _)| *addr)
    }

    /// What failed, and why, in the resolver's order.
    pub fn into_failures(self) -> Vec<(SocketAddr, E)> {
        let failure = |(addr, state)| match state {
            State::Failed(error) => Some((addr, error)),
            State::Waiting | State::Running => None,
        };
        self.addrs.into_iter().filter_map(failure).collect()
    }
}

/// Why no address could be connected to: each address with its error.
#[derive(Debug)]
pub struct ConnectErrors(pub(super) Vec<(SocketAddr, io::Error)>);

impl ConnectErrors {
    /// How many of them [`Display`](fmt::Display) spells out.
    const SHOWN: usize = 8;

    /// Each address with its error, in the resolver's order.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &io::Error)> {
        self.0.iter().map(|(addr, error)| (*addr, error))
    }
}

impl fmt::Display for ConnectErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (addr, error)) in self.iter().take(Self::SHOWN).enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {error}", addr.ip())?;
            // This list is the only place that shows an address's error, so it shows all of it.
            let mut cause = std::error::Error::source(error);
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
        }
        match self.0.len().saturating_sub(Self::SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for ConnectErrors {}

struct Attempt<'a> {
    id: AttemptId,
    connecting: BoxFuture<'a, io::Result<Box<dyn Socket>>>,
}

/// Drives a race to its end on `runtime`; `None` when every address has failed. Dropping the future
/// abandons all attempts.
pub(super) async fn connect_any(
    runtime: &dyn Runtime,
    options: &SocketOptions,
    race: &mut Race<io::Error>,
) -> Option<Box<dyn Socket>> {
    let mut driver = Driver { runtime, options, race, attempts: Vec::new(), timer: None };
    // The losers are dropped with the driver.
    poll_fn(|cx| driver.poll(cx)).await
}

struct Driver<'a> {
    runtime: &'a dyn Runtime,
    options: &'a SocketOptions,
    race: &'a mut Race<io::Error>,
    attempts: Vec<Attempt<'a>>,
    timer: Option<(Instant, BoxFuture<'static, ()>)>,
}

impl Driver<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<dyn Socket>>> {
        if let Some(socket) = self.poll_attempts(cx) {
            return Poll::Ready(Some(socket));
        }
        let mut now = Instant::now();
        loop {
            match self.race.poll(now) {
                Step::Connect(id, addr) => {
                    self.begin(id, addr);
                    if let Some(socket) = self.poll_attempts(cx) {
                        return Poll::Ready(Some(socket));
                    }
                }
                Step::WaitUntil(at) => {
                    if self.poll_timer(at, cx).is_pending() {
                        return Poll::Pending;
                    }
                    // By the runtime's clock, which may run ahead of ours in a test.
                    now = at;
                }
                Step::Wait => return Poll::Pending,
                Step::Failed => return Poll::Ready(None),
            }
        }
    }

    fn begin(&mut self, id: AttemptId, addr: SocketAddr) {
        let (runtime, options) = (self.runtime, self.options);
        let connecting = async move { runtime.connect(&Endpoint::Tcp(addr), options).await };
        self.attempts.push(Attempt { id, connecting: Box::pin(connecting) });
    }

    /// Moves every attempt on; the socket of the first that is done.
    fn poll_attempts(&mut self, cx: &mut Context<'_>) -> Option<Box<dyn Socket>> {
        let mut i = 0;
        while let Some(attempt) = self.attempts.get_mut(i) {
            match attempt.connecting.as_mut().poll(cx) {
                Poll::Ready(Ok(socket)) => return Some(socket),
                Poll::Ready(Err(error)) => {
                    self.race.failed(attempt.id, error, Instant::now());
                    self.attempts.swap_remove(i);
                }
                Poll::Pending => i += 1,
            }
        }
        None
    }

    fn poll_timer(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.as_ref().is_none_or(|(armed_for, _)| *armed_for != at) {
            self.timer = None;
        }
        let make = || (at, self.runtime.sleep_until(at));
        self.timer.get_or_insert_with(make).1.as_mut().poll(cx)
    }
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
