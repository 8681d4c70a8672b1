//! Vectors of the protocol's documents, and properties.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use proptest::prelude::*;

use super::*;
use crate::Fields;

fn framed(messages: &[(bool, Vec<u8>)]) -> Bytes {
    let mut wire = BytesMut::new();
    for (compressed, message) in messages {
        let start = wire.len();
        frame(&mut wire, |to| to.extend_from_slice(message)).unwrap();
        set_prefix(&mut wire[start..], *compressed).unwrap();
    }
    wire.freeze()
}

type Messages = Vec<(bool, Vec<u8>)>;

/// All that comes of `pieces`: the messages, and how it ended.
fn read(limit: usize, pieces: &[Bytes]) -> (Messages, Result<(), FrameError>) {
    let (mut deframer, mut out) = (Deframer::new(limit), Vec::new());
    for piece in pieces {
        deframer.push(piece.clone());
        loop {
            match deframer.poll() {
                Ok(Some(frame)) => out.push((frame.compressed, frame.message.to_vec())),
                Ok(None) => break,
                Err(error) => return (out, Err(error)),
            }
        }
    }
    (out, deframer.finish())
}

fn split(wire: &Bytes, cuts: &[usize]) -> Vec<Bytes> {
    let mut rest = wire.clone();
    let mut pieces: Vec<Bytes> =
        cuts.iter().map(|&cut| rest.split_to(cut.min(rest.len()))).collect();
    pieces.push(rest);
    pieces
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in pairs {
        fields.append(name, value).unwrap();
    }
    fields
}

#[test]
fn a_message_is_a_flag_a_length_and_its_bytes() {
    let wire = framed(&[(false, b"abc".to_vec()), (true, vec![])]);
    assert_eq!(wire[..], [0, 0, 0, 0, 3, b'a', b'b', b'c', 1, 0, 0, 0, 0]);
}

#[test]
fn a_message_in_one_piece_is_not_copied() {
    let wire = framed(&[(false, vec![7; 100]), (false, vec![8; 10])]);
    let mut deframer = Deframer::new(100);
    deframer.push(wire.clone());
    let first = deframer.poll().unwrap().unwrap();
    assert_eq!(first.message.as_ptr(), wire[PREFIX..].as_ptr());
    let second = deframer.poll().unwrap().unwrap();
    assert_eq!(second.message.as_ptr(), wire[100 + 2 * PREFIX..].as_ptr());
    assert!(deframer.is_between());
}

#[test]
fn a_message_over_the_limit_is_refused_before_it_comes() {
    let wire = framed(&[(false, vec![1; 8]), (false, vec![2; 9])]);
    let (got, end) = read(8, &[wire.slice(..8 + 2 * PREFIX)]);
    assert_eq!(got.len(), 1);
    assert_eq!(end, Err(FrameError::TooLong { length: 9, limit: 8 }));
    let error = read(usize::MAX, &[Bytes::from_static(&[2, 0, 0, 0, 0])]).1;
    assert_eq!(error, Err(FrameError::BadFlag(2)));
}

#[test]
fn an_announced_length_alone_takes_little_memory() {
    let mut deframer = Deframer::new(usize::MAX);
    deframer.push(Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff, 1]));
    assert_eq!(deframer.poll(), Ok(None));
    assert!(deframer.reserved() <= 64 * 1024, "{}", deframer.reserved());
    assert_eq!(deframer.finish(), Err(FrameError::Truncated));
}

#[test]
fn an_error_stays() {
    let mut deframer = Deframer::new(1);
    deframer.push(Bytes::from_static(&[9, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    for _ in 0..2 {
        assert_eq!(deframer.poll(), Err(FrameError::BadFlag(9)));
        assert_eq!(deframer.finish(), Err(FrameError::BadFlag(9)));
    }
}

#[test]
fn too_little_room_for_a_prefix_is_an_error() {
    assert_eq!(set_prefix(&mut [0; 4], false), Err(FrameError::Truncated));
}

#[test]
fn codes_have_their_numbers_and_names() {
    for (number, code) in Code::ALL.into_iter().enumerate() {
        assert_eq!(code.number(), number as i32);
        assert_eq!(Code::try_from(number as i32), Ok(code));
        assert_eq!(Code::parse(number.to_string().as_bytes()), Some(code));
        assert!(code.name().bytes().all(|b| b.is_ascii_uppercase() || b == b'_'));
    }
    assert_eq!(Code::try_from(17), Err(UnknownCode(17)));
    assert_eq!(Code::parse(b"17"), Some(Code::Unknown));
    assert_eq!(Code::parse(b"99999999999"), None);
    for bad in [&b""[..], b"-1", b"1.0", b"x", b" 1"] {
        assert_eq!(Code::parse(bad), None, "{bad:?}");
    }
}

#[test]
fn http_statuses_map_as_the_table_says() {
    let table = [
        (400, Code::Internal),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (502, Code::Unavailable),
        (503, Code::Unavailable),
        (504, Code::Unavailable),
        (200, Code::Unknown),
        (302, Code::Unknown),
        (500, Code::Unknown),
    ];
    for (status, code) in table {
        assert_eq!(Code::from_http(StatusCode::from_u16(status).unwrap()), code, "{status}");
    }
    let h2 = [(0, Code::Internal), (7, Code::Unavailable), (8, Code::Cancelled)];
    for (error, code) in h2 {
        assert_eq!(Code::from_h2_error(error), code, "{error}");
    }
    assert_eq!(Code::from_h2_error(0xb), Code::ResourceExhausted);
    assert_eq!(Code::from_h2_error(0xc), Code::PermissionDenied);
}

#[test]
fn timeouts_take_the_finest_unit_that_fits() {
    let cases = [
        (Duration::ZERO, "0n"),
        (Duration::from_nanos(99_999_999), "99999999n"),
        (Duration::from_nanos(100_000_000), "100000u"),
        (Duration::from_nanos(100_000_001), "100001u"),
        (Duration::from_secs(1), "1000000u"),
        (Duration::from_secs(100), "100000m"),
        (Duration::from_secs(99_999), "99999000m"),
        (Duration::from_secs(100_000), "100000S"),
        (Duration::from_secs(100_000_000), "1666667M"),
        (Duration::from_secs(u64::MAX), "99999999H"),
    ];
    for (duration, text) in cases {
        assert_eq!(encode_timeout(duration), text);
    }
}

#[test]
fn timeouts_are_read_strictly() {
    assert_eq!(parse_timeout(b"1S"), Some(Duration::from_secs(1)));
    assert_eq!(parse_timeout(b"00000090M"), Some(Duration::from_secs(5400)));
    assert_eq!(parse_timeout(b"99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
    assert_eq!(parse_timeout(b"5m"), Some(Duration::from_millis(5)));
    for bad in [&b""[..], b"S", b"1", b"1s", b"-1S", b"+1S", b"1.5S", b"123456789n", b"1 S"] {
        assert_eq!(parse_timeout(bad), None, "{bad:?}");
    }
}

#[test]
fn messages_are_percent_encoded() {
    assert_eq!(encode_message("my favorite character is \u{0}"), "my favorite character is %00");
    assert_eq!(encode_message("100% \n\u{7f}é"), "100%25 %0A%7F%C3%A9");
    assert_eq!(decode_message(b"%C3%A9t%c3%A9"), "été");
    // What is no escape stands for itself, so that nothing is lost.
    assert_eq!(decode_message(b"100% of%zz%4"), "100% of%zz%4");
    assert_eq!(decode_message(b"%FF"), "\u{fffd}");
}

#[test]
fn binary_metadata_is_base64_without_padding() {
    let mut metadata = Metadata::new();
    metadata.append_bin("Trace-BIN", &[0, 255]).unwrap();
    metadata.append("token", "a b").unwrap();
    assert_eq!(metadata.fields().get_str("trace-bin"), Some("AP8"));
    assert_eq!(metadata.get_bin("trace-bin"), Some(vec![0, 255]));
    assert_eq!(metadata.get("trace-bin"), None);
    assert_eq!(metadata.get("Token"), Some("a b"));
    assert_eq!(metadata.get_bin("token"), None);
}

#[test]
fn received_binary_metadata_may_be_padded_and_joined() {
    let received = fields(&[("x-bin", "AP8="), ("x-bin", "AP8, YQ==,*"), ("grpc-status", "0")]);
    let metadata = Metadata::received(received);
    let values: Vec<_> = metadata.get_all_bin("x-bin").collect();
    assert_eq!(values, [vec![0, 255], vec![0, 255], b"a".to_vec()]);
    assert_eq!(metadata.len(), 2);
}

#[test]
fn what_is_not_metadata_is_refused() {
    let mut metadata = Metadata::new();
    for name in ["grpc-timeout", "Content-Type", "te", "GRPC-x", "connection"] {
        assert_eq!(metadata.append(name, "x"), Err(InvalidMetadata::Reserved), "{name}");
    }
    assert_eq!(metadata.append_bin("grpc-x-bin", b""), Err(InvalidMetadata::Reserved));
    assert_eq!(metadata.append("a-bin", "x"), Err(InvalidMetadata::WrongKind));
    assert_eq!(metadata.append_bin("a", b"x"), Err(InvalidMetadata::WrongKind));
    assert!(matches!(metadata.append("a b", "x"), Err(InvalidMetadata::Field(_))));
    for value in ["x\ny", "é"] {
        assert!(matches!(metadata.append("a", value), Err(InvalidMetadata::Field(_))), "{value}");
    }
    assert!(metadata.is_empty());
}

#[test]
fn trailers_say_how_it_ended_and_a_head_only_when_alone() {
    let ok = StatusCode::OK;
    let head = fields(&[("content-type", "application/grpc"), ("grpc-status", "5")]);
    let trailers = fields(&[("grpc-status", "9"), ("grpc-message", "no%21")]);
    let of = |status, head: &Fields, trailers: Option<&Fields>, empty| {
        Ending::of_head(status, head).status(trailers, empty)
    };
    let said = of(ok, &head, Some(&trailers), true);
    assert_eq!((said.code, &said.message[..]), (Code::FailedPrecondition, "no!"));
    assert_eq!(of(ok, &head, None, true).code, Code::NotFound);
    assert_eq!(of(ok, &head, None, false).code, Code::Internal);
    assert_eq!(of(ok, &head, Some(&fields(&[])), true).code, Code::Internal);
    let gateway = fields(&[("content-type", "text/html")]);
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    assert_eq!(of(busy, &gateway, None, false).code, Code::Unavailable);
    let said = of(ok, &gateway, None, false);
    assert_eq!(said.code, Code::Unknown);
    assert!(said.message.contains("text/html"));
}

#[test]
fn details_are_kept_and_a_broken_status_is_unknown() {
    let said = fields(&[("grpc-status", "13"), ("grpc-status-details-bin", "CA0=")]);
    assert_eq!(Status::from_fields(&said).unwrap().details[..], [8, 13]);
    let broken = Status::from_fields(&fields(&[("grpc-status", "fine")])).unwrap();
    assert_eq!(broken.code, Code::Unknown);
    assert_eq!(Status::from_fields(&fields(&[])), None);
}

#[test]
fn the_media_type_and_its_serialization() {
    let of = |value: &str| subtype(&fields(&[("content-type", value)])).map(str::to_owned);
    assert_eq!(of("application/grpc"), Some(String::new()));
    assert_eq!(of("Application/GRPC+proto; charset=utf-8"), Some("proto".into()));
    assert_eq!(of("application/grpc+json"), Some("json".into()));
    for other in ["application/grpc-web", "application/grpcx", "text/html", "app"] {
        assert_eq!(of(other), None, "{other}");
    }
    assert!(!is_grpc(&fields(&[])));
}

fn messages() -> impl Strategy<Value = Messages> {
    let message = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300));
    prop::collection::vec(message, 0..6)
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_split(
        messages in messages(),
        cuts in prop::collection::vec(0_usize..40, 0..60),
    ) {
        let wire = framed(&messages);
        prop_assert_eq!(read(300, &split(&wire, &cuts)), (messages, Ok(())));
    }

    #[test]
    fn any_bytes_mean_the_same_however_they_are_split(
        wire in prop::collection::vec(prop_oneof![3 => 0_u8..4, 1 => any::<u8>()], 0..200),
        cuts in prop::collection::vec(0_usize..9, 0..60),
    ) {
        let wire = Bytes::from(wire);
        prop_assert_eq!(read(40, &split(&wire, &cuts)), read(40, std::slice::from_ref(&wire)));
    }

    #[test]
    fn a_cut_off_body_is_truncated(messages in messages(), at in any::<prop::sample::Index>()) {
        let wire = framed(&messages);
        let at = at.index(wire.len() + 1);
        let (got, end) = read(300, &[wire.slice(..at)]);
        let whole = framed(&got).len() == at;
        prop_assert_eq!(end, if whole { Ok(()) } else { Err(FrameError::Truncated) });
        prop_assert_eq!(&got[..], &messages[..got.len()]);
    }

    #[test]
    fn message_text_survives(text in any::<String>()) {
        let encoded = encode_message(&text);
        prop_assert!(encoded.bytes().all(|b| matches!(b, b' '..=b'~')));
        prop_assert_eq!(decode_message(encoded.as_bytes()), text);
    }

    #[test]
    fn any_message_bytes_decode(value in prop::collection::vec(any::<u8>(), 0..50)) {
        prop_assert!(decode_message(&value).len() <= value.len() * 3);
    }

    #[test]
    fn timeouts_round_up_by_at_most_one_unit(nanos in any::<u64>()) {
        let before = Duration::from_nanos(nanos);
        let text = encode_timeout(before);
        prop_assert!(text.len() <= 9);
        let after = parse_timeout(text.as_bytes()).unwrap();
        prop_assert!(after >= before);
        prop_assert!(after - before < before / 1_000_000 + Duration::from_nanos(1));
    }

    #[test]
    fn bytes_survive_as_metadata(value in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut metadata = Metadata::new();
        metadata.append_bin("k-bin", &value).unwrap();
        prop_assert_eq!(metadata.get_bin("k-bin"), Some(value));
    }
}
