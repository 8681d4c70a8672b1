//! Each of the limits on what a server may ask for, by its name, and what it was made against.

use std::time::Duration;

use mimus_proto::h2::{Busy, Code, Limits, Opening, SettingId, StreamError};
use mimus_proto::{Error, LimitExceeded};

use crate::rig::*;

/// Feeds the same bytes until the connection ends; gives the error and how often they were taken.
fn flood(rig: &mut Rig, mut bytes: impl FnMut(&mut Rig) -> Vec<u8>) -> (Error, u32) {
    for round in 0..100_000 {
        let bytes = bytes(rig);
        if let Err(error) = rig.feed(&bytes) {
            let last = rig.frames().pop().expect("a GOAWAY");
            assert_eq!((last.kind, Code(last.number())), (GOAWAY, Code::ENHANCE_YOUR_CALM));
            return (error, round);
        }
        rig.frames();
    }
    panic!("a flood without end");
}

/// A stream fails because of a limit, and the connection goes on.
fn too_much(change: impl FnOnce(&mut Limits), frames: &[Vec<u8>]) -> LimitExceeded {
    let mut rig = Rig::limited(change);
    let stream = rig.get();
    let (last, code) = rig.resets(stream, &frames.concat());
    assert_eq!(Code(code), Code::ENHANCE_YOUR_CALM);
    let other = rig.get();
    rig.ok(&status(other.id(), END_STREAM, "204"));
    assert_eq!(rig.events(other), [head(204), Seen::End]);
    match last {
        Seen::Error(StreamError::Failed(Error::LimitExceeded(limit))) => limit,
        other => panic!("no limit: {other:?}"),
    }
}

#[test]
fn head_bytes_bound_a_head_and_trailers() {
    let long = "x".repeat(200);
    let fields = [(":status", "200"), ("a", &long)];
    // RFC 9113 section 6.5.2: 7 + 3 + 32 and 1 + 200 + 32.
    let limit = |bytes| move |limits: &mut Limits| limits.head_bytes = bytes;
    let frames = [headers(1, END_STREAM, &fields)];
    assert_eq!(too_much(limit(274), &frames), LimitExceeded::HeadBytes);
    let mut rig = Rig::limited(limit(275));
    let stream = rig.get();
    rig.ok(&frames[0]);
    assert_eq!(rig.events(stream).len(), 2);
    let trailers = [status(1, 0, "200"), headers(1, END_STREAM, &[("a", &long), ("b", &long)])];
    assert_eq!(too_much(limit(275), &trailers), LimitExceeded::HeadBytes);
}

#[test]
fn fields_bound_a_head() {
    let fields = [(":status", "200"), ("a", "1"), ("b", "2"), ("c", "3")];
    let frames = [headers(1, END_STREAM, &fields)];
    assert_eq!(too_much(|limits| limits.fields = 2, &frames), LimitExceeded::Fields);
    let mut rig = Rig::limited(|limits| limits.fields = 3);
    let stream = rig.get();
    rig.ok(&frames[0]);
    assert_eq!(rig.events(stream).len(), 2);
}

#[test]
fn informational_responses_are_bounded_in_number_and_size() {
    let few = |limits: &mut Limits| limits.informational = 3;
    let frames: Vec<_> = (0..4).map(|_| status(1, 0, "103")).collect();
    assert_eq!(too_much(few, &frames), LimitExceeded::Informational);
    let link = "x".repeat(300);
    let hint = headers(1, 0, &[(":status", "103"), ("link", &link)]);
    let small = |limits: &mut Limits| limits.head_bytes = 1000;
    assert_eq!(too_much(small, &vec![hint; 3]), LimitExceeded::HeadBytes);
}

#[test]
fn header_block_bounds_what_is_collected() {
    let mut rig = Rig::limited(|limits| limits.header_block = 30_000);
    rig.get();
    rig.ok(&frame(HEADERS, 0, 1, &[0x88; 16_000]));
    let (error, code) = rig.fails(&frame(CONTINUATION, 0, 1, &[0x88; 16_000]));
    assert_eq!(error, LimitExceeded::HeaderBlock.into());
    assert_eq!(Code(code), Code::ENHANCE_YOUR_CALM);
    // Not even read into the buffer when one frame could hold it.
    let mut opening = Opening::default();
    opening.settings.push((SettingId::MAX_FRAME_SIZE, 1 << 20));
    let mut rig = Rig::with(&opening, Limits::default());
    rig.ok(&settings(&[]));
    rig.get();
    let (error, _) = rig.fails(&frame(HEADERS, 0, 1, &[0x88; 500_000])[..100]);
    assert_eq!(error, LimitExceeded::HeaderBlock.into());
}

#[test]
fn continuations_are_bounded_cve_2024_28182() {
    let mut rig = Rig::ready();
    rig.get();
    rig.ok(&frame(HEADERS, 0, 1, &[0x88]));
    let (error, rounds) = flood(&mut rig, |_| frame(CONTINUATION, 0, 1, &[]));
    assert_eq!((error, rounds), (LimitExceeded::Continuations.into(), 32));
}

#[test]
fn settings_entries_bound_a_frame() {
    let mut rig = Rig::ready();
    let many = vec![(0x3b3b, 1); 65];
    rig.ok(&settings(&many[..64]));
    let (error, code) = rig.fails(&settings(&many)[..9]);
    assert_eq!(error, LimitExceeded::SettingsEntries.into());
    assert_eq!(Code(code), Code::ENHANCE_YOUR_CALM);
}

#[test]
fn settings_floods_end_cve_2019_9515() {
    let (error, rounds) = flood(&mut Rig::ready(), |_| settings(&[]));
    assert_eq!(error, LimitExceeded::SettingsFlood.into());
    assert!((98..=100).contains(&rounds), "{rounds}");
    let (error, _) = flood(&mut Rig::ready(), |_| settings_ack());
    assert_eq!(error, LimitExceeded::SettingsFlood.into());
}

#[test]
fn ping_floods_end_cve_2019_9512() {
    let (error, rounds) = flood(&mut Rig::ready(), |_| ping(&[0; 8]));
    assert_eq!((error, rounds), (LimitExceeded::PingFlood.into(), 500));
    let (error, _) = flood(&mut Rig::ready(), |_| frame(PING, ACK, 0, &[0; 8]));
    assert_eq!(error, LimitExceeded::PingFlood.into());
}

#[test]
fn useful_frames_and_time_earn_an_allowance_back() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&status(1, 0, "200"));
    for _ in 0..10_000 {
        rig.ok(&[data(1, 0, b"x"), ping(&[0; 8]).repeat(10)].concat());
        rig.events(stream);
        rig.frames();
    }
    for _ in 0..100 {
        rig.wait(Duration::from_secs(10));
        rig.client.handle_timeout(rig.now);
        rig.ok(&ping(&[0; 8]).repeat(400));
        let pong = rig.frames().into_iter().find(|frame| frame.kind == PING && frame.flags == 0);
        if let Some(ours) = pong {
            rig.ok(&frame(PING, ACK, 0, &ours.payload));
        }
    }
}

#[test]
fn rapid_resets_end_cve_2023_44487() {
    let (error, rounds) = flood(&mut Rig::ready(), |rig| {
        let stream = rig.get();
        rst(stream.id(), 7)
    });
    assert_eq!((error, rounds), (LimitExceeded::RapidReset.into(), 500));
}

#[test]
fn provoked_resets_end_cve_2025_8671() {
    let (error, rounds) = flood(&mut Rig::ready(), |rig| {
        let stream = rig.post();
        window_update(stream.id(), 0)
    });
    assert_eq!((error, rounds), (LimitExceeded::ProvokedResets.into(), 100));
}

#[test]
fn empty_frames_end_cve_2019_9518() {
    for empty in [data(1, 0, b""), padded(1, 0, b"", 20)] {
        let mut rig = Rig::ready();
        rig.get();
        rig.ok(&status(1, 0, "200"));
        let (error, rounds) = flood(&mut rig, |_| empty.clone());
        assert_eq!((error, rounds), (LimitExceeded::EmptyFrames.into(), 100));
    }
}

#[test]
fn idle_frames_end() {
    let idle = [
        frame(PRIORITY, 0, 1, &[0; 5]),
        frame(0xbb, 0, 0, b""),
        window_update(1, 1),
        rst(1, 0),
        go_away(9, 0),
    ];
    for idle in idle {
        let mut rig = Rig::ready();
        let stream = rig.get();
        rig.ok(&status(1, END_STREAM, "204"));
        rig.events(stream);
        let (error, rounds) = flood(&mut rig, |_| idle.clone());
        assert_eq!(error, LimitExceeded::IdleFrames.into());
        assert!(rounds >= 1000, "{rounds}");
    }
}

#[test]
fn unsent_replies_end_cve_2019_9517() {
    let mut rig = Rig::limited(|limits| (limits.pings, limits.unsent_replies) = (5000, 50));
    // The acknowledgement of SETTINGS was written, but counts until the next bytes are.
    let mut rounds = 0;
    let error = loop {
        // Nothing is written.
        if let Err(error) = rig.feed(&ping(&[0; 8])) {
            break error;
        }
        rounds += 1;
    };
    assert_eq!((error, rounds), (LimitExceeded::UnsentReplies.into(), 49));
    let mut rig = Rig::limited(|limits| (limits.pings, limits.unsent_replies) = (5000, 50));
    for _ in 0..1000 {
        rig.ok(&ping(&[0; 8]));
        rig.frames();
    }
}

#[test]
fn streams_bound_what_is_open() {
    let mut rig = Rig::limited(|limits| limits.streams = 2);
    rig.get();
    rig.get();
    assert_eq!(rig.client.can_open(), Err(Busy::Full));
}

#[test]
fn streams_before_settings_bound_what_is_open() {
    let mut limits = Limits::default();
    limits.streams_before_settings = 1;
    let mut rig = Rig::with(&Opening::default(), limits);
    rig.get();
    assert_eq!(rig.client.can_open(), Err(Busy::Full));
    rig.ok(&settings(&[]));
    assert_eq!((rig.client.can_open(), rig.client.max_streams()), (Ok(()), 1000));
}

#[test]
fn stream_window_bounds_what_a_sleeper_holds() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&status(1, 0, "200"));
    for _ in 0..64 {
        rig.ok(&data(1, 0, &[0; 16_384]));
    }
    let granted: Vec<_> = rig.kinds().into_iter().filter(|(_, id)| *id == 1).collect();
    assert_eq!(granted, [], "not opened again before somebody reads");
    assert_eq!(data_len(&rig.events(stream)), 1 << 20);
}

#[test]
fn unread_bounds_what_all_sleepers_hold() {
    let mut rig = Rig::limited(|limits| limits.unread = 3 << 20);
    let mut window = 4 << 20;
    let mut held = 0;
    let streams: Vec<_> = (0..10).map(|_| rig.get()).collect();
    'all: for stream in &streams {
        rig.ok(&status(stream.id(), 0, "200"));
        for _ in 0..64 {
            if window < 16_384 {
                break 'all;
            }
            rig.ok(&data(stream.id(), 0, &[0; 16_384]));
            (window, held) = (window - 16_384, held + 16_384);
            let updates = rig.frames().into_iter().filter(|frame| frame.stream == 0);
            window += updates.filter(|f| f.kind == WINDOW_UPDATE).map(|f| f.number()).sum::<u32>();
        }
    }
    assert!(held <= 4 << 20, "{held}");
    // Somebody reads: it goes on.
    let read: usize = streams.iter().map(|stream| data_len(&rig.events(*stream))).sum();
    assert_eq!(read, held);
    let kinds = rig.kinds();
    assert!(kinds.contains(&(WINDOW_UPDATE, 0)), "{kinds:?}");
}

#[test]
fn unread_heads_are_bounded_too() {
    let mut rig = Rig::limited(|limits| limits.unread = 100_000);
    let long = "x".repeat(10_000);
    let mut failed = 0;
    for _ in 0..50 {
        let stream = rig.get();
        rig.ok(&headers(stream.id(), 0, &[(":status", "200"), ("a", &long)]));
        failed += rig.frames().iter().filter(|frame| frame.kind == RST_STREAM).count();
    }
    assert_eq!(failed, 31, "nineteen of them are 200 000 bytes");
}

#[test]
fn one_byte_frames_do_not_multiply_in_memory() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&status(1, 0, "200"));
    for _ in 0..50_000 {
        rig.ok(&data(1, 0, b"x"));
    }
    let mut events = 0;
    while let Some(event) = rig.client.poll_event(stream).expect("a good stream") {
        if let mimus_proto::Event::Data(data) = event {
            assert!(data.iter().all(|&byte| byte == b'x'));
            events += 1;
        }
    }
    assert!(events < 5, "{events} pieces");
}

#[test]
fn send_queue_bounds_what_is_asked_of_a_body() {
    let mut rig = Rig::limited(|limits| limits.send_queue = 1000);
    rig.ok(&settings(&[(4, 1 << 20)]));
    let stream = rig.post();
    assert_eq!(rig.client.capacity(stream), 1000);
}

#[test]
fn encoder_table_bounds_ours() {
    let mut rig = Rig::limited(|limits| limits.encoder_table = 100);
    rig.ok(&settings(&[(1, 1 << 30)]));
    rig.frames();
    let many = fields([("a", "0123456789"), ("b", "0123456789"), ("c", "0123456789")]);
    rig.try_open(&line(&http::Method::GET, &many, true)).expect("a stream");
    let frames = rig.frames();
    rig.decode(&frames[0].payload);
    assert!(rig.decoder.table_size() <= 100);
}

#[test]
fn a_table_that_the_server_shrinks_is_shrunk_in_the_next_head() {
    let mut rig = Rig::ready();
    rig.ok(&settings(&[(1, 0), (1, 50)]));
    let acks = rig.frames();
    assert_eq!(acks.len(), 1);
    rig.decoder.set_max_size(0);
    rig.decoder.set_max_size(50);
    rig.ask(&http::Method::GET, true);
    let frames = rig.frames();
    // RFC 7541 section 4.2: the smallest, then the last.
    assert_eq!(frames[0].payload[..3], [0x20, 0x3f, 19]);
    assert_eq!(rig.decode(&frames[0].payload).len(), 4);
}

#[test]
fn reset_memory_bounds_what_is_known_of_late_frames() {
    let mut rig = Rig::limited(|limits| limits.reset_memory = 10);
    for _ in 0..100 {
        let stream = rig.get();
        rig.client.reset(stream, Code::CANCEL);
        rig.frames();
    }
    // Known and forgotten ones are tolerated alike, the latter within the allowance.
    rig.ok(&[status(199, 0, "200"), data(199, 0, b"x")].concat());
    rig.ok(&[status(3, 0, "200"), data(3, 0, b"x")].concat());
    let (error, _) = flood(&mut rig, |_| status(3, 0, "200"));
    assert_eq!(error, LimitExceeded::IdleFrames.into());
}

#[test]
fn an_hpack_bomb_does_not_grow_cve_2016_6581() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    // One entry of nearly the whole table, then thousands of references to it.
    let mut bomb = vec![0x88, 0x40, 1, b'a', 0x7f, 0xa1, 0x1e];
    bomb.extend_from_slice(&[b'x'; 4000]);
    bomb.resize(16_384, 0xbe);
    let (last, code) = rig.resets(stream, &frame(HEADERS, END_HEADERS, 1, &bomb));
    let limit = StreamError::Failed(LimitExceeded::HeadBytes.into());
    assert_eq!((last, Code(code)), (Seen::Error(limit), Code::ENHANCE_YOUR_CALM));
    // The table is right all the same.
    let next = rig.get();
    rig.ok(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x88, 0xbe]));
    let log = rig.events(next);
    assert!(matches!(&log[0], Seen::Head(200, fields) if fields[0].1.len() == 4000));
}

#[test]
fn heads_of_a_stream_that_was_reset_are_bounded() {
    let mut opening = Opening::default();
    opening.settings = vec![(SettingId::INITIAL_WINDOW_SIZE, 1000)];
    let mut rig = Rig::with(&opening, Limits::default());
    rig.ok(&settings(&[]));
    let stream = rig.get();
    rig.client.reset(stream, Code::CANCEL);
    let (error, rounds) = flood(&mut rig, |_| status(1, 0, "200"));
    assert_eq!(error, LimitExceeded::IdleFrames.into());
    assert!(rounds < 1100, "{rounds}");
}
