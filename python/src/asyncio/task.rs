//! Futures that are polled in the turns of a hub.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Wake, Waker},
};

use mimus_net::BoxFuture;
use pyo3::{intern, prelude::*};

use super::{
    background::Abort,
    hub::{Hub, Order, lock},
};
use crate::response::BaseResponse;

/// What is awaited in Python: it ends with what `await` gives.
pub(crate) type Work = Pin<Box<dyn Future<Output = PyResult<Py<PyAny>>> + Send>>;

enum Job {
    Awaited(Work),
    Background(BoxFuture<'static, ()>),
}

enum State {
    Idle {
        job: Job,
        queued: bool,
    },
    Running {
        woken: bool,
    },
    /// On the thread for loops that cannot watch sockets.
    Elsewhere(Option<Abort>),
    Done(PyResult<Py<PyAny>>),
    /// Taken, or given up.
    Gone,
}

/// A future, what came of it, and the future of the loop's by which Python waits for it.
pub(super) struct Task {
    hub: Arc<Hub>,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    waiter: Option<Py<PyAny>>,
}

/// How an awaitable stands.
pub(super) enum Stand {
    Done(PyResult<Py<PyAny>>),
    /// `waiter` is resolved when there is news.
    Waits,
    /// Somebody waits already.
    Awaited,
    Gone,
}

impl Task {
    fn new(hub: &Arc<Hub>, state: State) -> Arc<Self> {
        let inner = Mutex::new(Inner { state, waiter: None });
        Arc::new(Task { hub: hub.clone(), inner })
    }

    /// For who awaits it.
    pub(super) fn awaited(hub: &Arc<Hub>, work: Work) -> Arc<Self> {
        Task::new(hub, State::Idle { job: Job::Awaited(work), queued: false })
    }

    /// For nobody. It is in the hub's queue from the start.
    pub(super) fn background(hub: &Arc<Hub>, future: BoxFuture<'static, ()>) -> Arc<Self> {
        Task::new(hub, State::Idle { job: Job::Background(future), queued: true })
    }

    /// For who awaits it, while another thread polls it.
    pub(super) fn elsewhere(hub: &Arc<Hub>) -> Arc<Self> {
        Task::new(hub, State::Elsewhere(None))
    }

    /// How to end what runs elsewhere, unless it has ended.
    pub(super) fn may_be_aborted(&self, abort: Abort) {
        if let State::Elsewhere(place) = &mut lock(&self.inner).state {
            *place = Some(abort);
        }
    }

    /// What ran elsewhere has come to its end.
    pub(super) fn ended_elsewhere(&self, output: PyResult<Py<PyAny>>) {
        if let Some(waiter) = self.finish(output) {
            self.hub.order(Order::Resolve(waiter));
        }
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Polls it, if it waits to be.
    pub(super) fn run(self: &Arc<Self>, py: Python<'_>) {
        let mut job = {
            let inner = &mut *lock(&self.inner);
            match mem::replace(&mut inner.state, State::Running { woken: false }) {
                State::Idle { job, .. } => job,
                other => {
                    inner.state = other;
                    return;
                }
            }
        };
        let waker = Waker::from(self.clone());
        let mut cx = Context::from_waker(&waker);
        let output = match &mut job {
            Job::Awaited(work) => work.as_mut().poll(&mut cx),
            Job::Background(future) => future.as_mut().poll(&mut cx).map(|()| Ok(py.None())),
        };
        match output {
            Poll::Pending => self.paused(job),
            Poll::Ready(output) => {
                let is_awaited = matches!(job, Job::Awaited(_));
                drop(job);
                if is_awaited {
                    self.ended(py, output);
                } else {
                    lock(&self.inner).state = State::Gone;
                    self.hub.ended(self);
                }
            }
        }
    }

    fn paused(self: &Arc<Self>, job: Job) {
        let (given_up, woken) = {
            let inner = &mut *lock(&self.inner);
            match inner.state {
                State::Running { woken } => {
                    inner.state = State::Idle { job, queued: woken };
                    (None, woken)
                }
                _ => (Some(job), false),
            }
        };
        drop(given_up);
        if woken {
            // It could go on, and lets others go first.
            self.hub.run_later(self.clone());
        }
    }

    fn ended(&self, py: Python<'_>, output: PyResult<Py<PyAny>>) {
        if let Some(waiter) = self.finish(output) {
            resolve(waiter.bind(py));
        }
    }

    /// Keeps what came of it, if anybody still wants it. Whoever is to be told.
    fn finish(&self, output: PyResult<Py<PyAny>>) -> Option<Py<PyAny>> {
        let (waiter, left) = {
            let inner = &mut *lock(&self.inner);
            match mem::replace(&mut inner.state, State::Gone) {
                State::Gone => (None, (None, Some(output))),
                was => {
                    inner.state = State::Done(output);
                    (inner.waiter.take(), (Some(was), None))
                }
            }
        };
        drop(left);
        waiter
    }

    /// What came of it. If nothing did yet, and `waiter` is given, that is resolved when there is news.
    pub(super) fn look(&self, waiter: Option<&Bound<'_, PyAny>>) -> Stand {
        let inner = &mut *lock(&self.inner);
        match mem::replace(&mut inner.state, State::Gone) {
            State::Done(output) => return Stand::Done(output),
            State::Gone => return Stand::Gone,
            going => inner.state = going,
        }
        if inner.waiter.is_some() {
            return Stand::Awaited;
        }
        inner.waiter = waiter.map(|waiter| waiter.clone().unbind());
        Stand::Waits
    }

    /// Drops the future, and with it whatever it holds.
    pub(super) fn abandon(&self) {
        let left = {
            let inner = &mut *lock(&self.inner);
            (mem::replace(&mut inner.state, State::Gone), inner.waiter.take())
        };
        if let (State::Done(Ok(output)), _) = &left {
            Python::try_attach(|py| BaseResponse::forgo(py, output));
        }
        drop(left);
    }
}

/// Tells the loop's future that there is news. One that was cancelled needs to hear nothing.
pub(super) fn resolve(waiter: &Bound<'_, PyAny>) {
    let py = waiter.py();
    if let Err(error) = waiter.call_method1(intern!(py, "set_result"), (py.None(),)) {
        let cancelled = waiter.call_method0(intern!(py, "done"));
        if !cancelled.and_then(|done| done.is_truthy()).unwrap_or(false) {
            error.write_unraisable(py, Some(waiter));
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        {
            let inner = &mut *lock(&self.inner);
            match &mut inner.state {
                State::Idle { queued, .. } if !*queued => *queued = true,
                State::Running { woken } => {
                    *woken = true;
                    return;
                }
                _ => return,
            }
        }
        let hub = self.hub.clone();
        hub.order(Order::Run(self));
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.clone().wake();
    }
}
