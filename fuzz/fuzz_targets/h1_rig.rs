//! Two machines, told to do arbitrary things in arbitrary order: no panic, what arrives is what was
//! sent, the client finds no fault with our server, and a connection that says it is reusable is.

#![cfg_attr(feature = "libfuzzer", no_main)]

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use mimus_fuzz::rig::{Pair, body, error};
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::h1::{NoReuse, Reuse};
use mimus_proto::{ApiMisuse, BodyLength, Error, Fields, LimitExceeded};

fn length(choices: &mut Choices<'_>) -> BodyLength {
    match choices.byte() % 3 {
        0 => BodyLength::None,
        1 => BodyLength::Known(u64::from(choices.byte())),
        _ => BodyLength::Chunked,
    }
}

fn some_fields(choices: &mut Choices<'_>) -> Fields {
    let mut fields = Fields::try_from([("Host", "h")]).expect("valid");
    for _ in 0..choices.byte() % 4 {
        let known = ["Expect", "Connection", "Upgrade", "Content-Length", "Transfer-Encoding"];
        let values = ["100-continue", "close", "x", "7", "chunked", "keep-alive"];
        let (name, value) = (choices.byte(), choices.byte());
        let taken = match known.get(usize::from(name)) {
            Some(name) => fields.append(name, values[usize::from(value) % values.len()]),
            None => fields.append(&choices.text(), choices.bytes()),
        };
        // An invalid name or value is refused: that is the other half of the property.
        let _ = taken;
    }
    fields
}

/// Misuse must be refused without effect, so the outcome of a call is not looked at.
fn ignore(_: Result<(), ApiMisuse>) {}

fn act(pair: &mut Pair, uploaded: &mut Vec<u8>, choices: &mut Choices<'_>) {
    let data = |choices: &mut Choices<'_>| {
        let piece = choices.bytes().to_vec();
        Bytes::from(if choices.byte() == 0 { piece.repeat(50) } else { piece })
    };
    match choices.byte() % 12 {
        0 => {
            let methods = [Method::GET, Method::POST, Method::HEAD, Method::CONNECT];
            let method = &methods[usize::from(choices.byte() % 4)];
            let reusable = pair.client.reuse() == Reuse::Yes;
            let (fields, length) = (some_fields(choices), length(choices));
            let sent = pair.client.send_head(method, "/t", &fields, length);
            assert!(reusable || sent.is_err(), "a busy connection took a request");
        }
        1 => {
            let piece = data(choices);
            if pair.client.send_data(piece.clone()).is_ok() {
                uploaded.extend_from_slice(&piece);
            }
        }
        2 => ignore(pair.client.send_end(None)),
        3 => ignore(pair.client.send_end(Some(&some_fields(choices)))),
        4 => pair.client.stop_body(),
        5 => pair.wait(Duration::from_millis(u64::from(choices.byte()) * 20)),
        6 => ignore(pair.server.send_informational(StatusCode::CONTINUE, &Fields::new())),
        7 => {
            let codes = [200, 204, 304, 417, 101, 500];
            let status =
                StatusCode::from_u16(codes[usize::from(choices.byte()) % 6]).expect("valid");
            ignore(pair.server.send_head(status, &some_fields(choices), length(choices)));
        }
        8 => ignore(pair.server.send_data(data(choices))),
        9 => ignore(pair.server.send_end(None)),
        10 => pair.server.recv_eof(),
        _ => pair.settle(),
    }
}

fuzz!("h1_rig", |data| {
    let mut choices = Choices::new(data);
    let (mut pair, mut uploaded) = (Pair::connect(), Vec::new());
    while !choices.is_empty() {
        act(&mut pair, &mut uploaded, &mut choices);
    }
    pair.settle();
    assert!(uploaded.starts_with(&body(&pair.at_server)), "a byte was lost or made up");
    let fault = error(&pair.at_client);
    assert_eq!(fault.is_some(), pair.client.reuse() == Reuse::No(NoReuse::Failed));
    let many = Error::LimitExceeded(LimitExceeded::Informational);
    assert!(fault.is_none_or(|fault| fault == many), "{fault:?}");
    if pair.client.reuse() == Reuse::Yes {
        assert!(!pair.client.has_output() && pair.client.pending_bytes() == 0);
        let again = pair.client.send_head(&Method::GET, "/", &Fields::new(), BodyLength::None);
        assert_eq!(again, Ok(()));
    }
});
