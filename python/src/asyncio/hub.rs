//! What Mimus keeps for each event loop: who is to be polled, which sockets are watched, when to wake up.
//!
//! Rust code runs in *turns*: a step of an awaitable, or a callback of the loop. While one runs, nothing calls
//! into Python: what the loop is to do (watch a socket, resolve a future, call back later) is noted, and is done
//! when the turn ends, where no lock of Rust's is held.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
    time::Instant,
};

use mimus_net::{BoxFuture, rt::evented::Direction};
use pyo3::{
    exceptions::PyNotImplementedError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyWeakrefMethods, PyWeakrefReference},
};

use super::{
    background,
    bell::Bell,
    source::{Entry, Watcher},
    task::{Task, resolve},
    timers::Timers,
};
use crate::forks;

/// How many polls one turn makes before the loop gets a turn of its own.
const POLLS: usize = 256;

/// A lock whose holders cannot leave what it guards half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All hubs, to be looked through.
static HUBS: Mutex<Vec<Weak<Hub>>> = Mutex::new(Vec::new());

/// How many of them have been shut.
static CLOSED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The hub whose turn runs on this thread.
    static CURRENT: RefCell<Option<Arc<Hub>>> = const { RefCell::new(None) };
    /// The hub of the loop that ran here last.
    static LAST: RefCell<Option<Arc<Hub>>> = const { RefCell::new(None) };
}

/// What the loop is to be told, or who is to be polled.
pub(super) enum Order {
    /// To watch for the descriptor to become ready.
    Watch(Arc<Entry>, Direction),
    /// To forget the descriptor, which is closed then.
    Leave(Arc<Entry>),
    /// To poll this.
    Run(Arc<Task>),
    /// To step whoever waits by this future of the loop's.
    Resolve(Py<PyAny>),
    /// Something that only Python can do.
    Tell(Tell),
}

/// What is done with the loop at hand.
pub(super) type Tell = Box<dyn FnOnce(&Bound<'_, PyAny>) -> PyResult<()> + Send>;

#[derive(Default)]
struct Inbox {
    orders: VecDeque<Order>,
    /// Those that woke themselves: they come after the loop's other business.
    yielded: Vec<Arc<Task>>,
}

/// How other threads tell the loop that there is something to do.
#[derive(Debug)]
enum Means {
    /// It watches this bell, as it watches sockets.
    Bell(Bell),
    /// It watches nothing, and is asked to call back; once is enough until it does.
    Callback { asked: AtomicBool },
}

/// What Mimus keeps for one event loop.
pub(super) struct Hub {
    /// Never used twice, unlike addresses.
    id: u64,
    /// Of the process that the loop runs in, whose selector a fork shares.
    generation: u64,
    event_loop: Py<PyWeakrefReference>,
    /// Callbacks run in it, rather than in a copy of whoever's context happened to cause them.
    context: Py<PyAny>,
    means: Means,
    inbox: Mutex<Inbox>,
    pub(super) timers: Mutex<Timers>,
    /// What runs in the background. Their wakers alone would not keep them.
    tasks: Mutex<HashMap<usize, Arc<Task>>>,
    /// The loop is closed or gone.
    shut: AtomicBool,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The loop that runs in this thread, which is an error without one.
fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "asyncio", "get_running_loop")?.call0()
}

/// The hubs by their loops, as long as those live.
fn registry(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static REGISTRY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = REGISTRY.get_or_try_init(py, || {
        py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

/// A hub in the registry, which drops it with its loop.
#[pyclass(frozen, module = "mimus._mimus")]
struct Keeper(Arc<Hub>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.shut();
    }
}

/// The hub whose turn runs on this thread, if its loop watches sockets.
pub(super) fn here() -> Option<Arc<Hub>> {
    CURRENT.with_borrow(|current| current.clone().filter(|hub| hub.watches()))
}

/// The hub of the call that is polled on this thread, by whichever means.
pub(super) fn of_call() -> Option<Arc<Hub>> {
    CURRENT.with_borrow(Clone::clone).or_else(background::hub)
}

/// The loop that runs in this thread and its hub.
pub(super) fn running(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Arc<Hub>)> {
    let event_loop = running_loop(py)?;
    let last = LAST.with_borrow(Clone::clone);
    if let Some(hub) = last.filter(|hub| hub.is_of(&event_loop)) {
        return Ok((event_loop, hub));
    }
    let registry = registry(py)?;
    let known = registry.call_method1(intern!(py, "get"), (&event_loop,))?;
    let hub = match known.cast::<Keeper>() {
        Ok(keeper) => keeper.get().0.clone(),
        Err(_) => {
            sweep(py);
            let hub = Hub::of(&event_loop)?;
            lock(&HUBS).push(Arc::downgrade(&hub));
            registry.set_item(&event_loop, Bound::new(py, Keeper(hub.clone()))?)?;
            hub
        }
    };
    let left = LAST.replace(Some(hub.clone()));
    drop(left);
    Ok((event_loop, hub))
}

/// How many loops with hubs have been closed so far.
pub(super) fn closed_so_far() -> u64 {
    CLOSED.load(Ordering::Relaxed)
}

/// Shuts the hubs of loops that have been closed: their sockets would never hear of anything again.
pub(super) fn sweep(py: Python<'_>) {
    let hubs: Vec<Arc<Hub>> = {
        let hubs = &mut *lock(&HUBS);
        hubs.retain(|hub| hub.strong_count() > 0);
        hubs.iter().filter_map(Weak::upgrade).collect()
    };
    for hub in hubs {
        if hub.event_loop(py).is_none_or(|event_loop| is_closed(&event_loop)) {
            hub.shut();
        }
    }
}

fn is_closed(event_loop: &Bound<'_, PyAny>) -> bool {
    let closed = event_loop.call_method0(intern!(event_loop.py(), "is_closed"));
    closed.and_then(|closed| closed.is_truthy()).unwrap_or(true)
}

impl Hub {
    fn of(event_loop: &Bound<'_, PyAny>) -> PyResult<Arc<Hub>> {
        let py = event_loop.py();
        let bell = Bell::new()?;
        let ear = bell.ear();
        let hub = Hub::new(event_loop, Means::Bell(bell))?;
        let pulse = Bound::new(py, Pulse { hub: hub.clone(), timer: false })?;
        match hub.add_watcher(event_loop, Direction::Read, ear, pulse.as_any()) {
            Ok(()) => Ok(hub),
            Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
                Hub::new(event_loop, Means::Callback { asked: AtomicBool::new(false) })
            }
            Err(error) => Err(error),
        }
    }

    fn new(event_loop: &Bound<'_, PyAny>, means: Means) -> PyResult<Arc<Hub>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let context = event_loop.py().import("contextvars")?.getattr("Context")?.call0()?;
        Ok(Arc::new(Hub {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            generation: forks::generation(),
            event_loop: PyWeakrefReference::new(event_loop)?.unbind(),
            context: context.unbind(),
            means,
            inbox: Mutex::default(),
            timers: Mutex::default(),
            tasks: Mutex::default(),
            shut: AtomicBool::new(false),
        }))
    }

    /// Whether its loop watches sockets. For one that does not, calls run on another thread.
    pub(super) fn watches(&self) -> bool {
        matches!(self.means, Means::Bell(_))
    }

    /// Which of the loops that there were this is.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn event_loop<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.event_loop.bind(py).upgrade()
    }

    fn is_of(&self, event_loop: &Bound<'_, PyAny>) -> bool {
        self.event_loop(event_loop.py()).is_some_and(|own| own.is(event_loop))
    }

    /// Whether this is the process that the loop was made in, whose selector a fork shares.
    pub(super) fn is_ours(&self) -> bool {
        self.generation == forks::generation()
    }

    /// Runs `work` as (a part of) a turn of this hub's, and what came of it.
    pub(super) fn turn<R>(
        self: &Arc<Self>,
        event_loop: &Bound<'_, PyAny>,
        work: impl FnOnce() -> R,
    ) -> R {
        let outer = CURRENT.replace(Some(self.clone()));
        let outermost = !outer.as_ref().is_some_and(|outer| Arc::ptr_eq(outer, self));
        let _restore = Restore(outer);
        let output = work();
        if outermost {
            self.settle(event_loop);
        }
        output
    }

    fn is_here(&self) -> bool {
        CURRENT.with_borrow(|current| {
            current.as_ref().is_some_and(|current| std::ptr::eq(&**current, self))
        })
    }

    /// Takes an order, which is carried out at the end of the turn. Any thread may give one.
    pub(super) fn order(self: &Arc<Self>, order: Order) {
        if !self.is_ours() {
            return;
        }
        {
            // Asked where `shut` empties it after it has said so: nothing comes in behind its back.
            let inbox = &mut *lock(&self.inbox);
            if self.shut.load(Ordering::Acquire) {
                return;
            }
            inbox.orders.push_back(order);
        }
        if !self.is_here() {
            self.ring();
        }
    }

    /// Polls `task` after whatever else the loop has to do.
    pub(super) fn run_later(&self, task: Arc<Task>) {
        lock(&self.inbox).yielded.push(task);
    }

    fn ring(self: &Arc<Self>) {
        match &self.means {
            Means::Bell(bell) => bell.ring(),
            Means::Callback { asked } => {
                if !asked.swap(true, Ordering::AcqRel) {
                    Python::try_attach(|py| self.ask(py));
                }
            }
        }
    }

    /// Asks the loop to call back. One that is closed has nobody left to tell.
    fn ask(self: &Arc<Self>, py: Python<'_>) {
        let Some(event_loop) = self.event_loop(py) else { return };
        if let Ok(pulse) = Bound::new(py, Pulse { hub: self.clone(), timer: false }) {
            let _ = event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (pulse,));
        }
    }

    /// Drives `future` in the background.
    pub(super) fn spawn(self: &Arc<Self>, future: BoxFuture<'static, ()>) {
        let task = Task::background(self, future);
        lock(&self.tasks).insert(Arc::as_ptr(&task).addr(), task.clone());
        self.order(Order::Run(task));
    }

    /// A task of the background has come to its end.
    pub(super) fn ended(&self, task: &Arc<Task>) {
        let task = lock(&self.tasks).remove(&Arc::as_ptr(task).addr());
        drop(task);
    }

    /// Carries out what the turn has asked for.
    fn settle(self: &Arc<Self>, event_loop: &Bound<'_, PyAny>) {
        let mut polls = 0;
        while polls < POLLS {
            let Some(order) = lock(&self.inbox).orders.pop_front() else { break };
            match order {
                Order::Run(task) => {
                    polls += 1;
                    task.run(event_loop.py());
                }
                Order::Watch(entry, direction) => self.watch(event_loop, entry, direction),
                Order::Leave(entry) => self.leave(event_loop, &entry),
                Order::Resolve(waiter) => resolve(waiter.bind(event_loop.py())),
                Order::Tell(tell) => {
                    if let Err(error) = tell(event_loop) {
                        error.write_unraisable(event_loop.py(), Some(event_loop));
                    }
                }
            }
        }
        let left = {
            let inbox = lock(&self.inbox);
            !inbox.orders.is_empty() || !inbox.yielded.is_empty()
        };
        let told = if left { self.call_back(event_loop, None) } else { Ok(()) };
        if let Err(error) = told.and_then(|()| self.arm(event_loop)) {
            error.write_unraisable(event_loop.py(), Some(event_loop));
        }
    }

    fn watch(&self, event_loop: &Bound<'_, PyAny>, entry: Arc<Entry>, direction: Direction) {
        let fd = entry.fd();
        let watched = Bound::new(event_loop.py(), Watcher::new(entry.clone(), direction))
            .and_then(|watcher| self.add_watcher(event_loop, direction, fd, watcher.as_any()));
        if let Err(error) = watched {
            entry.fail(direction, &error.to_string());
        }
    }

    /// In the hub's context: the loop keeps the one in which it is asked, with all that it holds.
    fn add_watcher(
        &self,
        event_loop: &Bound<'_, PyAny>,
        direction: Direction,
        fd: i32,
        callback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = event_loop.py();
        let method = match direction {
            Direction::Read => event_loop.getattr(intern!(py, "add_reader"))?,
            Direction::Write => event_loop.getattr(intern!(py, "add_writer"))?,
        };
        let context = self.context.bind(py);
        context.call_method1(intern!(py, "run"), (method, fd, callback)).map(drop)
    }

    fn leave(&self, event_loop: &Bound<'_, PyAny>, entry: &Entry) {
        for direction in [Direction::Read, Direction::Write] {
            if entry.unwatch(direction) {
                self.remove_watcher(event_loop, direction, entry.fd());
            }
        }
    }

    pub(super) fn remove_watcher(
        &self,
        event_loop: &Bound<'_, PyAny>,
        direction: Direction,
        fd: i32,
    ) {
        let py = event_loop.py();
        let method = match direction {
            Direction::Read => intern!(py, "remove_reader"),
            Direction::Write => intern!(py, "remove_writer"),
        };
        // A loop that is closed has forgotten it already, and some say so.
        let _ = event_loop.call_method1(method, (fd,));
    }

    /// Has the loop call back, at once or in so many seconds.
    fn call_back(
        self: &Arc<Self>,
        event_loop: &Bound<'_, PyAny>,
        seconds: Option<f64>,
    ) -> PyResult<()> {
        let py = event_loop.py();
        let options = PyDict::new(py);
        // A context cannot be entered twice, and in that of the callback sockets are watched.
        let context = self.context.call_method0(py, intern!(py, "copy"))?;
        options.set_item(intern!(py, "context"), context)?;
        let pulse = Bound::new(py, Pulse { hub: self.clone(), timer: seconds.is_some() })?;
        match seconds {
            None => event_loop.call_method(intern!(py, "call_soon"), (pulse,), Some(&options))?,
            Some(seconds) => {
                let method = intern!(py, "call_later");
                event_loop.call_method(method, (seconds, pulse), Some(&options))?
            }
        };
        Ok(())
    }

    /// Has the loop call back when the earliest timer fires.
    fn arm(self: &Arc<Self>, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(at) = lock(&self.timers).next_to_arm() else { return Ok(()) };
        // Some loops count in milliseconds, and would be early.
        let wait = at.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000);
        self.call_back(event_loop, Some(wait as f64 / 1000.0))
    }

    /// The loop called back: other threads have given orders, or a timer has fired.
    fn pulse(self: &Arc<Self>, event_loop: &Bound<'_, PyAny>, timer: bool) {
        self.turn(event_loop, || {
            match &self.means {
                Means::Bell(bell) => bell.silence(),
                Means::Callback { asked } => asked.store(false, Ordering::Release),
            }
            {
                let inbox = &mut *lock(&self.inbox);
                inbox.orders.extend(inbox.yielded.drain(..).map(Order::Run));
            }
            if timer {
                let fired = lock(&self.timers).fire(Instant::now());
                fired.into_iter().for_each(Waker::wake);
            }
        });
    }

    /// The loop is closed or gone: whatever waits for it waits in vain.
    fn shut(&self) {
        if self.shut.swap(true, Ordering::AcqRel) {
            return;
        }
        CLOSED.fetch_add(1, Ordering::Relaxed);
        let tasks = mem::take(&mut *lock(&self.tasks));
        if self.is_ours() {
            tasks.values().for_each(|task| task.abandon());
        }
        let timers = mem::take(&mut *lock(&self.timers));
        let inbox = mem::take(&mut *lock(&self.inbox));
        match self.is_ours() {
            true => drop((tasks, timers, inbox)),
            // To say goodbye is the parent's business.
            false => mem::forget((tasks, timers, inbox)),
        }
    }
}

/// Puts back what was current before.
struct Restore(Option<Arc<Hub>>);

impl Drop for Restore {
    fn drop(&mut self) {
        let inner = CURRENT.replace(self.0.take());
        drop(inner);
    }
}

/// What the loop calls back.
#[pyclass(frozen, module = "mimus._mimus")]
struct Pulse {
    hub: Arc<Hub>,
    /// The earliest timer fires; or other threads have given orders.
    timer: bool,
}

#[pymethods]
impl Pulse {
    fn __call__(&self, py: Python<'_>) {
        if let Some(event_loop) = self.hub.event_loop(py) {
            self.hub.pulse(&event_loop, self.timer);
        }
    }
}

/// Runs a callback of the loop's as a turn of `hub`'s.
pub(super) fn called_back(py: Python<'_>, hub: &Arc<Hub>, work: impl FnOnce(&Bound<'_, PyAny>)) {
    if let Some(event_loop) = hub.event_loop(py) {
        hub.turn(&event_loop, || work(&event_loop));
    }
}
