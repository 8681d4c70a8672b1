//! What is written, byte for byte.

use mimus_proto::ApiMisuse;
use mimus_proto::ws::{
    Close, CloseCode, Config, Connection, Keys, Limits, Masking, Message, OwnedMessage, Prepared,
    Reader, Role, Unmasked, Writer,
};

/// Keys that can be told apart: 1, 2, 3 ...
fn counted() -> Keys<impl FnMut(&mut [u8])> {
    let mut next = 0_u32;
    Keys::new(move |bytes: &mut [u8]| {
        for key in bytes.chunks_exact_mut(4) {
            next += 1;
            key.copy_from_slice(&next.to_be_bytes());
        }
    })
}

fn output<M: Masking>(writer: &mut Writer<M>) -> Vec<u8> {
    let mut wire = Vec::new();
    while writer.pending() > 0 {
        let mut slices = [std::io::IoSlice::new(&[]); 3];
        let filled = writer.poll_transmit(&mut slices);
        slices[..filled].iter().for_each(|slice| wire.extend_from_slice(slice));
        let count = slices[..filled].iter().map(|slice| slice.len()).sum();
        writer.transmitted(count);
    }
    wire
}

fn heard(role: Role, wire: &[u8]) -> Vec<OwnedMessage> {
    let mut reader = Reader::new(role, Limits::default());
    reader.recv(wire);
    let mut all = Vec::new();
    while let Some(message) = reader.poll().unwrap() {
        all.push(message.to_owned());
    }
    all
}

#[test]
fn a_server_writes_the_examples_of_the_rfc() {
    let mut writer = Writer::new(Unmasked);
    writer.send(Message::Text("Hello")).unwrap();
    writer.send_text_piece("Hel", false).unwrap();
    writer.send(Message::Ping(b"Hello")).unwrap();
    writer.send_text_piece("lo", true).unwrap();
    // RFC 6455 section 5.7.
    let expected = [
        &[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f][..],
        &[0x01, 0x03, 0x48, 0x65, 0x6c],
        &[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f],
        &[0x80, 0x02, 0x6c, 0x6f],
    ];
    assert_eq!(output(&mut writer), expected.concat());
}

#[test]
fn a_client_masks_each_frame_with_a_key_of_its_own() {
    let mut writer = Writer::new(Keys::new(|bytes: &mut [u8]| {
        bytes[..4].copy_from_slice(&[0x37, 0xfa, 0x21, 0x3d]);
    }));
    writer.send(Message::Text("Hello")).unwrap();
    // RFC 6455 section 5.7.
    let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(output(&mut writer), hello);

    let mut writer = Writer::new(counted());
    for _ in 0..200 {
        writer.send(Message::Binary(b"")).unwrap();
    }
    let wire = output(&mut writer);
    for (at, frame) in wire.chunks_exact(6).enumerate() {
        assert_eq!(frame[2..], (at as u32 + 1).to_be_bytes(), "no key twice");
    }
}

#[test]
fn large_messages_arrive_whether_lent_or_kept() {
    for len in [0, 125, 126, 4095, 4096, 65_535, 65_536, 200_000] {
        let payload: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let shared = bytes::Bytes::from(payload.clone());
        let owned = OwnedMessage::Binary(payload.clone().into());
        let held = OwnedMessage::Binary(shared.clone());
        let (mut server, mut client) = (Writer::new(Unmasked), Writer::new(counted()));
        for message in [&owned, &held] {
            server.send(message.as_message()).unwrap();
            client.send(message.as_message()).unwrap();
            server.send_owned(message.clone()).unwrap();
            client.send_owned(message.clone()).unwrap();
        }
        client.send_owned(OwnedMessage::Binary(payload.clone().into())).unwrap();
        assert_eq!(heard(Role::Client, &output(&mut server)), vec![owned.clone(); 4]);
        assert_eq!(heard(Role::Server, &output(&mut client)), vec![owned.clone(); 5]);
        assert_eq!(shared, payload, "what others hold is not masked in place");
    }
}

#[test]
fn prepared_messages_are_the_same_for_everybody() {
    let long = "x".repeat(5000);
    for prepared in [
        Prepared::new().text("one").binary(b"\x02").text(""),
        Prepared::new().text(&long).text("behind"),
    ] {
        let mut server = Writer::new(Unmasked);
        let mut client = Writer::new(counted());
        for _ in 0..2 {
            server.send_prepared(&prepared).unwrap();
            client.send_prepared(&prepared).unwrap();
        }
        let once = heard(Role::Client, prepared.bytes());
        let expected = [once.clone(), once].concat();
        assert_eq!(heard(Role::Client, &output(&mut server)), expected);
        assert_eq!(heard(Role::Server, &output(&mut client)), expected);
    }
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut to = Connection::new(Unmasked, Config::default());
    let long = [0; 126];
    assert_eq!(to.send(Message::Ping(&long)), Err(ApiMisuse::ControlTooLong));
    assert_eq!(to.send(Message::Pong(&long)), Err(ApiMisuse::ControlTooLong));
    let reason = "x".repeat(124);
    let close = Close { code: CloseCode::NORMAL, reason: &reason };
    assert_eq!(to.send(Message::Close(Some(close))), Err(ApiMisuse::ControlTooLong));
    for code in [999, 1004, 1005, 1006, 1015, 5000] {
        let close = Close { code: CloseCode(code), reason: "" };
        assert_eq!(to.send(Message::Close(Some(close))), Err(ApiMisuse::BadCloseCode));
    }
    to.send_text_piece("a", false).unwrap();
    assert_eq!(to.send(Message::Text("b")), Err(ApiMisuse::MessageOpen));
    assert_eq!(to.send_binary_piece(b"b", true), Err(ApiMisuse::MessageOpen));
    assert_eq!(to.send_prepared(&Prepared::new().text("b")), Err(ApiMisuse::MessageOpen));
    let before = to.pending();
    to.send(Message::Close(None)).unwrap();
    assert_eq!(to.send_text_piece("b", true), Err(ApiMisuse::Closing));
    assert_eq!(to.send(Message::Ping(b"")), Err(ApiMisuse::Closing));
    assert_eq!(to.send(Message::Close(None)), Err(ApiMisuse::Closing));
    assert_eq!(to.pending(), before + 2);
}
