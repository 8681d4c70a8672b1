//! -i and -D: the heads of all responses, interim ones and redirects too, as they come.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use mimus::{Hook, Observation};

use super::{HeadText, Output, to_stdout};
use crate::exit::Failure;

/// Where the heads of one transfer go. A hook cannot fail for our reasons, so what fails is kept.
#[derive(Debug, Clone)]
pub(crate) struct Heads {
    include: Option<Output>,
    dump: Option<Dump>,
    failure: Arc<Mutex<Option<Failure>>>,
}

/// The file of -D, which is one for all transfers.
#[derive(Debug, Clone)]
pub(crate) enum Dump {
    /// The standard output.
    Stdout,
    /// A file, and its name.
    File(Arc<File>, PathBuf),
}

impl Dump {
    /// Opens it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Dump::Stdout);
        }
        match File::create(path) {
            Ok(file) => Ok(Dump::File(Arc::new(file), path.to_owned())),
            Err(e) => Err(Failure::write(path.display(), &e)),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Dump::Stdout => to_stdout(bytes),
            Dump::File(file, path) => {
                file.as_ref().write_all(bytes).map_err(|e| Failure::write(path.display(), &e))
            }
        }
    }
}

impl Heads {
    /// Heads in front of the body in `include`, and into `dump`.
    pub(crate) fn new(include: Option<Output>, dump: Option<Dump>) -> Self {
        Heads { include, dump, failure: Arc::default() }
    }

    /// Whether they go anywhere.
    pub(crate) fn is_wanted(&self) -> bool {
        self.include.is_some() || self.dump.is_some()
    }

    /// What went wrong while writing them.
    pub(crate) fn result(&self) -> Result<(), Failure> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn write(&self, head: &HeadText) -> Result<(), Failure> {
        if let Some(output) = &self.include {
            output.head(head)?;
        }
        match &self.dump {
            Some(dump) => dump.write(&head.wire()),
            None => Ok(()),
        }
    }
}

impl Hook for Heads {
    fn observe(&self, happened: &Observation<'_>) {
        let (Observation::Head { head, .. } | Observation::Informational { head }) = happened
        else {
            return;
        };
        if let Err(failure) = self.write(&HeadText::of(head)) {
            let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(failure);
        }
    }
}
