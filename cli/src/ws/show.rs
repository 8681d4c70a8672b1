//! Messages as they are shown.

use std::{fmt::Write as _, time::Instant};

use mimus::ws::Message;

use super::input::Printer;
use crate::{
    exit::Failure,
    flags::ws::SocketFlags,
    output::{harmless, tell, to_stdout},
};

/// Where messages are shown, and how.
pub(super) struct Screen {
    /// Writes above the line that is being typed.
    printer: Option<Printer>,
    /// How the terminal was before anybody typed.
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
    for_terminal: bool,
    hex: bool,
    verbose: bool,
    /// When the socket was opened, if that counts.
    opened: Option<Instant>,
}

impl Screen {
    pub(super) fn new(printer: Option<Printer>, flags: &SocketFlags, for_terminal: bool) -> Self {
        Screen {
            #[cfg(unix)]
            before: printer
                .as_ref()
                .and_then(|_| rustix::termios::tcgetattr(std::io::stdin()).ok()),
            printer,
            for_terminal,
            hex: flags.hex,
            verbose: flags.verbose,
            opened: flags.timing.then(Instant::now),
        }
    }

    pub(super) fn show(&mut self, message: &Message) -> Result<(), Failure> {
        let bytes = match message {
            Message::Text(text) => self.text(text),
            Message::Binary(bytes) => self.binary(bytes),
            Message::Ping(payload) => return self.note("ping", payload),
            Message::Pong(payload) => return self.note("pong", payload),
            // It is told of at the end.
            Message::Close(_) => return Ok(()),
        };
        self.write(bytes)
    }

    fn write(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        let Some(printer) = &mut self.printer else { return to_stdout(&bytes) };
        // On a terminal all of it is text.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        printer
            .print(text)
            .map_err(|e| Failure::new(crate::exit::Exit::Write, format!("the terminal: {e}")))
    }

    /// On a terminal, what controls one is shown and not obeyed.
    fn text(&self, text: &str) -> Vec<u8> {
        let mut line = self.when();
        match self.for_terminal {
            true => {
                let lines: Vec<_> =
                    text.split('\n').map(|line| harmless(line.as_bytes())).collect();
                line.push_str(&lines.join("\n"));
            }
            false => line.push_str(text),
        }
        line.push('\n');
        line.into_bytes()
    }

    /// In hex, or for others than people as they are.
    fn binary(&self, bytes: &[u8]) -> Vec<u8> {
        if !self.hex && !self.for_terminal {
            return bytes.to_vec();
        }
        let mut line = self.when();
        for byte in bytes {
            // Writing to a String cannot fail.
            let _ = write!(line, "{byte:02x}");
        }
        line.push('\n');
        line.into_bytes()
    }

    fn when(&self) -> String {
        match self.opened {
            Some(opened) => format!("{:.3} ", opened.elapsed().as_secs_f64()),
            None => String::new(),
        }
    }

    fn note(&mut self, what: &str, payload: &[u8]) -> Result<(), Failure> {
        if !self.verbose {
            return Ok(());
        }
        let line = format!("* {what} {}", harmless(payload));
        match self.printer {
            Some(_) => self.write((line + "\n").into_bytes()),
            None => {
                tell(&line);
                Ok(())
            }
        }
    }

    /// Leaves the terminal as it was: somebody may be in the middle of a line.
    pub(super) fn leave(&mut self) {
        #[cfg(unix)]
        if let Some(before) = self.before.take() {
            let now = rustix::termios::OptionalActions::Now;
            // Fails where the terminal is gone, and with it the need.
            let _ = rustix::termios::tcsetattr(std::io::stdin(), now, &before);
            tell("");
        }
    }
}
