//! Responses: what is well formed, what is not, and whose fault (RFC 9113 section 8).

use http::Method;
use mimus_proto::h2::{Code, StreamError};
use mimus_proto::{Error, PeerMisbehaved};

use crate::rig::*;

/// A response of this head and body is malformed: the stream alone fails.
fn malformed(method: &Method, frames: &[u8]) -> PeerMisbehaved {
    let mut rig = Rig::ready();
    let stream = rig.ask(method, true);
    let other = rig.get();
    let (last, code) = rig.resets(stream, frames);
    assert_eq!(Code(code), Code::PROTOCOL_ERROR);
    rig.ok(&status(other.id(), END_STREAM, "204"));
    assert_eq!(rig.events(other), [head(204), Seen::End], "the connection goes on");
    match last {
        Seen::Error(StreamError::Failed(Error::PeerMisbehaved(reason))) => reason,
        other => panic!("not malformed: {other:?}"),
    }
}

fn malformed_head(fields: &[(&str, &str)]) -> PeerMisbehaved {
    malformed(&Method::GET, &headers(1, 0, fields))
}

/// What a request of this method gets.
fn seen(method: &Method, frames: &[Vec<u8>]) -> Vec<Seen> {
    let mut rig = Rig::ready();
    let stream = rig.ask(method, true);
    rig.ok(&frames.concat());
    rig.events(stream)
}

#[test]
fn pseudo_fields_are_exactly_the_status_in_front() {
    let wrong: [&[(&str, &str)]; 6] = [
        &[],
        &[("server", "rig")],
        &[("server", "rig"), (":status", "200")],
        &[(":status", "200"), (":status", "200")],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), (":unknown", "x")],
    ];
    for fields in wrong {
        assert_eq!(malformed_head(fields), PeerMisbehaved::BadPseudoField, "{fields:?}");
    }
}

#[test]
fn a_status_is_three_digits_and_not_101() {
    for status in ["", "20", "2000", "abc", "+20", "099", "101", " 200"] {
        assert_eq!(malformed_head(&[(":status", status)]), PeerMisbehaved::BadStatus, "{status}");
    }
}

#[test]
fn a_status_that_no_class_has_is_given_on() {
    for number in [600, 999] {
        let got = seen(&Method::GET, &[status(1, END_STREAM, &number.to_string())]);
        assert_eq!(got, [head(number), Seen::End]);
    }
}

#[test]
fn field_names_are_lower_case_tokens() {
    for name in ["Server", "", "a b", "a:", "\u{e9}", "a\0", "x\r\ny"] {
        let reason = malformed_head(&[(":status", "200"), (name, "x")]);
        assert_eq!(reason, PeerMisbehaved::BadFieldName, "{name:?}");
    }
}

#[test]
fn field_values_hold_no_control_bytes_and_no_blanks_around() {
    for value in ["a\0", "a\rb", "a\nb", "\x7f", "\u{1}"] {
        let reason = malformed_head(&[(":status", "200"), ("a", value)]);
        assert_eq!(reason, PeerMisbehaved::ControlByte, "{value:?}");
    }
    for value in [" a", "a ", "\ta", "a\t", " "] {
        let reason = malformed_head(&[(":status", "200"), ("a", value)]);
        assert_eq!(reason, PeerMisbehaved::BlankAroundValue, "{value:?}");
    }
    let log = seen(&Method::GET, &[headers(1, 0, &[(":status", "200"), ("a", ""), ("b", "x\ty")])]);
    let expected = vec![("a".into(), b"".into()), ("b".into(), b"x\ty".into())];
    assert_eq!(log, [Seen::Head(200, expected)]);
}

#[test]
fn connection_specific_fields_are_malformed() {
    let names = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    for name in names {
        let reason = malformed_head(&[(":status", "200"), (name, "close")]);
        assert_eq!(reason, PeerMisbehaved::ConnectionField, "{name}");
    }
    let reason = malformed_head(&[(":status", "200"), ("te", "gzip")]);
    assert_eq!(reason, PeerMisbehaved::ConnectionField);
}

#[test]
fn a_body_has_the_length_that_its_head_says() {
    let five = headers(1, 0, &[(":status", "200"), ("content-length", "5")]);
    let none = headers(1, END_STREAM, &[(":status", "200"), ("content-length", "5")]);
    let trailers = headers(1, END_STREAM, &[("t", "u")]);
    let wrong = [
        [five.clone(), data(1, END_STREAM, b"four")].concat(),
        [five.clone(), data(1, 0, b"sixsix")].concat(),
        [five.clone(), data(1, 0, b"123"), data(1, 0, b"456")].concat(),
        [five.clone(), data(1, END_STREAM, b"")].concat(),
        [five.clone(), data(1, 0, b"four"), trailers].concat(),
        none,
    ];
    for bytes in wrong {
        assert_eq!(malformed(&Method::GET, &bytes), PeerMisbehaved::BodyLengthMismatch);
    }
    let log = seen(&Method::GET, &[five, data(1, 0, b"12"), data(1, END_STREAM, b"345")]);
    assert_eq!(log[1..], [Seen::Data(b"12345".into()), Seen::End]);
}

#[test]
fn a_content_length_is_one_number() {
    for (value, reason) in [
        ("", PeerMisbehaved::BadContentLength),
        ("-1", PeerMisbehaved::BadContentLength),
        ("99999999999999999999", PeerMisbehaved::BadContentLength),
        ("5, 5", PeerMisbehaved::ConflictingContentLength),
    ] {
        assert_eq!(malformed_head(&[(":status", "200"), ("content-length", value)]), reason);
    }
    let twice = [(":status", "200"), ("content-length", "5"), ("content-length", "5")];
    assert_eq!(malformed_head(&twice), PeerMisbehaved::ConflictingContentLength);
}

#[test]
fn a_response_without_content_may_say_how_long_it_would_be() {
    for (method, status) in [(Method::HEAD, "200"), (Method::GET, "304"), (Method::GET, "204")] {
        let fields = [(":status", status), ("content-length", "5")];
        let log = seen(&method, &[headers(1, END_STREAM, &fields)]);
        assert_eq!(log[1..], [Seen::End]);
        let log = seen(&method, &[headers(1, 0, &fields), data(1, END_STREAM, b"")]);
        assert_eq!(log[1..], [Seen::End]);
        let bytes = [headers(1, 0, &fields), data(1, END_STREAM, b"12345")].concat();
        assert_eq!(malformed(&method, &bytes), PeerMisbehaved::BodyLengthMismatch);
    }
}

#[test]
fn a_body_needs_a_head() {
    for bytes in [data(1, 0, b"x"), data(1, END_STREAM, b"")] {
        assert_eq!(malformed(&Method::GET, &bytes), PeerMisbehaved::DataBeforeHead);
    }
    let interim = [status(1, 0, "103"), data(1, 0, b"x")].concat();
    assert_eq!(malformed(&Method::GET, &interim), PeerMisbehaved::DataBeforeHead);
}

#[test]
fn informational_responses_come_before_the_final_one() {
    let hint = headers(1, 0, &[(":status", "103"), ("link", "</a.css>")]);
    let frames = [status(1, 0, "100"), hint, status(1, END_STREAM, "200")];
    let link = vec![("link".into(), b"</a.css>".into())];
    let expected =
        [Seen::Informational(100, vec![]), Seen::Informational(103, link), head(200), Seen::End];
    assert_eq!(seen(&Method::GET, &frames), expected);
    let ended = malformed(&Method::GET, &status(1, END_STREAM, "103"));
    assert_eq!(ended, PeerMisbehaved::BadStatus, "an interim response ends nothing");
}

#[test]
fn trailers_end_the_message_and_are_no_head() {
    let begun = [status(1, 0, "200"), data(1, 0, b"x")].concat();
    type Trailers = &'static [(&'static str, &'static str)];
    let wrong: [(Trailers, u8, PeerMisbehaved); 4] = [
        (&[("t", "u")], 0, PeerMisbehaved::HeadersInBody),
        (&[(":status", "200")], END_STREAM, PeerMisbehaved::BadPseudoField),
        (&[("content-length", "1")], END_STREAM, PeerMisbehaved::TrailerInvalid),
        (&[("connection", "x")], END_STREAM, PeerMisbehaved::ConnectionField),
    ];
    for (fields, flags, reason) in wrong {
        let bytes = [begun.clone(), headers(1, flags, fields)].concat();
        assert_eq!(malformed(&Method::GET, &bytes), reason);
    }
    // What came before is given out first.
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&[begun.clone(), headers(1, 0, &[("t", "u")])].concat());
    let log = rig.events(stream);
    assert_eq!(log[..2], [head(200), Seen::Data(b"x".into())]);
    assert!(matches!(log[2], Seen::Error(StreamError::Failed(_))));
    let empty = seen(&Method::GET, &[begun, headers(1, END_STREAM, &[])]);
    assert_eq!(empty[2..], [Seen::End]);
}

#[test]
fn data_behind_a_malformed_response_is_dropped_and_its_credit_is_not_lost() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&headers(1, 0, &[(":status", "200"), ("Bad", "x")]));
    rig.frames();
    for _ in 0..64 {
        rig.ok(&data(1, 0, &[0; 16_384]));
    }
    rig.client.reset(stream, Code::CANCEL);
    assert!(rig.frames().is_empty(), "it was reset before");
    let other = rig.get();
    rig.ok(&status(3, 0, "200"));
    for _ in 0..64 {
        rig.ok(&data(3, 0, &[0; 16_384]));
    }
    let granted = rig.frames();
    assert_eq!((granted[0].kind, granted[0].stream), (WINDOW_UPDATE, 0), "{granted:?}");
    assert_eq!(data_len(&rig.events(other)), 64 * 16_384);
}

#[test]
fn a_tunnel_carries_data_both_ways() {
    let mut rig = Rig::settings(&[(8, 1)]);
    let none = Default::default();
    let mut ask = line(&Method::CONNECT, &none, false);
    ask.protocol = Some("websocket");
    let stream = rig.try_open(&ask).expect("the server allows it");
    let frames = rig.frames();
    let names: Vec<_> = rig.decode(&frames[0].payload).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [":method", ":scheme", ":authority", ":path", ":protocol"]);
    rig.ok(&[headers(1, 0, &[(":status", "200"), ("content-length", "1")]), data(1, 0, b"hello")]
        .concat());
    assert!(rig.client.is_written(stream), "there is nothing");
    rig.send(stream, 3);
    assert!(!rig.client.is_written(stream));
    assert_eq!(rig.frames()[0].payload, b"xxx");
    assert!(rig.client.is_written(stream));
    let log = rig.events(stream);
    let expected = [Seen::Upgraded, Seen::Data(b"hello".into())];
    assert_eq!(log[1..], expected, "a tunnel has no length");
    rig.ok(&data(1, END_STREAM, b""));
    assert_eq!(rig.events(stream), [Seen::End]);
    assert_eq!(rig.client.open_streams(), 1, "our half is open");

    ask.protocol = None;
    let stream = rig.try_open(&ask).expect("a plain CONNECT");
    let frames = rig.frames();
    let names: Vec<_> = rig.decode(&frames[0].payload).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [":method", ":authority"]);
    rig.ok(&headers(3, END_STREAM, &[(":status", "403")]));
    let log = rig.events(stream);
    assert!(matches!(log[..], [Seen::Head(403, _), Seen::End]), "no tunnel: {log:?}");
    rig.client.reset(stream, Code::CANCEL);
}

#[test]
fn nothing_is_given_out_of_a_frame_that_is_too_long() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.ok(&headers(1, 0, &[(":status", "200"), ("content-length", "3")]));
    let mut log = rig.events(stream);
    for byte in data(1, END_STREAM, b"chirp") {
        rig.ok(&[byte]);
        log.extend(rig.events(stream));
    }
    let reason = Error::from(PeerMisbehaved::BodyLengthMismatch);
    assert_eq!(log[1], Seen::Error(StreamError::Failed(reason)));
}
