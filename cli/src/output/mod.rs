//! Everything that is written: bodies and heads to where they belong, and what is told about them.

mod file;
pub(crate) mod har;
mod heads;
mod pager;
pub(crate) mod pretty;
pub(crate) mod progress;
mod screen;
mod verbose;
mod write_out;

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub(crate) use self::{
    file::FileSink,
    heads::{Dump, Heads},
    screen::{Look, Paging, Screen},
    verbose::{Verbose, is_secret, millis, without_secret, without_userinfo},
    write_out::{Format, Stream, Summary, Times, variable_names},
};
use mimus::ResponseHead;

use crate::{
    exit::Failure,
    observe::{reason, version_name},
};

/// Where the response of one transfer goes. Clones share it: one is with the hook that writes the
/// heads, one with the loop that writes the body.
#[derive(Debug, Clone)]
pub(crate) struct Output(Arc<Mutex<Sink>>);

/// The kinds of places.
#[derive(Debug)]
pub(crate) enum Sink {
    /// The standard output, byte for byte.
    Stdout,
    /// A person: a terminal, or what was asked to look like one.
    Screen(Screen),
    /// A file.
    File(FileSink),
}

impl Output {
    /// An output to this place.
    pub(crate) fn new(sink: Sink) -> Self {
        Output(Arc::new(Mutex::new(sink)))
    }

    fn lock(&self) -> MutexGuard<'_, Sink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One head: its start line and its fields.
    pub(crate) fn head(&self, head: &HeadText) -> Result<(), Failure> {
        match &mut *self.lock() {
            Sink::Stdout => to_stdout(&head.wire()),
            Sink::Screen(screen) => screen.head(head),
            Sink::File(file) => file.write(&head.wire()),
        }
    }

    /// The head of the response whose body follows.
    pub(crate) fn begin(&self, fields: &mimus::Fields, length: Option<u64>) {
        if let Sink::Screen(screen) = &mut *self.lock() {
            screen.begin(fields.get_str("content-type"), length);
        }
    }

    /// One piece of the body.
    pub(crate) fn body(&self, piece: &[u8]) -> Result<(), Failure> {
        match &mut *self.lock() {
            Sink::Stdout => to_stdout(piece),
            Sink::Screen(screen) => screen.body(piece),
            Sink::File(file) => file.write(piece),
        }
    }

    /// The transfer failed: what waits is shown, and nothing else is done.
    pub(crate) fn abandon(&self) {
        if let Sink::Screen(screen) = &mut *self.lock() {
            // There is a better reason to fail already.
            let _ = screen.finish();
        }
    }

    /// The end of a body that came whole.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match &mut *self.lock() {
            Sink::Stdout => Ok(()),
            Sink::Screen(screen) => screen.finish(),
            Sink::File(file) => file.finish(),
        }
    }

    /// Makes what follows go behind what the file holds, and says how much that is. `None` when it is
    /// no file.
    pub(crate) fn resume(&self) -> Result<Option<u64>, Failure> {
        match &mut *self.lock() {
            Sink::File(file) => {
                let size = file.size()?;
                file.resume_at(size)?;
                Ok(Some(size))
            }
            Sink::Stdout | Sink::Screen(_) => Ok(None),
        }
    }

    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match &*self.lock() {
            Sink::File(file) => Some(file.path().to_owned()),
            Sink::Stdout | Sink::Screen(_) => None,
        }
    }
}

/// A head, to be written somewhere.
#[derive(Debug, Clone)]
pub(crate) struct HeadText {
    pub(crate) start_line: String,
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
}

impl HeadText {
    /// A response's head.
    pub(crate) fn of(head: &ResponseHead) -> Self {
        let version = version_name(head.version);
        let reason = String::from_utf8_lossy(reason(head));
        HeadText {
            start_line: format!("{version} {} {reason}", head.status.as_u16()),
            status: head.status.as_u16(),
            fields: head.fields.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        }
    }

    /// As it was on the wire (RFC 9112 section 2.1).
    fn wire(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.start_line).into_bytes();
        for (name, value) in &self.fields {
            for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
                bytes.extend_from_slice(piece);
            }
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

/// Text from a peer, fit for a terminal: what controls one is shown and not obeyed.
pub(crate) fn harmless(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.contains(|c: char| c.is_control() && c != '\t') {
        false => text.into_owned(),
        true => text.escape_debug().collect(),
    }
}

/// Writes to the standard output at once.
pub(crate) fn to_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(|e| Failure::write("the standard output", &e))
}

/// Writes to the standard error.
pub(crate) fn to_stderr(bytes: &[u8]) -> Result<(), Failure> {
    let written = io::stderr().lock().write_all(bytes);
    written.map_err(|e| Failure::write("the standard error", &e))
}

/// Tells something on the standard error. When nobody listens there is nobody to tell.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a file that may hold secrets, and so is its owner's alone when it is new; or the standard
/// output for `-`.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return to_stdout(bytes);
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|e| Failure::write(path.display(), &e))
}

/// Whether colours are welcome on a stream that is a terminal or is not (see no-color.org).
pub(crate) fn colours_welcome(when: crate::flags::ColorWhen, is_terminal: bool) -> bool {
    use crate::flags::ColorWhen;
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => {
            is_terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
        }
    }
}

/// Whether the standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether the standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}
