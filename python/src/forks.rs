//! Connections belong to the process that opened them. A child that was forked shares their descriptors, and what it
//! read or wrote there would be lost or garbled for its parent; so it starts over, with a pool of its own.

use std::{
    borrow::Cow,
    mem,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use mimus::Client;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyDict};

/// How many forks lie between this process and the one that loaded the module.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The generation of this process.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

#[pyfunction]
fn count_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Has Python tell of forks from now on.
fn watch(py: Python<'_>) -> PyResult<()> {
    static WATCHED: PyOnceLock<()> = PyOnceLock::new();
    WATCHED
        .get_or_try_init(py, || {
            let options = PyDict::new(py);
            options.set_item("after_in_child", pyo3::wrap_pyfunction!(count_fork, py)?)?;
            py.import("os")?.getattr("register_at_fork")?.call((), Some(&options))?;
            Ok(())
        })
        .copied()
}

/// A client of the core, and in a forked child one like it.
#[derive(Debug)]
pub(crate) struct OwnClient {
    client: Client,
    generation: u64,
    /// In a child: its own, and the generation of that. A parent never locks this, so no child finds it locked.
    renewed: Mutex<Option<(u64, Client)>>,
}

impl OwnClient {
    /// # Errors
    /// Python cannot tell of forks.
    pub(crate) fn new(py: Python<'_>, client: Client) -> PyResult<Self> {
        watch(py)?;
        Ok(OwnClient { client, generation: generation(), renewed: Mutex::new(None) })
    }

    /// The client of this process.
    pub(crate) fn get(&self) -> Cow<'_, Client> {
        let now = generation();
        if now == self.generation {
            return Cow::Borrowed(&self.client);
        }
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*renewed {
            Some((generation, client)) if *generation == now => Cow::Owned(client.clone()),
            _ => {
                let client = self.client.with_new_pool();
                if let Some((_, parents)) = renewed.replace((now, client.clone())) {
                    mem::forget(parents);
                }
                Cow::Owned(client)
            }
        }
    }
}

impl Drop for OwnClient {
    fn drop(&mut self) {
        // To close the parent's connections is the parent's business: a goodbye from here would end them.
        if generation() != self.generation {
            mem::forget(self.client.clone());
        }
    }
}
