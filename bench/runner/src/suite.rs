//! A suite as its file tells it: who runs, what they do, and what has to come out.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use mimus_bench_kit::{Deliver, Job, Protocol, Upload};
use serde::{Deserialize, Serialize};

use crate::counts::Extent;
use crate::gate::Gate;
use crate::server::Choice;

/// Everything that `bench/suites/<name>.toml` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// What the report is headed with.
    pub title: String,
    /// The contender that the README's picture of gains is drawn against.
    #[serde(default)]
    pub headline: Option<String>,
    /// The workloads whose bars are drawn for the README.
    #[serde(default)]
    pub pictures: Vec<String>,
    /// The clients that can be built.
    #[serde(rename = "client")]
    pub clients: Vec<Client>,
    /// The clients' configurations that run.
    #[serde(rename = "contender")]
    pub contenders: Vec<Contender>,
    /// What they are given to do.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
}

/// What a contender is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Mimus.
    Ours,
    /// The least that the exchange can cost.
    Floor,
    /// Another client.
    Peer,
}

/// A program to build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name, e.g. `reqwest-0.12`.
    pub name: String,
    /// Its directory below `bench/`: a Cargo package, or a virtual environment of Python.
    pub package: String,
    /// The binary that the package builds; of a virtual environment, the adapter that runs in it.
    pub binary: String,
    /// What it is to us.
    pub kind: Kind,
}

/// How a contender waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// On an async runtime.
    Async,
    /// By blocking its thread.
    Blocking,
}

/// A client in one of its configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// The client's name.
    pub client: String,
    /// The configuration, as the client calls it.
    pub config: String,
    /// What it speaks where that is not what the workload says: its name then ends in it, behind an `@`.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// How it waits: it is compared with the floor, and with ours, of the same mode.
    pub mode: Mode,
    /// Runs in a quick run too.
    #[serde(default)]
    pub quick: bool,
    /// The groups of contenders it belongs to; workloads name the groups that they are for.
    pub groups: Vec<String>,
}

impl Contender {
    /// The name in reports: `client/config`, or `client/config@protocol`.
    pub fn id(&self) -> String {
        match self.protocol {
            None => format!("{}/{}", self.client, self.config),
            Some(protocol) => format!("{}/{}@{}", self.client, self.config, protocol.name()),
        }
    }

    /// What it speaks in `workload`.
    pub fn protocol_in(&self, workload: &Workload) -> Protocol {
        self.protocol.unwrap_or(workload.protocol)
    }

    /// Whether it belongs to one of `groups`.
    pub fn is_in(&self, groups: &[String]) -> bool {
        self.groups.iter().any(|group| groups.contains(group))
    }
}

/// What is read off a block, and compared. All are costs: less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Median time of an exchange.
    Latency,
    /// CPU time of the client's process for each exchange.
    Cpu,
    /// Median time until the first piece of a body was delivered.
    FirstByte,
    /// Median time from a piece's stamp to its delivery.
    Delay,
    /// Time for each byte moved; shown as its inverse, bytes a second.
    Throughput,
    /// Time for each exchange of all that are under way; shown as its inverse, exchanges a second.
    Rate,
    /// Median of the cycles that an operation of a codec takes.
    Cycles,
}

impl Metric {
    /// The name, as in the suite file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Cpu => "cpu",
            Self::FirstByte => "first-byte",
            Self::Delay => "delay",
            Self::Throughput => "throughput",
            Self::Rate => "rate",
            Self::Cycles => "cycles",
        }
    }

    /// What it is, with its unit.
    pub fn title(self) -> &'static str {
        match self {
            Self::Latency => "time per exchange (median)",
            Self::Cpu => "CPU time per exchange",
            Self::FirstByte => "time to first byte (median)",
            Self::Delay => "delivery delay of a piece (median)",
            Self::Throughput => "throughput",
            Self::Rate => "exchanges a second",
            Self::Cycles => "cycles per operation (median)",
        }
    }

    /// Whether it is shown as its inverse, which grows with what is done in a second.
    pub fn is_speed(self) -> bool {
        matches!(self, Self::Throughput | Self::Rate)
    }

    /// One of the times that its distribution is made of, in the metric's unit: cycles are told in
    /// hundredths.
    pub fn unit(self, told: f64) -> f64 {
        match self {
            Self::Cycles => told / 100.0,
            _ => told,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Exchanges in a block.
    pub ops: u64,
    /// Seconds for all rounds; the least number of rounds is made even if they take longer.
    pub seconds: f64,
}

/// What the contenders do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name on the command line and in files.
    pub id: String,
    /// Its name in reports.
    pub title: String,
    /// The path on the bench's own server, or on the one that it names; of what asks nobody, the operation.
    pub path: String,
    /// Who answers, whatever the run says.
    #[serde(default)]
    pub server: Option<Choice>,
    /// The path on nginx, where that can serve it.
    #[serde(default)]
    pub nginx: Option<String>,
    /// The path on go-httpbin, where that can serve it.
    #[serde(default)]
    pub httpbin: Option<String>,
    /// What is spoken: HTTP/1.1 if not said.
    #[serde(default)]
    pub protocol: Protocol,
    /// Over TLS.
    #[serde(default)]
    pub tls: bool,
    /// Exchanges under way at any time.
    #[serde(default = "one")]
    pub in_flight: u32,
    /// What each sends.
    #[serde(default = "nothing")]
    pub upload: Upload,
    /// What becomes of the response body.
    #[serde(default = "collected")]
    pub deliver: Deliver,
    /// Length of the response body, in bytes.
    pub body: u64,
    /// A connection for each exchange.
    #[serde(default)]
    pub cold: bool,
    /// Exchanges begun each second, if on a schedule.
    #[serde(default)]
    pub rate: Option<f64>,
    /// The groups of contenders it is for.
    pub groups: Vec<String>,
    /// What counts first. Each metric that a gate names is reported too.
    pub metric: Metric,
    /// Size in a quick run; without, it is left out of one.
    #[serde(default)]
    pub quick: Option<Size>,
    /// Size in a full run.
    pub full: Size,
    /// Rounds that are made even if the time is over; ten if not said, with which the exact paired test
    /// can reach p = 0.002.
    #[serde(default = "ten")]
    pub min_rounds: usize,
    /// The groups whose instructions, system calls and allocations are counted.
    #[serde(default)]
    pub counts: Vec<String>,
    /// The groups whose system calls are counted, and nothing else: an interpreter takes minutes under
    /// callgrind.
    #[serde(default)]
    pub system_calls: Vec<String>,
    /// It has a budget: the counts of Mimus's own clients are held to `bench/budgets.toml`.
    #[serde(default)]
    pub budget: bool,
    /// What has to come out.
    #[serde(default, rename = "gate")]
    pub gates: Vec<Gate>,
}

fn one() -> u32 {
    1
}

fn ten() -> usize {
    10
}

fn nothing() -> Upload {
    Upload::None
}

fn collected() -> Deliver {
    Deliver::Bytes
}

impl Workload {
    /// The job of one block of `ops` exchanges at `url`.
    pub fn job(&self, url: String, ops: u64) -> Job {
        Job {
            url,
            ops,
            in_flight: self.in_flight,
            upload: self.upload,
            deliver: self.deliver,
            body: self.body,
            cold: self.cold,
            rate: self.rate,
            // Enough to have every connection open and every branch taken; one when each is costly.
            warm_up: (ops / 20).clamp(1, 50).max(u64::from(self.in_flight).min(ops)),
        }
    }

    /// The size for a quick or a full run; `None` leaves it out.
    pub fn size(&self, quick: bool) -> Option<Size> {
        if quick { self.quick } else { Some(self.full) }
    }

    /// What is counted of `contender`, which is ours or not.
    pub fn counted(&self, contender: &Contender, ours: bool) -> Option<Extent> {
        if self.budget && ours || contender.is_in(&self.counts) {
            return Some(Extent::All);
        }
        contender.is_in(&self.system_calls).then_some(Extent::SystemCalls)
    }

    /// Whether `contender` takes part.
    pub fn is_for(&self, contender: &Contender) -> bool {
        contender.is_in(&self.groups)
    }

    /// The metric that counts, then the others that gates name, each once.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = vec![self.metric];
        for metric in self.gates.iter().filter_map(|gate| gate.metric) {
            if !all.contains(&metric) {
                all.push(metric);
            }
        }
        all
    }
}

impl Suite {
    /// Reads and checks a suite file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("no suite at {}", path.display()))?;
        let suite: Self =
            toml::from_str(&text).with_context(|| format!("{} is no suite", path.display()))?;
        suite.check()?;
        Ok(suite)
    }

    /// The client that a contender is a configuration of.
    pub fn client(&self, name: &str) -> Option<&Client> {
        self.clients.iter().find(|client| client.name == name)
    }

    /// What the contender called `id` is to us.
    pub fn kind(&self, id: &str) -> Option<Kind> {
        let contender = self.contender(id)?;
        self.client(&contender.client).map(|client| client.kind)
    }

    /// The contender called `id`.
    pub fn contender(&self, id: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.id() == id)
    }

    /// The contender of `kind` that waits as `mode` does: its floor, or ours.
    pub fn of_kind(&self, kind: Kind, mode: Mode) -> Option<&Contender> {
        self.contenders.iter().find(|contender| {
            contender.mode == mode
                && contender.protocol.is_none()
                && self.client(&contender.client).is_some_and(|client| client.kind == kind)
        })
    }

    fn check(&self) -> Result<()> {
        for contender in &self.contenders {
            ensure!(
                self.client(&contender.client).is_some(),
                "contender {} names no client",
                contender.id()
            );
        }
        for workload in &self.workloads {
            let counted = workload.counts.iter().chain(&workload.system_calls);
            for group in workload.groups.iter().chain(counted) {
                ensure!(
                    self.contenders.iter().any(|c| c.groups.contains(group)),
                    "workload {}: nobody is in the group {group}",
                    workload.id
                );
            }
            for gate in &workload.gates {
                gate.check().with_context(|| format!("workload {}", workload.id))?;
                for id in gate.names() {
                    if self.contender(id).is_none() {
                        bail!("workload {}: a gate names {id}, which is no contender", workload.id);
                    }
                }
            }
        }
        Ok(())
    }
}
