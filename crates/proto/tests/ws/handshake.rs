//! What begins a connection, and which answers do.

use http::{Method, StatusCode, Version};
use mimus_proto::ws::deflate::{self, Agreed, Direction};
use mimus_proto::ws::handshake::{Accepted, BadRequest, Key, Offer, Refused, Request};
use mimus_proto::{Fields, RequestHead, ResponseHead};

/// RFC 6455 section 1.3.
fn key() -> Key {
    Key::new(*b"the sample nonce")
}

const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

fn offer() -> Offer {
    let protocols = vec!["chat".to_owned(), "superchat".to_owned()];
    Offer { protocols, deflate: Some(deflate::Offer::default()) }
}

fn head(status: u16, fields: &[(&str, &str)]) -> ResponseHead {
    let fields = Fields::try_from_iter(fields);
    ResponseHead::new(StatusCode::from_u16(status).unwrap(), Version::HTTP_11, fields)
}

trait FromPairs {
    fn try_from_iter(pairs: &[(&str, &str)]) -> Self;
}

impl FromPairs for Fields {
    fn try_from_iter(pairs: &[(&str, &str)]) -> Self {
        let mut fields = Fields::new();
        for (name, value) in pairs {
            fields.append(name, value).unwrap();
        }
        fields
    }
}

/// A good answer with `more` behind it.
fn answer<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let good =
        [("upgrade", "WebSocket"), ("connection", "x, upgrade"), ("Sec-WebSocket-Accept", ACCEPT)];
    [&good[..], more].concat()
}

fn checked(fields: &[(&str, &str)]) -> Result<Accepted, Refused> {
    offer().check_upgrade(&key(), &head(101, fields))
}

#[test]
fn the_example_of_the_rfc() {
    assert_eq!(key().as_str(), "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(key().accept(), ACCEPT);
}

#[test]
fn what_is_asked_for() {
    let mut fields = Fields::new();
    offer().append_upgrade(&key(), &mut fields).unwrap();
    let expected = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
        ("Sec-WebSocket-Protocol", "chat, superchat"),
    ];
    assert_eq!(fields, Fields::try_from_iter(&expected));

    // RFC 8441 section 5: neither key nor upgrade.
    let mut fields = Fields::new();
    offer().append_connect(&mut fields).unwrap();
    assert!(!fields.contains("sec-websocket-key") && !fields.contains("upgrade"));
    assert_eq!(fields.get_str("sec-websocket-version"), Some("13"));
    assert_eq!(fields.get_str("sec-websocket-protocol"), Some("chat, superchat"));

    let bad = Offer { protocols: vec!["a b".into()], deflate: None };
    assert!(bad.append_connect(&mut Fields::new()).is_err());
}

#[test]
fn an_answer_is_checked_item_by_item() {
    assert_eq!(checked(&answer(&[])), Ok(Accepted::default()));
    let plain = head(200, &answer(&[]));
    assert_eq!(offer().check_upgrade(&key(), &plain), Err(Refused::Status(StatusCode::OK)));
    let mut old = head(101, &answer(&[]));
    old.version = http::Version::HTTP_10;
    assert_eq!(offer().check_upgrade(&key(), &old), Err(Refused::Version));
    for (without, refused) in
        [(0, Refused::Upgrade), (1, Refused::Connection), (2, Refused::Accept)]
    {
        let mut fields = answer(&[]);
        fields[without].1 = "other";
        assert_eq!(checked(&fields), Err(refused));
        fields.remove(without);
        assert_eq!(checked(&fields), Err(refused));
    }
    // The accept is compared in its case.
    let mut fields = answer(&[]);
    let lower = ACCEPT.to_lowercase();
    fields[2].1 = &lower;
    assert_eq!(checked(&fields), Err(Refused::Accept));
}

#[test]
fn a_subprotocol_is_one_of_those_offered() {
    let name = "sec-websocket-protocol";
    let accepted = checked(&answer(&[(name, "superchat")])).unwrap();
    assert_eq!(accepted.protocol.as_deref(), Some("superchat"));
    for bad in ["Chat", "other", "chat, superchat", ""] {
        assert_eq!(checked(&answer(&[(name, bad)])), Err(Refused::Protocol), "{bad}");
    }
    let twice = answer(&[(name, "chat"), (name, "chat")]);
    assert_eq!(checked(&twice), Err(Refused::Protocol));
}

#[test]
fn an_extension_is_one_of_those_offered() {
    let answered = |value: &str| checked(&answer(&[("Sec-WebSocket-Extensions", value)]));
    assert_eq!(answered("permessage-deflate").unwrap().deflate, Some(Agreed::default()));
    let full = "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
                server_max_window_bits=\"10\"; client_max_window_bits=9";
    let agreed = answered(full).unwrap().deflate.unwrap();
    assert_eq!(agreed.server, Direction { no_context_takeover: true, window_bits: 10 });
    assert_eq!(agreed.client, Direction { no_context_takeover: true, window_bits: 9 });
    for bad in [
        "x-webkit-deflate-frame",
        "permessage-deflate, permessage-deflate",
        "permessage-deflate; unknown",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=08",
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=+9",
        "permessage-deflate; server_max_window_bits=\"\"",
        "permessage-deflate; server_max_window_bits=\"1",
        "permessage-deflate;",
        "=",
    ] {
        assert_eq!(answered(bad), Err(Refused::Extension), "{bad}");
    }
    let without = Offer { deflate: None, ..offer() };
    let head = head(101, &answer(&[("Sec-WebSocket-Extensions", "permessage-deflate")]));
    assert_eq!(without.check_upgrade(&key(), &head), Err(Refused::Extension));
}

#[test]
fn what_was_demanded_of_the_server_is_granted() {
    let small = Direction { no_context_takeover: true, window_bits: 10 };
    let demanding = deflate::Offer { server: small, client: small, ..Default::default() };
    assert_eq!(
        demanding.to_string(),
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=10; \
         client_no_context_takeover; client_max_window_bits=10"
    );
    let offer = Offer { protocols: vec![], deflate: Some(demanding) };
    let check = |value: &str| {
        let head = head(200, &[("sec-websocket-extensions", value)]);
        offer.check_connect(&head)
    };
    for bad in [
        "permessage-deflate",
        "permessage-deflate; server_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=11",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=10; \
         client_max_window_bits=11",
    ] {
        assert_eq!(check(bad), Err(Refused::Extension), "{bad}");
    }
    let good = "permessage-deflate; server_no_context_takeover; server_max_window_bits=9";
    let agreed = check(good).unwrap().deflate.unwrap();
    assert_eq!(agreed.server, Direction { no_context_takeover: true, window_bits: 9 });
    assert_eq!(agreed.client, small, "what was promised holds");
}

#[test]
fn an_extended_connect_is_answered_by_a_success() {
    assert_eq!(offer().check_connect(&head(204, &[])), Ok(Accepted::default()));
    let refused = offer().check_connect(&head(403, &[]));
    assert_eq!(refused, Err(Refused::Status(StatusCode::FORBIDDEN)));
}

fn request(method: Method, edit: impl FnOnce(&mut Fields)) -> RequestHead {
    let mut fields = Fields::try_from_iter(&[("Host", "h")]);
    offer().append_upgrade(&key(), &mut fields).unwrap();
    edit(&mut fields);
    RequestHead::new(method, "/".into(), Version::HTTP_11, fields)
}

#[test]
fn a_server_reads_and_answers_what_a_client_asks() {
    let willing = deflate::Offer::default();
    let read = Request::read(&request(Method::GET, |_| ()), Some(&willing)).unwrap();
    assert_eq!(read.protocols, ["chat", "superchat"]);
    let head = ResponseHead::new(
        StatusCode::SWITCHING_PROTOCOLS,
        Version::HTTP_11,
        read.answer(Some("chat")).unwrap(),
    );
    let accepted = offer().check_upgrade(&key(), &head).unwrap();
    assert_eq!(accepted.protocol.as_deref(), Some("chat"));
    assert_eq!((accepted.deflate.as_ref(), accepted.deflate.is_some()), (read.deflate(), true));

    let bad = |method, edit: fn(&mut Fields)| Request::read(&request(method, edit), None);
    let not = Err(BadRequest::NotAHandshake);
    assert_eq!(bad(Method::POST, |_| ()), not);
    assert_eq!(bad(Method::GET, |fields| assert_eq!(fields.remove("upgrade"), 1)), not);
    assert_eq!(bad(Method::GET, |fields| assert_eq!(fields.remove("connection"), 1)), not);
    assert_eq!(bad(Method::GET, |fields| assert_eq!(fields.remove("sec-websocket-key"), 1)), not);
    assert_eq!(bad(Method::GET, |fields| fields.set("Sec-WebSocket-Key", "AAAA").unwrap()), not);
    let version = |fields: &mut Fields| fields.set("Sec-WebSocket-Version", "8").unwrap();
    assert_eq!(bad(Method::GET, version), Err(BadRequest::Version));
}

#[test]
fn a_server_takes_the_first_offer_that_it_can_meet() {
    let small = Direction { no_context_takeover: false, window_bits: 10 };
    let willing = deflate::Offer { client: small, ..Default::default() };
    let asked = |value: &'static str| {
        let head = request(Method::GET, |fields| {
            fields.set("Sec-WebSocket-Extensions", value).unwrap();
        });
        Request::read(&head, Some(&willing)).unwrap().deflate().copied()
    };
    assert_eq!(asked("permessage-deflate"), None, "the client did not say it can do with less");
    let agreed = asked(
        "other; a=b, permessage-deflate, permessage-deflate; client_max_window_bits; \
         server_max_window_bits=8",
    );
    let agreed = agreed.unwrap();
    assert_eq!((agreed.client.window_bits, agreed.server.window_bits), (10, 8));
}
