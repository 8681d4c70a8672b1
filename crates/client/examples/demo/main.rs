//! Uses Mimus against its embedded origin, checks what comes out, and prints it as it goes.
//!
//! `make demo`, or `cargo run --release -p mimus --features smol,grpc-prost --example demo`. It needs no
//! network and nothing else to run. The last line counts what was right and what was wrong; the exit
//! status is 0 when nothing was wrong.

mod phases;
mod report;
mod setup;
mod steps;

use std::{
    io::Write,
    process::ExitCode,
    time::{Duration, Instant},
};

use report::{Report, Row};
use setup::{Demo, Result, chain};
use steps::{STEPS, Step};

/// No step may take longer, whatever goes wrong in it.
const STEP_LIMIT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            // With standard error closed there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "demo: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// The number of steps that went wrong.
fn run() -> Result<usize> {
    let demo = Demo::start()?;
    let mut report = Report::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        report.title(&format!(
            "Mimus {} and its embedded origin at {} and {}",
            env!("CARGO_PKG_VERSION"),
            demo.http(""),
            demo.https("")
        ))?;
        phases::show(&demo, &mut report).await?;
        for (section, steps) in STEPS {
            report.section(section)?;
            for step in *steps {
                let row = check(step, &demo).await;
                report.row(row)?;
            }
        }
        Ok(report.sum()?)
    })
}

/// Runs one step, within its limit.
async fn check(step: &Step, demo: &Demo) -> Row {
    let started = Instant::now();
    let outcome = match tokio::time::timeout(STEP_LIMIT, (step.run)(demo)).await {
        Ok(Ok(facts)) => Ok(facts),
        Ok(Err(error)) => Err(chain(&*error)),
        Err(_) => Err(format!("no end within {} s", STEP_LIMIT.as_secs())),
    };
    Row { what: step.what, took: started.elapsed(), outcome }
}
