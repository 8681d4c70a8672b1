//! A body to a file.

use std::{fs::File, io::Write, path::Path};

use mimus::Incoming;
use pyo3::prelude::*;

use super::{BaseResponse, Body};
use crate::wait::wait;

/// Why it was not saved whole.
enum Failure {
    /// The body, or what a signal's handler raised.
    Body(mimus::Error),
    /// The file, or what the progress callback raised.
    Python(PyErr),
}

/// Writes what is in memory or still to come.
pub(super) fn save(
    base: &BaseResponse,
    py: Python<'_>,
    path: &Path,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let file = File::create(path)?;
    let mut copy = Copy { file, done: 0, total: None, progress };
    if base.is_loaded(py) {
        let all = base.loaded_bytes(py)?;
        copy.total = Some(all.len() as u64);
        py.detach(|| copy.add(&all))?;
        return Ok(copy.done);
    }
    let incoming = base.take_body(py)?;
    copy.total = incoming.length();
    let saved = wait(py, copy.follow(incoming)).and_then(|(incoming, saved)| match saved {
        Ok(done) => {
            base.note_end(&incoming);
            Ok(done)
        }
        Err(Failure::Body(error)) => Err(base.raise(py, &error)),
        Err(Failure::Python(raised)) => Err(raised),
    });
    base.put_body(Body::Gone);
    saved
}

struct Copy {
    file: File,
    done: u64,
    total: Option<u64>,
    progress: Option<Py<PyAny>>,
}

impl Copy {
    async fn follow(
        mut self,
        mut incoming: Box<Incoming>,
    ) -> (Box<Incoming>, Result<u64, Failure>) {
        let saved = loop {
            match incoming.data().await {
                Ok(Some(data)) => match self.add(&data) {
                    Ok(()) => {}
                    Err(raised) => break Err(Failure::Python(raised)),
                },
                Ok(None) => break Ok(self.done),
                Err(error) => break Err(Failure::Body(error)),
            }
        };
        (incoming, saved)
    }

    fn add(&mut self, data: &[u8]) -> PyResult<()> {
        self.file.write_all(data)?;
        self.done += data.len() as u64;
        match &self.progress {
            Some(progress) => {
                Python::attach(|py| progress.call1(py, (self.done, self.total)).map(drop))
            }
            None => Ok(()),
        }
    }
}
