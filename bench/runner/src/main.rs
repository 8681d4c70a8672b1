//! Measures HTTP clients in pairs, judges them by gates that are data, and reports. How each number is
//! made stands in `docs/BENCHMARKS.md`.

mod analysis;
mod budget;
mod build;
mod child;
mod cli;
mod client;
mod compare;
mod counts;
mod gate;
mod machine;
mod order;
mod pin;
mod progress;
mod python;
mod record;
mod report;
mod rounds;
mod run;
mod server;
mod stats;
mod suite;
mod table;
#[cfg(test)]
mod testing;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::cli::{Cli, Verb};
use crate::record::Record;

fn main() -> ExitCode {
    match act(Cli::parse().verb) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("mimus-bench: {why:#}");
            ExitCode::from(2)
        }
    }
}

fn act(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Budget(arguments) => run::budget(&arguments),
        Verb::Compare { before, after } => {
            Ok(compare::report(&Record::load(&before)?, &Record::load(&after)?))
        }
        Verb::Report { raw, out, png } => {
            let record = Record::load(&raw)?;
            let beside = raw.parent().unwrap_or(Path::new("."));
            report::write(&record, out.as_deref().unwrap_or(beside), png.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
