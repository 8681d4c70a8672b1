//! A connection that carries many exchanges at a time (HTTP/2), driven by those who wait for it.
//!
//! Behind one lock lie the protocol's machine and the socket. While one exchange alone is under way,
//! whoever awaits it writes and reads for it, as on an exclusive connection. With a second one, a task
//! of the connection's own takes the lead: it is nobody's to park or drop, and what many streams have
//! to say goes out in one write. Where the runtime drives no tasks, whoever polled last has the
//! socket's waker, and hands the lead on when it needs it no more.
//!
//! Nothing of a user's (a body, a hook) is called under the lock, and nobody is woken.

mod guest;
mod state;
mod stream;
mod tunnel;
mod watch;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Instant,
};

use mimus_net::{Runtime, dial::Dialed, proxy::Proxy, rt::Probe};
use mimus_proto::h2::{self, Busy, Code, Stream};

use self::state::{State, Task};
pub(crate) use self::stream::OnStream;
use self::watch::Watch;
use super::{Failure, Order, Reserved};
use crate::{
    observe::ConnectionInfo,
    options::Http2,
    pool::{Member, Place, Shareable},
    route::{Route, RouteRef},
};

/// A handle to a connection that many exchanges share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Link>);

/// What the handles share.
struct Link {
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
    /// The route that it was made for, where it may serve others.
    home: Option<Box<Route>>,
    /// The pool that keeps a handle of it.
    member: OnceLock<ConnMember>,
}

type ConnMember = Member<Route, Box<super::Conn>, Shared>;

impl Shared {
    /// `proxy` is the one that `dialed` goes through; `early` says that the first request may travel
    /// as TLS early data; `home` is the route that it is made for, where it may serve others.
    pub(crate) fn new(
        dialed: Dialed,
        proxy: Option<Arc<Proxy>>,
        early: bool,
        home: Option<Box<Route>>,
        http2: &Http2,
        runtime: &Arc<dyn Runtime>,
    ) -> Self {
        let now = Instant::now();
        let machine = h2::Client::new(&http2.opening, http2.limits, now);
        let info = ConnectionInfo::new(&dialed, proxy, now);
        let state = State::new(dialed.socket, machine, info, early);
        Shared(Arc::new(Link {
            runtime: Arc::clone(runtime),
            state: Mutex::new(state),
            home,
            member: OnceLock::new(),
        }))
    }

    /// Ties the connection to the pool that keeps it.
    pub(crate) fn joined(&self, member: ConnMember) {
        // Once, by who dialled.
        let _ = self.0.member.set(member);
        // One that is refused is dropped: the next call looks.
        let _ = self.0.runtime.spawn(Box::pin(Watch::new(Arc::downgrade(&self.0))));
    }

    /// Opens HTTP/2 at once: nobody has a request for the connection yet, and a server may not wait for one. To who
    /// comes, it is one of the pool's.
    pub(crate) fn greet(&self) {
        self.0.with(|state| {
            state.served = true;
            state.flush();
        });
    }

    /// The connection's particulars.
    pub(crate) fn info(&self) -> Arc<ConnectionInfo> {
        self.0.with(|state| Arc::clone(&state.info))
    }

    /// Whether it may serve others than the route that it was made for.
    pub(crate) fn may_span(&self) -> bool {
        self.0.home.is_some()
    }

    /// Whether it was made for another route than this, whose origin the server says it is not there for
    /// (RFC 8336).
    pub(crate) fn excludes(&self, route: &RouteRef<'_>, origin: impl FnOnce() -> String) -> bool {
        // Hardly a server says it, so the origin is written down only where one did.
        if !self.0.is_anothers(route) || !self.0.lock().machine.names_origins() {
            return false;
        }
        let origin = origin();
        self.0.lock().machine.excludes(&origin)
    }

    /// Whether a stream was ever opened on it, or it was there before it was needed.
    pub(crate) fn has_served(&self) -> bool {
        self.0.lock().served
    }

    /// Whether a place that was [reserved](Shareable::reserve) can be used: looks for what came while
    /// nobody waited, as hard as `probe` says for a connection idle since then. If not, the pool is
    /// told.
    pub(crate) fn is_alive(&self, probe: impl FnOnce(Instant) -> Probe) -> bool {
        let alive = self.0.with(|state| {
            let idle = state.owned == 0;
            if idle && (state.machine.awaits_pong() || probe(state.idle_since) == Probe::Thorough) {
                state.look();
            }
            // A server that did not answer while nobody asked it anything is not asked again.
            let silent = idle && state.machine.awaits_pong();
            state.machine.can_open() != Err(Busy::Going) && !silent
        });
        if !alive && let Some(member) = self.0.member.get() {
            member.gone(Instant::now());
        }
        alive
    }

    /// Opens a stream in a place that was reserved, which it takes if there is no error. Nothing is
    /// written yet.
    pub(super) fn begin(&self, order: Order<'_>) -> Result<Box<OnStream>, Failure> {
        OnStream::begin(&self.0, order)
    }

    /// Whether the server takes extended CONNECT, once it has said so or has not.
    pub(super) async fn offers_tunnels(&self) -> Result<bool, Failure> {
        self.0.offers_tunnels().await
    }

    /// Whether the server is known to take extended CONNECT, and the connection new streams.
    pub(crate) fn takes_tunnels(&self) -> bool {
        self.0.with(|state| {
            let offers = state.machine.peer_settings().is_some_and(|peer| peer.connect_protocol);
            offers && state.machine.can_open() != Err(Busy::Going)
        })
    }

    /// A place for who dialled, on a connection that nobody else knows.
    pub(crate) fn reserve_first(&self) -> Reserved {
        self.0.lock().reserved += 1;
        Reserved::new(self.clone())
    }
}

// Under the pool's lock, the first and the last wake nobody and tell nobody.
impl Shareable for Shared {
    fn reserve(&self, _: Instant) -> Place {
        let mut state = self.0.lock();
        let full = state.early || state.machine.can_open() == Err(Busy::Full);
        if state.owned == 0 && full {
            // Nobody reads, and the server may have more to allow by now.
            state.look();
        }
        let taken = state.machine.open_streams() + state.reserved;
        match state.machine.can_open() {
            Err(Busy::Going) => Place::Gone,
            Err(Busy::Full) => Place::Full,
            // RFC 8470 section 4: what is not safe to repeat is not sent as early data. Who dialled saw to
            // that for himself alone.
            Ok(()) if state.early => Place::Full,
            // It may be dead: another connection is the safer choice.
            Ok(()) if state.owned > 0 && state.machine.awaits_pong() => Place::Full,
            Ok(()) if taken >= state.machine.max_streams() => Place::Full,
            Ok(()) => {
                state.reserved += 1;
                Place::Taken
            }
        }
    }

    fn unreserve(&self) {
        self.0.lock().reserved -= 1;
        self.0.freed(Instant::now());
    }

    fn idle_since(&self) -> Option<Instant> {
        let state = self.0.lock();
        (state.owned == 0 && state.reserved == 0).then_some(state.idle_since)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What could panic under the lock is a defect of ours; the machine says what it still can.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state under the lock; then starts, wakes and tells what the change asks for.
    fn with<R>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let answer = change(&mut state);
        let spent = state.spent.take();
        match state.has_news() {
            true => self.tell(state),
            false => drop(state),
        }
        drop(spent);
        answer
    }

    #[inline(never)] // Most changes concern nobody else.
    fn tell(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let wakes = std::mem::take(&mut state.wakes);
        let start = matches!(state.task, Task::Wanted);
        if start {
            state.task = Task::Roused;
        }
        let going = std::mem::take(&mut state.going);
        let widened = std::mem::take(&mut state.widened);
        let spent = std::mem::take(&mut state.more_spent);
        drop(state);
        drop(spent);
        wakes.into_iter().for_each(Waker::wake);
        if start {
            self.start_task();
        }
        if going && let Some(member) = self.member.get() {
            member.gone(Instant::now());
        } else if widened {
            self.freed(Instant::now());
        }
    }

    /// Gives a stream up.
    fn leave(self: &Arc<Self>, stream: Stream, code: Code, now: Instant) {
        self.with(|state| state.vacate(stream, code, now));
    }

    /// An exchange ended: another may have its place.
    fn freed(&self, now: Instant) {
        if let Some(member) = self.member.get() {
            member.freed(now);
        }
    }

    /// Whether `route` is a guest here: the connection was made for another.
    fn is_anothers(&self, route: &RouteRef<'_>) -> bool {
        self.home.as_ref().is_some_and(|home| !route.matches(home))
    }

    fn start_task(self: &Arc<Self>) {
        // One that is refused is dropped, which tells.
        let _ = self.runtime.spawn(Box::pin(Driver(Arc::downgrade(self))));
    }
}

/// The connection's own task. It ends with the connection; a runtime that is shut down drops it before.
struct Driver(Weak<Link>);

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.0.upgrade() {
            Some(link) => link.with(|state| state.poll_task(cx)),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(link) = self.0.upgrade() {
            link.with(State::do_without_task);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Task::Running(task) = std::mem::replace(&mut state.task, Task::None) {
            task.wake();
        }
        if let Some(watcher) = state.watcher.waker.take() {
            watcher.wake();
        }
    }
}
