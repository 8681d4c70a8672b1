//! Fuzzing without libFuzzer: seeds, then seeded pseudo-random mutations of them.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

/// Inputs never grow beyond this many bytes.
const MAX_INPUT: usize = 4096;

/// How many mutations are kept beside the seeds, to be mutated further.
const KEPT: usize = 512;

/// Tokens that random bytes would take long to find.
const TOKENS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b": ",
    b" ",
    b",",
    b";",
    b"\"",
    b"0\r\n\r\n",
    b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 ",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 S\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Upgrade: x\r\n",
    b"Host: h\r\n",
    b"GET / HTTP/1.1\r\n",
    b"ffffffffffffffff",
    b"18446744073709551615",
];

/// Runs one target; the exit code says whether it held.
pub fn main(name: &str, target: fn(&[u8])) -> ExitCode {
    let plan = Plan::from_arguments(name);
    let mut inputs: Vec<Vec<u8>> =
        plan.files.iter().filter_map(|file| fs::read(file).ok()).collect();
    if inputs.is_empty() {
        eprintln!("{name}: no seeds found");
        return ExitCode::FAILURE;
    }
    for input in &inputs {
        if !holds(name, target, input) {
            return ExitCode::FAILURE;
        }
    }
    let seeds = inputs.len();
    let mut random = Random(plan.seed);
    let start = Instant::now();
    let mut runs = 0_u64;
    while runs < plan.runs && start.elapsed() < plan.time {
        for _ in 0..64 {
            let input = mutate(&inputs, &mut random);
            if !holds(name, target, &input) {
                return ExitCode::FAILURE;
            }
            // Keep a few: mutations of mutations reach further.
            if random.below(64) == 0 {
                if inputs.len() < seeds + KEPT {
                    inputs.push(input);
                } else {
                    let place = seeds + random.below(KEPT);
                    inputs[place] = input;
                }
            }
            runs += 1;
        }
    }
    eprintln!("{name}: {seeds} seeds and {runs} mutations held in {:.1?}", start.elapsed());
    ExitCode::SUCCESS
}

fn holds(name: &str, target: fn(&[u8]), input: &[u8]) -> bool {
    let held = panic::catch_unwind(AssertUnwindSafe(|| target(input))).is_ok();
    if !held {
        let file = format!("crash-{name}");
        let kept = fs::write(&file, input).is_ok();
        eprintln!(
            "{name}: failed on {}{}",
            input.escape_ascii(),
            if kept { " (kept as a crash file)" } else { "" }
        );
    }
    held
}

/// What the command line asks for; the options are named as libFuzzer names them.
struct Plan {
    files: Vec<PathBuf>,
    runs: u64,
    time: Duration,
    seed: u64,
}

impl Plan {
    fn from_arguments(name: &str) -> Self {
        let mut plan =
            Self { files: Vec::new(), runs: u64::MAX, time: Duration::from_secs(10), seed: 1 };
        for argument in env::args().skip(1) {
            let number = |option: &str| argument.strip_prefix(option).and_then(|n| n.parse().ok());
            if let Some(seconds) = number("-max_total_time=") {
                plan.time = Duration::from_secs(seconds);
            } else if let Some(runs) = number("-runs=") {
                plan.runs = runs;
            } else if let Some(seed) = number("-seed=") {
                plan.seed = seed;
            } else {
                collect(Path::new(&argument), &mut plan.files);
            }
        }
        if plan.files.is_empty() {
            let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
            collect(&seeds, &mut plan.files);
        }
        plan.files.sort();
        plan
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
        Err(_) => files.push(path.to_owned()),
    }
}

fn mutate(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let end = at + random.below((input.len() - at).min(16) + 1);
        match random.below(7) {
            0 => drop(input.drain(at..end)),
            1 => drop(input.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
            2 => input.insert(at, random.next() as u8),
            3 if at < input.len() => input[at] ^= 1 << random.below(8),
            4 if at < input.len() => input[at] = random.next() as u8,
            5 => {
                let copy = input[at..end].to_vec();
                let place = random.below(input.len() + 1);
                input.splice(place..place, copy);
            }
            _ => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len() + 1);
                input.splice(at.., other[from..].iter().copied());
            }
        }
    }
    input.truncate(MAX_INPUT);
    input
}

/// SplitMix64: any seed will do, and the same seed gives the same run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
