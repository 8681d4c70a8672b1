//! What has to happen by when: the acknowledgement of SETTINGS, answers to PINGs.

use std::time::{Duration, Instant};

use super::Limits;
use crate::LimitExceeded;

/// What a PING's answer told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pong {
    /// The connection lives.
    Alive,
    /// A round trip is over in which so many bytes of bodies came.
    Probe(u64),
    /// Nothing that we asked.
    Stray,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Ask whether the connection lives, with this payload.
    Ping([u8; 8]),
    Failed(LimitExceeded),
}

/// All timers of a connection. A deadline beyond what the clock can say is none.
#[derive(Debug)]
pub(super) struct Timers {
    settings: Option<Instant>,
    /// Since when nothing came while streams were open.
    quiet_since: Option<Instant>,
    /// The PING that has to be answered, and by when.
    alive: Option<(u64, Instant)>,
    /// The PING that measures a round trip, and what had come when it left.
    probe: Option<(u64, u64)>,
    pings: u64,
}

impl Timers {
    pub(super) fn new(limits: &Limits, now: Instant) -> Self {
        Self {
            settings: now.checked_add(limits.settings_wait),
            quiet_since: None,
            alive: None,
            probe: None,
            pings: 0,
        }
    }

    /// The server acknowledged our SETTINGS.
    pub(super) fn settings_acknowledged(&mut self) {
        self.settings = None;
    }

    /// Bytes came.
    pub(super) fn heard(&mut self, now: Instant) {
        self.quiet_since = Some(now);
    }

    /// Whether a PING has to be answered.
    pub(super) fn awaits_pong(&self) -> bool {
        self.alive.is_some()
    }

    /// The payload of a PING that has to be answered in time, unless one is on its way.
    pub(super) fn ask(&mut self, wait: Duration, now: Instant) -> Option<[u8; 8]> {
        if self.alive.is_some() {
            return None;
        }
        self.pings += 1;
        let deadline = now.checked_add(wait)?;
        self.alive = Some((self.pings, deadline));
        Some(self.pings.to_be_bytes())
    }

    /// The payload of a PING that measures a round trip, unless one is on its way.
    pub(super) fn probe(&mut self, received: u64) -> Option<[u8; 8]> {
        if self.probe.is_some() {
            return None;
        }
        self.pings += 1;
        self.probe = Some((self.pings, received));
        Some(self.pings.to_be_bytes())
    }

    /// An answer came.
    pub(super) fn pong(&mut self, payload: [u8; 8], received: u64) -> Pong {
        let number = u64::from_be_bytes(payload);
        if self.alive.is_some_and(|(asked, _)| asked == number) {
            self.alive = None;
            return Pong::Alive;
        }
        match self.probe {
            Some((asked, before)) if asked == number => {
                self.probe = None;
                Pong::Probe(received - before)
            }
            _ => Pong::Stray,
        }
    }

    /// The next time that something is due. `active`: whether streams are open.
    pub(super) fn next(&mut self, limits: &Limits, active: bool, now: Instant) -> Option<Instant> {
        let ask = self.ask_at(limits, active, now);
        let answer = self.alive.map(|(_, deadline)| deadline);
        [self.settings, ask, answer].into_iter().flatten().min()
    }

    fn ask_at(&mut self, limits: &Limits, active: bool, now: Instant) -> Option<Instant> {
        if !active {
            // The silence counts from when something is asked again.
            self.quiet_since = None;
            return None;
        }
        if self.alive.is_some() {
            return None;
        }
        let interval = limits.keep_alive?;
        self.quiet_since.get_or_insert(now).checked_add(interval)
    }

    /// What is due now.
    pub(super) fn due(&mut self, limits: &Limits, active: bool, now: Instant) -> Due {
        if self.settings.is_some_and(|deadline| deadline <= now) {
            return Due::Failed(LimitExceeded::SettingsWait);
        }
        if self.alive.is_some_and(|(_, deadline)| deadline <= now) {
            return Due::Failed(LimitExceeded::PingWait);
        }
        if self.ask_at(limits, active, now).is_some_and(|at| at <= now)
            && let Some(payload) = self.ask(limits.ping_wait, now)
        {
            return Due::Ping(payload);
        }
        Due::Nothing
    }
}
