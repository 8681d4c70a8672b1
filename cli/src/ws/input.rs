//! Lines that become messages: typed with line editing, or piped.

use std::{
    io::{self, BufRead as _, Write as _},
    sync::Arc,
};

use bytes::Bytes;
use mimus::{Kind, ws::Message};
use rustyline::{Config, Editor, ExternalPrinter, error::ReadlineError, history::MemHistory};

use super::Talk;
use crate::{
    exit::{Exit, Failure},
    flags::ws::SocketFlags,
    interrupt,
};

/// Writes above the line that is being typed.
pub(super) type Printer = Box<dyn ExternalPrinter + Send>;

/// Where lines come from.
enum Lines {
    Typed(Box<Editor<(), MemHistory>>),
    Piped,
}

/// What a line stands for.
#[derive(Clone, Copy)]
enum As {
    Text,
    Binary,
    Hex,
}

/// What happens when there are no more lines.
#[derive(Clone, Copy)]
enum AtEnd {
    Close,
    Leave,
    Stay,
}

/// What is to be sent.
pub(super) struct Input {
    lines: Lines,
    kind: As,
    at_end: AtEnd,
    one: bool,
}

impl Input {
    /// The standard input; with what writes above it when somebody types there.
    pub(super) fn open(
        interactive: bool,
        flags: &SocketFlags,
    ) -> Result<(Self, Option<Printer>), Failure> {
        let (lines, printer) = match interactive {
            true => {
                let (editor, printer) = typed().map_err(|e| broken(&e))?;
                (Lines::Typed(Box::new(editor)), Some(printer))
            }
            false => (Lines::Piped, None),
        };
        let kind = match (flags.binary, flags.hex) {
            (true, _) => As::Binary,
            (_, true) => As::Hex,
            _ => As::Text,
        };
        let at_end = match (flags.exit_on_eof, flags.no_close || flags.one_message) {
            (true, _) => AtEnd::Leave,
            (_, true) => AtEnd::Stay,
            _ => AtEnd::Close,
        };
        Ok((Input { lines, kind, at_end, one: flags.one_message }, printer))
    }

    /// Sends line by line, to the end.
    pub(super) fn feed(&mut self, talk: &Arc<Talk>) {
        let ended = self.send_all(talk);
        match (ended, self.at_end) {
            (Err(failure), _) => {
                talk.fail(failure);
                talk.close();
            }
            (Ok(()), AtEnd::Close) => talk.close(),
            (Ok(()), AtEnd::Leave) => {
                talk.close();
                // What was shown is written: nothing is kept back.
                let _ = io::stdout().flush();
                std::process::exit(Exit::Ok as i32);
            }
            (Ok(()), AtEnd::Stay) => {}
        }
    }

    fn send_all(&mut self, talk: &Talk) -> Result<(), Failure> {
        let mut number = 0;
        while let Some(line) = self.lines.next()? {
            number += 1;
            let message = self
                .kind
                .message(line)
                .map_err(|why| Failure::new(Exit::Usage, format!("line {number} {why}")))?;
            match talk.send(message) {
                Ok(()) => {}
                // The receiving side tells why, and better.
                Err(error) if error.kind() == Kind::Closed => return Ok(()),
                Err(error) => return Err(Failure::of(&error, false)),
            }
            if self.one {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn typed() -> rustyline::Result<(Editor<(), MemHistory>, Printer)> {
    let config = Config::builder().auto_add_history(true).build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    let printer = editor.create_external_printer()?;
    Ok((editor, Box::new(printer)))
}

fn broken(error: &ReadlineError) -> Failure {
    Failure::new(Exit::Read, format!("the terminal cannot be read: {error}"))
}

impl Lines {
    /// The next line, without its end; `None` at the end.
    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Lines::Typed(editor) => match editor.readline("> ") {
                Ok(line) => Ok(Some(line.into_bytes())),
                Err(ReadlineError::Eof) => Ok(None),
                Err(ReadlineError::Interrupted) => {
                    // The terminal has made a key of it.
                    interrupt::happened();
                    Ok(None)
                }
                Err(error) => Err(broken(&error)),
            },
            Lines::Piped => {
                let mut line = Vec::new();
                let read = io::stdin().lock().read_until(b'\n', &mut line);
                let read = read.map_err(|e| Failure::read("the standard input", &e))?;
                if line.last() == Some(&b'\n') {
                    line.pop();
                    line.pop_if(|last| *last == b'\r');
                }
                Ok((read > 0).then_some(line))
            }
        }
    }
}

impl As {
    /// The message that a line stands for, or what is wrong with it.
    fn message(self, line: Vec<u8>) -> Result<Message, &'static str> {
        Ok(match self {
            As::Text => {
                let text = String::from_utf8(line);
                let text = text.map_err(|_| "is not UTF-8: send it with --binary")?;
                Message::Text(text.into())
            }
            As::Binary => Message::Binary(line.into()),
            As::Hex => Message::Binary(unhex(&line).ok_or("is not in hex")?),
        })
    }
}

/// Bytes in hex, with spaces where one likes.
fn unhex(line: &[u8]) -> Option<Bytes> {
    let digits: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match *pair {
        [high, low] => Some((value(high)? * 16 + value(low)?) as u8),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_in_pairs() {
        assert_eq!(unhex(b"00 ff 0aB1").as_deref(), Some(&[0, 255, 10, 177][..]));
        assert_eq!(unhex(b"").as_deref(), Some(&[][..]));
        for wrong in [&b"0"[..], b"0g", b"0x00"] {
            assert_eq!(unhex(wrong), None);
        }
    }

    #[test]
    fn a_line_is_a_message_of_its_kind() {
        let text = As::Text.message("grün".into()).unwrap();
        assert_eq!(text, Message::Text("grün".into()));
        assert!(As::Text.message(vec![0xff]).is_err());
        assert_eq!(As::Binary.message(vec![0xff]).unwrap(), Message::Binary(vec![0xff].into()));
        assert!(As::Hex.message(b"zz".into()).is_err());
    }
}
