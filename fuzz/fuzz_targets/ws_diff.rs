//! The same bytes to Mimus and to tungstenite: the same messages, and the same opinion on whether they
//! are good.

#![cfg_attr(feature = "libfuzzer", no_main)]

use std::io::{self, Read, Write};

use mimus_fuzz::ws::{Heard, hear};
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::ws::{CloseCode, Keys, OwnedClose, OwnedMessage, Unmasked};
use mimus_proto::{Error, PeerMisbehaved as P};
use tungstenite::protocol::{Role, WebSocket};
use tungstenite::{Error as TheirError, Message};

/// A peer that said all of it at once and hears nothing.
struct Said<'a>(&'a [u8]);

impl Read for Said<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Said<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What tungstenite hears, and whether it ends with an error.
fn theirs(role: Role, input: &[u8]) -> (Vec<OwnedMessage>, bool) {
    let mut socket = WebSocket::from_raw_socket(Said(input), role, None);
    let mut heard = Vec::new();
    loop {
        heard.push(match socket.read() {
            Ok(Message::Text(text)) => OwnedMessage::Text(text.as_str().into()),
            Ok(Message::Binary(bytes)) => OwnedMessage::Binary(bytes),
            Ok(Message::Ping(bytes)) => OwnedMessage::Ping(bytes),
            Ok(Message::Pong(bytes)) => OwnedMessage::Pong(bytes),
            // What it makes of a code that must not be sent.
            Ok(Message::Close(Some(bad))) if bad.reason == "Protocol violation" => {
                return (heard, true);
            }
            Ok(Message::Close(close)) => {
                heard.push(OwnedMessage::Close(close.map(|close| OwnedClose {
                    code: CloseCode(close.code.into()),
                    reason: close.reason.as_str().into(),
                })));
                return (heard, false);
            }
            Ok(Message::Frame(_)) => unreachable!("never read"),
            Err(TheirError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return (heard, false);
            }
            Err(_) => return (heard, true),
        });
    }
}

/// Where the two may differ: tungstenite takes lengths that are not in their shortest form, judges a
/// frame, text included, only once all of it is there, and does not know the code 1014.
fn compare(ours: Heard, theirs: (Vec<OwnedMessage>, bool)) {
    let (mut ours, error) = ours;
    let (theirs, failed) = theirs;
    match error {
        None if failed => {
            let last = ours.pop();
            let gateway = CloseCode::BAD_GATEWAY;
            assert!(matches!(&last, Some(OwnedMessage::Close(Some(it))) if it.code == gateway));
            assert_eq!(ours, theirs);
        }
        None => assert_eq!((ours, false), (theirs, failed)),
        Some(Error::PeerMisbehaved(P::FrameLength | P::ControlTooLong)) => {
            assert_eq!(ours, theirs[..ours.len()]);
        }
        Some(error) => assert_eq!(ours, theirs, "{error:?}"),
    }
}

fuzz!("ws_diff", |data| {
    let input = Choices::new(data).rest();
    compare(hear(Unmasked, input), theirs(Role::Server, input));
    let keys = Keys::new(|bytes: &mut [u8]| bytes.fill(1));
    compare(hear(keys, input), theirs(Role::Client, input));
});
