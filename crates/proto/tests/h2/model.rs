//! A client, and a server that keeps count of every window: they do what they are told, in any order.

#![allow(dead_code, unreachable_pub)] // The fuzz targets, another crate, use it, too.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use mimus_proto::h2::{Code, Limits, Opening, SettingId, Stream};

use super::rig::*;

/// One thing that one of the sides does. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub enum Step {
    Open { body: bool },
    Send { stream: usize, len: usize },
    End { stream: usize },
    Read { stream: usize, events: usize },
    Gather { stream: usize },
    TakeRest { stream: usize },
    GiveUp { stream: usize },
    Write,
    PeerHead { stream: usize, length: bool },
    PeerData { stream: usize, len: u32, padding: Option<u8> },
    PeerEnd { stream: usize },
    PeerReset { stream: usize },
    PeerGrant { stream: usize, by: u32 },
    PeerGrantAll { by: u32 },
    PeerWindow { size: u32 },
}

/// What the server knows of one stream.
#[derive(Debug)]
struct Peer {
    handle: Option<Stream>,
    /// What it may send, and what it lets the client send.
    credit: i64,
    granted: i64,
    head: bool,
    /// The server's half is done; the client's half is.
    ended: bool,
    heard_end: bool,
    reset: bool,
}

const STREAM: u32 = 20_000;
const CONNECTION: u32 = 70_000;

/// A client, and a server that keeps count of every window.
pub struct Model {
    rig: Rig,
    streams: BTreeMap<u32, Peer>,
    credit: i64,
    granted: i64,
    initial: i64,
}

impl Model {
    pub fn new() -> Self {
        let mut opening = Opening::default();
        opening.settings = vec![(SettingId::INITIAL_WINDOW_SIZE, STREAM)];
        opening.window_increment = Some(CONNECTION - 65_535);
        let mut limits = Limits::default();
        // Windows that do not grow, and nothing that is not about windows.
        (limits.stream_window, limits.connection_window) = (0, 0);
        // Unread bytes that are forgotten would keep the connection's window shut.
        limits.unread = CONNECTION;
        (limits.idle_frames, limits.empty_frames, limits.resets) = (9999, 9999, 9999);
        limits.settings = 9999;
        let mut rig = Rig::with(&opening, limits);
        rig.ok(&settings(&[]));
        rig.frames();
        let credit = i64::from(CONNECTION);
        Self { rig, streams: BTreeMap::new(), credit, granted: 65_535, initial: 65_535 }
    }

    /// The stream that a number means, among those that `fit`.
    fn pick(&self, number: usize, fit: impl Fn(&Peer) -> bool) -> Option<u32> {
        let ids: Vec<u32> =
            self.streams.iter().filter(|(_, peer)| fit(peer)).map(|(id, _)| *id).collect();
        (!ids.is_empty()).then(|| ids[number % ids.len()])
    }

    fn handle(&self, number: usize) -> Option<Stream> {
        let id = self.pick(number, |peer| peer.handle.is_some())?;
        self.streams[&id].handle
    }

    fn open(&mut self, body: bool) {
        if self.rig.client.can_open().is_err() {
            return;
        }
        let method = if body { Method::POST } else { Method::GET };
        let stream = self.rig.ask(&method, !body);
        let peer = Peer {
            handle: Some(stream),
            credit: i64::from(STREAM),
            granted: self.initial,
            head: false,
            ended: false,
            heard_end: false,
            reset: false,
        };
        self.streams.insert(stream.id(), peer);
        // The server cannot act on what it has not seen.
        self.write();
    }

    /// The server reads what the client writes, and counts.
    fn write(&mut self) {
        for frame in self.rig.frames() {
            if frame.stream == 0 {
                if frame.kind == WINDOW_UPDATE {
                    self.credit += i64::from(frame.number());
                    assert!(self.credit <= i64::from(CONNECTION), "more than the window");
                }
                continue;
            }
            let peer = self.streams.get_mut(&frame.stream).expect("a stream that was opened");
            match frame.kind {
                DATA => {
                    assert!(!peer.heard_end, "data behind the end");
                    peer.granted -= frame.payload.len() as i64;
                    self.granted -= frame.payload.len() as i64;
                    assert!(frame.payload.is_empty() || peer.granted >= 0, "stream overspent");
                    assert!(self.granted >= 0, "connection overspent");
                    peer.heard_end |= frame.flags & END_STREAM != 0;
                }
                HEADERS => peer.heard_end |= frame.flags & END_STREAM != 0,
                WINDOW_UPDATE => {
                    peer.credit += i64::from(frame.number());
                    assert!(peer.credit <= i64::from(STREAM), "more than the window");
                }
                RST_STREAM => {
                    assert!(!peer.reset, "reset twice");
                    peer.reset = true;
                }
                other => panic!("not expected: {other}"),
            }
        }
    }

    fn data(&mut self, number: usize, len: u32, padding: Option<u8>) {
        let Some(id) = self.pick(number, |peer| peer.head && !peer.ended && !peer.reset) else {
            return;
        };
        let peer = self.streams.get_mut(&id).expect("picked");
        let extra = padding.map_or(0, |padding| i64::from(padding) + 1);
        let len = i64::from(len).min(peer.credit - extra).min(self.credit - extra);
        if len < 0 {
            return;
        }
        peer.credit -= len + extra;
        self.credit -= len + extra;
        let bytes = vec![7; len as usize];
        let frame = match padding {
            None => data(id, 0, &bytes),
            Some(padding) => padded(id, 0, &bytes, padding),
        };
        self.rig.ok(&frame);
    }

    fn read(&mut self, number: usize, events: usize) {
        let Some(stream) = self.handle(number) else { return };
        for _ in 0..events {
            let _ = self.rig.client.poll_event(stream);
        }
    }

    fn give_up(&mut self, number: usize) {
        let Some(stream) = self.handle(number) else { return };
        self.rig.client.reset(stream, Code::CANCEL);
        self.streams.get_mut(&stream.id()).expect("known").handle = None;
    }

    pub fn step(&mut self, step: &Step) {
        let going = |peer: &Peer| !peer.ended && !peer.reset;
        match *step {
            Step::Open { body } => self.open(body),
            Step::Send { stream, len } => {
                if let Some(stream) = self.handle(stream) {
                    let _ = self.rig.client.send_data(stream, Bytes::from(vec![1; len]));
                }
            }
            Step::End { stream } => {
                if let Some(stream) = self.handle(stream) {
                    let _ = self.rig.client.send_end(stream, None);
                }
            }
            Step::Read { stream, events } => self.read(stream, events),
            Step::Gather { stream } => {
                if let Some(stream) = self.handle(stream) {
                    let _ = self.rig.client.gather(stream);
                }
            }
            Step::TakeRest { stream } => {
                if let Some(stream) = self.handle(stream) {
                    let _ = self.rig.client.take_rest(stream);
                }
            }
            Step::GiveUp { stream } => self.give_up(stream),
            Step::Write => self.write(),
            Step::PeerHead { stream, length: given_length } => {
                if let Some(id) = self.pick(stream, |peer| going(peer) && !peer.head) {
                    self.streams.get_mut(&id).expect("picked").head = true;
                    // More than comes: the end, if it is said, is a mistake then.
                    let length = ("content-length", "1000000");
                    let fields = [(":status", "200"), length];
                    let count = if given_length { 2 } else { 1 };
                    self.rig.ok(&headers(id, 0, &fields[..count]));
                }
            }
            Step::PeerData { stream, len, padding } => self.data(stream, len, padding),
            Step::PeerEnd { stream } => {
                if let Some(id) = self.pick(stream, |peer| going(peer) && peer.head) {
                    self.streams.get_mut(&id).expect("picked").ended = true;
                    self.rig.ok(&data(id, END_STREAM, b""));
                }
            }
            Step::PeerReset { stream } => {
                if let Some(id) = self.pick(stream, going) {
                    self.streams.get_mut(&id).expect("picked").ended = true;
                    self.rig.ok(&rst(id, 8));
                }
            }
            Step::PeerGrant { stream, by } => {
                if let Some(id) = self.pick(stream, |peer| going(peer) && !peer.heard_end) {
                    self.streams.get_mut(&id).expect("picked").granted += i64::from(by);
                    self.rig.ok(&window_update(id, by));
                }
            }
            Step::PeerGrantAll { by } => {
                self.granted += i64::from(by);
                self.rig.ok(&window_update(0, by));
            }
            Step::PeerWindow { size } => self.resize(size),
        }
    }

    fn resize(&mut self, size: u32) {
        // What is on its way was sent under the old windows.
        self.write();
        let by = i64::from(size) - self.initial;
        self.initial += by;
        self.streams.values_mut().for_each(|peer| peer.granted += by);
        self.rig.ok(&settings(&[(4, size)]));
    }

    /// Everybody reads; then every window is what it should be.
    pub fn settle(&mut self) {
        let handles: Vec<_> = self.streams.values().filter_map(|peer| peer.handle).collect();
        for &stream in &handles {
            while let Ok(Some(_)) = self.rig.client.poll_event(stream) {}
        }
        self.write();
        // What is not granted back is less than half.
        assert!(self.credit > i64::from(CONNECTION / 2), "{} of the connection", self.credit);
        for (id, peer) in &self.streams {
            if peer.handle.is_some() && !peer.ended && !peer.reset {
                assert!(peer.credit > i64::from(STREAM / 2), "{} of stream {id}", peer.credit);
            }
        }
        for stream in handles {
            self.rig.client.reset(stream, Code::CANCEL);
        }
        self.write();
        assert_eq!(self.rig.client.open_streams(), 0);
        assert!(self.rig.client.is_idle());
        assert!(self.credit > i64::from(CONNECTION / 2));
    }
}
