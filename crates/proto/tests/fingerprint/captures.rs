//! What browsers sent, read by two readers.

use std::path::{Path, PathBuf};

use mimus_proto::fingerprint::{
    ClientHello, Content, ExtensionId, HelloReader, Http2Reader, Transport, describe_frames,
    describe_hello, is_grease,
};
use serde_json::Value;

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hellos").join(name)
}

pub fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).expect("a recorded file")
}

pub fn hello(name: &str) -> ClientHello {
    let bytes = bytes(&format!("{name}.bin"));
    HelloReader::new().recv(&bytes).expect("a ClientHello").expect("all of it")
}

fn expected(name: &str) -> Vec<(String, Value)> {
    let text = std::fs::read(data(name)).expect("expectations");
    let all: serde_json::Map<String, Value> = serde_json::from_slice(&text).expect("JSON");
    assert!(!all.is_empty());
    all.into_iter().collect()
}

/// Field by field, so that a difference is found without reading all of both.
fn assert_same(place: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, theirs) in theirs {
                let ours = ours.get(key).unwrap_or(&Value::Null);
                assert_same(&format!("{place}.{key}"), ours, theirs);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{place}");
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                assert_same(&format!("{place}[{index}]"), ours, theirs);
            }
        }
        _ => assert_eq!(ours, theirs, "{place}"),
    }
}

#[test]
fn each_hello_is_read_as_another_reader_reads_it() {
    for (name, theirs) in expected("expected.json") {
        let mut reader = HelloReader::new();
        let hello = reader.recv(&bytes(&format!("{name}.bin"))).expect("TLS").expect("all of it");
        let ours = describe_hello(&hello, reader.records(), Transport::Tcp);
        assert_same(&name, &ours, &theirs);
    }
}

#[test]
fn each_http2_connection_is_read_as_another_reader_reads_it() {
    for (name, theirs) in expected("expected-h2.json") {
        let mut reader = Http2Reader::new();
        reader.recv(&bytes(&format!("{name}.bin")));
        let mut frames = Vec::new();
        while let Some(frame) = reader.poll_frame().expect("frames") {
            frames.push(frame);
        }
        assert_same(&name, &describe_frames(&frames), &theirs);
    }
}

#[test]
fn chromium_has_grease_where_firefox_has_none() {
    let count = |hello: &ClientHello| {
        let numbers = [&hello.cipher_suites, hello.groups(), hello.versions()].concat();
        let extensions = hello.extensions.iter().map(|extension| extension.id.0);
        numbers.into_iter().chain(extensions).filter(|&number| is_grease(number)).count()
    };
    assert_eq!(count(&hello("chromium-156")), 5);
    assert_eq!(count(&hello("firefox-153")), 0);
}

#[test]
fn the_questions_of_a_profile_have_answers() {
    let firefox = hello("firefox-153");
    assert_eq!(firefox.server_name(), Some("a.test"));
    assert_eq!(firefox.alpn(), ["h2", "http/1.1"]);
    assert_eq!(firefox.version(), 0x0304);
    assert_eq!(firefox.certificate_compression(), [1, 2, 3]);
    let shares: Vec<_> = firefox.key_shares().iter().map(|s| (s.group, s.len)).collect();
    assert_eq!(shares, [(0x11ec, 1216), (0x1d, 32), (0x17, 65)]);
    let limit = firefox.extension(ExtensionId::RECORD_SIZE_LIMIT).map(|e| &e.content);
    assert_eq!(limit, Some(&Content::RecordSizeLimit(16385)));
    let chromium = hello("chromium-156-address");
    assert_eq!(chromium.server_name(), None);
    let Some(Content::TrustAnchors(anchors)) =
        chromium.extension(ExtensionId::TRUST_ANCHORS).map(|e| &e.content)
    else {
        panic!("no trust anchors");
    };
    assert_eq!(anchors[0][..], [0x82, 0xdf, 0x13, 2, 1]);
}

#[test]
fn quic_changes_only_the_first_letter() {
    let hello = hello("chromium-156");
    let (tcp, quic) = (hello.ja4(Transport::Tcp).hash, hello.ja4(Transport::Quic).hash);
    assert_eq!(tcp.strip_prefix('t'), quic.strip_prefix('q'));
}

#[test]
fn the_message_alone_is_read_too() {
    let hello = hello("firefox-159");
    assert_eq!(ClientHello::parse(hello.message.clone()), Ok(hello));
}
