//! From what was measured to what is said: costs, ratios, tests, and the judging of the gates.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::counts::{Count, Counts};
use crate::gate::{Evidence, Gate, Verdict, judge_count, judge_rate, judge_time};
use crate::record::{Built, Measured, Record, Row};
use crate::stats::{self, Interval, Paired};
use crate::suite::{Kind, Metric, Mode, Workload};
use crate::table;

/// Everything that is said about a run.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// A summary for each workload.
    pub workloads: Vec<Summary>,
    /// Each gate's answer.
    pub gates: Vec<Judged>,
}

/// What is said about a workload.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Its name.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What is reported, the metric that counts first.
    pub metrics: Vec<Metric>,
    /// What is said about each contender, in the suite's order.
    pub rows: Vec<RowSummary>,
}

/// How a row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Every exchange went well.
    Sound,
    /// Exchanges failed; how many, and the first message.
    Failed(String),
    /// The client has no way to do this.
    Unsupported(String),
    /// The client is not there.
    NotBuilt(String),
}

/// What is said about a contender in a workload.
#[derive(Debug, Clone)]
pub struct RowSummary {
    /// `client/config`.
    pub contender: String,
    /// What it is to us.
    pub kind: Kind,
    /// How it stands.
    pub state: State,
    /// What it cost, by metric, in the order of the summary's metrics; `None` if not measured.
    pub costs: Vec<Option<Cost>>,
    /// CPU nanoseconds for each exchange.
    pub cpu: Option<f64>,
    /// Bytes of the largest resident set.
    pub peak_rss: u64,
    /// What was counted.
    pub counts: Counts,
}

/// What an exchange (or a piece, or a byte) cost, and how that compares.
#[derive(Debug, Clone)]
pub struct Cost {
    /// Median over rounds, in nanoseconds or cycles.
    pub median: f64,
    /// Percentiles of all exchanges, where they are timed one by one.
    pub tail: Option<Tail>,
    /// It over the floor of its mode.
    pub over_floor: Option<Interval>,
    /// It over ours of its mode: above 1, we are cheaper. The gain is this less 1.
    pub over_ours: Option<Interval>,
    /// The paired test of it and ours.
    pub paired: Option<Paired>,
}

/// Percentiles, in nanoseconds or hundredths of cycles.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    /// One of ten is faster.
    pub p10: u64,
    /// Half are faster.
    pub p50: u64,
    /// 19 of 20 are faster.
    pub p95: u64,
    /// 99 of 100 are faster.
    pub p99: u64,
    /// 999 of 1000 are faster.
    pub p999: u64,
}

impl Tail {
    fn of(times: &Histogram<u64>) -> Self {
        Self {
            p10: times.value_at_quantile(0.1),
            p50: times.value_at_quantile(0.5),
            p95: times.value_at_quantile(0.95),
            p99: times.value_at_quantile(0.99),
            p999: times.value_at_quantile(0.999),
        }
    }
}

/// A gate's answer about one comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// The workload.
    pub workload: String,
    /// Who was judged.
    pub ours: String,
    /// Whom it was compared with; empty for a count.
    pub against: String,
    /// What was compared or counted.
    pub what: String,
    /// What was asked.
    pub asked: String,
    /// The answer.
    pub verdict: Verdict,
}

/// Says everything about `record`.
pub fn analyse(record: &Record) -> Analysis {
    let mut analysis = Analysis { workloads: Vec::new(), gates: Vec::new() };
    for measured in &record.workloads {
        let Some(workload) = record.suite.workloads.iter().find(|w| w.id == measured.id) else {
            continue;
        };
        let view = View { record, workload, measured };
        analysis.workloads.push(view.summary());
        analysis.gates.extend(workload.gates.iter().flat_map(|gate| view.judge(gate)));
    }
    analysis
}

/// Two rows' costs in the rounds that both have, in order.
pub fn pairs(first: &Row, second: &Row, metric: Metric) -> (Vec<f64>, Vec<f64>) {
    let other = second.rounds(metric);
    first
        .rounds(metric)
        .into_iter()
        .filter_map(|(round, cost)| Some((cost, *other.get(&round)?)))
        .unzip()
}

struct View<'a> {
    record: &'a Record,
    workload: &'a Workload,
    measured: &'a Measured,
}

impl View<'_> {
    fn row(&self, id: &str) -> Option<&Row> {
        self.measured.rows.iter().find(|row| row.contender == id)
    }

    fn sound(&self, id: &str) -> Option<&Row> {
        self.row(id).filter(|row| row.is_sound())
    }

    /// The sound row of `kind` and `mode`.
    fn reference(&self, kind: Kind, mode: Mode) -> Option<&Row> {
        self.sound(&self.record.suite.of_kind(kind, mode)?.id())
    }

    fn ratio(&self, above: &Row, below: &Row, metric: Metric) -> Option<Interval> {
        let (above, below) = pairs(above, below, metric);
        stats::paired_ratio(&above, &below, self.record.options.seed)
    }

    fn summary(&self) -> Summary {
        let metrics = self.workload.metrics();
        let rows = self.measured.rows.iter().filter_map(|row| self.row_summary(row, &metrics));
        let mut rows: Vec<RowSummary> = rows.collect();
        let place = |id: &str| self.record.suite.contenders.iter().position(|c| c.id() == id);
        rows.sort_by_key(|row| place(&row.contender));
        Summary { id: self.workload.id.clone(), title: self.workload.title.clone(), metrics, rows }
    }

    fn row_summary(&self, row: &Row, metrics: &[Metric]) -> Option<RowSummary> {
        let contender = self.record.suite.contender(&row.contender)?;
        let (kind, mode) = (self.record.suite.kind(&row.contender)?, contender.mode);
        let state = self.state(row, &contender.client);
        // What failed is not compared with anything: a fast failure is not fast.
        let costs = if state == State::Sound {
            metrics.iter().map(|&metric| self.cost(row, kind, mode, metric)).collect()
        } else {
            vec![None; metrics.len()]
        };
        let cpu: Vec<f64> = row.rounds(Metric::Cpu).into_values().collect();
        Some(RowSummary {
            contender: row.contender.clone(),
            kind,
            cpu: stats::median(&cpu).filter(|_| state == State::Sound),
            state,
            costs,
            peak_rss: row.peak_rss(),
            counts: row.counts,
        })
    }

    fn state(&self, row: &Row, client: &str) -> State {
        if let Some(Built::Failed { error }) = self.record.clients.get(client) {
            return State::NotBuilt(error.clone());
        }
        if let Some(why) = &row.unsupported {
            return State::Unsupported(why.clone());
        }
        match row.failures.iter().next() {
            Some((message, _)) => {
                let all: u64 = row.failures.values().sum();
                State::Failed(format!("{all} failed: {message}"))
            }
            None if row.blocks.is_empty() => State::Failed("nothing was measured".into()),
            None => State::Sound,
        }
    }

    fn cost(&self, row: &Row, kind: Kind, mode: Mode, metric: Metric) -> Option<Cost> {
        let rounds: Vec<f64> = row.rounds(metric).into_values().collect();
        let floor = self.reference(Kind::Floor, mode).filter(|_| kind != Kind::Floor);
        let ours = self.reference(Kind::Ours, mode).filter(|_| kind != Kind::Ours);
        Some(Cost {
            median: stats::median(&rounds)?,
            tail: row.times(metric).map(Tail::of),
            over_floor: floor.and_then(|floor| self.ratio(row, floor, metric)),
            over_ours: ours.and_then(|ours| self.ratio(row, ours, metric)),
            paired: ours.and_then(|ours| {
                let (theirs, ours) = pairs(row, ours, metric);
                stats::paired_test(&theirs, &ours)
            }),
        })
    }

    /// The gate's answers. Who was left out of the run by choice is not judged at all.
    fn judge(&self, gate: &Gate) -> Vec<Judged> {
        if self.row(&gate.ours).is_none() {
            return Vec::new();
        }
        if let (Some(count), Some(max)) = (gate.count, gate.max) {
            return vec![self.judge_count(gate, count, max)];
        }
        if let Some(least) = gate.min_rate {
            return vec![self.judge_rate(gate, least)];
        }
        if let Some(most) = gate.max_us {
            return vec![self.judge_time(gate, most)];
        }
        let present = gate.against.iter().filter(|id| self.row(id).is_some());
        present.map(|against| self.judge_pair(gate, against)).collect()
    }

    fn judge_count(&self, gate: &Gate, count: Count, max: f64) -> Judged {
        let found = self.sound(&gate.ours).and_then(|row| row.counts.get(count));
        Judged {
            workload: self.workload.id.clone(),
            ours: gate.ours.clone(),
            against: String::new(),
            what: count.title().into(),
            asked: format!("<= {max}"),
            verdict: judge_count(found, max),
        }
    }

    /// The median over rounds of what an exchange of `id` cost.
    fn median(&self, id: &str, metric: Metric) -> Option<f64> {
        let costs: Vec<f64> = self.sound(id)?.rounds(metric).into_values().collect();
        stats::median(&costs)
    }

    fn judge_time(&self, gate: &Gate, most: f64) -> Judged {
        let metric = gate.metric.unwrap_or(self.workload.metric);
        Judged {
            workload: self.workload.id.clone(),
            ours: gate.ours.clone(),
            against: String::new(),
            what: metric.name().into(),
            asked: format!("<= {}", table::time(most * 1e3)),
            verdict: judge_time(self.median(&gate.ours, metric), most),
        }
    }

    fn judge_rate(&self, gate: &Gate, least: f64) -> Judged {
        let found =
            self.median(&gate.ours, Metric::Throughput).map(|nanoseconds| 1e9 / nanoseconds);
        Judged {
            workload: self.workload.id.clone(),
            ours: gate.ours.clone(),
            against: String::new(),
            what: Metric::Throughput.name().into(),
            asked: format!(">= {}", table::rate(least)),
            verdict: judge_rate(found, least),
        }
    }

    fn judge_pair(&self, gate: &Gate, against: &str) -> Judged {
        let metric = gate.metric.unwrap_or(self.workload.metric);
        let verdict = match (self.sound(&gate.ours), self.sound(against)) {
            (Some(ours), Some(theirs)) => match self.evidence(ours, theirs, metric) {
                Some(found) => gate.rule().judge(&found),
                None => Verdict::Unjudged("no rounds that both have".into()),
            },
            (None, _) => Verdict::Fail(format!("{} failed", gate.ours)),
            (_, None) => Verdict::Unjudged(format!("{against} failed or is not there")),
        };
        Judged {
            workload: self.workload.id.clone(),
            ours: gate.ours.clone(),
            against: against.to_owned(),
            what: metric.name().into(),
            asked: gate.rule().asks(),
            verdict,
        }
    }

    fn evidence(&self, ours: &Row, theirs: &Row, metric: Metric) -> Option<Evidence> {
        let (their_costs, our_costs) = pairs(theirs, ours, metric);
        // CPU and throughput have no distribution of their own: the tail is that of the exchanges.
        let p95 = |row: &Row| {
            let times = row.times(metric).or_else(|| row.times(Metric::Latency))?;
            Some(times.value_at_quantile(0.95) as f64)
        };
        Some(Evidence {
            theirs_over_ours: self.ratio(theirs, ours, metric)?,
            paired: stats::paired_test(&their_costs, &our_costs),
            p95: p95(ours).zip(p95(theirs)).map(|(ours, theirs)| ours / theirs),
        })
    }
}

#[cfg(test)]
mod tests;
