//! What an exchange is made of.

use http::Method;
use mimus_proto::Fields;
use mimus_proto::h2::{Sent, StreamError};

use crate::rig::*;

#[test]
fn the_preface_is_what_the_opening_says() {
    let mut rig = Rig::with(&Default::default(), Default::default());
    let frames = rig.frames();
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream)).collect();
    assert_eq!(kinds, [(SETTINGS, 0), (WINDOW_UPDATE, 0)]);
    let expected = [(2, 0), (4, 1 << 20), (6, 65_536)];
    assert_eq!(frames[0].payload, settings(&expected)[9..]);
    assert_eq!(frames[1].number(), (4 << 20) - 65_535);
}

#[test]
fn a_small_exchange() {
    let mut rig = Rig::ready();
    let request = fields([("Accept", "*/*"), ("User-Agent", "mimus"), ("Host", "example.com")]);
    let stream = rig.try_open(&line(&Method::GET, &request, true)).expect("a stream");
    assert_eq!(rig.client.sent(stream), Sent::Nothing);
    let frames = rig.frames();
    assert_eq!(rig.client.sent(stream), Sent::Whole);
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].kind, frames[0].flags), (HEADERS, END_STREAM | END_HEADERS));
    assert_eq!(frames[0].stream, 1);
    let sent = rig.decode(&frames[0].payload);
    let expected = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "example.com"),
        (":path", "/"),
        ("accept", "*/*"),
        ("user-agent", "mimus"),
    ];
    assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));

    let response = [(":status", "200"), ("content-length", "5"), ("server", "rig")];
    rig.ok(&[headers(1, 0, &response), data(1, END_STREAM, b"chirp")].concat());
    assert_eq!(rig.client.next_stirred(), Some(stream));
    assert_eq!(rig.client.next_stirred(), None);
    let expected: Pairs =
        vec![("content-length".into(), b"5".into()), ("server".into(), b"rig".into())];
    let log = rig.events(stream);
    assert_eq!(log, [Seen::Head(200, expected), Seen::Data(b"chirp".into()), Seen::End]);
    assert_eq!(rig.client.open_streams(), 0);
    rig.client.reset(stream, mimus_proto::h2::Code::CANCEL);
    assert!(rig.frames().is_empty(), "an ended stream is not reset on the wire");
    let void = rig.client.poll_event(stream);
    assert!(matches!(void, Err(StreamError::Misuse(_))), "{void:?}");
    let again = rig.get();
    assert_eq!((again.id(), rig.client.next_stirred()), (3, None));
}

#[test]
fn a_body_and_trailers_go_both_ways() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    rig.send(stream, 20_000);
    rig.client.send_end(stream, Some(&fields([("Checksum", "1")]))).expect("an open body");
    let frames = rig.frames();
    let shape: Vec<_> =
        frames.iter().map(|frame| (frame.kind, frame.flags, frame.payload.len())).collect();
    assert_eq!(shape[..2], [(DATA, 0, 16_384), (DATA, 0, 3616)]);
    assert_eq!(shape[2].1, END_STREAM | END_HEADERS);
    assert_eq!(rig.decode(&frames[2].payload), [("checksum".to_owned(), "1".to_owned())]);
    assert_eq!(rig.client.sent(stream), Sent::Whole);

    let trailers = headers(1, END_STREAM, &[("grpc-status", "0")]);
    rig.ok(&[status(1, 0, "200"), data(1, 0, b"body"), trailers].concat());
    let expected = Seen::Trailers(vec![("grpc-status".into(), b"0".into())]);
    assert_eq!(rig.events(stream), [head(200), Seen::Data(b"body".into()), expected, Seen::End]);
    assert_eq!(rig.client.open_streams(), 0);
}

#[test]
fn an_empty_body_ends_with_an_empty_frame() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    rig.client.send_end(stream, Some(&Fields::new())).expect("an open body");
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].flags, frames[0].payload.len()), (DATA, END_STREAM, 0));
}
