//! What has to happen by when: signs of life, the end of the closing handshake.

use std::time::{Duration, Instant};

use super::{Config, Phase};

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Ask whether the peer lives, with this payload.
    Ping([u8; 8]),
    /// It did not answer.
    NoPong,
    /// It did not close.
    NoClose,
}

/// All timers of a connection. A deadline beyond what the clock can say is none.
#[derive(Debug)]
pub(super) struct Timers {
    ping_interval: Option<Duration>,
    pong_wait: Duration,
    close_wait: Duration,
    /// When the last bytes were heard of, and how many had come by then.
    heard: Option<(Instant, u64)>,
    /// By when the peer has to say anything.
    answer: Option<Instant>,
    close: CloseBy,
    pings: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseBy {
    Unarmed,
    Until(Instant),
    /// Beyond what the clock can say.
    Never,
    Spent,
}

impl Timers {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            ping_interval: config.ping_interval,
            pong_wait: config.pong_wait,
            close_wait: config.close_wait,
            heard: None,
            answer: None,
            close: CloseBy::Unarmed,
            pings: 0,
        }
    }

    /// Whether the time for a close is over.
    pub(super) fn is_spent(&self) -> bool {
        self.close == CloseBy::Spent
    }

    /// The next time that something is due. `received`: bytes that came until now.
    pub(super) fn next(&mut self, phase: Phase, received: u64, now: Instant) -> Option<Instant> {
        match phase {
            Phase::Open => self.next_ping(received, now),
            Phase::Closing | Phase::Closed => self.next_close(now),
            Phase::Failed(_) => None,
        }
    }

    fn next_ping(&mut self, received: u64, now: Instant) -> Option<Instant> {
        let interval = self.ping_interval?;
        let since = match self.heard {
            Some((since, before)) if before == received => since,
            // Any bytes are a sign of life.
            _ => {
                self.heard = Some((now, received));
                self.answer = None;
                now
            }
        };
        self.answer.or_else(|| since.checked_add(interval))
    }

    fn next_close(&mut self, now: Instant) -> Option<Instant> {
        if self.close == CloseBy::Unarmed {
            self.close = now.checked_add(self.close_wait).map_or(CloseBy::Never, CloseBy::Until);
        }
        match self.close {
            CloseBy::Until(deadline) => Some(deadline),
            _ => None,
        }
    }

    /// What is due now.
    pub(super) fn due(&mut self, phase: Phase, received: u64, now: Instant) -> Due {
        if self.next(phase, received, now).is_none_or(|deadline| deadline > now) {
            return Due::Nothing;
        }
        match phase {
            Phase::Open if self.answer.is_some() => Due::NoPong,
            Phase::Open => {
                self.pings += 1;
                // No ping that need not be answered: the silence begins again instead.
                match now.checked_add(self.pong_wait) {
                    Some(deadline) => self.answer = Some(deadline),
                    None => self.heard = Some((now, received)),
                }
                Due::Ping(self.pings.to_be_bytes())
            }
            Phase::Closing => Due::NoClose,
            Phase::Closed | Phase::Failed(_) => {
                self.close = CloseBy::Spent;
                Due::Nothing
            }
        }
    }
}
