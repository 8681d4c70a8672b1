//! Arbitrary bytes are a ClientHello or none, the same in any split; one that is has all its prints,
//! and is the same when its message is read without records.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::{Choices, fuzz};
use mimus_proto::fingerprint::{ClientHello, HelloError, HelloReader, MAX_HELLO, Transport};

fn read(bytes: &[u8], cuts: &[usize]) -> Result<Option<ClientHello>, HelloError> {
    let (mut reader, mut rest, mut found) = (HelloReader::new(), bytes, None);
    for cut in cuts {
        let (piece, behind) = rest.split_at((*cut).min(rest.len()));
        found = reader.recv(piece)?.or(found);
        rest = behind;
    }
    Ok(reader.recv(rest)?.or(found))
}

fuzz!("client_hello", |data| {
    let mut choices = Choices::new(data);
    let cuts = choices.cuts();
    let bytes = choices.rest();
    let whole = read(bytes, &[]);
    assert_eq!(read(bytes, &cuts), whole);
    if let Ok(Some(hello)) = whole {
        assert!(hello.message.len() <= MAX_HELLO);
        let sorted = hello.ja3n();
        assert_eq!(hello.ja3().raw.len(), sorted.raw.len());
        let (ja4, quic) = (hello.ja4(Transport::Tcp), hello.ja4(Transport::Quic));
        assert_eq!(ja4.hash.len(), 36);
        assert_eq!(ja4.raw[1..], quic.raw[1..]);
        assert_eq!(hello.peetprint().hash.len(), 32);
        assert_eq!(ClientHello::parse(hello.message.clone()), Ok(hello));
    }
});
