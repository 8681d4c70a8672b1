//! How our side looks on the wire: the opening, heads, and what is refused before it is written.

use std::time::Instant;

use http::Method;
use mimus_proto::h2::hpack::{Huffman, Indexing, NameIndex};
use mimus_proto::h2::{
    Client, Dependency, IndexingPolicy, IndexingRule, Limits, Opening, Priority, Pseudo,
    RequestLine, SettingId,
};
use mimus_proto::{ApiMisuse, Fields};

use crate::rig::*;

/// The fields of the head that this line makes.
fn head_of(rig: &mut Rig, line: &RequestLine<'_>) -> Vec<(String, String)> {
    rig.try_open(line).expect("a stream");
    let frames = rig.frames();
    let block: Vec<u8> = frames.iter().flat_map(|frame| frame.payload.clone()).collect();
    rig.decode(&block)
}

fn names(fields: &[(String, String)]) -> Vec<&str> {
    fields.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_profile_says_how_the_connection_opens() {
    let mut opening = Opening::default();
    opening.settings = vec![
        (SettingId::HEADER_TABLE_SIZE, 65_536),
        (SettingId(0x5a5a), 1),
        (SettingId::ENABLE_PUSH, 0),
        (SettingId::INITIAL_WINDOW_SIZE, 131_072),
    ];
    opening.window_increment = Some(12_517_377);
    opening.first_stream = 15;
    opening.priorities = vec![
        (3, Priority { depends_on: 0, exclusive: false, weight: 200 }),
        (5, Priority { depends_on: 3, exclusive: true, weight: 0 }),
    ];
    opening.priority = Some(Priority { depends_on: 13, exclusive: false, weight: 41 });
    opening.pseudo = [Pseudo::Method, Pseudo::Path, Pseudo::Authority, Pseudo::Scheme];
    let mut rig = Rig::with(&opening, Limits::default());
    let frames = rig.frames();
    let expected = settings(&[(1, 65_536), (0x5a5a, 1), (2, 0), (4, 131_072)]);
    assert_eq!(frames[0].payload, expected[9..]);
    assert_eq!((frames[1].kind, frames[1].number()), (WINDOW_UPDATE, 12_517_377));
    assert_eq!((frames[2].kind, frames[2].stream), (PRIORITY, 3));
    assert_eq!(frames[2].payload, [0, 0, 0, 0, 200]);
    assert_eq!((frames[3].stream, &frames[3].payload[..]), (5, &[0x80, 0, 0, 3, 0][..]));
    assert_eq!(frames.len(), 4);

    let none = Fields::new();
    let stream = rig.try_open(&line(&Method::GET, &none, true)).expect("a stream");
    assert_eq!(stream.id(), 15);
    let frames = rig.frames();
    assert_eq!(frames[0].flags, END_STREAM | END_HEADERS | PRIO);
    assert_eq!(frames[0].payload[..5], [0, 0, 0, 13, 41]);
    let fields = rig.decode(&frames[0].payload[5..]);
    assert_eq!(names(&fields), [":method", ":path", ":authority", ":scheme"]);
}

#[test]
fn an_increment_of_zero_is_never_sent() {
    let mut opening = Opening::default();
    opening.window_increment = Some(0);
    assert_eq!(Rig::with(&opening, Limits::default()).kinds(), [(SETTINGS, 0)]);
}

#[test]
fn names_are_sent_in_lower_case_and_host_is_the_authority() {
    let mut rig = Rig::ready();
    let given = fields([("Host", "EXAMPLE.com"), ("X-Bird", "Mimus"), ("TE", "trailers")]);
    let sent = head_of(&mut rig, &line(&Method::GET, &given, true));
    assert_eq!(names(&sent)[4..], ["x-bird", "te"]);
    assert_eq!(sent[4].1, "Mimus");
}

#[test]
fn cookies_are_sent_as_crumbs_and_never_indexed() {
    let mut rig = Rig::ready();
    let given = fields([("Cookie", "a=1; b=2;c=3"), ("Authorization", "Basic x")]);
    let sent = head_of(&mut rig, &line(&Method::GET, &given, true));
    let expected =
        [("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3"), ("authorization", "Basic x")];
    assert_eq!(sent[4..], expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let table = rig.decoder.table_size();
    assert_eq!(table, ":authority".len() + "example.com".len() + 32, "no secret in it");

    let mut opening = Opening::default();
    opening.cookie_crumbs = false;
    let mut rig = Rig::with(&opening, Limits::default());
    rig.ok(&settings(&[]));
    rig.frames();
    let sent = head_of(&mut rig, &line(&Method::GET, &given, true));
    assert_eq!(sent[4].1, "a=1; b=2;c=3");
}

/// What a HEADERS frame says of its stream's rank: exclusive, on which stream, which weight.
fn rank(rig: &mut Rig, weight: u8) -> (bool, u32, u8) {
    let none = Fields::new();
    rig.try_open(&RequestLine { weight: Some(weight), ..line(&Method::GET, &none, true) })
        .expect("a stream");
    let frames = rig.frames();
    let payload = &frames.iter().find(|frame| frame.kind == 1).expect("HEADERS").payload;
    let on = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
    (on >> 31 == 1, on & 0x7fff_ffff, payload[4])
}

#[test]
fn a_stream_depends_on_the_last_open_one_that_weighs_no_less() {
    let mut opening = Opening::default();
    opening.priority = Some(Priority { depends_on: 0, exclusive: true, weight: 0 });
    opening.dependency = Dependency::LastOpen;
    let mut rig = Rig::with(&opening, Limits::default());
    rig.frames();
    assert_eq!(rank(&mut rig, 255), (true, 0, 255));
    assert_eq!(rank(&mut rig, 219), (true, 1, 219));
    assert_eq!(rank(&mut rig, 255), (true, 1, 255));
    // Not the newest of all, but of those that weigh least.
    assert_eq!(rank(&mut rig, 182), (true, 3, 182));
    assert_eq!(rank(&mut rig, 219), (true, 3, 219));
    // One that is closed is none, whether its owner knows or not.
    rig.ok(&settings(&[]));
    rig.ok(&headers(9, 5, &[(":status", "204")]));
    assert_eq!(rank(&mut rig, 219).1, 3);
}

#[test]
fn a_window_of_a_stream_opens_right_behind_its_head() {
    let mut opening = Opening::default();
    opening.settings = vec![(SettingId::INITIAL_WINDOW_SIZE, 1000)];
    opening.stream_window_increment = Some(500);
    let mut rig = Rig::with(&opening, Limits::default());
    rig.frames();
    let stream = rig.get();
    rig.ok(&settings(&[]));
    rig.ok(&status(stream.id(), 4, "200"));
    rig.ok(&data(stream.id(), 0, &[0; 1400]));
    rig.frames();
    rig.try_open(&line(&Method::GET, &Fields::new(), true)).expect("a stream");
    assert_eq!(
        rig.frames().iter().map(|frame| (frame.kind, frame.payload.clone())).nth(1),
        Some((8, 500_u32.to_be_bytes().to_vec()))
    );
    // What was granted, and no more.
    rig.resets(stream, &data(stream.id(), 0, &[0; 101]));
}

#[test]
fn rules_say_how_fields_are_represented() {
    let rule = |name: &str, below, indexing| IndexingRule { name: name.into(), below, indexing };
    let mut opening = Opening::default();
    opening.huffman = Huffman::Never;
    opening.names = NameIndex::Last;
    opening.indexing = IndexingPolicy::Rules(
        [rule(":path", None, Indexing::Literal), rule("cookie", Some(4), Indexing::Never)].into(),
    );
    let mut rig = Rig::with(&opening, Limits::default());
    rig.frames();
    let mut block = |path: &str, given: &Fields| {
        let asked = RequestLine { path, ..line(&Method::GET, given, true) };
        rig.try_open(&asked).expect("a stream");
        rig.frames()[0].payload.clone()
    };
    let given = fields([("cookie", "a=1; b=123"), ("x", "1")]);
    // In the static table at 4, and yet a literal; of another value its name is the one at 5.
    let first = block("/", &given);
    assert!(first.windows(3).any(|bytes| bytes == b"\x04\x01/"));
    // Never indexed, and named by the static table, the first time.
    assert!(first.windows(6).any(|bytes| bytes == b"\x1f\x11\x03a=1"), "{first:x?}");
    let second = block("/a", &fields([("x", "2")]));
    assert!(second.windows(4).any(|bytes| bytes == b"\x05\x02/a"));
    // Behind `x: 1` came nothing, and `x: 2` is new; the third of the name is told by the oldest.
    let third = block("/a", &fields([("x", "3")]));
    assert!(third.ends_with(b"\x7f\x00\x013"), "{third:x?}");
    // The longer cookie was put into the table, where it names the next short one.
    let short = block("/a", &fields([("cookie", "a=1"), ("cookie", "b=123")]));
    assert!(short.windows(6).any(|bytes| bytes == b"\x1f\x32\x03a=1"), "{short:x?}");
}

#[test]
fn a_profile_says_how_fields_are_represented() {
    let mut opening = Opening::default();
    opening.indexing = IndexingPolicy::Function(|name, _| match name {
        b"never" => Indexing::Never,
        _ => Indexing::Without,
    });
    opening.huffman = Huffman::Never;
    let mut rig = Rig::with(&opening, Limits::default());
    rig.frames();
    let given = fields([("never", "x"), ("other", "y")]);
    rig.try_open(&line(&Method::GET, &given, true)).expect("a stream");
    let frames = rig.frames();
    let wire = &frames[0].payload;
    assert!(wire.windows(9).any(|bytes| bytes == b"\x10\x05never\x01x"));
    assert!(wire.windows(9).any(|bytes| bytes == b"\x00\x05other\x01y"));
}

#[test]
fn a_head_larger_than_a_frame_is_continued() {
    let mut rig = Rig::ready();
    let long = "\u{7f}".replace('\u{7f}', "~^|").repeat(20_000);
    let given = fields([("a", &long), ("b", "c")]);
    rig.try_open(&line(&Method::POST, &given, false)).expect("a stream");
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].flags, frames[0].payload.len()), (HEADERS, 0, 16_384));
    let last = frames.len() - 1;
    assert!(last >= 3);
    for (index, frame) in frames.iter().enumerate().skip(1) {
        let flags = if index == last { END_HEADERS } else { 0 };
        assert_eq!((frame.kind, frame.flags, frame.stream), (CONTINUATION, flags, 1));
        assert!(index == last || frame.payload.len() == 16_384);
    }
    let block: Vec<u8> = frames.iter().flat_map(|frame| frame.payload.clone()).collect();
    let sent = rig.decode(&block);
    assert_eq!((sent[4].1 == long, &sent[5].1[..]), (true, "c"));
}

#[test]
fn trailers_larger_than_a_frame_are_continued() {
    let mut rig = Rig::ready();
    let stream = rig.post();
    let long = "~^|".repeat(9000);
    rig.client.send_end(stream, Some(&fields([("a", &long)]))).expect("an open body");
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (HEADERS, END_STREAM));
    assert_eq!(frames.last().map(|f| (f.kind, f.flags)), Some((CONTINUATION, END_HEADERS)));
}

#[test]
fn what_may_not_be_said_is_refused_before_a_byte_is_written() {
    let mut rig = Rig::ready();
    let none = Fields::new();
    let good = line(&Method::GET, &none, true);
    let wrong = [
        (RequestLine { path: "", ..good }, ApiMisuse::InvalidTarget),
        (RequestLine { path: "/a b", ..good }, ApiMisuse::InvalidTarget),
        (RequestLine { path: "/\u{e9}", ..good }, ApiMisuse::InvalidTarget),
        (RequestLine { scheme: "", ..good }, ApiMisuse::InvalidTarget),
        (RequestLine { scheme: "ht tp", ..good }, ApiMisuse::InvalidTarget),
        (RequestLine { authority: "user@host", ..good }, ApiMisuse::InvalidAuthority),
        (RequestLine { authority: "a\r\nb", ..good }, ApiMisuse::InvalidAuthority),
        (RequestLine { protocol: Some("x"), ..good }, ApiMisuse::NoConnectProtocol),
        (
            RequestLine { method: &Method::CONNECT, authority: "", ..good },
            ApiMisuse::InvalidAuthority,
        ),
    ];
    for (line, misuse) in wrong {
        assert_eq!(rig.try_open(&line), Err(misuse), "{line:?}");
    }
    let fields = [
        (fields([("Connection", "close")]), ApiMisuse::ConnectionField),
        (fields([("Keep-Alive", "1")]), ApiMisuse::ConnectionField),
        (fields([("Proxy-Connection", "x")]), ApiMisuse::ConnectionField),
        (fields([("Transfer-Encoding", "chunked")]), ApiMisuse::ConnectionField),
        (fields([("UPGRADE", "h2c")]), ApiMisuse::ConnectionField),
        (fields([("te", "gzip")]), ApiMisuse::ConnectionField),
        (fields([("host", "other")]), ApiMisuse::HostMismatch),
        (fields([("content-length", "1")]), ApiMisuse::ContentLengthMismatch),
        (fields([("content-length", "x")]), ApiMisuse::ContentLengthMismatch),
    ];
    for (given, misuse) in &fields {
        let line = RequestLine { fields: given, ..good };
        assert_eq!(rig.try_open(&line), Err(*misuse), "{given:?}");
    }
    assert_eq!((rig.frames(), rig.client.open_streams()), (vec![], 0));
    assert_eq!(rig.get().id(), 1, "no identifier was spent");

    let stream = rig.post();
    for name in ["content-length", "Connection", "transfer-encoding", "host"] {
        let trailers = self::fields([(name, "1")]);
        let refused = rig.client.send_end(stream, Some(&trailers));
        assert_eq!(refused, Err(ApiMisuse::ForbiddenTrailer));
    }
    assert!(rig.client.wants_body(stream));
}

#[test]
fn extended_connect_needs_the_servers_leave() {
    let mut rig = Rig::settings(&[(8, 1)]);
    let none = Fields::new();
    let mut ask = line(&Method::GET, &none, false);
    ask.protocol = Some("websocket");
    assert_eq!(rig.try_open(&ask), Err(ApiMisuse::ProtocolWithoutConnect));
    ask.method = &Method::CONNECT;
    assert!(rig.try_open(&ask).is_ok());
    assert_eq!(Rig::settings(&[(8, 0)]).try_open(&ask), Err(ApiMisuse::NoConnectProtocol));
}

#[test]
fn a_priority_is_told_anew() {
    let mut rig = Rig::ready();
    let stream = rig.get();
    rig.client.reprioritize(stream, "u=1, i").expect("a priority");
    let frames = rig.frames();
    assert_eq!((frames[0].kind, frames[0].stream), (PRIORITY_UPDATE, 0));
    assert_eq!(frames[0].payload, b"\0\0\0\x01u=1, i");
    assert!(rig.client.reprioritize(stream, "u=1\r\n").is_err());
}

#[test]
fn requests_can_be_queued_before_the_server_says_anything() {
    let mut client = Client::new(&Opening::default(), Limits::default(), Instant::now());
    let none = Fields::new();
    for _ in 0..3 {
        client.open(&line(&Method::GET, &none, true)).expect("a stream");
    }
    let mut wire = written(&mut client, 9).split_off(24);
    let kinds: Vec<_> = parse(&mut wire).iter().map(|frame| (frame.kind, frame.stream)).collect();
    let expected = [(SETTINGS, 0), (WINDOW_UPDATE, 0), (HEADERS, 1), (HEADERS, 3), (HEADERS, 5)];
    assert_eq!(kinds, expected);
}

#[test]
fn the_same_fields_are_written_right_whatever_the_table_does_between() {
    let mut rig = Rig::ready();
    let same = fields([("Accept", "*/*"), ("Authorization", "Basic x"), ("X-Bird", "mimus")]);
    let other = fields([("X-Other", "1"), ("X-More", "2")]);
    let ask = |rig: &mut Rig, given: &Fields| {
        let sent = head_of(rig, &line(&Method::GET, given, true));
        let given = given.iter().map(|(name, value)| {
            (name.to_ascii_lowercase(), String::from_utf8_lossy(value).into_owned())
        });
        assert_eq!(sent[4..], given.collect::<Vec<_>>());
    };
    for round in 0..60 {
        match round {
            10 => ask(&mut rig, &other),
            20 => rig.ok(&settings(&[(1, 0)])),
            30 => rig.ok(&settings(&[(1, 4096)])),
            // Enough of others to push everything out of the table.
            40 => {
                for index in 0..100 {
                    let value = format!("{index}{}", "x".repeat(50));
                    ask(&mut rig, &fields([("X-Bird", value.as_str())]));
                }
            }
            50 => rig.ok(&settings(&[(1, 0), (1, 4096)])),
            _ => {}
        }
        rig.frames();
        ask(&mut rig, &same);
        ask(&mut rig, &same);
    }
}

#[test]
fn a_request_like_the_last_is_written_and_checked_like_any_other() {
    let mut rig = Rig::ready();
    let plain = fields([("Host", "example.com"), ("Accept", "*/*")]);
    let long = fields([("Host", "example.com"), ("Content-Length", "3")]);
    let other = fields([("Accept", "*/*")]);
    let base = line(&Method::GET, &plain, true);
    // Parts that are the same text when joined, but not the same parts.
    let lines = [
        base,
        RequestLine { path: "/a", ..base },
        RequestLine { scheme: "http", authority: "sexample.com", fields: &other, ..base },
        RequestLine { authority: "example.com/", path: "/", fields: &other, ..base },
        RequestLine { authority: "example.com", path: "//", fields: &other, ..base },
        RequestLine { method: &Method::POST, end: false, fields: &long, ..base },
        RequestLine { end: false, ..base },
    ];
    for line in lines.iter().flat_map(|line| [line, line, line]) {
        let sent = head_of(&mut rig, line);
        let value =
            |name: &str| sent.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
        assert_eq!(value(":method"), Some(line.method.as_str()));
        assert_eq!(value(":scheme"), Some(line.scheme));
        assert_eq!(value(":authority"), Some(line.authority));
        assert_eq!(value(":path"), Some(line.path));
        assert_eq!(value("accept").is_some(), line.fields.contains("accept"));
        assert_eq!(value("content-length").is_some(), line.fields.contains("content-length"));
    }
    // What is promised of a body is remembered along with the bytes.
    for _ in 0..3 {
        let asked = RequestLine { method: &Method::POST, end: false, fields: &long, ..base };
        let stream = rig.try_open(&asked).expect("a stream");
        assert_eq!(rig.client.send_end(stream, None), Err(ApiMisuse::BodyTooShort));
    }
    // And what is wrong stays wrong behind what was right.
    rig.try_open(&base).expect("a stream");
    let wrong = RequestLine { authority: "example.org", ..base };
    assert_eq!(rig.try_open(&wrong), Err(ApiMisuse::HostMismatch));
    let wrong = RequestLine { fields: &long, ..base };
    assert_eq!(rig.try_open(&wrong), Err(ApiMisuse::ContentLengthMismatch));
}

#[test]
fn a_list_is_as_large_as_its_reader_counts() {
    let fields =
        Fields::try_from([("Host", "x"), ("Cookie", "a=1; b=2; c=3"), ("X", "y")]).unwrap();
    for protocol in [None, Some("websocket")] {
        let mut rig = Rig::settings(&[(8, 1)]);
        let method = if protocol.is_some() { Method::CONNECT } else { Method::GET };
        let ask = RequestLine { protocol, authority: "x", ..line(&method, &fields, true) };
        rig.try_open(&ask).expect("a stream");
        let frames = rig.frames();
        let counted: usize = rig
            .decode(&frames[0].payload)
            .iter()
            .map(|(name, value)| name.len() + value.len() + 32)
            .sum();
        // What stands between cookies is not sent, and counted as if it were.
        assert_eq!(ask.list_size(), counted + 2 * "; ".len());
    }
}
