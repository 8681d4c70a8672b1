use super::*;
use crate::policy::auth::challenges;

const MUFASA: &str = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
const NONCE: &str = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";

fn challenge(extra: &str) -> String {
    format!("Digest realm=\"http-auth@example.org\", nonce=\"{NONCE}\"{extra}")
}

/// A session that has met `challenge`, with the client nonce of the RFC's examples.
fn met(challenge: &str) -> DigestSession {
    let mut session = DigestSession::new("Mufasa", "Circle of Life");
    assert_eq!(session.challenged(&challenges(challenge.as_bytes()), 0), Challenged::Answer);
    session.space.as_mut().unwrap().cnonce = Some(MUFASA.to_owned());
    session
}

fn answer(session: &mut DigestSession, method: &Method, body: Option<&[u8]>) -> String {
    let mut one = || 1;
    let value = session.authorize(method, "/dir/index.html", body, &mut one).unwrap();
    assert!(value.is_sensitive());
    String::from_utf8(value.as_bytes().to_vec()).unwrap()
}

fn param(value: &str, name: &str) -> Option<String> {
    let list = challenges(value.as_bytes());
    list[0].param(name).map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn response(session: &mut DigestSession) -> String {
    param(&answer(session, &Method::GET, Some(b"")), "response").unwrap()
}

/// RFC 7616, section 3.9.1.
#[test]
fn the_examples_of_the_rfc_for_md5_and_sha_256() {
    let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS";
    for (algorithm, expected) in [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ] {
        let extra = format!(", qop=\"auth, auth-int\", algorithm={algorithm}, opaque=\"{opaque}\"");
        let value = answer(&mut met(&challenge(&extra)), &Method::GET, None);
        assert_eq!(
            value,
            format!(
                "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
                 uri=\"/dir/index.html\", algorithm={algorithm}, nonce=\"{NONCE}\", \
                 nc=00000001, qop=auth, cnonce=\"{MUFASA}\", response=\"{expected}\", \
                 opaque=\"{opaque}\""
            )
        );
    }
}

/// RFC 7616, section 3.9.2, with the hashes of erratum 4897.
#[test]
fn the_example_of_the_rfc_for_sha_512_256_and_charset() {
    let offer = "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
                 nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", \
                 opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", charset=UTF-8";
    let authorize = |offer: &str| {
        let mut session = DigestSession::new("J\u{e4}s\u{f8}n Doe", "Secret, or not?");
        assert_eq!(session.challenged(&challenges(offer.as_bytes()), 0), Challenged::Answer);
        session.space.as_mut().unwrap().cnonce =
            Some("NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v".to_owned());
        let value = session.authorize(&Method::GET, "/doe.json", None, &mut || 1).unwrap();
        String::from_utf8(value.as_bytes().to_vec()).unwrap()
    };
    let expected = "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5";
    let hashed = authorize(&format!("{offer}, userhash=true"));
    assert_eq!(
        param(&hashed, "username").as_deref(),
        Some("793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
    );
    assert_eq!(param(&hashed, "userhash").as_deref(), Some("true"));
    assert_eq!(param(&hashed, "response").as_deref(), Some(expected));
    let extended = authorize(offer);
    assert_eq!(param(&extended, "username*").as_deref(), Some("UTF-8''J%C3%A4s%C3%B8n%20Doe"));
    assert_eq!(param(&extended, "username"), None);
    assert_eq!(param(&extended, "response").as_deref(), Some(expected));
}

/// Expected values computed independently, by another language's library.
#[test]
fn the_other_algorithms_and_protections() {
    let md5_session = "e783283f46242139c486a698fec7211d";
    assert_eq!(response(&mut met(&challenge(", qop=auth, algorithm=MD5-sess"))), md5_session);
    let mut session = met(&challenge(", qop=auth, algorithm=sha-256-SESS"));
    response(&mut session);
    assert_eq!(
        response(&mut session),
        "6bb0010aa4bdf46422a798c509ea32e256f27bd37de5cc3bdf8ed51e1d77d650"
    );
    let mut body = met(&challenge(", qop=\"auth-int\""));
    let value = answer(&mut body, &Method::POST, Some(b"body"));
    assert_eq!(param(&value, "response").as_deref(), Some("a1abf5c7fa9ae74478eb9ffa265bf546"));
    assert_eq!(param(&value, "qop").as_deref(), Some("auth-int"));
    let mut empty = met(&challenge(", qop=auth-int"));
    assert_eq!(response(&mut empty), "8804a53d3640a40a4f73cea12c5ba451");
    let mut legacy = met(&challenge(""));
    let value = answer(&mut legacy, &Method::GET, None);
    assert_eq!(param(&value, "response").as_deref(), Some("7b2cc3b30e75b4777ea31027084363fd"));
    for absent in ["qop", "nc", "cnonce", "algorithm", "opaque", "userhash"] {
        assert_eq!(param(&value, absent), None, "{absent}");
    }
}

#[test]
fn each_answer_counts_until_the_nonce_changes() {
    let mut session = met(&challenge(", qop=auth"));
    let count =
        |session: &mut DigestSession| param(&answer(session, &Method::GET, None), "nc").unwrap();
    assert_eq!(count(&mut session), "00000001");
    assert_eq!(count(&mut session), "00000002");
    session.inform(b"rspauth=\"x\"");
    assert_eq!(count(&mut session), "00000003");
    session.inform(b"nextnonce=\"fresh\"");
    let value = answer(&mut session, &Method::GET, None);
    assert_eq!(param(&value, "nc").as_deref(), Some("00000001"));
    assert_eq!(param(&value, "nonce").as_deref(), Some("fresh"));
}

#[test]
fn the_strongest_challenge_is_answered() {
    let chosen = |list: &str| {
        let value = answer(&mut met(list), &Method::GET, Some(b""));
        (param(&value, "nonce").unwrap(), param(&value, "algorithm"))
    };
    let list = "Basic realm=x, Digest realm=r, nonce=1, algorithm=MD5, \
                Digest realm=r, nonce=2, algorithm=SHA-512-256, \
                Digest realm=r, nonce=3, algorithm=SHA-256, \
                Digest realm=r, nonce=4, algorithm=SHA-1024, \
                Digest realm=r, nonce=5, algorithm=SHA-512-256-sess, qop=weird";
    assert_eq!(chosen(list), ("2".to_owned(), Some("SHA-512-256".to_owned())));
    let equals = "Digest realm=r, nonce=1, algorithm=MD5-sess, Digest realm=r, nonce=2";
    assert_eq!(chosen(equals).0, "1");
}

#[test]
fn challenges_that_cannot_be_answered() {
    for list in [
        "",
        "Basic realm=x",
        "Negotiate abc=",
        "Digest",
        "Digest realm=r",
        "Digest realm=r, nonce=1, algorithm=MD6",
        "Digest realm=r, nonce=1, algorithm=-sess",
        "Digest realm=r, nonce=1, qop=token",
    ] {
        let mut session = DigestSession::new("u", "p");
        let verdict = session.challenged(&challenges(list.as_bytes()), 0);
        assert_eq!(verdict, Challenged::NotOffered, "{list}");
        assert!(!session.is_challenged());
        let error = session.authorize(&Method::GET, "/", None, &mut || 1).unwrap_err();
        assert_eq!(error, AuthError::NoChallenge);
    }
}

#[test]
fn a_refused_answer_is_not_repeated_but_a_stale_one_is() {
    let again = |session: &mut DigestSession, extra: &str, answers| {
        session.challenged(&challenges(challenge(extra).as_bytes()), answers)
    };
    let mut session = met(&challenge(", qop=auth"));
    assert_eq!(again(&mut session, "", 0), Challenged::Answer, "the nonce was an old one");
    assert_eq!(again(&mut session, "", 1), Challenged::Refused);
    assert_eq!(again(&mut session, ", stale=false", 1), Challenged::Refused);
    assert_eq!(again(&mut session, ", stale=TRUE", 1), Challenged::Answer);
    assert_eq!(again(&mut session, ", stale=\"true\"", 2), Challenged::Answer);
    assert_eq!(again(&mut session, ", stale=true", 3), Challenged::Refused, "for ever");
}

#[test]
fn what_cannot_be_carried_is_refused() {
    let authorize = |user: &str, offer: &str, body| {
        let mut session = DigestSession::new(user, "p");
        session.challenged(&challenges(offer.as_bytes()), 0);
        session.authorize(&Method::GET, "/", body, &mut || 1)
    };
    let int = "Digest realm=r, nonce=1, qop=auth-int";
    assert_eq!(authorize("u", int, None), Err(AuthError::BodyNotAtHand));
    assert!(authorize("u", int, Some(b"")).is_ok());
    assert_eq!(authorize("u\r\nX: y", int, Some(b"")), Err(AuthError::ControlCharacter));
    let hostile = "Digest realm=\"a\\\r\\\nX: y\", nonce=1";
    assert_eq!(authorize("u", hostile, None), Err(AuthError::ControlCharacter));
}

#[test]
fn quotes_survive_the_way_back() {
    let mut session = DigestSession::new("a\"b\\c", "p");
    session.challenged(&challenges(b"Digest realm=\"x\\\"y\", nonce=1"), 0);
    let value = session.authorize(&Method::GET, "/", None, &mut || 1).unwrap();
    let value = value.to_str().unwrap();
    assert!(value.contains(r#"username="a\"b\\c""#) && value.contains(r#"realm="x\"y""#));
}

#[test]
fn the_client_nonce_is_drawn_once_for_each_challenge() {
    let mut session = DigestSession::new("u", "p");
    let mut next = 0;
    let mut random = || {
        next += 1;
        next
    };
    let list = challenges(b"Digest realm=r, nonce=1, qop=auth");
    let mut cnonces = Vec::new();
    for _ in 0..2 {
        session.challenged(&list, 0);
        for _ in 0..2 {
            let value = session.authorize(&Method::GET, "/", None, &mut random).unwrap();
            cnonces.push(param(value.to_str().unwrap(), "cnonce").unwrap());
        }
    }
    assert_eq!(cnonces[0], "00000000000000010000000000000002");
    assert_eq!(cnonces[0], cnonces[1]);
    assert_ne!(cnonces[1], cnonces[2]);
}

#[test]
fn the_password_does_not_show() {
    let session = met(&challenge(""));
    assert!(!format!("{session:?}").contains("Circle"));
}
