//! Whatever was agreed on and said arrives; whatever is inflated means the same however it is split,
//! and never passes the limit.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::ws::{feed, take_output};
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::ws::deflate::{Agreed, Direction, Tuning};
use mimus_proto::ws::{
    CloseCode, Config, Connection, Header, Keys, Limits, Masking, Message, Opcode, OwnedMessage,
    RSV1, Unmasked,
};

const LIMITS: Limits = Limits { message: 100_000, frame: 100_000 };

fn client(agreed: &Agreed) -> Connection<impl Masking + use<>> {
    let config = Config { limits: LIMITS, ..Config::default() };
    Connection::with_deflate(Keys::new(|bytes: &mut [u8]| bytes.fill(1)), config, agreed)
}

/// What was heard, and the code of the error: which of two wrongs is seen first depends on the split.
fn inflate(agreed: &Agreed, wire: &[u8], cuts: &[usize]) -> (Vec<OwnedMessage>, Option<CloseCode>) {
    let (heard, error) = feed(&mut client(agreed), wire, cuts);
    for message in &heard {
        if let OwnedMessage::Binary(bytes) = message {
            assert!(bytes.len() <= LIMITS.message);
        }
    }
    (heard, error.and_then(CloseCode::of))
}

fuzz!("ws_deflate", |data| {
    let mut choices = Choices::new(data);
    let mut direction = || Direction {
        no_context_takeover: choices.byte() % 2 == 1,
        window_bits: 8 + choices.byte() % 8,
    };
    let (server, up) = (direction(), direction());
    let level = u32::from(choices.byte() % 10);
    let agreed = Agreed { server, client: up, tuning: Tuning { level, threshold: 0 } };
    let cuts = choices.cuts();

    // Arbitrary bytes as compressed messages of each kind.
    let mut wire = Vec::new();
    for (opcode, payload) in [(Opcode::Text, choices.bytes()), (Opcode::Binary, choices.bytes())] {
        let len = payload.len() as u64;
        Header { fin: true, rsv: RSV1, opcode, mask: None, len }.write(&mut wire);
        wire.extend_from_slice(payload);
    }
    let whole = inflate(&agreed, &wire, &[]);
    assert_eq!(whole, inflate(&agreed, &wire, &cuts));
    assert_eq!(whole, inflate(&agreed, &wire, &vec![1; wire.len()]));

    // Both ends against each other.
    let mut server = Connection::with_deflate(Unmasked, Config::default(), &agreed);
    let mut client = client(&agreed);
    let mut expected = Vec::new();
    while !choices.is_empty() {
        let times = 1 + usize::from(choices.byte() % 40);
        let payload = choices.bytes().repeat(times);
        server.send(Message::Binary(&payload)).expect("a message between others");
        client.send_binary_piece(&payload, false).expect("the first piece");
        client.send_binary_piece(&payload, true).expect("the last piece");
        expected.push(payload);
    }
    let (there, back) = (take_output(&mut server), take_output(&mut client));
    let once = expected.iter().map(|bytes| OwnedMessage::Binary(bytes.clone().into()));
    assert_eq!(feed(&mut client, &there, &cuts), (once.collect(), None));
    let twice = expected.iter().map(|bytes| OwnedMessage::Binary(bytes.repeat(2).into()));
    assert_eq!(feed(&mut server, &back, &cuts), (twice.collect(), None));
});
