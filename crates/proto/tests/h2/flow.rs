//! Flow control, both ways (RFC 9113 sections 5.2 and 6.9).

use std::time::Duration;

use mimus_proto::h2::{Code, Limits, Opening, SettingId, Stream, StreamError};
use mimus_proto::{ApiMisuse, Error, PeerMisbehaved};

use crate::rig::*;

/// The payload lengths of the DATA frames written since the last call, by stream.
fn sent(rig: &mut Rig) -> Vec<(u32, usize)> {
    let frames = rig.frames();
    let data = frames.iter().filter(|frame| frame.kind == DATA);
    data.map(|frame| (frame.stream, frame.payload.len())).collect()
}

fn total(sent: &[(u32, usize)]) -> usize {
    sent.iter().map(|(_, len)| len).sum()
}

fn updates(rig: &mut Rig) -> Vec<(u32, u32)> {
    let frames = rig.frames();
    let updates = frames.iter().filter(|frame| frame.kind == WINDOW_UPDATE);
    updates.map(|frame| (frame.stream, frame.number())).collect()
}

#[test]
fn no_more_is_sent_than_the_windows_allow() {
    let mut rig = Rig::settings(&[(4, 20_000)]);
    let stream = rig.post();
    assert_eq!(rig.client.capacity(stream), 20_000);
    rig.send(stream, 100_000);
    assert_eq!(rig.client.capacity(stream), 0);
    assert_eq!(sent(&mut rig), [(1, 16_384), (1, 3616)]);
    assert!(!rig.client.has_output(), "the window is used up");
    // The stream's window alone.
    rig.ok(&window_update(1, 100_000));
    assert_eq!(total(&sent(&mut rig)), 65_535 - 20_000, "the connection's window is used up");
    rig.ok(&window_update(0, 10));
    assert_eq!(sent(&mut rig), [(1, 10)]);
    rig.ok(&window_update(0, 1 << 20));
    assert_eq!(total(&sent(&mut rig)), 100_000 - 65_545);
}

#[test]
fn frames_are_no_larger_than_the_server_takes() {
    let mut rig = Rig::settings(&[(5, 40_000), (4, 1 << 20)]);
    rig.ok(&window_update(0, 1 << 20));
    let stream = rig.post();
    rig.send(stream, 100_000);
    assert_eq!(sent(&mut rig), [(1, 40_000), (1, 40_000), (1, 20_000)]);
}

#[test]
fn a_window_may_become_negative_and_recovers() {
    let mut rig = Rig::settings(&[(4, 30_000)]);
    let stream = rig.post();
    rig.send(stream, 60_000);
    assert_eq!(total(&sent(&mut rig)), 30_000);
    // 30 000 used, 10 000 allowed: 20 000 below zero (section 6.9.2).
    rig.ok(&settings(&[(4, 10_000)]));
    assert_eq!((total(&sent(&mut rig)), rig.client.capacity(stream)), (0, 0));
    rig.ok(&window_update(1, 20_000));
    assert_eq!(total(&sent(&mut rig)), 0, "it is zero now");
    rig.ok(&settings(&[(4, 10_005)]));
    assert_eq!(sent(&mut rig), [(1, 5)]);
    rig.ok(&settings(&[(4, 65_535)]));
    assert_eq!(total(&sent(&mut rig)), 60_000 - 30_005);
}

#[test]
fn a_window_of_zero_still_lets_an_empty_end_go() {
    let mut rig = Rig::settings(&[(4, 0)]);
    let stream = rig.post();
    assert_eq!(rig.client.capacity(stream), 0);
    rig.client.send_end(stream, None).expect("an open body");
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (DATA, END_STREAM));
}

#[test]
fn streams_take_turns() {
    let mut rig = Rig::settings(&[(4, 1 << 20)]);
    rig.ok(&window_update(0, 1 << 20));
    let streams = [rig.post(), rig.post(), rig.post()];
    for stream in streams {
        rig.send(stream, 40_000);
    }
    let order: Vec<_> = sent(&mut rig).iter().map(|(stream, _)| *stream).collect();
    assert_eq!(order, [1, 3, 5, 1, 3, 5, 1, 3, 5]);
}

#[test]
fn a_stream_without_a_window_stalls_no_other() {
    let mut rig = Rig::settings(&[(4, 100)]);
    let (stalled, other) = (rig.post(), rig.post());
    rig.send(stalled, 1000);
    rig.send(other, 1000);
    rig.ok(&window_update(other.id(), 10_000));
    assert_eq!(sent(&mut rig), [(1, 100), (3, 1000)]);
}

#[test]
fn control_frames_go_ahead_of_data() {
    let mut rig = Rig::settings(&[(4, 1 << 20)]);
    rig.ok(&window_update(0, 1 << 20));
    let stream = rig.post();
    rig.send(stream, 1 << 20);
    let mut slices = [std::io::IoSlice::new(&[]); 64];
    let filled = rig.client.poll_transmit(&mut slices);
    let waits: usize = slices[..filled].iter().map(|slice| slice.len()).sum();
    assert!(waits < 160 * 1024, "{waits} bytes stand before a control frame");
    rig.ok(&ping(b"hurry up"));
    let kinds = rig.kinds();
    let place = kinds.iter().position(|(kind, _)| *kind == PING).expect("an answer");
    assert!(place <= 5 && kinds.len() > 60, "{place} of {}", kinds.len());
}

#[test]
fn small_pieces_share_a_frame() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    for _ in 0..100 {
        rig.send(stream, 10);
    }
    rig.client.send_end(stream, None).expect("an open body");
    let frames = rig.frames();
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].payload.len(), frames[0].flags), (1000, END_STREAM));
}

#[test]
fn news_of_room_wakes_the_owner() {
    let mut rig = Rig::settings(&[(4, 10)]);
    let stream = rig.post();
    while rig.client.next_stirred().is_some() {}
    rig.send(stream, 10);
    assert_eq!((rig.client.capacity(stream), rig.client.next_stirred()), (0, None));
    rig.frames();
    while rig.client.next_stirred().is_some() {}
    rig.ok(&window_update(1, 5));
    assert_eq!(rig.client.next_stirred(), Some(stream));
    assert_eq!((rig.client.capacity(stream), rig.client.next_stirred()), (5, None));
    rig.ok(&settings(&[(4, 12)]));
    assert_eq!(rig.client.next_stirred(), Some(stream));
    assert_eq!(rig.client.capacity(stream), 7);
}

#[test]
fn a_queue_that_drains_wakes_the_owner() {
    let mut rig = Rig::settings(&[(4, 1 << 20)]);
    rig.ok(&window_update(0, 1 << 20));
    let stream = rig.post();
    let room = rig.client.capacity(stream);
    assert_eq!(room, 128 * 1024);
    rig.send(stream, room);
    assert_eq!((rig.client.capacity(stream), rig.client.next_stirred()), (0, None));
    rig.frames();
    assert_eq!(rig.client.next_stirred(), Some(stream));
    assert_eq!(rig.client.capacity(stream), room);
}

#[test]
fn windows_beyond_the_largest_are_an_error() {
    let mut rig = Rig::ready();
    let overflow = Error::from(PeerMisbehaved::WindowOverflow);
    let expected = (overflow, Code::FLOW_CONTROL_ERROR.0);
    assert_eq!(rig.fails(&window_update(0, 0x7fff_ffff)), expected, "of the connection");

    for sends in [true, false] {
        let mut rig = Rig::ready();
        let stream = if sends { rig.post() } else { rig.get() };
        let (last, code) = rig.resets(stream, &window_update(1, 0x7fff_ffff));
        assert_eq!(last, Seen::Error(StreamError::Failed(overflow)), "of a stream");
        assert_eq!(Code(code), Code::FLOW_CONTROL_ERROR);
    }

    let mut rig = Rig::ready();
    rig.post();
    rig.ok(&window_update(1, 0x7fff_ffff - 65_535));
    assert_eq!(rig.fails(&settings(&[(4, 65_536)])), expected, "by SETTINGS");
}

#[test]
fn an_increment_of_zero_is_an_error() {
    let zero = Error::from(PeerMisbehaved::ZeroIncrement);
    let mut rig = Rig::ready();
    assert_eq!(rig.fails(&window_update(0, 0)), (zero, Code::PROTOCOL_ERROR.0));
    for sends in [true, false] {
        let mut rig = Rig::ready();
        let stream = if sends { rig.post() } else { rig.get() };
        let (last, code) = rig.resets(stream, &window_update(1, 0));
        assert_eq!(last, Seen::Error(StreamError::Failed(zero)));
        assert_eq!(Code(code), Code::PROTOCOL_ERROR);
    }
}

/// A client with these windows, of a stream and of the connection, that do not grow.
fn windows(stream: u32, connection: u32) -> Rig {
    let mut opening = Opening::default();
    opening.settings = vec![(SettingId::ENABLE_PUSH, 0), (SettingId::INITIAL_WINDOW_SIZE, stream)];
    opening.window_increment = connection.checked_sub(65_535);
    let mut limits = Limits::default();
    (limits.stream_window, limits.connection_window) = (stream, connection);
    let mut rig = Rig::with(&opening, limits);
    rig.ok(&settings(&[]));
    rig.frames();
    rig
}

#[test]
fn a_server_that_overspends_is_stopped() {
    let mut rig = windows(1000, 65_535);
    let stream = rig.get();
    rig.ok(&[status(1, 0, "200"), data(1, 0, &[0; 1000])].concat());
    let (last, code) = rig.resets(stream, &data(1, 0, b"x"));
    let overspent = Error::from(PeerMisbehaved::WindowOverspent);
    assert_eq!(last, Seen::Error(StreamError::Failed(overspent)));
    assert_eq!(Code(code), Code::FLOW_CONTROL_ERROR);

    // Nobody reads, and the limit on what is unread is met: the connection's window stays shut.
    let mut rig = Rig::limited(|limits| limits.unread = 1 << 20);
    let streams: Vec<_> = (0..5).map(|_| rig.get()).collect();
    let error = streams.iter().flat_map(|stream| {
        let id = stream.id();
        std::iter::once(status(id, 0, "200")).chain((0..64).map(move |_| data(id, 0, &[0; 16_384])))
    });
    let error = error.map(|bytes| rig.feed(&bytes)).find_map(Result::err);
    assert_eq!(error, Some(overspent), "of the connection");
}

#[test]
fn padding_counts_and_is_given_back() {
    let mut rig = windows(1000, 65_535);
    let stream = rig.get();
    rig.ok(&status(1, 0, "200"));
    for _ in 0..10 {
        rig.ok(&[padded(1, 0, b"x", 255), padded(1, 0, b"y", 241)].concat());
        // 256 + 242 with the length octets: two bytes short of half, and with them more.
        rig.events(stream);
    }
    let given: u32 = updates(&mut rig).iter().filter(|(id, _)| *id == 1).map(|(_, n)| n).sum();
    assert!(given >= 10 * 500 - 1000, "{given}");
}

#[test]
fn padding_alone_is_given_back_though_nobody_can_take_it() {
    let mut rig = windows(1000, 65_535);
    rig.get();
    rig.ok(&status(1, 0, "200"));
    for _ in 0..4 {
        rig.ok(&padded(1, 0, b"", 249));
    }
    assert_eq!(updates(&mut rig), [(1, 500), (1, 500)]);
}

#[test]
fn the_credit_of_a_stream_returns_when_its_consumer_takes_the_bytes() {
    let mut rig = windows(10_000, 1 << 20);
    let stream = rig.get();
    rig.ok(&[status(1, 0, "200"), data(1, 0, &[0; 4999])].concat());
    rig.events(stream);
    assert_eq!(updates(&mut rig), [], "less than half");
    rig.ok(&data(1, 0, &[0; 5001]));
    assert_eq!(updates(&mut rig), [], "nobody took it");
    rig.events(stream);
    assert_eq!(updates(&mut rig), [(1, 10_000)]);
    rig.ok(&data(1, END_STREAM, &[0; 10_000]));
    rig.events(stream);
    assert_eq!(updates(&mut rig), [], "an ended stream needs no window");
}

#[test]
fn a_consumer_that_sleeps_stalls_no_other() {
    let mut rig = windows(60_000, 65_535);
    let (sleeper, reader) = (rig.get(), rig.get());
    rig.ok(&[status(1, 0, "200"), status(3, 0, "200")].concat());
    for _ in 0..4 {
        rig.ok(&data(1, 0, &[0; 15_000]));
    }
    let mut granted = 65_535 - 60_000_i64;
    let mut read = 0;
    for _ in 0..200 {
        granted += updates(&mut rig)
            .iter()
            .filter(|(id, _)| *id == 0)
            .map(|(_, n)| i64::from(*n))
            .sum::<i64>();
        assert!(granted >= 5000, "the connection stalls");
        rig.ok(&data(3, 0, &[0; 5000]));
        granted -= 5000;
        read += data_len(&rig.events(reader));
    }
    assert_eq!(read, 1_000_000);
    assert_eq!(data_len(&rig.events(sleeper)), 60_000);
}

#[test]
fn the_credit_of_a_stream_given_up_is_not_forgotten() {
    let mut rig = windows(40_000, 65_535);
    let mut granted = 65_535_i64;
    for _ in 0..50 {
        let stream = rig.get();
        rig.ok(&[status(stream.id(), 0, "200"), data(stream.id(), 0, &[0; 10_000])].concat());
        rig.client.reset(stream, Code::CANCEL);
        // More was on its way.
        rig.ok(&data(stream.id(), 0, &[0; 10_000]));
        granted -= 20_000;
        granted += updates(&mut rig)
            .iter()
            .filter(|(id, _)| *id == 0)
            .map(|(_, n)| i64::from(*n))
            .sum::<i64>();
        assert!(granted > 30_000, "{granted}");
    }
}

#[test]
fn late_data_beyond_what_was_granted_ends_the_connection() {
    let mut rig = windows(10_000, 1 << 20);
    let stream = rig.get();
    rig.client.reset(stream, Code::CANCEL);
    rig.ok(&data(1, 0, &[0; 10_000]));
    let (error, code) = rig.fails(&data(1, 0, b"x"));
    assert_eq!(error, PeerMisbehaved::WindowOverspent.into());
    assert_eq!(Code(code), Code::FLOW_CONTROL_ERROR);
}

#[test]
fn windows_grow_with_what_comes_in_a_round_trip() {
    let mut opening = Opening::default();
    opening.settings = vec![(SettingId::INITIAL_WINDOW_SIZE, 65_535)];
    opening.window_increment = None;
    let mut limits = Limits::default();
    (limits.stream_window, limits.connection_window) = (300_000, 500_000);
    let mut rig = Rig::with(&opening, limits);
    rig.ok(&settings(&[]));
    let stream = rig.get();
    rig.ok(&status(1, 0, "200"));
    let (mut on_stream, mut on_connection) = (65_535_u32, 65_535_u32);
    let (mut most_stream, mut most_connection) = (0, 0);
    let mut probes = 0;
    for _ in 0..40 {
        // A round trip: all that is allowed, then the answer to a PING that came in it.
        let mut pong = None;
        let mut burst = on_stream.min(on_connection);
        while burst > 0 {
            let len = burst.min(16_384);
            rig.ok(&data(1, 0, &vec![0; len as usize]));
            (burst, on_stream, on_connection) = (burst - len, on_stream - len, on_connection - len);
            rig.events(stream);
            for frame in rig.frames() {
                match (frame.kind, frame.stream) {
                    (WINDOW_UPDATE, 0) => on_connection += frame.number(),
                    (WINDOW_UPDATE, _) => on_stream += frame.number(),
                    (PING, _) => pong = Some(frame.payload),
                    other => panic!("unexpected: {other:?}"),
                }
                most_stream = most_stream.max(on_stream);
                most_connection = most_connection.max(on_connection);
            }
        }
        if let Some(payload) = pong {
            probes += 1;
            rig.ok(&frame(PING, ACK, 0, &payload));
        }
    }
    assert_eq!((most_stream, most_connection), (300_000, 500_000), "up to the limits");
    assert!(probes < 20, "{probes} PINGs: no more when nothing can grow");
}

#[test]
fn a_small_exchange_sends_no_ping_and_no_update() {
    let mut rig = Rig::ready();
    for _ in 0..100 {
        let stream = rig.get();
        let id = stream.id();
        rig.ok(&[status(id, 0, "200"), data(id, END_STREAM, &[0; 1000])].concat());
        rig.events(stream);
        rig.client.reset(stream, Code::NO_ERROR);
        assert!(rig.frames().is_empty());
        rig.wait(Duration::from_millis(50));
    }
}

#[test]
fn a_body_is_as_long_as_its_content_length() {
    let mut rig = Rig::ready();
    let five = fields([("Content-Length", "5")]);
    let ask = |rig: &mut Rig| -> Stream {
        rig.try_open(&line(&http::Method::POST, &five, false)).expect("a stream")
    };
    let stream = ask(&mut rig);
    assert_eq!(rig.client.send_data(stream, "123456".into()), Err(ApiMisuse::BodyTooLong));
    rig.send(stream, 4);
    assert_eq!(rig.client.send_end(stream, None), Err(ApiMisuse::BodyTooShort));
    rig.send(stream, 1);
    assert_eq!(rig.client.send_end(stream, None), Ok(()));
    assert_eq!(rig.client.send_end(stream, None), Err(ApiMisuse::BodyOver));
    assert_eq!(rig.client.send_data(stream, "1".into()), Err(ApiMisuse::BodyOver));
}
