//! A process that we talk to in lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::pin;

/// How long a process may take to end by itself when its stdin closes.
const PARTING: Duration = Duration::from_secs(2);

/// A process with its stdin and the lines of its stdout. It is ended when dropped.
#[derive(Debug)]
pub struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<std::io::Result<String>>,
}

impl Lines {
    /// Starts `command`, held to `core`. Its stderr goes nowhere: some clients log there.
    pub fn start(command: &mut Command, core: Option<usize>) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pin::on_core(core, || {
            let program = command.get_program().to_owned();
            command.spawn().with_context(|| format!("cannot start {}", program.display()))
        })?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("a process without stdout")?;
        let (sender, lines) = channel();
        // A thread, because a pipe cannot be waited for with a limit otherwise. It ends with the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, lines })
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("its stdin is closed")?;
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .context("it does not listen any more")
    }

    /// Waits for a line, for at most `limit`.
    pub fn receive(&mut self, limit: Duration) -> Result<String> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => line.context("it does not write text"),
            Err(RecvTimeoutError::Timeout) => bail!("no answer within {} s", limit.as_secs()),
            Err(RecvTimeoutError::Disconnected) => match self.child.try_wait() {
                Ok(Some(status)) => bail!("it ended ({status})"),
                _ => bail!("it closed its stdout"),
            },
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.input.take());
        let step = Duration::from_millis(5);
        for _ in 0..PARTING.as_millis() / step.as_millis() {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(step),
                _ => return,
            }
        }
        // Only fails for a process that has ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_silence_has_a_limit() {
        let mut cat = Lines::start(&mut Command::new("cat"), None).expect("cat is there");
        cat.send("hello").expect("it listens");
        assert_eq!(cat.receive(Duration::from_secs(5)).expect("a line"), "hello");
        let silence = cat.receive(Duration::from_millis(10)).expect_err("nothing was said");
        assert!(silence.to_string().starts_with("no answer"), "{silence}");
    }

    #[test]
    fn an_end_is_told_from_silence() {
        let mut gone = Lines::start(&mut Command::new("true"), None).expect("true is there");
        let end = gone.receive(Duration::from_secs(5)).expect_err("it says nothing");
        assert!(!end.to_string().starts_with("no answer"), "{end}");
    }
}
