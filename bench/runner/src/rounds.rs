//! The rounds of a workload: who runs when, for how long, and what is kept.

use std::time::{Duration, Instant};

use mimus_bench_kit::{Answer, Job};

use crate::client::{Client, Program};
use crate::order;
use crate::pin::Pin;
use crate::progress::Progress;
use crate::record::Row;

/// Rounds after which more would not tell more.
const MAX_ROUNDS: usize = 60;
/// How long one block may take before its client is given up.
const BLOCK_LIMIT: Duration = Duration::from_secs(60);

/// A contender in a workload.
#[derive(Debug)]
pub struct Entrant {
    /// What it did so far.
    pub row: Row,
    /// Where it asks: other protocols have other ports.
    url: String,
    client: Option<Client>,
}

impl Entrant {
    /// Starts a process for `contender`. One that does not start has failed.
    pub fn start(contender: String, program: &Program, url: String, pin: Pin) -> Self {
        let mut row = Row::new(contender);
        let client = match Client::start(program, pin.client()) {
            Ok(client) => Some(client),
            Err(why) => {
                row.fail(&format!("{why:#}"), 1);
                None
            }
        };
        Self { row, url, client }
    }

    /// Runs a block. `round` is `None` for a warm-up, of which only failures are kept. A client that
    /// dies or falls silent is out, and its row failed.
    fn block(&mut self, job: &Job, round: Option<usize>) {
        let Some(client) = &mut self.client else { return };
        match client.run(&Job { url: self.url.clone(), ..job.clone() }, BLOCK_LIMIT) {
            Ok(Answer::Sample(sample)) => match round {
                Some(round) => self.row.take(round, &sample),
                None => self.row.note(&sample),
            },
            Ok(Answer::Unsupported(why)) => {
                self.row.unsupported = Some(why);
                self.client = None;
            }
            Err(why) => {
                self.row.fail(&format!("{why:#}"), job.ops);
                self.client = None;
            }
        }
    }
}

/// How long, and in which order.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Seed of the order.
    pub seed: u64,
    /// The workload's place in the suite; it goes into the order.
    pub workload: usize,
    /// Seconds for all rounds.
    pub seconds: f64,
    /// Rounds that are made even if that is over.
    pub min_rounds: usize,
}

/// Makes the rounds. `began` is where the bar stood before.
pub fn run(entrants: &mut [Entrant], job: &Job, plan: Plan, progress: &Progress, began: u64) {
    let warm_up = Job { ops: (job.ops / 4).max(1), ..job.clone() };
    for entrant in entrants.iter_mut() {
        progress.detail(&format!("warm-up of {}", entrant.row.contender));
        entrant.block(&warm_up, None);
    }
    let clock = Instant::now();
    for round in 0..MAX_ROUNDS {
        let spent = clock.elapsed().as_secs_f64();
        let next = if round == 0 { 0.0 } else { spent / round as f64 };
        if round >= plan.min_rounds && spent + next > plan.seconds {
            return;
        }
        progress.at(began + spent.min(plan.seconds) as u64);
        for at in order::round(plan.seed, plan.workload, round, entrants.len()) {
            if let Some(entrant) = entrants.get_mut(at) {
                entrant.block(job, Some(round));
            }
        }
    }
}
