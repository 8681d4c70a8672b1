//! The loop: one thread, one epoll.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use boring::ssl::SslContext;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use slab::Slab;

use crate::clock;
use crate::connection::{Connection, Protocol, Shared, Wait};
use crate::pages::Pages;
use crate::transport::Buffers;

const INPUT_END: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// The first of the listeners' tokens; they go up from here.
const LISTENERS: u64 = u64::MAX - 1 - PORTS as u64;

/// Ports that are listened on.
const PORTS: usize = 4;

/// Connections that may wait to be accepted; the kernel has a bound of its own.
const BACKLOG: i32 = 65_535;
/// Events taken at a time.
const EVENTS: usize = 256;

/// The server.
pub(crate) struct Server {
    epoll: OwnedFd,
    timer: Timer,
    listeners: Vec<Listener>,
    connections: Slab<Entry>,
    shared: Shared,
    /// Out of descriptors: no more is accepted until a connection ends.
    paused: bool,
}

/// A port on 127.0.0.1.
pub(crate) struct Port {
    /// 0 takes any that is free.
    pub(crate) number: u16,
    pub(crate) tls: Option<SslContext>,
    pub(crate) protocol: Protocol,
}

struct Listener {
    socket: TcpListener,
    port: Port,
}

struct Entry {
    connection: Connection,
    wait: Wait,
}

impl Server {
    /// Listens on the ports.
    pub(crate) fn bind(ports: [Port; PORTS]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = Timer::new()?;
        epoll::add(&epoll, &timer.fd, EventData::new_u64(TIMER), EventFlags::IN)?;
        let listeners = ports.map(|port| Ok(Listener { socket: listen(port.number)?, port }));
        let listeners: Vec<Listener> = listeners.into_iter().collect::<io::Result<_>>()?;
        for (listener, token) in listeners.iter().zip(LISTENERS..) {
            epoll::add(&epoll, &listener.socket, EventData::new_u64(token), EventFlags::IN)?;
        }
        Ok(Self {
            epoll,
            timer,
            listeners,
            connections: Slab::new(),
            shared: Shared { buffers: Buffers::new(), pages: Pages::new() },
            paused: false,
        })
    }

    /// Where it listens, in the order of the ports.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(|listener| listener.socket.local_addr()).collect()
    }

    /// Serves until `input` ends.
    pub(crate) fn run(&mut self, input: impl AsFd) -> io::Result<()> {
        match epoll::add(&self.epoll, &input, EventData::new_u64(INPUT_END), EventFlags::IN) {
            Ok(()) => {}
            // A file, or nothing at all: it does not wait, so its end is here.
            Err(Errno::PERM) => {
                return Err(io::Error::other("standard input has to be a pipe or a terminal"));
            }
            Err(error) => return Err(error.into()),
        }
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        loop {
            let events = match epoll::wait(&self.epoll, &mut events, None) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for event in events {
                match event.data.u64() {
                    INPUT_END if ended(&input)? => return Ok(()),
                    INPUT_END => {}
                    TIMER => self.timer.fired(),
                    token @ LISTENERS.. => self.accept((token - LISTENERS) as usize)?,
                    key => self.happened(key as usize, event.flags)?,
                }
            }
            self.pace()?;
        }
    }

    fn accept(&mut self, place: usize) -> io::Result<()> {
        loop {
            let Some(Listener { socket: listener, .. }) = self.listeners.get(place) else {
                return Ok(());
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(listener, flags) {
                Ok(socket) => self.welcome(socket.into(), place)?,
                Err(Errno::AGAIN) => return Ok(()),
                // Gone again before it was accepted.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    return self.pause(true);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn welcome(&mut self, stream: TcpStream, place: usize) -> io::Result<()> {
        let Some(Listener { port, .. }) = self.listeners.get(place) else { return Ok(()) };
        let connection = Connection::new(stream, port.tls.as_ref(), port.protocol)?;
        let slot = self.connections.vacant_entry();
        let token = EventData::new_u64(slot.key() as u64);
        epoll::add(&self.epoll, connection.stream(), token, EventFlags::IN)?;
        slot.insert(Entry { connection, wait: Wait::Readable });
        Ok(())
    }

    fn pause(&mut self, paused: bool) -> io::Result<()> {
        if self.paused != paused {
            self.paused = paused;
            let flags = if paused { EventFlags::empty() } else { EventFlags::IN };
            for (listener, token) in self.listeners.iter().zip(LISTENERS..) {
                epoll::modify(&self.epoll, &listener.socket, EventData::new_u64(token), flags)?;
            }
        }
        Ok(())
    }

    fn happened(&mut self, key: usize, flags: EventFlags) -> io::Result<()> {
        // It may have ended earlier in this turn.
        let Some(entry) = self.connections.get_mut(key) else { return Ok(()) };
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            entry.connection.is_readable();
        }
        // One that waits for its time neither reads nor writes: that the client is gone has to be seen here.
        let gone = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let dead = flags.intersects(gone) && matches!(entry.wait, Wait::Until(_));
        if dead { self.remove(key) } else { self.advance(key) }
    }

    fn advance(&mut self, key: usize) -> io::Result<()> {
        let Some(entry) = self.connections.get_mut(key) else { return Ok(()) };
        // An error of one connection is its end, not ours: its client will say so.
        let Ok(Some(wait)) = entry.connection.advance(&mut self.shared) else {
            return self.remove(key);
        };
        if let Some(due) = wait.due()
            && entry.wait.due() != Some(due)
        {
            self.timer.add(due, key);
        }
        let flags = flags(wait);
        if flags != self::flags(entry.wait) {
            let token = EventData::new_u64(key as u64);
            epoll::modify(&self.epoll, entry.connection.stream(), token, flags)?;
        }
        entry.wait = wait;
        Ok(())
    }

    fn remove(&mut self, key: usize) -> io::Result<()> {
        // Closing the socket takes it out of the epoll.
        self.connections.try_remove(key);
        self.pause(false)
    }

    /// Lets every connection go on whose time has come, and sets the timer for the next.
    fn pace(&mut self) -> io::Result<()> {
        if self.timer.is_idle() {
            return Ok(());
        }
        while let Some((due, key)) = self.timer.take(clock::now()) {
            // Another connection may have that place by now.
            if self.connections.get(key).is_some_and(|entry| entry.wait.due() == Some(due)) {
                self.advance(key)?;
            }
        }
        self.timer.set()
    }
}

fn flags(wait: Wait) -> EventFlags {
    match wait {
        Wait::Readable | Wait::ReadableUntil(_) => EventFlags::IN,
        Wait::Writable => EventFlags::OUT,
        Wait::Either => EventFlags::IN | EventFlags::OUT,
        Wait::Until(_) => EventFlags::RDHUP,
    }
}

fn ended(input: impl AsFd) -> io::Result<bool> {
    match rustix::io::read(input, &mut [0u8; 512]) {
        Ok(read) => Ok(read == 0),
        Err(Errno::INTR | Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        flags,
        Some(ipproto::TCP),
    )?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Accepted sockets inherit it on Linux: no system call for each.
    sockopt::set_tcp_nodelay(&socket, true)?;
    // Inherited too. Where the system's own is BBR, that paces what is sent by what it measured on each
    // connection: bodies over loopback then take one time on some, and twice that on others.
    sockopt::set_tcp_congestion(&socket, "reno")?;
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// When paced connections go on. A timerfd has the kernel's full resolution, where epoll's own timeout
/// has milliseconds.
struct Timer {
    fd: OwnedFd,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// What the kernel's timer is set to.
    set: Option<u64>,
    /// It is readable, until it is set again.
    fired: bool,
}

impl Timer {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { fd, due: BinaryHeap::new(), set: None, fired: false })
    }

    fn is_idle(&self) -> bool {
        self.due.is_empty() && !self.fired
    }

    fn fired(&mut self) {
        self.fired = true;
    }

    fn add(&mut self, due: u64, key: usize) {
        self.due.push(Reverse((due, key)));
    }

    /// One whose time has come.
    fn take(&mut self, now: u64) -> Option<(u64, usize)> {
        let Reverse(first) = *self.due.peek()?;
        (first.0 <= now).then(|| self.due.pop())?;
        Some(first)
    }

    fn set(&mut self) -> io::Result<()> {
        let next = self.due.peek().map(|Reverse((due, _))| *due);
        if next == self.set && !self.fired {
            return Ok(());
        }
        // All zero is off, which is also how an expired timer is silenced.
        let at = next.map_or(0, |due| due.max(1));
        let value = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: (at / 1_000_000_000).try_into().unwrap_or(i64::MAX),
                tv_nsec: (at % 1_000_000_000) as _,
            },
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &value)?;
        self.set = next;
        self.fired = false;
        Ok(())
    }
}
