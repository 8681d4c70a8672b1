//! Bodies for consumers that want all of them: the rest that is here, and the rest in one piece.

use mimus_proto::h2::{Code, Limits, Opening, SettingId, Stream, StreamError};
use mimus_proto::{Error, Event, UnexpectedEof};

use crate::rig::*;

/// The head of a response whose body is so long.
fn long(stream: Stream, length: usize) -> Vec<u8> {
    let length = length.to_string();
    headers(stream.id(), 0, &[(":status", "200"), ("content-length", &length)])
}

/// A client with small windows that do not grow, and a stream of it whose head was read.
fn reading(length: usize) -> (Rig, Stream) {
    let mut opening = Opening::default();
    opening.settings = vec![(SettingId::INITIAL_WINDOW_SIZE, 10_000)];
    opening.window_increment = None;
    let mut limits = Limits::default();
    (limits.stream_window, limits.connection_window, limits.unread) = (0, 0, 20_000);
    let mut rig = Rig::with(&opening, limits);
    rig.ok(&[settings(&[]), settings_ack()].concat());
    let stream = rig.get();
    rig.ok(&long(stream, length));
    assert!(matches!(rig.client.poll_event(stream), Ok(Some(Event::Head(_)))));
    (rig, stream)
}

#[test]
fn the_rest_is_taken_only_if_it_is_whole_and_one_piece() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    assert_eq!(rig.client.take_rest(stream), None);
    rig.ok(&status(1, 0, "200"));
    assert_eq!(rig.client.take_rest(stream), None, "the head was not read");
    assert_eq!(rig.events(stream), [head(200)]);
    rig.ok(&data(1, 0, b"chirp"));
    assert_eq!(rig.client.take_rest(stream), None, "more may come");
    rig.ok(&data(1, END_STREAM, b""));
    assert_eq!(rig.client.take_rest(stream).as_deref(), Some(&b"chirp"[..]));
    assert_eq!(rig.events(stream), [], "the end was told");
    assert_eq!(rig.client.take_rest(stream), None, "once");

    let stream = rig.get();
    rig.ok(&status(3, END_STREAM, "204"));
    assert_eq!(rig.events(stream).len(), 2);
    assert_eq!(rig.client.take_rest(stream), None, "the end was told before");

    let stream = rig.get();
    rig.ok(&status(5, END_STREAM, "204"));
    assert!(matches!(rig.client.poll_event(stream), Ok(Some(Event::Head(_)))));
    assert_eq!(rig.client.take_rest(stream).as_deref(), Some(&b""[..]));

    // Two pieces that are not worth a copy, and trailers.
    for ending in [data(7, END_STREAM, &[2; 5000]), headers(9, END_STREAM, &[("x-sum", "1")])] {
        let stream = rig.get();
        rig.ok(&[status(stream.id(), 0, "200"), data(stream.id(), 0, &[1; 5000]), ending].concat());
        assert!(matches!(rig.client.poll_event(stream), Ok(Some(Event::Head(_)))));
        assert_eq!(rig.client.take_rest(stream), None);
        assert_eq!(rig.events(stream).len(), 3 - usize::from(stream.id() == 7));
    }
}

#[test]
fn what_remains_is_known_where_the_head_told() {
    let (mut rig, stream) = reading(5000);
    assert_eq!(rig.client.remaining_body(stream), Some(5000));
    let frame = data(1, END_STREAM, &[7; 5000]);
    rig.ok(&frame[..1009]);
    assert_eq!(rig.client.remaining_body(stream), Some(5000));
    let first = rig.client.poll_event(stream);
    assert!(matches!(first, Ok(Some(Event::Data(data))) if data.len() == 1000));
    assert_eq!(rig.client.remaining_body(stream), Some(4000));
    assert_eq!(rig.client.gather(stream), Some(0));
    rig.ok(&frame[1009..3009]);
    assert_eq!(rig.client.remaining_body(stream), Some(4000));
    rig.ok(&frame[3009..]);
    assert_eq!(rig.client.remaining_body(stream), Some(4000));
    rig.events(stream);
    assert_eq!(rig.client.remaining_body(stream), Some(0));

    let stream = rig.get();
    assert_eq!(rig.client.remaining_body(stream), None, "there is no head");
    rig.ok(&[status(3, 0, "200"), data(3, END_STREAM, b"chirp")].concat());
    assert_eq!(rig.client.remaining_body(stream), None, "the head did not tell");
}

#[test]
fn a_body_is_gathered_over_any_windows_with_none_of_it_unread() {
    let size = 200_000;
    let (mut rig, stream) = reading(size);
    let body: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let (mut granted, mut sent) = (10_000, 0);
    rig.ok(&data(1, 0, &body[..700]));
    while sent + 700 < size {
        // Nobody takes anything, and yet the window opens.
        assert!(rig.client.gather(stream).is_some());
        for frame in rig.frames() {
            if (frame.kind, frame.stream) == (WINDOW_UPDATE, 1) {
                granted += frame.number() as usize;
            }
        }
        let end = granted.min(size);
        assert!(end > sent + 700, "the window stays shut at {sent}");
        for piece in body[sent + 700..end].chunks(3000) {
            rig.ok(&data(1, 0, piece));
        }
        sent = end - 700;
    }
    assert_eq!(rig.client.gather(stream), Some(size), "the end has not come");
    rig.ok(&data(1, END_STREAM, b""));
    assert_eq!(rig.client.gather(stream), None);
    match rig.client.poll_event(stream) {
        Ok(Some(Event::Data(whole))) => assert!(whole == body, "not the bytes that were sent"),
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.events(stream), [Seen::End]);
}

#[test]
fn what_was_gathered_is_given_out_whatever_becomes_of_the_rest() {
    // Read by pieces after all.
    let (mut rig, stream) = reading(3000);
    rig.client.gather(stream);
    rig.ok(&data(1, 0, &[1; 1000]));
    assert_eq!(rig.events(stream), [Seen::Data(vec![1; 1000])]);
    rig.ok(&data(1, END_STREAM, &[2; 2000]));
    assert_eq!(rig.client.gather(stream), None);
    assert_eq!(rig.events(stream), [Seen::Data(vec![2; 2000]), Seen::End]);

    // Reset; cut off; with trailers.
    let (mut rig, stream) = reading(3000);
    rig.client.gather(stream);
    rig.ok(&[data(1, 0, &[1; 1000]), rst(1, 2)].concat());
    assert_eq!(rig.client.gather(stream), None);
    let reset = Seen::Error(StreamError::Reset(Code(2)));
    assert_eq!(rig.events(stream), [Seen::Data(vec![1; 1000]), reset]);

    let (mut rig, stream) = reading(3000);
    rig.client.gather(stream);
    rig.ok(&data(1, 0, &[1; 1000]));
    rig.client.recv_eof();
    let cut_off = Error::from(UnexpectedEof::InBody);
    assert_eq!(rig.client.process(rig.now), Err(cut_off));
    assert_eq!(rig.client.gather(stream), None);
    let lost = Seen::Error(StreamError::Connection(cut_off));
    assert_eq!(rig.events(stream), [Seen::Data(vec![1; 1000]), lost]);

    let (mut rig, stream) = reading(1000);
    rig.client.gather(stream);
    rig.ok(&[data(1, 0, &[1; 1000]), headers(1, END_STREAM, &[("x-sum", "1")])].concat());
    assert_eq!(rig.client.gather(stream), None);
    let trailers = Seen::Trailers(vec![("x-sum".into(), b"1".into())]);
    assert_eq!(rig.events(stream), [Seen::Data(vec![1; 1000]), trailers, Seen::End]);
}

#[test]
fn a_body_of_unknown_length_is_not_gathered() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    assert_eq!(rig.client.gather(stream), None, "there is no head");
    rig.ok(&status(1, 0, "200"));
    rig.events(stream);
    assert_eq!(rig.client.gather(stream), None);
    rig.ok(&data(1, 0, b"chirp"));
    assert_eq!(rig.events(stream), [Seen::Data(b"chirp".to_vec())]);
    rig.client.reset(stream, Code::CANCEL);
    assert_eq!(rig.client.gather(stream), None, "given up");
}
