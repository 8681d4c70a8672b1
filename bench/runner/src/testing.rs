//! Runs made up for tests: costs with a noise that is the same each time.

use std::collections::BTreeMap;

use mimus_bench_kit::Sample;
use stats_claw::rng::SplitMix64;

use crate::counts::Counts;
use crate::machine::Machine;
use crate::pin::Pin;
use crate::record::{Built, Measured, Options, Record, Row};
use crate::server::Choice;
use crate::suite::Suite;

/// Rounds of a made-up run.
const ROUNDS: usize = 20;

/// What a made-up contender costs.
pub struct Costs {
    /// Who.
    pub contender: String,
    /// Nanoseconds for an exchange.
    pub latency: f64,
    /// What is counted.
    pub counts: Counts,
    /// How far the costs of rounds lie apart, as a share.
    pub noise: f64,
}

impl Costs {
    /// `contender`, at `latency` nanoseconds with a noise of 1 %.
    pub fn new(contender: &str, latency: f64) -> Self {
        let counts = Counts {
            instructions: Some(latency),
            system_calls: Some(3.0),
            allocations: Some(7.0),
            allocated_bytes: Some(1_000.0),
        };
        Self { contender: contender.into(), latency, counts, noise: 0.01 }
    }
}

/// A suite of one workload, `get`, and three contenders; `gates` is TOML for the workload's.
pub fn suite(gates: &str) -> Suite {
    let client = |name: &str, kind: &str| {
        format!("[[client]]\nname = '{name}'\npackage = 'x'\nbinary = 'x'\nkind = '{kind}'\n")
    };
    let contender = |client: &str, config: &str| {
        format!(
            "[[contender]]\nclient = '{client}'\nconfig = '{config}'\nmode = 'async'\ngroups = ['all']\n"
        )
    };
    let text = [
        "title = 'Made up'\nheadline = 'peer/best'\npictures = ['get']\n".to_owned(),
        client("mimus", "ours") + &client("floor", "floor") + &client("peer", "peer"),
        contender("mimus", "async") + &contender("floor", "tokio") + &contender("peer", "best"),
        "[[workload]]\nid = 'get'\ntitle = 'Small GET'\npath = '/b/1'\nbody = 1\ngroups = ['all']\n\
         metric = 'latency'\nfull = { ops = 50, seconds = 1.0 }\n"
            .to_owned(),
        gates.to_owned(),
    ]
    .concat();
    toml::from_str(&text).expect("a suite")
}

/// A run of `suite` in which each contender cost what is said. The machine's mood drifts, for all alike.
pub fn record(suite: &Suite, costs: &[Costs]) -> Record {
    record_in_mood(suite, costs, 1.0, 1)
}

/// As [`record`], on a machine that is `mood` times as slow, with the noise of `seed`.
pub fn record_in_mood(suite: &Suite, costs: &[Costs], mood: f64, seed: u64) -> Record {
    let options = Options {
        quick: false,
        pin: Pin::None,
        server: Choice::Minimal,
        runtime: "current".into(),
        seed: 1,
    };
    let mut record = Record::new("h1", suite.clone(), options, Machine::here());
    for client in &suite.clients {
        let ready = Built::Ready { version: "1.0.0".into(), about: BTreeMap::new() };
        record.clients.insert(client.name.clone(), ready);
    }
    let workload = &suite.workloads[0];
    let mut rng = SplitMix64::new(seed);
    let rows = costs.iter().map(|costs| row(costs, mood, &mut rng)).collect();
    let job = workload.job("http://localhost/b/1".into(), 50);
    record.workloads.push(Measured { id: workload.id.clone(), job, rows });
    record
}

fn row(costs: &Costs, mood: f64, rng: &mut SplitMix64) -> Row {
    let mut row = Row::new(costs.contender.clone());
    row.counts = costs.counts;
    for round in 0..ROUNDS {
        let drift = mood * (1.0 + 0.1 * round as f64 / ROUNDS as f64);
        for _ in 0..2 {
            let mut cost = || costs.latency * drift * (1.0 + costs.noise * rng.standard_normal());
            let latency: Vec<u64> = (0..50).map(|_| cost() as u64).collect();
            let wall = latency.iter().sum();
            let cpu = wall / 2;
            row.take(
                round,
                &Sample { wall, cpu, ops: 50, bytes: 50, latency, ..Sample::default() },
            );
        }
    }
    row
}
