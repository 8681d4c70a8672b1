//! What the futures under one `block_on` wait for, and how the thread waits for it.

use std::{
    cell::{Cell, RefCell},
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags};

use crate::rt::sys::{self, Fd};

/// How long to sleep at a time when the system has no means left to wake the thread (no descriptor
/// for the pipe, no memory for `poll`): slow, and never stuck.
const WITHOUT_MEANS: Duration = Duration::from_millis(5);

thread_local! {
    /// What the innermost `block_on` of this thread waits for; `None` outside of any.
    static SLOTS: RefCell<Option<Vec<Slot>>> = const { RefCell::new(None) };
    /// Whether the innermost `block_on` of this thread heeds signals, and whether one came.
    static SIGNALS: Cell<Signals> = const { Cell::new(Signals::Ignored) };
    /// What is polled now is one of several futures that are driven together.
    static COMPANY: Cell<bool> = const { Cell::new(false) };
    /// The alarm of the last outermost `block_on`, kept for the next.
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
}

/// What becomes of a sleep that a signal interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signals {
    /// It goes on.
    Ignored,
    /// It ends, and `block_on` asks whether to go on.
    Heeded,
    /// That happened, and was not asked yet.
    Interrupted,
}

/// A system call failed with `EINTR`: whether what waits is to give the thread back, as if pending. It is
/// polled again at once if the wait goes on.
pub(super) fn heeds_signal() -> bool {
    match SIGNALS.get() {
        Signals::Ignored => false,
        Signals::Heeded | Signals::Interrupted => {
            SIGNALS.set(Signals::Interrupted);
            true
        }
    }
}

/// Names one waiter, everywhere and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    pub(super) fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Key(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a waiter wants to hear of: its socket ready, or an instant passed.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Weak: a socket that is dropped on another thread closes at once.
    pub(super) ready: Option<(Weak<Fd>, PollFlags)>,
    pub(super) until: Option<Instant>,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    wanted: Wanted,
    waker: Waker,
}

/// Whether a read that is all its future waits for may put the thread to sleep: inside of a `block_on`, unless it
/// drives others too.
pub(super) fn may_sleep() -> bool {
    is_here() && !COMPANY.get()
}

/// What is polled in its life is one of several.
pub(super) struct Company {
    outer: bool,
}

impl Company {
    pub(super) fn keep() -> Self {
        Company { outer: COMPANY.replace(true) }
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        COMPANY.set(self.outer);
    }
}

/// Whether this thread is inside of a `block_on`.
pub(super) fn is_here() -> bool {
    SLOTS.with_borrow(Option::is_some)
}

/// The error of a socket that is polled by somebody else's executor.
pub(super) fn not_here() -> io::Error {
    io::Error::other("a socket of the blocking runtime was polled outside of Blocking::block_on")
}

/// Wakes `waker`, once, when what is wanted has come. Replaces what `key` wanted before.
pub(super) fn want(key: Key, wanted: Wanted, waker: &Waker) -> io::Result<()> {
    let replaced = SLOTS.with_borrow_mut(|slots| {
        let slots = slots.as_mut().ok_or_else(not_here)?;
        let slot = Slot { key, wanted, waker: waker.clone() };
        match slots.iter_mut().find(|s| s.key == key) {
            Some(old) => Ok(Some(std::mem::replace(old, slot))),
            None => {
                slots.push(slot);
                Ok(None)
            }
        }
    });
    // Dropped only here: a waker may own a future, whose sockets come back to this list.
    replaced.map(drop)
}

/// `key` waits no more.
pub(super) fn forget(key: Key) {
    // Sockets are dropped while a thread ends, too.
    let removed = SLOTS.try_with(|slots| {
        let mut slots = slots.borrow_mut();
        let slots = slots.as_mut()?;
        let at = slots.iter().position(|s| s.key == key)?;
        Some(slots.swap_remove(at))
    });
    drop(removed);
}

/// An alarm, and the waker that rings it: kept together, because to make a waker and to drop it are atomic
/// operations that a small exchange would notice.
#[derive(Debug)]
struct Own {
    alarm: Arc<Alarm>,
    waker: Waker,
}

impl Own {
    fn new() -> Self {
        let alarm = Arc::new(Alarm::new());
        Own { waker: Waker::from(alarm.clone()), alarm }
    }
}

/// What an outer `block_on` waits for, and whether it heeds signals, set aside.
#[derive(Debug)]
struct Outer {
    slots: Option<Vec<Slot>>,
    signals: Signals,
}

impl Drop for Outer {
    fn drop(&mut self) {
        SIGNALS.set(self.signals);
        let done = SLOTS.replace(self.slots.take());
        drop(done);
    }
}

/// One `block_on`.
#[derive(Debug)]
pub(super) struct Turn {
    outer: Outer,
    own: Own,
}

impl Turn {
    pub(super) fn begin(signals: Signals) -> Self {
        let (slots, signals) = (SLOTS.replace(Some(Vec::new())), SIGNALS.replace(signals));
        Turn { outer: Outer { slots, signals }, own: OWN.take().unwrap_or_else(Own::new) }
    }

    /// Leaves the alarm to the next one. Without it, in a panic, the next makes its own.
    pub(super) fn end(self) {
        drop(self.outer);
        OWN.set(Some(self.own));
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.own.waker
    }

    /// Wakes from here on are news.
    pub(super) fn forget_wake(&self) {
        let state = &self.own.alarm.state;
        // A wake that this look misses is met when the thread goes to sleep.
        if state.load(Ordering::Relaxed) != RUNNING {
            state.swap(RUNNING, Ordering::AcqRel);
        }
    }

    /// Whether a signal ended a sleep since this was last asked.
    pub(super) fn is_interrupted(&self) -> bool {
        SIGNALS.get() == Signals::Interrupted
    }

    /// The same, after which it is no more.
    pub(super) fn take_interrupt(&self) -> bool {
        let interrupted = self.is_interrupted();
        if interrupted {
            SIGNALS.set(Signals::Heeded);
        }
        interrupted
    }

    /// Sleeps until something that is wanted has come or our waker is woken; may return for nothing.
    pub(super) fn park(&self) {
        let Own { alarm, waker } = &self.own;
        let watch = Watch::new(waker);
        // Without a clone of our waker in foreign hands nobody else can wake us: one is the alarm's owner,
        // one our waker, and those in the slots.
        let foreign = || Arc::strong_count(alarm) > 2 + watch.own;
        let ready = match (watch.fds.is_empty(), SIGNALS.get()) {
            (true, Signals::Ignored) => {
                alarm.park(watch.timeout());
                Vec::new()
            }
            // `thread::park` sleeps on when a signal comes.
            (true, _) => watch.poll(alarm, true),
            (false, _) => watch.poll(alarm, foreign()),
        };
        // Awake: the wakers below are ours more often than not, and need not ring.
        self.forget_wake();
        wake(&ready);
    }
}

/// Wakes, and forgets, whoever's socket is in `ready` or whose instant has passed.
fn wake(ready: &[Key]) {
    let now = Instant::now();
    let is_due = |slot: &mut Slot| {
        ready.contains(&slot.key) || slot.wanted.until.is_some_and(|at| at <= now)
    };
    let due: Vec<Slot> = SLOTS.with_borrow_mut(|slots| match slots {
        Some(slots) => slots.extract_if(.., is_due).collect(),
        None => Vec::new(),
    });
    // Not under the borrow: a waker may run anything.
    for slot in due {
        slot.waker.wake();
    }
}

/// The slots as one `poll(2)` sees them. Holds the sockets open for as long as it looks at them.
struct Watch {
    fds: Vec<(Key, Arc<Fd>, PollFlags)>,
    until: Option<Instant>,
    /// How many slots hold a clone of our own waker.
    own: usize,
}

impl Watch {
    fn new(own: &Waker) -> Self {
        let mut watch = Watch { fds: Vec::new(), until: None, own: 0 };
        SLOTS.with_borrow(|slots| {
            for slot in slots.iter().flatten() {
                watch.add(slot, own);
            }
        });
        watch
    }

    fn add(&mut self, slot: &Slot, own: &Waker) {
        self.own += usize::from(slot.waker.will_wake(own));
        self.until = [self.until, slot.wanted.until].into_iter().flatten().min();
        if let Some((fd, events)) = &slot.wanted.ready
            && let Some(fd) = fd.upgrade()
        {
            self.fds.push((slot.key, fd, *events));
        }
    }

    fn timeout(&self) -> Option<Duration> {
        self.until.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Sleeps in `poll(2)`; whose sockets are ready.
    fn poll(&self, alarm: &Alarm, foreign: bool) -> Vec<Key> {
        let mut timeout = self.timeout();
        let bell = if foreign { alarm.bell() } else { None };
        if foreign && bell.is_none() {
            timeout = Some(timeout.map_or(WITHOUT_MEANS, |t| t.min(WITHOUT_MEANS)));
        }
        if !alarm.begin(POLLING) {
            return Vec::new();
        }
        let mut fds: Vec<_> =
            self.fds.iter().map(|(_, fd, events)| PollFd::new(fd, *events)).collect();
        if let Some(bell) = bell {
            fds.push(PollFd::new(&bell.0, PollFlags::IN));
        }
        match rustix::event::poll(&mut fds, timeout.map(sys::timespec).as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {
                heeds_signal();
                return Vec::new();
            }
            Err(_) => {
                thread::sleep(WITHOUT_MEANS);
                return self.fds.iter().map(|(key, ..)| *key).collect();
            }
        }
        if let Some(bell) = bell
            && fds.last().is_some_and(|fd| !fd.revents().is_empty())
        {
            Alarm::silence(bell);
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        self.fds
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| is_ready(fd))
            .map(|((key, ..), _)| *key)
            .collect()
    }
}

/// Runs the future, or is about to look whether it was woken.
const RUNNING: u8 = 0;
/// Woken since it last ran.
const WOKEN: u8 = 1;
/// Asleep in `thread::park`.
const PARKED: u8 = 2;
/// Asleep in `poll(2)`: the bell has to be rung.
const POLLING: u8 = 3;

/// A thread's waker. It rings the bell (a socket pair, made when first needed) only when the thread
/// sleeps in `poll(2)`.
#[derive(Debug)]
struct Alarm {
    state: AtomicU8,
    thread: Thread,
    bell: OnceLock<(UnixStream, UnixStream)>,
}

impl Alarm {
    fn new() -> Self {
        Alarm { state: AtomicU8::new(RUNNING), thread: thread::current(), bell: OnceLock::new() }
    }

    /// Goes to sleep as `how`; false when a wake has come first.
    fn begin(&self, how: u8) -> bool {
        self.state.compare_exchange(RUNNING, how, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn park(&self, timeout: Option<Duration>) {
        if !self.begin(PARKED) {
            return;
        }
        match timeout {
            Some(timeout) => thread::park_timeout(timeout),
            None => thread::park(),
        }
    }

    /// The listening end and the ringing end; `None` when the system gives no more descriptors.
    fn bell(&self) -> Option<&(UnixStream, UnixStream)> {
        if self.bell.get().is_none() {
            let (ear, hand) = UnixStream::pair().ok()?;
            ear.set_nonblocking(true).ok()?;
            hand.set_nonblocking(true).ok()?;
            // Only the thread itself comes here, so nobody was faster.
            let _ = self.bell.set((ear, hand));
        }
        self.bell.get()
    }

    fn silence((ear, _): &(UnixStream, UnixStream)) {
        let mut ear = ear;
        let mut rings = [0; 64];
        while matches!(ear.read(&mut rings), Ok(n) if n == rings.len()) {}
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match self.state.swap(WOKEN, Ordering::AcqRel) {
            PARKED => self.thread.unpark(),
            POLLING => {
                if let Some((_, hand)) = self.bell.get() {
                    // Full means that it rings already.
                    let mut hand = hand;
                    let _ = hand.write(&[1]);
                }
            }
            _ => {}
        }
    }
}
