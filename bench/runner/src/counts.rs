//! What does not vary: instructions, system calls and allocations of an exchange, each counted by
//! running a client once under a program that counts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mimus_bench_kit::{Answer, Job, Protocol, Sample};
use serde::{Deserialize, Serialize};

use crate::client::{Program, answer_of};

/// Exchanges of the smaller and the larger of two runs, whose difference is free of start and end. Both
/// come after the same warm-up.
const FEW: u64 = 50;
const MANY: u64 = 550;
/// How long one counted run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Counts a codec's operations without what is prepared for them: the kit's function that times them.
const ONLY_TIMED: &str = "--toggle-collect=*codec::bench::timed*";

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// User instructions, by callgrind.
    Instructions,
    /// System calls, by strace.
    SystemCalls,
    /// Calls that allocate, by a preloaded counter.
    Allocations,
    /// Bytes that they ask for.
    AllocatedBytes,
}

/// How much is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every [`Count`].
    All,
    /// System calls alone.
    SystemCalls,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Instructions, Self::SystemCalls, Self::Allocations, Self::AllocatedBytes];

    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::SystemCalls => "system calls",
            Self::Allocations => "allocations",
            Self::AllocatedBytes => "allocated bytes",
        }
    }
}

/// What was counted, for each exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Counts {
    /// User instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<f64>,
    /// System calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<f64>,
    /// Calls that allocate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<f64>,
    /// Bytes that they ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<f64>,
}

impl Counts {
    /// What was counted of `count`.
    pub fn get(&self, count: Count) -> Option<f64> {
        match count {
            Count::Instructions => self.instructions,
            Count::SystemCalls => self.system_calls,
            Count::Allocations => self.allocations,
            Count::AllocatedBytes => self.allocated_bytes,
        }
    }
}

/// The programs that count, as far as they are there.
#[derive(Debug)]
pub struct Counters {
    valgrind: bool,
    strace: bool,
    preload: Option<PathBuf>,
    scratch: PathBuf,
}

impl Counters {
    /// Looks for valgrind and strace; `preload` is the built allocation counter, and `scratch` a
    /// directory for their output.
    pub fn find(preload: Option<PathBuf>, scratch: &Path) -> Self {
        Self {
            valgrind: starts("valgrind"),
            strace: starts("strace"),
            preload,
            scratch: scratch.to_owned(),
        }
    }

    /// What is missing, in words.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !self.valgrind {
            missing.push("valgrind is missing: no instruction counts");
        }
        if !self.strace {
            missing.push("strace is missing: no system call counts");
        }
        if self.preload.is_none() {
            missing.push("the allocation counter could not be built: no allocation counts");
        }
        missing
    }

    /// Counts what an exchange of `program` takes, and names what could not be counted.
    pub fn count(&self, program: &Program, job: &Job, extent: Extent) -> (Counts, Vec<String>) {
        let mut counts = Counts::default();
        let all = extent == Extent::All;
        let mut troubles = Vec::new();
        let mut keep = |what: &str, found: Result<Option<f64>>| match found {
            Ok(found) => found,
            Err(why) => {
                troubles.push(format!("{what}: {why:#}"));
                None
            }
        };
        counts.instructions = keep(
            "instructions",
            (all && self.valgrind).then(|| self.instructions(program, job)).transpose(),
        );
        // What asks nobody makes none that count.
        let calls = self.strace && program.protocol.is_spoken();
        counts.system_calls =
            keep("system calls", calls.then(|| self.system_calls(program, job)).transpose());
        let preload = self.preload.as_deref().filter(|_| all);
        let heap = preload.map(|preload| allocations(preload, program, job));
        match heap.transpose() {
            Ok(heap) => {
                counts.allocations = heap.map(|(calls, _)| calls);
                counts.allocated_bytes = heap.map(|(_, bytes)| bytes);
            }
            Err(why) => troubles.push(format!("allocations: {why:#}")),
        }
        (counts, troubles)
    }

    fn instructions(&self, program: &Program, job: &Job) -> Result<f64> {
        difference(job, |job| {
            let out = tempfile::NamedTempFile::new_in(&self.scratch)?;
            let option = format!("--callgrind-out-file={}", out.path().display());
            let mut wrapper = vec!["valgrind", "-q", "--tool=callgrind", &option];
            if program.protocol == Protocol::Codec {
                wrapper.push(ONLY_TIMED);
            }
            finish(&mut program.once(&wrapper, job)?, job)?;
            let text = std::fs::read_to_string(out.path()).context("callgrind wrote nothing")?;
            instructions_in(&text).context("callgrind's file has no total")
        })
    }

    fn system_calls(&self, program: &Program, job: &Job) -> Result<f64> {
        difference(job, |job| {
            let out = tempfile::NamedTempFile::new_in(&self.scratch)?;
            let path = out.path().display().to_string();
            let wrapper = ["strace", "-f", "-c", "-o", &path];
            finish(&mut program.once(&wrapper, job)?, job)?;
            let text = std::fs::read_to_string(out.path()).context("strace wrote nothing")?;
            system_calls_in(&text).context("strace's table has no total")
        })
    }
}

/// Heap calls and bytes for each exchange. The client reads the counter at both ends of the block, so no
/// difference of runs is needed.
fn allocations(preload: &Path, program: &Program, job: &Job) -> Result<(f64, f64)> {
    let job = counted(job, MANY);
    let mut command = program.once(&[], &job)?;
    command.env("LD_PRELOAD", preload);
    let sample = finish(&mut command, &job)?;
    let heap = sample.allocations.context("the client did not find the counter")?;
    Ok((heap.calls as f64 / sample.ops as f64, heap.bytes as f64 / sample.ops as f64))
}

fn counted(job: &Job, ops: u64) -> Job {
    // With many in flight a block has to be many rounds of them.
    let lanes = u64::from(job.in_flight);
    Job { ops: if lanes > 1 { ops * 4 } else { ops }, warm_up: FEW.max(lanes * 2), ..job.clone() }
}

/// The cost of one exchange, from two runs of different length.
fn difference(job: &Job, run: impl Fn(&Job) -> Result<u64>) -> Result<f64> {
    let (few, many) = (counted(job, FEW), counted(job, MANY));
    let (less, more) = (run(&few)?, run(&many)?);
    ensure!(more > less, "more exchanges took less ({more} after {less})");
    Ok((more - less) as f64 / (many.ops - few.ops) as f64)
}

/// Runs `command` to its end and reads its answer, in which nothing may have failed.
fn finish(command: &mut Command, job: &Job) -> Result<Sample> {
    let stdout = tempfile::tempfile()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(Stdio::null())
        .spawn()
        .context("it cannot be started")?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("no end within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    ensure!(status.success(), "it failed ({status})");
    let mut text = Vec::new();
    let mut stdout = stdout;
    std::io::Seek::rewind(&mut stdout)?;
    std::io::Read::read_to_end(&mut stdout, &mut text)?;
    match answer_of(&text)? {
        Answer::Unsupported(why) => bail!("unsupported: {why}"),
        Answer::Sample(sample) => {
            if let Some((message, _)) = sample.failures.first() {
                bail!("an exchange failed: {message}");
            }
            ensure!(sample.ops == job.ops, "{} exchanges instead of {}", sample.ops, job.ops);
            Ok(*sample)
        }
    }
}

fn starts(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The total of a callgrind file.
fn instructions_in(text: &str) -> Option<u64> {
    let total = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
    };
    total("totals:").or_else(|| total("summary:"))
}

/// The number of calls in the last line of an `strace -c` table.
fn system_calls_in(text: &str) -> Option<u64> {
    let header: Vec<&str> =
        text.lines().find(|line| line.contains("calls"))?.split_whitespace().collect();
    let at = header.iter().position(|word| *word == "calls")?;
    // "% time" is two words above one column.
    let column = at.checked_sub(1)?;
    text.lines()
        .rfind(|line| line.trim_end().ends_with("total"))?
        .split_whitespace()
        .nth(column)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrind_totals_are_read() {
        let file =
            "# callgrind format\nevents: Ir\nsummary: 9\n\nfn=(1) main\n1 5\n\ntotals: 123456\n";
        assert_eq!(instructions_in(file), Some(123_456));
        assert_eq!(instructions_in("summary: 77\n"), Some(77));
        assert_eq!(instructions_in("nothing"), None);
    }

    #[test]
    fn the_calls_of_an_strace_table_are_read() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           1       600           recvfrom
 40.00    0.000400           1       400        12 sendto
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           1      1000        12 total
";
        assert_eq!(system_calls_in(table), Some(1_000));
        assert_eq!(system_calls_in("strace: nothing was traced\n"), None);
    }

    #[test]
    fn a_difference_is_free_of_what_both_runs_share() {
        let job: Job = serde_json::from_str(
            r#"{"url":"u","ops":1,"in_flight":1,"upload":"none","deliver":"bytes","body":1,
                "cold":false,"rate":null,"warm_up":1}"#,
        )
        .expect("a job");
        let each = difference(&job, |job| Ok(1_000_000 + 321 * job.ops)).expect("it grows");
        assert_eq!(each, 321.0);
        assert!(difference(&job, |_| Ok(5)).is_err());
    }
}
