//! Building what is measured.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::client::Executable;
use crate::progress::Progress;
use crate::python::Environment;
use crate::suite::Client;

/// Where things are.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

/// How a package stands to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// A member: it shares the workspace's lock file and profile.
    Workspace,
    /// A package of its own, with its own lock file.
    Alone,
}

impl Layout {
    /// Finds the repository above the working directory.
    pub fn find() -> Result<Self> {
        let here = std::env::current_dir().context("there is no working directory")?;
        let root = here
            .ancestors()
            .find(|directory| directory.join("bench/suites").is_dir())
            .context("not inside of the repository: no bench/suites above the working directory")?;
        Ok(Self { root: root.to_owned() })
    }

    /// The suite file called `name`.
    pub fn suite(&self, name: &str) -> PathBuf {
        self.root.join("bench/suites").join(format!("{name}.toml"))
    }

    /// The checked-in budgets.
    pub fn budgets(&self) -> PathBuf {
        self.root.join("bench/budgets.toml")
    }

    /// Where runs are left if nothing else is said.
    pub fn out(&self, name: &str, date: &str) -> PathBuf {
        let date: String = date.chars().filter(|c| *c != ':').collect();
        self.root.join("bench/out").join(format!("{name}-{date}"))
    }

    /// Where `package` (below `bench/`) leaves its binaries.
    fn target(&self, home: Home) -> PathBuf {
        match home {
            Home::Alone => self.root.join("bench/target"),
            Home::Workspace => std::env::var_os("CARGO_TARGET_DIR")
                .map_or_else(|| self.root.join("target"), |target| self.root.join(target)),
        }
    }

    /// Builds `client`: a Cargo package, or a virtual environment.
    pub fn client(&self, client: &Client, progress: &Progress) -> Result<Executable> {
        match Environment::find(&self.root, &client.package) {
            Some(environment) => environment.provide(&client.binary, progress),
            None => {
                let file = self.build(&client.package, &client.binary, progress)?;
                Ok(Executable { file, leading: Vec::new() })
            }
        }
    }

    /// Builds `package` and gives the path of what it makes, `file`, in the release directory.
    pub fn build(&self, package: &str, file: &str, progress: &Progress) -> Result<PathBuf> {
        let directory = self.root.join("bench").join(package);
        let manifest = directory.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("bench/{package} has no manifest"))?;
        let home = if text.lines().any(|line| line.trim() == "[workspace]") {
            Home::Alone
        } else {
            Home::Workspace
        };
        let target = self.target(home);
        watch(&mut self.cargo(&directory, &manifest, &target, home), progress)?;
        let made = target.join("release").join(file);
        if !made.is_file() {
            bail!("bench/{package} builds no {file}");
        }
        Ok(made)
    }

    fn cargo(&self, directory: &Path, manifest: &Path, target: &Path, home: Home) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--release", "--locked", "--color", "never", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(target)
            // What `cargo run` sets for this process is not meant for the ones below.
            .env_remove("CARGO_MANIFEST_DIR")
            .current_dir(directory);
        if home == Home::Alone {
            // The profile of the workspace, whose file these packages do not see. A BoringSSL built for
            // Mimus is not the one that they were written for.
            cargo
                .env("CARGO_PROFILE_RELEASE_LTO", "thin")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
                .env_remove("BORING_BSSL_PATH");
        }
        cargo
    }
}

/// Runs what builds, showing its last line; its first complaint is the error.
pub fn watch(builder: &mut Command, progress: &Progress) -> Result<()> {
    let program = builder.get_program().display().to_string();
    let mut child = builder
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    let stderr = child.stderr.take().context("a process without stderr")?;
    let mut complaint = None;
    for line in BufReader::new(stderr).lines() {
        let line = line?;
        let text = line.trim_start();
        if complaint.is_none() && (text.starts_with("error") || text.starts_with("ERROR")) {
            complaint = Some(text.to_owned());
        } else {
            progress.detail(line.trim());
        }
    }
    if child.wait()?.success() {
        return Ok(());
    }
    bail!(complaint.unwrap_or_else(|| format!("{program} failed without saying why")))
}
