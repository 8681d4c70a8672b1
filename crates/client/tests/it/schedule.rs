//! HTTP/2 under every order of events: tasks that are polled late, dropped or parked, reads and writes
//! that are cut anywhere, a runtime with and without tasks of its own. There is no clock in it: what
//! waits while nothing can run waits for ever.

use std::{
    any::Any,
    collections::BTreeMap,
    future::Future,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Instant,
};

use bytes::BytesMut;
use futures_util::{
    StreamExt as _,
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    stream::FuturesUnordered,
};
use mimus::{
    Client, RequestBuilder, SocketOptions, TlsConfig, Version,
    rt::{BoxFuture, Endpoint, Probe, Runtime, Socket, Wait},
};

/// One alone is run by `SCHEDULE_SEED=n`.
const SEEDS: u64 = 1000;
const PREFACE: usize = 24;

/// Xorshift: the same seed is the same schedule.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What the runtime does with a task that it is to drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spawns {
    Drives,
    Refuses,
    /// It was shut down, and says nothing about it.
    Swallows,
    /// It is shut down after so many polls of the task.
    Drops(usize),
}

/// One connection: two pipes with room for one waker each, and a server at the far end.
#[derive(Debug)]
struct Wire {
    to_server: Vec<u8>,
    heard: Vec<u8>,
    to_client: Vec<u8>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    room: usize,
    dice: Dice,
    closed: bool,
    server: Server,
}

#[derive(Debug, Default)]
struct Server {
    greeted: bool,
    most: u32,
    window: i64,
    initial: i64,
    answers: BTreeMap<u32, Answer>,
    /// The client knows how many streams it may open.
    known: bool,
    overload: bool,
}

#[derive(Debug)]
struct Answer {
    body: Vec<u8>,
    sent: usize,
    window: i64,
    head: bool,
    heard_all: bool,
    /// What comes is said back.
    tunnel: bool,
}

impl Answer {
    fn new(window: i64, body: Vec<u8>, heard_all: bool, tunnel: bool) -> Self {
        Answer { body, sent: 0, window, head: false, heard_all, tunnel }
    }

    fn has_something_to_say(&self, window: i64) -> bool {
        match (self.head, self.sent < self.body.len()) {
            (false, _) => self.heard_all || self.tunnel,
            (true, true) => window.min(self.window) > 0,
            // All there is: the end, unless more may come.
            (true, false) => self.heard_all,
        }
    }
}

/// Whether a header block that begins so is of a CONNECT: GET and POST have places in the static table,
/// and the method goes first.
fn is_connect(block: &[u8]) -> bool {
    !matches!(block.first(), Some(0x82 | 0x83))
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// A body that says how long it is.
fn body(stream: u32, dice: &mut Dice) -> Vec<u8> {
    let len = if dice.one_in(12) { 90_000 } else { dice.below(2000) };
    let mut body = (len as u32).to_be_bytes().to_vec();
    body.resize(len + 4, stream as u8);
    body
}

impl Wire {
    /// Reads one frame that is whole. Whether there was one.
    fn hear(&mut self) -> bool {
        let Wire { to_server: pipe, heard: to_server, to_client, server, dice, .. } = self;
        // A frame may be longer than the pipe.
        to_server.append(pipe);
        if !server.greeted {
            if to_server.len() < PREFACE {
                return false;
            }
            to_server.drain(..PREFACE);
            server.greeted = true;
            let most = [&3u16.to_be_bytes()[..], &server.most.to_be_bytes()[..]].concat();
            frame(to_client, 4, 0, 0, &[&most[..], &[0, 8, 0, 0, 0, 1]].concat());
            return true;
        }
        let Some(head) = to_server.get(..9) else { return false };
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let Some(payload) = to_server.get(9..9 + len).map(<[u8]>::to_vec) else { return false };
        to_server.drain(..9 + len);
        let number = |at: usize| {
            payload
                .get(at..at + 4)
                .map_or(0, |b| i64::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]])))
        };
        match kind {
            0 => {
                if len > 0 {
                    let whole = (len as u32).to_be_bytes();
                    frame(to_client, 8, 0, 0, &whole);
                    if server.answers.contains_key(&id) {
                        frame(to_client, 8, 0, id, &whole);
                    }
                }
                if let Some(answer) = server.answers.get_mut(&id) {
                    answer.heard_all |= flags & 1 != 0;
                    if answer.tunnel {
                        answer.body.extend_from_slice(&payload);
                    }
                }
            }
            1 => {
                let heard_all = flags & 1 != 0;
                let tunnel = is_connect(&payload);
                let body = if tunnel { Vec::new() } else { body(id, dice) };
                let answer = Answer::new(server.initial, body, heard_all, tunnel);
                server.answers.insert(id, answer);
                server.overload |= server.known && server.answers.len() > server.most as usize;
            }
            3 => drop(server.answers.remove(&id)),
            4 if flags & 1 == 0 => {
                for at in (0..len).step_by(6) {
                    if payload[at..at + 2] == [0, 4] {
                        server.initial = number(at + 2);
                    }
                }
                frame(to_client, 4, 1, 0, &[]);
            }
            4 => server.known = true,
            6 if flags & 1 == 0 => frame(to_client, 6, 1, 0, &payload),
            8 if id == 0 => server.window += number(0),
            8 => {
                if let Some(answer) = server.answers.get_mut(&id) {
                    answer.window += number(0);
                }
            }
            _ => {}
        }
        true
    }

    /// Says a piece of an answer that may be said.
    fn say(&mut self) -> bool {
        let Wire { to_client, server, dice, .. } = self;
        let window = server.window;
        let can =
            |(id, answer): (&u32, &Answer)| answer.has_something_to_say(window).then_some(*id);
        let ready: Vec<u32> = server.answers.iter().filter_map(can).collect();
        if ready.is_empty() {
            return false;
        }
        let id = ready[dice.below(ready.len())];
        let Some(answer) = server.answers.get_mut(&id) else { return false };
        if !std::mem::replace(&mut answer.head, true) {
            // RFC 7541 appendix A: 8 is `:status: 200`.
            frame(to_client, 1, 4, id, &[0x88]);
            return true;
        }
        let left = answer.body.len() - answer.sent;
        let len = left.min(1 + dice.below(16_384)).min(window.min(answer.window).max(0) as usize);
        let end = len == left && answer.heard_all;
        frame(to_client, 0, u8::from(end), id, &answer.body[answer.sent..answer.sent + len]);
        answer.sent += len;
        answer.window -= len as i64;
        server.window -= len as i64;
        if end {
            server.answers.remove(&id);
        }
        true
    }

    /// One step of the server. Whether it had anything to do.
    fn step(&mut self) -> (bool, Vec<Waker>) {
        let mut wakers = Vec::new();
        let first = self.dice.one_in(2);
        let moved = (first && self.hear()) || self.say() || self.hear();
        if self.to_server.len() < self.room {
            wakers.extend(self.writer.take());
        }
        if !self.to_client.is_empty() {
            wakers.extend(self.reader.take());
        }
        (moved, wakers)
    }
}

#[derive(Debug)]
struct End(Arc<Mutex<Wire>>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.lock().unwrap().closed = true;
    }
}

impl Socket for End {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        _: Wait,
    ) -> Poll<io::Result<usize>> {
        let mut wire = self.0.lock().unwrap();
        if wire.to_client.is_empty() {
            wire.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let room = (buf.capacity() - buf.len()).min(wire.to_client.len());
        let most = if wire.dice.one_in(3) { 40 } else { usize::MAX };
        let n = room.min(1 + wire.dice.below(room)).min(most);
        buf.extend_from_slice(&wire.to_client[..n]);
        wire.to_client.drain(..n);
        Poll::Ready(Ok(n))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut wire = self.0.lock().unwrap();
        let free = wire.room.saturating_sub(wire.to_server.len());
        if free == 0 {
            wire.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut left = 1 + wire.dice.below(free);
        let mut taken = 0;
        for buf in bufs {
            let n = buf.len().min(left);
            wire.to_server.extend_from_slice(&buf[..n]);
            (taken, left) = (taken + n, left - n);
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn set_deadline(&mut self, _: Option<Instant>) {}

    fn is_stale(&mut self, _: Probe) -> bool {
        false
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The runtime: what it was asked for, for the executor to see to.
#[derive(Clone)]
struct World {
    spawns: Spawns,
    most: u32,
    dice: Arc<Mutex<Dice>>,
    wires: Arc<Mutex<Vec<Arc<Mutex<Wire>>>>>,
    spawned: Arc<Mutex<Vec<BoxFuture<'static, ()>>>>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

impl Runtime for World {
    fn connect<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        let mut dice = self.dice.lock().unwrap();
        let server =
            Server { most: self.most, window: 65_535, initial: 65_535, ..Server::default() };
        let wire = Arc::new(Mutex::new(Wire {
            to_server: Vec::new(),
            heard: Vec::new(),
            to_client: Vec::new(),
            reader: None,
            writer: None,
            room: if dice.one_in(2) { 64 + dice.below(200) } else { 20_000 },
            dice: Dice(dice.next() | 1),
            closed: false,
            server,
        }));
        self.wires.lock().unwrap().push(Arc::clone(&wire));
        Box::pin(async { Ok(Box::new(End(wire)) as Box<dyn Socket>) })
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        match self.spawns {
            Spawns::Refuses => return Err(task),
            Spawns::Swallows => drop(task),
            Spawns::Drives | Spawns::Drops(_) => self.spawned.lock().unwrap().push(task),
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Task {
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    woken: Arc<Flag>,
    polls: usize,
    /// Dropped at this poll.
    drops_at: Option<usize>,
    /// Not polled from this poll on until nothing else can run.
    parks_at: Option<usize>,
    /// Belongs to the connection.
    own: bool,
}

impl Task {
    fn new(future: Pin<Box<dyn Future<Output = ()> + Send>>) -> Self {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        Task { future: Some(future), woken, polls: 0, drops_at: None, parks_at: None, own: false }
    }

    fn parks(&self) -> bool {
        self.parks_at.is_some_and(|at| self.polls >= at)
    }

    fn is_runnable(&self) -> bool {
        self.future.is_some() && !self.parks() && self.woken.0.load(Ordering::SeqCst)
    }

    fn run(&mut self) {
        if self.drops_at.is_some_and(|at| self.polls >= at) {
            self.future = None;
            return;
        }
        self.polls += 1;
        self.woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Some(future) = &mut self.future
            && future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            self.future = None;
        }
    }
}

/// What a task does.
#[derive(Debug, Clone, Copy)]
enum Job {
    Get,
    Upload(usize),
    Tunnel(usize),
}

impl Job {
    fn any(dice: &mut Dice) -> Self {
        let len = if dice.one_in(8) { 150_000 } else { dice.below(3000) };
        match dice.below(6) {
            0 | 1 => Job::Upload(len),
            2 => Job::Tunnel(len),
            _ => Job::Get,
        }
    }

    async fn run(self, client: Client) {
        match self {
            Job::Get => call(client.get("http://127.0.0.1/")).await,
            Job::Upload(len) => {
                call(client.post("http://127.0.0.1/").body(vec![1; len])).await;
            }
            Job::Tunnel(len) => tunnel(client, len).await,
        }
    }
}

/// Reader and writer have wakers of their own.
async fn tunnel(client: Client, len: usize) {
    let ask = client.request(mimus::Method::CONNECT, "http://127.0.0.1/").protocol("websocket");
    let (mut from, mut to) =
        ask.send().await.expect("an answer").upgrade().expect("a tunnel").split();
    let halves: [BoxFuture<'static, ()>; 2] = [
        Box::pin(async move {
            for piece in vec![7; len].chunks(20_000) {
                to.write_all(piece).await.expect("it is taken");
                to.flush().await.expect("it is written");
            }
            to.close().await.expect("it is ended");
        }),
        Box::pin(async move {
            let mut back = Vec::new();
            from.read_to_end(&mut back).await.expect("its end");
            assert!(
                back.len() == len && back.iter().all(|&byte| byte == 7),
                "{} bytes",
                back.len()
            );
        }),
    ];
    FuturesUnordered::from_iter(halves).collect::<()>().await;
}

async fn call(call: RequestBuilder) {
    let response = call.version(Version::HTTP_2).send().await.expect("an answer");
    let body = response.bytes().await.expect("a whole body");
    let len = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
    assert_eq!(body.len(), len + 4, "all of the body");
    assert!(body[4..].windows(2).all(|two| two[0] == two[1]), "nothing of another's");
}

/// Runs all there is to run. Whether everybody who is not parked came to his end.
fn exhaust(tasks: &mut Vec<Task>, world: &World, dice: &mut Dice) -> bool {
    loop {
        let spawned = std::mem::take(&mut *world.spawned.lock().unwrap());
        for future in spawned {
            let mut task = Task::new(future);
            task.own = true;
            if let Spawns::Drops(at) = world.spawns {
                task.drops_at = Some(at);
            }
            tasks.push(task);
        }
        let runnable: Vec<usize> = (0..tasks.len()).filter(|&n| tasks[n].is_runnable()).collect();
        let wires = world.wires.lock().unwrap().clone();
        if !runnable.is_empty() && (wires.is_empty() || !dice.one_in(3)) {
            tasks[runnable[dice.below(runnable.len())]].run();
            continue;
        }
        let mut moved = false;
        for wire in &wires {
            let (did, wakers) = wire.lock().unwrap().step();
            moved |= did || !wakers.is_empty();
            wakers.into_iter().for_each(Waker::wake);
        }
        if !moved && runnable.is_empty() {
            return tasks.iter().all(|task| task.own || task.parks() || task.future.is_none());
        }
    }
}

fn run(seed: u64, tls: &TlsConfig) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..4).for_each(|_| _ = dice.next());
    let spawns = match dice.below(4) {
        0 => Spawns::Drives,
        1 => Spawns::Refuses,
        2 => Spawns::Swallows,
        _ => Spawns::Drops(dice.below(12)),
    };
    // Who is parked keeps his place: where places are few, that is nobody's fault.
    let (most, parks) =
        if dice.one_in(2) { (1 + dice.below(4) as u32, false) } else { (100, true) };
    let world = World {
        spawns,
        most,
        dice: Arc::new(Mutex::new(dice.clone())),
        wires: Arc::default(),
        spawned: Arc::default(),
    };
    let client = Client::builder().no_proxy().tls(tls.clone()).runtime(world.clone());
    let client = client.max_connections_per_host(1).build().unwrap();
    let mut tasks: Vec<Task> = (0..2 + dice.below(9))
        .map(|_| {
            let jobs: Vec<_> = (0..1 + dice.below(3)).map(|_| Job::any(&mut dice)).collect();
            let client = client.clone();
            let mut task = Task::new(Box::pin(async move {
                for job in jobs {
                    job.run(client.clone()).await;
                }
            }));
            // The first polls dial: a parked dialler holds up who waits for his dial.
            match dice.below(4) {
                0 => task.drops_at = Some(dice.below(12)),
                1 if parks => task.parks_at = Some(4 + dice.below(8)),
                _ => {}
            }
            task
        })
        .collect();
    let note = format!("seed {seed}: {spawns:?}, {most} places, {} tasks", tasks.len());
    assert!(exhaust(&mut tasks, &world, &mut dice), "{note}: somebody waits for ever");
    tasks.iter_mut().for_each(|task| task.parks_at = None);
    assert!(
        exhaust(&mut tasks, &world, &mut dice),
        "{note}: somebody who was parked waits for ever"
    );
    assert_eq!(client.pool_stats().in_use, 0, "{note}: {:?}", client.pool_stats());
    assert!(
        world.wires.lock().unwrap().iter().all(|w| !w.lock().unwrap().server.overload),
        "{note}"
    );
    drop(client);
    exhaust(&mut tasks, &world, &mut dice);
    assert!(
        tasks.iter().all(|task| task.future.is_none()),
        "{note}: a task outlives its connection"
    );
    assert!(world.wires.lock().unwrap().iter().all(|w| w.lock().unwrap().closed), "{note}: a leak");
}

#[test]
fn every_call_that_is_not_dropped_comes_to_its_end() {
    let tls = TlsConfig::builder().build().unwrap();
    let seeds = match std::env::var("SCHEDULE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    let failed: Vec<u64> =
        seeds.filter(|&seed| std::panic::catch_unwind(|| run(seed, &tls)).is_err()).collect();
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}
