//! Where processes run.

use anyhow::{Context, Result};
use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Which cores server and clients are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// All on core 0: what the CPU path costs, without the wake-up of another core.
    Core0,
    /// The server on core 1, clients on core 0: what a user of an idle machine sees.
    Split,
    /// Wherever the system puts them.
    None,
}

impl Pin {
    /// The core of the server.
    pub fn server(self) -> Option<usize> {
        match self {
            Self::Core0 => Some(0),
            Self::Split => Some(1),
            Self::None => None,
        }
    }

    /// The core of every client.
    pub fn client(self) -> Option<usize> {
        match self {
            Self::Core0 | Self::Split => Some(0),
            Self::None => None,
        }
    }
}

/// Does `what` with this thread held to `core`. A process started meanwhile is held to it from its first
/// instruction on, with every thread that it will make.
pub fn on_core<T>(core: Option<usize>, what: impl FnOnce() -> Result<T>) -> Result<T> {
    let Some(core) = core else { return what() };
    let before = sched_getaffinity(None).context("cannot read the affinity")?;
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).with_context(|| format!("cannot be held to core {core}"))?;
    let done = what();
    sched_setaffinity(None, &before).context("cannot restore the affinity")?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_started_on_a_core_stays_there_and_we_do_not() {
        let before = sched_getaffinity(None).expect("affinity");
        let status = on_core(Some(0), || Ok(std::fs::read_to_string("/proc/thread-self/status")?))
            .expect("core 0 is there");
        let list =
            status.lines().find(|line| line.starts_with("Cpus_allowed_list")).expect("a list");
        assert_eq!(list.split_whitespace().nth(1), Some("0"));
        assert_eq!(sched_getaffinity(None).expect("affinity"), before);
    }
}
