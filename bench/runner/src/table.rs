//! Tables and figures for the terminal, and how quantities are written everywhere.

use comfy_table::{Cell, ContentArrangement, Table};

use crate::analysis::{Analysis, Cost, RowSummary, State};
use crate::gate::Verdict;
use crate::stats::Interval;
use crate::suite::Metric;

/// A table with `headers`.
pub fn new(headers: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headers.iter().map(Cell::new));
    table
}

/// Prints a table.
pub fn print(table: &Table) {
    say(&table.trim_fmt());
}

/// Prints a line.
#[expect(clippy::print_stdout, reason = "this is what the program is asked for")]
pub fn say(line: &str) {
    println!("{line}");
}

/// Nanoseconds, in the unit that fits.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

/// A cost by `metric`: a time, cycles, or for throughput what moves in a second.
pub fn cost(metric: Metric, cost: f64) -> String {
    match metric {
        Metric::Throughput => rate(1e9 / cost),
        Metric::Rate => format!("{}/s", count(1e9 / cost)),
        Metric::Cycles => digits(cost),
        _ => time(cost),
    }
}

/// Bytes a second.
pub fn rate(bytes: f64) -> String {
    format!("{} MB/s", digits(bytes / 1e6))
}

/// A count, thousands as k.
pub fn count(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{} k", digits(value / 1e3))
    } else if value >= 1_000.0 {
        format!("{value:.0}")
    } else {
        digits(value)
    }
}

/// Bytes of memory.
pub fn memory(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A ratio with its interval.
pub fn ratio(interval: &Interval) -> String {
    format!("{:.2} [{:.2}, {:.2}]", interval.value, interval.low, interval.high)
}

/// A gain in percent: how much more the other costs.
pub fn gain(interval: &Interval) -> String {
    format!("{:+.1} %", (interval.value - 1.0) * 100.0)
}

/// Three significant digits, more or less.
fn digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Prints what was found: each workload's table, then the gates.
pub fn summary(analysis: &Analysis) {
    for workload in &analysis.workloads {
        let Some(&metric) = workload.metrics.first() else { continue };
        say(&format!("\n{} ({})", workload.title, workload.id));
        let headers = [
            "",
            metric.title(),
            "x floor",
            "gain of ours",
            "p",
            "CPU",
            "RSS",
            "instr",
            "allocs",
            "syscalls",
        ];
        let mut table = new(&headers);
        for row in &workload.rows {
            table.add_row(cells(row, metric));
        }
        print(&table);
    }
    gates(analysis);
}

fn cells(row: &RowSummary, metric: Metric) -> Vec<String> {
    let first = row.costs.first().and_then(Option::as_ref);
    let or_empty = |text: Option<String>| text.unwrap_or_default();
    vec![
        row.contender.clone(),
        match &row.state {
            State::Sound => or_empty(first.map(|found| cost(metric, found.median))),
            State::Failed(why) => format!("FAILED: {}", shorten(why)),
            State::Unsupported(why) => format!("unsupported: {}", shorten(why)),
            State::NotBuilt(why) => format!("could not be built: {}", shorten(why)),
        },
        or_empty(
            first.and_then(|found| found.over_floor.as_ref()).map(|r| format!("{:.2}", r.value)),
        ),
        or_empty(first.and_then(|found| found.over_ours.as_ref()).map(gain)),
        or_empty(first.and_then(|found| found.paired).map(|paired| format!("{:.1e}", paired.p))),
        or_empty(row.cpu.map(time)),
        or_empty((row.state == State::Sound).then(|| memory(row.peak_rss))),
        or_empty(row.counts.instructions.map(count)),
        or_empty(row.counts.allocations.map(count)),
        or_empty(row.counts.system_calls.map(count)),
    ]
}

/// The start of a message.
pub fn shorten(text: &str) -> String {
    const MOST: usize = 70;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= MOST {
        return line.to_owned();
    }
    line.chars().take(MOST - 1).chain(['…']).collect()
}

/// The interval of a cost's gain, for a tail of text.
pub fn gain_with_interval(cost: &Cost) -> Option<String> {
    let ratio = cost.over_ours.as_ref()?;
    let percent = |value: f64| format!("{:+.1}", (value - 1.0) * 100.0);
    Some(format!("{} [{}, {}]", gain(ratio), percent(ratio.low), percent(ratio.high)))
}

fn gates(analysis: &Analysis) {
    if analysis.gates.is_empty() {
        return;
    }
    say("\nGates");
    let mut table = new(&["", "workload", "ours", "against", "what", "asked", "found"]);
    for judged in &analysis.gates {
        let (mark, why) = match &judged.verdict {
            Verdict::Pass(why) => ("pass", why),
            Verdict::Fail(why) => ("FAIL", why),
            Verdict::Unjudged(why) => ("????", why),
        };
        table.add_row([
            mark,
            &judged.workload,
            &judged.ours,
            &judged.against,
            &judged.what,
            &judged.asked,
            why,
        ]);
    }
    print(&table);
    let passed = |judged: &&crate::analysis::Judged| matches!(judged.verdict, Verdict::Pass(_));
    let passed = analysis.gates.iter().filter(passed).count();
    say(&format!("{passed} of {} gates passed", analysis.gates.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_with_their_units() {
        assert_eq!(time(850.0), "850 ns");
        assert_eq!(time(15_120.0), "15.1 us");
        assert_eq!(time(2_500_000.0), "2.50 ms");
        assert_eq!(cost(Metric::Throughput, 0.5), "2000 MB/s");
        assert_eq!(cost(Metric::Rate, 65_000.0), "15.4 k/s");
        assert_eq!(cost(Metric::Cycles, 38.44), "38.4");
        assert_eq!(count(59_300.0), "59.3 k");
        assert_eq!(count(7.0), "7.00");
        let ratio = Interval { value: 1.636, low: 1.6, high: 1.7 };
        assert_eq!(gain(&ratio), "+63.6 %");
    }
}
