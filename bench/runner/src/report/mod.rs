//! The report: a page that needs nothing but itself, and pictures for a README.

mod html;
mod plot;
mod png;

use std::path::Path;

use anyhow::{Context, Result};

use crate::analysis::{self, Analysis, RowSummary, Summary};
use crate::counts::Count;
use crate::record::Record;
use crate::suite::{Kind, Metric};
use crate::table;
use plot::{Bar, Curve, Fork, Shade};

/// Writes `report.html` into `out`, and PNGs into `pictures` if that is said; gives what they say.
pub fn write(record: &Record, out: &Path, pictures: Option<&Path>) -> Result<Analysis> {
    let analysis = analysis::analyse(record);
    std::fs::create_dir_all(out)?;
    let page = out.join("report.html");
    std::fs::write(&page, html::page(record, &analysis)?)
        .with_context(|| format!("cannot write {}", page.display()))?;
    if let Some(pictures) = pictures {
        std::fs::create_dir_all(pictures)?;
        draw_pictures(record, &analysis, pictures)?;
    }
    Ok(analysis)
}

fn draw_pictures(record: &Record, analysis: &Analysis, directory: &Path) -> Result<()> {
    let save = |name: String, svg: Option<String>| -> Result<()> {
        let Some(svg) = svg else { return Ok(()) };
        let path = directory.join(format!("{}-{name}.png", record.name));
        png::save(&svg, &path).with_context(|| format!("cannot draw {}", path.display()))
    };
    let foot = foot(record);
    for id in &record.suite.pictures {
        let Some(summary) = analysis.workloads.iter().find(|summary| summary.id == *id) else {
            continue;
        };
        save(id.clone(), cost_bars(summary, &foot)?)?;
        save(format!("{id}-instructions"), count_bars(summary, Count::Instructions, &foot)?)?;
    }
    save("gain".into(), headline(record, analysis, &foot)?)
}

/// What a picture says of where it is from.
fn foot(record: &Record) -> String {
    let machine = &record.machine;
    let date = machine.date.split('T').next().unwrap_or_default();
    format!("{date}, commit {}, {}, {} cores", machine.commit, machine.cpu, machine.cores)
}

fn shade(kind: Kind) -> Shade {
    match kind {
        Kind::Ours => Shade::Ours,
        Kind::Floor => Shade::Floor,
        Kind::Peer => Shade::Peer,
    }
}

/// The cost by the metric that counts, the cheapest on top.
fn cost_bars(summary: &Summary, foot: &str) -> Result<Option<String>> {
    let Some(&metric) = summary.metrics.first() else { return Ok(None) };
    let bars = summary.rows.iter().filter_map(|row| {
        let cost = row.costs.first()?.as_ref()?;
        let floor =
            cost.over_floor.map(|r| format!(", {:.2} x floor", r.value)).unwrap_or_default();
        // A bar of speed grows with it.
        let length = if metric.is_speed() { 1.0 / cost.median } else { cost.median };
        Some(bar(row, length, format!("{}{floor}", table::cost(metric, cost.median))))
    });
    let better = if metric.is_speed() { "longer" } else { "shorter" };
    let subtitle = format!("{}; {better} is better", metric.title());
    bars_of(&summary.title, &subtitle, bars.collect(), foot, metric.is_speed())
}

/// CPU time, the cheapest on top.
fn cpu_bars(summary: &Summary, foot: &str) -> Result<Option<String>> {
    let bars =
        summary.rows.iter().filter_map(|row| Some(bar(row, row.cpu?, table::time(row.cpu?))));
    let subtitle = format!("{}; shorter is better", Metric::Cpu.title());
    bars_of(&summary.title, &subtitle, bars.collect(), foot, false)
}

/// A count, the least on top.
fn count_bars(summary: &Summary, count: Count, foot: &str) -> Result<Option<String>> {
    let bars = summary.rows.iter().filter_map(|row| {
        let value = row.counts.get(count)?;
        Some(bar(row, value, table::count(value)))
    });
    let subtitle = format!("user {} per exchange; shorter is better", count.title());
    bars_of(&summary.title, &subtitle, bars.collect(), foot, false)
}

fn bar(row: &RowSummary, length: f64, text: String) -> Bar {
    Bar { label: row.contender.clone(), length, text, shade: shade(row.kind) }
}

fn bars_of(
    title: &str,
    subtitle: &str,
    mut bars: Vec<Bar>,
    foot: &str,
    longest_first: bool,
) -> Result<Option<String>> {
    if bars.is_empty() {
        return Ok(None);
    }
    bars.sort_by(|a, b| a.length.total_cmp(&b.length));
    if longest_first {
        bars.reverse();
    }
    plot::bars(title, subtitle, &bars, foot).map(Some)
}

/// Each peer's cost over ours, with its interval.
fn forest(summary: &Summary, foot: &str) -> Result<Option<String>> {
    let Some(&metric) = summary.metrics.first() else { return Ok(None) };
    let forks = summary.rows.iter().filter_map(|row| {
        let ratio = row.costs.first()?.as_ref()?.over_ours?;
        Some(Fork { label: row.contender.clone(), ratio, shade: shade(row.kind) })
    });
    let mut forks: Vec<Fork> = forks.collect();
    if forks.is_empty() {
        return Ok(None);
    }
    forks.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    let subtitle = format!("{}: theirs / ours, 95 % interval", metric.title());
    plot::forest(&summary.title, &subtitle, &forks, foot).map(Some)
}

/// The ratio to the headline peer in every workload.
fn headline(record: &Record, analysis: &Analysis, foot: &str) -> Result<Option<String>> {
    let Some(peer) = &record.suite.headline else { return Ok(None) };
    let forks = analysis.workloads.iter().filter_map(|summary| {
        let row = summary.rows.iter().find(|row| row.contender == *peer)?;
        let ratio = row.costs.first()?.as_ref()?.over_ours?;
        Some(Fork { label: summary.title.clone(), ratio, shade: Shade::Ours })
    });
    let forks: Vec<Fork> = forks.collect();
    if forks.is_empty() {
        return Ok(None);
    }
    let title = format!("Mimus and {}", peer.split('/').next().unwrap_or(peer));
    let subtitle = "their cost / ours by the metric that counts, 95 % interval";
    plot::forest(&title, subtitle, &forks, foot).map(Some)
}

/// The whole distribution of each contender's times.
fn curves(record: &Record, summary: &Summary) -> Result<Option<String>> {
    let Some(&metric) = summary.metrics.first() else { return Ok(None) };
    // CPU and throughput have no distribution: that of the exchanges says what a caller waits.
    let metric = match metric {
        Metric::Cpu | Metric::Throughput | Metric::Rate => Metric::Latency,
        other => other,
    };
    let Some(measured) = record.workloads.iter().find(|measured| measured.id == summary.id) else {
        return Ok(None);
    };
    let curves = summary.rows.iter().filter_map(|row| {
        let times = measured.rows.iter().find(|r| r.contender == row.contender)?.times(metric)?;
        // More nines than there are exchanges would be a line drawn by one of them.
        let nines = (times.len() as f64).log10();
        let points = plot::nines(nines.min(4.0)).map(|nine| {
            let told = times.value_at_quantile(1.0 - 0.1_f64.powf(nine)) as f64;
            (nine, if metric == Metric::Cycles { metric.unit(told) } else { told / 1e3 })
        });
        Some(Curve {
            label: row.contender.clone(),
            points: points.collect(),
            shade: shade(row.kind),
        })
    });
    let curves: Vec<Curve> = curves.collect();
    if curves.is_empty() {
        return Ok(None);
    }
    let title = match metric {
        Metric::FirstByte => "time to first byte, us",
        Metric::Delay => "delay of a piece, us",
        Metric::Cycles => "cycles of an operation",
        _ => "time of an exchange, us",
    };
    plot::curves(&format!("{}: {title}", summary.title), &curves).map(Some)
}

#[cfg(test)]
mod tests;
