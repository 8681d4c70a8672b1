//! What the exchanges of a connection share, and how it is driven.

use std::{
    io::{self, IoSlice},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
    time::Instant,
};

use mimus_net::{Socket, Wait};
use mimus_proto::h2::{self, Stream};
use smallvec::SmallVec;

use super::{super::room::Intake, watch::Watcher};
use crate::observe::ConnectionInfo;

/// The most slices of one gathered write.
const SLICES: usize = 20;

/// Room for heads that an idle connection keeps.
const KEEP_OUTPUT: usize = 1024;

/// How often a connection is read from before others have the thread.
const ROUNDS: usize = 16;

/// Whose waker the socket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leader {
    Nobody,
    /// Whoever waits for the stream in this place.
    Seat(usize),
    /// The connection's own task.
    Task,
    /// All who wait, where no task can be had.
    Crowd,
}

/// Who waits for a stream, by [`Stream::index`].
#[derive(Debug, Default)]
struct Seat {
    waker: Option<Waker>,
    until: Option<Instant>,
    /// `until` has passed.
    expired: bool,
}

/// The connection's own task, which drives it while several streams are waited for.
#[derive(Debug)]
pub(super) enum Task {
    /// Not needed so far.
    None,
    /// Asked for; whoever unlocks starts it.
    Wanted,
    Running(Waker),
    /// It was woken and has not come yet.
    Roused,
    /// This runtime drives no tasks, or not this one any more: all who wait are woken to drive.
    Impossible,
}

/// Why the transport failed, for each of the exchanges that it takes along.
#[derive(Debug)]
struct Broken {
    kind: io::ErrorKind,
    text: String,
}

/// Everything behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: h2::Client,
    pub(super) info: Arc<ConnectionInfo>,
    /// Early data is on its way: what TLS agreed on shows with the first answer.
    pub(super) early: bool,
    socket: Box<dyn Socket>,
    intake: Intake,
    seats: Vec<Seat>,
    /// Who looks after the connection while it is idle.
    pub(super) watcher: Watcher,
    /// Who waits for the server's SETTINGS.
    pub(super) guests: Vec<Waker>,
    /// Streams whose owners wait until what they queued is written.
    unwritten: Vec<Stream>,
    pub(super) leader: Leader,
    pub(super) task: Task,
    pub(super) crowd: Arc<Crowd>,
    /// Streams that were not given up.
    pub(super) owned: usize,
    /// Places promised to exchanges that are not streams yet.
    pub(super) reserved: u32,
    /// Whether a stream was ever opened, or the connection was there before it was needed.
    pub(super) served: bool,
    pub(super) idle_since: Instant,
    /// When the server was last heard of.
    pub(super) heard_at: Instant,
    /// No later than the first of the seats' deadlines.
    alarm: Option<Instant>,
    /// When the machine wants to hear of the time.
    machine_alarm: Option<Instant>,
    /// The deadline that the socket was given.
    set_alarm_at: Option<Instant>,
    broken: Option<Broken>,
    /// A layer took bytes that it has not handed on.
    pub(super) unflushed: bool,
    /// Whom to wake once the lock is released.
    pub(super) wakes: SmallVec<[Waker; 8]>,
    /// Wakers that are needed no more, dropped once the lock is released: what that runs is not ours. Mostly
    /// there is one.
    pub(super) spent: Option<Waker>,
    pub(super) more_spent: Vec<Waker>,
    /// The pool was not told yet that this connection takes no more exchanges.
    pub(super) going: bool,
    /// There is room for more streams than there was, or one fewer to serve, and the pool was not told
    /// yet.
    pub(super) widened: bool,
}

impl State {
    pub(super) fn new(
        socket: Box<dyn Socket>,
        machine: h2::Client,
        info: ConnectionInfo,
        early: bool,
    ) -> Self {
        let idle_since = info.established;
        State {
            machine,
            info: Arc::new(info),
            early,
            socket,
            intake: Intake::new(),
            seats: Vec::new(),
            watcher: Watcher::default(),
            guests: Vec::new(),
            unwritten: Vec::new(),
            leader: Leader::Nobody,
            task: Task::None,
            crowd: Arc::default(),
            owned: 0,
            reserved: 0,
            served: false,
            idle_since,
            heard_at: idle_since,
            alarm: None,
            machine_alarm: None,
            set_alarm_at: None,
            broken: None,
            unflushed: false,
            wakes: SmallVec::new(),
            spent: None,
            more_spent: Vec::new(),
            going: false,
            widened: false,
        }
    }

    /// Whether there is somebody to wake, to start or to tell once the lock is released.
    pub(super) fn has_news(&self) -> bool {
        !self.wakes.is_empty()
            || self.going
            || self.widened
            || !self.more_spent.is_empty()
            || matches!(self.task, Task::Wanted)
    }

    /// Has a waker dropped outside of the lock.
    pub(super) fn spend(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker
            && let Some(before) = self.spent.replace(waker)
        {
            self.more_spent.push(before);
        }
    }

    /// Takes note of a stream that was opened, in a place that was reserved.
    pub(super) fn seat(&mut self, stream: Stream, now: Instant) {
        if self.seats.len() <= stream.index() {
            self.seats.resize_with(stream.index() + 1, Seat::default);
        }
        self.reserved -= 1;
        self.owned += 1;
        self.served = true;
        self.machine_alarm = self.machine.poll_timeout(now);
    }

    /// Gives a stream up. What that has to say to the server is written if it can be at once, or
    /// by the next who drives.
    pub(super) fn vacate(&mut self, stream: Stream, code: h2::Code, now: Instant) {
        self.machine.reset(stream, code);
        self.widened = true;
        self.owned -= 1;
        self.stand_up(stream);
        self.note_idle(now);
        self.flush();
        if self.owned == 0 && self.reserved == 0 {
            self.intake.give_back(self.machine.recv_buf());
            self.machine.shrink(KEEP_OUTPUT);
        }
    }

    /// Takes note of the time when nobody uses the connection any more.
    pub(super) fn note_idle(&mut self, now: Instant) {
        if self.owned == 0 {
            self.idle_since = now;
            self.wakes.extend(self.watcher.rearm());
        }
    }

    /// A stream is waited for no more. Where no task drives, and the socket wakes nobody else, the
    /// others are all woken: any of them may be parked, or gone before it comes.
    pub(super) fn stand_up(&mut self, stream: Stream) {
        let index = stream.index();
        let seat = std::mem::take(&mut self.seats[index]);
        self.spend(seat.waker);
        if self.leader == Leader::Seat(index) {
            self.leader = Leader::Nobody;
        }
        if matches!(self.task, Task::Impossible) {
            let left = self.crowd.leave(index);
            self.spend(left);
            if self.leader == Leader::Nobody {
                self.wake_all();
            }
        }
    }

    /// Whether the deadline that the stream's owner left has passed.
    pub(super) fn is_expired(&self, stream: Stream) -> bool {
        self.seats[stream.index()].expired
    }

    /// Drives the connection for who waits for `stream`, or leaves that to who does already. Ready
    /// when there may be news.
    pub(super) fn poll_news(
        &mut self,
        cx: &mut Context<'_>,
        stream: Stream,
        until: Option<Instant>,
    ) -> Poll<()> {
        let index = stream.index();
        self.seats[index].until = until;
        self.alarm = earlier(self.alarm, until);
        if self.owned > 1 && !matches!(self.task, Task::Impossible) {
            self.sit(cx, index);
            self.leave_to_task();
            return Poll::Pending;
        }
        // Who drives need not be woken by it.
        let waker = self.seats[index].waker.take();
        let alone = self.owned == 1;
        let driven = if alone {
            self.drive(cx)
        } else {
            // Who was alone, and led, loses the socket's waker to the crowd.
            if let Leader::Seat(alone) = self.leader
                && let Some(waker) = &self.seats[alone].waker
            {
                let left = self.crowd.join(alone, waker);
                self.spend(left);
            }
            // First: another thread may have news at once.
            let left = self.crowd.join(index, cx.waker());
            self.spend(left);
            self.drive(&mut Context::from_waker(&self.crowd_waker()))
        };
        if driven.is_pending() {
            self.seats[index].waker = waker;
            self.sit(cx, index);
            self.leader = if alone { Leader::Seat(index) } else { Leader::Crowd };
        } else {
            self.spend(waker);
            // Whoever had the socket's waker may have lost it to us.
            self.leader = Leader::Nobody;
        }
        driven
    }

    /// Has the connection's task drive from now on.
    pub(super) fn leave_to_task(&mut self) {
        let taken_over = std::mem::replace(&mut self.leader, Leader::Task) != Leader::Task;
        if taken_over || self.owes() || self.alarm_is_early() {
            self.rouse();
        }
    }

    pub(super) fn crowd_waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.crowd))
    }

    fn sit(&mut self, cx: &mut Context<'_>, index: usize) {
        let waker = &mut self.seats[index].waker;
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            let before = waker.replace(cx.waker().clone());
            self.spend(before);
        }
    }

    /// Has the connection's task run once, or asks for one.
    fn rouse(&mut self) {
        match std::mem::replace(&mut self.task, Task::Roused) {
            Task::Running(waker) => self.wakes.push(waker),
            Task::None => self.task = Task::Wanted,
            other => self.task = other,
        }
    }

    fn set_task(&mut self, task: Task) {
        if let Task::Running(waker) = std::mem::replace(&mut self.task, task) {
            self.spend(Some(waker));
        }
    }

    /// One turn of the connection's task. Ready when it is over.
    pub(super) fn poll_task(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.set_task(Task::Running(cx.waker().clone()));
        for _ in 0..ROUNDS {
            if self.is_over() {
                self.set_task(Task::None);
                self.leader = Leader::Nobody;
                self.wake_all();
                return Poll::Ready(());
            }
            if self.leader != Leader::Task || self.drive(cx).is_pending() {
                return Poll::Pending;
            }
        }
        // A server that always has something to say must not keep others from the thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what there is to write, if that can be done without waiting for it; otherwise who drives
    /// does.
    pub(super) fn flush(&mut self) {
        if !self.owes() {
            return;
        }
        if self.leader == Leader::Task {
            return self.rouse();
        }
        if self.leader == Leader::Crowd {
            self.write(&mut Context::from_waker(&self.crowd_waker()));
            return;
        }
        self.write(&mut Context::from_waker(Waker::noop()));
        if let Leader::Seat(index) = self.leader
            && self.owes()
        {
            let leader = self.seats[index].waker.take();
            self.wakes.extend(leader);
        }
    }

    /// Whether something waits to be written.
    fn owes(&self) -> bool {
        self.unflushed || self.machine.has_output()
    }

    /// Looks for what came while nobody waited: whether the connection still serves.
    pub(super) fn look(&mut self) {
        // Who watches is still to be told of what comes.
        let watcher = self.watcher.armed();
        self.drain(&mut Context::from_waker(watcher.as_ref().unwrap_or(Waker::noop())));
        self.spend(watcher);
        self.leader = Leader::Nobody;
        // Only now: what the server was to answer in time may have lain there.
        let now = Instant::now();
        if self.machine_alarm.is_some_and(|at| at <= now) {
            self.ring(now);
        }
    }

    /// Drives until there is nothing to do. Whether that came to pass.
    pub(super) fn drain(&mut self, cx: &mut Context<'_>) -> bool {
        (0..ROUNDS).any(|_| self.is_over() || self.drive(cx).is_pending())
    }

    /// Nothing more will come, or be sent.
    pub(super) fn is_over(&self) -> bool {
        !self.machine.wants_read()
    }

    /// Writes, and reads once. Ready when something came, when what was written made room for more of
    /// a body, or when the connection is over.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_over() {
            return Poll::Ready(());
        }
        let room = self.write(cx);
        match self.read(cx) {
            Poll::Pending if room => Poll::Ready(()),
            read => read,
        }
    }

    /// Writes what there is. Whether that was news to a stream: it has room for more of its body, or all
    /// that was queued of it is written. A server with wide windows need not say a word before it has all
    /// of it.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        self.write_out(cx);
        let written = !self.unwritten.is_empty() && self.wake_written();
        self.wake_stirred() || written
    }

    /// Has the stream's owner woken when all that was queued of it is written.
    pub(super) fn await_written(&mut self, stream: Stream) {
        if !self.unwritten.contains(&stream) {
            self.unwritten.push(stream);
        }
    }

    fn wake_written(&mut self) -> bool {
        let State { machine, unwritten, seats, wakes, unflushed, .. } = self;
        let before = unwritten.len();
        unwritten.retain(|&stream| {
            let waits = *unflushed || !machine.is_written(stream);
            if !waits && let Some(seat) = seats.get_mut(stream.index()) {
                wakes.extend(seat.waker.take());
            }
            waits
        });
        unwritten.len() < before
    }

    fn write_out(&mut self, cx: &mut Context<'_>) {
        while self.machine.has_output() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = self.machine.poll_transmit(&mut slices);
            match self.socket.poll_write(cx, &slices[..filled]) {
                Poll::Ready(Ok(n)) => self.machine.transmitted(n),
                Poll::Ready(Err(e)) => return self.write_failed(cx, e),
                Poll::Pending => return,
            }
        }
        let flushed = self.socket.poll_flush(cx);
        self.unflushed = flushed.is_pending();
        if let Poll::Ready(Err(e)) = flushed {
            self.write_failed(cx, e);
        }
    }

    /// A server that leaves says why before it resets the connection.
    fn write_failed(&mut self, cx: &mut Context<'_>, error: io::Error) {
        if error.kind() == io::ErrorKind::TimedOut {
            return self.ring(Instant::now());
        }
        while !self.is_over() && self.read(cx).is_ready() {}
        self.broke(&error);
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.set_alarm();
        let State { machine, intake, socket, .. } = self;
        let buf = machine.recv_buf();
        intake.make_room(buf);
        let offered = buf.capacity() - buf.len();
        match socket.poll_read(cx, buf, Wait::Beside) {
            Poll::Pending => {
                intake.give_back(buf);
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => machine.recv_eof(),
            Poll::Ready(Ok(n)) => intake.brought(n, offered),
            Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::TimedOut => {
                self.ring(Instant::now());
                return Poll::Ready(());
            }
            Poll::Ready(Err(e)) => {
                self.broke(&e);
                return Poll::Ready(());
            }
        }
        self.heard_at = Instant::now();
        self.process(self.heard_at);
        Poll::Ready(())
    }

    /// Has the machine read what came, and those woken whom it concerns. A server that always has
    /// something to say cannot keep a deadline from passing.
    fn process(&mut self, now: Instant) {
        self.advance(now);
        if self.alarm.is_some_and(|alarm| alarm <= now) {
            self.ring_seats(now);
        }
    }

    fn advance(&mut self, now: Instant) {
        let (allowed, open) = (self.machine.max_streams(), self.machine.open_streams());
        let failed = self.machine.process(now).is_err();
        self.widened |= self.machine.max_streams() > allowed;
        // Its owner may take his time with what came: the place is free all the same.
        self.widened |= self.machine.open_streams() < open;
        if self.early && self.machine.peer_settings().is_some() {
            self.learn_tls();
            self.widened = true;
        }
        self.machine_alarm = self.machine.poll_timeout(now);
        self.wake_stirred();
        if failed {
            // The machine has told the server why.
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = self.machine.poll_transmit(&mut slices);
            let mut cx = Context::from_waker(Waker::noop());
            let _ = self.socket.poll_write(&mut cx, &slices[..filled]);
        }
        if self.is_over() {
            self.wake_all();
        }
        if self.machine.peer_settings().is_some() {
            self.wakes.extend(self.guests.drain(..));
        }
        self.going |= self.machine.can_open() == Err(h2::Busy::Going);
    }

    /// The transport failed: what is not whole yet never will be.
    fn broke(&mut self, error: &io::Error) {
        self.broken.get_or_insert_with(|| Broken { kind: error.kind(), text: error.to_string() });
        self.machine.recv_eof();
        self.process(Instant::now());
    }

    /// What the transport had to say about its failure.
    pub(super) fn io_error(&self) -> Option<io::Error> {
        let broken = self.broken.as_ref()?;
        Some(io::Error::new(broken.kind, broken.text.clone()))
    }

    /// Has those woken for whose streams there is news. Whether there was any.
    fn wake_stirred(&mut self) -> bool {
        let mut any = false;
        while let Some(stream) = self.machine.next_stirred() {
            any = true;
            if let Some(seat) = self.seats.get_mut(stream.index()) {
                self.wakes.extend(seat.waker.take());
            }
        }
        any
    }

    pub(super) fn wake_all(&mut self) {
        self.wakes.extend(self.guests.drain(..));
        self.wakes.extend(self.seats.iter_mut().filter_map(|seat| seat.waker.take()));
    }

    /// Whether somebody has to be woken earlier than the socket knows.
    fn alarm_is_early(&self) -> bool {
        let next = earlier(self.alarm, self.machine_alarm);
        next.is_some_and(|next| self.set_alarm_at.is_none_or(|set| next < set))
    }

    fn set_alarm(&mut self) {
        self.set_alarm_at = earlier(self.alarm, self.machine_alarm);
        self.socket.set_deadline(self.set_alarm_at);
    }

    /// The time has come for somebody.
    fn ring(&mut self, now: Instant) {
        if self.machine_alarm.is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
            self.advance(now);
        }
        self.ring_seats(now);
    }

    fn ring_seats(&mut self, now: Instant) {
        self.alarm = None;
        for seat in &mut self.seats {
            match seat.until {
                Some(until) if until <= now => {
                    seat.expired = true;
                    seat.until = None;
                    self.wakes.extend(seat.waker.take());
                }
                until => self.alarm = earlier(self.alarm, until),
            }
        }
    }

    /// The server refused a stream. Unless it is that it takes no more at a time, it had better be asked
    /// on another connection.
    pub(super) fn refused(&mut self) {
        if self.machine.can_open().is_ok() {
            self.retire();
        }
    }

    /// What is under way ends here, and nothing more begins.
    pub(super) fn retire(&mut self) {
        self.machine.go_away(h2::Code::NO_ERROR);
        self.going = true;
    }

    /// Asks whether the server lives, which nothing has told since `since`.
    pub(super) fn doubt(&mut self, since: Instant) {
        if self.heard_at <= since {
            self.machine.ping(Instant::now());
        }
    }

    /// What TLS agreed on is certain once the server spoke, and nothing travels as early data then.
    fn learn_tls(&mut self) {
        if std::mem::take(&mut self.early) {
            Arc::make_mut(&mut self.info).tls = self.socket.tls().cloned();
        }
    }

    /// The connection's task is no more: the runtime took none, or was shut down under it. Whoever
    /// waits drives from now on.
    pub(super) fn do_without_task(&mut self) {
        if !self.is_over() {
            self.set_task(Task::Impossible);
            self.leader = Leader::Nobody;
        }
        self.wake_all();
    }
}

/// Who waits where no task drives, by [`Stream::index`]: woken all together. One alone might be
/// parked with what is the others' too.
#[derive(Debug, Default)]
pub(super) struct Crowd(Mutex<Wakers>);

#[derive(Debug, Default)]
struct Wakers {
    seats: Vec<Option<Waker>>,
    /// Of those who have no seat.
    guests: Vec<Waker>,
}

impl Crowd {
    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has somebody without a seat woken, too, the next time.
    pub(super) fn invite(&self, waker: &Waker) {
        let guests = &mut self.lock().guests;
        if !guests.iter().any(|guest| guest.will_wake(waker)) {
            guests.push(waker.clone());
        }
    }

    /// Gives the waker whose place this one takes.
    fn join(&self, index: usize, waker: &Waker) -> Option<Waker> {
        let mut all = self.lock();
        let wakers = &mut all.seats;
        if wakers.len() <= index {
            wakers.resize(index + 1, None);
        }
        wakers[index].replace(waker.clone())
    }

    fn leave(&self, index: usize) -> Option<Waker> {
        self.lock().seats.get_mut(index).and_then(Option::take)
    }
}

impl Wake for Crowd {
    fn wake(self: Arc<Self>) {
        let Wakers { seats, guests } = std::mem::take(&mut *self.lock());
        seats.into_iter().flatten().chain(guests).for_each(Waker::wake);
    }
}

/// The first of two instants that there may be.
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
