//! `record_size_limit` (RFC 8449).

use boring::ssl::SslVersion;

use super::*;

/// What a record of AEAD adds to its plaintext: in TLS 1.3 a tag, behind the content type, which the
/// limit counts; in TLS 1.2 a nonce and a tag.
fn overhead(version: SslVersion) -> usize {
    if version == SslVersion::TLS1_3 { 16 } else { 8 + 16 }
}

fn pair(version: SslVersion, client_limit: u16, server_limit: u16) -> Pair {
    let mut context = client_context().0;
    context.set_max_proto_version(Some(version)).unwrap();
    context.set_strict_cipher_list("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap();
    let mut client = Ssl::new(&context.build()).unwrap();
    set_record_size_limit(&mut client, client_limit).unwrap();
    let mut server = server(&server_context().build());
    set_record_size_limit(&mut server, server_limit).unwrap();
    Pair::new(client, server)
}

fn read_all(from: &mut SslStream<End>, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    let mut at = 0;
    while at < len {
        at += from.ssl_read(&mut out[at..]).unwrap();
    }
    out
}

/// The largest protected record of a direction: behind the ChangeCipherSpec of TLS 1.2, and in TLS 1.3
/// of the type that all of them have.
fn largest(written: &[u8], version: SslVersion) -> usize {
    let records = records(written).into_iter();
    let protected: Vec<_> = if version == SslVersion::TLS1_3 {
        records.filter(|record| record.kind == 23).collect()
    } else {
        records.skip_while(|record| record.kind != 20).skip(1).collect()
    };
    protected.iter().map(|record| record.bytes.len()).max().unwrap()
}

#[test]
fn each_side_keeps_to_the_limit_of_the_other() {
    if !patched("each_side_keeps_to_the_limit_of_the_other") {
        return;
    }
    for version in [SslVersion::TLS1_3, SslVersion::TLS1_2] {
        for (client_limit, server_limit) in [(16385, 64), (512, 1000), (64, 16384)] {
            let mut pair = pair(version, client_limit, server_limit);
            pair.handshake().unwrap();
            let data: Vec<u8> = (0..40_000u32).map(|n| n as u8).collect();
            pair.client.write_all(&data).unwrap();
            assert_eq!(read_all(&mut pair.server, data.len()), data);
            pair.server.write_all(&data).unwrap();
            assert_eq!(read_all(&mut pair.client, data.len()), data);
            // A version's own limit holds as well: 2^14 bytes, and the content type in TLS 1.3.
            let most = if version == SslVersion::TLS1_3 { 16385 } else { 16384 };
            for (side, limit) in [(&pair.client, server_limit), (&pair.server, client_limit)] {
                let largest = largest(&side.get_ref().written, version);
                assert_eq!(
                    largest - overhead(version),
                    usize::from(limit).min(most),
                    "{version:?}"
                );
            }
        }
    }
}

#[test]
fn without_an_answer_there_is_no_limit() {
    if !patched("without_an_answer_there_is_no_limit") {
        return;
    }
    let mut pair = pair(SslVersion::TLS1_3, 64, 0);
    pair.handshake().unwrap();
    let data = vec![b'x'; 16384];
    pair.server.write_all(&data).unwrap();
    assert_eq!(read_all(&mut pair.client, data.len()), data);
    assert_eq!(largest(&pair.server.get_ref().written, SslVersion::TLS1_3), 16384 + 1 + 16);
}

#[test]
fn a_record_over_the_limit_ends_the_connection() {
    if !patched("a_record_over_the_limit_ends_the_connection") {
        return;
    }
    for version in [SslVersion::TLS1_3, SslVersion::TLS1_2] {
        let mut pair = pair(version, 512, 16384);
        pair.handshake().unwrap();
        // A server that forgets what it agreed to.
        // SAFETY: the SSL is live; the call sets a number.
        let set = unsafe { ffi::SSL_set_max_send_fragment(pair.server.ssl().as_ptr(), 4096) };
        assert_eq!(set, 1);
        pair.server.write_all(&[b'x'; 600]).unwrap();
        let error = pair.client.ssl_read(&mut [0; 600]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::SSL);
        let error = pair.server.ssl_read(&mut [0; 1]).unwrap_err();
        // RFC 8449 section 4: record_overflow.
        assert!(error.to_string().contains("RECORD_OVERFLOW"), "{error}");
    }
}

#[test]
fn limits_that_no_version_has_are_not_set() {
    if !patched("limits_that_no_version_has_are_not_set") {
        return;
    }
    let mut ssl = Ssl::new(&client_context().0.build()).unwrap();
    for limit in [1, 63, 16386] {
        assert!(set_record_size_limit(&mut ssl, limit).is_err());
    }
    for limit in [0, 64, 16385] {
        set_record_size_limit(&mut ssl, limit).unwrap();
    }
}

/// What a client says to a ServerHello of TLS 1.2 whose limit was changed on its way.
fn told(limit: u16) -> Error {
    const NOBODYS: u16 = 0x1234;
    let mut pair = pair(SslVersion::TLS1_2, 16385, NOBODYS);
    assert_eq!(pair.client.connect().unwrap_err().code(), ErrorCode::WANT_READ);
    assert_eq!(pair.server.accept().unwrap_err().code(), ErrorCode::WANT_READ);
    let extension = |limit: u16| [&[0, 28, 0, 2][..], &limit.to_be_bytes()].concat();
    let mut incoming = pair.client.get_ref().incoming.borrow_mut();
    let bytes = incoming.make_contiguous();
    let at = bytes.windows(6).position(|bytes| bytes == extension(NOBODYS)).unwrap();
    bytes[at..at + 6].copy_from_slice(&extension(limit));
    drop(incoming);
    pair.handshake().unwrap_err()
}

#[test]
fn limits_that_are_illegal_are_refused() {
    if !patched("limits_that_are_illegal_are_refused") {
        return;
    }
    // RFC 8449 section 4: below 64, and above what the version has.
    for limit in [0, 63, 16385, 65535] {
        assert!(told(limit).to_string().contains("BAD_LENGTH"), "{limit}");
    }
    // These pass, until both sides compare what they saw.
    for limit in [64, 16384] {
        assert!(!told(limit).to_string().contains("BAD_LENGTH"), "{limit}");
    }
}
