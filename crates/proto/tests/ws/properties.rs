//! Any split of the bytes gives the same messages; what is sent arrives.

use mimus_proto::ws::deflate::{Agreed, Direction, Tuning};
use mimus_proto::ws::{Config, Connection, Keys, Masking, Message, Opcode, OwnedMessage, Unmasked};
use proptest::prelude::*;

use super::rig::{feed, frame, take_output};

/// What an application may say.
#[derive(Debug, Clone)]
enum Said {
    Text(String),
    Binary(Vec<u8>),
    Pieces(Vec<String>),
    Ping(Vec<u8>),
    Kept(Vec<u8>),
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        ".{0,200}".prop_map(Said::Text),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Said::Binary),
        proptest::collection::vec(".{0,40}", 1..5).prop_map(Said::Pieces),
        proptest::collection::vec(any::<u8>(), 0..=125).prop_map(Said::Ping),
        (4090..4200_usize, any::<u8>()).prop_map(|(len, byte)| Said::Kept(vec![byte; len])),
    ]
}

/// Says all of it, and gives what is to be heard; pings go between pieces.
fn say<M: Masking>(from: &mut Connection<M>, all: &[Said]) -> Vec<OwnedMessage> {
    let mut expected = Vec::new();
    for said in all {
        match said {
            Said::Text(text) => from.send(Message::Text(text)).unwrap(),
            Said::Binary(bytes) => from.send(Message::Binary(bytes)).unwrap(),
            Said::Ping(bytes) => from.send(Message::Ping(bytes)).unwrap(),
            Said::Kept(bytes) => {
                from.send_owned(OwnedMessage::Binary(bytes.clone().into())).unwrap();
            }
            Said::Pieces(pieces) => {
                for (at, piece) in pieces.iter().enumerate() {
                    from.send_text_piece(piece, at + 1 == pieces.len()).unwrap();
                    if at + 1 < pieces.len() {
                        from.send(Message::Pong(piece.as_bytes().get(..5).unwrap_or(b""))).unwrap();
                        let pong = piece.as_bytes().get(..5).unwrap_or(b"").to_vec();
                        expected.push(OwnedMessage::Pong(pong.into()));
                    }
                }
            }
        }
        expected.push(match said {
            Said::Text(text) => OwnedMessage::Text(text.as_str().into()),
            Said::Binary(bytes) | Said::Kept(bytes) => OwnedMessage::Binary(bytes.clone().into()),
            Said::Ping(bytes) => OwnedMessage::Ping(bytes.clone().into()),
            Said::Pieces(pieces) => OwnedMessage::Text(pieces.concat().into()),
        });
    }
    expected
}

fn agreed() -> impl Strategy<Value = Option<Agreed>> {
    let direction = || {
        (any::<bool>(), 8..=15_u8).prop_map(|(no_context_takeover, window_bits)| Direction {
            no_context_takeover,
            window_bits,
        })
    };
    let tuning =
        (0..=9_u32, 0..100_usize).prop_map(|(level, threshold)| Tuning { level, threshold });
    proptest::option::of(
        (direction(), direction(), tuning).prop_map(|(server, client, tuning)| Agreed {
            server,
            client,
            tuning,
        }),
    )
}

fn connection<M: Masking>(masking: M, agreed: Option<&Agreed>) -> Connection<M> {
    match agreed {
        Some(agreed) => Connection::with_deflate(masking, Config::default(), agreed),
        None => Connection::new(masking, Config::default()),
    }
}

fn keys() -> Keys<impl FnMut(&mut [u8])> {
    let mut seed = 3_u8;
    Keys::new(move |bytes: &mut [u8]| {
        for byte in bytes {
            seed = seed.wrapping_mul(77).wrapping_add(91);
            *byte = seed;
        }
    })
}

/// A frame of a kind that may fit or not.
fn any_frame(masked: bool) -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        4 => Just(Opcode::Text),
        2 => Just(Opcode::Binary),
        4 => Just(Opcode::Continuation),
        1 => Just(Opcode::Ping),
        1 => Just(Opcode::Pong),
        1 => Just(Opcode::Close),
    ];
    let payload = prop_oneof![
        ".{0,60}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..140),
        Just(vec![0x03, 0xe8]),
    ];
    (any::<bool>(), opcode, payload)
        .prop_map(move |(fin, opcode, payload)| frame(fin, opcode, &payload, masked))
}

proptest! {
    #[test]
    fn what_is_sent_arrives_however_it_is_split(
        up in proptest::collection::vec(said(), 0..8),
        down in proptest::collection::vec(said(), 0..8),
        agreed in agreed(),
        cuts in proptest::collection::vec(0..60_usize, 0..40),
    ) {
        let mut client = connection(keys(), agreed.as_ref());
        let mut server = connection(Unmasked, agreed.as_ref());
        let (to_server, to_client) = (say(&mut client, &up), say(&mut server, &down));
        let (there, back) = (take_output(&mut client), take_output(&mut server));
        prop_assert_eq!(feed(&mut server, &there, &cuts), (to_server, None));
        prop_assert_eq!(feed(&mut client, &back, &cuts), (to_client, None));
    }

    #[test]
    fn frames_of_any_kind_mean_the_same_however_they_are_split(
        frames in proptest::collection::vec(any_frame(false), 0..10),
        masked in proptest::collection::vec(any_frame(true), 0..10),
        cuts in proptest::collection::vec(0..30_usize, 0..40),
    ) {
        let wire = frames.concat();
        let whole = feed(&mut connection(keys(), None), &wire, &[]);
        prop_assert_eq!(&whole, &feed(&mut connection(keys(), None), &wire, &cuts));
        prop_assert_eq!(&whole, &feed(&mut connection(keys(), None), &wire, &vec![1; wire.len()]));
        let wire = masked.concat();
        let whole = feed(&mut connection(Unmasked, None), &wire, &[]);
        prop_assert_eq!(&whole, &feed(&mut connection(Unmasked, None), &wire, &cuts));
        prop_assert_eq!(&whole, &feed(&mut connection(Unmasked, None), &wire, &vec![1; wire.len()]));
    }
}
