//! What changed between two runs, beyond noise.

use std::process::ExitCode;

use comfy_table::Table;

use crate::analysis;
use crate::counts::Count;
use crate::record::{Measured, Record, Row};
use crate::stats::{self, Interval};
use crate::suite::{Kind, Metric};
use crate::table;

/// A change of time that is smaller is not called one, whatever the interval says.
const TIME_TOLERANCE: f64 = 0.02;
/// As much may a count vary.
const COUNT_TOLERANCE: f64 = 0.03;
/// What it may vary by in any case: one more system call in twenty exchanges is the scheduler's.
const COUNT_SLACK: f64 = 0.05;

/// A row's change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The workload.
    pub workload: String,
    /// `client/config`.
    pub contender: String,
    /// What changed.
    pub what: String,
    /// Before and after, in words.
    pub values: String,
    /// After over before.
    pub ratio: Interval,
    /// The chance of seeing it by luck; `None` for counts, which do not vary.
    pub p: Option<f64>,
    /// What it comes to.
    pub call: Call,
}

/// What a change comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Within noise.
    Same,
    /// Cheaper.
    Better,
    /// Costlier.
    Worse,
    /// Exchanges fail, or are gone, that went well before.
    Broken,
}

/// All changes of rows that are in both runs.
pub fn changes(before: &Record, after: &Record) -> Vec<Change> {
    let mut changes = Vec::new();
    for old in &before.workloads {
        let Some(new) = after.workloads.iter().find(|new| new.id == old.id) else { continue };
        for row in &old.rows {
            let Some(now) = new.rows.iter().find(|now| now.contender == row.contender) else {
                continue;
            };
            let pair = Pair { records: [before, after], workloads: [old, new], rows: [row, now] };
            changes.extend(pair.changes());
        }
    }
    changes
}

/// Prints the changes; fails if one of them is a regression of ours.
pub fn report(before: &Record, after: &Record) -> ExitCode {
    let all = changes(before, after);
    table::print(&table_of(&all));
    let regressed = |change: &&Change| {
        matches!(change.call, Call::Worse | Call::Broken)
            && after.suite.kind(&change.contender) == Some(Kind::Ours)
    };
    let regressions = all.iter().filter(regressed).count();
    let same = all.iter().filter(|change| change.call == Call::Same).count();
    table::say(&format!("{same} of {} unchanged; {regressions} regressions of ours", all.len()));
    ExitCode::from(u8::from(regressions > 0))
}

fn table_of(changes: &[Change]) -> Table {
    let mut table =
        table::new(&["workload", "contender", "what", "before -> after", "ratio", "p", ""]);
    for change in changes.iter().filter(|change| change.call != Call::Same) {
        let ratio = change.ratio;
        table.add_row([
            change.workload.clone(),
            change.contender.clone(),
            change.what.clone(),
            change.values.clone(),
            format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high),
            change.p.map_or_else(String::new, |p| format!("{:.1e}", p.max(1e-15))),
            match change.call {
                Call::Same => "",
                Call::Better => "better",
                Call::Worse => "WORSE",
                Call::Broken => "BROKEN",
            }
            .to_owned(),
        ]);
    }
    table
}

/// A row before and after.
struct Pair<'a> {
    records: [&'a Record; 2],
    workloads: [&'a Measured; 2],
    rows: [&'a Row; 2],
}

impl Pair<'_> {
    fn changes(&self) -> Vec<Change> {
        let [before, after] = self.rows;
        if !before.is_sound() {
            return Vec::new();
        }
        if !after.is_sound() {
            let why = after.failures.keys().next().or(after.unsupported.as_ref());
            let one = Interval { value: 1.0, low: 1.0, high: 1.0 };
            let values = why.cloned().unwrap_or_else(|| "nothing was measured".into());
            return vec![self.change("exchanges", values, one, None, Call::Broken)];
        }
        let mut changes: Vec<Change> = self.metrics().filter_map(|m| self.time(m)).collect();
        changes.extend(Count::ALL.into_iter().filter_map(|count| self.count(count)));
        changes
    }

    fn metrics(&self) -> impl Iterator<Item = Metric> {
        let id = &self.workloads[0].id;
        let workload = self.records[0].suite.workloads.iter().find(|w| w.id == *id);
        let mut metrics = workload.map(|workload| workload.metrics()).unwrap_or_default();
        if !metrics.contains(&Metric::Cpu) {
            metrics.push(Metric::Cpu);
        }
        metrics.into_iter()
    }

    /// The change of a time, measured in units of the floor where both runs have it: the machine's mood
    /// of the day is the floor's too.
    fn time(&self, metric: Metric) -> Option<Change> {
        let floors = [self.floor(0), self.floor(1)];
        let (costs, unit) = match floors {
            [Some(old), Some(new)] => {
                ([over(self.rows[0], old, metric), over(self.rows[1], new, metric)], " x floor")
            }
            _ => (self.rows.map(|row| row.rounds(metric).into_values().collect()), " ns"),
        };
        let [before, after]: [Vec<f64>; 2] = costs;
        let ratio = stats::unpaired_ratio(&after, &before, self.records[1].options.seed)?;
        let values =
            format!("{:.4} -> {:.4}{unit}", stats::median(&before)?, stats::median(&after)?);
        let beyond = ratio.excludes_one() && (ratio.value - 1.0).abs() > TIME_TOLERANCE;
        let call = match (beyond, ratio.value > 1.0) {
            (false, _) => Call::Same,
            (true, true) => Call::Worse,
            (true, false) => Call::Better,
        };
        let p = stats::unpaired_test(&before, &after);
        Some(self.change(metric.name(), values, ratio, p, call))
    }

    /// The sound floor of this row's mode in one of the runs, unless the row is a floor itself.
    fn floor(&self, run: usize) -> Option<&Row> {
        let suite = &self.records[run].suite;
        let contender = suite.contender(&self.rows[run].contender)?;
        if suite.kind(&contender.id())? == Kind::Floor {
            return None;
        }
        let id = suite.of_kind(Kind::Floor, contender.mode)?.id();
        self.workloads[run].rows.iter().find(|row| row.contender == id && row.is_sound())
    }

    fn count(&self, count: Count) -> Option<Change> {
        let [before, after] = self.rows.map(|row| row.counts.get(count));
        let (before, after) = (before?, after?);
        let value = if before > 0.0 { after / before } else { 1.0 };
        let call = call_count(before, after);
        let ratio = Interval { value, low: value, high: value };
        let values = format!("{before:.2} -> {after:.2}");
        Some(self.change(count.title(), values, ratio, None, call))
    }

    fn change(
        &self,
        what: &str,
        values: String,
        ratio: Interval,
        p: Option<f64>,
        call: Call,
    ) -> Change {
        Change {
            workload: self.workloads[0].id.clone(),
            contender: self.rows[0].contender.clone(),
            what: what.to_owned(),
            values,
            ratio,
            p,
            call,
        }
    }
}

/// Whether a count changed by more than it may vary.
pub fn call_count(before: f64, after: f64) -> Call {
    let room = before * COUNT_TOLERANCE + COUNT_SLACK;
    if after > before + room {
        Call::Worse
    } else if after < before - room {
        Call::Better
    } else {
        Call::Same
    }
}

fn over(row: &Row, floor: &Row, metric: Metric) -> Vec<f64> {
    let (costs, floors) = analysis::pairs(row, floor, metric);
    costs.iter().zip(&floors).map(|(cost, floor)| cost / floor).collect()
}

#[cfg(test)]
mod tests;
