//! Answers, the closing handshake, and what happens by when.

use std::time::{Duration, Instant};

use mimus_proto::ws::{
    Close, CloseCode, Config, Connection, Keys, Masking, Message, Opcode, OwnedMessage, Phase,
    Unmasked,
};
use mimus_proto::{ApiMisuse, Error, LimitExceeded, PeerMisbehaved, UnexpectedEof};

use super::rig::{feed, frame, take_output};

const CONFIG: Config = Config {
    limits: mimus_proto::ws::Limits { message: 1000, frame: 1000 },
    ping_interval: Some(Duration::from_secs(30)),
    pong_wait: Duration::from_secs(10),
    close_wait: Duration::from_secs(5),
};

const NORMAL: Close<'static> = Close { code: CloseCode::NORMAL, reason: "bye" };

fn server() -> Connection<Unmasked> {
    Connection::new(Unmasked, CONFIG)
}

fn client() -> Connection<impl Masking + use<>> {
    Connection::new(Keys::new(|bytes: &mut [u8]| bytes.fill(7)), CONFIG)
}

/// Moves what one says to the other, and gives what that one hears.
fn carry<A: Masking, B: Masking>(
    from: &mut Connection<A>,
    to: &mut Connection<B>,
) -> Vec<OwnedMessage> {
    let wire = take_output(from);
    let (heard, error) = feed(to, &wire, &[]);
    assert_eq!(error, None);
    heard
}

#[test]
fn a_ping_is_answered_with_its_payload() {
    let (mut client, mut server) = (client(), server());
    server.send(Message::Ping(b"alive?")).unwrap();
    assert_eq!(carry(&mut server, &mut client), [OwnedMessage::Ping("alive?".into())]);
    assert_eq!(carry(&mut client, &mut server), [OwnedMessage::Pong("alive?".into())]);
    assert_eq!(take_output(&mut server), b"");
}

#[test]
fn pings_that_nobody_reads_answers_to_cost_no_memory() {
    let mut client = client();
    let pings: Vec<u8> =
        (0..1000_u32).flat_map(|at| frame(true, Opcode::Ping, &at.to_be_bytes(), false)).collect();
    let (heard, error) = feed(&mut client, &pings, &[]);
    assert_eq!((heard.len(), error), (1000, None));
    assert!(client.pending() < 1000, "{}", client.pending());
    // The latest is answered once the others are written (RFC 6455 section 5.5.3).
    let (answers, _) = feed(&mut server(), &take_output(&mut client), &[]);
    assert_eq!(answers.last(), Some(&OwnedMessage::Pong(999_u32.to_be_bytes().to_vec().into())));
}

#[test]
fn a_close_is_answered_and_both_ends_are_over() {
    let (mut client, mut server) = (client(), server());
    server.send(Message::Text("last")).unwrap();
    client.send(Message::Close(Some(NORMAL))).unwrap();
    assert_eq!(client.phase(), Phase::Closing);
    assert_eq!(client.send(Message::Text("more")), Err(ApiMisuse::Closing));
    // What was under way still arrives.
    assert_eq!(carry(&mut server, &mut client), [OwnedMessage::Text("last".into())]);
    assert_eq!(carry(&mut client, &mut server), [OwnedMessage::Close(Some(NORMAL.into()))]);
    assert_eq!((server.phase(), server.is_over()), (Phase::Closed, false));
    let answer = Close { code: CloseCode::NORMAL, reason: "" };
    assert_eq!(carry(&mut server, &mut client), [OwnedMessage::Close(Some(answer.into()))]);
    assert!(server.is_over(), "a server closes the transport first");
    assert_eq!((client.phase(), client.is_over()), (Phase::Closed, false));
    client.recv_eof();
    assert_eq!(client.poll(), Ok(None));
    assert!(client.is_over());
}

#[test]
fn a_close_without_a_code_is_answered_by_one() {
    let mut client = client();
    let heard = feed(&mut client, b"\x88\x00", &[]);
    assert_eq!(heard, (vec![OwnedMessage::Close(None)], None));
    assert_eq!(take_output(&mut client), [0x88, 0x80, 7, 7, 7, 7]);
}

#[test]
fn closes_that_cross_are_enough() {
    let (mut client, mut server) = (client(), server());
    client.send(Message::Close(Some(NORMAL))).unwrap();
    server.send(Message::Close(None)).unwrap();
    let (one, two) = (take_output(&mut client), take_output(&mut server));
    assert_eq!(feed(&mut client, &two, &[]).0, [OwnedMessage::Close(None)]);
    assert_eq!(feed(&mut server, &one, &[]).0, [OwnedMessage::Close(Some(NORMAL.into()))]);
    assert_eq!((client.pending(), server.pending()), (0, 0));
    assert_eq!((client.phase(), server.phase()), (Phase::Closed, Phase::Closed));
}

#[test]
fn the_peer_is_told_why_the_connection_failed() {
    let long = frame(true, Opcode::Binary, &[0; 1001], false);
    for (wire, error, code) in [
        (&b"\x81\x01\xff"[..], Error::from(PeerMisbehaved::InvalidUtf8), 1007_u16),
        (b"\x83\x00", PeerMisbehaved::ReservedOpcode.into(), 1002),
        (&long, LimitExceeded::FrameBytes.into(), 1009),
    ] {
        let mut client = client();
        assert_eq!(feed(&mut client, wire, &[]), (vec![], Some(error)));
        assert_eq!((client.phase(), client.is_over()), (Phase::Failed(error), false));
        assert_eq!(client.send(Message::Text("a")), Err(ApiMisuse::Closing));
        let [high, low] = code.to_be_bytes();
        assert_eq!(take_output(&mut client), [0x88, 0x82, 7, 7, 7, 7, high ^ 7, low ^ 7]);
        assert!(client.is_over());
    }
}

#[test]
fn an_end_without_a_close_is_told_to_nobody() {
    let mut client = client();
    client.recv_eof();
    let error = UnexpectedEof::BeforeClose.into();
    assert_eq!(client.poll(), Err(error));
    assert_eq!((client.phase(), client.pending()), (Phase::Failed(error), 0));
    assert!(client.is_over());
}

#[test]
fn silence_is_asked_and_then_given_up() {
    let (mut client, start) = (client(), Instant::now());
    let after = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(client.poll_timeout(start), Some(after(30)));
    client.recv(b"\x81\x01a");
    assert_eq!(client.poll_timeout(after(20)), Some(after(50)), "any bytes are a sign of life");
    client.handle_timeout(after(49));
    assert_eq!(client.pending(), 0);
    client.handle_timeout(after(50));
    let ping = take_output(&mut client);
    assert_eq!(ping[..2], [0x89, 0x88]);
    assert_eq!(client.poll_timeout(after(50)), Some(after(60)));

    // It answers in time; the next one not.
    assert_eq!(client.poll(), Ok(Some(Message::Text("a"))));
    client.recv(b"\x8a\x00");
    assert_eq!(client.poll(), Ok(Some(Message::Pong(b""))));
    assert_eq!(client.poll_timeout(after(55)), Some(after(85)));
    client.handle_timeout(after(85));
    assert_ne!(take_output(&mut client), ping, "another payload");
    client.handle_timeout(after(94));
    assert_eq!(client.poll(), Ok(None));
    client.handle_timeout(after(95));
    assert_eq!(client.poll(), Err(LimitExceeded::PongWait.into()));
    assert_eq!(client.poll_timeout(after(95)), None);
    assert!(client.is_over());
}

#[test]
fn a_peer_that_never_answers_a_close_is_dropped_on_time() {
    let (mut client, start) = (client(), Instant::now());
    client.send(Message::Close(Some(NORMAL))).unwrap();
    let deadline = start + CONFIG.close_wait;
    assert_eq!(client.poll_timeout(start), Some(deadline));
    take_output(&mut client);
    // Whatever it says instead moves nothing.
    client.recv(b"\x81\x01a");
    assert_eq!(client.poll_timeout(start + Duration::from_secs(4)), Some(deadline));
    client.handle_timeout(deadline);
    assert_eq!(client.poll(), Err(LimitExceeded::CloseWait.into()));
    assert!(client.is_over());
}

#[test]
fn a_server_that_answers_a_close_and_stays_is_left_on_time() {
    let (mut client, start) = (client(), Instant::now());
    feed(&mut client, b"\x88\x00", &[]);
    take_output(&mut client);
    let deadline = client.poll_timeout(start).unwrap();
    assert!(!client.is_over());
    client.handle_timeout(deadline);
    assert_eq!(client.poll(), Ok(None));
    assert_eq!(client.phase(), Phase::Closed);
    assert!(client.is_over());
}
