//! A measured client: the process that serves jobs, and the same binary run once under a counter.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use mimus_bench_kit::{Answer, Hello, Job, Protocol};

use crate::child::Lines;

/// How long a client may take to say what it is.
const GREETING: Duration = Duration::from_secs(20);

/// What is executed: a binary, or an interpreter and what it is to run.
#[derive(Debug, Clone)]
pub struct Executable {
    /// The file.
    pub file: PathBuf,
    /// The arguments before all others.
    pub leading: Vec<OsString>,
}

/// What the environment may tell a client instead of us: a proxy, which would be measured instead; authorities,
/// which some clients trust more than those that they are given.
const FOREIGN: [&str; 10] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// How a contender's program is called.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub executable: Executable,
    /// The configuration.
    pub config: String,
    /// The certificate that it is to trust, if the server speaks TLS.
    pub ca: Option<PathBuf>,
    /// What it is to speak.
    pub protocol: Protocol,
    /// The async runtime: `current` or `multi`.
    pub runtime: String,
    /// Whether it is Mimus.
    pub ours: bool,
}

impl Program {
    /// The arguments that every program gets, `verb` first.
    fn arguments(&self, verb: &str, command: &mut Command) {
        command.args(&self.executable.leading).arg(verb);
        command.args(["--config", &self.config, "--runtime", &self.runtime]);
        command.args(["--protocol", self.protocol.name()]);
        if let Some(ca) = &self.ca {
            command.arg("--ca").arg(ca);
        }
        // What proves that `compare` sees a slow-down must not slow the floor down, too.
        if !self.ours {
            command.env_remove("MIMUS_BENCH_SLOW");
        }
        for name in FOREIGN {
            command.env_remove(name);
        }
    }

    /// The command that makes `job` once and ends, behind `wrapper` (a counting program with its
    /// arguments; nothing runs it directly).
    pub fn once(&self, wrapper: &[&str], job: &Job) -> Result<Command> {
        let mut command = match wrapper.split_first() {
            Some((program, rest)) => {
                let mut command = Command::new(program);
                command.args(rest).arg(&self.executable.file);
                command
            }
            None => Command::new(&self.executable.file),
        };
        self.arguments("once", &mut command);
        command.arg("--job").arg(serde_json::to_string(job)?);
        Ok(command)
    }
}

/// A client that runs.
#[derive(Debug)]
pub struct Client {
    lines: Lines,
    /// What it says it is.
    pub hello: Hello,
}

impl Client {
    /// Starts `program`, held to `core`.
    pub fn start(program: &Program, core: Option<usize>) -> Result<Self> {
        let mut command = Command::new(&program.executable.file);
        program.arguments("serve", &mut command);
        let mut lines = Lines::start(&mut command, core)?;
        let hello = lines.receive(GREETING).and_then(|line| read(&line))?;
        Ok(Self { lines, hello })
    }

    /// Has it do `job`, for at most `limit`.
    pub fn run(&mut self, job: &Job, limit: Duration) -> Result<Answer> {
        self.lines.send(&serde_json::to_string(job)?)?;
        read(&self.lines.receive(limit)?)
    }
}

fn read<T: serde::de::DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(line).with_context(|| {
        let start: String = line.chars().take(80).collect();
        format!("it does not keep to the form: {start}")
    })
}

/// What a client run once says on stdout: its answer is the last line.
pub fn answer_of(stdout: &[u8]) -> Result<Answer> {
    let text = String::from_utf8_lossy(stdout);
    read(text.lines().rfind(|line| !line.trim().is_empty()).context("it answered nothing")?)
}
