//! What holds for any bytes, and for any order of what both sides do.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use mimus_proto::Error;
use mimus_proto::h2::{Code, Limits, Opening, SettingId, Stream};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::rig::*;

/// Streams that are asked for before the server speaks: two GETs, a HEAD, an open POST.
fn asked() -> (Rig, Vec<Stream>) {
    let mut rig = Rig::ready();
    let streams = vec![rig.get(), rig.get(), rig.ask(&Method::HEAD, true), rig.post()];
    rig.frames();
    (rig, streams)
}

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![12 => prop::sample::select(vec![1, 3, 5, 7]), 1 => prop::sample::select(vec![0, 2, 9])]
}

fn section() -> impl Strategy<Value = Vec<u8>> {
    let name =
        prop::sample::select(vec!["server", "content-length", "x-bird", "Bad", "connection"]);
    let line = (name, "[0-9]{1,2}");
    let status = prop::sample::select(vec![":status", ":status", ":status", ":path"]);
    let value = prop::sample::select(vec!["200", "204", "103", "404", "101"]);
    (prop::option::weighted(0.8, (status, value)), vec(line, 0..3)).prop_map(|(status, lines)| {
        let lines = lines.iter().map(|(name, value)| (*name, value.as_str()));
        block(&status.into_iter().chain(lines).collect::<Vec<_>>())
    })
}

/// Frames that lead the machine into every corner, valid and not.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop::sample::select(vec![0, END_STREAM]);
    prop_oneof![
        6 => (id(), flags.clone(), section())
            .prop_map(|(id, flags, block)| frame(HEADERS, flags | END_HEADERS, id, &block)),
        2 => (id(), flags.clone(), section(), 0_usize..20).prop_map(|(id, flags, block, cut)| {
            let (first, rest) = block.split_at(cut.min(block.len()));
            [frame(HEADERS, flags, id, first), frame(CONTINUATION, END_HEADERS, id, rest)].concat()
        }),
        8 => (id(), flags.clone(), vec(any::<u8>(), 0..2000))
            .prop_map(|(id, flags, bytes)| data(id, flags, &bytes)),
        2 => (id(), flags, vec(any::<u8>(), 0..20), any::<u8>())
            .prop_map(|(id, flags, bytes, padding)| padded(id, flags, &bytes, padding)),
        1 => (id(), 0_u32..9).prop_map(|(id, code)| rst(id, code)),
        1 => (id(), 0_u32..9).prop_map(|(id, by)| window_update(id, by)),
        1 => (0_u16..9, 0_u32..90_000).prop_map(|(id, value)| settings(&[(id, value)])),
        1 => any::<[u8; 8]>().prop_map(|payload| ping(&payload)),
        1 => (0_u32..9, 0_u32..3).prop_map(|(last, code)| go_away(last, code)),
        1 => (any::<u8>(), any::<u8>(), id(), vec(any::<u8>(), 0..20))
            .prop_map(|(kind, flags, id, payload)| frame(kind, flags, id, &payload)),
    ]
}

/// What is seen of `input` when it comes in pieces that end at `cuts`.
fn feed(input: &[u8], cuts: &[usize]) -> (Vec<Vec<Seen>>, Option<Error>) {
    let (mut rig, streams) = asked();
    let mut logs = vec![Vec::new(); streams.len()];
    let mut rest = input;
    let mut error = None;
    let ends = cuts.iter().map(|cut| Some(*cut)).chain([None]);
    for end in ends {
        let at = end.map_or(rest.len(), |cut| cut % (rest.len() + 1));
        let (piece, after) = rest.split_at(at);
        rest = after;
        error = rig.feed(piece).err().or(error);
        for (stream, log) in streams.iter().zip(&mut logs) {
            drain(&mut rig.client, *stream, log);
        }
        rig.frames();
    }
    rig.client.recv_eof();
    let ended = rig.client.process(rig.now).err();
    for (stream, log) in streams.iter().zip(&mut logs) {
        drain(&mut rig.client, *stream, log);
        rig.client.reset(*stream, Code::CANCEL);
    }
    rig.frames();
    assert_eq!(rig.client.open_streams(), 0);
    (logs, error.or(ended))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn frames_mean_the_same_however_they_are_split(
        frames in vec(any_frame(), 0..12), cuts in vec(0_usize..3000, 0..12),
    ) {
        let input = frames.concat();
        prop_assert_eq!(feed(&input, &[]), feed(&input, &cuts));
    }

    #[test]
    fn frames_mean_the_same_byte_for_byte(frames in vec(any_frame(), 0..4)) {
        let input = frames.concat();
        prop_assert_eq!(feed(&input, &[]), feed(&input, &vec![1; input.len()]));
    }

    #[test]
    fn any_bytes_are_survived(input in vec(any::<u8>(), 0..300)) {
        let mut rig = Rig::with(&Opening::default(), Limits::default());
        let _ = rig.feed(&input);
        rig.frames();
        feed(&input, &[]);
    }
}

/// One thing that one of the sides does. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Open { body: bool },
    Send { stream: usize, len: usize },
    End { stream: usize },
    Read { stream: usize, events: usize },
    GiveUp { stream: usize },
    Write,
    PeerHead { stream: usize },
    PeerData { stream: usize, len: u32, padding: Option<u8> },
    PeerEnd { stream: usize },
    PeerReset { stream: usize },
    PeerGrant { stream: usize, by: u32 },
    PeerGrantAll { by: u32 },
    PeerWindow { size: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || 0_usize..100;
    prop_oneof![
        3 => any::<bool>().prop_map(|body| Step::Open { body }),
        4 => (stream(), 0_usize..30_000).prop_map(|(stream, len)| Step::Send { stream, len }),
        1 => stream().prop_map(|stream| Step::End { stream }),
        5 => (stream(), 0_usize..4).prop_map(|(stream, events)| Step::Read { stream, events }),
        1 => stream().prop_map(|stream| Step::GiveUp { stream }),
        4 => Just(Step::Write),
        3 => stream().prop_map(|stream| Step::PeerHead { stream }),
        8 => (stream(), 0_u32..12_000, prop::option::of(any::<u8>()))
            .prop_map(|(stream, len, padding)| Step::PeerData { stream, len, padding }),
        1 => stream().prop_map(|stream| Step::PeerEnd { stream }),
        1 => stream().prop_map(|stream| Step::PeerReset { stream }),
        3 => (stream(), 1_u32..40_000).prop_map(|(stream, by)| Step::PeerGrant { stream, by }),
        2 => (1_u32..40_000).prop_map(|by| Step::PeerGrantAll { by }),
        1 => (0_u32..60_000).prop_map(|size| Step::PeerWindow { size }),
    ]
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
struct Model {
    rig: Rig,
    streams: BTreeMap<u32, Peer>,
    credit: i64,
    granted: i64,
    initial: i64,
}

impl Model {
    fn new() -> Self {
        let mut opening = Opening::default();
        opening.settings = vec![(SettingId::INITIAL_WINDOW_SIZE, STREAM)];
        opening.window_increment = Some(CONNECTION - 65_535);
        let mut limits = Limits::default();
        // Windows that do not grow, and nothing that is not about windows.
        (limits.stream_window, limits.connection_window) = (0, 0);
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

    fn step(&mut self, step: &Step) {
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
            Step::GiveUp { stream } => self.give_up(stream),
            Step::Write => self.write(),
            Step::PeerHead { stream } => {
                if let Some(id) = self.pick(stream, |peer| going(peer) && !peer.head) {
                    self.streams.get_mut(&id).expect("picked").head = true;
                    self.rig.ok(&status(id, 0, "200"));
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
    fn settle(&mut self) {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn credit_is_conserved_whatever_both_sides_do(steps in vec(step(), 0..150)) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
        }
        model.settle();
    }
}
