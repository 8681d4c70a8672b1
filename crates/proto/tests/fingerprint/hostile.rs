//! What is no ClientHello, and what is one in many pieces.

use bytes::Bytes;
use mimus_proto::fingerprint::{
    ClientHello, Content, ExtensionId, HelloError, HelloReader, MAX_HELLO, Transport,
};
use proptest::prelude::*;

use crate::captures::{bytes, hello};

/// The message in records of these lengths, the last of what is left.
fn in_records(message: &[u8], lens: &[usize]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), message);
    for len in lens.iter().copied().chain(std::iter::repeat(1 << 14)) {
        let (record, tail) = rest.split_at(len.min(rest.len()));
        if record.is_empty() {
            break;
        }
        out.extend_from_slice(&[22, 3, 1]);
        out.extend_from_slice(&(record.len() as u16).to_be_bytes());
        out.extend_from_slice(record);
        rest = tail;
    }
    out
}

fn read_split(bytes: &[u8], cuts: &[usize]) -> Result<Option<ClientHello>, HelloError> {
    let mut reader = HelloReader::new();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let (mut from, mut found) = (0, None);
    for place in places.into_iter().chain([bytes.len()]) {
        found = reader.recv(&bytes[from..place])?.or(found);
        from = place;
    }
    Ok(found)
}

/// A hello with these extensions, each a type and its bytes.
fn with_extensions(extensions: &[(u16, &[u8])]) -> ClientHello {
    let mut list = Vec::new();
    for (id, raw) in extensions {
        list.extend_from_slice(&id.to_be_bytes());
        list.extend_from_slice(&(raw.len() as u16).to_be_bytes());
        list.extend_from_slice(raw);
    }
    let mut body = vec![3, 3];
    body.extend_from_slice(&[7; 32]);
    body.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0]);
    body.extend_from_slice(&(list.len() as u16).to_be_bytes());
    body.extend_from_slice(&list);
    let len = (body.len() as u32).to_be_bytes();
    let message = [&[1, len[1], len[2], len[3]][..], &body].concat();
    ClientHello::parse(message.into()).expect("a hello")
}

#[test]
fn what_is_not_tls_is_refused_at_once() {
    let refuse = |bytes: &[u8]| HelloReader::new().recv(bytes).expect_err("refused");
    assert_eq!(refuse(b"G"), HelloError::NotTls);
    assert_eq!(refuse(&[22, 2, 0, 0, 9]), HelloError::NotTls);
    assert_eq!(refuse(&[22, 3, 1, 0, 0]), HelloError::RecordLength);
    assert_eq!(refuse(&[22, 3, 1, 0x40, 1]), HelloError::RecordLength);
    assert_eq!(refuse(&[22, 3, 1, 0, 9, 2]), HelloError::NotClientHello);
    assert_eq!(refuse(&[22, 3, 1, 0, 9, 1, 0xff, 0, 0]), HelloError::TooLong);
    assert_eq!(refuse(&[22, 3, 1, 0, 9, 1, 0, 0, 0]), HelloError::Malformed);
}

#[test]
fn an_error_is_the_answer_from_then_on() {
    let mut reader = HelloReader::new();
    assert_eq!(reader.recv(b"GET / HTTP/1.1"), Err(HelloError::NotTls));
    assert_eq!(reader.recv(&bytes("firefox-153.bin")), Err(HelloError::NotTls));
}

#[test]
fn a_hello_is_given_once_and_what_follows_is_left_alone() {
    let mut reader = HelloReader::new();
    let mut all = bytes("firefox-153.bin");
    all.extend_from_slice(b"\x14\x03\x03\0\x01\x01");
    assert!(matches!(reader.recv(&all), Ok(Some(_))));
    assert_eq!(reader.recv(b"anything"), Ok(None));
    assert_eq!(reader.records().len(), 1);
}

#[test]
fn a_hello_of_the_largest_size_is_read_and_one_more_is_not() {
    let hello = |len: usize| {
        let [_, a, b, c] = (len as u32).to_be_bytes();
        let mut message = vec![1, a, b, c];
        message.resize(4 + len, 0);
        HelloReader::new().recv(&in_records(&message, &[]))
    };
    // All zeros are no hello; but they are read to the end.
    assert_eq!(hello(MAX_HELLO - 4), Err(HelloError::Malformed));
    assert_eq!(hello(MAX_HELLO - 3), Err(HelloError::TooLong));
}

#[test]
fn a_hello_without_extensions_has_prints() {
    let message = [&[1, 0, 0, 41, 3, 1][..], &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0]].concat();
    let hello = ClientHello::parse(message.into()).expect("a hello of old");
    assert!(hello.extensions.is_empty());
    assert_eq!(hello.ja3().raw, "769,47,,,");
    // The SHA-256 of "002f", and zeros for no extensions.
    assert_eq!(hello.ja4(Transport::Tcp).hash, "t10i010000_ba72b8082249_000000000000");
    assert_eq!(hello.ja4(Transport::Tcp).raw, "t10i010000_002f_");
    assert_eq!(hello.peetprint().raw, "||||||47|");
}

#[test]
fn the_first_protocol_is_two_characters_of_ja4() {
    for (protocol, expected) in [
        (&b"h2"[..], "h2"),
        (b"http/1.1", "h1"),
        (b"h", "hh"),
        (b"\xab", "ab"),
        (b"\xab\xcd", "ad"),
        (b"\x30\xab", "3b"),
        (b"\xabc", "a3"),
    ] {
        let list = [&[0, protocol.len() as u8 + 1, protocol.len() as u8][..], protocol].concat();
        let hello = with_extensions(&[(16, &list)]);
        assert_eq!(hello.ja4(Transport::Tcp).hash[8..10], *expected, "{protocol:?}");
    }
}

#[test]
fn content_that_contradicts_its_definition_is_kept_as_such() {
    for (id, raw) in [
        (0, &[0, 3, 1, 0, 0][..]),
        (0, &[0, 9, 0, 0, 1, b'a']),
        (10, &[0, 3, 0, 1, 2]),
        (10, &[0, 2, 0, 1, 2]),
        (16, &[0, 3, 9, b'h', b'2']),
        (23, &[1]),
        (28, &[1]),
        (41, &[0, 0]),
        (43, &[3, 3, 4, 3]),
        (51, &[0, 4, 0, 1, 0, 9]),
        (65037, &[1]),
    ] {
        let hello = with_extensions(&[(id, raw)]);
        let extension = &hello.extensions[0];
        assert_eq!(extension.content, Content::Malformed, "{:?}", extension.id);
        assert_eq!(extension.raw, raw);
        assert!(hello.groups().is_empty() && hello.alpn().is_empty());
    }
}

#[test]
fn an_offer_of_early_data_and_two_tickets_is_read() {
    let offer = [&[0, 15, 0, 2, 1, 1, 9, 9, 9, 9, 0, 1, 1, 9, 9, 9, 9][..], &[0, 5, 1, 7, 2, 7, 7]];
    let hello = with_extensions(&[(42, &[]), (41, &offer.concat())]);
    assert_eq!(hello.extensions[0].content, Content::Empty);
    let Some(Content::PreSharedKey(offer)) =
        hello.extension(ExtensionId::PRE_SHARED_KEY).map(|e| &e.content)
    else {
        panic!("no offer: {:?}", hello.extensions);
    };
    assert_eq!((&offer.identities[..], &offer.binders[..]), (&[2, 1][..], &[1, 2][..]));
}

proptest! {
    #[test]
    fn any_split_gives_the_same_hello(
        lens in prop::collection::vec(1_usize..2000, 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let whole = hello("chromium-156-resumed");
        let stream = in_records(&whole.message, &lens);
        prop_assert_eq!(read_split(&stream, &cuts), Ok(Some(whole)));
    }

    #[test]
    fn a_damaged_hello_is_read_the_same_in_any_split(
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        len in any::<usize>(),
    ) {
        let mut stream = bytes("firefox-153-resumed.bin");
        for (place, byte) in damage {
            let at = place % stream.len();
            stream[at] = byte;
        }
        stream.truncate(len % (2 * stream.len()));
        let whole = read_split(&stream, &[]);
        prop_assert_eq!(&read_split(&stream, &cuts), &whole);
        if let Ok(Some(hello)) = whole {
            let _ = (hello.ja3(), hello.ja3n(), hello.ja4(Transport::Tcp), hello.peetprint());
        }
    }

    #[test]
    fn no_bytes_panic(raw in prop::collection::vec(any::<u8>(), 0..200), id in any::<u16>()) {
        let _ = HelloReader::new().recv(&raw);
        let _ = ClientHello::parse(Bytes::from([&[1, 0, 0, raw.len() as u8][..], &raw].concat()));
        let hello = with_extensions(&[(id, &raw), (16, &raw), (41, &raw), (51, &raw)]);
        let _ = (hello.ja3(), hello.ja4(Transport::Quic), hello.peetprint(), hello.server_name());
    }
}
