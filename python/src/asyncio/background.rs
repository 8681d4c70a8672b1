//! Calls for loops that cannot watch sockets: they run on a thread of their own, and the loop is told when they end.

use std::{
    io,
    sync::{Arc, Mutex},
    thread,
};

use tokio::{
    runtime::{Builder, Handle},
    task::AbortHandle,
};

use super::{
    hub::{Hub, lock},
    task::{Task, Work},
};
use crate::forks;

/// The runtime of the thread, and the generation of its process: a fork has no threads but the one that forked.
static THREAD: Mutex<Option<(u64, Handle)>> = Mutex::new(None);

tokio::task_local! {
    static HUB: Arc<Hub>;
}

/// The hub for whose loop the task at hand works.
pub(super) fn hub() -> Option<Arc<Hub>> {
    HUB.try_with(Clone::clone).ok()
}

fn handle() -> io::Result<Handle> {
    let thread = &mut *lock(&THREAD);
    let generation = forks::generation();
    if let Some((_, handle)) = thread.as_ref().filter(|(own, _)| *own == generation) {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("mimus-io".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *thread = Some((generation, handle.clone()));
    Ok(handle)
}

/// Drives `work` on the thread.
pub(super) fn spawn(hub: &Arc<Hub>, work: Work) -> io::Result<Arc<Task>> {
    let handle = handle()?;
    let task = Task::elsewhere(hub);
    let itself = task.clone();
    let under_way = HUB.scope(hub.clone(), async move { itself.ended_elsewhere(work.await) });
    let under_way = handle.spawn(under_way);
    task.may_be_aborted(Abort(under_way.abort_handle()));
    Ok(task)
}

/// Ends the work when it is dropped.
pub(super) struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
