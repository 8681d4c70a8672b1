//! Runs the program.

use std::{
    ffi::OsStr,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The run went well and said nothing but its output.
    #[track_caller]
    pub(crate) fn ok(self) -> Run {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.stderr, "", "{self:?}");
        self
    }

    /// The run ended with this code and one line about why.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.starts_with(&format!("mimus: ({code}) ")), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        self
    }
}

/// The program, in an environment that says nothing about proxies, colours and homes.
pub(crate) fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mimus"));
    command.args(args).env_clear().env("HOME", "/nonexistent").stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Runs it to its end.
pub(crate) fn mimus<S: AsRef<OsStr>>(args: &[S]) -> Run {
    run(&mut command(args))
}

/// Runs it in a directory.
pub(crate) fn mimus_in<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> Run {
    run(command(args).current_dir(dir))
}

/// Runs it with something on its standard input.
pub(crate) fn mimus_fed<S: AsRef<OsStr>>(input: &[u8], args: &[S]) -> Run {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    ended(child.wait_with_output().unwrap())
}

pub(crate) fn run(command: &mut Command) -> Run {
    ended(command.output().unwrap())
}

pub(crate) fn ended(output: Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The values of a field in the origin's echo, in order.
pub(crate) fn echoed<'a>(echo: &'a Value, name: &str) -> Vec<&'a str> {
    let pairs = echo["headers"].as_array().unwrap();
    pairs
        .iter()
        .filter(|pair| pair[0].as_str().unwrap().eq_ignore_ascii_case(name))
        .map(|pair| pair[1].as_str().unwrap())
        .collect()
}
