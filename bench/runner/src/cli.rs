//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::pin::Pin;
use crate::server::Choice;

/// Measures HTTP clients in pairs, judges them, and reports.
#[derive(Debug, Parser)]
#[command(name = "mimus-bench", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Build everything, measure, judge and report.
    Run(Run),
    /// Count what Mimus's own exchanges take, against bench/budgets.toml.
    Budget(BudgetArgs),
    /// Say what changed between two runs beyond noise; fails on a regression.
    Compare {
        /// The raw.json of the run before.
        before: PathBuf,
        /// The raw.json of the run after.
        after: PathBuf,
    },
    /// Make the report of a run again.
    Report {
        /// The run's raw.json.
        raw: PathBuf,
        /// Where the report goes; beside raw.json if not said.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Draw PNGs for a README into this directory too.
        #[arg(long)]
        png: Option<PathBuf>,
    },
}

/// How to run.
#[derive(Debug, Args)]
pub struct Run {
    /// The suite: a file of bench/suites.
    #[arg(long, default_value = "h1")]
    pub suite: String,
    /// Minutes instead of many: fewer contenders, smaller blocks.
    #[arg(long)]
    pub quick: bool,
    /// Fail unless every gate passes.
    #[arg(long, alias = "gates")]
    pub require_gates: bool,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these peers (`reqwest-0.12`, or `reqwest-0.12/best`); ours and the floors always run.
    #[arg(long, value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Where server and clients run.
    #[arg(long, value_enum, default_value = "core0")]
    pub pin: Pin,
    /// The seed of the order and of the bootstrap.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Who answers.
    #[arg(long, value_enum, default_value = "minimal")]
    pub server: Choice,
    /// The runtime of async clients: `current` (one thread) or `multi`.
    #[arg(long, default_value = "current", value_parser = ["current", "multi"])]
    pub runtime: String,
    /// Leave instructions, system calls and allocations uncounted.
    #[arg(long)]
    pub no_counts: bool,
    /// Hold our counts to bench/budgets.toml too.
    #[arg(long)]
    pub budget: bool,
    /// Where raw.json and report.html go; bench/out/SUITE-DATE if not said.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Draw PNGs for a README into this directory too.
    #[arg(long)]
    pub png: Option<PathBuf>,
}

/// How to check budgets.
#[derive(Debug, Args)]
pub struct BudgetArgs {
    /// The suites: files of bench/suites.
    #[arg(long, default_value = "h1", value_delimiter = ',')]
    pub suite: Vec<String>,
    /// Write what was found into bench/budgets.toml.
    #[arg(long)]
    pub update: bool,
}
