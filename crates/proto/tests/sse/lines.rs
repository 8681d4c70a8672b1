//! Lines of JSON.

use bytes::Bytes;
use mimus_proto::sse::{Ends, Lines, TooLong};

fn read(text: &'static str, cuts: &[usize]) -> (Vec<String>, Option<String>) {
    let (mut lines, mut out, mut rest) = (Lines::new(Ends::Lf, 100), Vec::new(), Bytes::from(text));
    for &cut in cuts.iter().chain([&usize::MAX]) {
        lines.push(rest.split_to(cut.min(rest.len())));
        while let Some(line) = lines.next_line().expect("short lines") {
            assert_eq!(line.to_bytes(), *line);
            out.push(String::from_utf8(line.to_vec()).expect("text"));
        }
    }
    let last = lines.finish().map(|line| String::from_utf8(line.to_vec()).expect("text"));
    (out, last)
}

#[test]
fn a_line_ends_with_lf_or_cr_lf_and_the_last_with_the_stream() {
    let text = "{\"a\": 1}\r\n\n[\"\r\"]\nlast\r";
    let wanted =
        (["{\"a\": 1}", "", "[\"\r\"]"].map(str::to_owned).to_vec(), Some("last".to_owned()));
    assert_eq!(read(text, &[]), wanted);
    assert_eq!(read(text, &[1; 40]), wanted);
    for at in 0..text.len() {
        assert_eq!(read(text, &[at]), wanted, "cut at {at}");
    }
    assert_eq!(read("a\n", &[]).1, None);
}

#[test]
fn only_the_cr_before_the_lf_belongs_to_the_end() {
    let wanted = (vec!["a\r".to_owned(), "\rb".to_owned()], Some("c\r".to_owned()));
    for at in 0..10 {
        assert_eq!(read("a\r\r\n\rb\r\nc\r\r", &[at, 1]), wanted, "cut at {at}");
    }
}

#[test]
fn a_line_over_the_limit_is_refused_before_its_end_comes() {
    let too_long = Some(TooLong::Line { limit: 3 });
    for (text, cut) in [("abcd\n", 9), ("abcd", 2), ("abcd", 9), ("abcde\n", 3)] {
        let mut lines = Lines::new(Ends::Lf, 3);
        let mut text = Bytes::from(text);
        lines.push(text.split_to(cut.min(text.len())));
        let first = lines.next_line().map(|line| line.is_some()).err();
        lines.push(text);
        let second = lines.next_line().map(|line| line.is_some()).err();
        assert_eq!(first.or(second), too_long);
        assert_eq!(lines.next_line().map(|line| line.is_some()).err(), too_long);
    }
    let mut lines = Lines::new(Ends::Lf, 3);
    lines.push("abc\r".into());
    assert!(lines.next_line().expect("the CR may be an end").is_none());
    lines.push("\n".into());
    assert_eq!(&*lines.next_line().expect("3 bytes").expect("a line"), b"abc");
}

#[test]
fn a_piece_that_comes_early_is_joined_to_what_is_left() {
    let mut lines = Lines::new(Ends::Any, 100);
    lines.push("a\nb\rc".into());
    assert_eq!(&*lines.next_line().unwrap().expect("a line"), b"a");
    lines.push("d\n".into());
    assert_eq!(&*lines.next_line().unwrap().expect("a line"), b"b");
    assert_eq!(&*lines.next_line().unwrap().expect("a line"), b"cd");
    assert!(lines.next_line().unwrap().is_none());
}
