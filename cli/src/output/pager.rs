//! Long text in pages, by the program that the user likes.

use std::{
    env,
    io::Write,
    process::{Command, Stdio},
};

use super::screen::Paging;
use crate::interrupt;

/// Whether this text goes through a pager.
pub(super) fn wants(paging: Paging, text: &[u8]) -> bool {
    match paging {
        Paging::Never => false,
        Paging::Always => true,
        Paging::WhenLong => {
            let size = terminal_size::terminal_size();
            size.is_some_and(|(width, height)| lines(text, width.0.into()) >= height.0.into())
        }
    }
}

/// Shows the text; `false` when there is no pager.
pub(super) fn show(text: &[u8]) -> bool {
    let program = env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = program.split_whitespace();
    let Some(name) = words.next() else { return false };
    let mut command = Command::new(name);
    command.args(words).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        // Leave when it fits the screen, keep the colours, keep the text on the screen.
        command.env("LESS", "FRX");
    }
    // The pager minds Ctrl-C itself, and we wait for it.
    let _ignored = interrupt::ignored();
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // A person who has seen enough leaves in the middle.
        let _ = stdin.write_all(text);
    }
    child.wait().is_ok()
}

/// The lines that the text takes on a screen of this width.
fn lines(text: &[u8], width: usize) -> usize {
    text.split(|&b| b == b'\n').map(|line| line.len().div_ceil(width.max(1)).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_count_for_as_many_as_they_take() {
        assert_eq!(lines(b"", 80), 1);
        assert_eq!(lines(b"a\nb\n", 80), 3);
        assert_eq!(lines(&[b'x'; 161], 80), 3);
        assert_eq!(lines(b"abc", 0), 3);
    }
}
