//! What the exchanges of a block come to.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::plan::{Plan, Work};
use crate::{PeerError, Sample, binary::with_causes, clock::now};

/// What stands where no time was taken.
const NONE: u64 = u64::MAX;

/// Messages of failures that are told apart.
const MESSAGES_MAX: usize = 32;

/// Gives out the exchanges of a block and keeps what each took. All room is there from the start, so
/// that keeping costs next to nothing; only failures and paced pieces take a lock.
#[derive(Debug)]
pub(super) struct Tally {
    next: AtomicU64,
    latency: Box<[AtomicU64]>,
    /// Empty where exchanges have none.
    first_byte: Box<[AtomicU64]>,
    delay: Mutex<Vec<u64>>,
    bytes: AtomicU64,
    failures: Mutex<BTreeMap<String, u64>>,
}

impl Tally {
    pub(super) fn new(plan: &Plan, ops: u64) -> Result<Self, PeerError> {
        let ops = usize::try_from(ops)?;
        let pieces = usize::try_from(plan.pieces())?;
        let room = |n: usize| (0..n).map(|_| AtomicU64::new(NONE)).collect();
        Ok(Self {
            next: AtomicU64::new(0),
            latency: room(ops),
            first_byte: room(if plan.streams() { ops } else { 0 }),
            delay: Mutex::new(Vec::with_capacity(ops.saturating_mul(pieces))),
            bytes: AtomicU64::new(0),
            failures: Mutex::default(),
        })
    }

    /// The number of the next exchange to make, until there are no more.
    pub(super) fn take(&self) -> Option<usize> {
        let next = self.next.fetch_add(1, Relaxed) as usize;
        (next < self.latency.len()).then_some(next)
    }

    /// Keeps what came of an exchange that has just ended.
    pub(super) fn keep(
        &self,
        number: usize,
        began: u64,
        work: &mut Work,
        result: Result<(), PeerError>,
    ) {
        let latency = now() - began;
        if let Err(e) = result {
            return self.fail(with_causes(&*e));
        }
        let told = match work.check() {
            Ok(told) => told,
            Err(e) => return self.fail(e),
        };
        self.latency[number].store(latency, Relaxed);
        self.bytes.fetch_add(told.bytes, Relaxed);
        if let Some((room, time)) = self.first_byte.get(number).zip(told.first_byte) {
            room.store(time, Relaxed);
        }
        if !told.delays.is_empty() {
            self.delay.lock().unwrap_or_else(PoisonError::into_inner).extend(told.delays);
        }
    }

    /// An exchange failed.
    pub(super) fn fail(&self, message: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let told_apart = failures.len() < MESSAGES_MAX || failures.contains_key(&message);
        let message = if told_apart { message } else { "other failures".to_owned() };
        *failures.entry(message).or_default() += 1;
    }

    pub(super) fn into_sample(self) -> Sample {
        let latency = times(&self.latency);
        let mut failures: Vec<(String, u64)> = self
            .failures
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_iter()
            .collect();
        let (ops, failed) = (latency.len() as u64, failures.iter().map(|(_, n)| n).sum::<u64>());
        let lost = self.latency.len() as u64 - ops - failed;
        if lost > 0 {
            failures.push(("never ended".to_owned(), lost));
        }
        Sample {
            ops,
            bytes: self.bytes.into_inner(),
            latency,
            first_byte: times(&self.first_byte),
            delay: self.delay.into_inner().unwrap_or_else(PoisonError::into_inner),
            failures,
            ..Sample::default()
        }
    }
}

fn times(room: &[AtomicU64]) -> Vec<u64> {
    room.iter().map(|time| time.load(Relaxed)).filter(|&time| time != NONE).collect()
}
