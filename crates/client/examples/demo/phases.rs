//! Where the time of one https call goes: each phase as a bar, where it began and how long it took.

use std::time::Duration;

use mimus::{Response, Timings};

use crate::{
    report::{Ink, Report},
    setup::{Demo, Result, ms},
};

/// The columns that stand for the whole call.
const WIDTH: f64 = 56.0;

/// Makes the same call on a new connection and on the one it leaves behind.
pub async fn show(demo: &Demo, report: &mut Report) -> Result<()> {
    let client = demo.client()?;
    let url = demo.https("/bytes/1000000");
    for how in ["on a new connection", "again, on the same connection"] {
        let mut response = client.get(&url).send().await?;
        let mut bytes = 0;
        while let Some(piece) = response.chunk().await? {
            bytes += piece.len();
        }
        report.section(&format!("GET {url} {how}"))?;
        report.line(&format!("  {}, {bytes} bytes, {}", response.status(), secured(&response)))?;
        bars(report, &response.timings())?;
    }
    Ok(())
}

fn secured(response: &Response) -> String {
    let Some(tls) = response.tls() else { return "without TLS".to_owned() };
    format!("{} {} {}", tls.version, tls.cipher, tls.group.unwrap_or_default())
}

/// The phases follow one another, and waiting for the first byte fills what is between them and it.
fn bars(report: &mut Report, timings: &Timings) -> Result<()> {
    let total = timings.total.ok_or("the end of the body was not seen")?;
    let mut begin = Duration::ZERO;
    for (name, took) in [
        ("dns", timings.dns),
        ("connect", timings.connect),
        ("tls", timings.tls),
        ("first byte", None),
        ("body", Some(total.saturating_sub(timings.first_byte))),
    ] {
        let took = match name {
            "first byte" => Some(timings.first_byte.saturating_sub(begin)),
            _ => took,
        };
        let Some(took) = took else { continue };
        bar(report, name, begin, took, total)?;
        begin += took;
    }
    let sum = report.paint(Ink::Bold, &format!("{:>9}", ms(total)));
    Ok(report.line(&format!("  {:<11}{sum}", "total"))?)
}

fn bar(
    report: &mut Report,
    name: &str,
    begin: Duration,
    took: Duration,
    total: Duration,
) -> Result<()> {
    let column = |at: Duration| (at.div_duration_f64(total) * WIDTH).round() as usize;
    let (from, to) = (column(begin), column(begin + took));
    // What took any time at all is shown.
    let filled = "█".repeat(to.saturating_sub(from).max(1));
    let filled = report.paint(Ink::Cyan, &filled);
    Ok(report.line(&format!("  {name:<11}{:>9}  {}{filled}", ms(took), " ".repeat(from)))?)
}
