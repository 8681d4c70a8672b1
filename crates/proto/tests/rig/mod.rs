//! Two machines, a wire between them, and a clock that moves only when told.

#![allow(dead_code, unreachable_pub)] // Every test file uses a part; the fuzz targets, another crate, too.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use http::{Method, Version};
use mimus_proto::h1::{Client, Limits, Server};
use mimus_proto::{BodyLength, Error, Event, Fields, RequestHead, ResponseHead};

/// What a machine reported, flattened so that two runs can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Informational(u16),
    Response(u16, Vec<u8>, Version, Pairs),
    Request(Method, String, Version, Pairs),
    /// Neighbouring pieces are joined: where they were cut means nothing.
    Data(Vec<u8>),
    Trailers(Pairs),
    End,
    Upgraded,
    /// Bytes that the machine left, or handed over with an upgrade.
    Rest(Vec<u8>),
    Error(Error),
}

/// Fields as plain data.
pub type Pairs = Vec<(String, Vec<u8>)>;

pub fn pairs(fields: &Fields) -> Pairs {
    fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

pub fn fields<const LEN: usize>(pairs: [(&str, &str); LEN]) -> Fields {
    Fields::try_from(pairs).expect("valid fields")
}

/// A head that can be flattened.
pub trait Head: std::fmt::Debug {
    fn seen(self) -> Seen;
}

impl Head for ResponseHead {
    fn seen(self) -> Seen {
        let reason = self.reason().to_owned();
        Seen::Response(self.status.as_u16(), reason, self.version, pairs(&self.fields))
    }
}

impl Head for RequestHead {
    fn seen(self) -> Seen {
        Seen::Request(self.method, self.target, self.version, pairs(&self.fields))
    }
}

/// What the two machines have in common.
pub trait Machine {
    type Head: Head;

    fn take(&mut self, bytes: &[u8]);
    fn close(&mut self);
    fn event(&mut self) -> Result<Option<Event<Self::Head>>, Error>;
    fn rest(&mut self) -> Vec<u8>;
    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize;
    fn wrote(&mut self, count: usize);
}

macro_rules! machine {
    ($machine:ty, $head:ty) => {
        impl Machine for $machine {
            type Head = $head;

            fn take(&mut self, bytes: &[u8]) {
                self.recv(bytes);
            }
            fn close(&mut self) {
                self.recv_eof();
            }
            fn event(&mut self) -> Result<Option<Event<$head>>, Error> {
                self.poll_event()
            }
            fn rest(&mut self) -> Vec<u8> {
                self.recv_buf().to_vec()
            }
            fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
                self.poll_transmit(slices)
            }
            fn wrote(&mut self, count: usize) {
                self.transmitted(count);
            }
        }
    };
}

machine!(Client, ResponseHead);
machine!(Server, RequestHead);

/// Polls until there is no more; stops at an error.
pub fn drain(machine: &mut impl Machine, log: &mut Vec<Seen>) {
    loop {
        let seen = match machine.event() {
            Ok(None) => return,
            Ok(Some(event)) => event,
            Err(error) => {
                assert!(matches!(machine.event(), Err(again) if again == error), "errors stay");
                if log.last() != Some(&Seen::Error(error)) {
                    log.push(Seen::Error(error));
                }
                return;
            }
        };
        note(seen, log);
    }
}

fn note<H: Head>(event: Event<H>, log: &mut Vec<Seen>) {
    match event {
        Event::Informational(head) => log.push(Seen::Informational(head.status.as_u16())),
        Event::Head(head) => log.push(head.seen()),
        Event::Trailers(fields) => log.push(Seen::Trailers(pairs(&fields))),
        Event::End => log.push(Seen::End),
        Event::Data(data) => {
            assert!(!data.is_empty(), "data is never empty");
            match log.last_mut() {
                Some(Seen::Data(before)) => before.extend_from_slice(&data),
                _ => log.push(Seen::Data(data.to_vec())),
            }
        }
        Event::Upgraded(rest) => {
            log.push(Seen::Upgraded);
            log.push(Seen::Rest(rest.to_vec()));
        }
        other => panic!("an event that the rig does not know: {other:?}"),
    }
}

/// Feeds `input` in pieces that end at `cuts` (taken modulo what is left), drains after each, and
/// closes at the end. Gives everything that was seen, then what was left.
pub fn feed(machine: &mut impl Machine, input: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut log = Vec::new();
    let mut rest = input;
    for &cut in cuts {
        let (piece, after) = rest.split_at(cut % (rest.len() + 1));
        machine.take(piece);
        drain(machine, &mut log);
        rest = after;
    }
    machine.take(rest);
    drain(machine, &mut log);
    machine.close();
    drain(machine, &mut log);
    leave(machine, &mut log);
    log
}

fn leave(machine: &mut impl Machine, log: &mut Vec<Seen>) {
    if matches!(log.last(), Some(Seen::Error(_))) {
        return;
    }
    let left = machine.rest();
    match log.last_mut() {
        Some(Seen::Rest(before)) => before.extend_from_slice(&left),
        _ if !left.is_empty() => log.push(Seen::Rest(left)),
        _ => {}
    }
}

/// Takes everything that a machine wants written, at most `slices` slices a time.
pub fn written(machine: &mut impl Machine, slices: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    loop {
        let mut filled = vec![IoSlice::new(&[]); slices];
        let count = machine.slices(&mut filled);
        if count == 0 {
            return wire;
        }
        let before = wire.len();
        filled[..count].iter().for_each(|slice| wire.extend_from_slice(slice));
        assert!(wire.len() > before, "a filled slice has bytes");
        let count = wire.len() - before;
        machine.wrote(count);
    }
}

/// A client that has asked for `/` with this method, and written the request.
pub fn asked(method: &Method) -> Client {
    asked_with(method, &fields([("Host", "h")]))
}

/// The same with these fields.
pub fn asked_with(method: &Method, fields: &Fields) -> Client {
    let mut client = Client::new(Limits::default());
    client.send_head(method, "/", fields, BodyLength::None).expect("a valid head");
    written(&mut client, 4);
    client
}

/// What a client sees of `response`, to a GET.
pub fn response(input: &str) -> Vec<Seen> {
    feed(&mut asked(&Method::GET), input.as_bytes(), &[])
}

/// What a server sees of `request`.
pub fn request(input: &str) -> Vec<Seen> {
    feed(&mut Server::new(Limits::default()), input.as_bytes(), &[])
}

/// The error that ended a log, if one did.
pub fn error(log: &[Seen]) -> Option<Error> {
    match log.last() {
        Some(Seen::Error(error)) => Some(*error),
        _ => None,
    }
}

/// The body in a log.
pub fn body(log: &[Seen]) -> Vec<u8> {
    let data = log.iter().filter_map(|seen| match seen {
        Seen::Data(data) => Some(data.as_slice()),
        _ => None,
    });
    data.flatten().copied().collect()
}

/// Both ends of one connection.
pub struct Pair {
    pub client: Client,
    pub server: Server,
    pub now: Instant,
    pub at_client: Vec<Seen>,
    pub at_server: Vec<Seen>,
}

impl Pair {
    pub fn connect() -> Self {
        Self {
            client: Client::new(Limits::default()),
            server: Server::new(Limits::default()),
            now: Instant::now(),
            at_client: Vec::new(),
            at_server: Vec::new(),
        }
    }

    /// Moves bytes both ways until both are silent.
    pub fn settle(&mut self) {
        loop {
            let up = written(&mut self.client, 3);
            self.server.recv(&up);
            drain(&mut self.server, &mut self.at_server);
            let down = written(&mut self.server, 3);
            self.client.recv(&down);
            drain(&mut self.client, &mut self.at_client);
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }

    /// Lets time pass, and tells the client.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.client.handle_timeout(self.now);
        self.settle();
    }
}
