//! Frames: their sizes, their order, the streams they may be about (RFC 9113 sections 4 to 6).

use std::time::Instant;

use http::Method;
use mimus_proto::h2::{Client, Code, Limits, Opening, SettingId, StreamError};
use mimus_proto::{Error, PeerMisbehaved};

use crate::rig::*;

/// What these bytes end a connection with on which stream 1 was asked for.
fn breach(bytes: &[u8]) -> (PeerMisbehaved, Code) {
    let mut rig = Rig::ready();
    rig.get();
    match rig.fails(bytes) {
        (Error::PeerMisbehaved(reason), code) => (reason, Code(code)),
        other => panic!("not the peer's fault: {other:?}"),
    }
}

#[test]
fn a_connection_that_does_not_begin_with_settings_is_refused() {
    let first: [&[u8]; 5] = [
        &ping(&[0; 8]),
        &settings_ack(),
        &window_update(0, 1),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &go_away(0, 0),
    ];
    for bytes in first {
        let mut rig = Rig::with(&Opening::default(), Limits::default());
        let expected = (PeerMisbehaved::NoSettings.into(), Code::PROTOCOL_ERROR.0);
        assert_eq!(rig.fails(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn frames_of_a_wrong_size_end_the_connection() {
    let wrong = [
        frame(DATA, 0, 1, &[0; 16_385]),
        frame(HEADERS, END_HEADERS, 1, &[0; 16_385]),
        frame(0xbb, 0, 1, &[0; 16_385]),
        frame(PRIORITY, 0, 1, &[0; 4]),
        frame(RST_STREAM, 0, 1, &[0; 3]),
        frame(RST_STREAM, 0, 1, &[0; 5]),
        frame(SETTINGS, 0, 0, &[0; 5]),
        frame(SETTINGS, ACK, 0, &[0; 6]),
        frame(PING, 0, 0, &[0; 7]),
        frame(GOAWAY, 0, 0, &[0; 7]),
        frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
        frame(WINDOW_UPDATE, 0, 1, &[0; 5]),
        frame(DATA, PADDED, 1, &[]),
        frame(HEADERS, PADDED | END_HEADERS, 1, &[]),
        frame(HEADERS, PRIO | END_HEADERS, 1, &[0; 4]),
    ];
    for bytes in wrong {
        let expected = (PeerMisbehaved::FrameSize, Code::FRAME_SIZE_ERROR);
        assert_eq!(breach(&bytes), expected, "{:?}", &bytes[..9]);
    }
}

#[test]
fn frames_up_to_the_announced_size_are_taken() {
    let mut opening = Opening::default();
    opening.settings.push((SettingId::MAX_FRAME_SIZE, 20_000));
    let mut rig = Rig::with(&opening, Limits::default());
    rig.ok(&settings(&[]));
    let stream = rig.get();
    rig.ok(&[status(1, 0, "200"), data(1, END_STREAM, &[7; 20_000])].concat());
    assert_eq!(data_len(&rig.events(stream)), 20_000);
}

#[test]
fn frames_on_the_wrong_kind_of_stream_end_the_connection() {
    let wrong = [
        data(0, 0, b"x"),
        headers(0, 0, &[(":status", "200")]),
        rst(0, 0),
        frame(PRIORITY, 0, 0, &[0; 5]),
        frame(SETTINGS, 0, 1, &[]),
        frame(PING, 0, 1, &[0; 8]),
        frame(GOAWAY, 0, 1, &[0; 8]),
    ];
    for bytes in wrong {
        let expected = (PeerMisbehaved::StreamId, Code::PROTOCOL_ERROR);
        assert_eq!(breach(&bytes), expected, "{bytes:?}");
    }
}

#[test]
fn frames_on_streams_that_were_never_opened_end_the_connection() {
    for id in [3, 2, 0x7fff_fffe, 0x7fff_ffff] {
        let wrong = [data(id, 0, b"x"), status(id, 0, "200"), rst(id, 0), window_update(id, 1)];
        for bytes in wrong {
            let expected = (PeerMisbehaved::FrameOnIdleStream, Code::PROTOCOL_ERROR);
            assert_eq!(breach(&bytes), expected, "{bytes:?}");
        }
    }
}

#[test]
fn a_header_block_is_not_interrupted() {
    let begun = frame(HEADERS, 0, 1, &block(&[(":status", "200")]));
    let rest = frame(CONTINUATION, END_HEADERS, 1, &block(&[("a", "b")]));
    let between = [
        data(1, 0, b"x"),
        ping(&[0; 8]),
        settings(&[]),
        frame(0xbb, 0, 1, &[]),
        frame(CONTINUATION, END_HEADERS, 3, &[]),
        status(1, 0, "200"),
    ];
    for frame in between {
        let bytes = [&begun[..], &frame, &rest].concat();
        let expected = (PeerMisbehaved::BrokenHeaderBlock, Code::PROTOCOL_ERROR);
        assert_eq!(breach(&bytes), expected, "{frame:?}");
    }
    let alone = breach(&rest);
    assert_eq!(alone, (PeerMisbehaved::BrokenHeaderBlock, Code::PROTOCOL_ERROR));
    let after_end = [status(1, 0, "200"), rest].concat();
    assert_eq!(breach(&after_end).0, PeerMisbehaved::BrokenHeaderBlock);
}

#[test]
fn a_header_block_in_pieces_is_one() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    let whole = block(&[(":status", "200"), ("server", "rig")]);
    let first = frame(HEADERS, END_STREAM, 1, &whole[..3]);
    let second = frame(CONTINUATION, 0, 1, &whole[3..3]);
    let third = frame(CONTINUATION, END_HEADERS, 1, &whole[3..]);
    rig.ok(&[first, second, third].concat());
    let expected = Seen::Head(200, vec![("server".into(), b"rig".into())]);
    assert_eq!(rig.events(stream), [expected, Seen::End]);
}

#[test]
fn padding_is_taken_off_and_no_more_than_there_is() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    let head = [&[3][..], &block(&[(":status", "200")]), &[0; 3]].concat();
    rig.ok(&frame(HEADERS, PADDED | END_HEADERS, 1, &head));
    rig.ok(&[padded(1, 0, b"pad", 255), padded(1, END_STREAM, b"ded", 0)].concat());
    assert_eq!(rig.events(stream), [head_200(), Seen::Data(b"padded".into()), Seen::End]);

    for kind in [DATA, HEADERS] {
        let bytes = frame(kind, PADDED | END_HEADERS, 1, &[4, 1, 2, 3]);
        assert_eq!(breach(&bytes), (PeerMisbehaved::BadPadding, Code::PROTOCOL_ERROR));
    }
}

fn head_200() -> Seen {
    head(200)
}

#[test]
fn priority_and_unknown_frames_are_ignored() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    let head = [&[0x80, 0, 0, 1, 9][..], &block(&[(":status", "204")])].concat();
    let bytes = [
        frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]),
        frame(0xbb, 0xff, 77, b"grease"),
        frame(0xbb, 0xff, 0, &[]),
        frame(HEADERS, PRIO | END_HEADERS | END_STREAM | 0xd2, 1, &head),
    ];
    rig.ok(&bytes.concat());
    assert_eq!(rig.events(stream), [self::head(204), Seen::End]);
    assert!(rig.frames().is_empty());
}

/// RFC 8336.
#[test]
fn a_server_says_which_origins_it_is_there_for() {
    const ORIGIN: u8 = 0x0c;
    let entry = |origin: &str| [&(origin.len() as u16).to_be_bytes(), origin.as_bytes()].concat();
    let (one, two) = ("https://one.test", "https://two.test:8443");
    let mut rig = Rig::limited(|limits| limits.origins = 3);
    // Until it says so, nothing is excluded; what is not valid says nothing.
    rig.ok(&frame(ORIGIN, 0, 3, &entry(one)));
    for flag in [1, 2, 4, 8] {
        rig.ok(&frame(ORIGIN, flag, 0, &entry(one)));
    }
    assert!(!rig.client.excludes(two));
    let odd = [
        entry("https://\u{fc}.test"),
        entry("http://one.test"),
        entry(""),
        entry("https://ONE.test"),
    ];
    // Other flags may come to mean something, which changes nothing.
    rig.ok(&frame(ORIGIN, 0xf0, 0, &odd.concat()));
    assert!(!rig.client.excludes(one) && rig.client.excludes(two));
    assert!(rig.client.excludes("https://one.test:8443") && rig.client.excludes("http://one.test"));
    // Later ones add to it, up to the limit; what is cut off ends it.
    let cut = [entry(two), vec![0, 99], b"https://cut.test".to_vec()].concat();
    rig.ok(&frame(ORIGIN, 0, 0, &cut));
    assert!(!rig.client.excludes(two) && rig.client.excludes("https://cut.test"));
    rig.ok(&frame(ORIGIN, 0, 0, &entry("https://four.test")));
    assert!(rig.client.excludes("https://four.test") && !rig.client.excludes(one));
    assert!(rig.frames().is_empty());
}

#[test]
fn the_reserved_bit_is_ignored() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&[status(1 | 1 << 31, END_STREAM, "204"), window_update(0, 1 | 1 << 31)].concat());
    assert_eq!(rig.events(stream), [head(204), Seen::End]);
}

#[test]
fn a_push_is_an_error_when_it_was_switched_off() {
    let promise = [&2_u32.to_be_bytes()[..], &block(&[(":method", "GET")])].concat();
    let bytes = frame(PUSH_PROMISE, END_HEADERS, 1, &promise);
    assert_eq!(breach(&bytes), (PeerMisbehaved::UnwantedPush, Code::PROTOCOL_ERROR));
}

/// A client whose SETTINGS say nothing of pushes.
fn open_to_pushes() -> Rig {
    let mut opening = Opening::default();
    opening.settings.clear();
    let mut rig = Rig::with(&opening, Limits::default());
    rig.ok(&settings(&[]));
    rig.frames();
    rig
}

#[test]
fn a_push_is_refused_when_nothing_was_said_of_pushes() {
    let mut rig = open_to_pushes();
    let stream = rig.get();
    // A field that enters the table, used again by the response: the block was decoded.
    let mut promise = 2_u32.to_be_bytes().to_vec();
    promise.extend_from_slice(b"\x40\x01a\x01b");
    let response = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88, 0xbe]);
    let pushed = [status(2, 0, "200"), data(2, END_STREAM, b"pushed")].concat();
    rig.ok(&[frame(PUSH_PROMISE, END_HEADERS, 1, &promise), pushed, response].concat());
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].stream), (RST_STREAM, 2));
    assert_eq!(Code(frames[0].number()), Code::REFUSED_STREAM);
    let expected = Seen::Head(200, vec![("a".into(), b"b".into())]);
    assert_eq!(rig.events(stream), [expected, Seen::End]);
}

#[test]
fn a_push_of_a_wrong_stream_ends_the_connection() {
    for (promised, on) in [(3, 1), (0, 1), (2, 5), (2, 4)] {
        let mut rig = open_to_pushes();
        rig.get();
        let promise = u32::to_be_bytes(promised);
        let (error, code) = rig.fails(&frame(PUSH_PROMISE, END_HEADERS, on, &promise));
        assert_eq!(Code(code), Code::PROTOCOL_ERROR, "{error:?}");
    }
}

#[test]
fn a_priority_update_from_a_server_ends_the_connection() {
    let bytes = frame(PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 1, b'u']);
    assert_eq!(breach(&bytes), (PeerMisbehaved::PriorityUpdate, Code::PROTOCOL_ERROR));
}

#[test]
fn settings_are_checked() {
    let protocol = (PeerMisbehaved::BadSetting, Code::PROTOCOL_ERROR);
    let flow = (PeerMisbehaved::BadInitialWindow, Code::FLOW_CONTROL_ERROR);
    let wrong = [
        (2, 1, protocol),
        (2, 2, protocol),
        (4, 1 << 31, flow),
        (5, 16_383, protocol),
        (5, 1 << 24, protocol),
        (8, 2, protocol),
        (9, 2, protocol),
    ];
    for (id, value, expected) in wrong {
        assert_eq!(breach(&settings(&[(id, value)])), expected, "{id:#x} = {value}");
    }
    // RFC 8441 section 3: not taken back.
    assert_eq!(breach(&settings(&[(8, 1), (8, 0)])), protocol);
}

#[test]
fn settings_are_applied_in_order_and_acknowledged() {
    let mut rig = Rig::settings(&[(3, 7)]);
    rig.ok(&settings(&[(3, 5), (0x3b3b, 9), (5, 20_000), (5, 30_000), (8, 1), (2, 0), (6, 9)]));
    let peer = *rig.client.peer_settings().expect("they came");
    assert_eq!(peer.max_concurrent_streams, Some(5));
    assert_eq!((peer.max_frame_size, peer.connect_protocol), (30_000, true));
    assert_eq!((peer.max_header_list_size, peer.initial_window_size), (Some(9), 65_535));
    let frames = rig.frames();
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].kind, frames[0].flags, frames[0].payload.len()), (SETTINGS, ACK, 0));
}

#[test]
fn a_ping_is_answered_with_what_it_said() {
    let mut rig = Rig::ready();
    rig.ok(&ping(b"chirping"));
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (PING, ACK));
    assert_eq!(frames[0].payload, b"chirping");
    rig.ok(&frame(PING, ACK, 0, b"whatever"));
    assert!(rig.frames().is_empty(), "an answer is not answered");
}

#[test]
fn a_block_that_cannot_be_decoded_ends_the_connection() {
    for fragment in [&[0x80][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], &[0x00, 0x05, b'a']] {
        let bytes = frame(HEADERS, END_HEADERS, 1, fragment);
        assert_eq!(breach(&bytes), (PeerMisbehaved::BadHeaderBlock, Code::COMPRESSION_ERROR));
    }
}

#[test]
fn a_table_size_beyond_ours_ends_the_connection() {
    // RFC 7541 section 6.3: 4097, where 4096 is the default.
    let bytes = frame(HEADERS, END_HEADERS, 1, &[0x3f, 0xe2, 0x1f, 0x88]);
    assert_eq!(breach(&bytes), (PeerMisbehaved::BadHeaderBlock, Code::COMPRESSION_ERROR));
}

#[test]
fn frames_behind_the_end_of_a_stream_end_the_connection() {
    for bytes in [data(1, 0, b"x"), status(1, 0, "200"), data(1, END_STREAM, b"")] {
        let bytes = [status(1, END_STREAM, "204"), bytes].concat();
        let expected = (PeerMisbehaved::FrameOnClosedStream, Code::STREAM_CLOSED);
        assert_eq!(breach(&bytes), expected);
        // The same when its owner is gone.
        let mut rig = Rig::ready();
        let stream = rig.get();
        let (end, late) = bytes.split_at(bytes.len() - (bytes.len() - status(1, 1, "204").len()));
        rig.ok(end);
        rig.client.reset(stream, Code::NO_ERROR);
        assert_eq!(rig.fails(late).1, Code::STREAM_CLOSED.0);
    }
}

#[test]
fn frames_behind_the_end_of_a_response_reset_a_stream_that_still_sends() {
    for late in [data(1, 0, b"x"), status(1, END_STREAM, "200")] {
        let mut rig = Rig::ready();
        let stream = rig.post();
        rig.ok(&status(1, END_STREAM, "204"));
        let (last, code) = rig.resets(stream, &late);
        assert_eq!((last, Code(code)), (Seen::End, Code::STREAM_CLOSED), "the response is whole");
        assert!(!rig.client.wants_body(stream));
    }
}

#[test]
fn frames_behind_a_reset_by_the_server_are_answered_by_a_reset() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&rst(1, 2));
    let (last, code) = rig.resets(stream, &data(1, 0, b"x"));
    assert_eq!(last, Seen::Error(StreamError::Reset(Code::INTERNAL_ERROR)));
    assert_eq!(Code(code), Code::STREAM_CLOSED);
}

#[test]
fn what_crosses_our_reset_is_tolerated() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.client.reset(stream, Code::CANCEL);
    let frames = rig.frames();
    assert_eq!((frames[0].kind, Code(frames[0].number())), (RST_STREAM, Code::CANCEL));
    // Its block enters the table: the next response uses it.
    let head = frame(HEADERS, END_HEADERS, 1, b"\x88\x40\x01a\x01b");
    rig.ok(&[head, data(1, 0, &[0; 9000]), window_update(1, 5)].concat());
    let next = rig.get();
    rig.ok(&[data(1, END_STREAM, b"x"), rst(1, 0)].concat());
    rig.ok(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x88, 0xbe]));
    let expected = Seen::Head(200, vec![("a".into(), b"b".into())]);
    assert_eq!(rig.events(next), [expected, Seen::End]);
    // After its end came, nothing can be late.
    assert_eq!(rig.fails(&data(1, 0, b"x")).1, Code::STREAM_CLOSED.0);
}

#[test]
fn updates_and_resets_of_closed_streams_are_ignored() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&status(1, END_STREAM, "204"));
    rig.ok(&[window_update(1, 10), window_update(1, 0), rst(1, 0)].concat());
    assert_eq!(rig.events(stream), [head(204), Seen::End]);
    rig.client.reset(stream, Code::NO_ERROR);
    rig.ok(&[window_update(1, 10), rst(1, 8), frame(PRIORITY, 0, 1, &[0; 5])].concat());
    assert!(rig.frames().is_empty());
}

#[test]
fn a_handle_that_is_void_names_no_other_stream() {
    let mut rig = Rig::ready();
    let first = rig.get();
    rig.client.reset(first, Code::CANCEL);
    let second = rig.ask(&Method::POST, false);
    assert!(rig.client.send_data(first, "x".into()).is_err());
    assert!(rig.client.send_end(first, None).is_err());
    assert_eq!(rig.client.capacity(first), 0);
    assert!(matches!(rig.client.poll_event(first), Err(StreamError::Misuse(_))));
    rig.client.reset(first, Code::CANCEL);
    rig.frames();
    rig.ok(&status(second.id(), END_STREAM, "204"));
    assert_eq!(rig.events(second), [head(204), Seen::End]);
}

#[test]
fn identifiers_end_and_the_connection_takes_no_more() {
    let mut opening = Opening::default();
    opening.first_stream = 0x7fff_fffd;
    let mut client = Client::new(&opening, Limits::default(), Instant::now());
    let fields = Default::default();
    let line = line(&Method::GET, &fields, true);
    let ids = [client.open(&line), client.open(&line)].map(|stream| stream.map(|s| s.id()));
    assert_eq!(ids, [Ok(0x7fff_fffd), Ok(0x7fff_ffff)]);
    assert_eq!(client.can_open(), Err(mimus_proto::h2::Busy::Going));
    assert!(client.open(&line).is_err());
}
