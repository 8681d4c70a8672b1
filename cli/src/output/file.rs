//! A body into a file, in place, so that what a broken download left can be gone on with.

use std::{
    fs::{self, File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::exit::{Exit, Failure};

/// A file that is opened when there is something to write: a transfer that fails before that leaves
/// an older file as it was.
#[derive(Debug)]
pub(crate) struct FileSink {
    path: PathBuf,
    create_dirs: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was written; the first byte goes to this offset.
    Untouched {
        offset: u64,
    },
    Open(File),
}

impl FileSink {
    /// A file at `path`, with the directories that it needs if `create_dirs`.
    pub(crate) fn new(path: PathBuf, create_dirs: bool) -> Self {
        FileSink { path, create_dirs, state: State::Untouched { offset: 0 } }
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes it holds now; 0 when it is not there.
    pub(crate) fn size(&self) -> Result<u64, Failure> {
        match fs::metadata(&self.path) {
            Ok(meta) => Ok(meta.len()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(Failure::read(self.path.display(), &e)),
        }
    }

    /// Makes the first byte go to this offset; what the file holds before it stays.
    pub(crate) fn resume_at(&mut self, offset: u64) -> Result<(), Failure> {
        let size = self.size()?;
        if offset > size {
            let path = self.path.display();
            let what = format!("{path} holds only {size} bytes, and cannot go on at {offset}");
            return Err(Failure::new(Exit::Range, what));
        }
        self.state = State::Untouched { offset };
        Ok(())
    }

    /// Writes at once: nothing is lost when the process is interrupted.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match self.open() {
            Ok(file) => file.write_all(bytes),
            Err(e) => Err(e),
        };
        written.map_err(|e| Failure::write(self.path.display(), &e))
    }

    /// The end: an empty body is an empty file.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match self.state {
            State::Untouched { offset: 0 } => self.write(&[]),
            State::Untouched { .. } | State::Open(_) => Ok(()),
        }
    }

    fn open(&mut self) -> std::io::Result<&mut File> {
        if let State::Untouched { offset } = self.state {
            if let Some(parent) = self.path.parent().filter(|_| self.create_dirs) {
                fs::create_dir_all(parent)?;
            }
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(offset == 0).open(&self.path)?;
            if offset > 0 {
                file.set_len(offset)?;
                file.seek(SeekFrom::Start(offset))?;
            }
            self.state = State::Open(file);
        }
        match &mut self.state {
            State::Open(file) => Ok(file),
            State::Untouched { .. } => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("mimus-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn an_older_file_stays_until_there_is_something_to_write() {
        let path = scratch("older").join("f");
        fs::write(&path, "older").unwrap();
        let mut sink = FileSink::new(path.clone(), false);
        assert_eq!(fs::read(&path).unwrap(), b"older");
        sink.write(b"new").unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        FileSink::new(path.clone(), false).finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_download_goes_on_where_it_was_told_to() {
        let path = scratch("resume").join("f");
        fs::write(&path, "0123456789").unwrap();
        let mut sink = FileSink::new(path.clone(), false);
        sink.resume_at(4).unwrap();
        sink.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"0123456789", "nothing came, nothing is lost");
        sink.write(b"abc").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"0123abc");
        assert_eq!(sink.resume_at(99).unwrap_err().exit, Exit::Range);
    }

    #[test]
    fn directories_are_made_only_when_asked() {
        let path = scratch("dirs").join("a/b/f");
        let failure = FileSink::new(path.clone(), false).write(b"x").unwrap_err();
        assert_eq!(failure.exit, Exit::Write);
        FileSink::new(path.clone(), true).write(b"x").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
        fs::remove_dir_all(scratch("dirs")).unwrap();
    }
}
