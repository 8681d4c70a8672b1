//! The page.

use std::fmt::Write as _;

use anyhow::Result;

use super::{cost_bars, count_bars, cpu_bars, curves, foot, forest};
use crate::analysis::{Analysis, Cost, RowSummary, State, Summary};
use crate::counts::Count;
use crate::gate::Verdict;
use crate::record::{Built, Record};
use crate::stats::Method;
use crate::suite::{Kind, Metric};
use crate::table;

const STYLE: &str = "
body { font: 15px/1.45 system-ui, sans-serif; color: #1d1d1d; max-width: 1180px; margin: 1.5em auto;
       padding: 0 1em }
table { border-collapse: collapse; margin: .8em 0; font-variant-numeric: tabular-nums }
th, td { padding: .2em .7em; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap }
th { font-weight: 600; background: #f5f5f5 } td:first-child, th:first-child, .words { text-align: left }
.words { white-space: normal } tr.ours { font-weight: 600; background: #fdf0e6 } tr.floor { color: #666 }
.pass { color: #00664b } .fail { color: #a63c00; font-weight: 600 } .unjudged { color: #666 }
.wide { overflow-x: auto } figure { margin: 0; display: inline-block; vertical-align: top }
figure svg { max-width: 100%; height: auto } h2 { margin-top: 2em } .note { color: #666 }
";

/// The whole page.
pub fn page(record: &Record, analysis: &Analysis) -> Result<String> {
    let title = escape(&record.suite.title);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1>"
    );
    about(&mut page, record);
    gates(&mut page, analysis);
    contents(&mut page, analysis);
    for summary in &analysis.workloads {
        workload(&mut page, record, summary)?;
    }
    clients(&mut page, record);
    page.push_str("</body></html>\n");
    Ok(page)
}

fn about(page: &mut String, record: &Record) {
    let (machine, options) = (&record.machine, &record.options);
    let pin = match options.pin {
        crate::pin::Pin::Core0 => "server and clients on core 0",
        crate::pin::Pin::Split => "server on core 1, clients on core 0",
        crate::pin::Pin::None => "not pinned",
    };
    let _ = write!(
        page,
        "<p>{}<br>governor {}, load {}<br>commit {}, {}; {} run, {pin}, {:?} server, {} runtime, \
         seed {}</p><p class=\"note\">A gain is the peer's cost over ours, less one: +100 % is twice as \
         fast. All costs are medians over rounds; percentiles are of all exchanges. Intervals are 95 %. \
         How each number is made, and what it does not show, stands in docs/BENCHMARKS.md.</p>",
        escape(&machine.line()),
        escape(&machine.governor),
        escape(&machine.load),
        escape(&machine.commit),
        escape(&machine.date),
        if options.quick { "quick" } else { "full" },
        options.server,
        escape(&options.runtime),
        options.seed,
    );
}

fn gates(page: &mut String, analysis: &Analysis) {
    if analysis.gates.is_empty() {
        return;
    }
    let passed = analysis.gates.iter().filter(|g| matches!(g.verdict, Verdict::Pass(_))).count();
    let _ = write!(
        page,
        "<h2>Gates: {passed} of {} passed</h2><div class=\"wide\"><table><tr><th>workload<th>ours\
         <th>against<th>what<th>asked<th>answer<th class=\"words\">found</tr>",
        analysis.gates.len()
    );
    for judged in &analysis.gates {
        let (class, answer, why) = match &judged.verdict {
            Verdict::Pass(why) => ("pass", "pass", why),
            Verdict::Fail(why) => ("fail", "fail", why),
            Verdict::Unjudged(why) => ("unjudged", "not judged", why),
        };
        let _ = write!(
            page,
            "<tr><td><a href=\"#{0}\">{0}</a><td>{1}<td>{2}<td>{3}<td>{4}<td class=\"{class}\">{answer}\
             <td class=\"words\">{5}</tr>",
            escape(&judged.workload),
            escape(&judged.ours),
            escape(&judged.against),
            escape(&judged.what),
            escape(&judged.asked),
            escape(why),
        );
    }
    page.push_str("</table></div>");
}

fn contents(page: &mut String, analysis: &Analysis) {
    page.push_str("<h2>Workloads</h2><ul>");
    for summary in &analysis.workloads {
        let (id, title) = (escape(&summary.id), escape(&summary.title));
        let _ = write!(page, "<li><a href=\"#{id}\">{title}</a></li>");
    }
    page.push_str("</ul>");
}

fn workload(page: &mut String, record: &Record, summary: &Summary) -> Result<()> {
    let rounds =
        record.workloads.iter().find(|measured| measured.id == summary.id).map(|measured| {
            (measured.job.ops, measured.rows.iter().map(|r| r.blocks.len() / 2).max())
        });
    let (ops, rounds) = rounds.unwrap_or_default();
    let _ = write!(
        page,
        "<h2 id=\"{id}\">{title}</h2><p class=\"note\">{id}: {rounds} rounds of two blocks of {ops} \
         exchanges each</p>",
        id = escape(&summary.id),
        title = escape(&summary.title),
        rounds = rounds.unwrap_or(0),
    );
    for (place, &metric) in summary.metrics.iter().enumerate() {
        metric_table(page, summary, place, metric);
    }
    resources(page, summary);
    let foot = foot(record);
    let mut drawings =
        vec![forest(summary, &foot)?, curves(record, summary)?, cost_bars(summary, &foot)?];
    if summary.metrics.first() != Some(&Metric::Cpu) {
        drawings.push(cpu_bars(summary, &foot)?);
    }
    drawings.push(count_bars(summary, Count::Instructions, &foot)?);
    for svg in drawings.into_iter().flatten() {
        let _ = write!(page, "<figure>{svg}</figure>");
    }
    Ok(())
}

fn metric_table(page: &mut String, summary: &Summary, place: usize, metric: Metric) {
    let _ = write!(
        page,
        "<div class=\"wide\"><table><tr><th>{}<th>median<th>p10<th>p50<th>p95<th>p99<th>p99.9<th>x floor\
         <th>gain of ours [95 %]<th>p<th>effect</tr>",
        metric.title()
    );
    for row in &summary.rows {
        let _ = write!(page, "<tr class=\"{}\"><td>{}", class(row), escape(&row.contender));
        match (&row.state, row.costs.get(place).and_then(Option::as_ref)) {
            (State::Sound, Some(cost)) => cost_cells(page, cost, metric),
            (State::Sound, None) => {
                page.push_str("<td colspan=\"10\" class=\"words\">not measured");
            }
            (state, _) => {
                let _ =
                    write!(page, "<td colspan=\"10\" class=\"words\">{}", escape(&words(state)));
            }
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
}

fn cost_cells(page: &mut String, cost: &Cost, metric: Metric) {
    let _ = write!(page, "<td>{}", table::cost(metric, cost.median));
    match cost.tail {
        Some(tail) => {
            for time in [tail.p10, tail.p50, tail.p95, tail.p99, tail.p999] {
                let told = metric.unit(time as f64);
                let _ = write!(page, "<td>{}", table::cost(metric, told));
            }
        }
        None => page.push_str("<td><td><td><td><td>"),
    }
    let floor = cost.over_floor.as_ref().map(table::ratio).unwrap_or_default();
    let gain = table::gain_with_interval(cost).unwrap_or_default();
    let _ = write!(page, "<td>{floor}<td>{gain}");
    match cost.paired {
        Some(paired) => {
            let about = if paired.method == Method::Exact { "" } else { "~ " };
            let _ = write!(page, "<td>{about}{:.1e}<td>{:+.2}", paired.p, paired.effect);
        }
        None => page.push_str("<td><td>"),
    }
}

fn resources(page: &mut String, summary: &Summary) {
    page.push_str(
        "<div class=\"wide\"><table><tr><th>per exchange<th>CPU<th>instructions<th>system calls\
         <th>allocations<th>bytes allocated<th>peak memory</tr>",
    );
    for row in summary.rows.iter().filter(|row| row.state == State::Sound) {
        let _ = write!(page, "<tr class=\"{}\"><td>{}", class(row), escape(&row.contender));
        let _ = write!(page, "<td>{}", row.cpu.map(table::time).unwrap_or_default());
        for count in Count::ALL {
            let value = row.counts.get(count).map(table::count);
            let _ = write!(page, "<td>{}", value.unwrap_or_default());
        }
        let _ = write!(page, "<td>{}</tr>", table::memory(row.peak_rss));
    }
    page.push_str("</table></div>");
}

fn clients(page: &mut String, record: &Record) {
    page.push_str(
        "<h2>Clients</h2><table><tr><th>client<th>version<th class=\"words\">configurations</tr>",
    );
    for (name, built) in &record.clients {
        let (version, about) = match built {
            Built::Ready { version, about } => {
                let each = about.iter().map(|(config, about)| format!("{config}: {about}"));
                (version.clone(), each.collect::<Vec<_>>().join("\n"))
            }
            Built::Failed { error } => (String::new(), format!("could not be built: {error}")),
        };
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td class=\"words\">{}</tr>",
            escape(name),
            escape(&version),
            escape(&about).replace('\n', "<br>"),
        );
    }
    page.push_str("</table>");
}

fn class(row: &RowSummary) -> &'static str {
    match row.kind {
        Kind::Ours => "ours",
        Kind::Floor => "floor",
        Kind::Peer => "peer",
    }
}

fn words(state: &State) -> String {
    match state {
        State::Sound => String::new(),
        State::Failed(why) => format!("FAILED: {why}"),
        State::Unsupported(why) => format!("unsupported: {why}"),
        State::NotBuilt(why) => format!("could not be built: {why}"),
    }
}

/// What a client says becomes no markup.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
