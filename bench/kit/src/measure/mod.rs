//! The block of a job: warm-up, clocks, loop.

mod asynchronous;
mod blocking;
mod plan;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use asynchronous::async_session;
pub(crate) use blocking::blocking_session;

use crate::{
    Answer, Job, PeerError, Sample,
    binary::with_causes,
    clock::{self, now},
    job::Allocations,
};
use plan::Plan;
use tally::Tally;

/// A client that was made and can be given jobs.
pub(crate) trait Session {
    fn answer(&mut self, job: &Job) -> Answer;
}

/// The answer to a job whose block ended like this.
pub(crate) fn answer(job: &Job, block: Result<Sample, PeerError>) -> Answer {
    Answer::Sample(Box::new(block.unwrap_or_else(|e| Sample {
        failures: vec![(with_causes(&*e), job.ops)],
        ..Sample::default()
    })))
}

/// What was spent before a block.
pub(crate) struct Meter {
    wall: u64,
    cpu: u64,
    allocations: Option<Allocations>,
}

impl Meter {
    pub(crate) fn start() -> Self {
        clock::forget_peak_rss();
        let allocations = clock::allocations();
        Self { cpu: clock::cpu(), wall: now(), allocations }
    }

    /// What the block cost, with what its exchanges and those of the warm-up told.
    fn stop(self, warm_up: Tally, block: Tally) -> Result<Sample, PeerError> {
        // What is read comes first: what follows is no part of the block.
        let mut spent = Sample::default();
        self.read(&mut spent)?;
        let Sample { wall, cpu, allocations, peak_rss, .. } = spent;
        let mut sample = Sample { wall, cpu, allocations, peak_rss, ..block.into_sample() };
        let cold_feet = warm_up.into_sample().failures.into_iter();
        sample.failures.extend(cold_feet.map(|(text, n)| (format!("warm-up: {text}"), n)));
        Ok(sample)
    }

    /// Notes in `sample` what was spent.
    pub(crate) fn read(self, sample: &mut Sample) -> Result<(), PeerError> {
        let (wall, cpu) = (now(), clock::cpu());
        sample.allocations = clock::allocations().zip(self.allocations).map(|(after, before)| {
            Allocations { calls: after.calls - before.calls, bytes: after.bytes - before.bytes }
        });
        sample.wall = wall - self.wall;
        sample.cpu = cpu - self.cpu;
        sample.peak_rss = clock::peak_rss()?;
        Ok(())
    }
}
