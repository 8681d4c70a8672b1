//! Measuring the functions of a codec, in memory: no socket, no runtime.
//!
//! The rules are the same for all. An operation is timed in batches of [`BATCH`], by the time stamp counter
//! of the CPU (elsewhere by the clock, in nanoseconds); what it needs is prepared before the clock starts.
//! One operation of each row is made beforehand, and what comes of it compared with what has to come.
//! Nothing that is computed goes unused: the codec hands it to [`black_box`](std::hint::black_box).
//!
//! A codec is measured by the same command line as a client; a job's URL names the [`Row`].

mod bench;
mod cycles;
mod rows;
#[cfg(test)]
mod tests;

use std::{process::ExitCode, sync::Arc};

pub use bench::Bench;
pub use rows::{Input, KEY, Kind, Row};

use crate::{
    Answer, Binary, Config, Job, PeerError, Setup,
    measure::{Session, answer},
};

/// Operations that are timed together.
pub const BATCH: usize = 64;

/// A codec that can be measured.
pub trait Codec: 'static {
    /// Makes one operation of `row` and tells `bench` what came of it, then has it [measure](Bench::measure)
    /// the operation.
    ///
    /// # Errors
    /// What failed.
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError>;

    /// Why this codec has nothing to call for `row`, if so.
    fn unsupported(&self, row: Row) -> Option<String> {
        let _ = row;
        None
    }
}

/// The binary of a codec: what its `main` calls.
pub fn run_codec<C: Codec>(
    name: &str,
    version: &str,
    configs: &[Config],
    make: impl Fn(&Setup) -> Result<C, PeerError> + 'static,
) -> ExitCode {
    let make = Arc::new(make);
    Binary::new(name, version)
        .with(configs, Arc::new(move |setup, _| Ok(Box::new(Measured(make(&setup)?)))))
        .run()
}

struct Measured<C>(C);

impl<C: Codec> Session for Measured<C> {
    fn answer(&mut self, job: &Job) -> Answer {
        let row = match job.url.parse::<Row>() {
            Ok(row) => row,
            Err(why) => return Answer::Unsupported(why),
        };
        match self.0.unsupported(row) {
            Some(why) => Answer::Unsupported(why),
            None => answer(job, bench::measure(&mut self.0, row, job)),
        }
    }
}
