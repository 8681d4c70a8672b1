//! What a reader makes of frames, and which it refuses.

use mimus_proto::ws::{
    Close, CloseCode, Config, Connection, Keys, Limits, Message, Opcode, OwnedMessage, Reader,
    Role, Unmasked,
};
use mimus_proto::{Error, LimitExceeded, PeerMisbehaved, UnexpectedEof};

use super::rig::{feed, frame, hear};

fn client() -> Keys<impl FnMut(&mut [u8])> {
    Keys::new(|bytes: &mut [u8]| bytes.fill(9))
}

fn text(text: &str) -> OwnedMessage {
    OwnedMessage::Text(text.into())
}

/// The error that a client ends with.
fn refusal(wire: &[u8]) -> Option<Error> {
    let (_, error) = hear(client(), wire);
    let mut split = Connection::new(client(), Config::default());
    assert_eq!(feed(&mut split, wire, &vec![1; wire.len()]).1, error);
    error
}

fn breach(breach: PeerMisbehaved) -> Option<Error> {
    Some(breach.into())
}

#[test]
fn the_examples_of_the_rfc() {
    // RFC 6455 section 5.7.
    let hello = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(hear(client(), &hello), (vec![text("Hello")], None));
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(hear(Unmasked, &masked), (vec![text("Hello")], None));
    let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    assert_eq!(hear(client(), &fragments), (vec![text("Hello")], None));
    let ping = [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(hear(client(), &ping).0, [OwnedMessage::Ping("Hello".into())]);
    let pong = [0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(hear(Unmasked, &pong).0, [OwnedMessage::Pong("Hello".into())]);
    for (header, len) in
        [(&[0x82, 0x7e, 0x01, 0x00][..], 256), (&[0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0], 65_536)]
    {
        let mut wire = header.to_vec();
        wire.resize(header.len() + len, 7);
        assert_eq!(hear(client(), &wire).0, [OwnedMessage::Binary(vec![7; len].into())]);
    }
}

#[test]
fn control_frames_stand_between_fragments() {
    let wire = [
        frame(false, Opcode::Text, b"a", false),
        frame(true, Opcode::Ping, b"1", false),
        frame(false, Opcode::Continuation, b"", false),
        frame(true, Opcode::Pong, b"2", false),
        frame(true, Opcode::Continuation, b"b", false),
    ];
    let heard =
        [OwnedMessage::Ping("1".into()), OwnedMessage::Pong("2".into()), text("ab")].to_vec();
    assert_eq!(hear(client(), &wire.concat()), (heard, None));
}

#[test]
fn a_client_masks_and_a_server_does_not() {
    let masked = frame(true, Opcode::Text, b"a", true);
    let plain = frame(true, Opcode::Text, b"a", false);
    assert_eq!(refusal(&masked), breach(PeerMisbehaved::MaskForbidden));
    assert_eq!(hear(Unmasked, &plain).1, breach(PeerMisbehaved::MaskMissing));
}

#[test]
fn reserved_bits_and_opcodes_are_refused() {
    for bit in [0x10, 0x20, 0x40, 0x70] {
        assert_eq!(refusal(&[0x81 | bit, 0]), breach(PeerMisbehaved::ReservedBits));
        assert_eq!(refusal(&[0x89 | bit, 0]), breach(PeerMisbehaved::ReservedBits));
    }
    for opcode in [3, 7, 11, 15] {
        assert_eq!(refusal(&[0x80 | opcode, 0]), breach(PeerMisbehaved::ReservedOpcode));
    }
}

#[test]
fn fragments_come_in_order() {
    let alone = frame(true, Opcode::Continuation, b"a", false);
    assert_eq!(refusal(&alone), breach(PeerMisbehaved::FragmentWithoutStart));
    let begun = frame(false, Opcode::Text, b"a", false);
    for next in [Opcode::Text, Opcode::Binary] {
        let wire = [begun.clone(), frame(true, next, b"b", false)].concat();
        assert_eq!(refusal(&wire), breach(PeerMisbehaved::FragmentInterrupted));
    }
    let over = [begun, frame(true, Opcode::Continuation, b"", false), alone].concat();
    assert_eq!(refusal(&over), breach(PeerMisbehaved::FragmentWithoutStart));
}

#[test]
fn text_is_utf8_in_one_frame_and_over_many() {
    let euro = "€".as_bytes();
    for bad in [&b"\xff"[..], b"a\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", &euro[..2]] {
        for pad in [0, 70] {
            let bad = [&vec![b'a'; pad][..], bad].concat();
            let whole = frame(true, Opcode::Text, &bad, false);
            assert_eq!(refusal(&whole), breach(PeerMisbehaved::InvalidUtf8), "{bad:?}");
            let wire = [
                frame(false, Opcode::Text, &bad[..1], false),
                frame(true, Opcode::Continuation, &bad[1..], false),
            ];
            assert_eq!(refusal(&wire.concat()), breach(PeerMisbehaved::InvalidUtf8), "{bad:?}");
        }
    }
    let split = [
        frame(false, Opcode::Text, &euro[..1], false),
        frame(false, Opcode::Continuation, &euro[1..2], false),
        frame(true, Opcode::Continuation, &euro[2..], false),
    ];
    assert_eq!(hear(client(), &split.concat()), (vec![text("€")], None));
}

#[test]
fn text_that_can_never_be_is_refused_before_its_end() {
    // The third byte makes it a code point beyond the last; ten more are announced.
    let mut whole = Reader::new(Role::Client, Limits::default());
    whole.recv(b"\x81\x0dab\xf4");
    assert_eq!(whole.poll(), Ok(None));
    whole.recv(b"\x90");
    assert_eq!(whole.poll(), Err(PeerMisbehaved::InvalidUtf8.into()));

    let mut masked = Reader::new(Role::Server, Limits::default());
    masked.recv(&[&[0x81, 0x8d, 1, 2, 3, 4][..], &[b'a' ^ 1, 0xc0 ^ 2]].concat());
    assert_eq!(masked.poll(), Err(PeerMisbehaved::InvalidUtf8.into()));

    let mut fragment = Reader::new(Role::Client, Limits::default());
    fragment.recv(b"\x01\x0dab\xf4");
    assert_eq!(fragment.poll(), Ok(None));
    fragment.recv(b"\x90");
    assert_eq!(fragment.poll(), Err(PeerMisbehaved::InvalidUtf8.into()));
}

#[test]
fn a_message_over_the_limit_is_refused_at_its_header() {
    let limits = Limits { message: 1 << 20, frame: 1 << 21 };
    let mut reader = Reader::new(Role::Client, limits);
    // 100 MB, of which nothing came.
    reader.recv(&[0x82, 127, 0, 0, 0, 0, 5, 0xf5, 0xe1, 0]);
    assert_eq!(reader.poll(), Err(LimitExceeded::FrameBytes.into()));

    let mut reader = Reader::new(Role::Client, limits);
    reader.recv(&[0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1]);
    assert_eq!(reader.poll(), Err(LimitExceeded::MessageBytes.into()));

    // The last fragment is the one too much: its header says so.
    let mut reader = Reader::new(Role::Client, limits);
    reader.recv(&frame(false, Opcode::Binary, &vec![0; 1 << 20], false));
    assert_eq!(reader.poll(), Ok(None));
    reader.recv(&[0x80, 1]);
    assert_eq!(reader.poll(), Err(LimitExceeded::MessageBytes.into()));

    let mut reader = Reader::new(Role::Client, limits);
    reader.recv(&frame(true, Opcode::Binary, &vec![0; 1 << 20], false));
    assert!(matches!(reader.poll(), Ok(Some(Message::Binary(bytes))) if bytes.len() == 1 << 20));
}

#[test]
fn room_grows_with_what_came_not_with_what_was_announced() {
    let mut reader = Reader::new(Role::Client, Limits::default());
    reader.recv(&[0x02, 127, 0, 0, 0, 0, 0, 0xff, 0, 0, 1, 2, 3]);
    assert_eq!(reader.poll(), Ok(None));
    assert_eq!(reader.missing(), 0xff_0000 - 3);
    assert!(reader.recv_buf().capacity() < 4096);
}

#[test]
fn closes_are_read_strictly() {
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        let wire = frame(true, Opcode::Close, &code.to_be_bytes(), false);
        assert_eq!(refusal(&wire), breach(PeerMisbehaved::BadCloseCode), "{code}");
    }
    for code in [1000_u16, 1001, 1002, 1003, 1007, 1011, 1012, 1014, 3000, 3999, 4000, 4999] {
        let wire = frame(true, Opcode::Close, &code.to_be_bytes(), false);
        assert_eq!(refusal(&wire), None, "{code}");
    }
    let one = frame(true, Opcode::Close, &[3], false);
    assert_eq!(refusal(&one), breach(PeerMisbehaved::BadCloseFrame));
    let reason = frame(true, Opcode::Close, b"\x03\xe8\xff", false);
    assert_eq!(refusal(&reason), breach(PeerMisbehaved::InvalidUtf8));
}

#[test]
fn nothing_is_read_behind_a_close() {
    let mut reader = Reader::new(Role::Client, Limits::default());
    reader.recv(b"\x88\x04\x03\xe8ok\x81\x01a\xff\xff");
    let close = Close { code: CloseCode::NORMAL, reason: "ok" };
    assert_eq!(reader.poll(), Ok(Some(Message::Close(Some(close)))));
    assert_eq!(reader.poll(), Ok(None));
    reader.recv(b"\x81\x01a");
    reader.recv_eof();
    assert_eq!(reader.poll(), Ok(None));
    assert!(reader.is_closed());
}

#[test]
fn an_end_without_a_close_is_an_error() {
    for (wire, error) in [
        (&b""[..], UnexpectedEof::BeforeClose),
        (b"\x81\x01a", UnexpectedEof::BeforeClose),
        (b"\x81", UnexpectedEof::InFrame),
        (b"\x81\x02a", UnexpectedEof::InFrame),
        (b"\x01\x01a", UnexpectedEof::InFrame),
        (b"\x01\x02a", UnexpectedEof::InFrame),
    ] {
        let mut reader = Reader::new(Role::Client, Limits::default());
        reader.recv(wire);
        reader.recv_eof();
        while let Ok(Some(_)) = reader.poll() {}
        assert_eq!(reader.poll(), Err(error.into()), "{wire:?}");
    }
}

#[test]
fn many_frames_of_one_read_are_lent_from_where_they_lie() {
    let wire = frame(true, Opcode::Binary, &[5; 100], false).repeat(50);
    let mut reader = Reader::new(Role::Client, Limits::default());
    reader.recv(&wire);
    let begin = reader.recv_buf().as_ptr().addr();
    for at in 0..50 {
        let Ok(Some(Message::Binary(bytes))) = reader.poll() else { panic!("message {at}") };
        assert_eq!(bytes.as_ptr().addr(), begin + at * 102 + 2);
    }
    assert_eq!(reader.poll(), Ok(None));
    // All of its room is there again, without a move.
    assert!(reader.recv_buf().is_empty());
    assert_eq!(reader.recv_buf().as_ptr().addr(), begin);
}

#[test]
fn an_idle_reader_keeps_nothing() {
    let mut reader = Reader::new(Role::Client, Limits::default());
    reader.recv(&frame(false, Opcode::Binary, &[5; 10_000], false));
    reader.recv(&frame(true, Opcode::Continuation, b"", false));
    assert!(matches!(reader.poll(), Ok(Some(_))));
    assert_eq!(reader.poll(), Ok(None));
    reader.shrink();
    assert_eq!(reader.recv_buf().capacity(), 0);
}

#[test]
fn fragments_that_bring_nothing_are_counted() {
    let begin = frame(false, Opcode::Text, b"x", false);
    let empty = frame(false, Opcode::Continuation, b"", false);
    let end = frame(true, Opcode::Continuation, b"y", false);
    let wire = [&begin[..], &empty.repeat(1024), &end].concat();
    assert_eq!(hear(client(), &wire).0, [text("xy")]);
    let wire = [&begin[..], &empty.repeat(1025)].concat();
    assert_eq!(refusal(&wire), Some(LimitExceeded::EmptyFragments.into()));
}

#[test]
fn what_was_looked_at_is_given_out_once_and_as_it_came() {
    for masked in [false, true] {
        let wire = [
            frame(true, Opcode::Text, "plain, é".as_bytes(), masked),
            frame(false, Opcode::Binary, b"in two", masked),
            frame(true, Opcode::Ping, b"between", masked),
            frame(true, Opcode::Continuation, b" pieces", masked),
            frame(true, Opcode::Binary, &[7; 300], masked),
            frame(true, Opcode::Text, b"", masked),
            frame(true, Opcode::Close, &[3, 232], masked),
        ]
        .concat();
        let (role, expected) = match masked {
            true => (Role::Server, hear(Unmasked, &wire).0),
            false => (Role::Client, hear(client(), &wire).0),
        };
        // Taken at once, or only when everything has come.
        for (step, at_once) in [(1, true), (1, false), (9, true), (9, false), (wire.len(), true)] {
            let mut reader = Reader::new(role, Limits::default());
            let mut heard = Vec::new();
            let mut came = 0;
            for piece in wire.chunks(step) {
                reader.recv(piece);
                came += piece.len();
                while reader.look() == Ok(true) && (at_once || came == wire.len()) {
                    assert_eq!(reader.look(), Ok(true));
                    heard.extend(reader.poll().unwrap().map(|message| message.to_owned()));
                }
            }
            assert_eq!(reader.look(), Ok(false));
            assert_eq!(heard, expected, "masked: {masked}, step {step}, at once: {at_once}");
        }
    }
}
