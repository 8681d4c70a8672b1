//! Where and when it was measured.

use std::fs;
use std::process::Command;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// A description of the machine and of the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that can be used.
    pub cores: usize,
    /// What governs the cores' frequency, where that can be seen.
    pub governor: String,
    /// Whether it is a guest of a hypervisor.
    pub guest: bool,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The compiler.
    pub rustc: String,
    /// The commit that was built, with `-dirty` if files had changed.
    pub commit: String,
    /// When the run began: RFC 3339, UTC.
    pub date: String,
    /// Load averages when the run began.
    pub load: String,
}

impl Machine {
    /// Looks around. What cannot be seen is `unknown`.
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let of_cpu = |key: &str| {
            cpuinfo
                .lines()
                .find(|line| line.starts_with(key))
                .and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
        };
        Self {
            cpu: of_cpu("model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            governor: first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            guest: of_cpu("flags").is_some_and(|flags| flags.contains(" hypervisor")),
            memory: memory().unwrap_or(0),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            rustc: output("rustc", &["--version"]),
            commit: output(
                "git",
                &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            ),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            load: first_line("/proc/loadavg"),
        }
    }

    /// It in a line.
    pub fn line(&self) -> String {
        format!(
            "{}, {} cores{}, {:.0} GiB, Linux {}, {}",
            self.cpu,
            self.cores,
            if self.guest { " (virtual)" } else { "" },
            self.memory as f64 / f64::from(1 << 30),
            self.kernel,
            self.rustc.split(" (").next().unwrap_or_default(),
        )
    }
}

fn unknown() -> String {
    "unknown".into()
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_else(unknown)
}

fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = text.lines().next()?.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn output(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_else(unknown)
}
