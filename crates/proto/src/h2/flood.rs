//! Allowances for frames that cost work and bring nothing (see [`Limits`]).

use std::time::Instant;

use super::Limits;
use crate::LimitExceeded;

/// What one useful frame earns back of every allowance.
const EARNED: u32 = 16;

/// The kinds of frames that are rationed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ration {
    Settings,
    Pings,
    Resets,
    ProvokedResets,
    EmptyFrames,
    IdleFrames,
}

const KINDS: usize = 6;

impl Ration {
    fn whole(self, limits: &Limits) -> u32 {
        match self {
            Self::Settings => limits.settings,
            Self::Pings => limits.pings,
            Self::Resets => limits.resets,
            Self::ProvokedResets => limits.provoked_resets,
            Self::EmptyFrames => limits.empty_frames,
            Self::IdleFrames => limits.idle_frames,
        }
    }

    fn exceeded(self) -> LimitExceeded {
        match self {
            Self::Settings => LimitExceeded::SettingsFlood,
            Self::Pings => LimitExceeded::PingFlood,
            Self::Resets => LimitExceeded::RapidReset,
            Self::ProvokedResets => LimitExceeded::ProvokedResets,
            Self::EmptyFrames => LimitExceeded::EmptyFrames,
            Self::IdleFrames => LimitExceeded::IdleFrames,
        }
    }
}

/// How much was used of each allowance.
#[derive(Debug)]
pub(super) struct Floods {
    used: [u32; KINDS],
    /// Useful frames since the last that was rationed: the common path only counts.
    useful: u32,
    since: Instant,
}

impl Floods {
    pub(super) fn new(now: Instant) -> Self {
        Self { used: [0; KINDS], useful: 0, since: now }
    }

    /// Takes note of a frame that brought something.
    pub(super) fn earn(&mut self) {
        self.useful = self.useful.saturating_add(1);
    }

    /// Counts one frame of a rationed kind.
    pub(super) fn spend(
        &mut self,
        kind: Ration,
        limits: &Limits,
        now: Instant,
    ) -> Result<(), LimitExceeded> {
        if now.saturating_duration_since(self.since) >= limits.flood_window {
            self.since = now;
            self.used = [0; KINDS];
        }
        let earned = std::mem::take(&mut self.useful).saturating_mul(EARNED);
        for used in &mut self.used {
            *used = used.saturating_sub(earned);
        }
        let used = &mut self.used[kind as usize];
        *used += 1;
        if *used > kind.whole(limits) { Err(kind.exceeded()) } else { Ok(()) }
    }
}
