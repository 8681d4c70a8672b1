//! Sections 9.2.5 and 9.2.6 of the HTML standard, sentence by sentence.

use bytes::Bytes;
use mimus_proto::sse::{Limits, Parser, TooLong};

use crate::rig::{read, read_whole};

fn data(stream: &'static str) -> Vec<String> {
    read_whole(stream).events.into_iter().map(|(_, data, _)| data).collect()
}

#[test]
fn a_line_ends_with_cr_lf_or_lf_or_cr() {
    assert_eq!(data("data:a\n\ndata:b\r\rdata:c\r\n\r\n"), ["a", "b", "c"]);
    // Not three ends: CR LF is one, and the LF behind it another.
    assert_eq!(data("data:a\r\n\ndata:b\n\r\n"), ["a", "b"]);
    assert_eq!(data("data:a\r\rdata:b\n\r"), ["a", "b"]);
}

#[test]
fn a_cr_at_the_end_of_a_piece_ends_its_line_at_once() {
    let mut parser = Parser::new(Limits::default());
    parser.push("data:a\r\n\r".into());
    assert_eq!(parser.next_event().unwrap().expect("it is whole").data(), "a");
    parser.push("\ndata:b\r".into());
    assert!(parser.next_event().unwrap().is_none());
    parser.push("\r".into());
    assert_eq!(parser.next_event().unwrap().expect("it is whole").data(), "b");
}

#[test]
fn a_cr_lf_that_is_torn_apart_is_one_end() {
    let stream = Bytes::from("data:a\r\ndata:b\r\n\r\n");
    for at in 0..stream.len() {
        let said = read(Limits::default(), &stream, &[at, 0, 1, 0]);
        assert_eq!(said.events[0].1, "a\nb", "cut at {at}");
        assert_eq!(said.events.len(), 1);
    }
}

#[test]
fn a_byte_order_mark_is_taken_off_the_beginning_however_it_is_split() {
    let stream = Bytes::from("\u{feff}data:a\n\n\u{feff}data:b\n\n");
    for at in 0..stream.len() {
        assert_eq!(read(Limits::default(), &stream, &[at, 1, 1]).events.len(), 1, "cut at {at}");
    }
    assert_eq!(data("\u{feff}\ndata:a\n\n"), ["a"]);
    // Two bytes of one are no mark.
    assert_eq!(read_whole(&b"\xEF\xBBdata:a\n\n"[..]).events, []);
}

#[test]
fn what_is_not_utf8_becomes_replacement_characters() {
    let said =
        read_whole(&b"event: \xFF\nid: \xE2\x82\ndata: a\xF0\x9F\x98\ndata: \xC0\x80b\n\n"[..]);
    let event = ("\u{fffd}".into(), "a\u{fffd}\n\u{fffd}\u{fffd}b".into(), "\u{fffd}".into());
    assert_eq!(said.events, [event]);
    // A sequence that is cut by a line's end takes nothing of the next line.
    assert_eq!(read_whole(&b"data: \xE2\x82\n\xACdata: x\n\n"[..]).events[0].1, "\u{fffd}");
}

#[test]
fn text_that_is_split_inside_a_character_is_whole_again() {
    let stream = Bytes::from("event: mots\nid: \u{e9}\ndata: \u{1f426}\u{fb01}\n\n");
    for at in 0..stream.len() {
        let said = read(Limits::default(), &stream, &[at]);
        let event = ("mots".into(), "\u{1f426}\u{fb01}".into(), "\u{e9}".into());
        assert_eq!(said.events, [event], "cut at {at}");
    }
}

#[test]
fn a_blank_line_without_data_makes_no_event_but_sets_the_id() {
    let said = read_whole("id: 7\nevent: lost\n\ndata: x\n\n");
    assert_eq!(said.events, [("message".into(), "x".into(), "7".into())]);
    assert_eq!(read_whole("id: 7\n\n").last_event_id, "7");
    assert_eq!(read_whole("id: 7\n").last_event_id, "");
}

#[test]
fn only_the_last_type_and_id_of_an_event_count() {
    let said =
        read_whole("event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\nevent: a\nevent:\ndata: y\n\n");
    let first = ("b".into(), "x".into(), "2".into());
    assert_eq!(said.events, [first, ("message".into(), "y".into(), "2".into())]);
}

#[test]
fn one_space_belongs_to_the_colon() {
    assert_eq!(data("data:  a \n\ndata::b\n\ndata: :c\n\n"), [" a ", ":b", ":c"]);
    assert_eq!(data(" data: a\n\ndata : b\n\n"), [""; 0]);
}

#[test]
fn comments_and_unknown_fields_are_nothing() {
    assert_eq!(data(": a\n:\n\n:data: x\n\nfoo\nbar: x\n\n"), [""; 0]);
}

#[test]
fn a_reconnection_time_is_digits_and_nothing_else() {
    let retry = |value: &str| read_whole(format!("retry:{value}\n")).retry_ms;
    assert_eq!(retry("0"), Some(0));
    assert_eq!(retry(" 0150"), Some(150));
    assert_eq!(retry("99999999999999999999999999"), Some(u64::MAX.into()));
    for bad in ["", " ", "-1", "+1", "1.5", "1x", "1 ", "\u{663}"] {
        assert_eq!(retry(bad), None, "{bad:?}");
    }
    // It holds at once, without a blank line; the last counts.
    assert_eq!(read_whole("retry: 1\nretry: 2\nretry: x\n").retry_ms, Some(2));
}

#[test]
fn the_end_of_a_stream_ends_no_event() {
    assert_eq!(data("data: a\n\ndata: b\n"), ["a"]);
    assert_eq!(data("data: a\n\ndata: b"), ["a"]);
    assert_eq!(data("data: a"), [""; 0]);
}

#[test]
fn data_of_one_line_in_one_piece_is_not_copied() {
    let piece = Bytes::from("event: delta\nid: 1\ndata: abc\n\ndata: def\n\n");
    let inside = |text: &[u8]| piece.as_ptr_range().contains(&text.as_ptr());
    let mut parser = Parser::new(Limits::default());
    parser.push(piece.clone());
    let first = parser.next_event().unwrap().expect("an event");
    assert!(inside(first.data_bytes()));
    let first = first.to_owned();
    assert!(inside(first.data.as_bytes()) && inside(first.event.as_bytes()));
    let second = parser.next_event().unwrap().expect("an event").to_owned();
    assert!(inside(second.data.as_bytes()));
    assert_eq!((&*first.data, &*second.data, &*second.id), ("abc", "def", "1"));
}

#[test]
fn whoever_waits_holds_no_piece() {
    let mut parser = Parser::new(Limits::default());
    let piece = Bytes::from(b"id: 5\ndata: abc\n\nda".to_vec());
    parser.push(piece.clone());
    while parser.next_event().unwrap().is_some() {}
    assert!(piece.is_unique(), "the last ID and the rest of a line are copied");
    assert_eq!(parser.last_event_id(), "5");
}

#[test]
fn a_line_or_an_event_over_the_limit_is_refused_before_its_end_comes() {
    let limits = Limits::default().line(10).event(12);
    let end = |stream: &'static str| read(limits, &stream.into(), &[4, 1, 3, 1, 1]).end;
    assert_eq!(end("data: abcd\n\n"), Ok(()));
    assert_eq!(end("data: abcde"), Err(TooLong::Line { limit: 10 }));
    assert_eq!(end(":234567890\n"), Ok(()));
    assert_eq!(end(":2345678901"), Err(TooLong::Line { limit: 10 }));
    // 4 + 1 + 4 + 1 + 2 bytes.
    assert_eq!(end("data: abcd\ndata: efgh\ndata: ij\n\n"), Ok(()));
    assert_eq!(end("data: abcd\ndata: efgh\ndata: ijk\n"), Err(TooLong::Event { limit: 12 }));
    let said = read(limits, &"id: 3\nretry: 1\n\nid: 4\ndata: abcde".into(), &[]);
    assert_eq!((&*said.last_event_id, said.retry_ms), ("3", Some(1)), "enough to go on with");
}

#[test]
fn another_stream_of_the_source_goes_on_with_the_id() {
    let mut parser = Parser::new(Limits::default());
    parser.push("retry: 5\nid: 1\ndata: a\n\nid: 2\nevent: lost\ndata: los".into());
    assert_eq!(parser.next_event().unwrap().expect("an event").id(), "1");
    assert!(parser.next_event().unwrap().is_none());
    parser.restart();
    parser.push("\u{feff}data: b\n\n".into());
    let event = parser.next_event().unwrap().expect("an event").to_owned();
    assert_eq!((&*event.event, &*event.data, &*event.id), ("message", "b", "1"));
    assert_eq!(parser.retry().map(|time| time.as_millis()), Some(5));
}

#[test]
fn an_event_is_read_as_json() {
    let mut parser = Parser::new(Limits::default());
    parser.push("data: {\"a\":\ndata: [1, 2]}\n\ndata: [DONE]\n\n".into());
    let event = parser.next_event().unwrap().expect("an event").to_owned();
    let value: serde_json::Value = event.json().expect("JSON");
    assert_eq!(value["a"][1], 2);
    let done = parser.next_event().unwrap().expect("an event").to_owned();
    assert!(done.json::<serde_json::Value>().is_err());
}
