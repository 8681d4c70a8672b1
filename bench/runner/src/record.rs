//! What a run leaves behind: everything that was measured, from which every figure can be made again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use mimus_bench_kit::{Job, Sample};
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::machine::Machine;
use crate::stats;
use crate::suite::{Metric, Suite};

/// The form of the file; another one is refused.
const FORMAT: u32 = 1;
/// Digits that a histogram keeps.
const DIGITS: u8 = 3;

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The form of this file.
    pub format: u32,
    /// The suite's name.
    pub name: String,
    /// The suite as it was then, so that the report can be made again.
    pub suite: Suite,
    /// How it was run.
    pub options: Options,
    /// Where it was run.
    pub machine: Machine,
    /// What became of each client's build, by name.
    pub clients: BTreeMap<String, Built>,
    /// What was measured.
    pub workloads: Vec<Measured>,
}

/// How a run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// In minutes.
    pub quick: bool,
    /// Where the processes ran.
    pub pin: crate::pin::Pin,
    /// Who answered.
    pub server: crate::server::Choice,
    /// `current` or `multi`: the runtime of async clients.
    pub runtime: String,
    /// The seed of the order and of the bootstrap.
    pub seed: u64,
}

/// What became of a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Built {
    /// It is there.
    Ready {
        /// The version that was built.
        version: String,
        /// What each configuration is, by name.
        about: BTreeMap<String, String>,
    },
    /// It could not be built; the first error.
    Failed {
        /// The line that the compiler began its complaint with.
        error: String,
    },
}

/// A workload and who did it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// The workload's name in the suite.
    pub id: String,
    /// What each block was.
    pub job: Job,
    /// A row for each contender.
    pub rows: Vec<Row>,
}

/// What a contender did in a workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// `client/config`.
    pub contender: String,
    /// Why there is nothing, if it cannot do this.
    pub unsupported: Option<String>,
    /// Exchanges that failed, warm-up included: each message with its count.
    pub failures: BTreeMap<String, u64>,
    /// Its blocks, two a round.
    pub blocks: Vec<Block>,
    /// All its latencies.
    pub latency: Times,
    /// All its times to first byte.
    pub first_byte: Times,
    /// All its delays.
    pub delay: Times,
    /// What each exchange takes that does not vary.
    pub counts: Counts,
}

/// A block of exchanges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Which round, from 0.
    pub round: usize,
    /// Nanoseconds from its beginning to its end.
    pub wall: u64,
    /// Nanoseconds of CPU.
    pub cpu: u64,
    /// Exchanges.
    pub ops: u64,
    /// Body bytes.
    pub bytes: u64,
    /// Median of the latencies, in nanoseconds.
    pub latency: Option<f64>,
    /// Median of the times to first byte, in nanoseconds.
    pub first_byte: Option<f64>,
    /// Median of the delays, in nanoseconds.
    pub delay: Option<f64>,
    /// Bytes of the largest resident set.
    pub peak_rss: u64,
}

impl Block {
    /// What a client's sample comes to.
    pub fn new(round: usize, sample: &Sample) -> Self {
        Self {
            round,
            wall: sample.wall,
            cpu: sample.cpu,
            ops: sample.ops,
            bytes: sample.bytes,
            latency: stats::median_of_times(&sample.latency),
            first_byte: stats::median_of_times(&sample.first_byte),
            delay: stats::median_of_times(&sample.delay),
            peak_rss: sample.peak_rss,
        }
    }

    /// The cost (for each exchange, piece, byte or operation) by `metric`, in nanoseconds or cycles.
    pub fn cost(&self, metric: Metric) -> Option<f64> {
        let per = |total: u64, many: u64| (many > 0).then(|| total as f64 / many as f64);
        match metric {
            Metric::Latency => self.latency,
            Metric::Cycles => self.latency.map(|told| metric.unit(told)),
            Metric::Cpu => per(self.cpu, self.ops),
            Metric::FirstByte => self.first_byte,
            Metric::Delay => self.delay,
            Metric::Throughput => per(self.wall, self.bytes),
            Metric::Rate => per(self.wall, self.ops),
        }
        .filter(|cost| *cost > 0.0)
    }
}

impl Row {
    /// A row before anything was measured.
    pub fn new(contender: String) -> Self {
        Self {
            contender,
            unsupported: None,
            failures: BTreeMap::new(),
            blocks: Vec::new(),
            latency: Times::default(),
            first_byte: Times::default(),
            delay: Times::default(),
            counts: Counts::default(),
        }
    }

    /// A row of which every exchange would have failed, and `why`.
    pub fn failed(contender: String, why: &str) -> Self {
        let mut row = Self::new(contender);
        row.fail(why, 1);
        row
    }

    /// Takes a measured block in.
    pub fn take(&mut self, round: usize, sample: &Sample) {
        self.note(sample);
        self.latency.add(&sample.latency);
        self.first_byte.add(&sample.first_byte);
        self.delay.add(&sample.delay);
        self.blocks.push(Block::new(round, sample));
    }

    /// Takes only the failures of a block: those of a warm-up count too.
    pub fn note(&mut self, sample: &Sample) {
        for (message, count) in &sample.failures {
            self.fail(message, *count);
        }
    }

    /// Adds `count` exchanges that failed with `message`.
    pub fn fail(&mut self, message: &str, count: u64) {
        *self.failures.entry(message.to_owned()).or_default() += count;
    }

    /// Whether every exchange went well, and there was one.
    pub fn is_sound(&self) -> bool {
        self.unsupported.is_none() && self.failures.is_empty() && !self.blocks.is_empty()
    }

    /// The cost in each round: the geometric mean of its two blocks. A round without both is left out.
    pub fn rounds(&self, metric: Metric) -> BTreeMap<usize, f64> {
        let mut costs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for block in &self.blocks {
            if let Some(cost) = block.cost(metric) {
                costs.entry(block.round).or_default().push(cost);
            }
        }
        costs
            .into_iter()
            .filter_map(|(round, both)| match both.as_slice() {
                [first, second] => Some((round, (first * second).sqrt())),
                _ => None,
            })
            .collect()
    }

    /// The distribution that belongs to `metric`, if exchanges are timed one by one for it.
    pub fn times(&self, metric: Metric) -> Option<&Histogram<u64>> {
        let times = match metric {
            Metric::Latency | Metric::Cycles => &self.latency,
            Metric::FirstByte => &self.first_byte,
            Metric::Delay => &self.delay,
            Metric::Cpu | Metric::Throughput | Metric::Rate => return None,
        };
        (!times.0.is_empty()).then_some(&times.0)
    }

    /// Bytes of the largest resident set of any block.
    pub fn peak_rss(&self) -> u64 {
        self.blocks.iter().map(|block| block.peak_rss).max().unwrap_or(0)
    }
}

impl Record {
    /// A run before anything was measured.
    pub fn new(name: &str, suite: Suite, options: Options, machine: Machine) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            suite,
            options,
            machine,
            clients: BTreeMap::new(),
            workloads: Vec::new(),
        }
    }

    /// Reads a record.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let record: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is no record of a run", path.display()))?;
        ensure!(record.format == FORMAT, "{} has the form of another version", path.display());
        Ok(record)
    }

    /// Writes it down.
    pub fn save(&self, path: &Path) -> Result<()> {
        std::fs::write(path, serde_json::to_string(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A distribution of times in nanoseconds. In files it is the compressed form of HdrHistogram (V2), in
/// base64, which every HdrHistogram tool reads.
#[derive(Debug, Clone)]
pub struct Times(pub Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        // It resizes itself, so no bound has to be guessed. The digits are fixed and valid.
        #[expect(clippy::unwrap_used, reason = "fails only for more than five digits")]
        Self(Histogram::new(DIGITS).unwrap())
    }
}

impl Times {
    /// Takes in `times`, in nanoseconds.
    pub fn add(&mut self, times: &[u64]) {
        for &time in times {
            self.0 += time;
        }
    }
}

impl Serialize for Times {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let times =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(D::Error::custom)?;
        Ok(Self(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(latency: u64) -> Sample {
        Sample { wall: 1_000, cpu: 500, ops: 10, latency: vec![latency; 3], ..Sample::default() }
    }

    #[test]
    fn a_round_is_the_geometric_mean_of_its_two_blocks() {
        let mut row = Row::new("a/b".into());
        row.take(0, &sample(100));
        row.take(0, &sample(400));
        row.take(1, &sample(100));
        let rounds = row.rounds(Metric::Latency);
        assert_eq!(rounds.len(), 1, "half a round is no round");
        assert!((rounds[&0] - 200.0).abs() < 1e-9);
        assert_eq!(row.rounds(Metric::Cpu)[&0], 50.0);
        assert_eq!(row.rounds(Metric::Rate)[&0], 100.0);
        assert!(row.rounds(Metric::Throughput).is_empty(), "no bytes were moved");
    }

    #[test]
    fn a_failure_in_a_warm_up_fails_the_row() {
        let mut row = Row::new("a/b".into());
        row.take(0, &sample(100));
        assert!(row.is_sound());
        row.note(&Sample { failures: vec![("reset".into(), 2)], ..Sample::default() });
        assert!(!row.is_sound());
        assert_eq!(row.failures["reset"], 2);
    }

    #[test]
    fn a_distribution_survives_its_file() {
        let mut times = Times::default();
        times.add(&[10, 2_000, 3_000_000]);
        let text = serde_json::to_string(&times).expect("it is written");
        let back: Times = serde_json::from_str(&text).expect("it is read");
        assert_eq!(back.0, times.0);
    }
}
