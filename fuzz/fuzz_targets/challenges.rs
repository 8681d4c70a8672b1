//! Challenges are read within bounds and can be written again; a Digest answer quotes them intact.

#![cfg_attr(feature = "libfuzzer", no_main)]

use http::Method;
use mimus::auth::{AuthError, Challenge, Challenged, DigestSession, challenges};
use mimus_fuzz::{Choices, fuzz};

const URI: &str = "/dir/index.html?a=\"b\"";

/// The list as a careful server writes it.
fn write(list: &[Challenge<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for challenge in list {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(challenge.scheme.as_bytes());
        if let Some(token) = challenge.token68 {
            out.push(b' ');
            out.extend_from_slice(token.as_bytes());
        }
        for (at, (name, value)) in challenge.params.iter().enumerate() {
            let first = at == 0 && challenge.token68.is_none();
            out.extend_from_slice(if first { b" " } else { b", " });
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"=\"");
            for &byte in &**value {
                if matches!(byte, b'"' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
    }
    out
}

fn check_bounds(list: &[Challenge<'_>], input: &[u8]) {
    let of = |challenge: &Challenge<'_>| {
        let params = challenge.params.iter().map(|(name, value)| name.len() + value.len());
        challenge.scheme.len() + challenge.token68.map_or(0, str::len) + params.sum::<usize>()
    };
    assert!(list.iter().map(of).sum::<usize>() <= input.len());
    assert!(list.iter().all(|challenge| !challenge.scheme.is_empty()));
    assert_eq!(challenges(&write(list)), list);
}

/// What the session answers must say what one of the offers said.
fn check_answer(session: &mut DigestSession, list: &[Challenge<'_>], body: Option<&[u8]>) {
    let mut number = 0;
    let mut random = || {
        number += 1;
        number
    };
    let answer = match session.authorize(&Method::GET, URI, body, &mut random) {
        Ok(answer) => answer,
        Err(AuthError::ControlCharacter) => return,
        Err(AuthError::BodyNotAtHand) if body.is_none() => return,
        Err(other) => panic!("{other}"),
    };
    assert!(answer.is_sensitive());
    let answers = challenges(answer.as_bytes());
    let [answer] = &answers[..] else {
        panic!("{} answers", answers.len());
    };
    assert!(answer.is("Digest"));
    assert_eq!(answer.param("uri"), Some(URI.as_bytes()));
    assert!(answer.param("username").or(answer.param("username*")).is_some());
    let said = |offer: &Challenge<'_>, name| {
        offer.param(name).unwrap_or_default() == answer.param(name).unwrap_or_default()
    };
    let of_offer = |offer: &&Challenge<'_>| {
        offer.is("Digest") && ["realm", "nonce", "opaque"].iter().all(|name| said(offer, name))
    };
    assert!(list.iter().any(|offer| of_offer(&offer)), "an answer to no offer");
}

fuzz!("challenges", |data| {
    let mut choices = Choices::new(data);
    let (user, password, has_body) = (choices.text(), choices.text(), choices.byte() & 1 == 0);
    let (next, input) = (choices.bytes(), choices.rest());
    let list = challenges(input);
    check_bounds(&list, input);

    let mut session = DigestSession::new(user, password);
    assert_ne!(session.challenged(&list, 3), Challenged::Answer, "answers without end");
    assert!(!session.is_challenged());
    let body = has_body.then_some(&b"body"[..]);
    if session.challenged(&list, 0) == Challenged::Answer {
        assert!(session.is_challenged());
        check_answer(&mut session, &list, body);
        check_answer(&mut session, &list, body);
        session.inform(next);
        let unasked = session.authorize(&Method::GET, URI, Some(b""), &mut || 7);
        assert!(matches!(unasked, Ok(_) | Err(AuthError::ControlCharacter)));
    }
});
