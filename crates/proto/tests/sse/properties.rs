//! What holds for any stream.

use bytes::Bytes;
use mimus_proto::sse::Limits;
use proptest::{collection::vec, prelude::*};

use crate::rig::{by_the_letter, read};

/// Bytes that lead into every corner of the grammar.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"data:",
        b"data: ",
        b"data",
        b"event: ",
        b"id:",
        b"id: ",
        b"retry: ",
        b":",
        b" ",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b"\xEF\xBB\xBF",
        b"\0",
        b"\xE2\x82\xAC",
        b"\xE2\x82",
        b"\xFF",
        b"150",
        b"x",
    ];
    let part = prop_oneof![
        8 => prop::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..20),
        1 => "[ -~]{0,200}".prop_map(String::into_bytes),
    ];
    vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_split_gives_the_events_of_the_letter(stream in stream(), cuts in vec(0_usize..9, 0..40)) {
        let wanted = by_the_letter(&stream);
        let stream = Bytes::from(stream);
        prop_assert_eq!(&read(Limits::default(), &stream, &[]), &wanted);
        prop_assert_eq!(&read(Limits::default(), &stream, &cuts), &wanted);
        prop_assert_eq!(&read(Limits::default(), &stream, &vec![1; stream.len()]), &wanted);
    }

    #[test]
    fn limits_hold_for_any_split(stream in stream(), cuts in vec(0_usize..9, 0..40), line in 0_usize..30, event in 0_usize..30) {
        let limits = Limits::default().line(line).event(event);
        let stream = Bytes::from(stream);
        let whole = read(limits, &stream, &[]);
        prop_assert_eq!(&read(limits, &stream, &cuts), &whole);
        prop_assert_eq!(&read(limits, &stream, &vec![1; stream.len()]), &whole);
        prop_assert!(by_the_letter(&stream).events.starts_with(&whole.events));
    }
}
