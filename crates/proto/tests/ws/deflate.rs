//! Compressed messages, with every choice that can be agreed on.

use mimus_proto::ws::deflate::{Agreed, Direction, Tuning};
use mimus_proto::ws::{Config, Connection, Keys, Limits, Masking, Message, OwnedMessage, Unmasked};
use mimus_proto::{Error, LimitExceeded, PeerMisbehaved};

use super::rig::{feed, take_output};

const TUNING: Tuning = Tuning { level: 1, threshold: 0 };

fn agreed(direction: Direction) -> Agreed {
    Agreed { server: direction, client: direction, tuning: TUNING }
}

fn server(agreed: &Agreed) -> Connection<Unmasked> {
    Connection::with_deflate(Unmasked, Config::default(), agreed)
}

fn client(config: Config, agreed: &Agreed) -> Connection<impl Masking + use<>> {
    Connection::with_deflate(Keys::new(|bytes: &mut [u8]| bytes.fill(5)), config, agreed)
}

/// Text of which later parts repeat earlier ones at any distance up to `len`.
fn sample(len: usize) -> String {
    let mut seed = 7_u32;
    let mut all = String::new();
    while all.len() < len {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let at = (seed >> 8) as usize % all.len().max(1);
        let piece = match all.get(at..(at + 40).min(all.len())) {
            Some(again) if seed & 1 == 0 => again.to_owned(),
            _ => format!("{seed:x}é"),
        };
        all.push_str(&piece);
    }
    all
}

/// Text that does not repeat itself.
fn noise(len: u32) -> String {
    let mut seed = len;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + (seed >> 24) as u8 % 90)
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn the_examples_of_the_rfc() {
    // RFC 7692 section 7.2.3: one block, shared window, no compression, BFINAL, two blocks.
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let again = [0xf2, 0x00, 0x11, 0x00, 0x00];
    let stored = [0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
    let last = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
    let two = [0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00];
    let mut wire = Vec::new();
    for payload in [&hello[..], &again, &stored, &last, &two] {
        wire.extend_from_slice(&[0xc1, payload.len() as u8]);
        wire.extend_from_slice(payload);
    }
    // In fragments, the bit on the first only.
    wire.extend_from_slice(&[0x41, 0x03, 0xf2, 0x48, 0xcd, 0x80, 0x04, 0xc9, 0xc9, 0x07, 0x00]);
    let mut to = client(Config::default(), &Agreed::default());
    let expected = vec![OwnedMessage::Text("Hello".into()); 6];
    assert_eq!(feed(&mut to, &wire, &[]), (expected.clone(), None));
    let mut to = client(Config::default(), &Agreed::default());
    assert_eq!(feed(&mut to, &wire, &vec![1; wire.len()]), (expected, None));
}

#[test]
fn every_combination_arrives() {
    let text = sample(5000);
    let messages = [&text, "", "short", &text[..text.floor_char_boundary(700)], &text, "", ""];
    for bits in 8..=15 {
        for no_context_takeover in [false, true] {
            for level in [0, 1, 2, 6, 9] {
                let direction = Direction { no_context_takeover, window_bits: bits };
                let tuning = Tuning { level, threshold: 0 };
                let agreed = Agreed { tuning, ..agreed(direction) };
                let (mut client, mut server) =
                    (client(Config::default(), &agreed), server(&agreed));
                for message in messages {
                    client.send(Message::Text(message)).unwrap();
                    server.send(Message::Binary(message.as_bytes())).unwrap();
                }
                let (here, there) = (take_output(&mut client), take_output(&mut server));
                let texts = messages.map(|text| OwnedMessage::Text(text.into()));
                let cuts = vec![17; 100];
                assert_eq!(feed(&mut server, &here, &cuts), (texts.to_vec(), None), "{agreed:?}");
                let bytes =
                    messages.map(|text| OwnedMessage::Binary(text.as_bytes().to_vec().into()));
                assert_eq!(feed(&mut client, &there, &cuts), (bytes.to_vec(), None), "{agreed:?}");
            }
        }
    }
}

#[test]
fn a_window_of_8_bits_is_kept_to() {
    let direction = Direction { no_context_takeover: false, window_bits: 8 };
    for level in 1..=9 {
        let tuning = Tuning { level, threshold: 0 };
        let mut server = server(&Agreed { tuning, ..agreed(direction) });
        // Each block comes twice: at all distances around what may be referred to.
        let blocks = (244..264).map(|len| noise(len).repeat(2));
        server.send(Message::Text(&blocks.collect::<String>())).unwrap();
        let wire = take_output(&mut server);
        let (header, size) = mimus_proto::ws::Header::read(&wire).unwrap().unwrap();
        assert_eq!(header.len as usize, wire.len() - size);
        let distance = symbols::farthest(&[&wire[size..], &[0, 0, 0xff, 0xff]].concat());
        assert!((244..=256).contains(&distance), "level {level} refers back by {distance}");
    }
}

/// As much of a deflate decoder (RFC 1951) as tells distances.
mod symbols {
    struct Bits<'a> {
        bytes: &'a [u8],
        at: usize,
    }

    impl Bits<'_> {
        fn take(&mut self, count: u32) -> usize {
            (0..count).fold(0, |all, shift| {
                let bit = self.bytes[self.at / 8] >> (self.at % 8) & 1;
                self.at += 1;
                all | usize::from(bit) << shift
            })
        }

        /// Canonical Huffman (RFC 1951 section 3.2.2).
        fn symbol(&mut self, lengths: &[u8]) -> usize {
            let (mut code, mut first) = (0, 0);
            for len in 1..=15_u8 {
                code = code << 1 | self.take(1);
                let count = lengths.iter().filter(|it| **it == len).count();
                if code < first + count {
                    let mut of_len = (0..lengths.len()).filter(|at| lengths[*at] == len);
                    return of_len.nth(code - first).unwrap();
                }
                first = (first + count) << 1;
            }
            panic!("not a code")
        }
    }

    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

    fn tables(bits: &mut Bits<'_>) -> (Vec<u8>, Vec<u8>) {
        let (literals, distances, codes) = (bits.take(5) + 257, bits.take(5) + 1, bits.take(4) + 4);
        let mut lengths = [0; 19];
        for at in &ORDER[..codes] {
            lengths[*at] = bits.take(3) as u8;
        }
        let mut all: Vec<u8> = Vec::new();
        while all.len() < literals + distances {
            let (byte, times) = match bits.symbol(&lengths) {
                16 => (*all.last().unwrap(), 3 + bits.take(2)),
                17 => (0, 3 + bits.take(3)),
                18 => (0, 11 + bits.take(7)),
                len => (len as u8, 1),
            };
            all.extend(std::iter::repeat_n(byte, times));
        }
        let behind = all.split_off(literals);
        (all, behind)
    }

    pub fn farthest(bytes: &[u8]) -> usize {
        let mut bits = Bits { bytes, at: 0 };
        let mut most = 0;
        while bits.at + 3 <= bytes.len() * 8 {
            bits.take(1);
            let (literals, distances) = match bits.take(2) {
                0 => {
                    bits.at = bits.at.next_multiple_of(8);
                    let len = bits.take(16);
                    bits.at += 16 + len * 8;
                    continue;
                }
                1 => {
                    let fixed = |at| match at {
                        0..144 | 280.. => 8,
                        144..256 => 9,
                        _ => 7,
                    };
                    ((0..288).map(fixed).collect(), vec![5; 30])
                }
                _ => tables(&mut bits),
            };
            loop {
                let symbol = bits.symbol(&literals);
                let extra = match symbol {
                    ..256 => continue,
                    256 => break,
                    257..265 | 285.. => 0,
                    _ => (symbol - 261) / 4,
                };
                bits.take(extra as u32);
                let code = bits.symbol(&distances);
                let extra = code.saturating_sub(2) / 2;
                let base = if code < 4 { code + 1 } else { ((2 + code % 2) << extra) + 1 };
                most = most.max(base + bits.take(extra as u32));
            }
        }
        most
    }
}

#[test]
fn messages_in_pieces_are_compressed_as_one() {
    let agreed = agreed(Direction::default());
    let (mut client, mut server) = (client(Config::default(), &agreed), server(&agreed));
    let text = sample(3000);
    for _ in 0..2 {
        let (one, two) = text.split_at(text.floor_char_boundary(1000));
        client.send_text_piece(one, false).unwrap();
        client.send(Message::Ping(b"between")).unwrap();
        client.send_text_piece("", false).unwrap();
        client.send_text_piece(two, false).unwrap();
        client.send_text_piece("", true).unwrap();
    }
    let wire = take_output(&mut client);
    assert!(wire.len() < 2 * text.len());
    let (heard, error) = feed(&mut server, &wire, &[100; 20]);
    assert_eq!(error, None);
    let texts: Vec<_> =
        heard.into_iter().filter(|message| matches!(message, OwnedMessage::Text(_))).collect();
    assert_eq!(texts, [OwnedMessage::Text(text.as_str().into()), OwnedMessage::Text(text.into())]);
}

#[test]
fn below_the_threshold_a_message_goes_as_it_is() {
    let tuning = Tuning { level: 6, threshold: 10 };
    let mut server = server(&Agreed { tuning, ..Agreed::default() });
    server.send(Message::Text("123456789")).unwrap();
    assert_eq!(take_output(&mut server)[..2], [0x81, 9]);
    server.send(Message::Text("1111111111")).unwrap();
    assert_eq!(take_output(&mut server)[0], 0xc1);
}

#[test]
fn a_bomb_is_refused_while_it_is_inflated() {
    // 64 MiB of zeros in 64 KiB; the limit is 1 MiB.
    let tuning = Tuning { level: 9, threshold: 0 };
    let agreed = Agreed { tuning, ..Agreed::default() };
    let mut server = server(&agreed);
    server.send(Message::Binary(&vec![0; 64 << 20])).unwrap();
    let wire = take_output(&mut server);
    assert!(wire.len() < 100_000);
    let limits = Limits { message: 1 << 20, frame: 1 << 20 };
    for cuts in [&[][..], &[1000; 50]] {
        let mut client = client(Config { limits, ..Config::default() }, &agreed);
        let (heard, error) = feed(&mut client, &wire, cuts);
        assert_eq!((heard, error), (vec![], Some(LimitExceeded::MessageBytes.into())));
    }
    // Exactly at the limit it is a message.
    server.send(Message::Binary(&vec![0; 1 << 20])).unwrap();
    let fresh =
        Agreed { server: Direction { no_context_takeover: true, ..agreed.server }, ..agreed };
    let mut fresh_server = self::server(&fresh);
    fresh_server.send(Message::Binary(&vec![0; 1 << 20])).unwrap();
    let mut client = client(Config { limits, ..Config::default() }, &fresh);
    let (heard, error) = feed(&mut client, &take_output(&mut fresh_server), &[]);
    assert_eq!((heard.len(), error), (1, None));
}

#[test]
fn what_cannot_be_inflated_is_refused() {
    let bad: [(&[u8], Error); 5] = [
        (b"\xc1\x02\xff\xff", PeerMisbehaved::BadCompression.into()),
        // A stored block whose length does not fit its complement.
        (b"\xc1\x05\x00\x05\x00\x00\x00", PeerMisbehaved::BadCompression.into()),
        // Not UTF-8 once it is inflated: a stored block of one byte 0xff.
        (b"\xc1\x07\x00\x01\x00\xfe\xff\xff\x00", PeerMisbehaved::InvalidUtf8.into()),
        // The bit on a continuation and on a control frame (RFC 7692 section 6.1).
        (b"\x41\x00\xc0\x00", PeerMisbehaved::ReservedBits.into()),
        (b"\xc9\x00", PeerMisbehaved::ReservedBits.into()),
    ];
    for (wire, error) in bad {
        let mut to = client(Config::default(), &Agreed::default());
        assert_eq!(feed(&mut to, wire, &[]), (vec![], Some(error)), "{wire:?}");
        let mut to = client(Config::default(), &Agreed::default());
        assert_eq!(feed(&mut to, wire, &vec![1; wire.len()]), (vec![], Some(error)), "{wire:?}");
    }
}
